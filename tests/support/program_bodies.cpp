// SPDX-License-Identifier: Apache-2.0
#include "support/program_ops.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace clutch::testing {

const std::vector<ProgramBody>& all_program_bodies() {
  using A = const BodyArguments&;
  using V = std::vector<Expr>;
  constexpr DType f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16, i32 = DType::i32, i64 = DType::i64, b8 = DType::boolean;
  static const std::vector<ProgramBody> all{
      // Arithmetic of floats, one output.
      {"scaled_sum", {f32, f32}, 2, {}, false, [](A a) { return V{param(a.p[0]) * a.x[0] + param(a.p[1]) * a.x[1]}; }},
      {"bias_gelu", {f32, f32}, 0, {}, false, [](A a) { return V{gelu(a.x[0] + a.x[1])}; }},
      {"silu_gate", {f32, f32}, 0, {}, false, [](A a) { return V{silu(a.x[0]) * a.x[1]}; }},
      {"square_relu", {f32}, 0, {}, false, [](A a) { return V{square(relu(a.x[0]))}; }},
      {"softplus", {f32}, 1, {}, false, [](A a) { return V{softplus(a.x[0] * param(a.p[0]))}; }},
      {"rsqrt_eps", {f32}, 1, {}, false, [](A a) { return V{rsqrt(abs(a.x[0]) + param(a.p[0]))}; }},
      {"lerp3", {f32, f32, f32}, 0, {}, false, [](A a) { return V{lerp(a.x[0], a.x[1], a.x[2])}; }},
      {"clamped", {f32}, 2, {}, false, [](A a) { return V{clamp(a.x[0], param(a.p[0]), param(a.p[1]))}; }},
      {"fma4", {f32, f32, f32, f32}, 0, {}, false, [](A a) { return V{fma(a.x[0], a.x[1], a.x[2]) - a.x[3]}; }},
      {"nan_to_zero", {f32}, 0, {}, false, [](A a) { return V{select(isnan(a.x[0]), Expr(0), a.x[0])}; }},
      {"trigonometry", {f32}, 0, {}, false, [](A a) { return V{sin(a.x[0]) * cos(a.x[0])}; }},
      {"powers", {f32, f32}, 0, {}, false, [](A a) { return V{pow(abs(a.x[0]), a.x[1]) + exp2(-abs(a.x[1]))}; }},
      {"sigmoid_backward", {f32, f32}, 0, {}, false, [](A a) { return V{a.x[0] * a.x[1] * (1 - a.x[1])}; }},
      {"logs", {f32}, 0, {}, false, [](A a) { return V{log1p(abs(a.x[0])) + expm1(min(a.x[0], 3))}; }},
      {"rounded", {f32}, 1, {}, false, [](A a) { return V{round(a.x[0] * param(a.p[0])) / param(a.p[0])}; }},
      // Several outputs.
      {"sum_and_difference",
       {f32, f32},
       0,
       {},
       false,
       [](A a) {
         return V{a.x[0] + a.x[1], a.x[0] - a.x[1]};
       }},
      {"value_and_mask",
       {f32},
       1,
       {},
       false,
       [](A a) {
         return V{relu(a.x[0] - param(a.p[0])), a.x[0] > param(a.p[0])};
       }},
      {"three",
       {f32},
       0,
       {},
       false,
       [](A a) {
         return V{a.x[0] * 2, a.x[0] * a.x[0], -a.x[0]};
       }},
      {"momentum",
       {f32, f32, f32},
       2,
       {},
       false,
       [](A a) {
         Expr m = param(a.p[0]) * a.x[1] + a.x[2];
         return V{a.x[0] - param(a.p[1]) * m, m};
       }},
      {"rounded_both",
       {f32},
       0,
       {},
       false,
       [](A a) {
         return V{cast(a.x[0], DType::bf16), a.x[0]};
       }},
      // Narrow floats, and casts among them.
      {"f16_product", {f16, f16}, 0, {}, false, [](A a) { return V{a.x[0] * a.x[1]}; }},
      {"bf16_gelu", {bf16}, 0, {}, false, [](A a) { return V{gelu(a.x[0], GeluForm::tanh)}; }},
      {"bf16_residual", {bf16, f32}, 0, {}, false, [](A a) { return V{cast(a.x[0] + a.x[1], DType::bf16)}; }},
      {"f32_to_f16", {f32}, 0, {}, false, [](A a) { return V{cast(a.x[0] * 3, DType::f16)}; }},
      {"twice_rounded", {f32}, 0, {}, false, [](A a) { return V{cast(cast(a.x[0], DType::f16) * 1.5, DType::bf16)}; }},
      {"f16_to_f32", {f16}, 0, {}, false, [](A a) { return V{cast(exp(-abs(a.x[0])), DType::f32)}; }},
      // Whole numbers and booleans.
      {"i32_mix", {i32, i32}, 0, {}, false, [](A a) { return V{(a.x[0] ^ (a.x[1] << 3)) + floor_div(a.x[0], a.x[1] | 1)}; }},
      {"i64_hash", {i64}, 0, {}, false, [](A a) { return V{(a.x[0] * Expr(std::int64_t{6364136223846793005})) ^ (a.x[0] >> 7)}; }},
      {"i64_below_8", {i64}, 0, {}, false, [](A a) { return V{floor_mod(a.x[0], 8)}; }},
      {"mask_logic", {b8, b8}, 0, {}, false, [](A a) { return V{(a.x[0] & !a.x[1]) | (a.x[0] ^ a.x[1])}; }},
      {"masked", {b8, f32}, 1, {}, false, [](A a) { return V{select(a.x[0], a.x[1], param(a.p[0]))}; }},
      {"i32_to_f32", {i32, f32}, 0, {}, false, [](A a) { return V{a.x[0] * a.x[1] + 0.5}; }},
      {"f32_to_i32", {f32}, 0, {}, false, [](A a) { return V{cast(a.x[0] * 10, DType::i32)}; }},
      // Places, and tensors that are read at computed ones.
      {"ramp", {f32}, 0, {}, false, [](A a) { return V{a.x[0] + cast(position(-1), DType::f32)}; }},
      {"causal", {f32}, 0, {}, false, [](A a) { return V{select(position(-1) <= position(-2), a.x[0], Expr(0))}; }},
      {"gather1", {i64}, 0, {{f32, 1}}, false, [](A a) { return V{a.c[0][a.x[0]] * 2}; }},
      {"gather2",
       {i64, f32},
       0,
       {{f32, 2}},
       false,
       [](A a) {
         return V{a.c[0][{a.x[0], position(-1)}] + a.x[1]};
       }},
      {"neighbours", {f32}, 0, {{f32, 1}}, false, [](A a) { return V{a.x[0] + a.c[0][position(-1) + 1] - a.c[0][position(-1) - 1]}; }},
      // Draws.
      {"dropout",
       {f32},
       1,
       {},
       true,
       [](A a) {
         Expr kept = random_uniform(a.generator) >= param(a.p[0]);
         return V{select(kept, a.x[0] * 1.25, Expr(0)), kept};
       }},
      {"noise", {f32}, 1, {}, true, [](A a) { return V{a.x[0] + param(a.p[0]) * (random_uniform(a.generator) - random_uniform(a.generator))}; }},
  };
  return all;
}

const ProgramBody& program_body(std::string_view name) {
  for (const ProgramBody& body : all_program_bodies())
    if (name == body.name) return body;
  throw std::invalid_argument(fmt::format("there is no body '{}'", name));
}

}  // namespace clutch::testing
