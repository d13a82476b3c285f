// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the stub driver says of its devices. By itself it is a small CPU; STUB_PROFILE names a file of tests/stub/profiles whose facts it gives instead, as one
// GPU.
#include <CL/cl.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

namespace stub {

/// Lines of "fact value"; # begins a comment. Numbers take the suffixes K, M and G.
struct Profile {
  std::map<std::string, std::string> facts{
      {"type", "cpu"},        {"platform", "clutch stub"}, {"vendor", "clutch"},   {"name", "stub"},         {"version", "OpenCL 1.2 stub"},
      {"driver", "1"},        {"opencl_c", "1.2"},         {"extensions", ""},     {"units", "2"},           {"group", "256"},
      {"local_bytes", "32K"}, {"local_memory", "global"},  {"global_bytes", "1G"}, {"alloc_bytes", "256M"},  {"argument_bytes", "1024"},
      {"cache_bytes", "0"},   {"width_f32", "8"},          {"width_f64", "0"},     {"width_f16", "0"},       {"rounding", "fma denormals divide"},
      {"targets", ""},        {"compute_capability", ""},  {"ip_version", ""},     {"least_sub_group", "0"}, {"group_multiple", "1"},
  };
  bool is_gpu = false;

  const std::string& text(const char* fact) const { return facts.at(fact); }
  bool has(const char* fact, const std::string& word) const { return (" " + facts.at(fact) + " ").find(" " + word + " ") != std::string::npos; }
  std::uint64_t number(const char* fact) const {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text(fact).c_str(), &end, 10);
    return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
  }
};

inline Profile read_profile(const char* path) {
  Profile profile;
  if (!path || !*path) return profile;
  std::ifstream file(path);
  if (!file) {
    std::cerr << "stub driver: STUB_PROFILE must name a file of tests/stub/profiles, got '" << path << "': the stub is a CPU instead\n";
    return profile;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line);
    std::string fact, value;
    if (!(words >> fact) || fact[0] == '#') continue;
    std::getline(words >> std::ws, value);
    auto known = profile.facts.find(fact);
    if (known == profile.facts.end()) {
      std::cerr << path << ":" << number << ": a fact must be one of";
      for (const auto& [name, unused] : profile.facts) std::cerr << " " << name;
      std::cerr << ", got '" << fact << "': the line is left out\n";
      continue;
    }
    known->second = value;
  }
  profile.is_gpu = profile.text("type") == "gpu";
  return profile;
}

inline const Profile& profile() {
  static const auto* one = new Profile(read_profile(std::getenv("STUB_PROFILE")));
  return *one;
}

}  // namespace stub
