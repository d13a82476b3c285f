// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"
#include "dist/norm.hpp"
#include "dist/sharded_checks.hpp"

#include <clutch/ops/fill.hpp>
#include <clutch/ops/map.hpp>

#include <cmath>
#include <cstdint>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

struct ShardedAdamWState {
  Symmetric params, grads;
  optim::AdamWOptions options;
  std::int64_t steps = 0, begin = 0, end = 0, block = 0;
  Tensor exp_avg, exp_avg_sq;
  Tensor mean;  ///< of the share's gradients, where they come by messages or their norm is asked for; then 0 up to whole blocks

  std::int64_t count() const { return end - begin; }
  /// Elements of each rank's share.
  std::vector<std::int64_t> shares() const {
    const std::int64_t total = params.local().numel();
    std::vector<std::int64_t> all;
    for (int r = 0; r < params.group().size(); ++r) all.push_back(std::min(block * (r + 1), total) - std::min(block * r, total));
    return all;
  }
};

}  // namespace detail

namespace {

using namespace detail;

/// Elements whose terms make one sum of a norm. Shares are multiples of it but for the last one, so that sums do not depend on the number of ranks.
constexpr std::int64_t kSumBlock = 1024;
std::int64_t blocks_of(std::int64_t elements) { return (elements + kSumBlock - 1) / kSumBlock; }

/// As optim::Numerics says of powers: from the highest bit of t on, each product rounded.
double power_of(double base, std::int64_t t) {
  double power = 1;
  for (int bit = 62; bit >= 0; --bit) {
    power *= power;
    if ((t >> bit & 1) != 0) power *= base;
  }
  return power;
}

/// Numbers of a step in f32, which is what optim::Numerics::source computes with.
struct StepNumbers {
  float beta1, beta2, eps, decay, step_size, correction;

  StepNumbers(const optim::AdamWOptions& o, std::int64_t t)
      : beta1(static_cast<float>(o.beta1)),
        beta2(static_cast<float>(o.beta2)),
        eps(static_cast<float>(o.eps)),
        decay(static_cast<float>(o.lr) * static_cast<float>(o.weight_decay)),
        step_size(static_cast<float>(o.lr) / (1.0F - static_cast<float>(power_of(beta1, t)))),
        correction(std::sqrt(1.0F - static_cast<float>(power_of(beta2, t)))) {}
};

/// The update of elements p, m, v with the averaged gradient g.
struct Updated {
  Expr p, m, v;
};
Updated updated(const StepNumbers& k, bool decays, Expr p, const Expr& m, const Expr& v, const Expr& g) {
  const Expr beta1 = param(k.beta1), beta2 = param(k.beta2);
  if (decays) p = p - param(k.decay) * p;
  const Expr new_m = clutch::fma(beta1, m, clutch::fma(-beta1, g, g));
  const Expr square = g * g, new_v = clutch::fma(beta2, v, clutch::fma(-beta2, square, square));
  return {p - param(k.step_size) * new_m / (clutch::sqrt(new_v) / param(k.correction) + param(k.eps)), new_m, new_v};
}

Expr input(int i) { return clutch::detail::expr_input(i, DType::f32); }

/// Inputs: p, m, v, a factor if there is one, then the gradients of all ranks, or their average. Outputs: m, v, then p as often as it is stored.
ExprFunction step_function(const ShardedAdamWState& s, bool has_factor, int gradients, int copies) {
  const int first = has_factor ? 4 : 3;
  auto add = [](const Expr& a, const Expr& b) { return a + b; };
  Expr g = canonical_sum<Expr>(
      0, gradients, [&](std::int32_t i) { return input(first + i); }, add);
  if (gradients > 1) g = average(g, gradients);
  if (has_factor) g = g * input(3);
  const Updated u = updated(StepNumbers(s.options, s.steps + 1), s.options.weight_decay != 0, input(0), input(1), input(2), g);
  std::vector<Expr> outputs{u.m, u.v};
  outputs.insert(outputs.end(), static_cast<std::size_t>(copies), u.p);
  return {std::vector<DType>(static_cast<std::size_t>(first + gradients), DType::f32), outputs};
}

/// Averages the ranks' gradients of each share, by messages or by the group's kernels.
Work average_shares(ShardedAdamWState& s, std::span<const std::int64_t> shares, const CallOptions& call) {
  const Tensor grads = flat(s.grads.local());
  if (!s.mean.defined()) s.mean = zeros({blocks_of(s.count()) * kSumBlock}, {.dtype = DType::f32, .device = grads.device()}, call.stream);
  return s.params.group().reduce_scatter_v_out(s.mean.slice(0, 0, s.count()), grads, shares,
                                               {.op = ReduceOp::avg, .stream = call.stream, .timeout = call.timeout, .where = call.where});
}

}  // namespace

ShardedAdamW::ShardedAdamW(const Symmetric& params, const Symmetric& grads, const optim::AdamWOptions& options) {
  constexpr const char* kOp = "dist::ShardedAdamW";
  auto check = [&](bool is_right, ErrorCode code, const std::string& why) {
    if (!is_right) throw Error(code, kOp, why);
  };
  check(!params.empty() && !grads.empty(), ErrorCode::invalid_argument, "parameters and gradients must be made memory, got an empty one");
  const GroupCalls call{kOp, params.group()};
  check(params.group().impl() == grads.group().impl(), ErrorCode::invalid_argument, "gradients must be of the parameters' group, got another one");
  const Tensor p = params.local(), g = grads.local();
  check(p.dtype() == DType::f32 && g.dtype() == DType::f32, ErrorCode::invalid_dtype,
        fmt::format("parameters and gradients must be f32, got {} and {}", clutch::name(p.dtype()), clutch::name(g.dtype())));
  check(p.sizes() == g.sizes(), ErrorCode::invalid_shape,
        fmt::format("gradients must have the parameters' sizes, {}, got {}", to_string(p.sizes()), to_string(g.sizes())));
  check(options.lr >= 0, ErrorCode::invalid_argument, fmt::format("lr must be 0 or more, got {}", options.lr));
  check(options.eps >= 0, ErrorCode::invalid_argument, fmt::format("eps must be 0 or more, got {}", options.eps));
  check(options.weight_decay >= 0, ErrorCode::invalid_argument, fmt::format("weight_decay must be 0 or more, got {}", options.weight_decay));
  for (const double beta : {options.beta1, options.beta2})
    check(beta >= 0 && static_cast<float>(beta) < 1, ErrorCode::invalid_argument, fmt::format("betas must be 0 or more and below 1, got {}", beta));
  const optim::Precision& precision = options.precision;
  const bool is_plain = (precision.numerics == optim::Numerics::automatic || precision.numerics == optim::Numerics::source) &&
                        (precision.state == optim::StateType::same || precision.state == optim::StateType::f32) && !precision.master &&
                        precision.rounding == optim::Rounding::nearest;
  check(!options.amsgrad && !options.maximize && is_plain, ErrorCode::not_supported,
        "options must be without amsgrad and maximize, in the numerics of the source with f32 states, got others");

  const std::int64_t n = call.impl().size(), total = p.numel(), block = blocks_of((total + n - 1) / n) * kSumBlock;
  const std::int64_t begin = std::min(block * call.impl().rank(), total), end = std::min(begin + block, total);
  state_ =
      std::make_unique<ShardedAdamWState>(ShardedAdamWState{.params = params, .grads = grads, .options = options, .begin = begin, .end = end, .block = block});
  const TensorOptions like{.dtype = DType::f32, .device = p.device()};
  state_->exp_avg = zeros({end - begin}, like), state_->exp_avg_sq = zeros({end - begin}, like);
  // The first step may be on another stream.
  current_stream(p.device()).synchronize();
}

ShardedAdamW::~ShardedAdamW() = default;
ShardedAdamW::ShardedAdamW(ShardedAdamW&&) noexcept = default;
ShardedAdamW& ShardedAdamW::operator=(ShardedAdamW&&) noexcept = default;

Work ShardedAdamW::step(const Tensor& grad_factor, const CallOptions& options) {
  constexpr const char* kOp = "dist::ShardedAdamW::step";
  if (!state_) throw Error(ErrorCode::invalid_argument, kOp, "the optimizer must be a made one, got one that was moved from");
  ShardedAdamWState& s = *state_;
  const GroupCalls call{kOp, s.params.group()};
  const Tensor params = flat(s.params.local()), grads = flat(s.grads.local());
  if (grad_factor.defined()) {
    call.check(grad_factor.dtype() == DType::f32, ErrorCode::invalid_dtype, "grad_factor must be f32, got {}", clutch::name(grad_factor.dtype()));
    call.check_numel(grad_factor, 1, "grad_factor");
    call.check(grad_factor.device() == params.device(), ErrorCode::device_mismatch, "grad_factor must be on the parameters' device, got one on another");
  }
  const int n = call.impl().size();
  const Tensor factor = grad_factor.defined() ? grad_factor.reshape({1}) : Tensor();
  const std::int64_t count = s.count();
  const Tensor own = params.slice(0, s.begin, s.end);
  auto head_of = [&] {
    std::vector<Tensor> inputs{own, s.exp_avg, s.exp_avg_sq};
    if (factor.defined()) inputs.push_back(factor);
    return inputs;
  };
  const int tensors = (factor.defined() ? 6 : 5) + 2 * n;
  const Stream asked = !options.stream.empty() ? options.stream : current_stream(params.device());
  const bool in_one = s.params.all_direct() && s.grads.all_direct() && tensors <= 24;
  call.check(!asked.is_capturing(), ErrorCode::not_supported, "the stream must not be captured, as steps have numbers, got one that is");
  CallOptions at = options;
  at.stream = asked;
  const auto plan = call.plan(CallKind::optimizer_step, params, at);
  plan->header.elements = static_cast<std::uint64_t>(params.numel()), plan->header.factor = s.options.lr,
  plan->header.rows = static_cast<std::uint64_t>(s.steps + 1);
  if (in_one) {
    if (count > 0) {
      std::vector<Tensor> inputs = head_of(), outputs{s.exp_avg, s.exp_avg_sq};
      for (int r = 0; r < n; ++r) {
        inputs.push_back(flat(s.grads.peer(r)).slice(0, s.begin, s.end));
        outputs.push_back(flat(s.params.peer(r)).slice(0, s.begin, s.end));
      }
      call.launch_by(*plan, *s.params.impl(), params,
                     [inputs, outputs, f = step_function(s, factor.defined(), n, n)](const Stream& stream) { map_out(outputs, f, inputs, {}, stream); });
    } else {
      call.launch_by(*plan, *s.params.impl(), params, [](const Stream&) {});
    }
    Work work = call.run(plan, params, grads, at);
    ++s.steps;
    return work;
  }
  // Three calls: messages bring the average of the share's gradients, and the share of the parameters to all. Between them all ranks agree on the step.
  const std::vector<std::int64_t> shares = s.shares();
  return named(kOp, [&] {
    const Work first = average_shares(s, shares, at);
    const Tensor mean = s.mean.slice(0, 0, count);
    std::vector<Tensor> inputs = head_of();
    inputs.push_back(mean);
    call.launch_by(
        *plan, *s.params.impl(), params,
        [inputs, outputs = std::vector<Tensor>{s.exp_avg, s.exp_avg_sq, own}, f = step_function(s, factor.defined(), 1, 1), count](const Stream& stream) {
          if (count > 0) map_out(outputs, f, inputs, {}, stream);
        });
    CallOptions in_order = at;
    in_order.async = false;
    const Work second = call.run(plan, params, mean, in_order);
    try {
      const Work third = s.params.group().all_gather_v_out(params, params.slice(0, s.begin, s.end), shares, at);
      ++s.steps;
      return joined({first, second, third});
    } catch (const Error&) {
      // A stream that has failed by now refuses calls; the reason is what counts.
      if (second.status() != Work::Status::failed) throw;
      return second;
    }
  });
}

optim::GradNorm ShardedAdamW::grad_norm(double max_norm, const optim::ClipOptions& options, const CallOptions& call) {
  constexpr const char* kOp = "dist::ShardedAdamW::grad_norm";
  if (!state_) throw Error(ErrorCode::invalid_argument, kOp, "the optimizer must be a made one, got one that was moved from");
  check_max_norm(kOp, max_norm);
  check_async(kOp, call);
  ShardedAdamWState& s = *state_;
  const Device device = s.grads.local().device();
  CallOptions at = call;
  if (at.stream.empty()) at.stream = current_stream(device);
  return named(kOp, [&] {
    const std::vector<std::int64_t> shares = s.shares();
    average_shares(s, shares, at);
    std::vector<std::int64_t> rows;
    std::int64_t all = 0;
    for (const std::int64_t share : shares) rows.push_back(blocks_of(share)), all += rows.back();
    const TensorOptions like{.dtype = DType::f32, .device = device};
    Tensor own = clutch::empty({0}, like, at.stream);
    if (s.count() > 0) {
      const Tensor blocks = s.mean.reshape({blocks_of(s.count()), kSumBlock});
      own = clutch::reduce(norm_reduce(options.norm_type), norm_term(options.norm_type, DType::f32), std::span(&blocks, 1), {.dims = {1}}, at.stream);
    }
    const Tensor sums = clutch::empty({all}, like, at.stream);
    s.params.group().all_gather_v_out(sums, own, rows, at);
    return norm_of_sums(sums, max_norm, options, at.stream);
  });
}

double ShardedAdamW::lr() const { return state_->options.lr; }
void ShardedAdamW::set_lr(double lr) {
  if (!(lr >= 0)) throw Error(ErrorCode::invalid_argument, "dist::ShardedAdamW::set_lr", fmt::format("lr must be 0 or more, got {}", lr));
  state_->options.lr = lr;
}
std::int64_t ShardedAdamW::steps() const { return state_->steps; }
Tensor ShardedAdamW::exp_avg() const { return state_->exp_avg; }
Tensor ShardedAdamW::exp_avg_sq() const { return state_->exp_avg_sq; }
std::int64_t ShardedAdamW::share_begin() const { return state_->begin; }

}}}  // namespace clutch::v0::dist
