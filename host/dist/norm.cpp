// SPDX-License-Identifier: Apache-2.0
#include "dist/norm.hpp"

#include "dist/group_calls.hpp"
#include "dist/layout.hpp"
#include "dist/sharded_checks.hpp"

#include <clutch/dist/ops.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/pointwise.hpp>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

void check_max_norm(const char* op, double max_norm) {
  if (!(max_norm >= 0)) refuse(op, fmt::format("max_norm must be 0 or more, got {}", max_norm));
}

DType sum_dtype(DType of) { return of == DType::f64 ? DType::f64 : DType::f32; }

ExprFunction norm_term(optim::NormType type, DType dtype) {
  const DType computed = sum_dtype(dtype);
  const Expr x = clutch::detail::expr_input(0, computed);
  return {std::vector<DType>{computed}, std::vector<Expr>{type == optim::NormType::two ? x * x : abs(x)}};
}

Reduce norm_reduce(optim::NormType type) { return type == optim::NormType::inf ? Reduce::amax : Reduce::sum; }

optim::GradNorm norm_of_sums(const Tensor& sums, double max_norm, const optim::ClipOptions& options, const Stream& stream) {
  Tensor norm = (options.norm_type == optim::NormType::inf ? clutch::amax(sums, {}, stream) : clutch::sum(sums, {}, stream)).reshape({1});
  if (options.norm_type == optim::NormType::two) norm = clutch::sqrt(norm, {}, stream);
  if (options.grad_scale.defined()) norm = clutch::div(norm, options.grad_scale.reshape({1}), {.dtype = norm.dtype()}, stream);
  const Tensor factor = clutch::map([&](const Expr& x) { return min(Expr(1.0), param(max_norm) / (x + 1e-6)); }, {norm}, {.dtype = DType::f32}, stream);
  return {norm, factor};
}

}  // namespace detail

namespace {

using namespace detail;

/// Blocks of a dimension that placements cut: ranks exchange a sum for each. Their number is a multiple of the usual numbers of ranks.
constexpr std::int64_t kBlocks = 64;
/// Dimensions that are cut, at most, where blocks are summed; indices from which on they are: fewer sums are exchanged sooner than added up.
constexpr std::size_t kBlockDims = 3;
constexpr std::int64_t kManyIndices = 4096;

/// Sums of a gradient: first one for each index of the dimensions that placements cut; where a dimension has a multiple of kBlocks indices, and many, then one
/// for each of so many blocks of them. Neither depends on the number of ranks.
struct CutSums {
  Dims rest;               ///< dimensions of the gradient that nothing cuts
  Dims block;              ///< for each cut dimension the indices of a block
  bool by_blocks;          ///< no rank's part ends within a block, so ranks exchange blocks' sums, else those of indices
  Layout layout;           ///< of what the ranks exchange
  bool is_counted = true;  ///< else another rank counts the same elements

  std::int64_t numel() const { return clutch::numel(layout.sizes); }
  bool has_blocks() const {
    return std::any_of(block.begin(), block.end(), [](std::int64_t b) { return b > 1; });
  }
};

CutSums cut_sums(const Sharded& grad) {
  const Dims shape = grad.mesh().shape(), cell = grad.mesh().coordinate(), sizes = grad.sizes();
  CutSums sums{.rest = {}, .block = {}, .by_blocks = true, .layout = {.sizes = {}, .mesh_shape = shape, .placements = grad.placements()}};
  // Parts into which a dimension is cut, at most.
  std::vector<std::int64_t> parts(static_cast<std::size_t>(sizes.rank()), 0);
  for (int k = 0; k < shape.rank(); ++k) {
    const Placement& p = grad.placements()[static_cast<std::size_t>(k)];
    if (p.is_shard()) {
      std::int64_t& of = parts[static_cast<std::size_t>(p.dim)];
      of = std::max<std::int64_t>(of, 1) * shape[k] * p.split_factor;
    } else {
      sums.is_counted = sums.is_counted && cell[k] == 0;
    }
  }
  const bool few = std::count_if(parts.begin(), parts.end(), [](std::int64_t n) { return n > 0; }) <= static_cast<std::ptrdiff_t>(kBlockDims);
  std::vector<int> number(parts.size(), -1);
  for (int d = 0; d < sizes.rank(); ++d) {
    const std::int64_t of = parts[static_cast<std::size_t>(d)];
    if (of == 0) {
      sums.rest.push_back(d);
      continue;
    }
    number[static_cast<std::size_t>(d)] = sums.block.rank();
    const std::int64_t block = few && sizes[d] >= kManyIndices && sizes[d] % kBlocks == 0 ? sizes[d] / kBlocks : 1;
    sums.block.push_back(block);
    sums.by_blocks = sums.by_blocks && sizes[d] % of == 0 && sizes[d] / of % block == 0;
    sums.layout.sizes.push_back(sizes[d]);
  }
  if (sums.by_blocks)
    for (int c = 0; c < sums.block.rank(); ++c) sums.layout.sizes[c] /= sums.block[c];
  for (Placement& p : sums.layout.placements)
    if (p.is_shard()) p.dim = number[static_cast<std::size_t>(p.dim)];
  return sums;
}

/// Sums of blocks of each dimension, of the terms of x if there is a function of them.
Tensor block_sums(const Tensor& x, const Dims& block, const ExprFunction* term, DType dtype, const Stream& stream) {
  Dims shape, within;
  for (int d = 0; d < x.rank(); ++d) {
    shape.push_back(x.size(d) / block[d]);
    if (block[d] == 1) continue;
    within.push_back(shape.rank());
    shape.push_back(block[d]);
  }
  const clutch::ReduceOptions options{.dims = within, .dtype = dtype};
  const Tensor apart = x.reshape(shape);
  return term != nullptr ? clutch::reduce(Reduce::sum, *term, std::span(&apart, 1), options, stream) : clutch::sum(apart, options, stream);
}

/// What this rank adds to the sums of a gradient, in the order of its part.
Tensor own_sums(const Tensor& local, const CutSums& sums, const ExprFunction& term, DType dtype, const Stream& stream) {
  Tensor x = local;
  const ExprFunction* left = &term;
  if (sums.rest.rank() > 0 || sums.block.rank() == 0) {
    x = clutch::reduce(Reduce::sum, term, std::span(&local, 1), {.dims = sums.rest, .dtype = dtype}, stream);
    left = nullptr;
  }
  if (sums.by_blocks && sums.has_blocks()) return block_sums(x, sums.block, left, dtype, stream);
  return left != nullptr ? clutch::map(term, std::span(&x, 1), {.dtype = dtype}, stream)[0] : x;
}

/// Adds to a list of tensors of one dimension that a cat() will take: all sums of a gradient, 0 for those of other ranks.
void place(std::vector<Tensor>& list, const Tensor& own, const CutSums& sums, const Dims& cell, const Tensor& zero, const Stream& stream) {
  const Layout& layout = sums.layout;
  if (layout.sizes.rank() == 1) {
    std::int64_t at = 0, local = 0;
    auto zeros_to = [&](std::int64_t end) {
      if (end > at) list.push_back(zero.slice(0, 0, end - at));
    };
    const Ranges mine = layout.ranges(cell)[0];
    for (const Range& of : mine) {
      zeros_to(of.begin);
      list.push_back(own.slice(0, local, local + of.end - of.begin));
      local += of.end - of.begin, at = of.end;
    }
    zeros_to(layout.sizes[0]);
    return;
  }
  if (layout.sizes.rank() == 0) {
    list.push_back(own.reshape({1}));
    return;
  }
  const Tensor whole = zeros(layout.sizes, {.dtype = own.dtype(), .device = own.device()}, stream);
  for (const Piece& piece : layout.pieces(cell)) {
    Tensor to = whole, from = own;
    for (int d = 0; d < layout.sizes.rank(); ++d) {
      to = to.slice(d, piece.box.offsets[d], piece.box.offsets[d] + piece.box.sizes[d]);
      from = from.slice(d, piece.local[d], piece.local[d] + piece.box.sizes[d]);
    }
    copy_(to, from, {}, stream);
  }
  list.push_back(whole.reshape({whole.numel()}));
}

/// The sums of all gradients one behind the other, the same on all ranks.
Tensor sums_of(std::span<const Sharded> grads, const ExprFunction& term, const CallOptions& call) {
  const Mesh& mesh = grads[0].mesh();
  const Device& device = grads[0].local().device();
  const DType dtype = sum_dtype(grads[0].dtype());
  std::vector<CutSums> all;
  std::int64_t longest = 1;
  for (const Sharded& grad : grads) all.push_back(cut_sums(grad)), longest = std::max(longest, all.back().numel());
  const Tensor zero = zeros({longest}, {.dtype = dtype, .device = device}, call.stream);
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!all[i].is_counted || grads[i].local().numel() == 0) {
      list.push_back(zero.slice(0, 0, all[i].numel()));
    } else {
      place(list, own_sums(grads[i].local(), all[i], term, dtype, call.stream), all[i], mesh.coordinate(), zero, call.stream);
    }
  }
  const Tensor exchanged = cat(list, 0, {}, call.stream);
  if (exchanged.numel() == 0) return zero.slice(0, 0, 1);
  mesh.group().all_reduce_(exchanged, {.stream = call.stream, .timeout = call.timeout, .where = call.where});
  // Blocks of which ranks had parts.
  std::vector<Tensor> whole;
  std::int64_t at = 0, begin = 0;
  for (const CutSums& sums : all) {
    const std::int64_t end = at + sums.numel();
    if (!sums.by_blocks && sums.has_blocks()) {
      if (at > begin) whole.push_back(exchanged.slice(0, begin, at));
      const Tensor blocks = block_sums(exchanged.slice(0, at, end).reshape(sums.layout.sizes), sums.block, nullptr, dtype, call.stream);
      whole.push_back(blocks.reshape({blocks.numel()}));
      begin = end;
    }
    at = end;
  }
  if (begin == 0) return exchanged;
  if (at > begin) whole.push_back(exchanged.slice(0, begin, at));
  return cat(whole, 0, {}, call.stream);
}

/// The largest term of each gradient, the same on all ranks.
Tensor largest_of(std::span<const Sharded> grads, const ExprFunction& term, const CallOptions& call) {
  const DType dtype = sum_dtype(grads[0].dtype());
  std::vector<Tensor> list;
  for (const Sharded& grad : grads) {
    const Tensor& local = grad.local();
    list.push_back(local.numel() == 0 ? zeros({1}, {.dtype = dtype, .device = local.device()}, call.stream)
                                      : clutch::reduce(Reduce::amax, term, std::span(&local, 1), {.dtype = dtype}, call.stream).reshape({1}));
  }
  const Tensor all = cat(list, 0, {}, call.stream);
  grads[0].mesh().group().all_reduce_(all, {.op = ReduceOp::max, .stream = call.stream, .timeout = call.timeout, .where = call.where});
  return all;
}

optim::GradNorm norm_of(const char* op, std::span<const Sharded> grads, double max_norm, const optim::ClipOptions& options, const CallOptions& call) {
  return named(op, [&] {
    check_async(op, call);
    if (grads.empty()) refuse(op, "there must be a gradient, got none");
    check_max_norm(op, max_norm);
    const DType dtype = grads[0].dtype();
    if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::f16 && dtype != DType::bf16)
      throw Error(ErrorCode::invalid_dtype, op, fmt::format("gradients must be f32, f64, f16 or bf16, got {}", clutch::name(dtype)));
    for (const Sharded& grad : grads) {
      check_mesh(op, grads[0].mesh(), grad);
      if (grad.dtype() != dtype)
        throw Error(ErrorCode::invalid_dtype, op,
                    fmt::format("gradients must be of one dtype, got {} and {}", clutch::name(dtype), clutch::name(grad.dtype())));
      for (const Placement& p : grad.placements())
        if (p.is_partial()) refuse(op, fmt::format("gradients must be replicated or shards, got {}: redistribute it first", to_string(p)));
    }
    const ExprFunction term = norm_term(options.norm_type, dtype);
    return norm_of_sums(options.norm_type == optim::NormType::inf ? largest_of(grads, term, call) : sums_of(grads, term, call), max_norm, options, call.stream);
  });
}

}  // namespace

optim::GradNorm grad_norm(std::span<const Sharded> grads, double max_norm, const optim::ClipOptions& options, const CallOptions& call) {
  return norm_of("dist::grad_norm", grads, max_norm, options, call);
}

Tensor clip_grad_norm_(std::span<const Sharded> grads, double max_norm, const optim::ClipOptions& options, const CallOptions& call) {
  constexpr const char* kOp = "dist::clip_grad_norm_";
  const optim::GradNorm found = norm_of(kOp, grads, max_norm, options, call);
  return named(kOp, [&] {
    for (const Sharded& grad : grads) clutch::mul_(grad.local(), found.factor, {}, call.stream);
    return found.norm;
  });
}

}}}  // namespace clutch::v0::dist
