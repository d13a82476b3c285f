// SPDX-License-Identifier: Apache-2.0
// Runs a schedule on host memory.
#pragma once
#include "dist/schedule.hpp"
#include "dist/transport.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

/// Memory of a rank in blocks of `block` elements, the last of which may be shorter; or in blocks of different lengths, whose begins stand in a list, and their
/// end: then `block` is the longest one.
struct HostMemory {
  std::span<const std::byte> input;
  std::span<std::byte> output;
  std::size_t element = 4;  ///< bytes of an element
  std::size_t block = 0;    ///< elements of a block
  std::vector<std::size_t> input_begins = {}, output_begins = {};
};

/// to[i] = parts[0][i] + parts[1][i] + ..., in the canonical order, or what else the caller combines numbers by. `to` may be one of the parts.
using Sum = std::function<void(std::byte* to, std::span<const std::byte* const> parts, std::size_t elements)>;

/// Memory that calls need for a while, kept for later calls, as pages that are new cost more than what is done with them. Its contents are undefined.
class ScratchMemory {
 public:
  std::shared_ptr<std::byte[]> get(std::size_t bytes);

 private:
  struct Kept {
    std::shared_ptr<std::byte[]> memory;
    std::size_t bytes;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;
};

/// Where blocks of a room of so many bytes begin and end, as far as they are there.
struct ByteRange {
  std::size_t begin, end;
};
ByteRange range_of(const HostMemory& shape, std::size_t room, Place at, std::int32_t blocks);

/// Elements of a block where `total` elements are cut into `blocks`.
std::size_t block_of(std::size_t total, std::int32_t blocks);

/// A schedule on its way.
class Execution {
 public:
  /// `scratch`: where it takes memory from; null: from the system.
  Execution(std::shared_ptr<const Schedule> schedule, HostMemory memory, Sum sum, std::unique_ptr<Exchange> exchange, ScratchMemory* scratch = nullptr);
  /// Goes on as far as it can without waiting. True once all is done.
  bool advance();
  Exchange& exchange() noexcept { return *exchange_; }

 private:
  std::span<const std::byte> read(Place at, std::int32_t blocks) const;
  std::span<std::byte> write(Place at, std::int32_t blocks);
  void begin_round();
  void end_round();

  const std::shared_ptr<const Schedule> schedule_;
  const HostMemory memory_;
  const Sum sum_;
  const std::unique_ptr<Exchange> exchange_;
  std::shared_ptr<std::byte[]> scratch_;
  std::size_t scratch_bytes_ = 0;
  std::size_t at_ = 0, end_ = 0;  ///< steps of the round
};

}}}}  // namespace clutch::v0::dist::detail
