// SPDX-License-Identifier: Apache-2.0
// What the Python package calls, as ops of the library `clutch`: one shared object serves every Python.
#include "ops/table.hpp"
#include "runtime/block.hpp"
#include "runtime/convert.hpp"
#include "runtime/generator.hpp"

#include <clutch/allocator.hpp>
#include <clutch/dlpack.hpp>
#include <clutch/settings.hpp>
#include <clutch/stream.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace torch_clutch {
namespace {

std::tuple<std::string, std::string, std::string> device_name(int64_t index) {
  const clutch::Device& named = device(static_cast<c10::DeviceIndex>(index));
  return {named.name(), named.platform(), named.driver_version()};
}
std::tuple<int64_t, int64_t, bool, bool> device_facts(int64_t index) {
  return translated([&] {
    const clutch::DeviceTraits& traits = device(static_cast<c10::DeviceIndex>(index)).traits();
    return std::tuple<int64_t, int64_t, bool, bool>(static_cast<int64_t>(traits.global_bytes), traits.compute_units, traits.fp64,
                                                    traits.type == clutch::DeviceType::gpu);
  });
}

c10::Dict<std::string, int64_t> fallback_calls() {
  c10::Dict<std::string, int64_t> calls;
  for (const auto& [op, count] : fallbacks()) calls.insert(op, count.calls);
  return calls;
}
c10::Dict<std::string, std::string> fallback_reasons() {
  c10::Dict<std::string, std::string> reasons;
  for (const auto& [op, count] : fallbacks()) reasons.insert(op, count.why);
  return reasons;
}
std::vector<std::string> op_table() {
  std::vector<std::string> rows;
  for (const OpRow& row : OpTable::rows()) rows.push_back(c10::str(row.family, "\t", row.aten, "\t", row.clutch));
  return rows;
}

// A DLManagedTensor's address: Python makes the capsule.
int64_t to_dlpack(const at::Tensor& tensor, bool host) {
  return translated([&] {
    const auto memory = host ? clutch::interop::DlpackMemory::host : clutch::interop::DlpackMemory::device;
    return reinterpret_cast<int64_t>(clutch::interop::to_dlpack(wrap(tensor), memory));
  });
}
at::Tensor from_dlpack(int64_t address, int64_t index) {
  return translated(
      [&] { return unwrap(clutch::interop::from_dlpack(reinterpret_cast<DLManagedTensor*>(address), device(static_cast<c10::DeviceIndex>(index)))); });
}

void dump_memory_snapshot(const std::string& path) {
  translated([&] { clutch::dump_memory_snapshot(path); });
}
void record_memory_history(bool on, int64_t max_entries, bool clear_history) {
  translated([&] {
    on ? clutch::record_memory_history({.max_entries = static_cast<std::uint64_t>(max_entries), .clear_history = clear_history})
       : clutch::stop_memory_history();
  });
}

double memory_fraction(int64_t index) {
  return translated([&] { return clutch::get_per_process_memory_fraction(device(static_cast<c10::DeviceIndex>(index))); });
}
void set_memory_fraction(double fraction, int64_t index) {
  translated([&] { clutch::set_per_process_memory_fraction(fraction, device(static_cast<c10::DeviceIndex>(index))); });
}

// Pools that Python holds, by the second number of their ids. Never destroyed: Python's objects may go after this file's.
struct Pools {
  std::mutex mutex;
  std::map<std::int64_t, std::unique_ptr<clutch::MemPool>> all;
};
Pools& pools() {
  static auto* made = new Pools;
  return *made;
}
std::tuple<int64_t, int64_t> make_pool(bool use_on_oom, bool no_split) {
  return translated([&] {
    auto made = std::make_unique<clutch::MemPool>(clutch::MemPoolOptions{.use_on_oom = use_on_oom, .no_split = no_split});
    const clutch::PoolId id = made->id();
    std::lock_guard lock(pools().mutex);
    pools().all.emplace(static_cast<std::int64_t>(id.second), std::move(made));
    return std::tuple(static_cast<int64_t>(id.first), static_cast<int64_t>(id.second));
  });
}
void drop_pool(int64_t id) {
  std::unique_ptr<clutch::MemPool> last;  // goes when the lock is given back: its end frees memory
  std::lock_guard lock(pools().mutex);
  auto found = pools().all.find(id);
  if (found == pools().all.end()) return;
  last = std::move(found->second);
  pools().all.erase(found);
}
std::vector<std::unique_ptr<clutch::PoolGuard>>& pools_in_use() {
  static thread_local std::vector<std::unique_ptr<clutch::PoolGuard>> stack;
  return stack;
}
void begin_pool(int64_t first, int64_t second) {
  pools_in_use().push_back(std::make_unique<clutch::PoolGuard>(clutch::PoolId{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)}));
}
void end_pool() {
  TORCH_CHECK(!pools_in_use().empty(), "clutch: end_pool() without begin_pool() of this thread");
  pools_in_use().pop_back();
}

}  // namespace

TORCH_LIBRARY(clutch, library) {
  library.def("device_count() -> int", [] { return static_cast<int64_t>(device_count()); });
  library.def("why_no_device() -> str", [] { return why_no_device(); });
  library.def("in_bad_fork() -> bool", [] { return in_bad_fork(); });
  library.def("current_device() -> int", [] { return static_cast<int64_t>(current_device()); });
  library.def("set_current_device(int index) -> ()", [](int64_t index) { set_current_device(static_cast<c10::DeviceIndex>(index)); });
  library.def("finish_all() -> ()", [] { finish_all(); });
  library.def("device_name(int index) -> (str, str, str)", &device_name);
  library.def("device_facts(int index) -> (int, int, bool, bool)", &device_facts);
  library.def("default_generator(int index) -> Generator?", [](int64_t index) { return default_generator(static_cast<c10::DeviceIndex>(index)); });
  library.def("seed_default_generators(int seed) -> ()", [](int64_t seed) { seed_default_generators(static_cast<std::uint64_t>(seed)); });
  library.def("fallback_calls() -> Dict(str, int)", &fallback_calls);
  library.def("fallback_reasons() -> Dict(str, str)", &fallback_reasons);
  library.def("reset_fallbacks() -> ()", [] { reset_fallbacks(); });
  library.def("fallbacks_allowed() -> bool", [] { return fallbacks_allowed(); });
  library.def("allow_fallbacks(bool allowed) -> ()", [](bool allowed) { allow_fallbacks(allowed); });
  library.def("op_table() -> str[]", &op_table);
  library.def("address_range() -> str", [] { return address_range(); });
  library.def("to_dlpack(Tensor tensor, bool host) -> int", &to_dlpack);
  library.def("from_dlpack(int address, int index) -> Tensor", &from_dlpack);
  library.def("dump_memory_snapshot(str path) -> ()", &dump_memory_snapshot);
  library.def("record_memory_history(bool on, int max_entries, bool clear_history) -> ()", &record_memory_history);
  library.def("memory_fraction(int index) -> float", &memory_fraction);
  library.def("set_memory_fraction(float fraction, int index) -> ()", &set_memory_fraction);
  library.def("make_pool(bool use_on_oom, bool no_split) -> (int, int)", &make_pool);
  library.def("drop_pool(int id) -> ()", &drop_pool);
  library.def("begin_pool(int first, int second) -> ()", &begin_pool);
  library.def("end_pool() -> ()", [] { end_pool(); });
  library.def("is_capturing() -> bool", [] { return clutch::current_stream(device(current_device())).is_capturing(); });
  library.def("build_info() -> str", [] { return clutch::build_info(); });
}

}  // namespace torch_clutch
