// SPDX-License-Identifier: Apache-2.0
// Kernels of programs: cl_kernels that threads borrow, and the local sizes of launches.
#include "program/binary_check.hpp"
#include "program/pack_record.hpp"
#include "program/program.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::atomic<std::uint64_t> g_next_kernel{0};

/// Live kernels by id: a thread that ends returns its borrowed cl_kernels to those that still exist.
struct LiveKernels {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, Kernel*> by_id;
};
LiveKernels& live_kernels() {
  static auto* all = new LiveKernels;
  return *all;
}

}  // namespace

struct ThreadKernels {
  std::vector<std::vector<cl_kernel>> free;  // by Kernel::id()
  ~ThreadKernels() { Kernel::return_all(free); }
};
namespace {
thread_local ThreadKernels t_kernels;
}

Kernel::Kernel(Program& program, std::string_view entry, std::string wrapper)
    : program_(program), entry_(entry), wrapper_(std::move(wrapper)), id_(g_next_kernel.fetch_add(1)) {
  cl_kernel first = acquire();
  cl_device_id device = program.runtime().device().id;
  std::size_t size = 1;
  check_cl(clGetKernelWorkGroupInfo(first, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, nullptr), name(), "clGetKernelWorkGroupInfo");
  max_work_group_ = size;
  if (clGetKernelWorkGroupInfo(first, device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof size, &size, nullptr) == CL_SUCCESS && size > 0)
    preferred_multiple_ = size;
  cl_ulong local = 0;
  if (clGetKernelWorkGroupInfo(first, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, nullptr) == CL_SUCCESS) local_bytes_ = local;
  std::array<std::size_t, 3> required{};
  if (clGetKernelWorkGroupInfo(first, device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required, required.data(), nullptr) == CL_SUCCESS)
    required_local_ = required[0];
  cl_uint count = 0;
  check_cl(clGetKernelInfo(first, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), name(), "clGetKernelInfo");
  argument_count_ = static_cast<int>(count);
  give_back(first);
  std::lock_guard lock(live_kernels().mutex);
  live_kernels().by_id[id_] = this;
}

Kernel* Kernel::find(std::uint64_t id) noexcept {
  std::lock_guard lock(live_kernels().mutex);
  auto found = live_kernels().by_id.find(id);
  return found == live_kernels().by_id.end() ? nullptr : found->second;
}

Kernel::~Kernel() {
  std::lock_guard lock(live_kernels().mutex);
  live_kernels().by_id.erase(id_);
}

cl_kernel Kernel::acquire() {
  auto& lists = t_kernels.free;
  if (lists.size() > id_ && !lists[id_].empty()) [[likely]] {
    cl_kernel kernel = lists[id_].back();
    lists[id_].pop_back();
    return kernel;
  }
  std::lock_guard lock(mutex_);
  if (!spare_.empty()) {
    cl_kernel kernel = spare_.back();
    spare_.pop_back();
    return kernel;
  }
  return owned_.emplace_back(make_bare()).get();
}

bool Kernel::takes_any_groups() const noexcept { return wrapper_.empty() && !program_.source().empty(); }

cl_kernel Kernel::make_bare() const {
  cl_int status = CL_SUCCESS;
  cl_kernel made = clCreateKernel(program_.get(), wrapper_.empty() ? entry_.c_str() : wrapper_.c_str(), &status);
  if (status == CL_INVALID_KERNEL_NAME) throw Error(ErrorCode::build_failure, name(), fmt::format("the program has no kernel named {}", name()), status);
  check_cl(status, name(), "clCreateKernel");
  return made;
}

void Kernel::give_back(cl_kernel kernel) noexcept {
  auto& lists = t_kernels.free;
  if (lists.size() <= id_) lists.resize(id_ + 1);
  lists[id_].push_back(kernel);
}

void Kernel::return_all(std::vector<std::vector<cl_kernel>>& lists) noexcept {
  std::lock_guard lock(live_kernels().mutex);
  for (std::size_t id = 0; id < lists.size(); ++id) {
    if (lists[id].empty()) continue;
    auto found = live_kernels().by_id.find(id);
    if (found == live_kernels().by_id.end()) continue;
    std::lock_guard inner(found->second->mutex_);
    auto& spare = found->second->spare_;
    spare.insert(spare.end(), lists[id].begin(), lists[id].end());
  }
}

namespace {

/// Fewer work-items than this in each dimension are a small grid to PoCL, for which it compiles a kernel apart.
constexpr std::uint64_t kWideGrid = 0xFFFF;

/// Most work-items of a group whose size the caller does not choose.
constexpr std::uint64_t kMostChosen = 256;

LocalSize local_size(const Geometry& g, bool links_at_launch) {
  return {.x = static_cast<std::uint32_t>(g.local),
          .y = static_cast<std::uint32_t>(g.local_y),
          .z = static_cast<std::uint32_t>(g.local_z),
          .wide = links_at_launch && std::max({g.global, g.global_y, g.global_z}) >= kWideGrid};
}

}  // namespace

std::uint64_t Kernel::chosen_local(std::uint64_t global) const noexcept {
  if (required_local_ != 0) return required_local_;
  std::uint64_t local = std::min({global, max_work_group_, kMostChosen});
  while (global % local != 0) --local;
  return local;
}

std::uint64_t Kernel::packed(const Geometry& g) const noexcept {
  const LocalSize size = local_size(g, program_.links_at_launch());
  return size.x | std::uint64_t{size.y} << 24 | std::uint64_t{size.z} << 44 | std::uint64_t{size.wide} << 62 | 1ull << 63;
}

bool Kernel::first_launch(const Geometry& g) {
  const std::uint64_t number = packed(g);
  if (last_launched_.load(std::memory_order_relaxed) == number) [[likely]]
    return false;
  std::lock_guard lock(mutex_);
  last_launched_.store(number, std::memory_order_relaxed);
  if (std::find(launched_.begin(), launched_.end(), number) != launched_.end()) return false;
  launched_.push_back(number);
  const LocalSize size = local_size(g, program_.links_at_launch());
  sizes_.push_back(size);
  return records_packs() || !program_.contains(size);
}

std::vector<LocalSize> Kernel::launched() {
  std::lock_guard lock(mutex_);
  return sizes_;
}

void Kernel::check_first(const Geometry& g, const char* op) const {
  if (!program_.links_at_launch()) return;
  const LocalSize size = local_size(g, true);
  if (program_.contains(size)) return;
  if (!may_link())
    throw Error(
        ErrorCode::build_failure, op,
        fmt::format("the driver must find the linker `ld` in PATH to compile {} for {} x {} x {} work-items{}, got none: the process would end; a kernel pack "
                    "that was recorded with such launches needs none. If PoCL's own cache has this kernel, CLUTCH_LINKER=assume permits the launch",
                    name(), size.x, size.y, size.z, size.wide ? " of a wide launch" : ""));
  if (program_.origin() == ProgramOrigin::packed)
    log_once(LogLevel::info, fmt::format("kernel pack: the program of {} was not recorded with {} x {} x {} work-items{}: the driver compiles that now", name(),
                                         size.x, size.y, size.z, size.wide ? " of a wide launch" : ""));
}

}}}  // namespace clutch::v0::detail
