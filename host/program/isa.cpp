// SPDX-License-Identifier: Apache-2.0
#include "program/isa.hpp"

#include "program/binary_check.hpp"
#include "runtime/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

// Of cl_nv_device_attribute_query and cl_intel_device_attribute_query.
constexpr cl_device_info kComputeCapabilityMajor = 0x4000, kComputeCapabilityMinor = 0x4001, kIntelIpVersion = 0x4250;

constexpr std::string_view kPtx = "ptx-sm_";
/// Compute capabilities of NVIDIA's GPUs that programs are compiled for, the latest first.
constexpr std::array kComputeCapabilities{120, 103, 100, 90, 89, 87, 86, 80, 75, 72, 70, 61, 60, 52, 50};

std::optional<std::uint32_t> number_of(cl_device_id device, cl_device_info what) {
  cl_uint value = 0;
  if (clGetDeviceInfo(device, what, sizeof value, &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}

/// Letters of a file's name: small ones, digits, dots and dashes.
std::string slug(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u) || c == '.' || c == '_')
      name += static_cast<char>(std::tolower(u));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name;
}

/// "pthread-skylake-avx512" of "pthread-skylake-avx512-Intel(R) Xeon(R) Processor": PoCL's device, each of which takes its own programs alone, and LLVM's
/// name of the processor, up to the brand, which has capitals or blanks.
std::string processor_of_pocl(std::string_view name) {
  std::string processor;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('-'));
    if (!std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_' || c == '.'; })) break;
    processor += fmt::format("{}{}", processor.empty() ? "" : "-", part);
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return processor.empty() ? "unknown" : processor;
}

std::string version_of_pocl(const std::string& platform_version) {
  constexpr std::string_view kName = "PoCL ";
  const std::size_t at = platform_version.find(kName);
  if (at == std::string::npos) return "unknown";
  const std::size_t from = at + kName.size();
  return platform_version.substr(from, platform_version.find_first_not_of("0123456789.", from) - from);
}

std::string family_of_intel(const DeviceRecord& d) {
  if (const auto ip = number_of(d.id, kIntelIpVersion)) {
    const std::uint32_t architecture = *ip >> 22, release = *ip >> 14 & 255, revision = *ip & 63;
    if (architecture == 12 && release >= 55 && release <= 57) return "dg2";
    if (architecture == 12 && (release == 60 || release == 61)) return "pvc";
    if (architecture == 20 && release == 1) return "bmg";
    if (architecture == 20 && release == 4) return "lnl";
    return fmt::format("{}.{}.{}", architecture, release, revision);
  }
  // Drivers before 2022 do not know the query.
  if (d.facts.name.find("Data Center GPU Max") != std::string::npos) return "pvc";
  if (d.facts.name.find("Arc(TM) A") != std::string::npos) return "dg2";
  return slug(d.facts.name);
}

/// Instructions of this processor that LLVM's name of a processor stands for, and that a virtual machine may hide all the same.
std::string features_of_processor() {
  std::string features;
#if defined(__x86_64__)
#define CLUTCH_FEATURE(name) \
  if (__builtin_cpu_supports(name)) features += features.empty() ? name : " " name;
  CLUTCH_FEATURE("sse4.2")
  CLUTCH_FEATURE("avx")
  CLUTCH_FEATURE("avx2")
  CLUTCH_FEATURE("fma")
  CLUTCH_FEATURE("avx512f")
  CLUTCH_FEATURE("avx512bw")
  CLUTCH_FEATURE("avx512cd")
  CLUTCH_FEATURE("avx512dq")
  CLUTCH_FEATURE("avx512vl")
#undef CLUTCH_FEATURE
#endif
  return features;
}

/// The first word of `wanted` that `has` lacks; empty if there is none.
std::string lacking(std::string_view wanted, std::string_view has) {
  const std::string all = fmt::format(" {} ", has);
  while (!wanted.empty()) {
    const std::string_view word = wanted.substr(0, wanted.find(' '));
    if (!word.empty() && all.find(fmt::format(" {} ", word)) == std::string::npos) return std::string(word);
    wanted.remove_prefix(std::min(word.size() + 1, wanted.size()));
  }
  return {};
}

/// As files have it.
std::string driver_of(const DeviceRecord& d) { return printable(fmt::format("{} {} {}", d.facts.platform_name, d.platform_version, d.driver_version)); }

}  // namespace

std::string isa_of(const DeviceRecord& d) {
  const std::string& platform = d.facts.platform_name;
  if (is_pocl(platform) && d.facts.type == DeviceType::cpu)
    return fmt::format("pocl-{}-{}", version_of_pocl(d.platform_version), processor_of_pocl(d.facts.name));
  if (platform == "AMD Accelerated Parallel Processing" && d.facts.name.starts_with("gfx"))
    return fmt::format("amdgcn-amd-amdhsa--{}", d.facts.name.substr(0, d.facts.name.find(':')));
  if (platform == "NVIDIA CUDA") {
    const auto major = number_of(d.id, kComputeCapabilityMajor), minor = number_of(d.id, kComputeCapabilityMinor);
    if (major && minor) return fmt::format("{}{}{}", kPtx, *major, *minor);
  }
  if (platform.starts_with("Intel") && d.facts.type == DeviceType::gpu) return "intel-" + family_of_intel(d);
  return fmt::format("{}-{}", slug(platform), slug(d.facts.name));
}

std::string isa_of(const Device& device) { return isa_of(*device.record()); }

std::vector<std::string> isas_taken(const DeviceRecord& d) {
  std::vector<std::string> isas{isa_of(d)};
  if (!isas[0].starts_with(kPtx)) return isas;
  const int own = std::atoi(isas[0].c_str() + kPtx.size());
  for (const int earlier : kComputeCapabilities)
    if (earlier < own) isas.push_back(fmt::format("{}{}", kPtx, earlier));
  return isas;
}

PackTarget target_of(const DeviceRecord& d) {
  const bool on_host = is_pocl(d.facts.platform_name);
  return {.isa = isa_of(d),
          .driver = driver_of(d),
          .features = on_host ? features_of_processor() : std::string(),
          .device = printable(d.facts.name),
          .made_by = driver_of(d),
          .proved = {}};
}

std::string misfit(const PackTarget& target, const DeviceRecord& d) {
  const std::vector<std::string> isas = isas_taken(d);
  if (std::find(isas.begin(), isas.end(), target.isa) == isas.end())
    return fmt::format("it is for {}, and device {} ({}) is {}", target.isa, d.index, d.facts.name, isas[0]);
  if (!target.driver.empty() && target.driver != driver_of(d))
    return fmt::format("it is for the driver '{}', and device {} has '{}'", target.driver, d.index, driver_of(d));
  if (is_pocl(d.facts.platform_name))
    if (const std::string missing = lacking(target.features, features_of_processor()); !missing.empty())
      return fmt::format("it needs a processor with {}, which this one has not", missing);
  return {};
}

std::string misfit(const PackTarget& target, const Device& device) { return misfit(target, *device.record()); }

bool is_proved_by_recording(std::string_view isa) { return isa.starts_with("pocl-"); }

}}}  // namespace clutch::v0::detail
