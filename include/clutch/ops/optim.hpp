// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Optimizer steps: one launch over all tensors of a parameter group, any number and any sizes.
namespace clutch::inline v0::optim {

/// Which roundings a step has; rd() is one rounding to the compute type: f32, for f64 parameters f64.
/// Scalars such as 1 - beta are told with each. beta^t is computed by binary powering from the highest bit of t on (square, then times beta where the
/// bit is set), each product rounded to f64; relative error below 2 t eps. No kernel calls pow.
enum class Numerics : std::uint8_t {
  automatic,  ///< source where the device has fp64, else f32; the plan says which
  source,  ///< PyTorch's CUDA kernels (2.12), source order, nothing contracted. Adam: all scalars f32, beta^t rounded to f32; m = fma(b1, m, fma(-b1, g, g)),
           ///< v = fma(b2, v, fma(-b2, g g, g g)), p -= (step_size m) / (sqrt(v) / bc2 + eps). SGD, Adagrad: scalars f64, what they touch is
           ///< computed in f64 and rounded to f32 once for each assignment. RMSprop: as composed
  torch_cpu,  ///< PyTorch's fused CPU kernels, the formulas of its full vectors for every element; scalars computed in f64, then f32
  f32,        ///< source with all scalars f32 (beta^t in two floats): for devices without fp64
  composed,   ///< the bits of the step written with clutch's lerp, addcmul, addcdiv, add_scaled, mul, sqrt; scalars computed in f64, then f32.
              ///< f32 and f64 parameters with states alike
};

/// Dtype of states (moments, momenta, sums): computed in f32 whatever it is, rounded to nearest even where it is stored.
enum class StateType : std::uint8_t {
  same,  ///< that of the parameter, as in PyTorch
  f32,   ///< for f16 and bf16 parameters; f64 stays f64
  bf16,  ///< for f32, f16 and bf16 parameters
};

/// What all optimizers share.
struct Precision {
  Numerics numerics = Numerics::automatic;
  StateType state = StateType::same;
  bool master = false;  ///< f16 and bf16 parameters: f32 weights are kept as a state and stepped; the parameter is their rounded copy, written with them
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

/// Inputs of one step that are on the device; each f32 of one element, or undefined. Nothing waits for them.
struct StepOptions {
  Tensor lr = {};           ///< in the place of the options' number
  Tensor grad_scale = {};   ///< gradients are divided by it, and the quotients are stored back into them
  Tensor found_inf = {};    ///< not 0: the step changes nothing, not even its counters
  Tensor grad_factor = {};  ///< gradients are multiplied by it within the step and stay as they are: the factor of grad_norm()
};

/// Steps over lists of parameters of one dtype; use one of the classes below.
/// Shapes: gradients as their parameters, both contiguous; any sizes, 0 and 1 too. Parameters must not share memory.
/// Dtypes: f32, f64, f16, bf16, gradients alike. Computed in f32, for f64 in f64.
/// State: kept on the device, allocated with the parameter: "step" (f32, counted on the device) and, by PyTorch's names, "momentum_buffer" (SGD
///   with momentum); "exp_avg", "exp_avg_sq", "max_exp_avg_sq" (amsgrad); "sum"; "square_avg", "momentum_buffer", "grad_avg"; "master" besides.
/// First step: SGD's momentum buffer begins as the gradient.
/// Launches: one for each parameter group, or more if its tensors lie in more than 8 buffers.
/// Determinism: bits depend on the element's own numbers, the options and the step alone.
/// Accuracy: exactly the formulas of Numerics, bit for bit; on devices that flush subnormals in the normal range.
/// Scratch: none. A table of addresses, 8 bytes a tensor, is made anew when gradients lie elsewhere than at the last step.
/// Errors: invalid_argument for options out of PyTorch's ranges, no or undefined parameters, and lists of another length; invalid_dtype; invalid_shape;
///   invalid_overlap if parameters share memory; device_mismatch; not_supported for numerics with f64 scalars on a device without fp64, and for
///   rows of dtypes that are not there.
/// Stream: never waits; the first step must be ordered behind the constructor's stream. Capturable: each replay is one more step.
/// Source: torch.optim of PyTorch 2.12. RMSprop has no fused form there.
class CLUTCH_API Optimizer {
 public:
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step; gradients of all groups in the order of their parameters. An undefined gradient leaves its parameter and its state as they are.
  void step(std::span<const Tensor> grads, const StepOptions& options, const Stream& stream = {});
  void step(std::span<const Tensor> grads, const Stream& stream = {}) { step(grads, {}, stream); }

  std::size_t groups() const;
  /// Learning rate of a group: a number, sent along with each step. In a graph Graph::update() changes its argument "lr".
  double lr(std::size_t group = 0) const;
  void set_lr(double lr, std::size_t group = 0);
  std::span<const Tensor> params(std::size_t group = 0) const;

  /// Tensors of the state by "<number of the parameter>.<name>"; views, not copies.
  std::map<std::string, Tensor> state() const;
  /// Copies into the state; all names must be there, with their shapes and dtypes. Errors: invalid_argument names what is missing.
  void load_state(const std::map<std::string, Tensor>& state, const Stream& stream = {});
  /// The state as a safetensors file. Waits. Errors: io.
  void save(const std::string& path, const Stream& stream = {}) const;
  void load(const std::string& path, const Stream& stream = {});

 protected:
  struct State;
  explicit Optimizer(std::unique_ptr<State> state);
  State& own() { return *state_; }

 private:
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

enum class NormType : std::uint8_t {
  two,  ///< root of the sum of squares
  one,  ///< sum of magnitudes
  inf,  ///< largest magnitude; NaN if there is one
};
struct ClipOptions {
  NormType norm_type = NormType::two;
};
/// On the device, of one element each: the norm, f32 (f64 for f64 gradients), and the factor min(1, max_norm / (norm + 1e-6)), f32.
struct GradNorm {
  Tensor norm, factor;
};

/// Norm of all elements of all gradients, and the factor that would clip them: StepOptions::grad_factor applies it within the step.
/// Shapes: any, contiguous; undefined ones are left out. Dtypes: f32, f64, f16, bf16, the same for all; computed in f32, for f64 in f64.
/// Determinism: chunks of 8192 elements by 64 sums, then the chunks likewise, in an order that depends on sizes alone.
/// Accuracy: norm two and one within (256 + elements / 2^19) eps of exact ones, unless squares over- or underflow.
/// Launches: one for the chunks (more if the tensors lie in more than 8 buffers) and one for their total; a table of addresses is made at each call.
/// Errors: invalid_argument for no gradients or max_norm that is negative or NaN; invalid_dtype; invalid_shape; device_mismatch; not_supported for f64
/// without fp64. Stream: never waits. Source: torch.nn.utils.clip_grad_norm_ with error_if_nonfinite=False: a norm that is not finite makes gradients NaN or 0.
CLUTCH_API GradNorm grad_norm(std::span<const Tensor> grads, double max_norm, const ClipOptions& options = {}, const Stream& stream = {});
/// The same, and multiplies the gradients by the factor. Returns the norm before.
CLUTCH_API Tensor clip_grad_norm_(std::span<const Tensor> grads, double max_norm, const ClipOptions& options = {}, const Stream& stream = {});

/// One step over lists of the caller's, as PyTorch's _fused_adam_: parameters, gradients and states in the same order, contiguous, of one shape
/// each. `steps` (parameters), f32, is the number of this step for each, from 1 on: as there, callers count before the call, and back where
/// found_inf was set. What an option does not use may be empty. All else as Optimizer, but the table of addresses is made at each call, and Precision::master
/// is not offered.
CLUTCH_API void sgd_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> momentum_buffers, const Tensor& steps,
                     const SGDOptions& options = {}, const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void adam_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                      std::span<const Tensor> max_exp_avg_sqs, const Tensor& steps, const AdamOptions& options = {}, const StepOptions& step_options = {},
                      const Stream& stream = {});
CLUTCH_API void adagrad_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums, const Tensor& steps,
                         const AdagradOptions& options = {}, const StepOptions& step_options = {}, const Stream& stream = {});
CLUTCH_API void rmsprop_(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> square_avgs,
                         std::span<const Tensor> momentum_buffers, std::span<const Tensor> grad_avgs, const Tensor& steps, const RMSpropOptions& options = {},
                         const StepOptions& step_options = {}, const Stream& stream = {});

}  // namespace clutch::inline v0::optim
