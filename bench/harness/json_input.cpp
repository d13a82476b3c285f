// SPDX-License-Identifier: Apache-2.0
#include "harness/json_input.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <sstream>

namespace clutch::bench {

namespace {

/// The result of `read`, with the parser's exceptions as Errors.
template <class F>
auto reading(const char* what, F&& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorCode::io, "clutch-bench", fmt::format("the text must be {}, got an error: {}", what, e.what()));
  }
}

double finite(const nlohmann::json& value, const char* what) {
  double number = value.get<double>();
  if (!std::isfinite(number) || number < 0) throw Error(ErrorCode::io, "clutch-bench", fmt::format("{} must be finite and at least 0, got {}", what, number));
  return number;
}

std::map<std::string, double> numbers(const nlohmann::json& object, const char* what) {
  std::map<std::string, double> result;
  if (!object.is_object()) throw Error(ErrorCode::io, "clutch-bench", fmt::format("{} must be an object, got {}", what, object.type_name()));
  for (const auto& [key, value] : object.items()) result[key] = finite(value, what);
  return result;
}

}  // namespace

std::vector<OldRow> parse_results(const std::string& text) {
  return reading("a result of clutch-bench", [&] {
    nlohmann::json root = nlohmann::json::parse(text);
    std::vector<OldRow> rows;
    for (const auto& row : root.at("benchmarks")) {
      if (!row.is_object()) throw Error(ErrorCode::io, "clutch-bench", fmt::format("a row must be an object, got {}", row.type_name()));
      if (row.contains("error_occurred")) continue;
      rows.push_back({row.at("name"), row.at("device"), finite(row.at("real_time"), "real_time") * 1e-9, finite(row.at("noise_pct"), "noise_pct")});
    }
    return rows;
  });
}

Shown parse_shown(const std::string& text) {
  return reading("a result of clutch-bench", [&] {
    const nlohmann::ordered_json root = nlohmann::ordered_json::parse(text);
    const auto& device = root.at("context").at("devices").at(0);
    Shown shown{.context = {device.at("device"), device.at("driver"), device.at("platform"), {}, root.at("context").at("date")}};
    for (const auto& row : root.at("benchmarks")) {
      if (row.contains("error_occurred")) continue;
      Result& r = shown.results.emplace_back();
      r.row.name = row.at("name"), r.device = row.at("device");
      r.measured.hot.median = finite(row.at("real_time"), "real_time") * 1e-9;
      for (const auto& [name, peer] : row.at("peers").items())
        r.measured.peers.push_back({name, {.median = finite(peer.at("real_time"), "real_time") * 1e-9}, finite(peer.at("ratio"), "ratio")});
    }
    return shown;
  });
}

Roofline parse_roofline(const std::string& text) {
  return reading("a roofline", [&] {
    nlohmann::json j = nlohmann::json::parse(text);
    Roofline r;
    r.date = j.at("date");
    r.peak_flops = numbers(j.at("peak_flops"), "peak_flops");
    r.launch_us = finite(j.at("launch_us"), "launch_us");
    r.launch_finish_us = finite(j.at("launch_finish_us"), "launch_finish_us");
    r.host_to_device = finite(j.at("host_to_device"), "host_to_device");
    r.device_to_host = finite(j.at("device_to_host"), "device_to_host");
    r.bandwidth = numbers(j.at("bandwidth"), "bandwidth");
    r.host = numbers(j.at("host"), "host");
    r.suspect = j.at("suspect").get<std::vector<std::string>>();
    return r;
  });
}

nlohmann::ordered_json to_json(const Roofline& r) {
  return nlohmann::ordered_json{
      {"date", r.date},           {"peak_flops", r.peak_flops},         {"launch_us", r.launch_us}, {"launch_finish_us", r.launch_finish_us},
      {"bandwidth", r.bandwidth}, {"host_to_device", r.host_to_device}, {"host", r.host},           {"device_to_host", r.device_to_host},
      {"suspect", r.suspect}};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(ErrorCode::io, "clutch-bench", fmt::format("the input must be a file that can be read, got {}", path));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace clutch::bench
