// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "dist/layout.hpp"
#include "dist/norm.hpp"
#include "dist/sharded_checks.hpp"

#include <clutch/dist/ops.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/pointwise.hpp>

#include <cmath>
#include <limits>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

using namespace detail;

/// An operand, and of each of its dimensions a number that says which of the op's it is; kBroadcast: one entry for all.
constexpr int kBroadcast = -1;
struct Operand {
  const Sharded* x;
  std::vector<int> labels;

  const Placement& at(int mesh_dim) const { return x->placements()[static_cast<std::size_t>(mesh_dim)]; }
  int dim_of(int label) const {
    const auto found = std::find(labels.begin(), labels.end(), label);
    return found == labels.end() ? -1 : static_cast<int>(found - labels.begin());
  }
};

/// In which operands an op is linear: in none, in each while the others stay, or in all at once.
enum class Linear : std::uint8_t { none, each, together };

/// The result's placements: shards of a dimension that only operands have leave sums of parts.
std::vector<Placement> placements_of(const char* op, std::span<const Operand> operands, std::span<const int> result, Linear linear) {
  const Mesh& mesh = operands[0].x->mesh();
  for (const Operand& of : operands) check_mesh(op, mesh, *of.x);
  std::vector<Placement> placements;
  for (int k = 0; k < mesh.shape().rank(); ++k) {
    auto misfit = [&](const char* why) {
      std::string all;
      for (const Operand& of : operands) all += fmt::format("{}{}", all.empty() ? "" : ", ", to_string(of.at(k)));
      refuse(op, fmt::format("placements along dimension {} of the mesh must fit each other, got {}: {}", k, all, why));
    };
    const Operand *sharded = nullptr, *partial_one = nullptr;
    std::size_t partials = 0;
    for (const Operand& of : operands) {
      if (of.at(k).is_shard() && sharded == nullptr) sharded = &of;
      if (of.at(k).is_partial()) partial_one = &of, ++partials;
    }
    if (partial_one != nullptr) {
      const Placement& p = partial_one->at(k);
      if (p.op != ReduceOp::sum && p.op != ReduceOp::avg) misfit("the op keeps sums alone");
      if (linear == Linear::none) misfit("the op is not linear");
      if (sharded != nullptr || partials != (linear == Linear::each ? 1 : operands.size())) misfit("the op is not linear in these tensors");
      for (const Operand& of : operands)
        if (of.at(k).is_partial() && of.at(k) != p) misfit("they are of several reductions");
      placements.push_back(p);
    } else if (sharded != nullptr) {
      const Placement& p = sharded->at(k);
      const int label = sharded->labels[static_cast<std::size_t>(p.dim)];
      if (label == kBroadcast) misfit("a dimension of one entry for all must be replicated");
      for (const Operand& of : operands) {
        const int dim = of.dim_of(label);
        if (dim < 0 ? !of.at(k).is_replicate() : of.at(k) != shard(dim, p.split_factor)) misfit(dim < 0 ? "one has no such dimension" : "one is not cut alike");
      }
      const auto at = std::find(result.begin(), result.end(), label);
      placements.push_back(at == result.end() ? partial() : shard(static_cast<int>(at - result.begin()), p.split_factor));
    } else {
      placements.push_back(replicate());
    }
  }
  return placements;
}

/// Labels of an operand whose dimensions, but for the last `without`, are the last ones of `whole`.
std::vector<int> broadcast_labels(const Dims& sizes, const Dims& whole, int without = 0) {
  std::vector<int> labels;
  for (int d = 0; d + without < sizes.rank(); ++d) {
    const int at = whole.rank() - (sizes.rank() - without) + d;
    labels.push_back(sizes[d] == whole[at] ? at : kBroadcast);
  }
  return labels;
}

std::vector<int> numbers_to(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

struct Inputs {
  Dims sizes;
  std::vector<Operand> operands;
  std::vector<Tensor> locals;
};

Inputs inputs_of(const char* op, std::span<const Sharded> inputs) {
  if (inputs.empty()) refuse(op, "there must be an input, got none");
  Inputs made;
  std::vector<Dims> shapes;
  for (const Sharded& x : inputs) shapes.push_back(x.sizes()), made.locals.push_back(x.local());
  made.sizes = broadcast_shapes(shapes, op);
  for (const Sharded& x : inputs) made.operands.push_back({&x, broadcast_labels(x.sizes(), made.sizes)});
  return made;
}

std::vector<Sharded> mapped(const char* op, const ExprFunction& function, std::span<const Sharded> inputs, Linear linear, const MapOptions& options,
                            const Stream& stream) {
  return named(op, [&] {
    const Inputs in = inputs_of(op, inputs);
    const std::vector<Placement> placements = placements_of(op, in.operands, numbers_to(in.sizes.rank()), linear);
    if (function.text().find("= position") != std::string::npos) refuse(op, "the function must be of elements alone, got one of positions");
    std::vector<Sharded> results;
    for (const Tensor& local : clutch::map(function, in.locals, options, stream))
      results.push_back(Sharded::from_local(local, inputs[0].mesh(), placements, in.sizes));
    return results;
  });
}

template <class F>
Sharded mapped_pair(const char* op, F&& f, const Sharded& a, const Sharded& b, Linear linear, const MapOptions& options, const Stream& stream) {
  const Tensor locals[] = {a.local(), b.local()};
  const Sharded inputs[] = {a, b};
  return mapped(op, clutch::detail::trace_over<2>(f, locals, op), inputs, linear, options, stream)[0];
}

}  // namespace

std::vector<Sharded> map(const ExprFunction& function, std::span<const Sharded> inputs, const MapOptions& options, const Stream& stream) {
  return mapped("dist::map", function, inputs, Linear::none, options, stream);
}

Sharded add(const Sharded& a, const Sharded& b, const MapOptions& options, const Stream& stream) {
  return mapped_pair(
      "dist::add", [](const Expr& x, const Expr& y) { return x + y; }, a, b, Linear::together, options, stream);
}

Sharded mul(const Sharded& a, const Sharded& b, const MapOptions& options, const Stream& stream) {
  return mapped_pair(
      "dist::mul", [](const Expr& x, const Expr& y) { return x * y; }, a, b, Linear::each, options, stream);
}

Sharded matmul(const Sharded& a, const Sharded& b, const linalg::MatmulOptions& options, const Stream& stream) {
  constexpr const char* kOp = "dist::matmul";
  return named(kOp, [&] {
    const Dims &of_a = a.sizes(), &of_b = b.sizes();
    const int ra = of_a.rank(), rb = of_b.rank();
    if (ra < 2 || rb < 2 || of_a[ra - 1] != of_b[rb - 2])
      throw Error(ErrorCode::invalid_shape, kOp, fmt::format("the tensors must be (*, m, k) and (*, k, n), got {} and {}", to_string(of_a), to_string(of_b)));
    Dims batches[2];
    for (int d = 0; d + 2 < ra; ++d) batches[0].push_back(of_a[d]);
    for (int d = 0; d + 2 < rb; ++d) batches[1].push_back(of_b[d]);
    const Dims batch = broadcast_shapes(batches, kOp);
    Dims sizes = batch;
    sizes.push_back(of_a[ra - 2]), sizes.push_back(of_b[rb - 1]);
    // Batch dimensions have their numbers, then come m, n and k.
    const int m = batch.rank(), n = m + 1, k = m + 2;
    Operand first{&a, broadcast_labels(of_a, batch, 2)}, second{&b, broadcast_labels(of_b, batch, 2)};
    first.labels.push_back(m), first.labels.push_back(k);
    second.labels.push_back(k), second.labels.push_back(n);
    const Operand operands[] = {first, second};
    const std::vector<Placement> placements = placements_of(kOp, operands, numbers_to(sizes.rank()), Linear::each);
    return Sharded::from_local(linalg::matmul(a.local(), b.local(), options, stream), a.mesh(), placements, sizes);
  });
}

Sharded linear(const Sharded& x, const Sharded& weight, const Sharded& bias, const linalg::LinearOptions& options, const Stream& stream) {
  constexpr const char* kOp = "dist::linear";
  return named(kOp, [&] {
    const Dims& of_x = x.sizes();
    const int rank = of_x.rank();
    if (rank < 1 || weight.sizes().rank() != 2 || of_x[rank - 1] != weight.sizes()[1])
      throw Error(ErrorCode::invalid_shape, kOp,
                  fmt::format("x must be (*, in) and the weight (out, in), got {} and {}", to_string(of_x), to_string(weight.sizes())));
    Dims sizes = of_x;
    sizes[rank - 1] = weight.sizes()[0];
    Operand first{&x, numbers_to(rank)};
    first.labels.back() = rank;
    const Operand operands[] = {first, {&weight, {rank - 1, rank}}};
    const std::vector<Placement> placements = placements_of(kOp, operands, numbers_to(rank), Linear::each);
    const bool has_partial = std::any_of(placements.begin(), placements.end(), [](const Placement& p) { return p.is_partial(); });
    if (has_partial && options.activation != nn::Activation::none) refuse(kOp, "a partial result must have no activation, got one: redistribute it first");
    Tensor added;
    if (!bias.empty()) {
      check_mesh(kOp, x.mesh(), bias);
      if (!(bias.sizes() == Dims{sizes[rank - 1]}))
        throw Error(ErrorCode::invalid_shape, kOp, fmt::format("bias must have {} elements, got shape {}", sizes[rank - 1], to_string(bias.sizes())));
      bool is_first = true;
      for (std::size_t k = 0; k < placements.size(); ++k) {
        const Placement& p = placements[k];
        const Placement wanted = p.is_shard() && p.dim == rank - 1 ? shard(0, p.split_factor) : replicate();
        if (bias.placements()[k] != wanted)
          refuse(kOp, fmt::format("bias must be {} along dimension {} of the mesh, got {}", to_string(wanted), k, to_string(bias.placements()[k])));
        if (p.is_partial() && p.op != ReduceOp::sum) refuse(kOp, fmt::format("a result with a bias must be a sum, got {}", to_string(p)));
        if (p.is_partial() && x.mesh().coordinate()[static_cast<int>(k)] != 0) is_first = false;
      }
      if (is_first) added = bias.local();
    }
    return Sharded::from_local(linalg::linear(x.local(), weight.local(), added, options, stream), x.mesh(), placements, sizes);
  });
}

Sharded embedding(const Sharded& weight, const Sharded& index, const Stream& stream) {
  constexpr const char* kOp = "dist::embedding";
  return named(kOp, [&] {
    if (weight.sizes().rank() != 2)
      throw Error(ErrorCode::invalid_shape, kOp, fmt::format("weight must be (rows, features), got {}", to_string(weight.sizes())));
    Dims sizes = index.sizes();
    const int rank = sizes.rank();
    sizes.push_back(weight.sizes()[1]);
    const Operand operands[] = {{&weight, {rank + 1, rank}}, {&index, numbers_to(rank)}};
    const std::vector<Placement> placements = placements_of(kOp, operands, numbers_to(rank + 1), Linear::none);
    const auto made = [&](const Tensor& local) { return Sharded::from_local(local, weight.mesh(), placements, sizes); };
    const bool are_rows_cut = std::any_of(placements.begin(), placements.end(), [](const Placement& p) { return p.is_partial(); });
    const Tensor rows = weight.local(), at = index.local();
    if (!are_rows_cut) return made(nn::embedding(rows, at, stream));
    for (const Placement& p : weight.placements())
      if (p == shard(0, p.split_factor) && p.split_factor != 1) refuse(kOp, fmt::format("rows must be cut without a split factor, got {}", to_string(p)));
    const std::vector<Box> boxes = weight.boxes();
    Dims local_sizes = at.sizes();
    local_sizes.push_back(rows.size(1));
    // A rank without rows.
    if (boxes.empty()) return made(clutch::full(local_sizes, -0.0, {.dtype = rows.dtype(), .device = rows.device()}, stream));
    const Expr begin = param(boxes[0].offsets[0]), end = param(boxes[0].offsets[0] + boxes[0].sizes[0]), all = param(weight.sizes()[0]);
    const Tensor places = clutch::map([&](const Expr& i) { return select((i >= begin) & (i < end), i - begin, Expr(0)); }, {at}, {.dtype = DType::i64}, stream);
    const Expr nan = param(std::numeric_limits<double>::quiet_NaN()), nothing = param(-0.0);
    return made(clutch::map([&](const Expr& x, const Expr& i) { return select((i >= begin) & (i < end), x, select((i < 0) | (i >= all), nan, nothing)); },
                            {nn::embedding(rows, places, stream), at.unsqueeze(-1)}, {.dtype = rows.dtype()}, stream));
  });
}

namespace {

/// x and its weights of a norm, and which dimensions of the mesh cut rows.
struct NormRows {
  std::vector<Placement> placements;
  Dims dims;  ///< that make a row, from the end
  double size = 1;
  std::vector<int> cut;  ///< dimensions of the mesh, the last one first
};

NormRows rows_of(const char* op, const Sharded& x, std::initializer_list<const Sharded*> weights, int normalized_rank) {
  const int rank = x.sizes().rank();
  if (normalized_rank < 1 || normalized_rank > rank) refuse(op, fmt::format("normalized_rank must be 1 to {}, got {}", rank, normalized_rank));
  NormRows rows;
  std::vector<int> last;
  for (int d = rank - normalized_rank; d < rank; ++d) last.push_back(d), rows.dims.push_back(d), rows.size *= static_cast<double>(x.sizes()[d]);
  std::vector<Operand> operands{{&x, numbers_to(rank)}};
  for (const Sharded* weight : weights) {
    if (weight->empty()) continue;
    bool fits = weight->sizes().rank() == normalized_rank;
    for (std::size_t i = 0; fits && i < last.size(); ++i) fits = weight->sizes()[static_cast<int>(i)] == x.sizes()[last[i]];
    if (!fits)
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("weights must have the last {} dimensions of {}, got {}", normalized_rank, to_string(x.sizes()), to_string(weight->sizes())));
    operands.push_back({weight, last});
  }
  rows.placements = placements_of(op, operands, numbers_to(rank), Linear::none);
  for (int k = x.mesh().shape().rank(); k-- > 0;) {
    const Placement& p = rows.placements[static_cast<std::size_t>(k)];
    if (p.is_shard() && p.dim >= rank - normalized_rank) rows.cut.push_back(k);
  }
  return rows;
}

Tensor local_of(const Sharded& x) { return x.empty() ? Tensor() : x.local(); }

/// The sum of the parts of each row, on all ranks that have one.
Tensor whole_sums(const Tensor& sums, const Sharded& x, const NormRows& rows, const CallOptions& call) {
  for (const int k : rows.cut) x.mesh().group(k).all_reduce_(sums, {.stream = call.stream, .async = call.async, .timeout = call.timeout, .where = call.where});
  return sums;
}

/// (x - mean) * scale * weight + bias, of the tensors that are there.
Tensor scaled(const Tensor& x, const Tensor& mean, const Tensor& squares, const Tensor& weight, const Tensor& bias, double size, double eps,
              const Stream& stream) {
  std::vector<Tensor> inputs{x, squares};
  for (const Tensor* t : {&mean, &weight, &bias})
    if (t->defined()) inputs.push_back(*t);
  const std::vector<DType> dtypes = traced_dtypes(inputs, "dist::layer_norm");
  std::vector<Expr> e;
  for (std::size_t i = 0; i < inputs.size(); ++i) e.push_back(clutch::detail::expr_input(static_cast<int>(i), dtypes[i]));
  std::size_t next = 2;
  Expr y = e[0];
  if (mean.defined()) y = y - e[next++];
  y = y * rsqrt(e[1] / param(size) + param(eps));
  if (weight.defined()) y = y * e[next++];
  if (bias.defined()) y = y + e[next++];
  return clutch::map(ExprFunction(dtypes, std::span(&y, 1)), inputs, {.dtype = x.dtype()}, stream)[0];
}

}  // namespace

Sharded rms_norm(const Sharded& x, const Sharded& weight, const nn::NormOptions& options, const CallOptions& call) {
  constexpr const char* kOp = "dist::rms_norm";
  return named(kOp, [&] {
    check_async(kOp, call);
    const NormRows rows = rows_of(kOp, x, {&weight}, options.normalized_rank);
    const Tensor& local = x.local();
    Tensor y;
    if (rows.cut.empty()) {
      y = nn::rms_norm(local, local_of(weight), options, call.stream).y;
    } else {
      const Tensor squares = clutch::reduce(
          Reduce::sum, [](const Expr& e) { return e * e; }, {local}, {.dims = rows.dims, .keepdim = true, .dtype = sum_dtype(local.dtype())}, call.stream);
      y = scaled(local, {}, whole_sums(squares, x, rows, call), local_of(weight), {}, rows.size, options.eps, call.stream);
    }
    return Sharded::from_local(y, x.mesh(), rows.placements, x.sizes());
  });
}

Sharded layer_norm(const Sharded& x, const Sharded& weight, const Sharded& bias, const nn::NormOptions& options, const CallOptions& call) {
  constexpr const char* kOp = "dist::layer_norm";
  return named(kOp, [&] {
    check_async(kOp, call);
    const NormRows rows = rows_of(kOp, x, {&weight, &bias}, options.normalized_rank);
    const Tensor& local = x.local();
    Tensor y;
    if (rows.cut.empty()) {
      y = nn::layer_norm(local, local_of(weight), local_of(bias), options, call.stream).y;
    } else {
      const clutch::ReduceOptions of_sums{.dims = rows.dims, .keepdim = true, .dtype = sum_dtype(local.dtype())};
      const Tensor mean = clutch::div(whole_sums(clutch::sum(local, of_sums, call.stream), x, rows, call), rows.size, {}, call.stream);
      const Tensor squares = clutch::reduce(
          Reduce::sum, [](const Expr& e, const Expr& m) { return (e - m) * (e - m); }, {local, mean}, of_sums, call.stream);
      y = scaled(local, mean, whole_sums(squares, x, rows, call), local_of(weight), local_of(bias), rows.size, options.eps, call.stream);
    }
    return Sharded::from_local(y, x.mesh(), rows.placements, x.sizes());
  });
}

}}}  // namespace clutch::v0::dist
