// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"

#include <clutch/dist/matmul.hpp>
#include <clutch/ops/matmul.hpp>

#include <utility>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

using namespace detail;

/// The memory whose kernels do the call, where it is large enough or they are asked for; none where two calls do.
std::shared_ptr<SymmetricImpl> memory_for(const GroupCalls& call, const Tensor& shared, std::uint64_t bytes, const Reduction* reduction,
                                          const CallOptions& options) {
  constexpr std::uint64_t kLeastBytes = 1 << 20;
  const bool is_asked = options.algorithm == Algorithm::kernel;
  if (!is_asked && (options.algorithm != Algorithm::automatic || bytes < kLeastBytes)) return nullptr;
  const auto memory = call.impl().find(shared);
  if (memory && can_launch(*memory, reduction, 1) && !options.stream.is_capturing()) return memory;
  call.check(!is_asked, ErrorCode::invalid_argument,
             "Algorithm::kernel must have Symmetric memory that all ranks reach, a reduction that it does, and no capture, got others");
  return nullptr;
}

/// Work on a stream that is idle, behind what the stream has now; the event is behind it.
template <class F>
Event beside(const GroupCalls& call, const Stream& stream, F&& work) {
  const Stream other = call.impl().stream_behind(stream);
  work(other);
  Event done;
  done.record(other);
  return done;
}

void check_matrix(const GroupCalls& call, const Tensor& tensor, const char* what) {
  call.check_tensor(tensor, what);
  call.check(tensor.rank() == 2, ErrorCode::invalid_shape, "{} must be a matrix, got shape {}", what, to_string(tensor.sizes()));
}

void check_sizes(const GroupCalls& call, const Tensor& out, std::int64_t rows, std::int64_t columns) {
  call.check(out.size(0) == rows && out.size(1) == columns && out.is_contiguous(), ErrorCode::invalid_shape, "out must be contiguous of shape ({}, {}), got {}",
             rows, columns, to_string(out.sizes()));
}

Tensor rows_of(const Tensor& matrix, std::int64_t block, std::int64_t rows) { return matrix.slice(0, block * rows, (block + 1) * rows); }

}  // namespace

Work all_gather_matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Group& group, const CallOptions& options) {
  const GroupCalls call{"dist::all_gather_matmul", group};
  const int n = call.impl().size(), me = call.impl().rank();
  check_matrix(call, out, "out"), check_matrix(call, a, "a"), check_matrix(call, b, "b");
  const std::int64_t m = a.size(0);
  call.check(a.size(1) == b.size(0), ErrorCode::invalid_shape, "a's last size must be b's first, got {} and {}", to_string(a.sizes()), to_string(b.sizes()));
  call.check(a.is_contiguous(), ErrorCode::invalid_shape, "a must be contiguous, got a strided one");
  check_sizes(call, out, n * m, b.size(1));
  call.check_overlap(out, a, false, -1), call.check_overlap(out, b, false, -1);
  CallOptions at = options;
  if (at.stream.empty()) at.stream = current_stream(a.device());
  const auto memory = memory_for(call, a, a.nbytes() * static_cast<std::uint64_t>(n), nullptr, at);
  return named(call.op, [&] {
    if (!memory) {
      at.async = false;
      const Tensor gathered = clutch::empty({n * m, a.size(1)}, {.dtype = a.dtype(), .device = a.device()}, at.stream);
      const Work work = group.all_gather_out(gathered, a, at);
      linalg::matmul_out(out, gathered, b, {}, at.stream);
      return work;
    }
    const auto plan = call.plan(CallKind::all_gather, a, at);
    const std::int64_t facts[] = {m, a.size(1)};
    plan->header.elements = static_cast<std::uint64_t>(n * a.numel()), plan->header.rows = hash_of(facts);
    // The own rows beside the call.
    const Event done = beside(call, at.stream, [&](const Stream& stream) { linalg::matmul_out(rows_of(out, me, m), a, b, {}, stream); });
    call.launch_by(*plan, *memory, a, [n, me, m, out, a, b, memory, done](const Stream& stream) {
      for (int i = 1; i < n; ++i) {
        const int r = (me + i) % n;
        linalg::matmul_out(rows_of(out, r, m), memory->same_view(a, r), b, {}, stream);
      }
      stream.wait(done);
    });
    return call.run(plan, out, a, at);
  });
}

Work matmul_reduce_scatter(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& scratch, const Group& group, const ReduceOptions& options) {
  const GroupCalls call{"dist::matmul_reduce_scatter", group};
  const int n = call.impl().size(), me = call.impl().rank();
  check_matrix(call, out, "out"), check_matrix(call, a, "a"), check_matrix(call, b, "b"), call.check_tensor(scratch, "scratch");
  const std::int64_t m = out.size(0), columns = b.size(1), elements = n * m * columns;
  call.check(a.size(1) == b.size(0) && a.size(0) == n * m, ErrorCode::invalid_shape,
             "a must have {} times out's rows and as many columns as b has rows, got {} for b {} and out {}", n, to_string(a.sizes()), to_string(b.sizes()),
             to_string(out.sizes()));
  check_sizes(call, out, m, columns);
  call.check(scratch.dtype() == out.dtype(), ErrorCode::invalid_dtype, "scratch must be {} as out is, got {}", clutch::name(out.dtype()),
             clutch::name(scratch.dtype()));
  call.check(!options.async, ErrorCode::invalid_argument, "async must be false, got true");
  call.check(scratch.is_contiguous() && scratch.numel() >= elements, ErrorCode::invalid_shape, "scratch must be contiguous of {} elements, got shape {}",
             elements, to_string(scratch.sizes()));
  for (const Tensor* x : {&a, &b, &out}) call.check_overlap(scratch, *x, false, -1);
  call.check_overlap(out, a, false, -1), call.check_overlap(out, b, false, -1);
  CallOptions at = GroupCalls::of(options);
  if (at.stream.empty()) at.stream = current_stream(a.device());
  const Tensor partial = flat(scratch).slice(0, 0, elements).reshape({n * m, columns});
  const FusedReduction fused{
      .reduction = {.dtype = out.dtype(), .op = options.op, .factor = options.op == ReduceOp::premul_sum ? options.factor : 1, .ranks = n},
      .before = options.map_before,
      .after = options.map_after};
  return named(call.op, [&] {
    const ElementFunctions functions(options, partial);
    const auto memory = functions.are_pointwise() ? memory_for(call, partial, partial.nbytes(), &fused.reduction, at) : nullptr;
    if (!memory) {
      linalg::matmul_out(partial, a, b, {}, at.stream);
      ReduceOptions plain = options;
      plain.stream = at.stream;
      return group.reduce_scatter_out(out, partial, plain);
    }
    const auto plan = call.plan(CallKind::reduce_scatter, partial, at);
    call.reduce_by(*plan, options);
    const std::int64_t facts[] = {m, columns};
    plan->header.elements = static_cast<std::uint64_t>(elements), plan->header.rows = hash_of(facts), plan->header.functions = functions.hash();
    // Those first that another rank waits for; the own rows beside the call.
    for (int i = 1; i < n; ++i) linalg::matmul_out(rows_of(partial, (me + i) % n, m), rows_of(a, (me + i) % n, m), b, {}, at.stream);
    const Event done = beside(call, at.stream, [&](const Stream& stream) { linalg::matmul_out(rows_of(partial, me, m), rows_of(a, me, m), b, {}, stream); });
    call.launch_by(*plan, *memory, partial, [out, partial, fused, memory, done](const Stream& stream) {
      stream.wait(done);
      launch_reduce_scatter(*memory, out, partial, fused, stream);
    });
    return call.run(plan, out, partial, at);
  });
}

}}}  // namespace clutch::v0::dist
