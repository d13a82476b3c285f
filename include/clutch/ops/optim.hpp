// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Optimizer steps: one launch over all tensors of a parameter group, any number and any sizes.
namespace clutch { inline namespace v0 { namespace optim {

/// Which roundings a step has; rd() is one rounding to the compute type: f32, for f64 parameters f64.
/// Scalars: those such as 1 - beta are told with each enumerator.
/// Powers: beta^t is computed by binary powering from the highest bit of t on (square, then times beta where the bit is
///   set), each product rounded to f64; relative error below 2 t eps. No kernel calls pow.
enum class Numerics : std::uint8_t {
  automatic,  ///< source where the device has fp64, else f32; the plan says which
  /// PyTorch's CUDA kernels (2.12), source order, nothing contracted. Adam: all scalars f32, beta^t rounded to f32;
  /// m = fma(b1, m, fma(-b1, g, g)), v = fma(b2, v, fma(-b2, g g, g g)), p -= (step_size m) / (sqrt(v) / bc2 + eps).
  /// SGD, Adagrad: scalars f64, what they touch is computed in f64 and rounded to f32 once for each assignment.
  /// RMSprop: as composed
  source,
  /// PyTorch's fused CPU kernels, the formulas of its full vectors for every element; scalars computed in f64, then f32
  torch_cpu,
  f32,  ///< source with all scalars f32 (beta^t in two floats): for devices without fp64
  /// The bits of the step written with clutch's lerp, addcmul, addcdiv, add_scaled, mul, sqrt; scalars computed in f64,
  /// then f32. f32 and f64 parameters with states alike
  composed,
};

/// Dtype of states (moments, momenta, sums): computed in f32 whatever it is, rounded to nearest even where it is
/// stored.
enum class StateType : std::uint8_t {
  same,  ///< that of the parameter, as in PyTorch
  f32,   ///< for f16 and bf16 parameters; f64 stays f64
  bf16,  ///< for f32, f16 and bf16 parameters
};

/// How numbers become bf16 where they are stored: parameters, and states that are bf16.
enum class Rounding : std::uint8_t {
  nearest,  ///< to nearest, ties to even
  /// Up with the probability of the part that is cut off: if the 16 low bits of the f32 number plus 16 random bits
  /// carry.
  /// Random bits: half i % 2, the low one first, of a word of Philox 4x32-10 with key seed and counter
  ///   {i / 2 (64 bits), step, number}, for element i of the parameter whose state has that "number" (i32; its place
  ///   among all parameters at first).
  /// Words: word 0 rounds the parameter, word 1 + c its c-th state in the order of Optimizer.
  /// Determinism: bits depend on nothing else.
  /// Special values: infinities and NaN stay.
  stochastic,
  /// bf16 parameters: what rounding to nearest loses is kept in a bf16 state, "compensation" (rounded to nearest; 0 for
  /// an infinite or NaN parameter). The step is that of the f32 number parameter + compensation, a sum that is exact
  kahan,
};

/// Options of all optimizers.
struct Precision {
  Numerics numerics = Numerics::automatic;
  StateType state = StateType::same;
  /// f16 and bf16 parameters: f32 weights are kept as a state and stepped; the parameter is their rounded copy, written
  /// with them
  bool master = false;
  Rounding rounding = Rounding::nearest;  ///< others where something is bf16; kahan without master
  std::uint64_t seed = 0;                 ///< of Rounding::stochastic
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  Precision precision = {};
};
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_weight_decay = false;
  Precision precision = {};
};
/// Adam with decoupled weight decay.
struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
  Precision precision = {};
};
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
  Precision precision = {};
};
struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
  Precision precision = {};
};

enum class NormType : std::uint8_t {
  two,  ///< root of the sum of squares
  one,  ///< sum of magnitudes
  inf,  ///< largest magnitude; NaN if there is one
};

/// Inputs of one step. Tensors are on the device, f32 of one element, or undefined; nothing waits for them.
struct StepOptions {
  Tensor lr = {};          ///< in the place of the options' number; also of one element for each group
  Tensor grad_scale = {};  ///< gradients are divided by it, and the quotients are stored back into them
  Tensor found_inf = {};   ///< not 0: the step changes nothing, not even its counters
  /// Gradients are multiplied by it within the step and stay as they are: the factor of grad_norm()
  Tensor grad_factor = {};
  /// Clips within the step, where grad_factor is that of grad_norm() over the gradients of all groups, over grad_scale
  std::optional<double> max_norm = {};
  NormType norm_type = NormType::two;  ///< of max_norm
};

/// Steps over lists of parameters of one dtype; use one of the classes below.
/// Shapes: gradients as their parameters, both contiguous; any sizes, 0 and 1 too.
/// Dtypes: f32, f64, f16, bf16, gradients alike. Computed in f32, for f64 in f64.
/// State: kept on the device, allocated with the parameter: "step" (f32, counted on the device) and, by PyTorch's
///   names, "momentum_buffer" (SGD with momentum); "exp_avg", "exp_avg_sq", "max_exp_avg_sq" (amsgrad); "sum";
///   "square_avg", "momentum_buffer", "grad_avg"; by Precision "master", "compensation", "number" besides.
/// First step: SGD's momentum buffer begins as the gradient.
/// Launches: one for each parameter group, or more if its tensors are in more than 8 buffers.
/// Overlap: what a step writes (parameters, states, counters; with grad_scale gradients too) shares no memory with
///   anything else of the call. So a gradient is never its parameter, not even exactly. Tensors that are only read may
///   be shared: one tensor may be the gradient of two parameters.
/// Moves: state and identity go along, a GradScaler knows the optimizer by them; what was moved from throws
///   invalid_argument until it is assigned to.
/// Determinism: bits depend on the element's own numbers, the options and the step alone.
/// Accuracy: exactly the formulas of Numerics, bit for bit; on devices that flush subnormals in the normal range.
///   Parameters are within eps (16 (|p| + |step|) + c |step|) of the formulas in exact arithmetic from the same states,
///   eps = 2^-24 (f64: 2^-53), scalars rounded as Numerics says; c = 1 / (1 - beta2^t) for Adam, 16 (square_avg +
///   grad_avg^2) / (square_avg - grad_avg^2) for centered RMSprop, else 0.
/// Scratch: none. A table of addresses, 8 bytes a tensor, is made anew when gradients are elsewhere than at the last
///   step.
/// Errors: invalid_argument for options out of PyTorch's ranges (betas must be below 1 in the type that computes), no
///   or undefined parameters, and lists of another length; invalid_dtype; invalid_shape; invalid_overlap (see Overlap);
///   device_mismatch; not_supported for numerics with f64 scalars on a device without fp64, and for rows of dtypes that
///   are not there.
/// Threads: an Optimizer is for one thread at a time; two that call it need the caller's lock.
/// Stream: never waits; the first step must be ordered behind the constructor's stream.
/// Capturable: each replay is one more step.
/// Source: torch.optim of PyTorch 2.12. RMSprop has no fused form there.
class CLUTCH_API Optimizer {
 public:
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step; gradients of all groups in the order of their parameters. An undefined gradient leaves its parameter and
  /// its state as they are. Returns the norm of the gradients where options have a max_norm (two launches more), else
  /// an undefined tensor.
  Tensor step(std::span<const Tensor> grads, const StepOptions& options, const Stream& stream = {});
  Tensor step(std::span<const Tensor> grads, const Stream& stream = {}) { return step(grads, {}, stream); }

  std::size_t groups() const;
  /// Learning rate of a group: a number, sent along with each step. In a graph Graph::update() changes its argument
  /// "lr".
  double lr(std::size_t group = 0) const;
  void set_lr(double lr, std::size_t group = 0);
  std::span<const Tensor> params(std::size_t group = 0) const;

  /// Tensors of the state by "<number of the parameter>.<name>"; views, not copies.
  std::map<std::string, Tensor> state() const;
  /// Copies into the state; all names must be there, with their shapes and dtypes.
  /// Errors: invalid_argument names what is missing; invalid_overlap for a tensor that shares memory with this state
  ///   other than as its own entry.
  void load_state(const std::map<std::string, Tensor>& state, const Stream& stream = {});
  /// The state as a safetensors file. Waits. Errors: io.
  void save(const std::string& path, const Stream& stream = {}) const;
  void load(const std::string& path, const Stream& stream = {});

 protected:
  struct State;
  explicit Optimizer(std::unique_ptr<State> state);
  /// Errors: invalid_argument in the name of `op` if this was moved from.
  State& own(const char* op) const;

 private:
  friend class GradScaler;
  /// A number that no other optimizer of the process ever has; it moves along.
  std::uint64_t id(const char* op) const;

  std::unique_ptr<State> state_;
};

class CLUTCH_API SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {}, const Stream& stream = {});
  void add_param_group(std::vector<Tensor> params, const SGDOptions& options, const Stream& stream = {});
};
class CLUTCH_API Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {}, const Stream& stream = {});
  void add_param_group(std::vector<Tensor> params, const AdamOptions& options, const Stream& stream = {});
};
class CLUTCH_API AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> params, const AdamWOptions& options = {}, const Stream& stream = {});
  void add_param_group(std::vector<Tensor> params, const AdamWOptions& options, const Stream& stream = {});
};
class CLUTCH_API Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {}, const Stream& stream = {});
  void add_param_group(std::vector<Tensor> params, const AdagradOptions& options, const Stream& stream = {});
};
class CLUTCH_API RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {}, const Stream& stream = {});
  void add_param_group(std::vector<Tensor> params, const RMSpropOptions& options, const Stream& stream = {});
};

struct ClipOptions {
  NormType norm_type = NormType::two;
  Tensor grad_scale = {};  ///< f32 of one element: the norm is that of the gradients divided by it
};
/// On the device, of one element each: the norm, f32 (f64 for f64 gradients), and the factor
/// min(1, max_norm / (norm + 1e-6)), f32.
struct GradNorm {
  Tensor norm, factor;
};

/// Norm of all elements of all gradients, and the factor that would clip them: StepOptions::grad_factor applies it
/// within the step.
/// Shapes: any, contiguous; undefined ones are left out.
/// Dtypes: f32, f64, f16, bf16, the same for all; computed in f32, for f64 in f64.
/// Determinism: chunks of 8192 elements by 64 sums, then the chunks likewise, in an order that depends on sizes alone.
/// Accuracy: norm two and one within (256 + elements / 2^19) eps of exact ones, unless squares over- or underflow.
/// Launches: one for the chunks (more if the tensors are in more than 8 buffers) and one for their total; a table of
///   addresses is made at each call.
/// Errors: invalid_argument for no gradients or max_norm that is negative or NaN; invalid_dtype; invalid_shape;
///   device_mismatch; not_supported for f64 without fp64.
/// Stream: never waits.
/// Source: torch.nn.utils.clip_grad_norm_ with error_if_nonfinite=False: a norm that is not finite makes gradients NaN
///   or 0.
CLUTCH_API GradNorm grad_norm(std::span<const Tensor> grads, double max_norm, const ClipOptions& options = {},
                              const Stream& stream = {});
/// Into the caller's tensors, of these dtypes; an undefined one is not asked for.
CLUTCH_API void grad_norm_out(const GradNorm& out, std::span<const Tensor> grads, double max_norm,
                              const ClipOptions& options = {}, const Stream& stream = {});
/// The same, and multiplies the gradients by the factor. Returns the norm before.
/// Errors: invalid_overlap besides, if gradients share memory.
CLUTCH_API Tensor clip_grad_norm_(std::span<const Tensor> grads, double max_norm, const ClipOptions& options = {},
                                  const Stream& stream = {});
/// Norm of each gradient, one after another, f32 (f64 for f64 gradients): 0 of undefined ones and of those without
/// elements.
/// Shapes: gradients as grad_norm(); the result has one dimension.
/// Dtypes, Determinism, Accuracy, Launches and Errors: as grad_norm(), whose bits a gradient alone has.
/// Stream: never waits.
/// Source: torch._foreach_norm of PyTorch 2.12, whose results have the gradients' dtype.
CLUTCH_API Tensor grad_norms(std::span<const Tensor> grads, const ClipOptions& options = {}, const Stream& stream = {});
/// Into the caller's tensor, of this dtype.
CLUTCH_API void grad_norms_out(const Tensor& out, std::span<const Tensor> grads, const ClipOptions& options = {},
                               const Stream& stream = {});

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;
  bool enabled = true;  ///< else scale() and the steps do nothing of the kind
};

/// Scales losses so that gradients of few bits do not vanish, and skips the steps whose gradients overflowed.
/// Device: scale, found_inf, growth and backoff stay on the device; nothing waits, and a graph captures it as it is.
/// Order: loss -> scale() -> backward -> [unscale_() -> clip_grad_norm_()] -> step() for each optimizer -> update()
/// Update: where any optimizer's gradients were not finite, scale *= backoff_factor; else, at the growth_interval-th
///   such step since the scale changed, scale *= growth_factor unless that is infinite. f32 products; factors are
///   rounded to f32.
/// Optimizers: at most 16 between two updates; each skips by its own gradients alone. One that is moved stays the same
///   one.
/// State: "scale" and "growth_tracker" (i32), one element each.
/// Errors: invalid_argument for factors out of range (growth_factor > 1 > backoff_factor > 0, finite),
///   growth_interval < 1, a scale that is not finite and positive, all as f32 numbers that are not subnormal; for
///   unscale_() or step() twice between updates, update() without either; and as grad_norm().
/// Source: torch.amp.GradScaler of PyTorch 2.12.
class CLUTCH_API GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {}, const Device& device = {}, const Stream& stream = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  /// loss * scale, of the loss's dtype; any shape.
  Tensor scale(const Tensor& loss, const Stream& stream = {}) const;
  /// Multiplies the optimizer's gradients by 1 / scale (f32, rounded) and notes whether one was not finite before.
  void unscale_(const Optimizer& optimizer, std::span<const Tensor> grads, const Stream& stream = {});
  /// The optimizer's step, or none where gradients are not finite; divides gradients by the scale in the same launch
  /// unless unscale_() did. `options` may have all but grad_scale and found_inf.
  Tensor step(Optimizer& optimizer, std::span<const Tensor> grads, const StepOptions& options = {},
              const Stream& stream = {});
  void update(const Stream& stream = {});
  /// Sets the scale instead. Never waits.
  void update(double new_scale, const Stream& stream = {});

  /// The scale, f32 of one element on the device; get_scale() waits for it.
  const Tensor& scale_tensor() const;
  double get_scale(const Stream& stream = {}) const;
  bool enabled() const;
  std::map<std::string, Tensor> state() const;
  void load_state(const std::map<std::string, Tensor>& state, const Stream& stream = {});

 private:
  struct State;
  State& own(const char* op) const;
  std::unique_ptr<State> state_;
};

enum class Decay : std::uint8_t {
  constant,
  linear,  ///< from 1 to end
  cosine,  ///< end + (1 - end) (1 + cos(pi x)) / 2 for x from 0 to 1
};
/// A factor of the learning rate by the number t of steps done: first warmup_start + (1 - warmup_start) t /
/// warmup_steps for t < warmup_steps, then the decay with x = (t - warmup_steps) / decay_steps until x = 1, then `end`
/// (constant: 1).
struct LRSchedulerOptions {
  std::int64_t warmup_steps = 0;
  double warmup_start = 0;
  Decay decay = Decay::constant;
  std::int64_t decay_steps = 0;
  double end = 0;
};

/// LRScheduler::step() for the caller's rates, lr (f32, of one size) and step (i64, one element), which grows by
/// `advance` first.
/// Errors: invalid_dtype, invalid_shape, device_mismatch, invalid_overlap if two of them share memory, and
///   invalid_argument as LRScheduler.
CLUTCH_API void schedule_(const Tensor& lr, const Tensor& rates, const Tensor& step, std::int64_t advance,
                          const LRSchedulerOptions& options, const Stream& stream = {});

/// Learning rates on the device: StepOptions::lr takes lr(), and step() counts and renews it in place, also at each
/// replay of a graph.
/// Shapes: lr() has one element for each group of the optimizer, or for each given rate; f32.
/// Accuracy: factors computed in f32, within 4 eps of the exact ones' scale 1; equal bits on every device.
/// State: "step", i64 of one element.
/// Errors: invalid_argument for no rates, steps < 0, a decay without decay_steps, and rates and factors that are
///   negative, NaN or too large for f32.
/// Stream: never waits.
/// Source: LinearLR, CosineAnnealingLR and SequentialLR of torch.optim.lr_scheduler in closed form; past its end the
///   cosine stays.
class CLUTCH_API LRScheduler {
 public:
  LRScheduler(const Optimizer& optimizer, const LRSchedulerOptions& options, const Stream& stream = {});
  LRScheduler(std::span<const double> rates, const LRSchedulerOptions& options, const Device& device = {},
              const Stream& stream = {});

  const Tensor& lr() const { return lr_; }
  void step(const Stream& stream = {});
  std::map<std::string, Tensor> state() const { return {{"step", count_}}; }
  void load_state(const std::map<std::string, Tensor>& state, const Stream& stream = {});

 private:
  LRSchedulerOptions options_;
  Tensor rates_, count_, lr_;
};

/// found_inf (f32, one element) becomes 1 where a gradient is not finite, else stays; all are multiplied by 1 / scale,
/// unless that is undefined.
/// Shapes, Dtypes, Launches and Errors as grad_norm(), and invalid_overlap if what it writes shares memory with
/// anything else of the call.
/// Source: torch._amp_foreach_non_finite_check_and_unscale_, which takes the inverse.
CLUTCH_API void check_and_unscale_(std::span<const Tensor> grads, const Tensor& found_inf, const Tensor& scale = {},
                                   const Stream& stream = {});
/// GradScaler::update() for the caller's scale (f32) and growth_tracker (i32) of one element each and found_inf (f32)
/// of any number, which become 0.
/// Errors: invalid_dtype, invalid_shape, device_mismatch, invalid_overlap if two of them share memory, and
///   invalid_argument as GradScaler.
/// Source: torch._amp_update_scale_.
CLUTCH_API void update_scale_(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                              const GradScalerOptions& options = {}, const Stream& stream = {});
/// One step over lists of the caller's, as PyTorch's _fused_adam_. All else as Optimizer.
/// Shapes: parameters, gradients and states in the same order, contiguous, of one shape each. Lists of states that the
///   options do not use may be empty. An undefined gradient leaves its parameter and its states as they are.
/// Steps: `steps`, f32, is the number of this step for each parameter, from 1 on: a tensor of (parameters), or a list
///   of tensors of one element, as PyTorch's state_steps, which may be one tensor for several parameters. As in
///   PyTorch, callers count before the call, and back where found_inf was set; the call only reads them.
/// Numbers: a parameter's number is its place in the list.
/// Bits: those of the classes from the same states at the same step, in either form.
/// Launches: as Optimizer, but the table of addresses is made at each call.
/// Not offered: Precision::master, Rounding::kahan and StepOptions::max_norm.
/// Errors: besides those of Optimizer, invalid_argument for a list of steps of another length, invalid_dtype and
///   invalid_shape for steps of another dtype or count, not_supported for what is not offered.
CLUTCH_API void sgd_(std::span<const Tensor> params, std::span<const Tensor> grads,
                     std::span<const Tensor> momentum_buffers, const Tensor& steps, const SGDOptions& options = {},
                     const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void sgd_(std::span<const Tensor> params, std::span<const Tensor> grads,
                     std::span<const Tensor> momentum_buffers, std::span<const Tensor> steps,
                     const SGDOptions& options = {}, const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void adam_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                      std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs, const Tensor& steps,
                      const AdamOptions& options = {}, const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void adam_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                      std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs,
                      std::span<const Tensor> steps, const AdamOptions& options = {},
                      const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void adamw_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                       std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs,
                       const Tensor& steps, const AdamWOptions& options = {}, const StepOptions& step_options = {},
                       const Stream& stream = {});
CLUTCH_API void adamw_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs,
                       std::span<const Tensor> exp_avg_sqs, std::span<const Tensor> max_exp_avg_sqs,
                       std::span<const Tensor> steps, const AdamWOptions& options = {},
                       const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void adagrad_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums,
                         const Tensor& steps, const AdagradOptions& options = {}, const StepOptions& step_options = {},
                         const Stream& stream = {});
CLUTCH_API void adagrad_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums,
                         std::span<const Tensor> steps, const AdagradOptions& options = {},
                         const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void rmsprop_(std::span<const Tensor> params, std::span<const Tensor> grads,
                         std::span<const Tensor> square_avgs, std::span<const Tensor> momentum_buffers,
                         std::span<const Tensor> grad_avgs, const Tensor& steps, const RMSpropOptions& options = {},
                         const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void rmsprop_(std::span<const Tensor> params, std::span<const Tensor> grads,
                         std::span<const Tensor> square_avgs, std::span<const Tensor> momentum_buffers,
                         std::span<const Tensor> grad_avgs, std::span<const Tensor> steps,
                         const RMSpropOptions& options = {}, const StepOptions& step_options = {},
                         const Stream& stream = {});

}}}  // namespace clutch::v0::optim
