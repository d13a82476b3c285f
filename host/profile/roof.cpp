// SPDX-License-Identifier: Apache-2.0
// Commands beside the roof of their device.
#include "encode/matrix_speed.hpp"
#include "profile/profile.hpp"
#include "profile/roof_file.hpp"
#include "support/private_folder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace clutch { inline namespace v0 {

namespace detail {

namespace {

/// Bandwidth of the working set: of the measured size that is nearest, or of memory beyond them all.
double bandwidth(const profiler::DeviceRoof& roof, double bytes) {
  auto above = std::find_if(roof.by_size.begin(), roof.by_size.end(), [&](const auto& row) { return row.first >= bytes; });
  if (above == roof.by_size.end()) return roof.bytes;
  if (above == roof.by_size.begin()) return above->second;
  const auto below = above - 1;
  return above->first / std::max(bytes, 1.0) < bytes / below->first ? above->second : below->second;
}

}  // namespace

double matrix_limit(const profiler::DeviceRoof& roof, std::string_view matrix) {
  const auto found = std::find_if(roof.matrix.begin(), roof.matrix.end(), [&](const auto& row) { return row.first == matrix; });
  return found == roof.matrix.end() ? 0 : found->second;
}

profiler::RoofPoint roof_point(const profiler::DeviceRoof& roof, double flops, bool is_f64, double bytes, double seconds, std::string_view matrix) {
  profiler::RoofPoint point{.matrix = matrix};
  if (seconds <= 0) return point;
  point.gflops = flops / seconds * 1e-9;
  point.gbps = bytes / seconds * 1e-9;
  const double of_matrix = matrix.empty() ? 0 : matrix_limit(roof, matrix);
  if (!matrix.empty() && of_matrix <= 0) return point;  // the limit of other instructions says nothing of these
  const double reachable = bandwidth(roof, bytes), peak = of_matrix > 0 ? of_matrix : is_f64 && roof.flops64 > 0 ? roof.flops64 : roof.flops;
  const double compute = peak > 0 ? flops / peak : 0, memory = reachable > 0 ? bytes / reachable : 0;
  if (compute <= 0 && memory <= 0) return point;
  point.binding = compute > memory ? "compute" : "memory";
  point.roof_us = std::max(compute, memory) * 1e6;
  point.roof_pct = 100 * std::max(compute, memory) / seconds;
  return point;
}

profiler::RoofPoint Profile::roof_of(const ProfileRecord& r) const {
  auto device = devices.find(r.device);
  if (!is_work(r) || device == devices.end()) return {};
  return roof_point(device->second.roof, r.flops, r.is_f64, r.bytes, static_cast<double>(r.end - r.begin) * 1e-9,
                    r.kind == RecordKind::kernel ? matrix_numbers_of(r.plan) : std::string_view());
}

profiler::DeviceRoof roof_of_file(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return {};
  profiler::DeviceRoof roof;
  auto number = [](const nlohmann::json& value) { return value.is_number() && std::isfinite(value.get<double>()) ? std::max(value.get<double>(), 0.0) : 0.0; };
  if (const auto peaks = json.find("peak_flops"); peaks != json.end() && peaks->is_object()) {
    roof.flops = number(peaks->value("f32", nlohmann::json())), roof.flops64 = number(peaks->value("f64", nlohmann::json()));
    for (const auto& [name, value] : peaks->items())
      if (name.starts_with(kMatrixPeak) && number(value) > 0) roof.matrix.emplace_back(name.substr(kMatrixPeak.size()), number(value));
  }
  const auto sizes = json.find("bandwidth");
  if (sizes == json.end() || !sizes->is_object()) return roof;
  for (const auto& [name, value] : sizes->items()) {
    constexpr std::string_view kKind = "triad/";
    double size = 0;
    if (!name.starts_with(kKind) || std::from_chars(name.data() + kKind.size(), name.data() + name.size(), size).ec != std::errc() || number(value) <= 0)
      continue;
    roof.by_size.emplace_back(size, number(value));
  }
  std::sort(roof.by_size.begin(), roof.by_size.end());
  if (!roof.by_size.empty()) roof.bytes = roof.by_size.back().second;
  return roof;
}

}  // namespace detail

profiler::DeviceRoof profiler::kept_roof(const Device& device) {
  const std::string folder = cache_directory();
  if (folder.empty()) return {};
  const Device& of = device.empty() ? current_device() : device;
  const detail::PrivateBytes kept = detail::PrivateFolder(folder, detail::kDeviceFolder).read(detail::roofline_file(of));
  return kept.bytes ? detail::roof_of_file(*kept.bytes) : DeviceRoof();
}

}}  // namespace clutch::v0
