// SPDX-License-Identifier: Apache-2.0
// Score mods: traced functions and predefined ones.
#include "ops/flex_plan.hpp"
#include "runtime/op_name.hpp"

#include <cmath>

namespace clutch { inline namespace v0 {
namespace detail { namespace {

void refuse(ErrorCode code, std::string_view why) { throw Error(code, "ScoreMod", why); }

}}  // namespace detail

namespace attention {

ScoreMod::ScoreMod(const ExprFunction& f32, const ExprFunction& f64) : f32_(f32), f64_(f64) {
  detail::OpName named("attention::ScoreMod");
  for (const ExprFunction* f : {&f32, &f64}) {
    if (f->empty() || f->input_count() != 5 || f->output_count() != 1 || f->input_dtype(0) != (f == &f32 ? DType::f32 : DType::f64))
      detail::refuse(
          ErrorCode::invalid_argument,
          fmt::format("a score mod must take a score and four indices and give one number, got {} inputs and {} outputs", f->input_count(), f->output_count()));
    for (int i = 1; i < 5; ++i)
      if (f->input_dtype(i) != DType::i32)
        detail::refuse(ErrorCode::invalid_argument, fmt::format("a score mod's indices must be i32, got {}", name(f->input_dtype(i))));
    if (f->output_dtype(0) == DType::boolean) detail::refuse(ErrorCode::invalid_dtype, "a score mod must give a number, got a boolean; make it a mask");
    if (detail::has_positions(*f)) detail::refuse(ErrorCode::invalid_argument, "a score mod must have indices and no positions, got a position");
  }
}

Expr ScoreMod::operator()(const Score& score, const Index& b, const Index& h, const Index& q, const Index& kv) const {
  detail::OpName named("attention::ScoreMod::operator()");
  if (empty()) return score;
  const Expr inputs[] = {score, b, h, q, kv};
  return detail::applied(function(score.dtype()), inputs)[0];
}

ScoreMod alibi(const Tensor& slopes) {
  detail::OpName named("attention::alibi");
  Captured of = captured(slopes);
  return [&](Score s, Index, Index h, Index q, Index kv) { return s + of[h] * (kv - q); };
}
Tensor alibi_slopes(std::int64_t heads, const Device& device, const Stream& stream) {
  detail::OpName named("attention::alibi_slopes");
  if (heads < 1) detail::refuse(ErrorCode::invalid_argument, fmt::format("heads must be at least 1, got {}", heads));
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) slopes.push_back(static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
  return from_host(slopes, {heads}, device, stream);
}
ScoreMod softcap(double cap) {
  detail::OpName named("attention::softcap");
  const auto factor = [](double number) { return number > 0 && std::isnormal(static_cast<float>(number)); };
  if (!factor(cap) || !factor(1 / cap))
    detail::refuse(ErrorCode::invalid_argument, fmt::format("the cap and its reciprocal must be finite and above 0, got {}", cap));
  return [&](Score s, Index, Index, Index, Index) { return param(cap) * tanh(s * param(1 / cap)); };
}
ScoreMod relative_bias() {
  detail::OpName named("attention::relative_bias");
  return [](Score s, Index, Index, Index q, Index kv) { return s + (q - kv); };
}
ScoreMod relative_bias(const Tensor& table) {
  detail::OpName named("attention::relative_bias");
  if (table.rank() != 1 && table.rank() != 2)
    detail::refuse(ErrorCode::invalid_shape, fmt::format("the table must have one or two dimensions, got {}", to_string(table.sizes())));
  Captured of = captured(table);
  const std::int64_t middle = (table.size(-1) - 1) / 2;
  return [&, rank = table.rank()](Score s, Index, Index h, Index q, Index kv) {
    Expr at = q - kv + param(middle);
    return s + (rank == 1 ? of[at] : of[{h, at}]);
  };
}

}  // namespace attention
}}  // namespace clutch::v0
