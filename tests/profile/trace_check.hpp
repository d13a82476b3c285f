// SPDX-License-Identifier: Apache-2.0
// Checks a trace: the schema of PyTorch's profiler, slices that nest on every row, flows in pairs that bind to slices.
#pragma once
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace clutch::testing {

/// A slice in whole nanoseconds.
struct Slice {
  std::int64_t begin = 0, end = 0;
  std::string name, cat;
};

inline std::int64_t whole_ns(const nlohmann::json& microseconds) { return static_cast<std::int64_t>(std::llround(microseconds.get<double>() * 1000)); }

/// What is wrong with a trace, a line each; empty if it is right.
inline std::string check_trace(const nlohmann::json& trace) {
  std::string wrong;
  auto fault = [&](const std::string& text) { wrong += text + '\n'; };
  for (const char* key :
       {"schemaVersion", "deviceProperties", "displayTimeUnit", "baseTimeNanoseconds", "traceName", "trace_id", "traceEvents", "distributedInfo"})
    if (!trace.contains(key)) fault(std::string("the head has no ") + key);
  if (!wrong.empty()) return wrong;
  static const std::set<std::string> kCategories{
      "cpu_op", "user_annotation", "gpu_user_annotation", "gpu_memcpy", "gpu_memset", "kernel", "cuda_runtime", "cuda_sync", "overhead", "Trace", "idle_gap"};
  std::map<std::string, std::vector<Slice>> rows;
  std::map<std::int64_t, std::vector<std::pair<std::string, std::int64_t>>> begins, ends;  // flows by id
  std::set<std::string> named;
  for (const auto& e : trace["traceEvents"]) {
    const std::string ph = e.value("ph", "");
    if (!e.contains("name") || !e["name"].is_string() || e["name"].get<std::string>().empty()) fault("an event without a name: " + e.dump());
    if (!e.contains("ts") || !e["ts"].is_number() || e["ts"].get<double>() < 0) fault("an event without a time: " + e.dump());
    const std::string row = e.value("pid", nlohmann::json()).dump() + "/" + e.value("tid", nlohmann::json()).dump();
    if (ph == "M") {
      if (e["name"] == "thread_name") named.insert(row);
      if (!e["args"].is_object()) fault("metadata without args: " + e.dump());
    } else if (ph == "X") {
      if (!kCategories.contains(e.value("cat", ""))) fault("an unknown category: " + e.dump());
      if (!e.contains("dur") || e["dur"].get<double>() < 0) fault("a slice without duration: " + e.dump());
      rows[row].push_back({whole_ns(e["ts"]), whole_ns(e["ts"]) + whole_ns(e["dur"]), e["name"], e["cat"]});
      if (e["cat"] == "kernel" || e["cat"] == "gpu_memcpy" || e["cat"] == "gpu_memset")
        for (const char* key : {"device", "stream", "correlation", "context", "queued"})
          if (!e["args"].contains(key) || !e["args"][key].is_number_integer()) fault(std::string("a command without ") + key + ": " + e.dump());
      if (e["cat"] == "kernel" && e["args"].contains("grid") && (e["args"]["grid"].size() != 3 || e["args"]["block"].size() != 3))
        fault("no grid of three: " + e.dump());
    } else if (ph == "s" || ph == "f") {
      if (ph == "f" && e.value("bp", "") != "e") fault("a flow's end without bp: " + e.dump());
      (ph == "s" ? begins : ends)[e["id"].get<std::int64_t>()].emplace_back(row, whole_ns(e["ts"]));
    } else if (ph != "i" && ph != "C") {
      fault("an unknown phase: " + e.dump());
    }
  }
  for (auto& [row, slices] : rows) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
    std::vector<const Slice*> open;
    for (const Slice& s : slices) {
      while (!open.empty() && open.back()->end <= s.begin) open.pop_back();
      if (!open.empty() && s.end > open.back()->end)
        fault("row " + row + ": " + s.name + " [" + std::to_string(s.begin) + ", " + std::to_string(s.end) + ") does not nest in " + open.back()->name + " [" +
              std::to_string(open.back()->begin) + ", " + std::to_string(open.back()->end) + ")");
      open.push_back(&s);
    }
    if (row.find("Spans") == std::string::npos && !named.contains(row)) fault("row " + row + " has no name");
  }
  auto check_flows = [&](const auto& flows, const auto& others, const char* what) {
    for (const auto& [id, places] : flows) {
      if (places.size() != 1) fault("flow " + std::to_string(id) + " has several ends");
      if (!others.contains(id)) fault("flow " + std::to_string(id) + " has no other end");
      const auto& [row, at] = places.front();
      const auto& slices = rows[row];
      if (std::none_of(slices.begin(), slices.end(), [&, at = at](const Slice& s) { return s.begin == at; }))
        fault(std::string(what) + " of flow " + std::to_string(id) + " binds to no slice of row " + row);
    }
  };
  check_flows(begins, ends, "the begin");
  check_flows(ends, begins, "the end");
  return wrong;
}

}  // namespace clutch::testing
