// SPDX-License-Identifier: Apache-2.0
#include "dist/group_calls.hpp"

#include <clutch/dist/sharded.hpp>

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {

struct MeshState {
  Group group;
  Dims shape;
  std::vector<std::string> names;
  Dims coordinate;
  std::vector<Group> groups;  ///< of each dimension
};

}  // namespace detail

namespace {

const detail::MeshState& of(const std::shared_ptr<const detail::MeshState>& state, const char* op) {
  if (!state) throw Error(ErrorCode::invalid_argument, op, "the Mesh must be a made one, got an empty one");
  return *state;
}

}  // namespace

Mesh::Mesh(const Group& group, const Dims& shape, std::vector<std::string> names) {
  const detail::GroupCalls call{"dist::Mesh", group};
  const int size = call.impl().size(), rank = call.impl().rank();
  call.check(shape.rank() > 0, ErrorCode::invalid_argument, "the mesh must have a dimension or more, got none");
  call.check(numel(shape) == size, ErrorCode::invalid_shape, fmt::format("the mesh must have {} cells, one a rank, got shape {}", size, to_string(shape)));
  if (!names.empty()) {
    call.check(names.size() == static_cast<std::size_t>(shape.rank()), ErrorCode::invalid_argument,
               fmt::format("names must be one for each of {} dimensions, got {}", shape.rank(), names.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      call.check(!names[i].empty() &&
                     std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) == names.begin() + static_cast<std::ptrdiff_t>(i),
                 ErrorCode::invalid_argument, fmt::format("names must be different ones that are not empty, got '{}'", names[i]));
  }
  auto state = std::make_shared<detail::MeshState>();
  state->group = group, state->shape = shape, state->names = std::move(names);
  state->coordinate = Dims::filled(shape.rank(), 0);
  std::int64_t left = rank;
  for (int k = shape.rank(); k-- > 0;) state->coordinate[k] = left % shape[k], left /= shape[k];
  std::int64_t stride = size;
  for (int k = 0; k < shape.rank(); ++k) {
    stride /= shape[k];
    if (shape.rank() == 1) {
      state->groups.push_back(group);
      continue;
    }
    // The number of the rank at coordinate 0.
    const auto color = static_cast<int>(rank - state->coordinate[k] * stride);
    const std::string name = fmt::format("{}.{}", group.name(), state->names.empty() ? std::to_string(k) : state->names[static_cast<std::size_t>(k)]);
    state->groups.push_back(detail::named(call.op, [&] { return group.split(color, static_cast<int>(state->coordinate[k]), name); }));
  }
  state_ = std::move(state);
}

const Dims& Mesh::shape() const { return of(state_, "dist::Mesh::shape").shape; }
const std::vector<std::string>& Mesh::names() const { return of(state_, "dist::Mesh::names").names; }
const Dims& Mesh::coordinate() const { return of(state_, "dist::Mesh::coordinate").coordinate; }
const Group& Mesh::group() const { return of(state_, "dist::Mesh::group").group; }

const Group& Mesh::group(int dim) const {
  const detail::MeshState& state = of(state_, "dist::Mesh::group");
  if (dim < 0 || dim >= state.shape.rank())
    throw Error(ErrorCode::invalid_argument, "dist::Mesh::group", fmt::format("the dimension must be one of {}, got {}", state.shape.rank(), dim));
  return state.groups[static_cast<std::size_t>(dim)];
}

int Mesh::dim(std::string_view name) const {
  const detail::MeshState& state = of(state_, "dist::Mesh::dim");
  const auto found = std::find(state.names.begin(), state.names.end(), name);
  if (found == state.names.end())
    throw Error(ErrorCode::invalid_argument, "dist::Mesh::dim", fmt::format("the name must be that of a dimension, got '{}'", name));
  return static_cast<int>(found - state.names.begin());
}

Mesh Mesh::operator[](std::string_view name) const {
  const int k = dim(name);
  return {group(k), {shape()[k]}, {std::string(name)}};
}

Mesh Mesh::submesh(const std::vector<std::string>& names) const {
  const detail::MeshState& state = of(state_, "dist::Mesh::submesh");
  Dims sizes;
  std::vector<bool> is_in(state.names.size(), false);
  std::int64_t key = 0;
  for (const std::string& name : names) {
    const int k = dim(name);
    sizes.push_back(state.shape[k]);
    key = key * state.shape[k] + state.coordinate[k];
    is_in[static_cast<std::size_t>(k)] = true;
  }
  std::int64_t color = 0;
  for (int k = 0; k < state.shape.rank(); ++k)
    if (is_in.empty() || !is_in[static_cast<std::size_t>(k)]) color = color * state.shape[k] + state.coordinate[k];
  return detail::named("dist::Mesh::submesh", [&] { return Mesh(state.group.split(static_cast<int>(color), static_cast<int>(key)), sizes, names); });
}

bool operator==(const Mesh& a, const Mesh& b) noexcept {
  if (!a.state_ || !b.state_) return a.state_ == b.state_;
  return a.state_->group.impl() == b.state_->group.impl() && a.state_->shape == b.state_->shape;
}

}}}  // namespace clutch::v0::dist
