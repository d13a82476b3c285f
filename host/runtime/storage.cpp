// SPDX-License-Identifier: Apache-2.0
#include "runtime/storage.hpp"

#include "runtime/op_name.hpp"
#include "runtime/pool.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {

Storage::Storage(const std::shared_ptr<StreamImpl>& stream, std::uint64_t bytes, std::string_view op)
    : runtime_(stream->runtime()),
      home_(stream),
      bytes_(bytes),
      branch_(current_branch_id()),
      last_user_(stream->id()),
      check_races_(the_settings().check_streams.on()) {
  if (auto recording = stream->recording()) [[unlikely]] {
    recorded_buffer_ = recording->allocate(this, bytes);
    recording_ = std::move(recording);
  } else {
    check_allocation_beside(op);
    take_block(op);
  }
  runtime_.add_live(1);
}

void Storage::take_block(std::string_view op) {
  block_ = runtime_.pool().allocate(bytes_, *home_, current_pool(), OpName::or_else(op));
  mem_ = block_->segment->memory.buffer.get();
  offset_ = block_->offset;
  if (!home_->partition()) return;
  users_.push_back(home_->end());
  home_.reset();
}

void Storage::place(std::string_view op) {
  take_block(op);
  recording_.reset();
}

void Storage::stand_for(std::shared_ptr<Storage> other) {
  mem_ = other->mem_;
  offset_ = other->offset_;
  stands_for_ = std::move(other);
  recording_.reset();
  if (home_ && home_->partition()) home_.reset();
}

void Storage::let_go() noexcept {
  return_block();
  users_.clear();
  keeper_.reset();
  wrapped_ = {};
}

Storage::Storage(Runtime& runtime, ClMem buffer, std::uint64_t bytes, std::shared_ptr<void> keeper)
    : runtime_(runtime),
      keeper_(std::move(keeper)),
      wrapped_(std::move(buffer)),
      mem_(wrapped_.get()),
      bytes_(bytes),
      check_races_(the_settings().check_streams.on()) {
  runtime_.add_live(1);
}

Storage::~Storage() {
  if (forked()) return;
  if (recording_) recording_->released(recorded_buffer_);
  return_block();
  if (keeper_)
    for (const auto& user : users_) user->finish();
  runtime_.add_live(-1);
}

void Storage::return_block() {
  if (!block_) return;
  std::vector<BlockUse> uses;
  // A block goes back to the stream of its segment, whose later work comes after the work that it knows of.
  auto add_use = [&](StreamEnd& user) {
    if (block_->segment->stream == user.stream() && !runtime_.pool().checks_memory()) return;
    if (ClEvent mark = user.mark()) uses.push_back({user.stream(), std::move(mark)});
  };
  for (const auto& user : users_) add_use(*user);
  if (home_) add_use(*home_->end());
  runtime_.pool().release(std::exchange(block_, nullptr), std::move(uses));
}

void Storage::note_user(const std::shared_ptr<StreamImpl>& stream) {
  if (stands_for_) stands_for_->note_user(stream);
  std::lock_guard lock(mutex_);
  last_user_.store(stream->id(), std::memory_order_relaxed);
  if ((!block_ && !keeper_) || stream == home_) return;
  if (std::any_of(users_.begin(), users_.end(), [&](const auto& user) { return user->stream() == stream->id(); })) return;
  if (users_.size() >= sweep_at_) {
    std::erase_if(users_, [](const auto& user) { return user->over(); });
    sweep_at_ = 16 + 2 * users_.size();
  }
  users_.push_back(stream->end());
}

void Storage::check_race(StreamImpl& stream, bool writes, const char* op) {
  std::lock_guard lock(mutex_);
  Clock clock = stream.clock();
  auto unordered = [&](std::uint64_t other, std::uint64_t ticket) {
    return other != stream.id() && ticket > clock.of(other) && ticket > runtime_.host_has_seen(other);
  };
  auto complain = [&](std::uint64_t other, const char* what, const char* other_op) {
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("an event must order the streams, got none: stream {} {} a tensor that {} on stream {} {} (CLUTCH_CHECK_STREAMS)", stream.id(),
                            writes ? "writes" : "reads", other_op, other, what));
  };
  if (writer_ != 0 && unordered(writer_, write_ticket_)) complain(writer_, "wrote", write_op_);
  if (writes)
    for (auto [other, ticket] : readers_.seen)
      if (unordered(other, ticket)) complain(other, "reads", "an op");
  std::uint64_t ticket = stream.ticket() + 1;
  if (writes) {
    writer_ = stream.id();
    write_ticket_ = ticket;
    write_op_ = op;
    readers_ = {};
  } else {
    readers_.raise(stream.id(), ticket);
  }
}

Storage& storage_of(const Tensor& tensor, std::string_view op) {
  if (!tensor.defined()) throw Error(ErrorCode::invalid_argument, op, "the tensor must be defined, got an undefined one");
  return *tensor.storage();
}

Stream stream_for(const Stream& stream, const Device& device, std::string_view op) {
  if (stream.empty()) return current_stream(device);
  if (!device.empty() && !(stream.device() == device))
    throw Error(ErrorCode::device_mismatch, op,
                fmt::format("the stream must be of the tensor's device {}, got one of device {}", device.index(), stream.device().index()));
  return stream;
}

std::uint64_t extent_bytes(const Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::uint64_t last = 0;
  for (int i = 0; i < tensor.rank(); ++i) last += static_cast<std::uint64_t>((tensor.sizes()[i] - 1) * tensor.strides()[i]);
  return bytes_for(tensor.dtype(), last + 1);
}

}}}  // namespace clutch::v0::detail
