// SPDX-License-Identifier: Apache-2.0
#pragma once
// Control flow that the device decides: its predicates are never read by the host.
#include <clutch/stream.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 {

/// A branch: what it computes on the current stream. An empty function does nothing and has no results.
using BranchFunction = std::function<std::vector<Tensor>()>;

/// Returns what `then` returns where the predicate is not zero, else what `otherwise` returns. The host runs both
/// functions, once and in this order; the device skips what they enqueued in the branch that it does not take.
/// Predicate: one element of any shape and of every dtype but packed ones, read once and before both functions; NaN is
///   not zero. Its value may be made by work that has not run.
/// Results: new contiguous tensors. Both functions return as many tensors, with the same sizes and dtypes.
/// In place: what a function writes to other tensors is written only where its branch is taken: copies, fills, writes
/// of
///   host memory and optimizer steps, too. Tensors that a function makes hold numbers only where its branch is taken.
/// Random numbers: generators advance only where the branch that draws is taken.
/// Functions: they enqueue clutch calls of the predicate's device, on any stream that waits for an event of this one
/// and
///   is waited for within the function, and their own kernels: with Addressing::pointer any, with base_and_offset those
///   whose text has two parameters more in front where CLUTCH_PREDICATED is defined, `__global const uchar* predicate,
///   ulong predicate_offset`, and does nothing where the uint there is 0. The given stream is this thread's current one
///   meanwhile. Threads that a function starts are in no branch.
/// Nesting: cond(), switch_() and while_loop() may be called in functions; the device takes an inner branch only where
///   it takes the outer one.
/// Captures: as any call: replays decide anew. The nodes are ordinary kernels, of every backend and of saved graphs,
///   with a predicate in front and the annotation "cond".
/// Gradients: cond(predicate, [&] { return then_backward(...); }, [&] { return otherwise_backward(...); }) is the
///   gradient of the cond() that had the same predicate: where a tensor goes into one branch alone the other one
///   returns zeros. The predicate has none.
/// Costs: a launch for each command of both functions, also of what is skipped. A kernel's first use in a branch builds
///   a program.
/// Scratch: 8 bytes, and what the functions take; `otherwise`, and `then` where it returns what it did not make, copies
///   its results.
/// Errors: invalid_shape for a predicate of another number of elements, and for results of other sizes; invalid_dtype
///   for a packed predicate and results of other dtypes; invalid_argument for another number of results or an undefined
///   one; device_mismatch. not_supported, in the name of the call, for what the device cannot skip or the host would
///   wait for in a function: to_host, item, synchronize and other reads and waits, host tasks, Encoder::opaque, replays
///   and captures of graphs, calls that make state which stays (optimizers), other devices, kernels that take no
///   predicate. Commands that a function enqueued before an error stay enqueued, predicated; streams and captures go
///   on.
/// Stream: never waits.
/// Source: torch.cond (PyTorch 2.12); jax.lax.cond. Differs on purpose: functions may write in place and differ in
///   strides.
CLUTCH_API std::vector<Tensor> cond(const Tensor& predicate, const BranchFunction& then,
                                    const BranchFunction& otherwise, const Stream& stream = {});

/// Returns what the branch of that number returns: branch 0 for a negative index, the last one for one past it.
/// Index: one element of any shape, an integer or bool.
/// All else as cond(), with the annotation "switch_". Scratch: 4 bytes for each branch, instead of 8.
/// Errors: as cond(); invalid_argument without a branch; invalid_dtype for another index.
/// Source: jax.lax.switch.
CLUTCH_API std::vector<Tensor> switch_(const Tensor& index, std::span<const BranchFunction> branches,
                                       const Stream& stream = {});

/// Says of a loop's state whether the loop goes on: one element as cond() takes it.
using LoopCondition = std::function<Tensor(std::span<const Tensor>)>;
/// The next state of a loop's state.
using LoopBody = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

struct LoopOptions {
  std::int64_t max_iterations = -1;  ///< that the loop runs at most; it must be given
};

struct LoopResult {
  std::vector<Tensor> state;  ///< after the last iteration, contiguous
  Tensor iterations;          ///< how many were run, an i64 of rank 0
};

/// Runs `body` on the state as long as `condition` of it is not zero, and max_iterations times at most: the condition
/// is asked before each iteration, and no more once the loop has ended. Functions: both are called max_iterations times
/// by the host, which enqueues all iterations at once; the device skips
///   those behind the loop's end. They are branches as cond()'s, what they write in place included.
/// State: the given tensors are copied, so that they stay as they are. Functions get the loop's own tensors, the same
///   ones each time, contiguous; `body` returns as many, of the same sizes and dtypes, which are copied there unless
///   they are those themselves: a body that writes its state in place and returns it copies nothing. No state is
///   allowed.
/// End: a loop that its bound ends has max_iterations iterations, and the state after them.
/// Costs: launches for max_iterations iterations, whenever the loop ends: one more each than the functions have, and a
///   copy for each tensor of the state.
/// Scratch: 4 bytes, the state's size, and what the functions take.
/// Annotations in captures: "while_loop", with the number of the iteration.
/// All else as cond(). Errors: as cond(); invalid_argument for empty functions and without max_iterations.
/// Source: jax.lax.while_loop, torch.while_loop (PyTorch 2.12). Differs on purpose: the bound is mandatory.
CLUTCH_API LoopResult while_loop(const LoopCondition& condition, const LoopBody& body, std::span<const Tensor> state,
                                 const LoopOptions& options, const Stream& stream = {});

}}  // namespace clutch::v0
