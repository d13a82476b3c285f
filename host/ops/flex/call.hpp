// SPDX-License-Identifier: Apache-2.0
#pragma once
// One call of flex between the public functions (flex.cpp) and the kernels (flex/run.cpp, flex/backward.cpp).
#include "encode/args.hpp"
#include "flex/args.h"
#include "ops/block_mask_plan.hpp"
#include "ops/flex_plan.hpp"

namespace clutch { inline namespace v0 { namespace detail {

inline constexpr std::string_view kFlex = "flex";

struct Checked {
  Runtime* runtime = nullptr;
  std::int64_t batch = 0, heads = 0, gqa_factor = 1, q_len = 0, kv_len = 0, e = 0, ev = 0;  ///< with Varlen: number of sequences, and largest lengths
  std::int64_t q_batch = 0, q_rows = 0, kv_batch = 0, kv_rows = 0;                          ///< sizes of the tensors
  bool ragged = false, packed_kv = false;
  attention::MaskMod mask;  ///< conjunction of the block mask's mask and mask_mod
  Dims lines() const { return {q_batch, heads, q_rows}; }
  Dims scores() const { return {batch, heads, q_len, kv_len}; }
  Dims result() const { return {q_batch, heads, q_rows, ev}; }
  /// Floating-point operations of matrix products of all scores: `of_e` products over elements of keys, `of_ev` over those of values.
  double flops(int of_e, int of_ev) const {
    return flex_flops(static_cast<double>(q_batch * heads * q_rows) * static_cast<double>(kv_len), of_e * e + of_ev * ev);
  }
  /// True if several batches of queries read the same keys.
  bool shared() const { return batch > 1 && kv_batch == 1 && !packed_kv; }
};

/// A call's score mod, mask and dropout.
struct Mods {
  const ExprFunction &score, &mask;
  ExprFunction back = {};  ///< for gradients: the score mod's derivative
  FlexDropout dropout;
  Mods(const Checked& c, const attention::FlexOptions& o, DType dtype, const FlexDropout& drawn);
  FlexProblem problem(const Checked& c, const attention::FlexOptions& o, DType dtype) const;
  void bind(Encoder& encoder, DType dtype) const;
};

/// Rows of queries of one head of keys that a work-item of flex_split takes at a time.
int split_rows(const FlexClass& c);
/// True if the SIMD lanes hold keys; otherwise they hold queries.
bool keys_along(std::string_view entry);
/// Errors: invalid_argument for a name that no implementation has.
void check_flex_implementation(std::string_view forced);
/// True if the entry computes results of parts of the keys, which flex_combine then combines.
inline bool by_parts(std::string_view entry) { return entry == "flex_split" || entry == "flex_tiles_split"; }

/// True if the entry's tasks are work-groups', of exactly the items that its plan says.
inline bool by_groups(std::string_view entry) { return entry.starts_with("flex_tiles") || entry.starts_with("flex_matrix"); }
/// Geometry for a number of tasks: a task is a work-group's where entries go by groups, else a work-item's.
inline Geometry geometry_of(const BuiltPlan& plan, std::uint64_t tasks) {
  return by_groups(plan.entry) ? tile_geometry(tasks, plan.tuning.local) : item_geometry(tasks, plan.tuning.local);
}

/// The plan's kernel with its printed mods.
const BuiltPlan& flex_plan(Runtime& runtime, const FlexProblem& p, const Mods& mods, std::string_view forced);
/// Builds plans of a call that allows matrix instructions. A permission is no demand: false, with a line in the log, where the driver does not take their
/// kernels, so that the call goes without them.
bool builds_matrix(const std::function<void()>& build);
double scale_of(const attention::FlexOptions& options, const Checked& c);
/// Arguments other than tasks, parts and wants_*. `out` is the result, or its gradient. Rows of tiles are keys if `by_keys`, else queries.
FlexArgs args_of(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Checked& c, const attention::FlexOptions& options,
                 const BuiltPlan& plan, bool by_keys);
/// Errors: not_supported if the loops of flex_items would end early. An item reads each of `rows` rows of `elements` elements once for every chunk of the
/// result, which has `longest` elements.
void check_items(const Checked& c, const BuiltPlan& plan, std::int64_t items, std::int64_t rows, std::int64_t elements, std::int64_t longest);
/// Bytes of the tensors that are defined: placeholders of lists, sequences and results that a call has not do not count.
double bytes_of(std::initializer_list<const Tensor*> tensors);
/// Binds what every attention kernel takes after its tensors: lists of the block mask and of sequences (`other` for those that do not exist), args, scale, and
/// the operands of the mods.
void bind_rest(Encoder& encoder, const FlexArgs& args, const attention::FlexOptions& options, const Tensor& other, const Checked& c, const Mods& mods,
               DType dtype, bool by_keys);

/// Enqueues the forward pass into existing results.
void run_flex(const attention::FlexResult& results, const Tensor& q, const Tensor& k, const Tensor& v, const Checked& c, const attention::FlexOptions& options,
              const Stream& stream);
/// Computes the gradients. `results` are those of flex_backward(), with lse contiguous.
attention::FlexGradients differentiate_flex(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v, const attention::FlexResult& results,
                                            const Checked& c, const attention::FlexOptions& options, const attention::FlexBackwardOptions& backward,
                                            const Stream& stream);

}}}  // namespace clutch::v0::detail
