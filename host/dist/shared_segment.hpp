// SPDX-License-Identifier: Apache-2.0
// Memory that processes of a host share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Where another process finds a segment: numbers that it is told.
struct SegmentName {
  std::int64_t host = 0;  ///< of the machine and its processes' numbers; 0: not known
  std::int64_t process = 0, file = 0, bytes = 0;
};

/// A mapped file without a name, which goes with the last process that maps it.
class SharedSegment {
 public:
  /// A new segment of zeros. Errors: out_of_memory, not_supported where the system has none.
  static std::shared_ptr<SharedSegment> make(std::size_t bytes);
  /// That of another process of this host, or null where it cannot be reached.
  static std::shared_ptr<SharedSegment> open(const SegmentName& name);
  /// The segment itself, if this process has made it; else as open().
  static std::shared_ptr<SharedSegment> find(const SegmentName& name);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  const SegmentName& name() const noexcept { return name_; }
  /// From now on no other process can find it.
  void forget_name() noexcept;

 private:
  SharedSegment(std::span<std::byte> bytes, SegmentName name, int file) noexcept : bytes_(bytes), name_(name), file_(file) {}
  const std::span<std::byte> bytes_;
  const SegmentName name_;
  int file_;
};

}}}}  // namespace clutch::v0::dist::detail
