// SPDX-License-Identifier: Apache-2.0
// Problems of copies, and of functions that are traced: each function has its own, made when it is first called.
#include <clutch/ops/copy.hpp>
#include <clutch/ops/map.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace detail {

void copy_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, DType to, const Dims& sizes, Overflow overflow, bool gaps, bool transposed) {
    PluginProblem one{.name = fmt::format("{} {} to {} {}{}{}{}", name(x.dtype()), to_string(x.sizes()), name(to), to_string(sizes), gaps ? " with gaps" : "",
                                          transposed ? " transposed" : "", overflow == Overflow::saturate ? ", saturated" : ""),
                      .inputs = {x},
                      .outputs = {{to, transposed ? Dims{sizes[1], sizes[0]} : sizes, gaps}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      copy_(transposed ? out[0].mT() : out[0], x, {.overflow = overflow, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType from : problems.dtypes([&](const Tensor& x) { copy_(x, x, {}, problems.stream()); }))
    for (const DType to : problems.dtypes([&](const Tensor& out) { copy_(out, problems.none(from), {}, problems.stream()); }))
      for (const Overflow overflow : {Overflow::nonfinite, Overflow::saturate}) {
        if (is_packed(from) || is_packed(to)) continue;  // a plugin's kernel has no word for them
        auto random = [&](const Dims& sizes) { return problems.random(from, sizes); };
        if (!problems.is_taken([&] { copy_(problems.none(to), problems.none(from), {.overflow = overflow}, problems.stream()); })) continue;
        add(random({777}), to, {777}, overflow, false, false);
        add(random({9, 31}).mT(), to, {31, 9}, overflow, true, false);
        if (is_floating(from) && !is_complex(from)) add(problems.special(from, 300), to, {300}, overflow, false, false);
        if (from != to) continue;
        add(random({31, 1}), to, {31, 12}, overflow, false, true);
        add(random({2, 3, 1, 5}), to, {2, 3, 4, 5}, overflow, true, false);
      }
}

void function_problems(PluginProblems& problems, const ExprFunction& function, std::span<const DType> outputs, std::span<const DType> inputs) {
  auto add = [&](const ExprFunction& f, std::vector<Tensor> given, const Dims& sizes, bool gaps, bool in_place, std::string_view what) {
    PluginProblem one{.name = fmt::format("{} inputs, {}{}", given.size(), what, in_place ? " in place" : ""), .inputs = given, .any_nan = true};
    for (const DType dtype : outputs) one.outputs.push_back({dtype, sizes, gaps});
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      std::vector<Tensor> of = given;
      if (in_place) copy_(out[0], of[0], {}, stream), of[0] = out[0];
      map_out(out, f, of, {.implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  std::vector<double> changed;
  for (int i = 0; i < function.param_count(); ++i) changed.push_back(function.param_value(i) + 1);
  const ExprFunction other = changed.empty() ? function : function.with_params(changed);
  auto lists = [&](auto&& make) {
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < inputs.size(); ++i) made.push_back(make(inputs[i], i));
    return made;
  };
  auto random = [&](const Dims& sizes) { return lists([&](DType d, std::size_t) { return problems.random(d, sizes); }); };
  add(function, random({1237}), {1237}, false, false, "a line");
  add(other, lists([&](DType d, std::size_t i) {
        return problems.random(d, i % 3 == 0 ? Dims{5, 67} : i % 3 == 1 ? Dims{67} : Dims{5, 1});
      }),
      {5, 67}, true, false, "broadcast, with gaps");
  add(function, lists([&](DType d, std::size_t i) {
        return i % 2 == 0 ? problems.random(d, {31, 9}).mT() : problems.random(d, {9, 31});
      }),
      {9, 31}, false, false, "transposed");
  add(other, random({}), {}, false, false, "numbers");
  if (inputs.empty()) return;
  if (inputs[0] == outputs[0]) add(function, random({4, 100}), {4, 100}, false, true, "rows");
  add(function, lists([&](DType d, std::size_t) { return is_floating(d) && bits(d) >= 16 ? problems.special(d, 400) : problems.random(d, {400}); }), {400},
      false, false, "special numbers");
}

void map_problems(PluginProblems& problems) {
  auto least = [](Expr x, Expr y) { return select(x < y, x, y); };
  auto line = [](Expr x, Expr y) { return x * param(1.5) + y; };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { map(least, {x, x}, {}, problems.stream()); })) {
    const Tensor none = problems.none(dtype);
    const Tensor both[] = {none, none};
    const DType dtypes[] = {dtype, dtype};
    function_problems(problems, trace_over<2>(least, both, "map"), std::span(dtypes).first(1), dtypes);
    if (is_floating(dtype)) function_problems(problems, trace_over<2>(line, both, "map"), std::span(dtypes).first(1), dtypes);
  }
}

}}}  // namespace clutch::v0::detail
