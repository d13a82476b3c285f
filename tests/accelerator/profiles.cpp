// SPDX-License-Identifier: Apache-2.0
// Profiles, and what names parts of a program in them.
#include "rows.hpp"

#include <algorithm>

namespace clutch::rows { namespace {

using profiler::FunctionEvent;

std::vector<FunctionEvent> ranges(const profiler::Profiler& profile) {
  std::vector<FunctionEvent> all = profile.events();
  std::erase_if(all, [](const FunctionEvent& e) { return e.activity_type != "user_annotation"; });
  return all;
}

ROW(profiler) {
  const Tensor x = full({16}, 1);
  profiler::Profiler profile;
  { const profiler::Range before("before"); }
  profile.start();
  {
    const profiler::Range within("within");
    add(x, 1);
  }
  profile.stop();
  { const profiler::Range behind("behind"); }
  std::vector<std::string> names;
  for (const FunctionEvent& e : ranges(profile)) names.push_back(e.name);
  line("ranges between start and stop", names);
  const std::vector<FunctionEvent> all = profile.events();
  line("it has ops, too", std::any_of(all.begin(), all.end(), [](const FunctionEvent& e) { return e.activity_type == "cpu_op"; }));
  const std::string path = temporary_file("trace.json");
  profile.export_chrome_trace(path);
  line("the trace is a file", std::filesystem::file_size(path) > 100);
  std::filesystem::remove(path);
}

ROW(profiler_schedule) {
  const auto actions = [](const profiler::Schedule& schedule) {
    std::string all;
    for (int step = 0; step < 12; ++step) all += (step == 0 ? "" : " ") + std::string(name(schedule(step)));
    return all;
  };
  line("wait 1, warmup 1, active 2", actions({.wait = 1, .warmup = 1, .active = 2}));
  line("twice, without the first 2", actions({.wait = 1, .warmup = 1, .active = 2, .repeat = 2, .skip_first = 2}));
  line("no wait in the first cycle", actions({.wait = 3, .warmup = 0, .active = 1, .skip_first_wait = 1}));
  line.refused("nothing active", [] { return profiler::Schedule{.active = 0}(0); });
}

ROW(nested_ranges) {
  profiler::Profiler profile({.device_activity = false});
  profile.start();
  {
    const profiler::Range outer("outer");
    { const profiler::Range one("one"); }
    {
      profiler::Range two("two");
      two.end();
    }
  }
  profile.stop();
  const std::vector<FunctionEvent> all = ranges(profile);
  std::vector<std::string> names;
  for (const FunctionEvent& e : all) names.push_back(e.name);
  line("in the order of their begin", names);
  line("the outer one holds both", all.size() == 3 && all[0].start_ns <= all[1].start_ns && all[1].end_ns <= all[2].start_ns && all[2].end_ns <= all[0].end_ns);
}

}}  // namespace clutch::rows
