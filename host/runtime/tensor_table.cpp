// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_table.hpp"

#include <clutch/kernel.hpp>

#include "common/table.h"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 {

static_assert(TensorTable::kBases == CLUTCH_TABLE_BASES);

detail::TableLayout detail::table_layout(std::span<const Address> places) {
  TableLayout layout;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i].mem) {
      layout.words.push_back(CLUTCH_NO_TENSOR);
      continue;
    }
    auto base = std::find_if(layout.bases.begin(), layout.bases.end(), [&](std::size_t first) { return places[first].mem == places[i].mem; });
    if (base == layout.bases.end()) base = layout.bases.insert(base, i);
    layout.words.push_back(clutch_word_of(static_cast<std::uint64_t>(base - layout.bases.begin()), places[i].offset));
  }
  return layout;
}

void detail::TableState::update(const std::shared_ptr<StreamImpl>& on, std::span<const Tensor* const> tensors, const char* op) {
  bool stands = places.size() == tensors.size() && stream == on->id();
  if (!stands) places.assign(tensors.size(), {}), stream = 0;
  auto look_at = [&](std::size_t i, Argument::Kind access) {
    Address at;
    if (tensors[i]) {
      Storage& storage = *tensors[i]->storage();
      check_placed(storage, op);
      storage.used_on(on, access != Argument::Kind::input, op);
      at = {storage.mem(), storage.offset() + tensors[i]->byte_offset()};
    }
    if (places[i] == at) return;
    stands = false;
    stream = 0;  // even if a call below fails, the words on the device no longer match
    places[i] = at;
  };
  // Columns marked `kept` hold the same tensors as before, whose use by this stream is noted already; only the race checker needs each use.
  const bool only_loose = stands && !the_settings().check_streams.on();
  for (std::size_t column = 0; column < columns.size(); ++column)
    if (!only_loose || !columns[column].kept)
      for (std::size_t i = column; i < tensors.size(); i += columns.size()) look_at(i, columns[column].access);
  if (stands) return;
  const TableLayout layout = table_layout(places);
  if (layout.bases.size() > TensorTable::kBases)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("the tensors of a table must be in at most {} buffers, got {}", TensorTable::kBases, layout.bases.size()));
  const Stream writer(on);
  words = from_bytes(layout.words.data(), layout.words.size() * sizeof(std::uint64_t), {static_cast<std::int64_t>(layout.words.size())},
                     {.dtype = DType::i64, .device = writer.device()}, writer);
  bases.clear();
  for (std::size_t first : layout.bases) bases.push_back(places[first].mem);
  bases.resize(TensorTable::kBases, bases.empty() ? words.storage()->mem() : bases[0]);
  stream = on->id();
}

TensorTable::TensorTable(std::vector<Column> columns) : state_(std::make_unique<detail::TableState>()) { state_->columns = std::move(columns); }
TensorTable::~TensorTable() = default;
TensorTable::TensorTable(TensorTable&&) noexcept = default;
TensorTable& TensorTable::operator=(TensorTable&&) noexcept = default;

std::vector<std::size_t> TensorTable::split(std::span<const Tensor* const> tensors, std::size_t columns) {
  std::vector<std::size_t> ends;
  std::vector<const void*> buffers;
  std::size_t rows = tensors.size() / columns, first = 0;
  auto add_row = [&](std::size_t row) {
    // Memory that a graph has not placed yet counts as one buffer, since a graph has few arenas.
    for (const Tensor* t : tensors.subspan(row * columns, columns))
      if (t && std::find(buffers.begin(), buffers.end(), t->storage()->mem()) == buffers.end()) buffers.push_back(t->storage()->mem());
    return buffers.size() <= kBases;
  };
  for (std::size_t row = 0; row < rows; ++row) {
    if (add_row(row)) continue;
    if (row > first) ends.push_back(row);
    first = row;
    buffers.clear();
    if (!add_row(row))
      throw Error(ErrorCode::not_supported, "TensorTable",
                  fmt::format("the tensors of a row must be in at most {} buffers, got {} for row {}", int{kBases}, buffers.size(), row));
  }
  if (rows > 0) ends.push_back(rows);
  return ends;
}

}}  // namespace clutch::v0
