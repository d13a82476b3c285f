// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_ring.hpp"

#include "support/system.hpp"

#include <clutch/error.hpp>
#include <clutch/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

// The file: a page of header, groups, sources, records, each of whole words of 64 bits in the machine's byte order. An entry of the three tables begins with
// its sequence word, which tells whether the rest is whole: (id << 8) | (changes << 2) | phase. A change takes the entry by exchange of that word, and gives it
// back.

constexpr std::uint64_t kMagic = 0x544847494c46'4c43ull;  // "CLFLIGHT" in the order of little-endian machines: on others it reads backwards, and is refused
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::uint64_t kMostRecords = 1u << 20;

constexpr std::size_t kHeaderBytes = 4096;
/// Words of the header. `closed`, `next` and the clock's offset change.
enum HeaderWord : std::size_t {
  h_magic,
  h_version,
  h_file_bytes,
  h_capacity,
  h_groups,   ///< entries
  h_sources,  ///< entries
  h_rank,     ///< and the world's size in the upper half
  h_process,
  h_machine,
  h_begun,
  h_monotonic,  ///< the steady and the wall clock at one time
  h_real,
  h_clock_offset,
  h_closed,
  h_host = 16,         ///< 64 bytes
  h_library = 24,      ///< 64 bytes
  h_first_ticks = 32,  ///< the ticks that records have, and the steady clock, when the ring was made ...
  h_first_time,
  h_last_ticks,  ///< ... and a while ago: in turn this and the next pair, which h_last tells
  h_last_time,
  h_other_ticks,
  h_other_time,
  h_last,
  h_next = 64,  ///< id of the next call; the only one of its cache line
  h_groups_used = 128,
  h_sources_used,
  h_dropped,  ///< calls that found their record in another thread's hands for long
};

constexpr std::size_t kGroups = 256, kGroupWords = 64;
constexpr std::size_t kRuns = 24;
/// A list of ranks is runs of {first, step, count}, packed in two words: first | step, count.
enum GroupWord : std::size_t { g_sequence, g_index, g_size, g_runs, g_name = 4, g_description = 10, g_run = 16 };
static_assert(g_run + 2 * kRuns == kGroupWords);
constexpr std::size_t kNameBytes = 48;
constexpr std::uint64_t kNoRanks = ~std::uint64_t{0};

constexpr std::size_t kSources = 512, kSourceWords = 32;
enum SourceWord : std::size_t { s_sequence, s_line, s_file = 2, s_function = 17 };
constexpr std::size_t kTextBytes = 120;
static_assert(s_function + kTextBytes / kWord == kSourceWords);

constexpr std::size_t kRecordWords = 32;
enum RecordWord : std::size_t {
  r_sequence,
  r_created,
  r_started,
  r_completed,
  r_state,
  r_thread,
  r_collective_seq,
  r_p2p_seq,
  r_op_id,
  r_batch,
  r_group,  ///< and the source in the upper half
  r_kinds,  ///< op, dtypes, reduce, flags of 8 bits; numbers of tensors of 12 bits
  r_root,   ///< and the peer
  r_tag,    ///< and the line
  r_timeout,
  r_in_hash,
  r_out_hash,
  r_sizes,  ///< 24 halves of words: per tensor its number of dimensions | is-wide << 8, then the sizes
  r_why = 29,
};
constexpr std::size_t kSizeHalves = 24, kWhyBytes = 24;
static_assert(r_sizes + kSizeHalves / 2 == r_why && r_why + kWhyBytes / kWord == kRecordWords);
constexpr std::uint64_t kMostTensors = 0xfff;
constexpr std::uint8_t kNoDType = 0xff;
enum Flags : std::uint8_t { f_in_total = 1, f_out_total = 2 };

enum Phase : std::uint64_t { p_empty, p_writing, p_changing, p_whole };
constexpr std::uint64_t sequence_of(std::uint64_t id, std::uint64_t changes, Phase phase) { return id << 8 | (changes & 63) << 2 | phase; }
constexpr Phase phase_of(std::uint64_t sequence) { return static_cast<Phase>(sequence & 3); }
constexpr std::uint64_t id_of(std::uint64_t sequence) { return sequence >> 8; }

constexpr std::size_t kGroupsAt = kHeaderBytes;
constexpr std::size_t kSourcesAt = kGroupsAt + kGroups * kGroupWords * kWord;
constexpr std::size_t kRecordsAt = kSourcesAt + kSources * kSourceWords * kWord;
constexpr std::size_t file_bytes(std::uint64_t capacity) { return kRecordsAt + static_cast<std::size_t>(capacity) * kRecordWords * kWord; }

constexpr std::uint64_t halves(std::uint32_t low, std::uint32_t high) { return low | static_cast<std::uint64_t>(high) << 32; }
constexpr std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
constexpr std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

std::int64_t now() noexcept { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
/// What records have for a time: the processor's ticks, which take half as long to read as the steady clock, or that clock where there are none.
std::uint64_t ticks([[maybe_unused]] bool has_ticks) noexcept {
#ifdef __x86_64__
  return has_ticks ? __builtin_ia32_rdtsc() : static_cast<std::uint64_t>(now());
#else
  return static_cast<std::uint64_t>(now());
#endif
}
/// Ticks after which the pair of clocks is read again: about a second.
constexpr std::uint64_t kTicksBetweenPairs = 2'000'000'000;

std::int64_t real_now() noexcept { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// id % capacity: division of 32 bits takes half the time.
std::size_t slot_of(std::uint64_t id, std::uint64_t capacity) noexcept {
  return id >> 32 == 0 ? static_cast<std::uint32_t>(id) % static_cast<std::uint32_t>(capacity) : static_cast<std::size_t>(id % capacity);
}

/// Counts forks on the child's side: a ring that another count made is the parent's.
std::atomic<unsigned> g_forks{0};
unsigned forks_watched() {
  static std::once_flag watched;
  std::call_once(watched, [] { clutch::detail::after_fork_in_child([] { g_forks.fetch_add(1, std::memory_order_relaxed); }); });
  return g_forks.load(std::memory_order_relaxed);
}

struct Hash {
  std::uint64_t value = 0x9e3779b97f4a7c15ull;
  void add(std::uint64_t x) noexcept {
    value = (value ^ x) * 0xff51afd7ed558ccdull;
    value ^= value >> 32;
  }
  std::uint64_t end() const noexcept { return value | 1; }
};
template <class Tensors>
std::uint64_t hash_tensors(const Tensors& tensors) noexcept {
  Hash hash;
  for (const auto& sizes : tensors) {
    hash.add(sizes.size());
    for (const std::int64_t n : sizes) hash.add(static_cast<std::uint64_t>(n));
  }
  return hash.end();
}

using Sides = std::span<const std::span<const std::int64_t>>;

bool is_wide(std::span<const std::int64_t> sizes) noexcept {
  return std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return static_cast<std::uint64_t>(n) > 0xffffffffu; });
}
/// Halves of words that a side takes.
std::size_t halves_of(Sides tensors) noexcept {
  std::size_t sum = 0;
  for (const auto& sizes : tensors) sum += 1 + sizes.size() * (is_wide(sizes) ? 2 : 1);
  return sum;
}
constexpr std::size_t kTotalHalves = 3;

/// Sizes of a call in halves of words.
struct Packed {
  std::array<std::uint32_t, kSizeHalves> half{};
  std::size_t used = 0;
  void tensor(std::span<const std::int64_t> sizes) noexcept {
    const bool wide = is_wide(sizes);
    half[used++] = static_cast<std::uint32_t>(sizes.size()) | (wide ? 0x100u : 0u);
    for (const std::int64_t n : sizes) {
      half[used++] = low(static_cast<std::uint64_t>(n));
      if (wide) half[used++] = high(static_cast<std::uint64_t>(n));
    }
  }
  void side(Sides tensors, bool as_total) noexcept {
    if (!as_total) {
      for (const auto& sizes : tensors) tensor(sizes);
      return;
    }
    std::uint64_t total = 0;
    for (const auto& sizes : tensors) {
      std::uint64_t product = 1;
      for (const std::int64_t n : sizes) product *= static_cast<std::uint64_t>(n);
      total += product;
    }
    half[used++] = 0x101u;
    half[used++] = low(total);
    half[used++] = high(total & 0x7fffffffffffffffull);
  }
};

/// Text as words, cut at its end or, with `keep_end`, at its begin; the rest is 0.
template <std::size_t bytes>
std::array<std::uint64_t, bytes / kWord> words_of(std::string_view text, bool keep_end = false) noexcept {
  std::array<std::uint64_t, bytes / kWord> words{};
  if (text.size() > bytes && keep_end) text.remove_prefix(text.size() - bytes);
  if (!text.empty()) std::memcpy(words.data(), text.data(), std::min(text.size(), bytes));
  return words;
}

std::string_view path_of(const FlightOptions& options) {
  static thread_local std::string text;
  return text = options.file.string();
}

std::size_t checked_bytes(const FlightOptions& options) {
  if (options.records < 1 || options.records > kMostRecords)
    throw Error(ErrorCode::invalid_argument, "dist::open", fmt::format("flight_records must be from 1 to {}, got {}", kMostRecords, options.records));
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size)
    throw Error(ErrorCode::invalid_argument, "dist::open",
                fmt::format("the rank must be one of the world, got rank {} of {}", options.rank, options.world_size));
  return file_bytes(options.records);
}

}  // namespace

std::uint64_t hash_of(const FlightSizes& sizes) noexcept { return hash_tensors(sizes); }

/// Which entry of the table a place of the source has, by address of its file's name and line, which take no comparison of text.
struct FlightRing::Sources {
  static constexpr std::size_t kSlots = 2048, kProbes = 8;
  std::array<std::atomic<std::uint64_t>, kSlots> keys{};
  std::array<std::atomic<std::uint32_t>, kSlots> entries{};
  std::mutex mutex;
  static std::uint64_t key_of(const FlightPlace& where) noexcept { return reinterpret_cast<std::uintptr_t>(where.file) << 16 ^ where.line; }
  static std::size_t slot_of(std::uint64_t key) noexcept { return (key * 0x9e3779b97f4a7c15ull) >> 53; }
};

FlightRing::FlightRing(const FlightOptions& options)
    : mapping_(std::string(path_of(options)), checked_bytes(options), 0644),
      capacity_(options.records),
      records_(kRecordsAt),
      has_ticks_(clutch::detail::has_steady_ticks()),
      forks_(forks_watched()),
      sources_(std::make_unique<Sources>()) {
  auto check = [](const std::string& problem) {
    if (!problem.empty()) throw Error(ErrorCode::io, "dist::open", fmt::format("the flight recorder's file must be writable, got: {}", problem));
  };
  check(mapping_.problem());
  auto set = [&](std::size_t at, std::uint64_t value) { word(at * kWord).store(value, std::memory_order_relaxed); };
  auto text = [&](std::size_t at, std::string_view value) {
    const auto words = words_of<64>(value);
    for (std::size_t i = 0; i < words.size(); ++i) set(at + i, words[i]);
  };
  const clutch::detail::ProcessIdentity me = clutch::detail::this_process();
  set(h_version, kVersion);
  set(h_file_bytes, mapping_.bytes());
  set(h_capacity, capacity_);
  set(h_groups, kGroups);
  set(h_sources, kSources);
  set(h_rank, halves(static_cast<std::uint32_t>(options.rank), static_cast<std::uint32_t>(options.world_size)));
  set(h_process, me.id);
  set(h_machine, me.machine);
  set(h_begun, me.begun);
  // One clock between two readings of the other: the shortest of some tries.
  auto pair_of = [](auto outer, auto inner, auto keep) {
    std::uint64_t shortest = ~std::uint64_t{0};
    for (int i = 0; i < 8; ++i) {
      const auto before = static_cast<std::uint64_t>(outer());
      const auto between = static_cast<std::uint64_t>(inner());
      const std::uint64_t took = static_cast<std::uint64_t>(outer()) - before;
      if (took < shortest) shortest = took, keep(before + took / 2, between);
    }
  };
  pair_of(now, real_now, [&](std::uint64_t steady, std::uint64_t real) { set(h_monotonic, steady), set(h_real, real); });
  auto ticks_now = [this] { return ticks(has_ticks_); };
  pair_of(ticks_now, now, [&](std::uint64_t tick, std::uint64_t steady) { set(h_first_ticks, tick), set(h_first_time, steady); });
  if (has_ticks_) std::this_thread::sleep_for(std::chrono::microseconds(500));
  pair_of(ticks_now, now, [&](std::uint64_t tick, std::uint64_t steady) { set(h_last_ticks, tick), set(h_last_time, steady); });
  text(h_host, me.host);
  text(h_library, "clutch " CLUTCH_VERSION);
  word(h_magic * kWord).store(kMagic, std::memory_order_release);
  check(mapping_.publish());
}

FlightRing::~FlightRing() {
  if (g_forks.load(std::memory_order_relaxed) == forks_) word(h_closed * kWord).store(1, std::memory_order_release);
}

void FlightRing::clock_offset(std::int64_t nanoseconds) noexcept {
  if (g_forks.load(std::memory_order_relaxed) != forks_) return;
  word(h_clock_offset * kWord).store(static_cast<std::uint64_t>(nanoseconds), std::memory_order_relaxed);
}

void FlightRing::group(std::uint32_t index, std::string_view name, std::string_view description, std::span<const std::int32_t> ranks) {
  if (g_forks.load(std::memory_order_relaxed) != forks_) return;
  struct Run {
    std::uint32_t first, step, count;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    Run run{static_cast<std::uint32_t>(ranks[i]), 0, 1};
    for (; i + run.count < ranks.size(); ++run.count) {
      const auto step = static_cast<std::uint32_t>(ranks[i + run.count]) - static_cast<std::uint32_t>(ranks[i + run.count - 1]);
      if (run.count == 1) run.step = step;
      if (step != run.step) break;
    }
    i += run.count;
    runs.push_back(run);
  }
  const bool fits = runs.size() <= kRuns;
  std::lock_guard lock(groups_mutex_);
  const std::uint64_t used = word(h_groups_used * kWord).load(std::memory_order_relaxed);
  // A group that is named again keeps its place; a new one takes the oldest one's if there is no other.
  std::uint64_t place = used;
  for (std::uint64_t i = used > kGroups ? used - kGroups : 0; i < used; ++i)
    if (word(kGroupsAt + (i % kGroups * kGroupWords + g_index) * kWord).load(std::memory_order_relaxed) == index) place = i;
  const std::size_t at = kGroupsAt + place % kGroups * kGroupWords * kWord;
  auto set = [&](std::size_t i, std::uint64_t value) { word(at + i * kWord).store(value, std::memory_order_release); };
  const std::uint64_t changes = (word(at).load(std::memory_order_relaxed) >> 2) + 1;
  set(g_sequence, sequence_of(place, changes, p_writing));
  set(g_index, index);
  set(g_size, ranks.size());
  set(g_runs, fits ? runs.size() : kNoRanks);
  const auto name_words = words_of<kNameBytes>(name), description_words = words_of<kNameBytes>(description);
  for (std::size_t i = 0; i < name_words.size(); ++i) set(g_name + i, name_words[i]), set(g_description + i, description_words[i]);
  for (std::size_t i = 0; i < kRuns; ++i) {
    const Run run = fits && i < runs.size() ? runs[i] : Run{};
    set(g_run + 2 * i, halves(run.first, run.step));
    set(g_run + 2 * i + 1, run.count);
  }
  set(g_sequence, sequence_of(place, changes, p_whole));
  if (place == used) word(h_groups_used * kWord).store(used + 1, std::memory_order_release);
}

std::uint32_t FlightRing::source_of(const FlightPlace& where) noexcept {
  const std::uint64_t key = Sources::key_of(where);
  const std::size_t slot = Sources::slot_of(key);
  for (std::size_t i = 0; i < Sources::kProbes; ++i) {
    const std::size_t at = (slot + i) % Sources::kSlots;
    const std::uint64_t there = sources_->keys[at].load(std::memory_order_acquire);
    if (there == key) return sources_->entries[at].load(std::memory_order_relaxed);
    if (there == 0) break;
  }
  // The first call from there.
  std::lock_guard lock(sources_->mutex);
  const auto file = words_of<kTextBytes>(where.file, true);
  const auto function = words_of<kTextBytes>(where.function);
  const std::uint64_t used = word(h_sources_used * kWord).load(std::memory_order_relaxed);
  auto at_of = [](std::uint64_t i) { return kSourcesAt + i * kSourceWords * kWord; };
  std::uint64_t entry = 0;
  for (; entry < used; ++entry) {
    bool same = word(at_of(entry) + s_line * kWord).load(std::memory_order_relaxed) == where.line;
    for (std::size_t i = 0; same && i < file.size(); ++i) same = word(at_of(entry) + (s_file + i) * kWord).load(std::memory_order_relaxed) == file[i];
    if (same) break;
  }
  if (entry == kSources) return 0;
  if (entry == used) {
    const std::size_t at = at_of(entry);
    auto set = [&](std::size_t i, std::uint64_t value) { word(at + i * kWord).store(value, std::memory_order_release); };
    set(s_sequence, sequence_of(entry, 0, p_writing));
    set(s_line, where.line);
    for (std::size_t i = 0; i < file.size(); ++i) set(s_file + i, file[i]), set(s_function + i, function[i]);
    set(s_sequence, sequence_of(entry, 0, p_whole));
    word(h_sources_used * kWord).store(used + 1, std::memory_order_release);
  }
  const auto number = static_cast<std::uint32_t>(entry) + 1;
  for (std::size_t i = 0; i < Sources::kProbes; ++i) {
    const std::size_t at = (slot + i) % Sources::kSlots;
    if (sources_->keys[at].load(std::memory_order_relaxed) != 0) continue;
    sources_->entries[at].store(number, std::memory_order_relaxed);
    sources_->keys[at].store(key, std::memory_order_release);
    break;
  }
  return number;
}

void FlightRing::read_clocks() noexcept {
  if (!clocks_mutex_.try_lock()) return;
  // The pair that is not in use, so that a process that is killed meanwhile leaves a whole one.
  const std::uint64_t last = 1 - (word(h_last * kWord).load(std::memory_order_relaxed) & 1);
  const std::uint64_t before = ticks(has_ticks_);
  const std::int64_t steady = now();
  const std::uint64_t after = ticks(has_ticks_);
  // Not if the thread was put aside between them.
  if (after - before < 100'000) {
    word((h_last_ticks + 2 * last) * kWord).store(before + (after - before) / 2, std::memory_order_release);
    word((h_last_time + 2 * last) * kWord).store(static_cast<std::uint64_t>(steady), std::memory_order_release);
    word(h_last * kWord).store(last, std::memory_order_release);
    clocks_read_.store(after, std::memory_order_relaxed);
  }
  clocks_mutex_.unlock();
}

std::uint64_t FlightRing::begin(const FlightCall& call) noexcept {
  if (g_forks.load(std::memory_order_relaxed) != forks_) return kNotRecorded;
  const std::uint64_t created = ticks(has_ticks_);
  if (created - clocks_read_.load(std::memory_order_relaxed) > kTicksBetweenPairs) [[unlikely]]
    read_clocks();
  const std::uint32_t source = source_of(call.where);
  const std::uint64_t id = word(h_next * kWord).fetch_add(1, std::memory_order_relaxed);
  const std::size_t at = records_ + slot_of(id, capacity_) * (kRecordWords * kWord);
  Word sequence = word(at);
  std::uint64_t there = sequence.load(std::memory_order_relaxed);
  for (int tries = 0;; ++tries) {
    const bool is_taken = phase_of(there) == p_writing || phase_of(there) == p_changing;
    // A thread that stood still while others went once around the ring.
    const bool is_late = phase_of(there) != p_empty && id_of(there) > id;
    if (is_late || tries > 100000) {
      word(h_dropped * kWord).fetch_add(1, std::memory_order_relaxed);
      return kNotRecorded;
    }
    if (is_taken) {
      there = sequence.load(std::memory_order_relaxed);
    } else if (sequence.compare_exchange_weak(there, sequence_of(id, 0, p_writing), std::memory_order_acq_rel, std::memory_order_relaxed)) {
      break;
    }
  }
  const std::size_t in_halves = halves_of(call.in), out_halves = halves_of(call.out);
  bool in_total = false, out_total = false;
  if (in_halves + out_halves > kSizeHalves) {
    // The longer one first, which may be enough.
    (in_halves >= out_halves ? in_total : out_total) = true;
    if (std::min(in_halves, out_halves) + kTotalHalves > kSizeHalves) in_total = out_total = true;
  }
  Packed sizes;
  sizes.side(call.in, in_total);
  sizes.side(call.out, out_total);
  auto number = [](std::optional<DType> dtype) { return dtype ? static_cast<std::uint8_t>(*dtype) : kNoDType; };
  const std::uint64_t kinds = static_cast<std::uint64_t>(call.op) | static_cast<std::uint64_t>(number(call.in_dtype)) << 8 |
                              static_cast<std::uint64_t>(number(call.out_dtype)) << 16 | static_cast<std::uint64_t>(call.reduce) << 24 |
                              static_cast<std::uint64_t>((in_total ? f_in_total : 0) | (out_total ? f_out_total : 0)) << 32 |
                              std::min<std::uint64_t>(call.in.size(), kMostTensors) << 40 | std::min<std::uint64_t>(call.out.size(), kMostTensors) << 52;
  static thread_local const std::uint64_t thread = clutch::detail::thread_id();
  // Each store is a release, so that none is seen before the sequence word says that the record is being written.
  auto set = [&](std::size_t i, std::uint64_t value) { word(at + i * kWord).store(value, std::memory_order_release); };
  set(r_created, created);
  set(r_started, 0);
  set(r_completed, 0);
  set(r_state, static_cast<std::uint64_t>(FlightState::scheduled));
  set(r_thread, thread);
  set(r_collective_seq, call.collective_seq);
  set(r_p2p_seq, call.p2p_seq);
  set(r_op_id, call.op_id);
  set(r_batch, call.batch);
  set(r_group, halves(call.group, source));
  set(r_kinds, kinds);
  set(r_root, halves(static_cast<std::uint32_t>(call.root), static_cast<std::uint32_t>(call.peer)));
  set(r_tag, halves(static_cast<std::uint32_t>(call.tag), call.where.line));
  set(r_timeout, static_cast<std::uint64_t>(call.timeout_ms));
  set(r_in_hash, hash_tensors(call.in));
  set(r_out_hash, hash_tensors(call.out));
  for (std::size_t i = 0; i < kSizeHalves / 2; ++i) set(r_sizes + i, halves(sizes.half[2 * i], sizes.half[2 * i + 1]));
  set(r_why, 0);
  sequence.store(sequence_of(id, 0, p_whole), std::memory_order_release);
  // The next call's record, which is out of the nearest caches by now.
  const std::byte* next = mapping_.memory() + records_ + slot_of(id + 1, capacity_) * (kRecordWords * kWord);
  for (std::size_t line = 0; line < kRecordWords * kWord; line += 64) __builtin_prefetch(next + line, 1);
  return id;
}

std::uint64_t FlightRing::take(std::size_t at, std::uint64_t id) noexcept {
  Word sequence = word(at);
  std::uint64_t there = sequence.load(std::memory_order_relaxed);
  for (int tries = 0; tries < 100000; ++tries) {
    if (id_of(there) != id || phase_of(there) == p_empty) return 0;
    const std::uint64_t changed = sequence_of(id, (there >> 2) + 1, p_changing);
    if (phase_of(there) != p_whole) {
      there = sequence.load(std::memory_order_relaxed);
    } else if (sequence.compare_exchange_weak(there, changed, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return changed;
    }
  }
  return 0;
}

void FlightRing::end(std::uint64_t id, FlightState state, std::string_view why) noexcept {
  if (id == kNotRecorded || g_forks.load(std::memory_order_relaxed) != forks_) return;
  const std::uint64_t time = ticks(has_ticks_);
  const std::size_t at = records_ + slot_of(id, capacity_) * (kRecordWords * kWord);
  const std::uint64_t taken = take(at, id);
  if (taken == 0) return;
  auto set = [&](std::size_t i, std::uint64_t value) { word(at + i * kWord).store(value, std::memory_order_release); };
  if (!why.empty()) {
    const auto words = words_of<kWhyBytes>(why);
    for (std::size_t i = 0; i < words.size(); ++i) set(r_why + i, words[i]);
  }
  set(state == FlightState::started ? r_started : r_completed, time);
  set(r_state, static_cast<std::uint64_t>(state));
  set(r_sequence, taken | p_whole);
}

void FlightRing::matched(std::uint64_t id, std::int32_t peer, std::uint64_t p2p_seq) noexcept {
  if (id == kNotRecorded || g_forks.load(std::memory_order_relaxed) != forks_) return;
  const std::size_t at = records_ + slot_of(id, capacity_) * (kRecordWords * kWord);
  const std::uint64_t taken = take(at, id);
  if (taken == 0) return;
  auto set = [&](std::size_t i, std::uint64_t value) { word(at + i * kWord).store(value, std::memory_order_release); };
  const std::uint64_t root = word(at + r_root * kWord).load(std::memory_order_relaxed);
  set(r_root, halves(low(root), static_cast<std::uint32_t>(peer)));
  set(r_p2p_seq, p2p_seq);
  set(r_sequence, taken | p_whole);
}

namespace {

using Words = std::vector<std::uint64_t>;
/// Copies words from a place of the ring on.
using Copy = std::function<void(std::size_t offset, std::span<std::uint64_t> to)>;

/// Reads a ring that may change meanwhile. A copy of an entry is whole if its sequence word is the same in a copy that was begun when the first had ended.
class RingReader {
 public:
  RingReader(std::uint64_t bytes, Copy copy, const std::string& of) : bytes_(bytes), copy_(std::move(copy)), of_(of) {}

  FlightImage read() {
    if (bytes_ < kHeaderBytes) refuse(fmt::format("a ring must have a header of {} bytes, got {} bytes", kHeaderBytes, bytes_));
    // The wall clock before the ring is copied: what others did before it was copied, too.
    const std::int64_t taken = real_now();
    header_.resize(kHeaderBytes / kWord);
    copy_(0, header_);
    if (header_[h_magic] != kMagic) refuse("a ring must begin with CLFLIGHT in this machine's byte order, got other bytes");
    if (header_[h_version] != kVersion) refuse(fmt::format("a ring must be of version {}, got {}", kVersion, header_[h_version]));
    image_.capacity = header_[h_capacity];
    if (image_.capacity < 1 || image_.capacity > kMostRecords || header_[h_groups] != kGroups || header_[h_sources] != kSources ||
        header_[h_file_bytes] != file_bytes(image_.capacity) || bytes_ != file_bytes(image_.capacity))
      refuse(fmt::format("a ring of {} records must have {} bytes, got {}", image_.capacity, image_.capacity <= kMostRecords ? file_bytes(image_.capacity) : 0,
                         bytes_));
    first_.resize((file_bytes(image_.capacity) - kHeaderBytes) / kWord);
    copy_(kHeaderBytes, first_);
    second_.resize(first_.size());
    copy_(kHeaderBytes, second_);
    head(taken);
    records();
    // After the records, so that a call which began meanwhile finds its group and its source.
    const std::size_t tables = (kRecordsAt - kHeaderBytes) / kWord;
    copy_(kHeaderBytes, std::span(first_).first(tables));
    copy_(kHeaderBytes, std::span(second_).first(tables));
    groups();
    sources();
    std::sort(image_.records.begin(), image_.records.end(), [](const FlightRecord& a, const FlightRecord& b) { return a.id < b.id; });
    // Calls that began while the ring was copied.
    if (!image_.records.empty()) image_.begun = std::max(image_.begun, image_.records.back().id + 1);
    return std::move(image_);
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const { throw Error(ErrorCode::invalid_argument, "FlightRing::read", fmt::format("{}: {}", of_, text)); }

  static std::string text(const std::uint64_t* words, std::size_t bytes) {
    std::string value(bytes, '\0');
    std::memcpy(value.data(), words, bytes);
    value.resize(std::min(value.find('\0'), value.size()));
    return printable(value);
  }

  void head(std::int64_t taken) {
    image_.rank = static_cast<std::int32_t>(low(header_[h_rank]));
    image_.world_size = static_cast<std::int32_t>(high(header_[h_rank]));
    if (image_.world_size < 1 || image_.rank < 0 || image_.rank >= image_.world_size)
      refuse(fmt::format("the rank must be one of the world, got rank {} of {}", image_.rank, image_.world_size));
    image_.process_id = header_[h_process];
    image_.host = text(&header_[h_host], 64);
    image_.library = text(&header_[h_library], 64);
    image_.clock_offset_ns = static_cast<std::int64_t>(header_[h_clock_offset]);
    image_.begun = header_[h_next];
    shift_ = header_[h_real] - header_[h_monotonic] + header_[h_clock_offset];
    const std::size_t last = header_[h_last] == 0 ? 0 : 2;
    last_ticks_ = header_[h_last_ticks + last], last_time_ = header_[h_last_time + last];
    const std::uint64_t took = last_ticks_ - header_[h_first_ticks];
    if (took > 0) rate_ = static_cast<double>(last_time_ - header_[h_first_time]) / static_cast<double>(took);
    clutch::detail::ProcessIdentity process;
    process.machine = header_[h_machine], process.id = header_[h_process], process.begun = header_[h_begun];
    if (header_[h_closed] != 0) {
      image_.process = FlightProcess::closed;
    } else {
      switch (clutch::detail::state_of(process)) {
        case clutch::detail::ProcessState::running: image_.process = FlightProcess::running; break;
        case clutch::detail::ProcessState::ended: image_.process = FlightProcess::lost; break;
        case clutch::detail::ProcessState::unknown: image_.process = FlightProcess::unknown; break;
      }
    }
    if (image_.process == FlightProcess::running) image_.taken_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(taken) + header_[h_clock_offset]);
  }

  /// The words of an entry, whole; null if it is empty or cannot be had whole. `is_torn` tells whether it was being written.
  const std::uint64_t* entry(std::size_t at, std::size_t words, bool& is_torn) {
    const std::uint64_t* copied = &first_[at - kHeaderBytes / kWord];
    std::uint64_t again = second_[at - kHeaderBytes / kWord];
    for (int tries = 0; tries < 1000; ++tries) {
      if (copied[0] == again) {
        if (phase_of(again) == p_empty) return nullptr;
        // One that is being changed has all that does not change.
        if (phase_of(again) != p_writing) return copied;
      }
      if (tries > 2 && phase_of(again) == p_writing && copied[0] == again) break;
      retried_.resize(words);
      copy_(at * kWord, retried_);
      copied = retried_.data();
      copy_(at * kWord, std::span(&again, 1));
    }
    is_torn = true;
    return nullptr;
  }

  void groups() {
    for (std::size_t i = 0; i < kGroups; ++i) {
      bool is_torn = false;
      const std::uint64_t* words = entry((kGroupsAt / kWord) + i * kGroupWords, kGroupWords, is_torn);
      if (!words) continue;
      FlightGroup group;
      group.index = low(words[g_index]);
      group.name = text(words + g_name, kNameBytes);
      group.description = text(words + g_description, kNameBytes);
      const std::uint64_t size = words[g_size], runs = words[g_runs];
      group.has_ranks = runs != kNoRanks;
      if (words[g_index] > 0xffffffffu || size > static_cast<std::uint64_t>(image_.world_size) || (group.has_ranks && runs > kRuns))
        refuse(fmt::format("group {} must have no more ranks than the world, got {} in {} runs", words[g_index], size, runs));
      for (std::uint64_t run = 0; group.has_ranks && run < runs; ++run) {
        const std::uint64_t count = words[g_run + 2 * run + 1];
        if (count > size - group.ranks.size()) refuse(fmt::format("group {} must have {} ranks, got more", group.index, size));
        std::uint32_t rank = low(words[g_run + 2 * run]);
        for (std::uint64_t k = 0; k < count; ++k, rank += high(words[g_run + 2 * run])) {
          if (rank >= static_cast<std::uint32_t>(image_.world_size))
            refuse(fmt::format("ranks of group {} must be below {}, got {}", group.index, image_.world_size, rank));
          group.ranks.push_back(static_cast<std::int32_t>(rank));
        }
      }
      if (group.has_ranks && group.ranks.size() != size) refuse(fmt::format("group {} must have {} ranks, got {}", group.index, size, group.ranks.size()));
      std::vector<std::int32_t> sorted = group.ranks;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) refuse(fmt::format("ranks of group {} must differ, got one twice", group.index));
      image_.groups.push_back(std::move(group));
    }
    std::sort(image_.groups.begin(), image_.groups.end(), [](const FlightGroup& a, const FlightGroup& b) { return a.index < b.index; });
    // While a group takes the place of another one, it may be seen twice.
    image_.groups.erase(std::unique(image_.groups.begin(), image_.groups.end(), [](const FlightGroup& a, const FlightGroup& b) { return a.index == b.index; }),
                        image_.groups.end());
  }

  /// Gives each record the texts of its source.
  void sources() {
    struct Source {
      std::string file, function;
    };
    std::vector<Source> sources(kSources + 1);  // the first is that of calls without one
    for (std::size_t i = 0; i < kSources; ++i) {
      bool is_torn = false;
      if (const std::uint64_t* words = entry((kSourcesAt / kWord) + i * kSourceWords, kSourceWords, is_torn))
        sources[i + 1] = {text(words + s_file, kTextBytes), text(words + s_function, kTextBytes)};
    }
    for (std::size_t i = 0; i < image_.records.size(); ++i) {
      const Source& source = sources[source_of_[i]];
      image_.records[i].file = source.file, image_.records[i].function = source.function;
    }
  }

  template <class E>
  E known(std::uint64_t value, int count, const char* what) const {
    if (value >= static_cast<std::uint64_t>(count)) refuse(fmt::format("{} must be below {}, got {}", what, count, value));
    return static_cast<E>(value);
  }

  void records() {
    for (std::uint64_t slot = 0; slot < image_.capacity; ++slot) {
      bool is_torn = false;
      const std::uint64_t* words = entry((kRecordsAt / kWord) + static_cast<std::size_t>(slot) * kRecordWords, kRecordWords, is_torn);
      if (is_torn) ++image_.torn;
      if (!words) continue;
      if (id_of(words[0]) % image_.capacity != slot) refuse(fmt::format("record {} must be that of a call with such a number, got {}", slot, id_of(words[0])));
      image_.records.push_back(record(words));
      source_of_.push_back(high(words[r_group]));
      if (source_of_.back() > kSources) refuse(fmt::format("a source must be at most {}, got {}", kSources, source_of_.back()));
    }
  }

  std::int64_t time(std::uint64_t tick) const {
    if (tick == 0) return 0;
    // From the last pair of clocks, so that the newest times, which count most, are the best.
    return static_cast<std::int64_t>(last_time_ +
                                     static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                         std::clamp(static_cast<double>(static_cast<std::int64_t>(tick - last_ticks_)) * rate_, -4e18, 4e18))) +
                                     shift_);
  }

  FlightRecord record(const std::uint64_t* w) const {
    FlightRecord r;
    r.id = id_of(w[r_sequence]);
    r.created_ns = time(w[r_created]), r.started_ns = time(w[r_started]), r.completed_ns = time(w[r_completed]);
    r.state = known<FlightState>(w[r_state], kFlightStateCount, "a state");
    r.thread = w[r_thread];
    r.collective_seq = w[r_collective_seq], r.p2p_seq = w[r_p2p_seq], r.op_id = w[r_op_id], r.batch = w[r_batch];
    r.group = low(w[r_group]);
    r.op = known<FlightOp>(w[r_kinds] & 0xff, kFlightOpCount, "an op");
    r.reduce = known<FlightReduce>(w[r_kinds] >> 24 & 0xff, kFlightReduceCount, "a reduce op");
    r.root = static_cast<std::int32_t>(low(w[r_root])), r.peer = static_cast<std::int32_t>(high(w[r_root]));
    r.tag = static_cast<std::int32_t>(low(w[r_tag]));
    r.line = high(w[r_tag]);
    r.timeout_ms = static_cast<std::int64_t>(w[r_timeout]);
    r.in.hash = w[r_in_hash], r.out.hash = w[r_out_hash];
    r.in.dtype = dtype(w[r_kinds] >> 8 & 0xff), r.out.dtype = dtype(w[r_kinds] >> 16 & 0xff);
    r.in.is_total = (w[r_kinds] >> 32 & f_in_total) != 0, r.out.is_total = (w[r_kinds] >> 32 & f_out_total) != 0;
    r.in.count = static_cast<std::uint32_t>(w[r_kinds] >> 40 & kMostTensors), r.out.count = static_cast<std::uint32_t>(w[r_kinds] >> 52);
    std::size_t at = 0;
    side(r.in, w + r_sizes, at);
    side(r.out, w + r_sizes, at);
    r.why = text(w + r_why, kWhyBytes);
    return r;
  }

  std::optional<DType> dtype(std::uint64_t value) const {
    if (value == kNoDType) return std::nullopt;
    return known<DType>(value, kDTypeCount, "a dtype");
  }

  void side(FlightTensors& tensors, const std::uint64_t* words, std::size_t& at) const {
    auto next = [&]() -> std::uint32_t {
      if (at >= kSizeHalves) refuse("sizes must end in their record, got more");
      const std::uint64_t word = words[at / 2];
      return at++ % 2 == 0 ? low(word) : high(word);
    };
    const std::uint32_t count = tensors.is_total ? 1 : tensors.count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t head = next();
      if ((head & ~0x1ffu) != 0) refuse(fmt::format("a tensor must have fewer than 256 dimensions, got {}", head));
      std::vector<std::int64_t>& sizes = tensors.sizes.emplace_back();
      for (std::uint32_t d = 0; d < (head & 0xff); ++d) {
        std::uint64_t n = next();
        if ((head & 0x100) != 0) n |= static_cast<std::uint64_t>(next()) << 32;
        if (n > 0x7fffffffffffffffull) refuse(fmt::format("sizes must not be negative, got {}", static_cast<std::int64_t>(n)));
        sizes.push_back(static_cast<std::int64_t>(n));
      }
    }
  }

  std::uint64_t bytes_;
  Copy copy_;
  const std::string& of_;
  Words header_, first_, second_, retried_;
  std::uint64_t shift_ = 0, last_ticks_ = 0, last_time_ = 0;
  double rate_ = 1;  ///< nanoseconds of a tick
  FlightImage image_;
  std::vector<std::uint32_t> source_of_;  ///< of each record, from 1; 0 if it has none
};

}  // namespace

bool FlightRing::is_ring(std::span<const std::byte> begin) noexcept {
  std::uint64_t magic = 0;
  if (begin.size() < sizeof magic) return false;
  std::memcpy(&magic, begin.data(), sizeof magic);
  return magic == kMagic;
}

FlightImage FlightRing::image() const {
  const std::string of = "the ring of this process";
  auto copy = [this](std::size_t offset, std::span<std::uint64_t> to) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = word(offset + i * kWord).load(std::memory_order_acquire);
  };
  return RingReader(mapping_.bytes(), copy, of).read();
}

FlightImage FlightRing::read(const std::filesystem::path& file) {
  const std::string of = file.string();
  const clutch::detail::SharedReader reader(of);
  if (!reader.problem().empty())
    throw Error(ErrorCode::io, "FlightRing::read", fmt::format("a flight recorder's file must be readable, got: {}", reader.problem()));
  auto copy = [&](std::size_t offset, std::span<std::uint64_t> to) {
    if (reader.copy(offset, std::as_writable_bytes(to)) != to.size_bytes())
      throw Error(ErrorCode::invalid_argument, "FlightRing::read", fmt::format("{}: a ring must keep its bytes, got fewer than before", of));
  };
  return RingReader(reader.bytes(), copy, of).read();
}

}}}}  // namespace clutch::v0::dist::detail
