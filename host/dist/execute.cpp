// SPDX-License-Identifier: Apache-2.0
#include "dist/execute.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

/// Blocks of a room from a place on, as far as they are there.
template <class Byte>
std::span<Byte> part(const HostMemory& shape, std::span<Byte> room, Place at, std::int32_t blocks) {
  const ByteRange range = range_of(shape, room.size(), at, blocks);
  return room.subspan(range.begin, range.end - range.begin);
}

}  // namespace

ByteRange range_of(const HostMemory& shape, std::size_t room, Place at, std::int32_t blocks) {
  static const std::vector<std::size_t> kEven;
  const std::vector<std::size_t>& begins = at.room == Room::input ? shape.input_begins : at.room == Room::output ? shape.output_begins : kEven;
  auto begin_of = [&](std::int32_t i) {
    const auto block = static_cast<std::size_t>(i);
    return std::min((begins.empty() ? block * shape.block : begins[block]) * shape.element, room);
  };
  return {begin_of(at.block), begin_of(at.block + blocks)};
}

std::size_t block_of(std::size_t total, std::int32_t blocks) {
  const auto n = static_cast<std::size_t>(blocks);
  return (total + n - 1) / n;
}

std::shared_ptr<std::byte[]> ScratchMemory::get(std::size_t bytes) {
  constexpr std::size_t kMostKept = 4;
  const std::lock_guard lock(mutex_);
  // Nobody else has those that are here alone.
  for (const Kept& kept : kept_)
    if (kept.memory.use_count() == 1 && kept.bytes >= bytes && kept.bytes / 4 <= bytes) return kept.memory;
  if (kept_.size() == kMostKept) std::erase_if(kept_, [](const Kept& kept) { return kept.memory.use_count() == 1; });
  std::shared_ptr<std::byte[]> memory(new std::byte[bytes]);
  if (kept_.size() < kMostKept) kept_.push_back({memory, bytes});
  return memory;
}

Execution::Execution(std::shared_ptr<const Schedule> schedule, HostMemory memory, Sum sum, std::unique_ptr<Exchange> exchange, ScratchMemory* scratch)
    : schedule_(std::move(schedule)),
      memory_(std::move(memory)),
      sum_(std::move(sum)),
      exchange_(std::move(exchange)),
      scratch_bytes_(static_cast<std::size_t>(schedule_->scratch) * memory_.block * memory_.element) {
  if (scratch_bytes_ == 0) return;
  scratch_ = scratch != nullptr ? scratch->get(scratch_bytes_) : std::shared_ptr<std::byte[]>(new std::byte[scratch_bytes_]);
  exchange_->keep(scratch_);
}

std::span<std::byte> Execution::write(Place at, std::int32_t blocks) {
  if (at.room == Room::output) return part(memory_, memory_.output, at, blocks);
  return part(memory_, std::span(scratch_.get(), scratch_bytes_), at, blocks);
}

std::span<const std::byte> Execution::read(Place at, std::int32_t blocks) const {
  if (at.room == Room::input) return part(memory_, memory_.input, at, blocks);
  if (at.room == Room::output) return part(memory_, std::span<const std::byte>(memory_.output), at, blocks);
  return part(memory_, std::span<const std::byte>(scratch_.get(), scratch_bytes_), at, blocks);
}

void Execution::begin_round() {
  for (; end_ < schedule_->steps.size() && schedule_->steps[end_].round == schedule_->steps[at_].round; ++end_) {
    const ScheduleStep& step = schedule_->steps[end_];
    if (step.kind == StepKind::send) exchange_->send(step.peer, read(step.from, step.blocks));
    if (step.kind == StepKind::receive) exchange_->receive(step.peer, write(step.to, step.blocks));
  }
}

void Execution::end_round() {
  for (; at_ < end_; ++at_) {
    const ScheduleStep& step = schedule_->steps[at_];
    if (step.kind == StepKind::send || step.kind == StepKind::receive) continue;
    const bool is_sum = step.kind == StepKind::sum;
    const std::span<std::byte> to = write(step.to, is_sum ? 1 : step.blocks);
    const std::span<const std::byte> from = read(step.from, step.blocks);
    if (step.kind == StepKind::copy) {
      const std::size_t bytes = std::min(to.size(), from.size());
      if (bytes > 0 && to.data() != from.data()) std::memmove(to.data(), from.data(), bytes);
      continue;
    }
    std::array<const std::byte*, 2> two{};
    std::vector<const std::byte*> many;
    if (is_sum) {
      for (std::int32_t i = 0; i < step.blocks; ++i)
        many.push_back(i == step.peer ? read(step.with, 1).data() : read({step.from.room, step.from.block + i}, 1).data());
    } else {
      two = {from.data(), read(step.with, step.blocks).data()};
    }
    const std::span<const std::byte* const> parts = is_sum ? std::span<const std::byte* const>(many) : two;
    // Of sums the result's block is the shortest, as it is the one that the caller cut.
    std::size_t bytes = to.size();
    if (!is_sum) bytes = std::min({bytes, from.size(), read(step.with, step.blocks).size()});
    if (step.to.room == Room::scratch && is_sum) bytes = std::min(bytes, read(step.with, 1).size());
    if (bytes > 0) sum_(to.data(), parts, bytes / memory_.element);
  }
}

bool Execution::advance() {
  while (at_ < schedule_->steps.size()) {
    if (end_ == at_) begin_round();
    if (!exchange_->done()) return false;
    end_round();
  }
  return true;
}

}}}}  // namespace clutch::v0::dist::detail
