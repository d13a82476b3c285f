// SPDX-License-Identifier: Apache-2.0
#include "encode/generator.hpp"

#include <clutch/kernel.hpp>

#include "common/rounding.h"
#include "random/args.h"
#include "runtime/op_name.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"

#include <mutex>

namespace clutch { inline namespace v0 {

namespace detail {

GeneratorImpl::GeneratorImpl(Runtime& runtime, const Stream& stream)
    : runtime_(runtime), state_(clutch::empty({RANDOM_STATE_WORDS}, {.dtype = DType::i64, .device = stream.device()}, stream)) {}

namespace {

struct StateKernel : CachedPlan {
  KernelHandle kernel;
};

void launch(Runtime& runtime, const Tensor& state, std::uint64_t seed, std::uint64_t offset, bool set, const Stream& stream, const char* op) {
  const StateKernel& plan = runtime.plans().find<StateKernel>("random_state", std::uint64_t{0}, {}, [&] {
    StateKernel made;
    made.kernel = KernelHandle(&runtime.programs().find("random", "random_state",
                                                        Defines{{"WIDTH", "1"}, {"CLUTCH_OPERANDS", "1"}, {"IDX", "long"}, {"CLUTCH_TILE", "64"}}
                                                            .set("CLUTCH_DIV_RN", CLUTCH_RN_NATIVE)
                                                            .set("CLUTCH_SQRT_RN", CLUTCH_RN_NATIVE)
                                                            .set("CLUTCH_FMA_RN", CLUTCH_RN_NATIVE)));
    return made;
  });
  Encoder encoder(stream, op);
  encoder.inout(state).value(seed).value(offset).value(static_cast<std::uint32_t>(set));
  encoder.dispatch(plan.kernel, {.global = 1, .local = 1});
}

}  // namespace

void advance_generator(Runtime& runtime, const Tensor& state, std::uint64_t blocks, const Stream& stream, const char* op) {
  launch(runtime, state, 0, blocks, false, stream, op);
}

void GeneratorImpl::set(const GeneratorState& state, const Stream& stream, const char* op) {
  launch(runtime_, state_, state.seed, state.offset, true, stream, op);
}

void GeneratorImpl::set_once(const GeneratorState& state, const Stream& stream, const char* op) {
  set_.get_unrecorded(stream, [&](const Stream& on) {
    set(state, on, op);
    return true;
  });
}

void GeneratorImpl::advance(std::uint64_t blocks, const Stream& stream, const char* op) { advance_generator(runtime_, state_, blocks, stream, op); }

namespace {
GeneratorImpl& need(const std::shared_ptr<GeneratorImpl>& impl, const char* op) {
  if (!impl) throw Error(ErrorCode::invalid_argument, op, "the Generator must be a made one, got an empty one");
  return *impl;
}
}  // namespace

std::shared_ptr<GeneratorImpl> Runtime::default_generator(const Stream& stream) {
  static std::mutex& making = *new std::mutex;  // not mutex_, which making a stream takes
  std::lock_guard one_at_a_time(making);
  std::shared_ptr<GeneratorImpl> generator;
  {
    std::lock_guard lock(mutex_);
    generator = default_generator_;
  }
  if (!generator) {
    const RecordingExempt exempt;  // the memory belongs to the runtime, not to a recording
    generator = std::make_shared<GeneratorImpl>(*this, unrecorded(stream));
    std::lock_guard lock(mutex_);
    default_generator_ = generator;
    add_live(-1);  // the runtime's own tensor must not keep release_context() from working
  }
  generator->set_once({Generator::kDefaultSeed, 0}, stream, "Generator");
  return generator;
}

}  // namespace detail

Generator::Generator(const Device& device, std::uint64_t seed, const Stream& stream) {
  detail::OpName named("Generator");
  detail::Runtime& runtime = stream.empty() ? detail::runtime_for(device) : stream.impl()->runtime();
  Stream on = detail::resolve_stream(stream, runtime, "Generator");
  impl_ = std::make_shared<detail::GeneratorImpl>(runtime, on);
  impl_->set({seed, 0}, on, "Generator");
}

Device Generator::device() const {
  detail::OpName named("Generator::device");
  return Device(&detail::need(impl_, "Generator::device").runtime().device());
}

const Tensor& Generator::state_tensor() const {
  detail::OpName named("Generator::state_tensor");
  return detail::need(impl_, "Generator::state_tensor").state();
}

void Generator::manual_seed(std::uint64_t seed, const Stream& stream) const {
  detail::OpName named("Generator::manual_seed");
  set_state({seed, 0}, stream);
}

void Generator::set_state(const GeneratorState& state, const Stream& stream) const {
  detail::OpName named("Generator::set_state");
  detail::GeneratorImpl& impl = detail::need(impl_, "Generator::set_state");
  impl.set(state, detail::resolve_stream(stream, impl.runtime(), "Generator::set_state"), "Generator::set_state");
}

GeneratorState Generator::state(const Stream& stream) const {
  detail::OpName named("Generator::state");
  detail::GeneratorImpl& impl = detail::need(impl_, "Generator::state");
  std::vector<std::int64_t> words = impl.state().to_host<std::int64_t>(detail::resolve_stream(stream, impl.runtime(), "Generator::state"));
  return {static_cast<std::uint64_t>(words[detail::RANDOM_SEED]), static_cast<std::uint64_t>(words[detail::RANDOM_OFFSET])};
}

GeneratorGuard::GeneratorGuard(const Generator& generator, const Stream& stream) : generator_(generator) {
  detail::OpName named("GeneratorGuard");
  if (generator_.empty()) generator_ = default_generator({}, stream);
  // The stream that is current now, also when another one is at the end of the scope.
  stream_ = detail::resolve_stream(stream, generator_.impl()->runtime(), "GeneratorGuard");
  state_ = generator_.state(stream_);
}

GeneratorGuard::~GeneratorGuard() {
  try {
    generator_.set_state(state_, stream_);
  } catch (const Error&) {  // the stream tells its next caller
  }
}

Generator default_generator(const Device& device, const Stream& stream) {
  detail::OpName named("default_generator");
  detail::Runtime& runtime = stream.empty() ? detail::runtime_for(device) : stream.impl()->runtime();
  return Generator(runtime.default_generator(detail::resolve_stream(stream, runtime, "default_generator")));
}

void manual_seed(std::uint64_t seed, const Device& device, const Stream& stream) {
  detail::OpName named("manual_seed");
  default_generator(device, stream).manual_seed(seed, stream);
}

}}  // namespace clutch::v0
