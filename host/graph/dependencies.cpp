// SPDX-License-Identifier: Apache-2.0
#include "graph/dependencies.hpp"

#include <algorithm>
#include <map>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Bytes with one last writer and the nodes that have read them since. The ranges of one memory, keyed by their begins, do not overlap.
struct Range {
  std::uint64_t end = 0;
  int writer = -1;
  std::vector<int> readers;
};
using Ranges = std::map<std::uint64_t, Range>;

/// Splits the range that contains `at`, so that a range begins there.
void cut(Ranges& ranges, std::uint64_t at) {
  auto next = ranges.upper_bound(at);
  if (next == ranges.begin()) return;
  auto here = std::prev(next);
  if (here->first == at || here->second.end <= at) return;
  Range behind = here->second;
  here->second.end = at;
  ranges.emplace_hint(next, at, std::move(behind));
}

void touch(Ranges& ranges, std::uint64_t begin, std::uint64_t end, bool writes, int node, std::vector<int>& after) {
  cut(ranges, begin);
  cut(ranges, end);
  std::uint64_t at = begin;
  for (auto it = ranges.lower_bound(begin); at < end;) {
    if (it == ranges.end() || it->first > at) {  // bytes that no node has used yet
      std::uint64_t until = it == ranges.end() ? end : std::min(end, it->first);
      it = ranges.emplace_hint(it, at, Range{until, -1, {}});
    }
    Range& range = it->second;
    if (range.writer >= 0 && range.writer != node) after.push_back(range.writer);
    if (writes) {
      for (int reader : range.readers)
        if (reader != node) after.push_back(reader);
      range.writer = node;
      range.readers.clear();
    } else if (range.readers.empty() || range.readers.back() != node) {
      range.readers.push_back(node);
    }
    at = range.end;
    ++it;
  }
  if (!writes) return;
  // Merges the ranges that this node wrote into one.
  auto first = ranges.find(begin);
  first->second.end = end;
  ranges.erase(std::next(first), ranges.lower_bound(end));
}

}  // namespace

void find_dependencies(GraphState& state) {
  std::map<std::pair<const void*, int>, Ranges> memory;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    GraphWork& node = state.nodes[i];
    // Reads first, so that a node that reads and writes one range depends on the writer before it, not on itself.
    for (bool writes : {false, true})
      for (const GraphUse& use : node.uses) {
        if (use.bytes == 0 || writes != (use.access != Argument::Kind::input)) continue;
        const GraphBuffer& buffer = state.buffers[static_cast<std::size_t>(use.buffer)];
        std::uint64_t base = buffer.storage ? buffer.storage->offset() : buffer.place.offset;
        // A temporary without a place shares memory with no other one.
        const int part = buffer.place.segment >= 0 ? buffer.place.segment : -1 - use.buffer;
        auto key = buffer.storage ? std::pair<const void*, int>(buffer.storage->mem(), -1) : std::pair<const void*, int>(nullptr, part);
        touch(memory[key], base + use.byte_offset, base + use.byte_offset + use.bytes, writes, static_cast<int>(i), node.after);
      }
    std::sort(node.after.begin(), node.after.end());
    node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
  }
}

}}}  // namespace clutch::v0::detail
