// SPDX-License-Identifier: Apache-2.0
#include "support/program_check.hpp"

#include "support/program_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace clutch::testing {

ProgramReference run_eagerly(const Program& program, const Device& device) {
  ProgramRun run(device);
  run.begin(program);
  ProgramReference reference;
  run.run(program);
  reference.once = run.state();
  run.run(program);
  reference.twice = run.state();
  return reference;
}

ProgramVerdict check_program(const Program& program, const Device& device, const std::string& backend, const ProgramReference& reference) {
  ProgramRun run(device);
  ProgramVerdict verdict;
  Graph graph({.keep_graph = true, .backend = backend});
  try {
    run.begin(program);
    {
      GraphCapture capture(graph, run.stream());
      run.run(program);
    }
    verdict.nodes = static_cast<int>(graph.nodes().size());
    try {
      graph.instantiate();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::not_supported) throw;
      verdict.verdict = Verdict::refused;
      verdict.why = e.what();
      return verdict;
    }
    for (int replay = 1; replay <= 2; ++replay) {
      graph.replay(run.stream());
      std::string differs = difference(run.state(), replay == 1 ? reference.once : reference.twice);
      if (differs.empty()) continue;
      verdict.verdict = Verdict::wrong;
      verdict.why = fmt::format("replay {}: {}", replay, differs);
      break;
    }
  } catch (const Error& e) {
    verdict.verdict = Verdict::wrong;
    verdict.why = fmt::format("threw {}", e.what());
    for (int s = 0; s < ProgramRun::kStreams; ++s) run.stream(s).reset();
  }
  return verdict;
}

namespace {

/// Makes a program smaller step by step; each step holds if the smaller program still fails.
class Shrinker {
 public:
  Shrinker(Program program, const std::function<bool(const Program&)>& fails, const Device& device, int tries)
      : best_(std::move(program)), fails_(fails), device_(device), tries_(tries) {}

  Program run() {
    for (bool smaller = true; smaller && tries_ > 0;) {
      smaller = leave_out_calls();
      smaller = give_instead_of_compute() || smaller;
      smaller = pass_through() || smaller;
      smaller = one_stream() || smaller;
      smaller = smaller_shapes() || smaller;
      smaller = simpler_values() || smaller;
    }
    renumber();
    return best_;
  }

 private:
  bool holds(Program candidate) {
    if (candidate == best_ || --tries_ < 0) return false;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Without the calls for which `out` holds, and those that use what they make.
  template <class Out>
  Program without(Out out) const {
    Program left{.seed = best_.seed};
    std::set<int> gone;
    for (std::size_t i = 0; i < best_.calls.size(); ++i) {
      const ProgramCall& call = best_.calls[i];
      bool lacks = std::any_of(call.tensors.begin(), call.tensors.end(), [&](int t) { return gone.count(t) > 0; });
      if (lacks || out(i))
        gone.insert(call.results.begin(), call.results.end());
      else
        left.calls.push_back(call);
    }
    return left;
  }

  bool leave_out_calls() {
    bool any = false;
    for (std::size_t size = std::max<std::size_t>(best_.calls.size() / 2, 1);; size /= 2) {
      for (std::size_t end = best_.calls.size(); end > 0;) {
        std::size_t from = end > size ? end - size : 0;
        if (holds(without([&](std::size_t i) { return i >= from && i < end; }))) any = true;
        end = std::min(from, best_.calls.size());
      }
      if (size == 1) return any;
    }
  }

  /// What a call makes is an input instead, so that the calls before it can go.
  bool give_instead_of_compute() {
    bool any = false;
    for (std::size_t i = best_.calls.size(); i-- > 0;) {
      if (i >= best_.calls.size() || best_.calls[i].results.empty() || best_.calls[i].op == "input") continue;
      std::map<int, Tensor> made = all_tensors();
      Program given = best_;
      std::vector<ProgramCall> inputs;
      for (int r : best_.calls[i].results) {
        if (made.count(r) == 0) break;
        ProgramCall input{.op = "input", .results = {r}};
        input.values = {{"dtype", std::string(name(made[r].dtype()))}, {"sizes", dims_text(made[r].sizes())}, {"values", std::to_string(r + 1)}};
        if (made[r].dtype() == DType::i64) input.values["below"] = "2";
        inputs.push_back(std::move(input));
      }
      if (inputs.size() != best_.calls[i].results.size()) continue;
      given.calls.erase(given.calls.begin() + static_cast<std::ptrdiff_t>(i));
      given.calls.insert(given.calls.begin(), inputs.begin(), inputs.end());
      any = holds(std::move(given)) || any;
    }
    return any;
  }

  /// The users of what a call makes use one of its arguments instead.
  bool pass_through() {
    bool any = false;
    for (std::size_t i = best_.calls.size(); i-- > 0;) {
      if (i >= best_.calls.size() || best_.calls[i].results.size() != 1) continue;
      const ProgramCall call = best_.calls[i];
      for (int t : call.tensors) {
        Program passed = best_;
        passed.calls.erase(passed.calls.begin() + static_cast<std::ptrdiff_t>(i));
        for (ProgramCall& later : passed.calls) std::replace(later.tensors.begin(), later.tensors.end(), call.results[0], t);
        // A dropped handle cannot be used, nor dropped again.
        std::set<int> dropped;
        bool valid = true;
        for (const ProgramCall& later : passed.calls)
          for (int used : later.tensors) {
            valid = valid && dropped.count(used) == 0;
            if (later.op == "drop") dropped.insert(used);
          }
        if (valid && holds(std::move(passed))) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  template <class Change>
  bool changed(Change change) {
    Program other = best_;
    change(other);
    return holds(std::move(other));
  }

  bool one_stream() {
    bool any = changed([](Program& p) {
      for (ProgramCall& call : p.calls) call.stream = 0;
    });
    for (std::size_t i = 0; i < best_.calls.size(); ++i) any = changed([&](Program& p) { p.calls[i].stream = 0; }) || any;
    return any;
  }

  /// A size wherever it stands, or a dimension less of all shapes.
  bool smaller_shapes() {
    bool any = false;
    std::set<std::int64_t> sizes;
    for (const ProgramCall& call : best_.calls)
      if (call.values.count("sizes") > 0)
        for (std::int64_t n : GivenCall({.op = call.op, .values = call.values}, ProgramRun(device_)).dims("sizes")) sizes.insert(n);
    for (auto n = sizes.rbegin(); n != sizes.rend(); ++n)
      for (std::int64_t less : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, *n / 2, *n - 1}) {
        if (less >= *n || less < 1) continue;
        bool held = changed([&](Program& p) {
          for (ProgramCall& call : p.calls) {
            if (call.values.count("strides") > 0) call.values.erase("strides");
            for (const char* key : {"sizes", "size"}) {
              if (call.values.count(key) == 0) continue;
              Dims dims = GivenCall({.op = call.op, .values = call.values}, ProgramRun(device_)).dims(key);
              for (int d = 0; d < dims.rank(); ++d)
                if (dims[d] == *n) dims[d] = less;
              call.values[key] = dims_text(dims);
            }
          }
        });
        if (held) {
          any = true;
          break;
        }
      }
    for (std::size_t i = 0; i < best_.calls.size(); ++i)
      if (best_.calls[i].op == "input" || best_.calls[i].op == "constant") {
        Dims dims = GivenCall({.op = best_.calls[i].op, .values = best_.calls[i].values}, ProgramRun(device_)).dims("sizes");
        for (int d = 0; d < dims.rank(); ++d) {
          Dims fewer = dims;
          fewer.erase(d);
          any = changed([&](Program& p) {
                  p.calls[i].values["sizes"] = dims_text(fewer);
                  p.calls[i].values.erase("strides");
                }) ||
                any;
        }
      }
    return any;
  }

  bool simpler_values() {
    bool any = false;
    for (std::size_t i = 0; i < best_.calls.size(); ++i) {
      for (const char* optional : {"strides", "lead", "specials", "below", "step", "keepdim", "dims", "accumulate", "descending"}) {
        if (best_.calls[i].values.count(optional) == 0) continue;
        any = changed([&](Program& p) { p.calls[i].values.erase(optional); }) || any;
      }
      for (auto [key, simple] : {std::pair{"value", "2"}, {"generator", "0"}, {"fn", "add"}, {"fn", "exp"}, {"body", "square_relu"}}) {
        if (best_.calls[i].values.count(key) == 0) continue;
        any = changed([&, key = key, simple = simple](Program& p) { p.calls[i].values[key] = simple; }) || any;
      }
    }
    return any;
  }

  /// All tensors that the program makes, dropped or not.
  std::map<int, Tensor> all_tensors() const {
    std::map<int, Tensor> all;
    try {
      ProgramRun run(device_);
      run.begin(best_);
      all = run.tensors();
      run.start();
      for (const ProgramCall& call : best_.calls) {
        if (call.op == "input") continue;
        run.call(call);
        for (int r : call.results) all[r] = run.tensor(r);
      }
      run.join();
      run.stream().synchronize();
    } catch (const Error&) {  // then no call's results are known
      all.clear();
    }
    return all;
  }

  void renumber() {
    std::map<int, int> numbers;
    Program better = best_;
    for (ProgramCall& call : better.calls) {
      for (int& t : call.tensors) t = numbers.at(t);
      for (int& r : call.results) r = numbers[r] = static_cast<int>(numbers.size());
    }
    if (fails_(better)) best_ = std::move(better);
  }

  Program best_;
  const std::function<bool(const Program&)>& fails_;
  const Device& device_;
  int tries_;
};

}  // namespace

Program shrink_program(const Program& program, const std::function<bool(const Program&)>& fails, const Device& device, int tries) {
  return Shrinker(program, fails, device, tries).run();
}

bool fails_on(const Program& program, const Device& device, const std::string& backend) {
  try {
    return check_program(program, device, backend, run_eagerly(program, device)).verdict == Verdict::wrong;
  } catch (const Error&) {  // the library refuses a call of it
    return false;
  } catch (const std::invalid_argument&) {  // or the program has no such call
    return false;
  }
}

std::string report_failure(const Program& program, const Device& device, const std::string& backend, const std::string& why) {
  Program small = shrink_program(
      program, [&](const Program& p) { return fails_on(p, device, backend); }, device);
  ProgramVerdict verdict = check_program(small, device, backend, run_eagerly(small, device));
  std::string line = program_text(small);
  std::replace(line.begin(), line.end(), '\n', ';');
  return fmt::format(
      "backend {} of {} differs from eager calls for the program of seed {}, of {} calls: {}\n{}shrunk to {} calls: {}\n{}repeat with: "
      "CLUTCH_TEST_PROGRAM='{}'\n",
      backend, device.selector(), program.seed, program.calls.size(), why, program_text(program), small.calls.size(),
      verdict.why.empty() ? "it was right when run again" : verdict.why, program_text(small), line);
}

}  // namespace clutch::testing
