// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls of attention by matrix instructions and the errors that their contract allows: of the forward pass and of gradients.
#include "ops/flex/given.hpp"
#include "support/matrix_layouts.hpp"

#include <optional>

namespace clutch::testing {

/// True if the device can run the kernels in the least tile of each layout, with plain code in the place of instructions.
inline bool runs_flex_matrix(const Device& device) {
  const DeviceTraits& t = device.traits();
  return can_run(device) && t.max_work_group >= 128 && t.local_bytes >= 64 << 10;
}

/// Masks, mods with captured tensors, dropout: for 4 heads of queries.
struct MatrixCall {
  static constexpr double kScale = 0.25, kDropout = 0.3;
  static constexpr GeneratorState kDrawn{.seed = 0x123456789abcdefull, .offset = 0xffffffffull - 300};

  const char* name;
  ScoreMod score;
  FlexCase::HostScore host_score;
  MaskMod mask;
  FlexCase::HostMask host_mask;
  bool blocks, drops;
  double curvature = 0;  ///< largest second derivative of the score mod

  FlexOptions options(const FlexCase::Shape& shape, const Device& device, const std::string& implementation) const {
    Generator generator(device, 1);
    generator.set_state(kDrawn);
    FlexOptions o{.score_mod = score,
                  .scale = kScale,
                  .enable_gqa = true,
                  .return_lse = true,
                  .return_max_scores = true,
                  .dropout_p = drops ? kDropout : 0,
                  .generator = generator,
                  .implementation = implementation,
                  .numerics = linalg::Numerics::tf32};
    if (blocks)
      o.block_mask = attention::create_block_mask(mask, {.q_len = shape.q_len, .kv_len = shape.kv_len, .block = {32, 24}, .device = device});
    else
      o.mask_mod = mask;
    return o;
  }
  FlexCase::HostDropout host_dropout(const FlexCase::Shape& shape) const {
    return drops ? FlexCase::host_dropout(shape, kDropout, kDrawn) : FlexCase::HostDropout();
  }
};

inline std::vector<MatrixCall> matrix_calls(const Device& device) {
  const FlexCase::HostMask causal = [](auto, auto, auto q, auto kv) { return q + 20 >= kv; };
  const FlexCase::HostMask window = [](auto, auto, auto q, auto kv) { return q >= kv && q - kv <= 17; };
  const FlexCase::HostMask nobody_of_some = [](auto, auto, auto q, auto kv) { return q >= 32 && q < 64 && kv > q; };
  const FlexCase::HostScore alibi = [](double s, auto, auto h, auto q, auto kv) {
    return s + std::exp2(-2.0 * static_cast<double>(h + 1)) * static_cast<double>(kv - q);
  };
  const FlexCase::HostScore cap = [](double s, auto...) { return 3 * std::tanh(s / 3); };
  return {{"plain", {}, {}, {}, {}, false, false},
          {"causal alibi", attention::alibi(attention::alibi_slopes(4, device)), alibi, attention::causal(20), causal, true, false},
          {"capped window", attention::softcap(3), cap, attention::sliding_window(17), window, false, false, 0.26},
          {"nobody of some", {}, {}, [](Index, Index, Index q, Index kv) { return (q >= 32) & (q < 64) & (kv > q); }, nobody_of_some, true, false},
          {"dropout", {}, {}, attention::causal(20), causal, true, true}};
}

/// u of the contract: what rounding operands of the second product leaves out.
inline double matrix_unit(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-10; }
/// What storing x leaves out.
inline double stored_unit(DType dtype, double x) {
  return std::fabs(x) * (dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-24) + (dtype == DType::f16 ? 0x1p-25 : 0x1p-126);
}
/// d of the contract: the largest error of a score, of scores up to `largest`.
inline double score_error(const Given& given, DType dtype, double scale, double largest) {
  const FlexCase::Shape& s = given.shape;
  const std::vector<double> q = values(given.q), k = values(given.k);
  double most = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t i = 0; i < s.q_len; ++i)
        for (std::int64_t j = 0; j < s.kv_len; ++j) {
          double size = 0;
          for (std::int64_t d = 0; d < s.e; ++d)
            size += std::fabs(q[static_cast<std::size_t>(s.row(b, h, i) * s.e + d)] * k[static_cast<std::size_t>((s.key(b, h) + j) * s.e + d)]);
          most = std::max(most, size);
        }
  return (2 * (static_cast<double>(s.e) + 16) * 0x1p-23 + (dtype == DType::f32 ? 0x1p-10 : 0)) * std::fabs(scale) * most + 0x1p-22 * largest;
}

/// The device's own instructions, or plain code in the place of those of a layout.
class MatrixTurn {
 public:
  explicit MatrixTurn(const Device& device)
      : own_(detail::matrix_instructions(detail::runtime_for(device), {.kind = MATMUL_NUMBERS_BF16, .exchange = true}, true).layout != MatrixLayout::none) {}
  void next(DType dtype) {
    const MatrixLayout layout = kLayouts[turn_++ % kLayouts.size()];
    stand_in_.reset();
    if (!own_) stand_in_.emplace(dtype == DType::f32 && !detail::multiplies(layout, {.kind = MATMUL_NUMBERS_TF32}) ? MatrixLayout::mma : layout);
  }

 private:
  bool own_;
  std::size_t turn_ = 0;
  std::optional<detail::MatrixStandIn> stand_in_;
};

/// Calls `run(device, given, dtype, call, options)` for each dtype's calls on random tensors, with the device's own instructions or those of each layout in
/// turn; by day for those calls alone that `by_day(dtype, call)` takes, since each is programs of its own.
template <class ByDay, class Run>
void each_random_matrix_call(const ByDay& by_day, const Run& run) {
  CLUTCH_EACH_DEVICE(device) {
    if (!runs_flex_matrix(device)) continue;
    const FlexCase::Shape shape{.batch = 2, .heads = 4, .q_len = 75, .kv_len = 140, .e = 24, .ev = 40, .kv_heads = 2};
    MatrixTurn turn(device);
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const Given given(shape, device, dtype);
      for (const MatrixCall& call : matrix_calls(device)) {
        turn.next(dtype);
        if (level() != "smoke" || by_day(dtype, call)) run(device, given, dtype, call, call.options(shape, device, "flex_matrix"));
      }
    }
  }
}

}  // namespace clutch::testing
