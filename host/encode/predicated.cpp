// SPDX-License-Identifier: Apache-2.0
#include "encode/predicated.hpp"

#include "encode/meaning.hpp"
#include "encode/plan.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/recorder.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

const BuiltPlan& copy_plan(Runtime& runtime) {
  return runtime.plans().find<BuiltPlan>("copy_in_branch", std::uint64_t{0}, "", [&] {
    KernelPlan plan{.stem = "copy", .entry = "copy_bytes", .tuning = elementwise_tuning(runtime.traits())};
    plan.tuning.tile *= 4;  // counts bytes
    set_common(plan.defines, runtime.traits(), plan.tuning, 2, false);
    return build_plan(runtime, plan);
  });
}

/// A contiguous tensor's bytes.
Tensor bytes_of(const Tensor& tensor) {
  const auto bytes = static_cast<std::int64_t>(tensor.nbytes());
  return Tensor(tensor.storage(), tensor.byte_offset(), {bytes}, {1}, DType::u8);
}

class PredicatedRecorder final : public Recorder {
 public:
  PredicatedRecorder(std::shared_ptr<Recorder> own, Tensor predicate, const Branch& branch)
      : own_(std::move(own)), predicate_(std::move(predicate)), branch_(branch.id()), branch_op_(branch.op()) {}

  void operand(const StreamRef& stream, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) override {
    own_->operand(stream, launch, tensor, access, name);
  }
  void table(const StreamRef& stream, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) override {
    own_->table(stream, launch, table, tensors);
  }

  void kernel(const StreamRef& stream, Launch& launch) override {
    Kernel& plain = *launch.kernel.kernel();
    Kernel* kernel = stream->runtime().programs().predicated(plain);
    if (!kernel)
      throw Error(ErrorCode::not_supported, launch.op,
                  fmt::format("kernel {} must take a predicate to run in a branch of {}, got one whose source has none with CLUTCH_PREDICATED", plain.name(),
                              branch_op_));
    const std::unique_ptr<Launch> made(new Launch);
    made->op = launch.op, made->geometry = launch.geometry, made->cost = launch.cost;
    made->kernel = KernelHandle(kernel, launch.kernel.plan());
    own_->operand(stream, *made, predicate_, Argument::Kind::input, "predicate");
    made->append(launch);
    if (launch.meaning) {
      auto meaning = std::make_shared<Meaning>(*launch.meaning);
      meaning->predicated = true;
      made->meaning = std::move(meaning);
    }
    // What is written only where the branch is taken keeps its contents elsewhere.
    for (Operand& operand : made->operands)
      if (operand.access == Argument::Kind::output) operand.access = Argument::Kind::inout;
    own_->kernel(stream, *made);
  }

  void copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) override {
    const BuiltPlan& plan = copy_plan(stream->runtime());
    Encoder encoder(Stream(stream), op);
    encoder.output(destination).input(source).value(std::uint64_t{source.nbytes()}).value(std::uint32_t{0}).means(meaning_of(Meaning::Known::copy));
    const std::uint64_t tiles = (source.nbytes() + plan.tuning.tile - 1) / plan.tuning.tile;
    const Aside aside;
    const Cost before = last_launch().cost;  // the caller adds the copy's
    encoder.dispatch(plan.kernel, tile_geometry(tiles, plan.tuning.local));
    last_launch().cost = before;
  }

  void fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) override {
    if (is_own(tensor)) return own_->fill(stream, op, tensor, pattern);
    const auto bytes = static_cast<std::int64_t>(tensor.storage()->bytes());
    const Tensor staged = memory(stream, bytes);
    own_->fill(stream, op, staged, pattern);
    copy(stream, op, Tensor(tensor.storage(), 0, {bytes}, {1}, DType::u8), staged);
  }

  void upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) override {
    if (is_own(destination)) return own_->upload(stream, op, destination, std::move(data));
    const Tensor staged = memory(stream, static_cast<std::int64_t>(destination.nbytes()));
    own_->upload(stream, op, staged, std::move(data));
    copy(stream, op, bytes_of(destination), staged);
  }

  void host(const StreamRef&, const HostWork& work) override {
    throw Error(ErrorCode::not_supported, work.op,
                fmt::format("work in a branch of {} must be kernels, which the device can skip, got {}", branch_op_,
                            work.task ? "a host task" : "work that another library enqueues"));
  }

  bool asks_for_meaning() const noexcept override { return own_->asks_for_meaning(); }

 private:
  /// True for memory that the branch itself made: nothing reads it where the branch is not taken.
  bool is_own(const Tensor& tensor) const { return tensor.storage()->branch() == branch_; }
  static Tensor memory(const StreamRef& stream, std::int64_t bytes) {
    const Stream on(stream);
    return empty({bytes}, {.dtype = DType::u8, .device = on.device()}, on);
  }

  std::shared_ptr<Recorder> own_;
  Tensor predicate_;
  std::uint64_t branch_;
  const char* branch_op_;
};

}  // namespace

PredicatedBranch::PredicatedBranch(const Tensor& predicate, const char* op) : Branch(predicate.storage()->runtime(), op), predicate_(predicate) {}
PredicatedBranch::~PredicatedBranch() = default;

std::shared_ptr<Recorder> PredicatedBranch::wrap(std::shared_ptr<Recorder> own) {
  if (!wrapped_ || own_ != own) {
    wrapped_ = std::make_shared<PredicatedRecorder>(own, predicate_, *this);
    own_ = std::move(own);
  }
  return wrapped_;
}

Tensor current_predicate(const Runtime& runtime, const char* op) {
  const Branch* branch = current_branch();
  if (!branch) return {};
  if (&branch->runtime() != &runtime)
    throw Error(ErrorCode::not_supported, op,
                fmt::format("the call must be on the device and context of the predicate of {}, in whose branch it is, got another", branch->op()));
  return static_cast<const PredicatedBranch*>(branch)->predicate();
}

}}}  // namespace clutch::v0::detail
