// SPDX-License-Identifier: Apache-2.0
#include "dist/flight_dump.hpp"
#include "dist/group_calls.hpp"

namespace clutch { inline namespace v0 { namespace dist {

using namespace detail;

int Group::rank() const { return GroupCalls{"dist::Group::rank", *this}.impl().rank(); }
int Group::size() const { return GroupCalls{"dist::Group::size", *this}.impl().size(); }
std::span<const int> Group::global_ranks() const { return GroupCalls{"dist::Group::global_ranks", *this}.impl().global_ranks(); }
const std::string& Group::name() const { return GroupCalls{"dist::Group::name", *this}.impl().name(); }

Group Group::split(int color, int key, const std::string& name, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::split", *this};
  GroupImpl& g = call.impl();
  const auto plan = call.plan(CallKind::split, {}, options);
  plan->rows = {color, key};
  const std::uint64_t number = g.next_group();
  const std::vector<std::int64_t> all = g.exchange_rows(*plan);
  if (color < 0) return {};
  std::vector<std::pair<std::int64_t, int>> members;
  for (std::size_t r = 0; r < all.size() / 2; ++r)
    if (all[2 * r] == color) members.emplace_back(all[2 * r + 1], static_cast<int>(r));
  std::sort(members.begin(), members.end());
  std::vector<int> ranks;
  for (const auto& [of_key, r] : members) ranks.push_back(r);
  return Group(g.part(ranks, number, fmt::format("{}.{}", number, color), name.empty() ? fmt::format("{}.{}", g.name(), color) : name));
}

namespace {

void check_members(const GroupCalls& call, std::span<const int> ranks) {
  std::vector<int> sorted(ranks.begin(), ranks.end());
  std::sort(sorted.begin(), sorted.end());
  for (const int r : ranks) call.check_rank(r, "each of ranks");
  call.check(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), ErrorCode::invalid_argument, "ranks must be different ones, got one twice");
  call.check(std::binary_search(sorted.begin(), sorted.end(), call.impl().rank()), ErrorCode::invalid_argument,
             "ranks must have this one, {}, got a list without it", call.impl().rank());
}

}  // namespace

Group Group::subgroup(std::span<const int> ranks, const std::string& name) const {
  const GroupCalls call{"dist::Group::subgroup", *this};
  GroupImpl& g = call.impl();
  call.check_usable();
  check_members(call, ranks);
  // Members alone count, so that the number is theirs: that of their list, and how often they were asked for.
  const std::vector<std::int64_t> list(ranks.begin(), ranks.end());
  const std::uint64_t hash = hash_of(list);
  const int before = g.same_subgroups(hash);
  return Group(g.part(ranks, hash + static_cast<std::uint64_t>(before), fmt::format("{:x}.{}", hash, before), name.empty() ? g.name() + ".subgroup" : name));
}

Work Group::all_reduce_out(const Tensor& out, const Tensor& in, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::all_reduce_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out");
  call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::all_reduce, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const ElementFunctions functions = call.functions_of(*plan, options, in);
  const FusedReduction fused{.reduction = plan->reducer->reduction(), .before = options.map_before, .after = options.map_after};
  const bool can_be_one = begin_alike(out, in) && functions.are_pointwise();
  if (const auto memory = can_be_one ? call.memory_of(Collective::all_reduce, in, in, options.algorithm, &fused.reduction, call.impl().size()) : nullptr) {
    call.launch_by(*plan, *memory, in, [memory, in, fused](const Stream& s) { launch_all_reduce(*memory, in, fused, s); });
    return call.run(plan, out, in, GroupCalls::of(options));
  }
  call.choose(*plan, {.collective = Collective::all_reduce, .elements = static_cast<std::size_t>(in.numel())}, options.algorithm, options.order);
  return call.run(plan, out, in, GroupCalls::of(options), functions.ends(out, in));
}

Work Group::all_reduce_(const Tensor& self, const ReduceOptions& options) const {
  return named("dist::Group::all_reduce_", [&] { return all_reduce_out(self, self, options); });
}

Work Group::reduce_out(const Tensor& out, const Tensor& in, int root, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input");
  const bool is_root = call.impl().rank() == root;
  if (is_root) call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out"), call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::reduce, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const ElementFunctions functions = call.functions_of(*plan, options, in);
  call.choose(*plan, {.collective = Collective::reduce, .elements = static_cast<std::size_t>(in.numel()), .root = root}, options.algorithm, options.order);
  const Tensor result = is_root ? out : Tensor();
  return call.run(plan, result, in, GroupCalls::of(options), functions.ends(result, in));
}

Work Group::reduce_(const Tensor& self, int root, const ReduceOptions& options) const {
  return named("dist::Group::reduce_", [&] { return reduce_out(self, self, root, options); });
}

Work Group::reduce_scatter_out(const Tensor& out, const Tensor& in, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_scatter_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_numel(in, out.numel() * call.impl().size(), "the input");
  call.check_overlap(out, in, call.impl().size() == 1, out.numel() * call.impl().rank());
  const auto plan = call.plan(CallKind::reduce_scatter, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const ElementFunctions functions = call.functions_of(*plan, options, in);
  const FusedReduction fused{.reduction = plan->reducer->reduction(), .before = options.map_before, .after = options.map_after};
  if (const auto memory = functions.are_pointwise() ? call.memory_of(Collective::reduce_scatter, in, out, options.algorithm, &fused.reduction, 1) : nullptr) {
    call.launch_by(*plan, *memory, in, [memory, out, in, fused](const Stream& s) { launch_reduce_scatter(*memory, out, in, fused, s); });
    return call.run(plan, out, in, GroupCalls::of(options));
  }
  call.choose(*plan, {.collective = Collective::reduce_scatter, .block = static_cast<std::size_t>(out.numel())}, options.algorithm);
  return call.run(plan, out, in, GroupCalls::of(options), functions.ends(out, in));
}

Work Group::all_gather_out(const Tensor& out, const Tensor& in, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_gather_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_numel(out, in.numel() * call.impl().size(), "out");
  call.check_overlap(out, in, call.impl().size() == 1, in.numel() * call.impl().rank());
  const auto plan = call.plan(CallKind::all_gather, in, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel());
  const std::size_t block = call.units(in, in.numel());
  if (const auto memory = call.memory_of(Collective::all_gather, out, in, options.algorithm, nullptr, 1)) {
    call.launch_by(*plan, *memory, out, [memory, out, in](const Stream& s) { launch_all_gather(*memory, out, in, s); });
    return call.run(plan, out, in, options);
  }
  call.choose(*plan, {.collective = Collective::all_gather, .block = block}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::gather_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::gather_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input");
  const int n = call.impl().size();
  const bool is_root = call.impl().rank() == root;
  if (is_root)
    call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, in.numel() * n, "out"),
        call.check_overlap(out, in, n == 1, in.numel() * root);
  const auto plan = call.plan(CallKind::gather, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel() * n);
  call.choose(*plan, {.collective = Collective::gather, .block = call.units(in, in.numel()), .root = root}, options.algorithm);
  return call.run(plan, is_root ? out : Tensor(), in, options);
}

Work Group::scatter_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::scatter_out", *this};
  call.check_rank(root, "root"), call.check_tensor(out, "out");
  const int n = call.impl().size();
  const bool is_root = call.impl().rank() == root;
  if (is_root)
    call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(in, out.numel() * n, "the input"),
        call.check_overlap(out, in, n == 1, out.numel() * root);
  const auto plan = call.plan(CallKind::scatter, out, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel() * n);
  call.choose(*plan, {.collective = Collective::scatter, .block = call.units(out, out.numel()), .root = root}, options.algorithm);
  return call.run(plan, out, is_root ? in : Tensor(), options);
}

Work Group::broadcast_(const Tensor& self, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::broadcast_", *this};
  call.check_rank(root, "root"), call.check_tensor(self, "the tensor");
  const auto plan = call.plan(CallKind::broadcast, self, options);
  plan->header.elements = static_cast<std::uint64_t>(self.numel());
  if (const auto memory = call.memory_of(Collective::broadcast, self, self, options.algorithm, nullptr, 1)) {
    plan->header.root = root;
    call.launch_by(*plan, *memory, self, [memory, self, root](const Stream& s) { launch_broadcast(*memory, self, root, s); });
    return call.run(plan, self, self, options);
  }
  const std::size_t units = is_packed(self.dtype()) ? static_cast<std::size_t>(self.nbytes()) : static_cast<std::size_t>(self.numel());
  call.choose(*plan, {.collective = Collective::broadcast, .elements = units, .root = root}, options.algorithm);
  return call.run(plan, self, self, options);
}

Work Group::all_to_all_out(const Tensor& out, const Tensor& in, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_to_all_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(out, in.numel(), "out");
  const int n = call.impl().size();
  call.check(in.numel() % n == 0, ErrorCode::invalid_shape, "the input's elements must be a multiple of {} ranks, got {}", n, in.numel());
  call.check_overlap(out, in, true, -1);
  const auto plan = call.plan(CallKind::all_to_all, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel());
  const std::size_t block = call.units(in, in.numel() / n);
  // What comes would overwrite what goes.
  const bool is_one = begin_alike(out, in) && n > 1;
  if (const auto memory = is_one ? nullptr : call.memory_of(Collective::all_to_all, out, in, options.algorithm, nullptr, 1)) {
    call.launch_by(*plan, *memory, out, [memory, out, in](const Stream& s) { launch_all_to_all(*memory, out, in, s); });
    return call.run(plan, out, in, options);
  }
  call.choose(*plan, {.collective = Collective::all_to_all, .block = block}, options.algorithm);
  return call.run(plan, out, is_one ? named(call.op, [&] { return in.clone(options.stream); }) : in, options);
}

namespace {

/// Begins of blocks of so many rows, and their end.
std::vector<std::size_t> begins_of(const GroupCalls& call, const Tensor& some, std::span<const std::int64_t> rows, std::int64_t row) {
  std::vector<std::size_t> begins{0};
  for (const std::int64_t n : rows) begins.push_back(begins.back() + call.units(some, n * row));
  return begins;
}

/// Sizes of all ranks' tensors, as records have them.
std::vector<std::vector<std::int64_t>> sizes_of_all(std::span<const std::int64_t> rows, std::int64_t row) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const std::int64_t n : rows) sizes.push_back({n, row});
  return sizes;
}

std::size_t longest(const std::vector<std::size_t>& begins) {
  std::size_t most = 0;
  for (std::size_t i = 1; i < begins.size(); ++i) most = std::max(most, begins[i] - begins[i - 1]);
  return most;
}

}  // namespace

Work Group::reduce_scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, const ReduceOptions& options) const {
  const GroupCalls call{"dist::Group::reduce_scatter_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const std::int64_t row = call.row_of(in, total(rows), "the input");
  call.check_numel(out, rows[me] * row, "out");
  call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
  const auto plan = call.plan(CallKind::reduce_scatter_v, in, GroupCalls::of(options));
  call.reduce_by(*plan, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel()), plan->header.rows = hash_of(rows);
  plan->shape.input_begins = begins_of(call, in, rows, row);
  plan->in_sizes = sizes_of_all(rows, row);
  const ElementFunctions functions = call.functions_of(*plan, options, in);
  call.choose(*plan, {.collective = Collective::reduce_scatter, .block = static_cast<std::size_t>(out.numel())}, options.algorithm);
  return call.run(plan, out, in, GroupCalls::of(options), functions.ends(out, in));
}

Work Group::all_gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_gather_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const std::int64_t row = call.row_of(out, total(rows), "out");
  call.check_numel(in, rows[me] * row, "the input");
  call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
  const auto plan = call.plan(CallKind::all_gather_v, in, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel()), plan->header.rows = hash_of(rows);
  plan->shape.output_begins = begins_of(call, out, rows, row);
  plan->out_sizes = sizes_of_all(rows, row);
  call.choose(*plan, {.collective = Collective::all_gather, .block = call.units(in, in.numel())}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::gather_v_out", *this};
  call.check_rank(root, "root"), call.check_tensor(in, "the input"), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const bool is_root = call.impl().rank() == root;
  const std::int64_t row = call.row_of(in, rows[me], "the input");
  const auto plan = call.plan(CallKind::gather_v, in, options);
  plan->header.elements = static_cast<std::uint64_t>(total(rows)) * static_cast<std::uint64_t>(row), plan->header.rows = hash_of(rows);
  if (is_root) {
    call.check_tensor(out, "out"), call.check_pair(out, in), call.check_numel(out, total(rows) * row, "out");
    call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
    plan->shape.output_begins = begins_of(call, out, rows, row);
  }
  call.choose(*plan, {.collective = Collective::gather, .block = call.units(in, in.numel()), .root = root}, options.algorithm);
  return call.run(plan, is_root ? out : Tensor(), in, options);
}

Work Group::scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::scatter_v_out", *this};
  call.check_rank(root, "root"), call.check_tensor(out, "out"), call.check_rows(rows, "rows");
  const auto me = static_cast<std::size_t>(call.impl().rank());
  const bool is_root = call.impl().rank() == root;
  const std::int64_t row = call.row_of(out, rows[me], "out");
  const auto plan = call.plan(CallKind::scatter_v, out, options);
  plan->header.elements = static_cast<std::uint64_t>(total(rows)) * static_cast<std::uint64_t>(row), plan->header.rows = hash_of(rows);
  if (is_root) {
    call.check_tensor(in, "the input"), call.check_pair(out, in), call.check_numel(in, total(rows) * row, "the input");
    call.check_overlap(out, in, call.impl().size() == 1, total(rows.first(me)) * row);
    plan->shape.input_begins = begins_of(call, in, rows, row);
  }
  call.choose(*plan, {.collective = Collective::scatter, .block = call.units(out, out.numel()), .root = root}, options.algorithm);
  return call.run(plan, out, is_root ? in : Tensor(), options);
}

Work Group::all_to_all_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> out_rows, std::span<const std::int64_t> in_rows,
                             const CallOptions& options) const {
  const GroupCalls call{"dist::Group::all_to_all_v_out", *this};
  call.check_tensor(out, "out"), call.check_tensor(in, "the input"), call.check_pair(out, in);
  call.check_rows(out_rows, "out_rows"), call.check_rows(in_rows, "in_rows");
  const std::int64_t row = call.row_of(in, total(in_rows), "the input");
  call.check(call.row_of(out, total(out_rows), "out") == row, ErrorCode::invalid_shape,
             "rows of out must have as many elements as those of the input, got another number");
  call.check_overlap(out, in, false, -1);
  const auto plan = call.plan(CallKind::all_to_all_v, in, options);
  const std::int64_t one_row[] = {row};
  plan->header.rows = hash_of(one_row);
  plan->rows.assign(in_rows.begin(), in_rows.end()), plan->rows.insert(plan->rows.end(), out_rows.begin(), out_rows.end());
  plan->shape.input_begins = begins_of(call, in, in_rows, row), plan->shape.output_begins = begins_of(call, out, out_rows, row);
  plan->in_sizes = {{in.numel()}}, plan->out_sizes = {{out.numel()}};
  const std::size_t block = std::max(longest(plan->shape.input_begins), longest(plan->shape.output_begins));
  call.choose(*plan, {.collective = Collective::all_to_all, .block = block}, options.algorithm);
  return call.run(plan, out, in, options);
}

Work Group::send(const Tensor& in, int to, int tag, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::send", *this};
  call.check_rank(to, "to"), call.check_tensor(in, "the input");
  call.check(to != call.impl().rank(), ErrorCode::invalid_argument, "to must be another rank, got {}", to);
  call.check(tag >= 0 && tag <= kMaxTag, ErrorCode::invalid_argument, "tag must be 0 to {}, got {}", kMaxTag, tag);
  const auto plan = call.plan(CallKind::send, in, options);
  plan->header.elements = static_cast<std::uint64_t>(in.numel()), plan->peer = to, plan->tag = tag;
  plan->schedule = std::make_shared<const Schedule>();
  return call.run(plan, {}, in, options);
}

Work Group::recv(const Tensor& out, int from, int tag, const CallOptions& options) const {
  const GroupCalls call{"dist::Group::recv", *this};
  if (from != kAnyRank) call.check_rank(from, "from");
  call.check_tensor(out, "out");
  call.check(from != call.impl().rank(), ErrorCode::invalid_argument, "from must be another rank, got {}", from);
  call.check(tag >= 0 && tag <= kMaxTag, ErrorCode::invalid_argument, "tag must be 0 to {}, got {}", kMaxTag, tag);
  const auto plan = call.plan(CallKind::receive, out, options);
  plan->header.elements = static_cast<std::uint64_t>(out.numel()), plan->peer = from, plan->tag = tag;
  plan->schedule = std::make_shared<const Schedule>();
  return call.run(plan, out, {}, options);
}

Work Group::barrier(const CallOptions& options) const {
  const GroupCalls call{"dist::Group::barrier", *this};
  return call.run(call.plan(CallKind::barrier, {}, options), {}, {}, options);
}

void Group::set_timeout(Timeout timeout) const {
  const GroupCalls call{"dist::Group::set_timeout", *this};
  call.check(timeout.count() > 0, ErrorCode::invalid_argument, "timeout must be above 0, got {} ms", timeout.count());
  call.impl().set_timeout(timeout);
}

void Group::abort(const std::string& why) const {
  const GroupCalls call{"dist::Group::abort", *this};
  call.impl().fail(Error(ErrorCode::peer_failed, call.op, fmt::format("rank {} gave up: {}", call.impl().rank(), why)));
}

void Group::dump_flight(const std::filesystem::path& prefix, FlightFormat format) const {
  const GroupCalls call{"dist::Group::dump_flight", *this};
  Flight* const flight = call.impl().flight();
  if (flight == nullptr) call.refuse(ErrorCode::not_supported, "the group must have a flight recorder, got one of OpenOptions::flight_records 0");
  const FlightImage image = flight->ring().image();
  std::filesystem::path file = prefix;
  file += std::to_string(image.rank);
  named(call.op, [&] { write_flight(file, format == FlightFormat::json ? json_of(image) : torch_pickle_of(image)); });
}

bool Group::failed() const { return GroupCalls{"dist::Group::failed", *this}.impl().failure().has_value(); }

std::vector<int> Group::lost() const { return GroupCalls{"dist::Group::lost", *this}.impl().lost(); }

Group Group::reconfigure(std::span<const int> survivors, std::uint64_t epoch) const {
  const GroupCalls call{"dist::Group::reconfigure", *this};
  check_members(call, survivors);
  return named(call.op, [&] { return Group(call.impl().rest(survivors, epoch)); });
}

Group Group::reconfigure(std::uint64_t epoch) const {
  const GroupCalls call{"dist::Group::reconfigure", *this};
  return named(call.op, [&] { return Group(call.impl().rest(epoch)); });
}

}}}  // namespace clutch::v0::dist
