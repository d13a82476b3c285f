// SPDX-License-Identifier: Apache-2.0
// Branches are encoded one after another, each with a predicate of its own; kernels of one work-item compute the predicates.
#include <clutch/control.hpp>
#include <clutch/graph.hpp>
#include <clutch/ops/copy.hpp>

#include "encode/meaning.hpp"
#include "encode/predicated.hpp"
#include "program/program.hpp"
#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace clutch { inline namespace v0 {
namespace detail { namespace {

/// How control_is_true() and control_clamped() read an element.
struct Scalar {
  explicit Scalar(DType dtype)
      : bytes(static_cast<std::uint32_t>(bits(dtype) / 8)),
        real_bytes(is_floating(dtype)  ? bytes
                   : is_complex(dtype) ? bytes / 2
                                       : bytes + 1),
        has_zero(dtype != DType::f8e8m0fnu),
        sign(dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64 ? 0x80 : 0) {}
  std::uint32_t bytes;
  std::uint32_t real_bytes;  ///< the last bit of as many does not count; more than there are: all bits do
  std::uint32_t has_zero;
  std::uint32_t sign;
};

struct ControlKernel : CachedPlan {
  KernelHandle kernel;
};

const KernelHandle& control_kernel(Runtime& runtime, std::string_view entry) {
  const auto& plan = runtime.plans().find<ControlKernel>(entry, std::uint64_t{0}, "", [&] {
    ControlKernel made;
    made.kernel = KernelHandle(&runtime.programs().find("control", entry, {}));
    return made;
  });
  return plan.kernel;
}

/// What the branches of a call share.
struct Site {
  const char* op;
  Runtime& runtime;
  Stream stream;
  Tensor outer;            ///< predicate of the branch that the call is in; undefined if it is in none
  std::uint64_t outer_id;  ///< of that branch

  Site(const char* name, Runtime& of, const Stream& given)
      : op(name), runtime(of), stream(resolve_stream(given, of, name)), outer(current_predicate(of, name)), outer_id(current_branch_id()) {}

  Tensor scalars(std::int64_t count, DType dtype) const { return empty({count}, {.dtype = dtype, .device = stream.device()}, stream); }
};

void check_scalar(const Tensor& t, const Runtime& runtime, bool is_index, std::string_view what, const char* op) {
  if (!t.defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("{} must be defined, got an undefined tensor", what));
  if (t.numel() != 1) throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must have one element, got {}", what, to_string(t.sizes())));
  if (is_index ? !is_integral(t.dtype()) && kind(t.dtype()) != DTypeKind::boolean : is_packed(t.dtype()))
    throw Error(ErrorCode::invalid_dtype, op,
                fmt::format("{} must be {}, got {}", what, is_index ? "an integer or bool" : "of no packed dtype", name(t.dtype())));
  if (&t.storage()->runtime() != &runtime)
    throw Error(ErrorCode::device_mismatch, op, fmt::format("{} must be of the call's device and context, got one of another", what));
}

/// The results of a branch, in the place of `expected` if those are known. Errors: invalid_argument, invalid_shape, invalid_dtype, device_mismatch.
void check_results(std::span<const Tensor> got, const std::vector<Tensor>* expected, const Runtime& runtime, std::string_view what, std::string_view as,
                   const char* op) {
  if (expected && got.size() != expected->size())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("{} must return {} tensors, as {}, got {}", what, expected->size(), as, got.size()));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!got[i].defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("result {} of {} must be defined, got an undefined tensor", i, what));
    if (&got[i].storage()->runtime() != &runtime)
      throw Error(ErrorCode::device_mismatch, op, fmt::format("result {} of {} must be of the call's device and context, got one of another", i, what));
    if (!expected) continue;
    const Tensor& other = (*expected)[i];
    if (!(got[i].sizes() == other.sizes()))
      throw Error(ErrorCode::invalid_shape, op,
                  fmt::format("result {} of {} must have the sizes {}, as {}, got {}", i, what, to_string(other.sizes()), as, to_string(got[i].sizes())));
    if (got[i].dtype() != other.dtype())
      throw Error(ErrorCode::invalid_dtype, op,
                  fmt::format("result {} of {} must be {}, as {}, got {}", i, what, name(other.dtype()), as, name(got[i].dtype())));
  }
}

/// Runs a caller's function as a branch, whose nodes in graphs it labels.
template <class F>
auto run_function(const Site& site, const char* key, const std::string& value, F&& function) {
  const StreamGuard current(site.stream);
  const NoOpName by_their_own_names;
  const GraphAnnotation label(site.op, {{key, value}});
  return std::forward<F>(function)();
}

bool is_same_tensor(const Tensor& a, const Tensor& b) {
  return a.shares_storage(b) && a.byte_offset() == b.byte_offset() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// True if a result of the branch may be the call's own result: memory that the branch made, and that is no result yet.
bool may_keep(const Tensor& result, const Branch& branch) { return result.storage()->branch() == branch.id() && result.is_contiguous(); }

std::vector<Tensor> run_branches(const Site& site, const Tensor& in, bool is_index, std::span<const BranchFunction> branches,
                                 std::span<const std::string> names) {
  const char* op = site.op;
  const auto count = static_cast<std::uint32_t>(branches.size());
  const Tensor flags = site.scalars(count, DType::u32);
  {
    const OutsideBranches outside;
    const Scalar scalar(in.dtype());
    Encoder encoder(site.stream, op);
    encoder.output(flags, "predicates").input(site.outer.defined() ? site.outer : in).input(in, is_index ? "index" : "predicate");
    encoder.value(count).value(std::uint32_t{site.outer.defined()}).value(std::uint32_t{is_index});
    encoder.value(scalar.bytes).value(scalar.real_bytes).value(scalar.has_zero).value(scalar.sign);
    encoder.means(meaning_of(Meaning::Known::choose)).dispatch(control_kernel(site.runtime, "control_choose"), {.global = 1, .local = 1});
  }
  std::vector<Tensor> results;
  for (std::uint32_t b = 0; b < count; ++b) {
    const PredicatedBranch branch(flags.slice(0, b, b + 1), op);
    std::vector<Tensor> got;
    if (branches[b]) got = run_function(site, "branch", names[b], branches[b]);
    check_results(got, b == 0 ? nullptr : &results, site.runtime, names[b], names[0], op);
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (b == 0 && may_keep(got[i], branch)) {
        results.push_back(got[i]);
      } else {
        if (b == 0) results.push_back(empty(got[i].sizes(), {.dtype = got[i].dtype(), .device = site.stream.device()}, site.stream));
        copy_(results[i], got[i], {}, site.stream);
      }
      if (b == 0) results[i].storage()->set_branch(site.outer_id);
    }
  }
  return results;
}

}}  // namespace detail

std::vector<Tensor> cond(const Tensor& predicate, const BranchFunction& then, const BranchFunction& otherwise, const Stream& stream) {
  constexpr const char* kOp = "cond";
  detail::OpName named(kOp);
  detail::Runtime& runtime = detail::storage_of(predicate, kOp).runtime();
  detail::check_scalar(predicate, runtime, false, "the predicate", kOp);
  const BranchFunction branches[] = {then, otherwise};
  const std::string names[] = {"then", "otherwise"};
  return detail::run_branches(detail::Site(kOp, runtime, stream), predicate, false, branches, names);
}

std::vector<Tensor> switch_(const Tensor& index, std::span<const BranchFunction> branches, const Stream& stream) {
  constexpr const char* kOp = "switch_";
  detail::OpName named(kOp);
  detail::Runtime& runtime = detail::storage_of(index, kOp).runtime();
  detail::check_scalar(index, runtime, true, "the index", kOp);
  if (branches.empty()) throw Error(ErrorCode::invalid_argument, kOp, "there must be at least one branch, got none");
  std::vector<std::string> names;
  for (std::size_t b = 0; b < branches.size(); ++b) names.push_back(fmt::format("branch {}", b));
  return detail::run_branches(detail::Site(kOp, runtime, stream), index, true, branches, names);
}

namespace detail { namespace {

/// The runtime of a loop: the state's, else the stream's, else the current device's.
Runtime& runtime_of_loop(std::span<const Tensor> state, const Stream& stream, const char* op) {
  for (const Tensor& t : state) return storage_of(t, op).runtime();
  return stream.empty() ? runtime_for({}) : stream.impl()->runtime();
}

/// Copies a body's results into the state that it read.
void carry(std::span<const Tensor> state, std::vector<Tensor> got, const Stream& stream) {
  // First what other copies would overwrite.
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (is_same_tensor(got[i], state[i])) continue;
    if (std::any_of(state.begin(), state.end(), [&](const Tensor& s) { return s.shares_storage(got[i]); })) got[i] = got[i].clone(stream);
  }
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!is_same_tensor(got[i], state[i])) copy_(state[i], got[i], {}, stream);
}

LoopResult run_loop(const Site& site, const LoopCondition& condition, const LoopBody& body, std::span<const Tensor> given, std::int64_t max_iterations) {
  const char* op = site.op;
  LoopResult result;
  for (const Tensor& t : given) {
    result.state.push_back(empty(t.sizes(), {.dtype = t.dtype(), .device = site.stream.device()}, site.stream));
    copy_(result.state.back(), t, {}, site.stream);
  }
  const std::vector<Tensor>& state = result.state;
  const Tensor flag = site.scalars(1, DType::u32), iterations = site.scalars(1, DType::i64);
  {
    const OutsideBranches outside;
    Encoder encoder(site.stream, op);
    encoder.output(flag, "goes_on").output(iterations, "iterations").input(site.outer.defined() ? site.outer : flag).value(std::uint32_t{site.outer.defined()});
    encoder.means(meaning_of(Meaning::Known::begin)).dispatch(control_kernel(site.runtime, "control_begin"), {.global = 1, .local = 1});
  }
  for (std::int64_t i = 0; i < max_iterations; ++i) {
    const PredicatedBranch branch(flag, op);
    const std::string number = fmt::format("{}", i);
    const Tensor goes_on = run_function(site, "iteration", number, [&] { return condition(state); });
    check_scalar(goes_on, site.runtime, false, "the condition's result", op);
    {
      const OutsideBranches outside;
      const Scalar scalar(goes_on.dtype());
      Encoder encoder(site.stream, op);
      encoder.inout(flag, "goes_on").inout(iterations, "iterations").input(goes_on, "condition");
      encoder.value(scalar.bytes).value(scalar.real_bytes).value(scalar.has_zero);
      encoder.means(meaning_of(Meaning::Known::next)).dispatch(control_kernel(site.runtime, "control_next"), {.global = 1, .local = 1});
    }
    std::vector<Tensor> got = run_function(site, "iteration", number, [&] { return body(state); });
    check_results(got, &state, site.runtime, "the body", "the state", op);
    carry(state, std::move(got), site.stream);
  }
  result.iterations = iterations.select(0, 0);
  return result;
}

}}  // namespace detail

LoopResult while_loop(const LoopCondition& condition, const LoopBody& body, std::span<const Tensor> state, const LoopOptions& options, const Stream& stream) {
  constexpr const char* kOp = "while_loop";
  detail::OpName named(kOp);
  if (!condition || !body) throw Error(ErrorCode::invalid_argument, kOp, "condition and body must be functions, got an empty one");
  if (options.max_iterations < 0)
    throw Error(ErrorCode::invalid_argument, kOp, fmt::format("the loop must have a bound, max_iterations of at least 0, got {}", options.max_iterations));
  detail::Runtime& runtime = detail::runtime_of_loop(state, stream, kOp);
  detail::check_results(state, nullptr, runtime, "the caller", "", kOp);
  return detail::run_loop(detail::Site(kOp, runtime, stream), condition, body, state, options.max_iterations);
}

}}  // namespace clutch::v0
