// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "encode/op_name.hpp"
#include "graph/capture.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch::inline v0 {

struct TensorTable::State {
  std::vector<Argument::Kind> columns;
  std::vector<detail::Address> places;  ///< of the tensors whose words the device has
  std::vector<cl_mem> bases;
  Tensor words;
  std::uint64_t stream = 0;  ///< on which they were written
};

TensorTable::TensorTable(std::vector<Argument::Kind> columns) : state_(std::make_unique<State>()) { state_->columns = std::move(columns); }
TensorTable::~TensorTable() = default;
TensorTable::TensorTable(TensorTable&&) noexcept = default;
TensorTable& TensorTable::operator=(TensorTable&&) noexcept = default;

namespace {

/// Buffers by the order in which they are met.
struct Bases {
  std::vector<const void*> all;
  std::size_t find(const void* mem) {
    auto found = std::find(all.begin(), all.end(), mem);
    return static_cast<std::size_t>((found == all.end() ? all.insert(found, mem) : found) - all.begin());
  }
};

}  // namespace

std::vector<std::size_t> TensorTable::split(std::span<const Tensor* const> tensors, std::size_t columns) {
  std::vector<std::size_t> ends;
  Bases bases;
  std::size_t rows = tensors.size() / columns, first = 0;
  auto add_row = [&](std::size_t row) {
    // Memory that a graph has yet to place is taken for one buffer: arenas have few.
    for (const Tensor* t : tensors.subspan(row * columns, columns))
      if (t) bases.find(t->storage()->mem());
    return bases.all.size() <= kBases;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    if (add_row(row)) continue;
    if (row > first) ends.push_back(row);
    first = row;
    bases.all.clear();
    if (!add_row(row)) throw Error(ErrorCode::not_supported, "TensorTable", fmt::format("the tensors of row {} lie in more than {} buffers", row, kBases));
  }
  if (rows > 0) ends.push_back(rows);
  return ends;
}

Encoder& Encoder::table(TensorTable& given, std::span<const Tensor* const> tensors) {
  TensorTable::State& table = *given.state_;
  const std::size_t columns = table.columns.size();
  const auto& stream = stream_.impl();
  if (columns == 0 || tensors.empty() || tensors.size() % columns != 0)
    throw Error(ErrorCode::invalid_argument, op_, fmt::format("{} tensors for a table of {} columns", tensors.size(), columns));
  for (const Tensor* t : tensors) {
    if (t && !t->defined()) throw Error(ErrorCode::invalid_argument, op_, "a tensor is undefined");
    if (t && &t->storage()->runtime() != &stream->runtime())
      throw Error(ErrorCode::device_mismatch, op_, "a tensor and the stream are of different devices or contexts");
  }
  if (draft_) [[unlikely]] {
    detail::GraphTable& recorded = draft_->table;
    recorded = {};
    recorded.first_base = static_cast<int>(draft_->bound.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      recorded.entries.push_back(tensors[i] ? static_cast<int>(draft_->operands.size()) : -1);
      if (tensors[i]) draft_->operands.push_back({*tensors[i], table.columns[i % columns]});
    }
    for (int i = 0; i < TensorTable::kBases + 1; ++i) draft_->bound.push_back({.kind = detail::GraphBound::Kind::memory});
    draft_->bound.push_back({.kind = detail::GraphBound::Kind::offset});
    return *this;
  }
  bool stands = table.places.size() == tensors.size() && table.stream == stream->id();
  if (!stands) table.places.assign(tensors.size(), {});
  for (std::size_t i = 0, column = 0; i < tensors.size(); ++i, column = column + 1 == columns ? 0 : column + 1) {
    detail::Address at;
    if (tensors[i]) {
      detail::Storage& storage = *tensors[i]->storage();
      detail::check_placed(storage, op_);
      storage.used_on(stream, table.columns[column] != Argument::Kind::input, op_);
      at = {storage.mem(), storage.offset() + tensors[i]->byte_offset()};
    }
    if (table.places[i] == at) continue;
    stands = false;
    table.stream = 0;  // the words no longer fit, even if a call below fails
    table.places[i] = at;
  }
  if (!stands) {
    table.bases.clear();
    std::vector<std::int64_t> words;
    for (const detail::Address& at : table.places) {
      if (!at.mem) {
        words.push_back(-1);
        continue;
      }
      auto base = std::find(table.bases.begin(), table.bases.end(), at.mem);
      if (base == table.bases.end()) base = table.bases.insert(base, at.mem);
      words.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(base - table.bases.begin()) << 56 | at.offset));
    }
    if (table.bases.size() > TensorTable::kBases)
      throw Error(ErrorCode::invalid_argument, op_,
                  fmt::format("the tensors of a table lie in {} buffers, at most {} fit", table.bases.size(), TensorTable::kBases));
    table.words = from_host(words, {static_cast<std::int64_t>(words.size())}, stream_.device(), stream_);
    table.bases.resize(TensorTable::kBases, table.bases.empty() ? table.words.storage()->mem() : table.bases[0]);
    table.stream = stream->id();
  }
  for (const cl_mem& mem : table.bases) bind_bytes(&mem, sizeof mem, "", "");
  return input(table.words);
}

}  // namespace clutch::inline v0
