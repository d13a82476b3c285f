// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/cl_api.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;

/// Memory of one segment.
struct SegmentMemory {
  ClMem buffer;
  std::byte* host = nullptr;  ///< its address if clutch mapped it
};

/// Where segments come from.
class SegmentSource {
 public:
  SegmentSource() = default;
  virtual ~SegmentSource() = default;
  SegmentSource(const SegmentSource&) = delete;
  SegmentSource& operator=(const SegmentSource&) = delete;

  /// Bytes of the pages that give_back() takes; 0: segments are given back as a whole.
  virtual std::uint64_t page() const noexcept { return 0; }
  /// Bytes that a segment can grow to; 0: segments do not grow.
  virtual std::uint64_t reservable() const noexcept { return 0; }
  /// True if the memory is the host's, which other devices and programs take from, too.
  virtual bool of_host() const noexcept { return false; }
  /// Makes memory of `bytes`. Without it, `why_not` has the reason and the status is that of running out of memory; `grows`: only what
  /// blocks use of it will be used. Errors: opencl, device_lost for other failures.
  virtual cl_int make(SegmentMemory& made, std::uint64_t bytes, bool grows, std::string_view op, std::string& why_not) = 0;
  /// Gives whole pages back until they are used again, with undefined contents. No work may use them. False if the system refuses.
  virtual bool give_back(const SegmentMemory&, std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept { return false; }
  /// Makes access to whole pages end the process, or allows it again, where that can be.
  virtual void protect(const SegmentMemory&, std::uint64_t /*offset*/, std::uint64_t /*bytes*/, bool /*accessible*/) noexcept {}
};

/// Segments that clutch maps, for devices that compute in the host's memory (found out by trying), else the driver's. Errors: opencl, device_lost.
std::unique_ptr<SegmentSource> make_segment_source(Runtime& runtime);

}}}  // namespace clutch::v0::detail
