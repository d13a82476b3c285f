// SPDX-License-Identifier: Apache-2.0
#include "dist/element_functions.hpp"
#include "dist/hash.hpp"

#include <clutch/ops/map.hpp>

#include <bit>
#include <span>
#include <string_view>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

ElementFunctions::ElementFunctions(const ReduceOptions& options, const Tensor& in) {
  if (!options.map_before && !options.map_after) return;
  const DType dtype = traced_dtypes({&in, 1}).front();
  const Expr x = clutch::detail::expr_input(0, dtype);
  auto traced = [&](const ElementFunction& f) {
    const Expr result = f(x);
    return ExprFunction({&dtype, 1}, {&result, 1});
  };
  if (options.map_before) before = traced(options.map_before);
  if (options.map_after) after = traced(options.map_after);
}

bool ElementFunctions::are_pointwise() const {
  for (const ExprFunction* f : {&before, &after}) {
    if (f->empty()) continue;
    const std::string_view text = f->text();
    if (f->captured_count() > 0 || text.find("position") != std::string_view::npos || text.find("philox") != std::string_view::npos) return false;
  }
  return true;
}

std::uint64_t ElementFunctions::hash() const {
  if (empty()) return 0;
  Hash hash;
  for (const ExprFunction* f : {&before, &after}) {
    // Which of the two there is counts, too.
    hash.add(f->empty() ? 0 : 1);
    if (f->empty()) continue;
    hash.add(f->text());
    for (int i = 0; i < f->param_count(); ++i) hash.add(std::bit_cast<std::uint64_t>(f->param_value(i)));
  }
  return hash.value();
}

CallEnds ElementFunctions::ends(const Tensor& out, const Tensor& in) const {
  CallEnds ends;
  if (!before.empty())
    ends.input = [f = before, in](const Stream& stream) {
      const Tensor result = clutch::empty(in.sizes(), {.dtype = in.dtype(), .device = in.device()}, stream);
      map_out({&result, 1}, f, {&in, 1}, {}, stream);
      return result;
    };
  if (!after.empty() && out.defined())
    ends.output = [f = after, out](const Tensor& result, const Stream& stream) { map_out({&out, 1}, f, {&result, 1}, {}, stream); };
  return ends;
}

}}}}  // namespace clutch::v0::dist::detail
