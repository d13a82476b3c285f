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
/// functions, once and in this order; the device skips the commands of the branch that it does not take.
/// Predicate: one element of any shape and of every dtype but packed ones, read once and before both functions; NaN is
///   not zero. Its value may be made by work that has not run.
/// Results: new contiguous tensors. Both functions return as many tensors, with the same sizes and dtypes.
/// In place: other tensors are written only where the branch that writes them is taken, by copies, writes of host
///   memory and optimizer steps, too. Tensors that a function makes hold numbers only where its branch is taken.
/// Random numbers: generators advance only where the branch that draws is taken.
/// Functions: they enqueue clutch calls of the predicate's device, on any stream that waits for an event of this one
///   and is waited for within the function. The given stream is this thread's current one meanwhile. Threads that a
///   function starts are in no branch.
/// Callers' kernels: all with Addressing::pointer; with base_and_offset those whose text has two parameters more in
///   front where CLUTCH_PREDICATED is defined, `__global const uchar* predicate, ulong predicate_offset`, and does
///   nothing where the uint there is 0.
/// Nesting: cond(), switch_() and while_loop() may be called in functions; the device takes an inner branch only where
///   it takes the outer one.
/// Captures: as any call: replays decide anew. The nodes are ordinary kernels, of every backend and of saved graphs,
///   with a predicate in front and the annotation "cond".
/// Gradients: cond() of the backward functions of both branches, with the same predicate, is the gradient; a branch
///   that does not read a tensor returns zeros for it. The predicate has none.
/// Costs: a launch for each command of both functions, also of those that are skipped. A kernel's first use in a branch
///   builds a program.
/// Scratch: 8 bytes, and the scratch of the functions. Results are copied, but those that `then` made itself.
/// Errors: invalid_shape for a predicate of another number of elements, and for results of other sizes; invalid_dtype
///   for a packed predicate and results of other dtypes; invalid_argument for another number of results or an undefined
///   one; device_mismatch. Commands that a function enqueued before an error stay enqueued, with their predicate;
///   streams and captures go on.
/// Refused: not_supported, in the name of the call within a function, for work that the device cannot skip or the host
///   would wait for: to_host, item, synchronize and other reads and waits, host tasks, Encoder::opaque, replays and
///   captures of graphs, optimizers that are made, other devices, kernels that take no predicate.
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
/// Gives the state after an iteration.
using LoopBody = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

struct LoopOptions {
  std::int64_t max_iterations = -1;  ///< that the loop runs at most; it must be given
};

struct LoopResult {
  std::vector<Tensor> state;  ///< after the last iteration, contiguous
  Tensor iterations;          ///< how many were run, an i64 of rank 0
};

/// Runs `body` on the state as long as `condition` of it is not zero, max_iterations times at most. The condition is
/// asked before each iteration, and no more once the loop has ended.
/// Functions: the host calls both max_iterations times and enqueues all iterations at once; the device skips those
///   behind the loop's end. They are branches as those of cond(): they write in place and draw only where they run.
/// State: the given tensors are copied, and stay as they are. Functions get the loop's own tensors, contiguous, the
///   same ones each time. `body` returns as many, of the same sizes and dtypes; they are copied there, but those that
///   are the loop's own: a body that writes its state in place and returns it copies nothing. An empty state is
///   allowed.
/// Bound: a loop that it ends has max_iterations iterations, and the state after them.
/// Costs: launches for max_iterations iterations, wherever the loop ends: one more each than the functions have, and a
///   copy for each tensor of the state.
/// Scratch: 12 bytes, the state's size, and the scratch of the functions.
/// Annotations in captures: "while_loop", with the number of the iteration.
/// All else as cond(). Errors: as cond(); invalid_argument for empty functions and without max_iterations.
/// Source: jax.lax.while_loop, torch.while_loop (PyTorch 2.12). Differs on purpose: the bound is mandatory.
CLUTCH_API LoopResult while_loop(const LoopCondition& condition, const LoopBody& body, std::span<const Tensor> state,
                                 const LoopOptions& options, const Stream& stream = {});

}}  // namespace clutch::v0
