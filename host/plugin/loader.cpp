// SPDX-License-Identifier: Apache-2.0
#include <clutch/error.hpp>
#include <clutch/plugin.hpp>
#include <clutch/version.hpp>

#include "capi/plugin_status.hpp"
#include "encode/plugin_ops.hpp"
#include "plugin/driver/driver.hpp"
#include "plugin/graph_backend.hpp"
#include "plugin/implementation.hpp"
#include "runtime/op_name.hpp"
#include "runtime/plugin_hook.hpp"
#include "runtime/settings.hpp"
#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace clutch { inline namespace v0 {
namespace detail {
namespace {

#if defined(_WIN32)
constexpr std::string_view kSuffix = ".dll";
#elif defined(__APPLE__)
constexpr std::string_view kSuffix = ".dylib";
#else
constexpr std::string_view kSuffix = ".so";
#endif
constexpr const char* kNamedSwitch = "CLUTCH_PLUGINS names it";
constexpr const char* kFoundSwitch = "CLUTCH_PLUGIN_AUTOLOAD=0 loads none of that folder";

/// A file that is asked for, and the setting that says so.
struct Asked {
  std::filesystem::path file;
  const char* by;
};

/// A plugin with what it describes.
struct LoadedPlugin {
  Asked asked;
  clutch_plugin_t description{};
  Plugin shown;
};

struct State {
  std::mutex mutex;
  bool done = false;
  /// What failed, for each call that comes later.
  std::optional<std::pair<ErrorCode, std::string>> failure;
  std::vector<LoadedPlugin> loaded;
};
State& state() {
  static auto& s = *new State();
  return s;
}
thread_local bool t_loading = false;
/// While plugins are loaded on this thread, ops that they call are the library's own.
class Loading {
 public:
  Loading() noexcept { t_loading = true; }
  ~Loading() { t_loading = false; }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

 private:
  WithoutPlugins own_;
};

[[noreturn]] void fail(ErrorCode code, const Asked& asked, std::string_view why) {
  throw Error(code, "plugins", fmt::format("the plugin {} is not used: {} ({})", asked.file.string(), why, asked.by));
}

/// What of a plugin's struct this library and the plugin both know. Errors: not_supported for a size that none has.
template <class S>
S known(const S* given, const Asked& asked, std::string_view what) {
  S result{};
  if (!given) fail(ErrorCode::invalid_argument, asked, fmt::format("{} must be there, got NULL", what));
  if (given->size < 3 * sizeof(void*) || given->size % sizeof(void*) != 0 || given->size > 4096)
    fail(ErrorCode::not_supported, asked, fmt::format("the size of {} must be that of a struct of plugin.h, got {}", what, given->size));
  std::memcpy(&result, given, std::min(given->size, sizeof(S)));
  return result;
}

std::string text_of(const char* text, const Asked& asked, std::string_view what) {
  if (!text || !*text) fail(ErrorCode::invalid_argument, asked, fmt::format("{} must have a text, got none", what));
  return text;
}

void log_of_plugin(std::int64_t level, const char* text) { log_line(static_cast<LogLevel>(std::clamp<std::int64_t>(level, 1, 4)), text ? text : ""); }

const clutch_host_t& host() {
  static const clutch_host_t h{sizeof(clutch_host_t), CLUTCH_PLUGIN_ABI, CLUTCH_VERSION, &capi::kApi, capi::set_plugin_error, log_of_plugin};
  return h;
}

std::vector<Asked> files() {
  std::vector<Asked> result;
  std::string_view names = the_settings().plugins.value;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(kPathSeparator));
    // A name without a folder is a file of the current one: the system would look for it among its libraries.
    std::error_code failed;
    const std::filesystem::path whole = std::filesystem::absolute(name, failed);
    if (!name.empty()) result.push_back({failed ? std::filesystem::path(name) : whole, kNamedSwitch});
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
  if (!the_settings().plugin_autoload.on()) return result;
  const std::filesystem::path library = file_of([] {});
  // A path that the current folder decides could lead to files of someone else.
  if (!library.is_absolute()) return result;
  const std::filesystem::path folder = (library.parent_path() / CLUTCH_PLUGINS_FROM_LIBRARY).lexically_normal();
  std::error_code none;
  std::vector<Asked> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(kSuffix)) continue;
    const Asked asked{entry.path(), kFoundSwitch};
    if (!is_of_trusted_owner(entry.path(), library))
      fail(ErrorCode::io, asked,
           "a file that is loaded must belong to the user, root or the library's owner and be written by nobody else, got one that others own or may write");
    found.push_back(asked);
  }
  std::sort(found.begin(), found.end(), [](const Asked& a, const Asked& b) { return a.file < b.file; });
  result.insert(result.end(), found.begin(), found.end());
  return result;
}

LoadedPlugin query(const Asked& asked) {
  std::string reason;
  void* const library = load_library(asked.file.string().c_str(), reason);
  if (!library) fail(ErrorCode::io, asked, fmt::format("a plugin must be a shared library that can be loaded, got: {}", reason));
  const auto function = reinterpret_cast<decltype(&clutch_plugin_query)>(find_symbol(library, "clutch_plugin_query"));
  if (!function) fail(ErrorCode::not_supported, asked, "a plugin must export clutch_plugin_query, got a library without it");
  // A symbol of the C ABI that the plugin's own libraries give is another library's.
  if (void* const other = find_symbol(library, "clutch_abi_version"); other && other != reinterpret_cast<void*>(capi::kApi.abi_version))
    fail(ErrorCode::not_supported, asked, "a plugin must call the library that loads it by host->api, got one that loads another libclutch");
  const clutch_plugin_t* given = nullptr;
  capi::call_plugin([&] {
    given = function(CLUTCH_PLUGIN_ABI, &host());
    return CLUTCH_OK;
  });
  if (!given)
    fail(ErrorCode::not_supported, asked,
         fmt::format("clutch_plugin_query must describe the plugin for ABI {}, got NULL: {}", CLUTCH_PLUGIN_ABI, capi::plugin_error()));
  LoadedPlugin loaded{.asked = asked, .description = known(given, asked, "clutch_plugin_t")};
  const clutch_plugin_t& d = loaded.description;
  if (d.abi < 1 || d.abi > CLUTCH_PLUGIN_ABI)
    fail(ErrorCode::not_supported, asked, fmt::format("the plugin's ABI must be from 1 to {}, got {}", CLUTCH_PLUGIN_ABI, d.abi));
  loaded.shown.name = text_of(d.name, asked, "the plugin's name");
  loaded.shown.version = d.version ? d.version : "";
  loaded.shown.path = asked.file.string();
  loaded.shown.score = d.score;
  return loaded;
}

const capi::PluginCall* call_of(std::string_view function) {
  for (const capi::PluginCall& call : capi::plugin_calls())
    if (call.function == function) return &call;
  return nullptr;
}

/// Makes what the plugin describes, without side effects.
void describe(LoadedPlugin& loaded, std::vector<std::unique_ptr<PluginImplementation>>& made, std::vector<clutch_graph_backend_t>& backends,
              std::vector<clutch_device_backend_t>& devices) {
  const clutch_plugin_t& d = loaded.description;
  const Asked& asked = loaded.asked;
  if ((d.ops_count > 0 && !d.ops) || (d.graph_backends_count > 0 && !d.graph_backends) || (d.device_backends_count > 0 && !d.device_backends))
    fail(ErrorCode::invalid_argument, asked, "lists must be there, got NULL");
  for (std::size_t i = 0; i < d.ops_count; ++i) {
    const auto op = known(d.ops[i], asked, "clutch_plugin_op_t");
    const std::string function = text_of(op.op, asked, "an op");
    const capi::PluginCall* const call = call_of(function);
    if (!call) {
      std::string names;
      for (const capi::PluginCall& c : capi::plugin_calls()) names += fmt::format("{}{}", names.empty() ? "" : ", ", c.function);
      fail(ErrorCode::invalid_argument, asked, fmt::format("an op must be one of {}, got {}", names, function));
    }
    const std::string name = text_of(op.implementation, asked, "an implementation's name");
    if (!op.function) fail(ErrorCode::invalid_argument, asked, fmt::format("implementation {} must have a function, got NULL", name));
    for (const auto& list : {&plugin_implementations(), static_cast<const std::vector<std::unique_ptr<PluginImplementation>>*>(&made)})
      for (const auto& other : *list)
        if (other->op == call->op && other->name == name)
          fail(ErrorCode::invalid_argument, asked,
               fmt::format("an implementation of {} must have a name of its own, got {}, which plugin {} has", call->op, name, other->plugin));
    made.push_back(make_implementation(*call, op, loaded.shown.name));
    loaded.shown.ops.push_back({std::string(call->op), name, op.score, {}});
  }
  for (std::size_t i = 0; i < d.graph_backends_count; ++i) {
    const auto backend = known(d.graph_backends[i], asked, "clutch_graph_backend_t");
    const std::string name = text_of(backend.name, asked, "a graph backend's name");
    if (!backend.create || !backend.instantiate || !backend.replay || !backend.reset || !backend.destroy)
      fail(ErrorCode::invalid_argument, asked, fmt::format("graph backend {} must have all five functions, got NULL among them", name));
    backends.push_back(backend);
    loaded.shown.graph_backends.push_back(name);
  }
  for (std::size_t i = 0; i < d.device_backends_count; ++i) {
    const auto b = known(d.device_backends[i], asked, "clutch_device_backend_t");
    const std::string name = text_of(b.name, asked, "a device backend's name");
    if (!b.device_count || !b.device_facts || !b.memory_allocate || !b.memory_release || !b.memory_map || !b.memory_unmap || !b.program_build ||
        !b.program_load || !b.program_binary || !b.program_release || !b.kernel_create || !b.kernel_release || !b.queue_create || !b.queue_release ||
        !b.launch || !b.write || !b.read || !b.copy || !b.fill)
      fail(ErrorCode::invalid_argument, asked, fmt::format("device backend {} must have all functions but memory_adopt, got NULL among them", name));
    devices.push_back(b);
    loaded.shown.device_backends.push_back(name);
  }
}

void load_all(State& s) {
  std::vector<LoadedPlugin> loaded;
  for (const Asked& asked : files()) loaded.push_back(query(asked));
  // Of those of one name the one that suits the machine best.
  std::map<std::string, LoadedPlugin*> best;
  for (LoadedPlugin& one : loaded) {
    one.shown.used = false;
    if (one.shown.score <= 0) continue;
    LoadedPlugin*& held = best[one.shown.name];
    if (!held || one.shown.score > held->shown.score) held = &one;
  }
  for (LoadedPlugin& one : loaded) {
    if (const auto found = best.find(one.shown.name); found == best.end() || found->second != &one) continue;
    if (one.description.init) {
      if (const clutch_status_t status = capi::call_plugin([&] { return one.description.init(&host()); }); status != CLUTCH_OK)
        fail(capi::code_of(status, ErrorCode::not_supported), one.asked, fmt::format("its init must succeed, got {}: {}", status, capi::plugin_error()));
    }
    std::vector<std::unique_ptr<PluginImplementation>> made;
    std::vector<clutch_graph_backend_t> backends;
    std::vector<clutch_device_backend_t> devices;
    describe(one, made, backends, devices);
    try {
      for (const clutch_graph_backend_t& backend : backends) add_graph_backend(backend);
      for (const clutch_device_backend_t& backend : devices) add_device_backend(backend);
    } catch (const Error& error) {
      fail(error.code(), one.asked, error.message());
    }
    for (auto& implementation : made) add_plugin_implementation(std::move(implementation));
    one.shown.used = true;
  }
  s.loaded = std::move(loaded);
}

}  // namespace

bool loads_plugins() noexcept { return t_loading; }

void load_plugins() {
  if (t_loading) return;
  State& s = state();
  std::lock_guard lock(s.mutex);
  if (!s.done && !s.failure) {
    const Loading loading;
    try {
      load_all(s);
      s.done = true;
    } catch (const Error& error) {
      s.failure = {error.code(), error.message()};
    }
  }
  if (s.failure) throw Error(s.failure->first, "plugins", s.failure->second);
}

}  // namespace detail

std::vector<Plugin> plugins() {
  detail::OpName named("plugins");
  detail::load_plugins();
  std::vector<Plugin> result;
  for (const detail::LoadedPlugin& one : detail::state().loaded) {
    result.push_back(one.shown);
    for (PluginOp& op : result.back().ops)
      for (const auto& made : detail::plugin_implementations())
        if (one.shown.used && made->op == op.op && made->name == op.name) op.proof = detail::proofs_of(*made);
  }
  return result;
}

}}  // namespace clutch::v0
