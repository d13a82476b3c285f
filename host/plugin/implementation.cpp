// SPDX-License-Identifier: Apache-2.0
#include "plugin/implementation.hpp"

#include <clutch/device.hpp>
#include <clutch/error.hpp>

#include "capi/plugin_status.hpp"
#include "plugin/problems.hpp"
#include "plugin/proofs.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

class ByFunction : public PluginImplementation {
 public:
  ByFunction(const capi::PluginCall& call, const clutch_plugin_op_t& given, const std::string& from) : call_(call), function_(given.function) {
    op = call.op, name = given.implementation, plugin = from, score = given.score;
  }

  std::string run(std::span<const void* const> arguments) const override {
    const clutch_status_t status = capi::call_plugin([&] { return call_.call(function_, arguments.data()); });
    if (status == CLUTCH_OK) return {};
    const std::string text = capi::reason_of(status);
    if (status == CLUTCH_NOT_SUPPORTED) return text;
    throw Error(capi::code_of(status), op, fmt::format("implementation {} of plugin {} failed: {}", name, plugin, text));
  }

  std::string call_of(std::span<const void* const> arguments) const override { return call_.tell(arguments.data()); }

  std::string refusal(const Device& device, std::span<const void* const> arguments) const override {
    const std::string call = call_of(arguments);
    std::unique_lock lock(mutex_);
    bool is_proved_now = !proofs_.contains(device.index());
    Proof& proof = proof_on(device);
    if (proof.wrong.empty() && has_functions(op) && !proof.calls.contains(call) && !proof.refused.contains(call)) {
      is_proved_now = true;
      run_proof(proof, [&] { prove_call(*this, device, arguments, proof); });
    }
    if (const std::string wrong = proof.wrong; !wrong.empty()) {
      // Not within the lock: who takes the log's lines may ask for the plugins.
      lock.unlock();
      if (is_proved_now)
        log_line(LogLevel::warn, fmt::format("implementation {} of {} by plugin {} is not used on device {}: {}", name, op, plugin, device.index(), wrong));
      return wrong;
    }
    return proof.calls.contains(call) ? std::string() : fmt::format("dtypes and options must be those of a problem that it took in its proof, got {}", call);
  }

  std::string told() const {
    std::lock_guard lock(mutex_);
    std::string text;
    for (const auto& [device, proof] : proofs_)
      text += fmt::format("{}device {}: {}", text.empty() ? "" : "\n", device, proof.wrong.empty() ? "passed" : proof.wrong);
    return text;
  }

 private:
  /// What its proof found, which is made at the first call.
  Proof& proof_on(const Device& device) const {
    const auto known = proofs_.find(device.index());
    if (known != proofs_.end()) return known->second;
    Proof proof;
    run_proof(proof, [&] { proof = prove(*this, device); });
    return proofs_.emplace(device.index(), std::move(proof)).first->second;
  }
  template <class Make>
  static void run_proof(Proof& proof, const Make& make) {
    // A proof waits for results of its own; a recording that goes on has nothing to do with it.
    const RecordingExempt exempt;
    const Aside aside;
    try {
      make();
    } catch (const Error& error) {
      proof.wrong = fmt::format("its proof ended with {}: {}", clutch::name(error.code()), error.what());
    }
  }

  const capi::PluginCall& call_;
  void (*function_)(void);
  mutable std::mutex mutex_;
  mutable std::map<int, Proof> proofs_;  // by device
};

}  // namespace

std::unique_ptr<PluginImplementation> make_implementation(const capi::PluginCall& call, const clutch_plugin_op_t& op, const std::string& plugin) {
  return std::make_unique<ByFunction>(call, op, plugin);
}
std::string proofs_of(const PluginImplementation& implementation) { return static_cast<const ByFunction&>(implementation).told(); }

}}}  // namespace clutch::v0::detail
