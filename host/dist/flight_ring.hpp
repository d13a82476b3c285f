// SPDX-License-Identifier: Apache-2.0
// A flight recorder: a process's last calls, in a file that is mapped, so that they outlive the process however it ends. docs/flight.md has the file's format.
#pragma once
#include "dist/flight_image.hpp"
#include "support/shared_file.hpp"

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct FlightOptions {
  std::filesystem::path file;  ///< takes the place of one of that name; empty: memory of this process alone
  std::uint32_t records = 2000;
  int rank = 0, world_size = 1;
};

/// A place in the caller's source, as std::source_location, which clang 14 does not have, tells it; texts are kept for good.
struct FlightPlace {
  const char* file = "";
  const char* function = "";
  std::uint32_t line = 0;

  constexpr FlightPlace() = default;
  constexpr FlightPlace(const char* file_name, const char* function_name, std::uint32_t line_number)
      : file(file_name), function(function_name), line(line_number) {}
  template <class Location>
  requires requires(const Location& l) { l.file_name(), l.function_name(), l.line(); }
  constexpr FlightPlace(const Location& l) : file(l.file_name()), function(l.function_name()), line(l.line()) {}
  static constexpr FlightPlace current(const char* file_name = __builtin_FILE(), const char* function_name = __builtin_FUNCTION(),
                                       std::uint32_t line_number = __builtin_LINE()) {
    return {file_name, function_name, line_number};
  }
};

/// A call that begins. Spans are read during begin() alone.
struct FlightCall {
  FlightOp op = FlightOp::all_reduce;
  std::uint32_t group = 0;
  std::uint64_t collective_seq = 0;
  std::uint64_t p2p_seq = 0;
  std::uint64_t op_id = 0;
  std::uint64_t batch = 0;
  std::optional<DType> in_dtype, out_dtype;
  std::span<const std::span<const std::int64_t>> in, out;  ///< sizes of each tensor, as FlightOp says
  FlightReduce reduce = FlightReduce::none;
  std::int32_t root = -1, peer = -1, tag = 0;
  std::int64_t timeout_ms = 0;
  FlightPlace where = FlightPlace::current();
};

/// Records calls of any number of threads at a time. A call takes about 100 ns in all, no memory and no lock.
/// Children of fork() do not record: the ring is their parent's.
class FlightRing {
 public:
  /// Errors: invalid_argument for no or more than 2^20 records, or a rank that the world does not have; io.
  explicit FlightRing(const FlightOptions& options);
  ~FlightRing();
  FlightRing(const FlightRing&) = delete;
  FlightRing& operator=(const FlightRing&) = delete;

  /// Names a group, before calls of it. The ring keeps the last 256 of them; lists of ranks that take more than 24 steps are left out.
  void group(std::uint32_t index, std::string_view name, std::string_view description, std::span<const std::int32_t> ranks);
  /// What to add to this host's clock for that of rank 0.
  void clock_offset(std::int64_t nanoseconds) noexcept;

  static constexpr std::uint64_t kNotRecorded = ~std::uint64_t{0};
  /// Returns the record's id, which the functions below take. They do nothing once the record's place has another one, and for kNotRecorded.
  std::uint64_t begin(const FlightCall& call) noexcept;
  void started(std::uint64_t id) noexcept { end(id, FlightState::started, {}); }
  void completed(std::uint64_t id) noexcept { end(id, FlightState::completed, {}); }
  void timed_out(std::uint64_t id, std::string_view why = {}) noexcept { end(id, FlightState::timed_out, why); }
  void failed(std::uint64_t id, std::string_view why) noexcept { end(id, FlightState::failed, why); }
  /// A receive from any rank has got its message: from whom, and its number.
  void matched(std::uint64_t id, std::int32_t peer, std::uint64_t p2p_seq) noexcept;

  /// The ring as it is now, while others record.
  FlightImage image() const;
  /// A ring's file, of a process that runs or has ended. Errors: io if it cannot be read, invalid_argument if it is not a ring's or has been damaged.
  static FlightImage read(const std::filesystem::path& file);
  /// True if a file's first bytes are those of a ring.
  static bool is_ring(std::span<const std::byte> begin) noexcept;

 private:
  using Word = std::atomic_ref<std::uint64_t>;
  struct Sources;
  Word word(std::size_t offset) const noexcept { return Word(reinterpret_cast<std::uint64_t*>(mapping_.memory() + offset)[0]); }
  std::uint32_t source_of(const FlightPlace& where) noexcept;
  /// Notes how ticks and the steady clock stand.
  void read_clocks() noexcept;
  void end(std::uint64_t id, FlightState state, std::string_view why) noexcept;
  /// Takes a record for a change; 0 if it is not that id's any more.
  std::uint64_t take(std::size_t at, std::uint64_t id) noexcept;

  clutch::detail::SharedMapping mapping_;
  std::uint64_t capacity_;
  std::size_t records_;
  bool has_ticks_;
  unsigned forks_;
  std::atomic<std::uint64_t> clocks_read_{0};  ///< ticks
  std::unique_ptr<Sources> sources_;
  std::mutex groups_mutex_, clocks_mutex_;
};

}}}}  // namespace clutch::v0::dist::detail
