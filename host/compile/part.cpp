// SPDX-License-Identifier: Apache-2.0
// Arguments of compiled functions, and replays of parts with them.
#include "compile/part.hpp"

#include <clutch/event.hpp>
#include <clutch/ops/copy.hpp>

#include <algorithm>
#include <numeric>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

Tensor bytes_of(const std::shared_ptr<Storage>& storage, std::uint64_t offset, std::uint64_t bytes) {
  return Tensor(storage, offset, {static_cast<std::int64_t>(bytes)}, {1}, DType::u8);
}

}  // namespace

std::uint64_t Arguments::address(int tensor) const {
  const Tensor& t = tensors[static_cast<std::size_t>(tensor)];
  return t.storage()->offset() + t.byte_offset();
}

Tensor Arguments::region_bytes(int region) const {
  const Region& r = regions[static_cast<std::size_t>(region)];
  const Tensor& t = tensors[static_cast<std::size_t>(r.first)];
  return bytes_of(t.storage(), t.byte_offset(), r.end - r.begin);
}

Arguments::Arguments(std::span<const Tensor> all) : tensors(all), region_of(all.size(), -1) {
  struct Extent {
    const Storage* storage;
    std::uint64_t begin, end;
    int tensor;
  };
  std::vector<Extent> extents;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].defined())
      if (const std::uint64_t bytes = extent_bytes(all[i]); bytes > 0) {
        const std::uint64_t begin = address(static_cast<int>(i));
        extents.push_back({all[i].storage().get(), begin, begin + bytes, static_cast<int>(i)});
      }
  std::stable_sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return a.storage->mem() != b.storage->mem() ? std::less<>()(a.storage->mem(), b.storage->mem()) : a.begin < b.begin;
  });
  const Storage* last = nullptr;
  for (const Extent& e : extents) {
    const bool meets = last && last->mem() == e.storage->mem() && e.begin < regions.back().end;
    if (!meets) {
      regions.push_back({.first = e.tensor, .tensors = 0, .begin = e.begin, .end = e.end});
    } else {
      if (last != e.storage) refusal = "two arguments share a buffer that was wrapped twice";
      regions.back().end = std::max(regions.back().end, e.end);
    }
    ++regions.back().tensors;
    region_of[static_cast<std::size_t>(e.tensor)] = static_cast<int>(regions.size()) - 1;
    last = e.storage;
  }
  // Calls of one class have their regions in one order, that of the tensors that begin them.
  std::vector<int> order(regions.size()), place(regions.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return regions[static_cast<std::size_t>(a)].first < regions[static_cast<std::size_t>(b)].first; });
  std::vector<Region> sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(regions[static_cast<std::size_t>(order[i])]);
    place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  }
  regions = std::move(sorted);
  for (int& region : region_of)
    if (region >= 0) region = place[static_cast<std::size_t>(region)];
}

Tensor tensor_at(const Origin& o, const Arguments& arguments, std::span<const std::shared_ptr<Storage>> made) {
  switch (o.kind) {
    case Origin::Kind::none: return {};
    case Origin::Kind::kept: return o.kept;
    case Origin::Kind::made: return Tensor(made[static_cast<std::size_t>(o.index)], static_cast<std::uint64_t>(o.shift), o.sizes, o.strides, o.dtype);
    default: break;
  }
  const Tensor& argument = arguments.tensors[static_cast<std::size_t>(o.index)];
  const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(argument.byte_offset()) + o.shift);
  if (at == argument.byte_offset() && o.sizes == argument.sizes() && o.strides == argument.strides() && o.dtype == argument.dtype()) return argument;
  return Tensor(argument.storage(), at, o.sizes, o.strides, o.dtype);
}

void replay_part(Part& part, const Arguments& arguments, std::span<const std::shared_ptr<Storage>> made, const Stream& stream) {
  std::vector<Rebinding> rebindings;
  for (const Part::Input& input : part.inputs) rebindings.push_back({input.captured, arguments.region_bytes(input.region)});
  for (std::size_t i = 0; i < part.made.size(); ++i)
    if (part.made[i].bound) rebindings.push_back({part.made[i].captured, bytes_of(made[i], 0, part.made[i].bytes)});
  part.graph.replay(rebindings, stream);
}

std::vector<Tensor> finish_call(Part& part, const Arguments& arguments, const Stream& stream) {
  std::vector<std::shared_ptr<Storage>> made;
  for (const Made& m : part.made) made.push_back(std::make_shared<Storage>(stream.impl(), m.bytes, "compile"));
  replay_part(part, arguments, made, stream);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (part.made[i].copied && part.made[i].bytes > 0) copy_(bytes_of(made[i], 0, part.made[i].bytes), part.made[i].captured, {}, stream);
  std::vector<Tensor> results;
  for (const Origin& origin : part.results) results.push_back(tensor_at(origin, arguments, made));
  return results;
}

std::string read_of(const Part& part, const Arguments& arguments, const Stream& stream) {
  if (part.read.kind == Origin::Kind::none) {
    stream.synchronize();
    return {};
  }
  const std::vector<std::uint8_t> bytes = tensor_at(part.read, arguments, {}).to_bytes(stream);
  return {bytes.begin(), bytes.end()};
}

void order_behind(const Stream& later, const Stream& first) {
  if (first.empty() || first == later) return;
  try {
    Event done;
    done.record(first);
    later.wait(done);
  } catch (const Error&) {  // what has failed does not run any more
  }
}

int conflict(const Arguments& arguments, std::span<const Outside> outside, const std::vector<bool>& written) {
  for (std::size_t r = 0; r < arguments.regions.size(); ++r) {
    const Region& region = arguments.regions[r];
    const cl_mem mem = arguments.tensors[static_cast<std::size_t>(region.first)].storage()->mem();
    for (const Outside& o : outside)
      if (o.mem == mem && o.begin < region.end && region.begin < o.end && (o.written || (r < written.size() && written[r]))) return region.first;
  }
  return -1;
}

}}}  // namespace clutch::v0::detail
