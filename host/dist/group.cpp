// SPDX-License-Identifier: Apache-2.0
#include "dist/group.hpp"
#include "dist/symmetric.hpp"
#include "dist/task.hpp"

#include <clutch/interop_cl.hpp>

#include <algorithm>
#include <utility>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

GroupImpl::GroupImpl(std::shared_ptr<Transport> transport, std::string name, std::string path, std::vector<int> global_ranks, Timeout timeout,
                     std::shared_ptr<Flight> flight)
    : transport_(std::move(transport)),
      meeting_(std::make_shared<const Schedule>(
          schedule_of({.collective = Collective::all_gather, .ranks = transport_->size(), .root = 0, .method = Method::direct}, transport_->rank()))),
      name_(std::move(name)),
      path_(std::move(path)),
      global_ranks_(std::move(global_ranks)),
      flight_(std::move(flight)),
      flight_group_(flight_ ? flight_->add_group(path_, name_, global_ranks_) : 0),
      timeout_(timeout),
      of_pairs_(static_cast<std::size_t>(transport_->size())) {}

std::shared_ptr<GroupImpl> GroupImpl::part(std::span<const int> ranks, std::uint64_t number, const std::string& mark, std::string name) {
  std::vector<int> global;
  for (const int r : ranks) global.push_back(global_ranks_[static_cast<std::size_t>(r)]);
  return std::make_shared<GroupImpl>(transport_->among(ranks, number), std::move(name), path_ + '/' + mark, std::move(global), timeout(), flight_);
}

int GroupImpl::same_subgroups(std::uint64_t ranks) {
  const std::lock_guard lock(mutex_);
  return subgroups_[ranks]++;
}

Timeout GroupImpl::timeout() const {
  const std::lock_guard lock(mutex_);
  return timeout_;
}
void GroupImpl::set_timeout(Timeout timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}
std::uint64_t GroupImpl::next_sequence() {
  const std::lock_guard lock(mutex_);
  return sequence_++;
}
std::uint64_t GroupImpl::next_of_pair(int to) {
  const std::lock_guard lock(mutex_);
  return of_pairs_.at(static_cast<std::size_t>(to))++;
}
std::uint32_t GroupImpl::next_ticket() {
  const std::lock_guard lock(mutex_);
  return tickets_++ % kTags;
}
std::uint64_t GroupImpl::line_up(const Line& line, const void* call) {
  const std::lock_guard lock(mutex_);
  lines_[line].push_back(call);
  return line.peer == kAnyRank ? 0 : ++counts_[line];
}
void GroupImpl::count(const Line& line) {
  const std::lock_guard lock(mutex_);
  ++counts_[line];
}
bool GroupImpl::is_first(const Line& line, const void* call) const {
  const std::lock_guard lock(mutex_);
  const auto at = lines_.find(line);
  return at == lines_.end() || at->second.front() == call;
}
void GroupImpl::leave_line(const Line& line, const void* call) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = lines_.find(line);
    if (at == lines_.end() || std::erase(at->second, call) == 0) return;
    if (at->second.empty()) lines_.erase(at);
  }
  Progress::instance().wake();
}
std::uint64_t GroupImpl::next_group() {
  const std::lock_guard lock(mutex_);
  return groups_++;
}

void GroupImpl::fail(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = why;
  }
  Progress::instance().wake();
}
std::optional<Error> GroupImpl::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

const DeviceLink::Beside& GroupImpl::beside(cl_command_queue queue) {
  const QueueOf of(queue);
  const std::lock_guard lock(mutex_);
  DeviceLink::Beside& found = beside_[{of.context, of.device}];
  if (!found.maps) found = DeviceLink::beside(queue);
  return found;
}

Stream GroupImpl::stream_for(const Device& device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(streams_, [](const Stream& stream) { return interop::failed(stream); });
  for (const Stream& stream : streams_)
    if (stream.device() == device && interop::idle(stream)) return stream;
  return streams_.emplace_back(device);
}

Stream GroupImpl::kernel_stream(const Device& device) {
  const std::lock_guard lock(mutex_);
  for (const Stream& stream : kernel_streams_)
    if (stream.device() == device) return stream;
  return kernel_streams_.emplace_back(device);
}

void GroupImpl::add(const std::shared_ptr<SymmetricImpl>& memory) {
  const std::lock_guard lock(mutex_);
  std::erase_if(symmetric_, [](const auto& of) { return of.expired(); });
  symmetric_.push_back(memory);
}

std::shared_ptr<SymmetricImpl> GroupImpl::find(const Tensor& tensor) const {
  const std::lock_guard lock(mutex_);
  for (const auto& of : symmetric_)
    if (auto memory = of.lock(); memory && memory->part(rank()).shares_storage(tensor)) return memory;
  return nullptr;
}

std::shared_ptr<Task> GroupImpl::make(std::shared_ptr<const CallPlan> plan, std::shared_ptr<CallState> state, std::shared_ptr<DeviceLink> link,
                                      DevicePlace input, DevicePlace output) {
  return std::make_shared<CallTask>(shared_from_this(), std::move(plan), std::move(state), std::move(link), input, output);
}

bool GroupImpl::hurry(Task& call) {
  constexpr std::chrono::microseconds kPatience{20};
  const auto until = Clock::now() + kPatience;
  do
    if (call.advance()) return true;
  while (Clock::now() < until);
  return false;
}

std::vector<std::int64_t> GroupImpl::exchange_rows(const CallPlan& plan) {
  const auto state = std::make_shared<CallState>();
  const auto task = std::make_shared<CallTask>(shared_from_this(), std::make_shared<const CallPlan>(plan), state, nullptr, DevicePlace{}, DevicePlace{});
  Progress::instance().add(task);
  {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->has_ended(); });
    if (state->error) throw Error(*state->error);
  }
  std::vector<std::int64_t> all;
  for (int r = 0; r < size(); ++r) {
    const std::span<const std::int64_t> rows = task->envelopes().rows(static_cast<std::size_t>(r));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

}}}}  // namespace clutch::v0::dist::detail
