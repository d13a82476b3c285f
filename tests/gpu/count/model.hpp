// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts what a launch would cost a GPU, from what its work-items do one after another. Knows neither OpenCL nor a simulator: counter.cpp feeds it.
//
// Sub-groups: items of a work-group with consecutive linear local ids, by 32 and by 64; a last one may be partly empty.
// Alignment: items of a sub-group run an instruction together if it is the n-th time since the last barrier for each of them. Items that leave a loop earlier
//   wait. Where inner loops differ by item and by turn of the outer loop a GPU runs more: the lanes that are busy are at most those counted here.
// Issues: an instruction that k items of a sub-group run together is issued once, as often as its weight says; the other lanes idle.
// Joining: what an item loads (or stores) next to its last access, in the same block of instructions and within what the compiler knows to be aligned there, is
//   one access with it, as GPUs' compilers make it: the simulator's compiler takes vectors apart whose elements are used one by one.
// Pieces: an access of more than 16 bytes by an item is several, of 16 bytes each, as on every GPU.
// Global memory: a piece touches sectors of 32 bytes and lines of 128. Ideal: the distinct bytes that its items ask for, in whole sectors.
// Local memory: 32 banks of 4 bytes. A piece of up to 4 bytes goes by 32 lanes, of up to 8 by 16, of up to 16 by 8; each part takes as many passes as the bank
//   with most distinct words has. Equal words are read once, and written once. Ideal: one pass for each part that has an item.
// Atomics: items of a sub-group that meet one address take turns: as many passes as meet the most frequent address.
// Waits: between two barriers a sub-group has up to four pieces that it loads (atomics and scratch, too) on their way together, and as many of local memory.
// Constant memory: one pass for each distinct address. Scratch: private arrays that stayed in memory, read or written; where they lie is not looked at.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace clutch::gpu_count {

enum class Space : std::uint8_t { global, local, constant, scratch };
enum class Action : std::uint8_t { load, store, atomic };
/// What runs an instruction; memory is not one for instructions(): accesses issue themselves.
enum class Pipe : std::uint8_t { f32, f64, special, integer, control, memory, matrix };
constexpr std::size_t kPipes = 7;
constexpr std::uint64_t kSector = 32, kLine = 128, kPiece = 16, kBanks = 32, kWord = 4, kTogether = 4;

/// Counts of a sub-group size; all are sums over the launch, but `longest` and `local_worst`, which are the largest of it.
struct Counts {
  std::uint64_t width = 0;                            ///< lanes of a sub-group
  std::uint64_t items = 0, groups = 0, barriers = 0;  ///< barriers: each once for a work-group
  std::uint64_t sub_groups = 0;
  std::array<std::uint64_t, kPipes> issues{};  ///< by Pipe
  std::uint64_t busy = 0;                      ///< lanes that had an item, over all issues
  std::uint64_t longest = 0;                   ///< issues of the sub-group with most
  std::uint64_t load_pieces = 0, load_ideal = 0, load_sectors = 0, load_lines = 0;
  std::uint64_t store_pieces = 0, store_ideal = 0, store_sectors = 0, store_lines = 0;
  std::uint64_t load_bytes = 0, store_bytes = 0;      ///< that items asked for, each for itself
  std::uint64_t load_touched = 0, store_touched = 0;  ///< distinct sectors of the launch
  std::uint64_t local_pieces = 0, local_ideal = 0, local_passes = 0;
  std::uint64_t local_worst = 0;                                    ///< passes of the part with most
  std::uint64_t atomics = 0, atomic_pieces = 0, atomic_passes = 0;  ///< atomics: of items
  std::uint64_t constant_pieces = 0, constant_passes = 0;
  std::uint64_t scratch_pieces = 0, scratch_bytes = 0;  ///< bytes: of items
  std::uint64_t waits = 0, local_waits = 0;

  std::uint64_t issued() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : issues) sum += n;
    return sum;
  }

  /// Calls f(name, number) for each number.
  template <class Self, class F>
  static void each(Self& c, F&& f) {
    f("width", c.width);
    f("items", c.items);
    f("groups", c.groups);
    f("barriers", c.barriers);
    f("sub_groups", c.sub_groups);
    f("issues_f32", c.issues[0]);
    f("issues_f64", c.issues[1]);
    f("issues_special", c.issues[2]);
    f("issues_integer", c.issues[3]);
    f("issues_control", c.issues[4]);
    f("issues_memory", c.issues[5]);
    f("issues_matrix", c.issues[6]);
    f("busy", c.busy);
    f("longest", c.longest);
    f("load_pieces", c.load_pieces);
    f("load_ideal", c.load_ideal);
    f("load_sectors", c.load_sectors);
    f("load_lines", c.load_lines);
    f("load_bytes", c.load_bytes);
    f("load_touched", c.load_touched);
    f("store_pieces", c.store_pieces);
    f("store_ideal", c.store_ideal);
    f("store_sectors", c.store_sectors);
    f("store_lines", c.store_lines);
    f("store_bytes", c.store_bytes);
    f("store_touched", c.store_touched);
    f("local_pieces", c.local_pieces);
    f("local_ideal", c.local_ideal);
    f("local_passes", c.local_passes);
    f("local_worst", c.local_worst);
    f("atomics", c.atomics);
    f("atomic_pieces", c.atomic_pieces);
    f("atomic_passes", c.atomic_passes);
    f("constant_pieces", c.constant_pieces);
    f("constant_passes", c.constant_passes);
    f("scratch_pieces", c.scratch_pieces);
    f("scratch_bytes", c.scratch_bytes);
    f("waits", c.waits);
    f("local_waits", c.local_waits);
  }
};

/// Where an access is: its block of instructions, from 1 on (0: it joins no other), and what the compiler knows to divide its address.
struct Place {
  std::uint32_t block = 0, aligned = 0;
};

/// Counts a launch: its groups one after another, the items of each between two barriers in any order.
class Launch {
 public:
  /// Begins a work-group of `items` work-items.
  void begin_group(std::uint32_t items) {
    items_ = items;
    for (Size& size : sizes_) {
      ++size.counts.groups;
      size.counts.items += items;
      const std::uint64_t sub_groups = (items + size.counts.width - 1) / size.counts.width;
      size.counts.sub_groups += sub_groups;
      size.issued.assign(sub_groups, 0);
    }
    executed_.assign(weights_.size() * items_, 0);
    since_.clear();
    is_since_.assign(weights_.size(), false);
    for (Site& site : sites_) site.of_item.assign(site.space == Space::scratch ? 0 : items_, {});
    scratch_.assign(sites_.size() * items_, 0);
    for (auto& of_items : open_) of_items.assign(items_, {});
  }

  /// An item executes an instruction once. Instructions are numbers from 0 that the caller gives; each has one pipe and one weight.
  void instruction(std::uint32_t item, std::uint32_t number, Pipe pipe, std::uint32_t weight) {
    if (weight == 0) return;
    if (number >= weights_.size()) {
      weights_.resize(number + 1);
      executed_.resize(weights_.size() * items_);
      is_since_.resize(weights_.size(), false);
    }
    if (!is_since_[number]) {
      is_since_[number] = true;
      since_.push_back(number);
      weights_[number] = {pipe, weight};
    }
    ++executed_[std::size_t{number} * items_ + item];
  }

  /// An item's instruction accesses memory. Addresses of different buffers of a space differ.
  void access(std::uint32_t item, std::uint32_t number, Space space, Action action, std::uint64_t address, std::uint32_t bytes, Place place = {}) {
    if (bytes == 0) return;
    if (joins(item, number, space, action, address, bytes, place)) return;
    const std::uint32_t at = site(number, space, action);
    if (space == Space::scratch) {
      scratch_[std::size_t{at} * items_ + item] += static_cast<std::uint32_t>((bytes + kPiece - 1) / kPiece);
      for (Size& size : sizes_) size.counts.scratch_bytes += bytes;
      return;
    }
    sites_[at].of_item[item].push_back({address, bytes});
    open(item, number, space, action, {.site = at, .block = place.block, .end = address + place.aligned});
    if (space != Space::global || action == Action::atomic) return;
    touch(action, address, bytes);
  }

  /// All items of the group have arrived.
  void barrier() {
    for (Size& size : sizes_) ++size.counts.barriers;
    settle();
  }

  void end_group() {
    settle();
    for (Size& size : sizes_)
      for (const std::uint64_t n : size.issued) size.counts.longest = std::max(size.counts.longest, n);
  }

  /// Of sub-groups of 32 and of 64, after the last group's end.
  std::array<Counts, 2> counts() const {
    std::array<Counts, 2> both{sizes_[0].counts, sizes_[1].counts};
    for (Counts& c : both) {
      c.load_touched = loaded_.size();
      c.store_touched = stored_.size();
    }
    return both;
  }

 private:
  struct Access {
    std::uint64_t address;
    std::uint32_t bytes;
  };
  /// An item's last access of a space and action, while others may join it: up to `end`.
  struct Open {
    std::uint32_t site = 0, block = 0;
    std::uint64_t end = 0;
    std::uint32_t number = 0;
  };
  static std::size_t way_of(Space space, Action action) { return 2 * static_cast<std::size_t>(space) + (action == Action::store); }

  void open(std::uint32_t item, std::uint32_t number, Space space, Action action, Open last) {
    if (space == Space::scratch) return;
    open_[way_of(space, Action::load)][item] = open_[way_of(space, Action::store)][item] = {};
    last.number = number;
    if (action != Action::atomic) open_[way_of(space, action)][item] = last;
  }

  bool joins(std::uint32_t item, std::uint32_t number, Space space, Action action, std::uint64_t address, std::uint32_t bytes, Place place) {
    if (space == Space::scratch || action == Action::atomic || place.block == 0) return false;
    Open& last = open_[way_of(space, action)][item];
    if (last.block != place.block || last.number == number) return false;  // another turn of a loop is another access
    Access& access = sites_[last.site].of_item[item].back();
    const std::uint64_t end = access.address + access.bytes, own_end = address + bytes;
    if (address >= access.address && own_end <= end) return true;
    if (address == end && own_end <= last.end) {
      access.bytes += bytes;
    } else if (own_end == access.address && address + place.aligned >= end) {
      access = {address, access.bytes + bytes};
      last.end = std::max(last.end, address + place.aligned);
    } else {
      return false;
    }
    if (space == Space::global) touch(action, address, bytes);
    return true;
  }

  void touch(Action action, std::uint64_t address, std::uint32_t bytes) {
    auto& touched = action == Action::load ? loaded_ : stored_;
    for (std::uint64_t sector = address / kSector; sector <= (address + bytes - 1) / kSector; ++sector) {
      auto& slot = recent_[action == Action::store][sector % recent_[0].size()];  // most sectors were touched a moment ago
      if (slot == sector + 1) continue;
      slot = sector + 1;
      touched.insert(sector);
    }
    for (Size& size : sizes_) (action == Action::load ? size.counts.load_bytes : size.counts.store_bytes) += bytes;
  }

  struct Cost {
    Pipe pipe = Pipe::control;
    std::uint32_t weight = 0;
  };
  struct Site {
    Space space;
    Action action;
    std::vector<std::vector<Access>> of_item;
  };
  struct Size {
    Counts counts;
    std::vector<std::uint64_t> issued;  // of each sub-group of the group
    explicit Size(std::uint64_t width) { counts.width = width; }
  };
  struct Lane {
    std::uint64_t lane, address, bytes;
  };

  std::uint32_t site(std::uint32_t number, Space space, Action action) {
    const std::size_t key = std::size_t{number} * 12 + static_cast<std::size_t>(space) * 3 + static_cast<std::size_t>(action);
    if (key >= site_of_.size()) site_of_.resize(key + 1, 0);
    if (site_of_[key] == 0) {
      sites_.push_back({space, action, {}});
      if (space != Space::scratch) sites_.back().of_item.resize(items_);
      scratch_.resize(sites_.size() * items_);
      site_of_[key] = static_cast<std::uint32_t>(sites_.size());
    }
    return site_of_[key] - 1;
  }

  /// Calls f(sub-group, first item, end) for each sub-group.
  template <class F>
  void each_sub_group(const Size& size, F&& f) const {
    const auto width = static_cast<std::uint32_t>(size.counts.width);
    for (std::uint32_t first = 0; first < items_; first += width) f(first / width, first, std::min(items_, first + width));
  }

  static void issue(Size& size, std::size_t sub_group, Pipe pipe, std::uint64_t times, std::uint64_t lanes) {
    size.counts.issues[static_cast<std::size_t>(pipe)] += times;
    size.counts.busy += lanes;
    size.issued[sub_group] += times;
  }

  /// What items did since the last barrier is counted.
  void settle() {
    for (Size& size : sizes_) {
      each_sub_group(size, [&](std::size_t sub_group, std::uint32_t first, std::uint32_t end) {
        Counts& c = size.counts;
        auto awaited = [&c] { return c.load_pieces + c.scratch_pieces + c.atomic_pieces; };
        const std::uint64_t before = awaited(), local_before = c.local_pieces;
        settle_counts(size, sub_group, first, end);
        for (const Site& site : sites_)
          if (site.space != Space::scratch) settle_site(size, sub_group, site, first, end);
        c.waits += (awaited() - before + kTogether - 1) / kTogether;
        c.local_waits += (c.local_pieces - local_before + kTogether - 1) / kTogether;
      });
    }
    for (const std::uint32_t number : since_) {
      std::fill_n(executed_.begin() + static_cast<std::ptrdiff_t>(std::size_t{number} * items_), items_, 0);
      is_since_[number] = false;
    }
    since_.clear();
    std::fill(scratch_.begin(), scratch_.end(), 0);
    for (Site& site : sites_)
      for (auto& all : site.of_item) all.clear();
    for (auto& of_items : open_) std::fill(of_items.begin(), of_items.end(), Open{});
  }

  void settle_counts(Size& size, std::size_t sub_group, std::uint32_t first, std::uint32_t end) const {
    auto add = [&](const std::uint32_t* of_item, Pipe pipe, std::uint64_t weight) {
      std::uint64_t most = 0, all = 0;
      for (std::uint32_t item = first; item < end; ++item) {
        most = std::max<std::uint64_t>(most, of_item[item]);
        all += of_item[item];
      }
      issue(size, sub_group, pipe, weight * most, weight * all);
      return most;
    };
    for (const std::uint32_t number : since_) add(&executed_[std::size_t{number} * items_], weights_[number].pipe, weights_[number].weight);
    for (std::size_t at = 0; at < sites_.size(); ++at)
      if (sites_[at].space == Space::scratch) size.counts.scratch_pieces += add(&scratch_[at * items_], Pipe::memory, 1);
  }

  void settle_site(Size& size, std::size_t sub_group, const Site& site, std::uint32_t first, std::uint32_t end) {
    std::size_t most = 0;
    for (std::uint32_t item = first; item < end; ++item) most = std::max(most, site.of_item[item].size());
    for (std::size_t n = 0; n < most; ++n) {
      std::uint64_t widest = 0;
      for (std::uint32_t item = first; item < end; ++item)
        if (n < site.of_item[item].size()) widest = std::max<std::uint64_t>(widest, site.of_item[item][n].bytes);
      for (std::uint64_t from = 0; from < widest; from += kPiece) {
        lanes_.clear();
        for (std::uint32_t item = first; item < end; ++item) {
          if (n >= site.of_item[item].size() || site.of_item[item][n].bytes <= from) continue;
          const Access& a = site.of_item[item][n];
          lanes_.push_back({item - first, a.address + from, std::min<std::uint64_t>(kPiece, a.bytes - from)});
        }
        issue(size, sub_group, Pipe::memory, 1, lanes_.size());
        count_piece(size.counts, site);
      }
    }
  }

  void count_piece(Counts& c, const Site& site) {
    if (site.action == Action::atomic) return count_atomic(c);
    if (site.space == Space::global) return count_global(c, site.action);
    if (site.space == Space::local) return count_local(c);
    numbers_.clear();
    for (const Lane& lane : lanes_) numbers_.push_back(lane.address);
    c.constant_passes += distinct();
    ++c.constant_pieces;
  }

  /// Makes numbers_ distinct and sorted; returns how many there are.
  std::uint64_t distinct() {
    std::sort(numbers_.begin(), numbers_.end());
    numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
    return numbers_.size();
  }

  void count_global(Counts& c, Action action) {
    numbers_.clear();
    for (const Lane& lane : lanes_)
      for (std::uint64_t sector = lane.address / kSector; sector <= (lane.address + lane.bytes - 1) / kSector; ++sector) numbers_.push_back(sector);
    const std::uint64_t sectors = distinct();
    for (std::uint64_t& n : numbers_) n /= kLine / kSector;
    const std::uint64_t lines = distinct();
    // Bytes in the union of what lanes ask for.
    std::sort(lanes_.begin(), lanes_.end(), [](const Lane& a, const Lane& b) { return a.address < b.address; });
    std::uint64_t bytes = 0, done = 0;
    for (const Lane& lane : lanes_) {
      const std::uint64_t end = lane.address + lane.bytes, begin = std::max(lane.address, done);
      if (end > begin) bytes += end - begin;
      done = std::max(done, end);
    }
    const std::uint64_t ideal = (bytes + kSector - 1) / kSector;
    const bool load = action == Action::load;
    ++(load ? c.load_pieces : c.store_pieces);
    (load ? c.load_ideal : c.store_ideal) += ideal;
    (load ? c.load_sectors : c.store_sectors) += sectors;
    (load ? c.load_lines : c.store_lines) += lines;
  }

  void count_local(Counts& c) {
    std::uint64_t widest = 0;
    for (const Lane& lane : lanes_) widest = std::max(widest, lane.bytes);
    const std::uint64_t part = widest <= kWord ? 32 : widest <= 2 * kWord ? 16 : 8;
    ++c.local_pieces;
    for (std::size_t at = 0; at < lanes_.size();) {
      const std::uint64_t which = lanes_[at].lane / part;
      numbers_.clear();
      for (; at < lanes_.size() && lanes_[at].lane / part == which; ++at)
        for (std::uint64_t word = lanes_[at].address / kWord; word <= (lanes_[at].address + lanes_[at].bytes - 1) / kWord; ++word) numbers_.push_back(word);
      distinct();
      std::array<std::uint64_t, kBanks> of_bank{};
      for (const std::uint64_t word : numbers_) ++of_bank[word % kBanks];
      const std::uint64_t passes = *std::max_element(of_bank.begin(), of_bank.end());
      c.local_passes += passes;
      c.local_worst = std::max(c.local_worst, passes);
      ++c.local_ideal;
    }
  }

  void count_atomic(Counts& c) {
    std::uint64_t most = 0;
    numbers_.clear();
    for (const Lane& lane : lanes_) numbers_.push_back(lane.address);
    std::sort(numbers_.begin(), numbers_.end());
    for (std::size_t i = 0, from = 0; i < numbers_.size(); ++i) {
      if (numbers_[i] != numbers_[from]) from = i;
      most = std::max<std::uint64_t>(most, i + 1 - from);
    }
    ++c.atomic_pieces;
    c.atomics += lanes_.size();
    c.atomic_passes += most;
  }

  std::uint32_t items_ = 0;
  std::array<Size, 2> sizes_{Size(32), Size(64)};
  std::vector<Cost> weights_;            // by instruction
  std::vector<std::uint32_t> executed_;  // by instruction and item
  std::vector<std::uint32_t> since_;     // instructions since the last barrier
  std::vector<bool> is_since_;           // by instruction
  std::vector<std::uint32_t> site_of_;   // by instruction, space and action: one more than the site's number
  std::vector<Site> sites_;
  std::vector<std::uint32_t> scratch_;     // pieces by site and item
  std::array<std::vector<Open>, 6> open_;  // by way_of() and item
  std::unordered_set<std::uint64_t> loaded_, stored_;
  std::array<std::array<std::uint64_t, 1024>, 2> recent_{};  // of loaded_ and stored_, each one more
  std::vector<Lane> lanes_;                                  // of the piece at hand, by rising lane
  std::vector<std::uint64_t> numbers_;
};

/// "name=number" of each number, apart by spaces.
inline std::string to_text(const Counts& counts) {
  std::string text;
  Counts::each(counts, [&](const char* name, std::uint64_t number) { text += (text.empty() ? "" : " ") + std::string(name) + "=" + std::to_string(number); });
  return text;
}

}  // namespace clutch::gpu_count
