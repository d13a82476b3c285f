// SPDX-License-Identifier: Apache-2.0
#include <clutch/dist/functional.hpp>

#include "dist/group_calls.hpp"

#include <clutch/ops/cat.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/pointwise.hpp>

#include <numeric>

namespace clutch { inline namespace v0 { namespace dist { namespace functional {

namespace {

using namespace dist::detail;
using Sizes = std::span<const std::int64_t>;

/// A function's call: checks, and parts of tensors as messages take them, one behind the other.
struct Call {
  const char* op;
  const Group& group;
  Stream stream;  ///< asked for; empty: the current one
  int n, me;

  template <class Options>
  Call(const char* name, const Group& of, const Options& options)
      : op(name), group(of), stream(options.stream), n(GroupCalls{name, of}.impl().size()), me(GroupCalls{name, of}.impl().rank()) {
    check(!options.async, ErrorCode::invalid_argument, "async must be false, since the result is used in a stream's order, got true; give another stream");
  }
  template <class... Args>
  void check(bool is_right, ErrorCode code, fmt::string_view why, const Args&... args) const {
    GroupCalls{op, group}.check(is_right, code, why, args...);
  }
  void check_tensor(const Tensor& x, const char* what) const { GroupCalls{op, group}.check_tensor(x, what); }
  int checked_dim(const Tensor& x, int dim) const {
    check_tensor(x, "the tensor");
    const int rank = x.rank(), at = dim < 0 ? dim + rank : dim;
    check(at >= 0 && at < rank, ErrorCode::invalid_argument, "the dimension must be one of {}, got {}", rank, dim);
    return at;
  }
  void check_sizes(Sizes sizes, const char* what) const { GroupCalls{op, group}.check_rows(sizes, what); }
  void check_size(const Tensor& x, int dim, std::int64_t wanted) const {
    check(x.size(dim) == wanted, ErrorCode::invalid_shape, "dimension {} must have {} entries, got shape {}", dim, wanted, to_string(x.sizes()));
  }
  std::vector<std::int64_t> equal_parts(std::int64_t size, int dim) const {
    check(size % n == 0, ErrorCode::invalid_shape, "dimension {} must have a multiple of {} entries, got {}", dim, n, size);
    return std::vector<std::int64_t>(static_cast<std::size_t>(n), size / n);
  }
  Tensor made(const Dims& sizes, const Tensor& like) const { return clutch::empty(sizes, {.dtype = like.dtype(), .device = like.device()}, stream); }

  /// Elements of the parts that have so many entries of a dimension.
  std::vector<std::int64_t> elements(const Tensor& x, int dim, Sizes sizes) const {
    std::int64_t others = 1;
    for (int d = 0; d < x.rank(); ++d) others *= d == dim ? 1 : x.size(d);
    std::vector<std::int64_t> counts;
    for (const std::int64_t n_of : sizes) counts.push_back(n_of * others);
    return counts;
  }
  static bool is_first(const Tensor& x, int dim) {
    std::int64_t before = 1;
    for (int d = 0; d < dim; ++d) before *= x.size(d);
    return before <= 1;
  }
  Tensor flat_of(const Tensor& x) const { return flat(x.contiguous(stream)); }
  Tensor packed(const Tensor& x, int dim, Sizes sizes) const {
    if (is_first(x, dim) || sizes.size() == 1) return flat_of(x);
    const Tensor all = made({x.numel()}, x);
    const std::vector<Tensor> parts = clutch::split(x, sizes, dim);
    std::vector<Tensor> places;
    std::int64_t at = 0;
    for (const Tensor& part : parts) places.push_back(all.slice(0, at, at + part.numel()).reshape(part.sizes())), at += part.numel();
    foreach_copy_(places, parts, {}, stream);
    return all;
  }
  /// `shape`: of a part, but for `dim`.
  Tensor unpacked(const Tensor& all, Dims shape, int dim, Sizes sizes) const {
    std::int64_t at = 0;
    std::vector<Tensor> parts;
    for (const std::int64_t size : sizes) {
      shape[dim] = size;
      const std::int64_t elements = numel(shape);
      parts.push_back(all.slice(0, at, at + elements).reshape(shape)), at += elements;
    }
    shape[dim] = total(sizes);
    const Tensor whole = all.reshape(shape);
    return is_first(whole, dim) || sizes.size() == 1 ? whole : clutch::cat(parts, dim, {}, stream);
  }
  static bool are_equal(Sizes sizes) { return std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end(); }
};

CallOptions with(const Call& call, const CallOptions& options) {
  CallOptions copies = options;
  copies.stream = call.stream;
  return copies;
}

Tensor gathered(const Call& call, const Tensor& in, int dim, Sizes sizes, const CallOptions& options) {
  call.check_size(in, dim, sizes[static_cast<std::size_t>(call.me)]);
  const std::vector<std::int64_t> counts = call.elements(in, dim, sizes);
  const Tensor all = call.made({total(counts)}, in), mine = call.flat_of(in);
  if (Call::are_equal(sizes))
    call.group.all_gather_out(all, mine, options);
  else
    call.group.all_gather_v_out(all, mine, counts, options);
  return call.unpacked(all, in.sizes(), dim, sizes);
}

Tensor scattered_sum(const Call& call, const Tensor& in, int dim, Sizes sizes, const ReduceOptions& options) {
  call.check_size(in, dim, total(sizes));
  const std::vector<std::int64_t> counts = call.elements(in, dim, sizes);
  Dims shape = in.sizes();
  shape[dim] = sizes[static_cast<std::size_t>(call.me)];
  const Tensor all = call.packed(in, dim, sizes), mine = call.made(shape, in);
  if (Call::are_equal(sizes))
    call.group.reduce_scatter_out(flat(mine), all, options);
  else
    call.group.reduce_scatter_v_out(flat(mine), all, counts, options);
  return mine;
}

Tensor exchanged(const Call& call, const Tensor& in, int split_dim, Sizes split_sizes, int concat_dim, Sizes concat_sizes, const CallOptions& options) {
  call.check_size(in, split_dim, total(split_sizes));
  Dims shape = in.sizes();
  if (split_dim != concat_dim) {
    const auto me = static_cast<std::size_t>(call.me);
    call.check_size(in, concat_dim, concat_sizes[me]);
    shape[split_dim] = split_sizes[me];
  }
  const Tensor goes = call.packed(in, split_dim, split_sizes);
  const std::vector<std::int64_t> goes_counts = call.elements(in, split_dim, split_sizes);
  shape[concat_dim] = total(concat_sizes);
  const Tensor comes = call.made({numel(shape)}, in);
  std::vector<std::int64_t> comes_counts;
  for (const std::int64_t size : concat_sizes) shape[concat_dim] = size, comes_counts.push_back(numel(shape));
  if (Call::are_equal(split_sizes) && Call::are_equal(concat_sizes) && goes.numel() == comes.numel())
    call.group.all_to_all_out(comes, goes, options);
  else
    call.group.all_to_all_v_out(comes, goes, comes_counts, goes_counts, options);
  return call.unpacked(comes, shape, concat_dim, concat_sizes);
}

Tensor rooted(const Call& call, const Tensor& in, int dim, int root, const CallOptions& options) {
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(call.n), in.size(dim));
  const bool is_root = call.me == root;
  const Tensor all = is_root ? call.made({in.numel() * call.n}, in) : Tensor();
  call.group.gather_out(all, call.flat_of(in), root, options);
  return is_root ? call.unpacked(all, in.sizes(), dim, sizes) : Tensor();
}

/// What the root has, in a tensor of its own.
Tensor sent_by(const Call& call, const Tensor& in, int root, const CallOptions& options) {
  const Tensor out = call.me == root ? in.clone(call.stream) : call.made(in.sizes(), in);
  call.group.broadcast_(out, root, options);
  return out;
}

bool is_linear(ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premul_sum; }

void check_gradient(const Call& call, const ReduceOptions& options, const Tensor& in) {
  const ReduceOp op = options.op;
  call.check(!options.map_before && !options.map_after, ErrorCode::invalid_argument,
             "a reduction with a gradient must have no functions before and after, whose own gradients map_backward() gives, got some");
  call.check(op != ReduceOp::band && op != ReduceOp::bor && op != ReduceOp::bxor, ErrorCode::invalid_argument, "the reduction must have a gradient, got {}",
             name(op));
  if (is_linear(op)) return;
  call.check_tensor(in, "the input");
  call.check(clutch::is_floating(in.dtype()), ErrorCode::invalid_dtype, "the input must be floating, got {}", clutch::name(in.dtype()));
}

/// The gradient of a rank's tensor from the sum of the gradients of the results, `all`, which all ranks have. `out`: the result of min and max.
Tensor of_reduction(const Call& call, const Tensor& all, const Tensor& in, const Tensor& out, const ReduceOptions& options) {
  const CallOptions copies = with(call, GroupCalls::of(options));
  switch (options.op) {
    case ReduceOp::avg: return clutch::div(all, call.n, {}, call.stream);
    case ReduceOp::premul_sum: return clutch::mul(all, options.factor, {}, call.stream);
    case ReduceOp::prod: {
      const Tensor factors = call.made({call.n, in.numel()}, in);
      call.group.all_gather_out(factors, call.flat_of(in), copies);
      fill_(factors.select(0, call.me), 1, {}, call.stream);
      const Tensor others = clutch::prod(factors, {.dims = {0}, .dtype = in.dtype()}, call.stream).reshape(in.sizes());
      return clutch::mul(all, others, {}, call.stream);
    }
    case ReduceOp::min:
    case ReduceOp::max: {
      const Tensor wins = map([](const Expr& x, const Expr& y) { return select((x == y) | (isnan(x) & isnan(y)), Expr(1), Expr(0)); }, {in, out},
                              {.dtype = in.dtype()}, call.stream);
      const Tensor winners = call.made(in.sizes(), in);
      ReduceOptions sum = options;
      sum.op = ReduceOp::sum, sum.stream = call.stream;
      call.group.all_reduce_out(winners, wins, sum);
      return map([](const Expr& g, const Expr& win, const Expr& count) { return select(win != 0, g / count, Expr(0)); }, {all, wins, winners},
                 {.dtype = in.dtype()}, call.stream);
    }
    default: return all;
  }
}

ReduceOptions sum_of(const CallOptions& o) { return {.stream = o.stream, .async = o.async, .timeout = o.timeout, .algorithm = o.algorithm, .where = o.where}; }

}  // namespace

Tensor all_reduce(const Tensor& in, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::all_reduce", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input");
    const Tensor out = call.made(in.sizes(), in);
    group.all_reduce_out(out, in, options);
    return out;
  });
}

Tensor all_reduce_backward(const Tensor& grad, const Tensor& in, const Tensor& out, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::all_reduce_backward", group, options);
  return named(call.op, [&] {
    call.check_tensor(grad, "the gradient"), check_gradient(call, options, in);
    ReduceOptions sum = options;
    if (!is_linear(options.op)) sum.op = ReduceOp::sum;
    const Tensor all = call.made(grad.sizes(), grad);
    group.all_reduce_out(all, grad, sum);
    return is_linear(options.op) ? all : of_reduction(call, all, in, out, options);
  });
}

Tensor reduce(const Tensor& in, int root, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::reduce", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input");
    const Tensor out = call.me == root ? call.made(in.sizes(), in) : Tensor();
    group.reduce_out(out, in, root, options);
    return out;
  });
}

Tensor reduce_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int root, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::reduce_backward", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input"), check_gradient(call, options, in);
    if (call.me == root) call.check_tensor(grad, "the root's gradient");
    const CallOptions copies = GroupCalls::of(options);
    const Tensor all = sent_by(call, call.me == root ? grad : in, root, copies);
    const bool is_extreme = options.op == ReduceOp::min || options.op == ReduceOp::max;
    return of_reduction(call, all, in, is_extreme ? sent_by(call, call.me == root ? out : in, root, copies) : Tensor(), options);
  });
}

Tensor all_gather(const Tensor& in, int dim, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_gather", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(in, dim);
    return gathered(call, in, at, std::vector<std::int64_t>(static_cast<std::size_t>(call.n), in.size(at)), options);
  });
}

Tensor all_gather_v(const Tensor& in, int dim, Sizes sizes, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_gather_v", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(in, dim);
    call.check_sizes(sizes, "sizes");
    return gathered(call, in, at, sizes, options);
  });
}

Tensor all_gather_backward(const Tensor& grad, int dim, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_gather_backward", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(grad, dim);
    return scattered_sum(call, grad, at, call.equal_parts(grad.size(at), at), sum_of(options));
  });
}

Tensor all_gather_v_backward(const Tensor& grad, int dim, Sizes sizes, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_gather_v_backward", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(grad, dim);
    call.check_sizes(sizes, "sizes");
    return scattered_sum(call, grad, at, sizes, sum_of(options));
  });
}

Tensor reduce_scatter(const Tensor& in, int dim, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::reduce_scatter", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(in, dim);
    return scattered_sum(call, in, at, call.equal_parts(in.size(at), at), options);
  });
}

Tensor reduce_scatter_v(const Tensor& in, int dim, Sizes sizes, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::reduce_scatter_v", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(in, dim);
    call.check_sizes(sizes, "sizes");
    return scattered_sum(call, in, at, sizes, options);
  });
}

namespace {

Tensor of_scattered(const Call& call, const Tensor& grad, const Tensor& in, const Tensor& out, int dim, Sizes sizes, const ReduceOptions& options) {
  check_gradient(call, options, in);
  const CallOptions copies = GroupCalls::of(options);
  const Tensor all = gathered(call, grad, dim, sizes, copies);
  const bool is_extreme = options.op == ReduceOp::min || options.op == ReduceOp::max;
  return of_reduction(call, all, in, is_extreme ? gathered(call, out, dim, sizes, copies) : Tensor(), options);
}

}  // namespace

Tensor reduce_scatter_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int dim, const Group& group, const ReduceOptions& options) {
  const Call call("dist::functional::reduce_scatter_backward", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(grad, dim);
    return of_scattered(call, grad, in, out, at, std::vector<std::int64_t>(static_cast<std::size_t>(call.n), grad.size(at)), options);
  });
}

Tensor reduce_scatter_v_backward(const Tensor& grad, const Tensor& in, const Tensor& out, int dim, Sizes sizes, const Group& group,
                                 const ReduceOptions& options) {
  const Call call("dist::functional::reduce_scatter_v_backward", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(grad, dim);
    call.check_sizes(sizes, "sizes");
    return of_scattered(call, grad, in, out, at, sizes, options);
  });
}

Tensor gather(const Tensor& in, int dim, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::gather", group, options);
  return named(call.op, [&] { return rooted(call, in, call.checked_dim(in, dim), root, options); });
}

namespace {

/// `like`: sizes, dtype and device of the result.
Tensor part_of_root(const Call& call, const Tensor& in, const Tensor& out, int dim, int root, const CallOptions& options) {
  Tensor all;
  if (call.me == root) {
    call.check_tensor(in, "the root's tensor");
    call.check_size(in, dim, out.size(dim) * call.n);
    all = call.packed(in, dim, std::vector<std::int64_t>(static_cast<std::size_t>(call.n), out.size(dim)));
  }
  call.group.scatter_out(flat(out), all, root, options);
  return out;
}

}  // namespace

Tensor gather_backward(const Tensor& grad, const Tensor& in, int dim, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::gather_backward", group, options);
  return named(call.op, [&] {
    const int at = call.checked_dim(in, dim);
    return part_of_root(call, grad, call.made(in.sizes(), in), at, root, options);
  });
}

Tensor scatter(const Tensor& in, const Dims& sizes, DType dtype, int dim, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::scatter", group, options);
  return named(call.op, [&] {
    const Tensor out = clutch::empty(sizes, {.dtype = dtype, .device = call.stream.empty() ? Device() : call.stream.device()}, call.stream);
    const int at = call.checked_dim(out, dim);
    return part_of_root(call, in, out, at, root, options);
  });
}

Tensor scatter_backward(const Tensor& grad, int dim, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::scatter_backward", group, options);
  return named(call.op, [&] { return rooted(call, grad, call.checked_dim(grad, dim), root, options); });
}

Tensor broadcast(const Tensor& in, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::broadcast", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input");
    return sent_by(call, in, root, options);
  });
}

Tensor broadcast_backward(const Tensor& grad, int root, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::broadcast_backward", group, options);
  return named(call.op, [&] {
    call.check_tensor(grad, "the gradient");
    const bool is_root = call.me == root;
    const Tensor sum = is_root ? call.made(grad.sizes(), grad) : zeros(grad.sizes(), {.dtype = grad.dtype(), .device = grad.device()}, call.stream);
    group.reduce_out(is_root ? sum : Tensor(), grad, root, sum_of(options));
    return sum;
  });
}

Tensor all_to_all(const Tensor& in, int split_dim, int concat_dim, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_to_all", group, options);
  return named(call.op, [&] {
    const int from = call.checked_dim(in, split_dim), to = call.checked_dim(in, concat_dim);
    const std::vector<std::int64_t> split_sizes = call.equal_parts(in.size(from), from);
    const std::vector<std::int64_t> concat_sizes(split_sizes.size(), from == to ? split_sizes[0] : in.size(to));
    return exchanged(call, in, from, split_sizes, to, concat_sizes, options);
  });
}

Tensor all_to_all_backward(const Tensor& grad, int split_dim, int concat_dim, const Group& group, const CallOptions& options) {
  return named("dist::functional::all_to_all_backward", [&] { return all_to_all(grad, concat_dim, split_dim, group, options); });
}

Tensor all_to_all_v(const Tensor& in, int split_dim, Sizes split_sizes, int concat_dim, Sizes concat_sizes, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::all_to_all_v", group, options);
  return named(call.op, [&] {
    const int from = call.checked_dim(in, split_dim), to = call.checked_dim(in, concat_dim);
    call.check_sizes(split_sizes, "split_sizes"), call.check_sizes(concat_sizes, "concat_sizes");
    return exchanged(call, in, from, split_sizes, to, concat_sizes, options);
  });
}

Tensor all_to_all_v_backward(const Tensor& grad, int split_dim, Sizes split_sizes, int concat_dim, Sizes concat_sizes, const Group& group,
                             const CallOptions& options) {
  return named("dist::functional::all_to_all_v_backward", [&] { return all_to_all_v(grad, concat_dim, concat_sizes, split_dim, split_sizes, group, options); });
}

namespace {

/// Sends `in`, if it is defined, and receives into `out`, if that is.
void pass(const Call& call, const Tensor& in, int to, const Tensor& out, int from, CallOptions options) {
  const Stream stream = !call.stream.empty() ? call.stream : current_stream((in.defined() ? in : out).device());
  // A graph makes its calls one after the other: ranks that send upwards send first, so that in each cycle one receives first.
  options.async = !stream.is_capturing();
  Work sent, received;
  auto receive = [&] {
    if (out.defined()) received = call.group.recv(out, from, Group::kMaxTag, options);
  };
  const bool receives_first = !options.async && to < call.me;
  if (receives_first) receive();
  if (in.defined()) sent = call.group.send(in, to, Group::kMaxTag, options);
  if (!receives_first) receive();
  if (!options.async) return;
  if (in.defined()) sent.wait(stream);
  if (out.defined()) received.wait(stream);
}

}  // namespace

Tensor send_recv(const Tensor& in, int to, int from, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::send_recv", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input");
    call.check((to == call.me) == (from == call.me), ErrorCode::invalid_argument, "this rank, {}, must be both `to` and `from` or neither, got {} and {}",
               call.me, to, from);
    if (to == call.me) return in.clone(call.stream);
    const Tensor out = from == kNoRank ? Tensor() : call.made(in.sizes(), in);
    if (to != kNoRank || out.defined()) pass(call, to == kNoRank ? Tensor() : in, to, out, from, options);
    return out;
  });
}

Tensor send_recv_backward(const Tensor& grad, const Tensor& in, int to, int from, const Group& group, const CallOptions& options) {
  const Call call("dist::functional::send_recv_backward", group, options);
  return named(call.op, [&] {
    call.check_tensor(in, "the input");
    if (from != kNoRank) call.check_tensor(grad, "the gradient");
    if (to == call.me) return grad.clone(call.stream);
    const bool has_gone = to != kNoRank;
    const Tensor out = has_gone ? call.made(in.sizes(), in) : zeros(in.sizes(), {.dtype = in.dtype(), .device = in.device()}, call.stream);
    if (has_gone || from != kNoRank) pass(call, from == kNoRank ? Tensor() : grad, from, has_gone ? out : Tensor(), to, options);
    return out;
  });
}

}}}}  // namespace clutch::v0::dist::functional
