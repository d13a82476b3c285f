// SPDX-License-Identifier: Apache-2.0
#include "plugin/proofs.hpp"

#include <clutch/error.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/fill.hpp>

#include "plugin/problems.hpp"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// An output amid bytes that nobody may write.
class Guarded {
 public:
  Guarded(const PluginOutput& output, const Stream& stream) : stream_(stream) {
    constexpr std::int64_t kAround = 64;
    Dims strides = Dims::filled(output.sizes.rank(), 0);
    std::int64_t step = output.gaps ? 2 : 1;
    for (int d = output.sizes.rank() - 1; d >= 0; --d) strides[d] = step, step *= output.sizes[d];
    whole_ = empty({step + 2 * kAround}, {.dtype = output.dtype, .device = stream.device()}, stream);
    before_.assign(whole_.nbytes(), 0);
    for (std::size_t i = 0; i < before_.size(); ++i) before_[i] = static_cast<std::uint8_t>(0xA5 ^ (7 * i));
    whole_.write(std::as_bytes(std::span(before_)), stream);
    view = whole_.as_strided(output.sizes, strides, kAround);
  }
  /// True if all but the elements is as before.
  bool is_intact() const {
    // The elements as they were, so that what is beside them shows.
    const std::vector<std::uint8_t> now = bytes();
    const Tensor mask = zeros(whole_.sizes(), {.dtype = DType::u8, .device = stream_.device()}, stream_);
    fill_(mask.as_strided(view.sizes(), view.strides(), 64), 1, {}, stream_);
    const std::vector<std::uint8_t> is_element = mask.to_bytes(stream_);
    const std::size_t size = now.size() / is_element.size();
    for (std::size_t i = 0; i < now.size(); ++i)
      if (is_element[i / size] == 0 && now[i] != before_[i]) return false;
    return true;
  }
  /// The elements and what is around them.
  std::vector<std::uint8_t> bytes() const { return whole_.to_bytes(stream_); }
  Tensor view;

 private:
  Stream stream_;
  Tensor whole_;
  std::vector<std::uint8_t> before_;
};

/// What is outside of the bounds.
std::string out_of_bounds(const PluginProblem& one, std::span<const Tensor> got, const Stream& stream) {
  std::vector<Tensor> exact;
  for (const PluginOutput& output : one.outputs) exact.push_back(empty(output.sizes, {.dtype = one.widest, .device = stream.device()}, stream));
  one.exact(exact, stream);
  const auto numbers = [&](const Tensor& t) {
    std::vector<double> all;
    if (one.widest == DType::f64) return t.to(DType::f64, {}, stream).to_host<double>(stream);
    for (const float x : t.to(DType::f32, {}, stream).to_host<float>(stream)) all.push_back(static_cast<double>(x));
    return all;
  };
  for (std::size_t k = 0; k < got.size(); ++k) {
    const std::vector<double> is = numbers(got[k]), must = numbers(exact[k]);
    for (std::size_t i = 0; i < is.size(); ++i) {
      const double bound = one.bounds[k].absolute + one.bounds[k].relative * std::abs(must[i]);
      const bool same = is[i] == must[i] || (std::isnan(is[i]) && std::isnan(must[i]));
      if (!same && !(std::abs(is[i] - must[i]) <= bound))
        return fmt::format("problem '{}': element {} of output {} must be within {} of {}, got {}", one.name, i, k, bound, must[i], is[i]);
    }
  }
  return {};
}

/// What is not of the bits of the library's own.
std::string difference(const PluginProblem& one, std::size_t k, const Tensor& got, const Tensor& wanted, const Stream& stream) {
  const std::vector<std::uint8_t> is = got.to_bytes(stream), must = wanted.to_bytes(stream);
  const auto size = static_cast<std::size_t>(bits(one.outputs[k].dtype) / 8);
  for (std::size_t i = 0; i < is.size(); ++i)
    if (is[i] != must[i]) {
      const auto at = static_cast<std::int64_t>(i / size);
      const Tensor element = got.contiguous(stream).reshape({-1}).slice(0, at, at + 1);
      const Tensor right = wanted.contiguous(stream).reshape({-1}).slice(0, at, at + 1);
      if (is_complex(got.dtype()))
        return fmt::format("problem '{}': element {} of output {} must have the bits of the library's own, got others", one.name, at, k);
      if (one.any_nan && std::isnan(element.item(stream)) && std::isnan(right.item(stream))) continue;
      return fmt::format("problem '{}': element {} of output {} must have the bits of the library's own, {}, got {}", one.name, at, k, right.item(stream),
                         element.item(stream));
    }
  return {};
}

/// Whether the op itself refuses a problem that was made of a caller's function, as one with the position in a dimension which the problem has not.
bool is_refused(const PluginProblem& one, const Stream& stream) {
  const WithoutPlugins own;
  std::vector<Tensor> outputs;
  for (const PluginOutput& output : one.outputs) outputs.push_back(empty(output.sizes, {.dtype = output.dtype, .device = stream.device()}, stream));
  try {
    one.run(outputs, {}, stream);
    return false;
  } catch (const Error&) {
    return true;
  }
}

/// What a problem finds: nothing where the results are equal. `calls` gets the call where the implementation does not refuse it.
std::string compare(const PluginProblem& one, const PluginImplementation& implementation, const Stream& stream, std::set<std::string>& calls) {
  std::vector<Guarded> wanted, got;
  std::vector<Tensor> wanted_views, got_views;
  std::vector<std::vector<std::uint8_t>> inputs;
  {
    const WithoutPlugins own;
    for (const PluginOutput& output : one.outputs) got_views.push_back(got.emplace_back(output, stream).view);
    for (const Tensor& input : one.inputs) inputs.push_back(input.to_bytes(stream));
  }
  // First by the implementation: what it refuses is not computed by the library's own either, which would have to build its programs.
  std::set<std::string> taken;
  std::vector<std::vector<std::uint8_t>> before;  // outputs as the implementation was called
  try {
    Proving proved(implementation);
    proved.before = [&] {
      before.clear();
      for (const Guarded& output : got) before.push_back(output.bytes());
    };
    one.run(got_views, implementation.name, stream);
    taken = std::move(proved.calls);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_supported || is_refused(one, stream)) {
      // Where it refuses, the library's own computes the same tensors.
      const WithoutPlugins own;
      for (std::size_t k = 0; k < before.size(); ++k)
        if (got[k].bytes() != before[k])
          return fmt::format("problem '{}' must be computed or left alone, got bytes of output {} written and a refusal", one.name, k);
      for (std::size_t k = 0; k < inputs.size() && !before.empty(); ++k)
        if (one.inputs[k].to_bytes(stream) != inputs[k])
          return fmt::format("problem '{}' must be computed or left alone, got bytes of input {} written and a refusal", one.name, k);
      return {};
    }
    return fmt::format("problem '{}' must be computed, got {}", one.name, error.what());
  }
  // An op without names of implementations goes on by the library's own.
  if (taken.empty()) return {};
  const WithoutPlugins own;
  for (std::size_t k = 0; k < one.inputs.size(); ++k)
    if (one.inputs[k].to_bytes(stream) != inputs[k]) return fmt::format("problem '{}' must leave its inputs as they are, got another input {}", one.name, k);
  for (std::size_t k = 0; k < got.size(); ++k)
    if (!got[k].is_intact()) return fmt::format("problem '{}' must be computed within output {}, got bytes written outside of its elements", one.name, k);
  for (const PluginOutput& output : one.outputs) wanted_views.push_back(wanted.emplace_back(output, stream).view);
  std::string wrong;
  try {
    if (one.judge)
      wrong = one.judge(got_views, stream);
    else if (one.exact)
      wrong = out_of_bounds(one, got_views, stream);
    else
      one.run(wanted_views, {}, stream);
  } catch (const Error& error) {
    // Nothing to compare with (f64 on a device without it): nothing is proved.
    if (error.code() == ErrorCode::not_supported) return {};
    throw;
  }
  for (std::size_t k = 0; k < got.size() && !one.exact && !one.judge && wrong.empty(); ++k) wrong = difference(one, k, got_views[k], wanted_views[k], stream);
  if (wrong.empty()) calls.merge(taken);
  return wrong;
}

}  // namespace

Proof prove(const PluginImplementation& implementation, const Device& device) {
  const Stream stream(device);
  PluginProblems problems(stream);
  {
    const WithoutPlugins own;
    add_problems(problems, implementation.op);
  }
  if (problems.list.empty()) return {.wrong = fmt::format("there are no problems of {}", implementation.op)};
  Proof proof;
  for (const PluginProblem& one : problems.list)
    if (proof.wrong = compare(one, implementation, stream, proof.calls); !proof.wrong.empty()) return proof;
  // One may be made for a single function, which none of these problems has.
  if (proof.calls.empty() && !has_functions(implementation.op))
    proof.wrong = fmt::format("one of the {} problems must be computed, got a refusal of each", problems.list.size());
  return proof;
}

void prove_call(const PluginImplementation& implementation, const Device& device, std::span<const void* const> arguments, Proof& proof) {
  const Stream stream(device);
  PluginProblems problems(stream);
  {
    const WithoutPlugins own;
    add_problems_of_call(problems, implementation.op, arguments);
  }
  std::set<std::string> taken;
  for (const PluginProblem& one : problems.list)
    if (proof.wrong = compare(one, implementation, stream, taken); !proof.wrong.empty()) return;
  const std::string call = implementation.call_of(arguments);
  (taken.contains(call) ? proof.calls : proof.refused).insert(call);
}

}}}  // namespace clutch::v0::detail
