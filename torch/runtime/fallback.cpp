// SPDX-License-Identifier: Apache-2.0
#include "runtime/fallback.hpp"

#include "runtime/callback.hpp"
#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/generator.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <clutch/settings.hpp>
#include <clutch/stream.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

namespace torch_clutch {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, FallbackCount> by_op;
};
Counts& counts() {
  static auto* made = new Counts;
  return *made;
}

// "host" in the list that CLUTCH_STRICT has.
bool allowed_by_settings() {
  for (const clutch::SettingInfo& setting : clutch::settings())
    if (setting.name == "CLUTCH_STRICT") return setting.value.find("host") == std::string::npos;
  return true;
}

std::atomic<bool>& allowed() {
  static auto* flag = new std::atomic<bool>(translated([] { return allowed_by_settings(); }));
  return *flag;
}

// The device that the op's tensors are on.
std::optional<c10::DeviceIndex> device_of(const torch::jit::Stack& stack, std::size_t arguments) {
  for (const c10::IValue& value : torch::jit::last(stack, arguments)) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kDevice) return value.toTensor().device().index();
    if (value.isDevice() && value.toDevice().type() == kDevice) return or_current(value.toDevice().index());
  }
  return std::nullopt;
}

// An op that draws gets a generator of the CPU whose seed is drawn from the device's: torch.manual_seed() holds for it, too.
void replace_generators(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() != "generator") continue;
    c10::IValue& value = torch::jit::peek(*stack, i, arguments.size());
    std::optional<at::Generator> given;
    if (value.isGenerator()) given = value.toGenerator();
    if (given.has_value() && given->defined() && given->device().type() != kDevice) continue;  // PyTorch says what it thinks of it
    value = host_generator(given, device_of(*stack, arguments.size()).value_or(current_device()));
  }
}

// The tensor that the op is to write as argument i; undefined if that is none.
at::Tensor written(const c10::OperatorHandle& op, const torch::jit::Stack& stack, std::size_t i) {
  const auto& arguments = op.schema().arguments();
  const c10::IValue& value = torch::jit::peek(stack, i, arguments.size());
  const auto* alias = arguments[i].alias_info();
  return alias != nullptr && alias->isWrite() && value.isTensor() ? value.toTensor() : at::Tensor();
}

// Elements that share memory would each be written by what the CPU has for them, one after another.
void check_written(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  for (std::size_t i = 0; i < op.schema().arguments().size(); ++i)
    if (const at::Tensor given = written(op, stack, i); given.defined() && given.layout() == at::kStrided) at::assert_no_internal_overlap(given);
}

// A tensor that an op is to write, and the one that it writes.
struct Written {
  at::Tensor given, plain;
};
// Lazy conjugates and minuses that the op is to write, which some ops are given as they are, become plain tensors: at::native::cpu_fallback() loses what it
// writes into the others.
std::vector<Written> make_plain(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  std::vector<Written> made;
  const std::size_t count = op.schema().arguments().size();
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor given = written(op, *stack, i);
    if (!given.defined() || (!given.is_conj() && !given.is_neg())) continue;
    made.push_back({given, given.resolve_conj().resolve_neg()});
    torch::jit::peek(*stack, i, count) = made.back().plain;
  }
  return made;
}
void write_lazy(const std::vector<Written>& lazy, const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  for (const Written& w : lazy) {
    at::native::resize_output(w.given, w.plain.sizes());
    w.given.copy_(w.plain);
    const std::size_t returns = op.schema().returns().size();
    for (std::size_t i = 0; i < returns; ++i)
      if (c10::IValue& value = torch::jit::peek(*stack, i, returns); value.isTensor() && value.toTensor().is_same(w.plain)) value = w.given;
  }
}

// Functions of dense linear algebra leave to their kernels to say that tensors must be on one device.
void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.schema().name();
  if (name.find("::linalg_") == std::string::npos) return;
  std::optional<c10::Device> known;
  for (const c10::IValue& value : torch::jit::last(stack, op.schema().arguments().size())) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const c10::Device device = value.toTensor().device();
    TORCH_CHECK(known.value_or(device) == device, name.substr(name.find("::") + 2), ": Expected all tensors to be on the same device, but got ", *known,
                " and ", device);
    known = device;
  }
}

// As at::native::cpu_fallback(), for sparse tensors, which it would hand to kernels of dense ones.
void run_sparse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const std::size_t count = schema.arguments().size();
  std::vector<std::pair<at::Tensor, at::Tensor>> changed;  // ours, and the CPU's
  c10::Device device(kDevice, device_of(*stack, count).value_or(current_device()));
  for (std::size_t i = 0; i < count; ++i) {
    c10::IValue& value = torch::jit::peek(*stack, i, count);
    const auto* alias = schema.arguments()[i].alias_info();
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == kDevice) {
      const at::Tensor ours = value.toTensor();
      value = ours.cpu();
      if (alias != nullptr && alias->isWrite()) changed.emplace_back(ours, value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> host;
      for (const at::Tensor& tensor : value.toTensorList()) host.push_back(tensor.cpu());
      value = host;
    } else if (value.isDevice()) {
      value = c10::Device(c10::kCPU);
    }
  }
  op.callBoxed(stack);
  for (auto& [ours, host] : changed) {
    if (ours.layout() == at::kStrided) ours.resize_(host.sizes());
    ours.copy_(host);
    if (ours.is_sparse()) ours._coalesced_(host.is_coalesced());
  }
  for (std::size_t i = 0; i < schema.returns().size(); ++i) {
    c10::IValue& value = torch::jit::peek(*stack, i, schema.returns().size());
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor host = value.toTensor();
    const auto same = std::find_if(changed.begin(), changed.end(), [&](const auto& pair) { return pair.second.is_same(host); });
    value = same != changed.end() ? same->first : host.to(device);
  }
}
bool has_sparse(const torch::jit::Stack& stack, std::size_t arguments) {
  for (const c10::IValue& value : torch::jit::last(stack, arguments)) {
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().layout() != at::kStrided) return true;
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorList())
      if (tensor.layout() != at::kStrided) return true;
  }
  return false;
}

}  // namespace

std::map<std::string, FallbackCount> fallbacks() {
  std::lock_guard lock(counts().mutex);
  return counts().by_op;
}
void reset_fallbacks() {
  std::lock_guard lock(counts().mutex);
  counts().by_op.clear();
}
bool fallbacks_allowed() { return allowed(); }
void allow_fallbacks(bool on) { allowed() = on; }

void note_fallback(const std::string& op, const std::string& why) {
  const std::string because = why.empty() ? std::string("clutch has no kernel of it") : why;
  TORCH_CHECK_NOT_IMPLEMENTED(fallbacks_allowed(), op,
                              " would run on the CPU, which is forbidden (CLUTCH_STRICT=host or torch.clutch.forbid_fallbacks()): ", because);
  TORCH_CHECK_NOT_IMPLEMENTED(!WithinBranch::is_there(), op, " would run on the CPU, which the device cannot skip in a branch or a loop: ", because);
  if (device_count() > 0 && clutch::current_stream(device(current_device())).is_capturing())
    TORCH_CHECK_NOT_IMPLEMENTED(false, op, " would run on the CPU, which a graph cannot record: ", because);
  std::lock_guard lock(counts().mutex);
  FallbackCount& count = counts().by_op[op];
  ++count.calls;
  if (count.why.empty()) count.why = because;
}

void run_on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  replace_generators(op, stack);
  if (has_sparse(*stack, op.schema().arguments().size())) return run_sparse(op, stack);
  const std::vector<Written> lazy = make_plain(op, stack);
  at::native::cpu_fallback(op, stack);
  write_lazy(lazy, op, stack);
}

void cpu_fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  note_fallback(c10::toString(op.schema().operator_name()));
  check_written(op, *stack);
  check_devices(op, *stack);
  run_on_cpu(op, stack);
}

}  // namespace torch_clutch
