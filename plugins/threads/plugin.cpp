// SPDX-License-Identifier: Apache-2.0
// The CPU's threads as a device without an OpenCL driver: a plugin whose kernels the machine's C++ compiler builds. docs/plugins.md tells of it.
#include <clutch/plugin.h>

#include "launch.hpp"
#include "program.hpp"
#include "support/system.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace clutch_threads { namespace {

const clutch_host_t* g_host = nullptr;

/// Runs a function of the plugin, whose exceptions become codes with their texts.
template <class Work>
clutch_status_t guarded(const Work& work) noexcept {
  try {
    work();
    return CLUTCH_OK;
  } catch (const std::bad_alloc&) {
    g_host->set_error("the host has no memory left");
    return CLUTCH_OUT_OF_MEMORY;
  } catch (const BuildError& error) {
    g_host->set_error(error.what());
    return CLUTCH_BUILD_FAILURE;
  } catch (const NotAProgram& error) {
    g_host->set_error(error.what());
    return CLUTCH_NOT_SUPPORTED;
  } catch (const std::invalid_argument& error) {
    g_host->set_error(error.what());
    return CLUTCH_INVALID_ARGUMENT;
  } catch (const std::exception& error) {
    g_host->set_error(error.what());
    return CLUTCH_INTERNAL;
  }
}

// ---- the device ----

/// The processor's name in /proc/cpuinfo. A part of the key of cached programs, which run on such processors alone.
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") || line.starts_with("CPU part"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "unknown processor";
}

/// Bytes that vectors of the compiled programs have in a register.
std::int64_t register_bytes() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") ? 64 : __builtin_cpu_supports("avx2") ? 32 : 16;
#else
  return 16;
#endif
}

constexpr std::int64_t kAlignment = 128;
/// A part of the key of cached programs, as the compiler is not: they run where it is gone.
constexpr const char* kVersion = "1-" CLUTCH_THREADS_DIGEST;

clutch_status_t device_count(std::int64_t* result) {
  *result = 1;
  return CLUTCH_OK;
}

clutch_status_t device_facts(std::int64_t, clutch_device_facts_t* result) {
  return guarded([&] {
    static const std::string& name = *new std::string("threads of " + processor());
    const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    const std::uint64_t memory = clutch::detail::host_memory().available.value_or(std::uint64_t{1} << 30);
    clutch_device_facts_t facts{};
    facts.size = result->size;
    facts.name = name.c_str(), facts.vendor = "clutch", facts.driver_version = kVersion;
    facts.extensions = "cl_khr_fp64 cl_khr_global_int32_base_atomics cl_khr_local_int32_base_atomics cl_khr_int64_base_atomics";
    facts.type = CLUTCH_DEVICE_TYPE_CPU;
    facts.compute_units = static_cast<std::int64_t>(thread_count());
    facts.max_group_items = 1024, facts.group_multiple = 1;
    facts.vector_bytes = register_bytes();
    facts.alignment = kAlignment;
    facts.memory_bytes = facts.largest_buffer_bytes = memory;
    facts.cache_bytes = cache > 0 ? static_cast<std::uint64_t>(cache) : 0;
    facts.local_bytes = 256 * 1024, facts.argument_bytes = 4096;
    facts.shares_memory = 1;
    facts.fma_is_one_rounding = facts.divide_is_exact = facts.has_subnormals = 1;
    std::memcpy(result, &facts, std::min(result->size, sizeof facts));
  });
}

// ---- memory ----

struct Memory {
  std::byte* bytes = nullptr;
  bool is_own = true;
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    if (is_own) ::operator delete (bytes, std::align_val_t{kAlignment});
  }
};
std::byte* bytes_of(const void* memory) { return static_cast<const Memory*>(memory)->bytes; }

clutch_status_t memory_allocate(std::int64_t, std::uint64_t bytes, void** result) {
  return guarded([&] {
    auto made = std::make_unique<Memory>();
    made->bytes = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
    *result = made.release();
  });
}
clutch_status_t memory_adopt(std::int64_t, void* host, std::uint64_t, void** result) {
  return guarded([&] {
    auto made = std::make_unique<Memory>();
    made->bytes = static_cast<std::byte*>(host), made->is_own = false;
    *result = made.release();
  });
}
void memory_release(std::int64_t, void* memory) { delete static_cast<Memory*>(memory); }
clutch_status_t memory_map(std::int64_t, void* memory, std::uint64_t offset, std::uint64_t, void** result) {
  *result = bytes_of(memory) + offset;
  return CLUTCH_OK;
}
void memory_unmap(std::int64_t, void*, void*) {}

// ---- programs ----

struct Kernel {
  const Program* program = nullptr;
  const KernelFacts* facts = nullptr;
  std::vector<clutch_device_argument_kind_t> kinds;
  std::vector<std::size_t> bytes;
};

clutch_status_t program_build(std::int64_t, const char* text, std::size_t bytes, const char* options, void** result) {
  return guarded([&] { *result = Program::build({text, bytes}, options ? options : "").release(); });
}
clutch_status_t program_load(std::int64_t, const char* binary, std::size_t bytes, const char*, void** result) {
  return guarded([&] { *result = Program::load({binary, bytes}).release(); });
}
clutch_status_t program_binary(void* program, char* binary, std::size_t capacity, std::size_t* bytes) {
  const std::string& all = static_cast<const Program*>(program)->binary();
  *bytes = all.size();
  if (binary) std::copy_n(all.begin(), std::min(capacity, all.size()), binary);
  return CLUTCH_OK;
}
void program_release(void* program) { delete static_cast<Program*>(program); }

clutch_status_t kernel_create(void* program, const char* name, clutch_device_kernel_facts_t* facts, void** result) {
  return guarded([&] {
    auto made = std::make_unique<Kernel>();
    made->program = static_cast<const Program*>(program);
    made->facts = made->program->kernel(name);
    if (!made->facts) throw std::invalid_argument(std::string("the program has no kernel ") + name);
    for (std::size_t i = 0; i < made->facts->parameters_count; ++i) {
      made->kinds.push_back(made->facts->parameters[i].kind);
      made->bytes.push_back(made->facts->parameters[i].bytes);
    }
    clutch_device_kernel_facts_t told{};
    told.size = facts->size;
    told.arguments_count = made->kinds.size(), told.argument_kinds = made->kinds.data(), told.argument_bytes = made->bytes.data();
    told.max_group_items = 1024;
    for (int d = 0; d < 3; ++d) told.required_items[d] = made->facts->required_items[d];
    std::memcpy(facts, &told, std::min(facts->size, sizeof told));
    *result = made.release();
  });
}
void kernel_release(void* kernel) { delete static_cast<Kernel*>(kernel); }

// ---- commands ----

clutch_status_t queue_create(std::int64_t, void** result) {
  static char one;  // a queue has nothing of its own
  *result = &one;
  return CLUTCH_OK;
}
void queue_release(void*) {}

clutch_status_t launch_kernel(void*, void* kernel, const clutch_device_launch_t* launch) {
  return guarded([&] {
    const auto& own = *static_cast<const Kernel*>(kernel);
    std::vector<Argument> arguments(launch->arguments_count);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const clutch_device_argument_t& given = launch->arguments[i];
      switch (own.kinds[i]) {
        case CLUTCH_DEVICE_ARGUMENT_MEMORY: arguments[i].value = given.value ? bytes_of(given.value) : nullptr; break;
        case CLUTCH_DEVICE_ARGUMENT_LOCAL: arguments[i].local_bytes = given.bytes; break;
        default: arguments[i].value = given.value;
      }
    }
    Item shape{};
    for (int d = 0; d < 3; ++d) shape.groups[d] = launch->groups[d], shape.items[d] = launch->items[d], shape.offset[d] = launch->offset[d];
    shape.dimensions = static_cast<unsigned>(launch->dimensions);
    clutch_threads::launch(*own.program, *own.facts, shape, arguments);
  });
}
clutch_status_t write(void*, void* to, std::uint64_t offset, const void* from, std::uint64_t bytes) {
  std::memcpy(bytes_of(to) + offset, from, bytes);
  return CLUTCH_OK;
}
clutch_status_t read(void*, const void* from, std::uint64_t offset, void* to, std::uint64_t bytes) {
  std::memcpy(to, bytes_of(from) + offset, bytes);
  return CLUTCH_OK;
}
clutch_status_t copy(void*, void* to, std::uint64_t to_offset, const void* from, std::uint64_t from_offset, std::uint64_t bytes) {
  // Two buffers may be views of one memory of the host.
  std::memmove(bytes_of(to) + to_offset, bytes_of(from) + from_offset, bytes);
  return CLUTCH_OK;
}
clutch_status_t fill(void*, void* to, std::uint64_t offset, std::uint64_t bytes, const void* pattern, std::size_t pattern_bytes) {
  std::byte* const begin = bytes_of(to) + offset;
  std::uint64_t done = std::min<std::uint64_t>(pattern_bytes, bytes);
  std::memcpy(begin, pattern, done);
  // What is filled already is the pattern of as much again, in pieces that stay in a cache.
  for (std::uint64_t more; done < bytes; done += more) std::memcpy(begin + done, begin, more = std::min({done, bytes - done, std::uint64_t{1} << 16}));
  return CLUTCH_OK;
}

constexpr clutch_device_backend_t kBackend{sizeof(clutch_device_backend_t),
                                           "clutch threads",
                                           kVersion,
                                           device_count,
                                           device_facts,
                                           memory_allocate,
                                           memory_adopt,
                                           memory_release,
                                           memory_map,
                                           memory_unmap,
                                           program_build,
                                           program_load,
                                           program_binary,
                                           program_release,
                                           kernel_create,
                                           kernel_release,
                                           queue_create,
                                           queue_release,
                                           launch_kernel,
                                           write,
                                           read,
                                           copy,
                                           fill};
constexpr const clutch_device_backend_t* kBackends[] = {&kBackend};
constexpr clutch_plugin_t kPlugin{sizeof(clutch_plugin_t), CLUTCH_PLUGIN_ABI, "threads", kVersion, 1, nullptr, nullptr, 0, nullptr, 0, kBackends, 1};

}}  // namespace clutch_threads

const clutch_plugin_t* clutch_plugin_query(std::int64_t abi, const clutch_host_t* host) {
  clutch_threads::g_host = host;
  return abi >= CLUTCH_PLUGIN_ABI ? &clutch_threads::kPlugin : nullptr;
}
