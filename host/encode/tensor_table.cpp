// SPDX-License-Identifier: Apache-2.0
#include "encode/tensor_table.hpp"

#include <clutch/kernel.hpp>

#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch::inline v0 {

detail::TableLayout detail::table_layout(std::span<const Address> places) {
  TableLayout layout;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].mem) {
      layout.words.push_back(~std::uint64_t{0});
      continue;
    }
    auto base = std::find_if(layout.bases.begin(), layout.bases.end(), [&](std::size_t first) { return places[first].mem == places[i].mem; });
    if (base == layout.bases.end()) base = layout.bases.insert(base, i);
    layout.words.push_back(static_cast<std::uint64_t>(base - layout.bases.begin()) << 56 | places[i].offset);
  }
  return layout;
}

struct TensorTable::State {
  std::vector<Column> columns;
  std::vector<detail::Address> places;  ///< of the tensors whose words the device has
  std::vector<cl_mem> bases;
  Tensor words;
  std::uint64_t stream = 0;  ///< on which they were written; 0: they must be anew

  /// Words of the places. Errors: invalid_argument if they lie in too many buffers.
  void write(const Stream& on, const char* op) {
    const detail::TableLayout layout = detail::table_layout(places);
    if (layout.bases.size() > kBases)
      throw Error(ErrorCode::invalid_argument, op, fmt::format("the tensors of a table lie in {} buffers, at most {} fit", layout.bases.size(), kBases));
    words = from_bytes(layout.words.data(), layout.words.size() * sizeof(std::uint64_t), {static_cast<std::int64_t>(layout.words.size())},
                       {.dtype = DType::i64, .device = on.device()}, on);
    bases.clear();
    for (std::size_t first : layout.bases) bases.push_back(places[first].mem);
    bases.resize(kBases, bases.empty() ? words.storage()->mem() : bases[0]);
    stream = on.impl()->id();
  }
};

TensorTable::TensorTable(std::vector<Column> columns) : state_(std::make_unique<State>()) { state_->columns = std::move(columns); }
TensorTable::~TensorTable() = default;
TensorTable::TensorTable(TensorTable&&) noexcept = default;
TensorTable& TensorTable::operator=(TensorTable&&) noexcept = default;

std::vector<std::size_t> TensorTable::split(std::span<const Tensor* const> tensors, std::size_t columns) {
  std::vector<std::size_t> ends;
  std::vector<const void*> buffers;
  std::size_t rows = tensors.size() / columns, first = 0;
  auto add_row = [&](std::size_t row) {
    // Memory that a graph has yet to place is taken for one buffer: arenas have few.
    for (const Tensor* t : tensors.subspan(row * columns, columns))
      if (t && std::find(buffers.begin(), buffers.end(), t->storage()->mem()) == buffers.end()) buffers.push_back(t->storage()->mem());
    return buffers.size() <= kBases;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    if (add_row(row)) continue;
    if (row > first) ends.push_back(row);
    first = row;
    buffers.clear();
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
  if (recording_) [[unlikely]] {
    detail::Launch& launch = recording_->launch;
    launch.table = {.first_base = static_cast<int>(launch.arguments.size())};
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      launch.table.entries.push_back(storage_at(i) ? static_cast<int>(launch.operands.size()) : -1);
      if (tensors[i]) launch.operands.push_back({*tensors[i], table.columns[i % columns].access});
    }
    for (int i = 0; i < TensorTable::kBases + 1; ++i) launch.arguments.push_back({.kind = detail::BoundArgument::Kind::memory});
    launch.arguments.push_back({.kind = detail::BoundArgument::Kind::offset});
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
