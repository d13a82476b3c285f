// SPDX-License-Identifier: Apache-2.0
// Mods that must not compile, and say why: CMake compiles this with one of the cases defined.
#include <clutch/ops/flex.hpp>

#include <algorithm>

using namespace clutch;
using attention::Index, attention::Score;

attention::FlexOptions options(const Captured& table, [[maybe_unused]] std::int64_t size) {
#if defined(CASE_DIVIDE)
  return {.mask_mod = [](Index, Index, Index q, Index kv) { return q / 16 == kv / 16; }};
#elif defined(CASE_DIVIDE_AUTO)
  return {.mask_mod = [](auto, auto, auto q, auto kv) { return (q + 1) / 16 == kv; }};
#elif defined(CASE_DIVIDE_INT64)
  return {.mask_mod = [=](Index, Index, Index q, Index kv) { return q == floor_div(kv, 2) / size; }};
#elif defined(CASE_DIVIDE_INDEX)
  return {.score_mod = [](Score s, Index, Index h, Index q, Index) { return s + q / h; }};
#elif defined(CASE_DIVIDE_ASSIGN)
  return {.mask_mod = [](Index, Index, Index q, Index kv) { return q /= 16, q == kv; }};
#elif defined(CASE_MODULO)
  return {.mask_mod = [](Index, Index, Index q, Index kv) { return (q - kv) % 2 == 0; }};
#elif defined(CASE_MODULO_INDEX)
  return {.score_mod = [](Score s, Index b, Index, Index q, Index) { return s + 7 % q + b; }};
#elif defined(CASE_SCORE_ARITY)
  return {.score_mod = [](Score s, Index, Index q, Index kv) { return s + q - kv; }};
#elif defined(CASE_MASK_ARITY)
  return {.mask_mod = [](Index q, Index kv) { return q >= kv; }};
#elif defined(CASE_SUBSCRIPTS)
  return {.score_mod = [=](Score s, Index, Index, Index q, Index kv) { return s + table[q][kv]; }};
#endif
  // What may be written.
  using std::max, std::min;
  const attention::ScoreMod score = [=](Score s, Index b, Index h, Index q, Index kv) {
    const Index middle = (q + kv * 2 - 1) * 3;
    return s / 2 + q / 2.0f + kv / 2.0 + table[{q, kv}] * (kv - q) / table[{floor_div(q, 2), floor_mod(kv, size)}] + middle * 0.5f + select(b == h, q, -kv);
  };
  const attention::MaskMod plain = [](Expr, const Expr&h, Expr q, Expr kv) { return (q >= kv) & (abs(q - kv) < 4 + h); },
                           any = [](auto... at) { return (at + ...) > 0; }, whole = [](Index, Index, Index, Index) { return true; };
  return {.score_mod = [=](auto s, auto b, auto h, auto q, auto kv) { return score(s, b, h, q + 1, kv); },
          .mask_mod = plain & (any | [=](Index, Index h, Index q, Index kv) { return whole(0, h, max(q, 1), min(kv, q)) & (max(q * 0.5f, kv) >= 0); })};
}
