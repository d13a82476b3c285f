// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/stream.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A plugin's implementation of an op. plugin/ makes them.
class PluginImplementation {
 public:
  virtual ~PluginImplementation();
  std::string op;  ///< "linalg::matmul"
  std::string name, plugin;
  std::int64_t score = 0;
  /// Runs it with the addresses of the out form's C++ arguments, in its order. Returns why it refuses them; empty if it ran. Errors: its own.
  virtual std::string run(std::span<const void* const> arguments) const = 0;
  /// What can be counted of a call's arguments: dtypes of tensors, enumerators, what is set and what is given: "f32 f32 f32 f32 order 1".
  virtual std::string call_of(std::span<const void* const> arguments) const = 0;
  /// Why it is not used for this call on the device: what its proof found at the first call, or that the proof had no such call. Empty if it passed.
  virtual std::string refusal(const Device& device, std::span<const void* const> arguments) const = 0;
};

/// Whether it is one of an op, whose name may be that of its form in place or of its out form.
bool is_of_op(const PluginImplementation& implementation, std::string_view op);
/// Whether a plugin brings an implementation of that name. Loads plugins.
bool is_plugin_implementation(std::string_view op, std::string_view name);
void add_plugin_implementation(std::unique_ptr<PluginImplementation> made);
const std::vector<std::unique_ptr<PluginImplementation>>& plugin_implementations();

/// While it lives, ops of this thread do without plugins: what they compute is compared with plugins' results, or they run within a plugin's function.
class WithoutPlugins {
 public:
  WithoutPlugins() noexcept;
  ~WithoutPlugins();
  WithoutPlugins(const WithoutPlugins&) = delete;
  WithoutPlugins& operator=(const WithoutPlugins&) = delete;
};
/// While it lives, ops of this thread take this implementation, which is being proved, by its name, and no other one.
class Proving {
 public:
  explicit Proving(const PluginImplementation& proved) noexcept;
  ~Proving();
  Proving(const Proving&) = delete;
  Proving& operator=(const Proving&) = delete;
  const PluginImplementation& of;
  std::set<std::string> calls;   ///< those that it took
  std::function<void()> before;  ///< called before each call, if there is one

 private:
  Proving* former_;
};

/// Whether plugins bring any for an op. Loads plugins.
bool has_plugin_implementations(std::string_view op);
/// Runs an op by a plugin's implementation: the one that the caller forces by name, else the first of a score above 0 that passed its proof and takes the
/// arguments. False if there is none: then the library's own run. The op has checked its arguments, and its result has elements.
/// Errors: not_supported if the forced one refuses or failed its proof; its own.
bool by_plugin(std::string_view op, std::string_view forced, std::initializer_list<const void*> arguments, const Stream& stream);

}}}  // namespace clutch::v0::detail
