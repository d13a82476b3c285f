// SPDX-License-Identifier: Apache-2.0
#include <clutch/kernel.hpp>

#include "encode/op_name.hpp"
#include "graph/capture.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch::inline v0 {

struct TensorTable::State {
  std::vector<Column> columns;
  std::vector<detail::Address> places;  ///< of the tensors whose words the device has
  std::vector<cl_mem> bases;
  Tensor words;
  std::uint64_t stream = 0;  ///< on which they were written; 0: they must be anew

  /// Words of the places. Errors: invalid_argument if they lie in too many buffers.
  void write(const Stream& on, const char* op) {
    bases.clear();
    std::vector<std::int64_t> made;
    for (const detail::Address& at : places) {
      if (!at.mem) {
        made.push_back(-1);
        continue;
      }
      auto base = std::find(bases.begin(), bases.end(), at.mem);
      if (base == bases.end()) base = bases.insert(base, at.mem);
      made.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(base - bases.begin()) << 56 | at.offset));
    }
    if (bases.size() > kBases)
      throw Error(ErrorCode::invalid_argument, op, fmt::format("the tensors of a table lie in {} buffers, at most {} fit", bases.size(), kBases));
    words = from_host(made, {static_cast<std::int64_t>(made.size())}, on.device(), on);
    bases.resize(kBases, bases.empty() ? words.storage()->mem() : bases[0]);
    stream = on.impl()->id();
  }
};

TensorTable::TensorTable(std::vector<Column> columns) : state_(std::make_unique<State>()) { state_->columns = std::move(columns); }
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
  auto storage_at = [&](std::size_t i) -> detail::Storage* {
    if (!tensors[i]) return nullptr;
    const std::shared_ptr<detail::Storage>& storage = tensors[i]->storage();
    if (!storage) throw Error(ErrorCode::invalid_argument, op_, "a tensor is undefined");
    if (&storage->runtime() != &stream->runtime()) throw Error(ErrorCode::device_mismatch, op_, "a tensor and the stream are of different devices or contexts");
    return storage.get();
  };
  if (draft_) [[unlikely]] {
    detail::GraphTable& recorded = draft_->table;
    recorded = {};
    recorded.first_base = static_cast<int>(draft_->bound.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      recorded.entries.push_back(storage_at(i) ? static_cast<int>(draft_->operands.size()) : -1);
      if (tensors[i]) draft_->operands.push_back({*tensors[i], table.columns[i % columns].access});
    }
    for (int i = 0; i < TensorTable::kBases + 1; ++i) draft_->bound.push_back({.kind = detail::GraphBound::Kind::memory});
    draft_->bound.push_back({.kind = detail::GraphBound::Kind::offset});
    return *this;
  }
  bool stands = table.places.size() == tensors.size() && table.stream == stream->id();
  if (!stands) table.places.assign(tensors.size(), {}), table.stream = 0;
  auto look_at = [&](std::size_t i, Argument::Kind access) {
    detail::Address at;
    if (detail::Storage* storage = storage_at(i)) {
      detail::check_placed(*storage, op_);
      storage->used_on(stream, access != Argument::Kind::input, op_);
      at = {storage->mem(), storage->offset() + tensors[i]->byte_offset()};
    }
    if (table.places[i] == at) return;
    stands = false;
    table.stream = 0;  // the words no longer fit, even if a call below fails
    table.places[i] = at;
  };
  // Kept tensors were told that this stream uses them; the race checker wants to hear of each time.
  const bool only_loose = stands && !detail::the_settings().check_streams.on();
  for (std::size_t column = 0; column < columns; ++column)
    if (!only_loose || !table.columns[column].kept)
      for (std::size_t i = column; i < tensors.size(); i += columns) look_at(i, table.columns[column].access);
  if (!stands) table.write(stream_, op_);
  for (const cl_mem& mem : table.bases) bind_bytes(&mem, sizeof mem, "", "");
  return input(table.words);
}

}  // namespace clutch::inline v0
