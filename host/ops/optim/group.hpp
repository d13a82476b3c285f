// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/ops/optim.hpp>

#include "ops/optim/step_memory.hpp"
#include "ops/optim_plan.hpp"

#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// The options of all optimizers.
struct OptimHyper {
  OptimKind kind = OptimKind::adam;
  const char* op = "";
  double lr = 0;
  double momentum = 0, dampening = 0;  ///< of SGD; momentum also of RMSprop
  double beta1 = 0, beta2 = 0;         ///< of Adam
  double lr_decay = 0;                 ///< of Adagrad
  double alpha = 0;                    ///< of RMSprop
  double eps = 0;
  double weight_decay = 0;
  double initial = 0;  ///< initial value of Adagrad's sum
  bool nesterov = false, maximize = false, decoupled = false, extra = false, buffer = false;
  optim::Precision precision;
};

/// Rows of a group that one launch takes.
struct OptimPart {
  std::size_t first = 0, end = 0;
  TensorTable table;
};

struct OptimGroup {
  OptimHyper hyper;
  OptimProblem problem;
  std::size_t first = 0;  ///< index of the group's first parameter among all
  std::vector<Tensor> params;
  std::vector<Tensor> columns;  ///< of all rows: states, then the f32 master weights
  std::vector<std::string> names;
  Tensor steps;                 ///< own counters: one for each item of each chunk, equal for all of a parameter; a caller's lists: one for each parameter
  std::vector<Tensor> step_of;  ///< a caller's lists, in the place of `steps`: the number of each parameter's step
  std::int64_t items = 1;       ///< of a chunk
  Tensor sizes, chunks;         ///< of parameters; pairs of a row and a chunk of it
  Tensor numbers;               ///< indices of parameters, for random bits that depend on them
  bool counts = true;
  std::vector<std::int64_t> first_chunk;  ///< for each row its first chunk, then the number of chunks
  std::vector<OptimPart> parts;
  std::vector<const void*> buffers;    ///< of the gradients when the parts were made
  std::vector<const Tensor*> entries;  ///< of the table

  /// Index in `steps` of a chunk's first counter.
  std::int64_t counter(std::int64_t chunk) const {
    return static_cast<std::int64_t>(optim_counter(static_cast<std::uint64_t>(chunk), static_cast<std::uint64_t>(items)));
  }
};

/// States and step counters that the caller gives; those that are missing are made.
struct OptimLists {
  std::vector<Tensor> columns;
  Tensor steps;
  std::vector<Tensor> step_of;
  bool counted() const { return steps.defined() || !step_of.empty(); }
};

/// Tensors cut into chunks.
struct OptimChunks {
  std::vector<std::int32_t> pairs;  ///< pairs of a row and a chunk of it
  std::vector<std::int64_t> first;  ///< first chunk of each row, then the number of chunks
};
/// Cuts each row into chunks of `length` elements; a row has at least `least` chunks, even without elements.
OptimChunks cut_into_chunks(std::span<const std::int64_t> sizes, std::int64_t length, std::int64_t least);

/// Errors: invalid_argument in PyTorch's words unless `fine`.
void check_optim_range(bool fine, const char* op, std::string_view what, std::string_view range, double value);
/// Checks gradients and sets them in `memory`. Errors: invalid_dtype, invalid_shape, device_mismatch.
void check_optim_gradients(const OptimGroup& g, std::span<const Tensor> grads, StepMemory& memory);
/// Adds what each step of a group writes, except gradients.
void add_written(std::vector<MemoryRange>& ranges, const OptimGroup& g);
/// Errors: invalid_overlap. `steps` are the caller's.
void check_step_memory(StepMemory& memory, const optim::StepOptions& options, std::span<const Tensor> steps, const char* op);
/// Checks that t is undefined, or f32 with one or `most` elements. Errors: invalid_dtype, invalid_shape.
void check_device_scalar(const Tensor& t, std::int64_t most, const char* what, const char* op);
/// Errors: invalid_dtype, invalid_shape.
void check_step_options(const optim::StepOptions& options, std::size_t groups, const char* op);

/// Copies a state into `own`. Errors: invalid_argument, which names tensors that are missing, unknown, or of another dtype or shape.
void load_state_into(const std::map<std::string, Tensor>& own, const std::map<std::string, Tensor>& given, const char* op, const Stream& stream);

/// Makes a group of parameters with their states. Errors: as Optimizer.
OptimGroup make_optim_group(std::vector<Tensor> params, const OptimHyper& hyper, std::size_t first, OptimLists given, const Stream& stream);
void step_optim_group(OptimGroup& g, std::span<const Tensor> grads, const optim::StepOptions& options, const Stream& stream);
/// Tensors of one state; unused unless the options need it.
struct OptimState {
  std::span<const Tensor> tensors;
  bool wanted = true;
};
/// A caller's numbers of steps: of all parameters in one tensor, or a tensor for each.
struct OptimSteps {
  OptimSteps(const Tensor& of_all) : tensors(&of_all, 1), together(true) {}
  OptimSteps(std::span<const Tensor> of_each) : tensors(of_each) {}
  std::span<const Tensor> tensors;
  bool together = false;
};
/// Computes a checked step, whose numbers are in one tensor, by a plugin. False if none takes it.
using StepByPlugin = std::function<bool(const Tensor& steps, const Stream& stream)>;
/// A step over the caller's lists.
void step_optim_lists(const OptimHyper& hyper, std::span<const Tensor> params, std::span<const Tensor> grads, std::initializer_list<OptimState> states,
                      const OptimSteps& steps, const optim::StepOptions& options, const Stream& stream, const StepByPlugin& by_plugin);

}}}  // namespace clutch::v0::detail
