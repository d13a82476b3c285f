// SPDX-License-Identifier: Apache-2.0
#include "encode/plugin_ops.hpp"

#include <clutch/error.hpp>

#include "runtime/branch.hpp"
#include "runtime/last_launch.hpp"
#include "runtime/plugin_hook.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

thread_local int t_without = 0;
thread_local Proving* t_proved = nullptr;

/// Written while plugins are loaded, which nobody reads before.
std::vector<std::unique_ptr<PluginImplementation>>& all() {
  static auto& list = *new std::vector<std::unique_ptr<PluginImplementation>>();
  return list;
}

void need_plugins() {
  static std::atomic<bool> loaded = false;
  if (loaded.load(std::memory_order_acquire)) return;
  load_plugins();
  // A thread that loads them has not all yet.
  if (t_without == 0) loaded.store(true, std::memory_order_release);
}

void ran(const PluginImplementation& by) { last_launch().note(Interned(fmt::format("{} # by plugin {}", by.name, by.plugin))); }

}  // namespace

PluginImplementation::~PluginImplementation() = default;
void add_plugin_implementation(std::unique_ptr<PluginImplementation> made) {
  // The highest score first.
  const auto place = std::find_if(all().begin(), all().end(), [&](const auto& other) { return other->score < made->score; });
  all().insert(place, std::move(made));
}
const std::vector<std::unique_ptr<PluginImplementation>>& plugin_implementations() { return all(); }

WithoutPlugins::WithoutPlugins() noexcept { ++t_without; }
WithoutPlugins::~WithoutPlugins() { --t_without; }
Proving::Proving(const PluginImplementation& proved) noexcept : of(proved), former_(std::exchange(t_proved, this)) {}
Proving::~Proving() { t_proved = former_; }

bool is_of_op(const PluginImplementation& implementation, std::string_view op) {
  // An op may call itself by its name without namespaces.
  std::string_view own = implementation.op;
  if (const auto colons = own.rfind(':'); colons != std::string_view::npos && op.find(':') == std::string_view::npos) own.remove_prefix(colons + 1);
  const auto is = [&](std::string_view known) {
    return op == known || (op.starts_with(known) && (op.substr(known.size()) == "_" || op.substr(known.size()) == "_out"));
  };
  // One of an op's form with a function stands beside those of the op itself.
  constexpr std::string_view kWithFunction = "_function";
  return is(own) || (own.ends_with(kWithFunction) && is(own.substr(0, own.size() - kWithFunction.size())));
}
bool is_plugin_implementation(std::string_view op, std::string_view name) {
  need_plugins();
  return std::any_of(all().begin(), all().end(), [&](const auto& one) { return one->name == name && is_of_op(*one, op); });
}

bool has_plugin_implementations(std::string_view op) {
  if (t_without > 0) return false;
  need_plugins();
  return std::any_of(all().begin(), all().end(), [&](const auto& one) { return one->op == op; });
}

bool by_plugin(std::string_view op, std::string_view forced, std::initializer_list<const void*> arguments, const Stream& stream) {
  if (t_without > 0) return false;
  need_plugins();
  const std::span<const void* const> given(arguments.begin(), arguments.size());
  for (const auto& one : all()) {
    if (one->op != op || (t_proved && one.get() != &t_proved->of)) continue;
    const bool is_forced = !forced.empty() && one->name == forced;
    if (!t_proved && !is_forced && (!forced.empty() || one->score <= 0)) continue;
    if (!is_forced && current_branch()) continue;  // it may do work that the device cannot skip
    std::string why = t_proved ? std::string() : one->refusal(stream.device(), given);
    if (why.empty()) {
      {
        const WithoutPlugins within;
        if (t_proved && t_proved->before) t_proved->before();
        why = one->run(given);
      }
      if (why.empty()) {
        if (t_proved) t_proved->calls.insert(one->call_of(given));
        ran(*one);
        return true;
      }
    }
    // What refuses in a proof is not computed by the library's own, which would have to build its programs.
    if (is_forced || t_proved)
      throw Error(ErrorCode::not_supported, op, fmt::format("implementation {} of plugin {} refuses: {}", one->name, one->plugin, why));
  }
  return false;
}

}}}  // namespace clutch::v0::detail
