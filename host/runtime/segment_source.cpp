// SPDX-License-Identifier: Apache-2.0
#include "runtime/segment_source.hpp"

#include "runtime/allocator_config.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

constexpr std::string_view kOp = "allocator";

/// Memory that clutch maps, unmapped when the driver has destroyed the buffer over it: after the last command that uses it.
class Mapping {
 public:
  /// Null, with the system's reason in `why_not`, if it refuses.
  static std::unique_ptr<Mapping> make(std::uint64_t bytes, MapFor what, std::string& why_not) {
    void* memory = map_memory(bytes, what, why_not);
    return memory ? std::unique_ptr<Mapping>(new Mapping(memory, bytes)) : nullptr;
  }
  ~Mapping() { unmap_memory(memory_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* memory() const noexcept { return static_cast<std::byte*>(memory_); }

 private:
  Mapping(void* memory, std::uint64_t bytes) noexcept : memory_(memory), bytes_(bytes) {}
  void* memory_;
  std::uint64_t bytes_;
};

/// A buffer over the mapping from `at` on, which it then owns. Null, with the status, if the driver refuses; the mapping is gone then.
ClMem buffer_over(cl_context context, std::unique_ptr<Mapping> mapping, std::uint64_t at, std::uint64_t bytes, cl_int& status) {
  ClMem buffer(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, mapping->memory() + at, &status));
  if (status != CL_SUCCESS) return {};
  auto unmap = [](cl_mem, void* owned) CL_CALLBACK { delete static_cast<Mapping*>(owned); };
  status = clSetMemObjectDestructorCallback(buffer.get(), unmap, mapping.get());
  if (status != CL_SUCCESS) {
    buffer = ClMem();  // before its memory
    return {};
  }
  (void)mapping.release();  // the buffer owns it
  return buffer;
}

class DriverSource final : public SegmentSource {
 public:
  explicit DriverSource(Runtime& runtime) : runtime_(runtime) {}
  cl_int make(SegmentMemory& made, std::uint64_t bytes, bool, std::string_view op, std::string& why_not) override {
    cl_int status = CL_SUCCESS;
    made.buffer = ClMem(clCreateBuffer(runtime_.context(), CL_MEM_READ_WRITE, bytes, nullptr, &status));
    if (status == CL_SUCCESS) return status;
    if (!is_out_of_memory(status) && status != CL_INVALID_BUFFER_SIZE) throw_cl(status, op, "clCreateBuffer");
    why_not = fmt::format("clCreateBuffer of {} bytes failed with {}", bytes, cl_error_name(status));
    return status;
  }

 private:
  Runtime& runtime_;
};

class MappedSource final : public SegmentSource {
 public:
  explicit MappedSource(Runtime& runtime)
      : runtime_(runtime), page_(page_bytes()), reservable_(claimed_traits(runtime.device()).max_alloc_bytes / kSegmentRounding * kSegmentRounding) {}
  std::uint64_t page() const noexcept override { return page_; }
  std::uint64_t reservable() const noexcept override { return reservable_; }
  bool of_host() const noexcept override { return true; }
  cl_int make(SegmentMemory& made, std::uint64_t bytes, bool grows, std::string_view op, std::string& why_not) override {
    const std::uint64_t begin = grows ? 0 : next_begin(bytes);
    auto mapping = Mapping::make(round_up(begin + bytes, page_), grows ? MapFor::reserve : MapFor::use, why_not);
    if (!mapping) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    made.host = mapping->memory() + begin;
    cl_int status = CL_SUCCESS;
    made.buffer = buffer_over(runtime_.context(), std::move(mapping), begin, bytes, status);
    if (status == CL_SUCCESS) return status;
    if (!is_out_of_memory(status) && status != CL_INVALID_BUFFER_SIZE) throw_cl(status, op, "clCreateBuffer");
    why_not = fmt::format("clCreateBuffer of {} bytes failed with {}", bytes, cl_error_name(status));
    return status;
  }
  bool give_back(const SegmentMemory& memory, std::uint64_t offset, std::uint64_t bytes) noexcept override {
    // A page of the segment may begin within one of the system's, of which those go that the range has whole.
    const auto from = reinterpret_cast<std::uintptr_t>(memory.host + offset), first = round_up(from, std::uintptr_t{page_}),
               end = (from + bytes) / page_ * page_;
    return first < end && give_back_pages(memory.host + offset + (first - from), end - first);
  }
  void protect(const SegmentMemory& memory, std::uint64_t offset, std::uint64_t bytes, bool accessible) noexcept override {
    protect_pages(memory.host + offset, bytes, accessible);
  }

 private:
  /// Where in its first page a segment begins. Tensors that have segments of their own would all begin with a page, and in kernels that read many of them side
  /// by side their elements would share a few sets of a core's cache: in one of eight ways no more than eight tensors have a place at once.
  std::uint64_t next_begin(std::uint64_t bytes) {
    constexpr std::uint64_t kLarge = 2 << 20, kStep = 256;  // a step of cache lines, which keeps the alignment that DLPack wants
    if (bytes < kLarge || the_settings().check_memory.on()) return 0;
    return made_.fetch_add(1, std::memory_order_relaxed) * kStep % page_;
  }

  Runtime& runtime_;
  const std::uint64_t page_, reservable_;
  std::atomic<std::uint64_t> made_{0};
};

/// True if commands write where the host reads, and the other way round, without maps and copies between.
bool computes_in_host_memory(Runtime& runtime) {
  constexpr std::size_t kWords = 1024;
  const std::uint64_t bytes = round_up(kWords * sizeof(cl_uint), page_bytes());
  std::string why_not;
  auto mapping = Mapping::make(bytes, MapFor::use, why_not);
  if (!mapping) return false;
  auto* words = reinterpret_cast<cl_uint*>(mapping->memory());
  cl_int status = CL_SUCCESS;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ClQueue queue(clCreateCommandQueue(runtime.context(), runtime.device().id, 0, &status));
#pragma GCC diagnostic pop
  check_cl(status, kOp, "clCreateCommandQueue");
  ClMem buffer = buffer_over(runtime.context(), std::move(mapping), 0, bytes, status);
  if (status == CL_INVALID_VALUE || status == CL_INVALID_HOST_PTR || status == CL_INVALID_OPERATION) return false;
  check_cl(status, kOp, "clCreateBuffer");
  // Twice, because a driver may copy when a buffer is first used.
  std::array<cl_uint, kWords> read{};
  bool same = true;
  for (cl_uint round = 0; round < 2 && same; ++round) {
    const cl_uint pattern = 0x5a17c0de + round;
    check_cl(clEnqueueFillBuffer(queue.get(), buffer.get(), &pattern, sizeof pattern, 0, bytes / 2, 0, nullptr, nullptr), kOp, "clEnqueueFillBuffer");
    check_cl(clFinish(queue.get()), kOp, "clFinish");
    same = std::all_of(words, words + kWords / 2, [&](cl_uint word) { return word == pattern; });
    words[kWords - 1] = ~pattern;
    check_cl(clEnqueueReadBuffer(queue.get(), buffer.get(), CL_TRUE, 0, sizeof read, read.data(), 0, nullptr, nullptr), kOp, "clEnqueueReadBuffer");
    same = same && read[0] == pattern && read[kWords - 1] == ~pattern;
  }
  return same;
}

}  // namespace

std::unique_ptr<SegmentSource> make_segment_source(Runtime& runtime) {
  const DeviceTraits& traits = claimed_traits(runtime.device());
  if (traits.type == DeviceType::cpu && !traits.simulator) {
    if (computes_in_host_memory(runtime)) return std::make_unique<MappedSource>(runtime);
    log_line(LogLevel::info, fmt::format("memory of device {} comes from its driver, which does not compute in the host's", runtime.device().index));
  }
  return std::make_unique<DriverSource>(runtime);
}

}}}  // namespace clutch::v0::detail
