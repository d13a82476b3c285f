// SPDX-License-Identifier: Apache-2.0
#include "dist/checkpoint_files.hpp"

#include "dist/layout.hpp"
#include "interop/safetensors_header.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

namespace {

using clutch::detail::SafetensorsItem, clutch::detail::SafetensorsType;
constexpr const char* kShardingInfo = "DCP_SHARDING_INFO";
constexpr const char* kOffsets = "saved_offsets";

Layout layout_of(const Sharded& x) { return {.sizes = x.sizes(), .mesh_shape = x.mesh().shape(), .placements = x.placements()}; }

/// What this rank writes: nothing where another one has the same. A tensor without elements is written by the first rank.
std::vector<Piece> written(const Sharded& x) {
  const Dims& cell = x.mesh().coordinate();
  for (int k = 0; k < cell.rank(); ++k)
    if (x.placements()[static_cast<std::size_t>(k)].is_replicate() && cell[k] != 0) return {};
  if (numel(x.sizes()) > 0) return layout_of(x).pieces(cell);
  for (const std::int64_t c : cell)
    if (c != 0) return {};
  const Dims zero = Dims::filled(x.sizes().rank(), 0);
  return {{.box = {.offsets = zero, .sizes = x.sizes()}, .local = zero}};
}

std::vector<std::int64_t> list_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

}  // namespace

void check_saved(const char* op, const std::string& name, const Sharded& x) {
  for (const Placement& p : x.placements())
    if (p.is_partial())
      throw Error(ErrorCode::invalid_argument, op, fmt::format("'{}' must be replicated or shards, got {}: redistribute it first", name, to_string(p)));
  if (name == "__metadata__") throw Error(ErrorCode::invalid_argument, op, "a tensor's name must not be the format's own word, got '__metadata__'");
  if (clutch::detail::safetensors_type(x.dtype()) == nullptr)
    throw Error(ErrorCode::invalid_dtype, op, fmt::format("the dtype of '{}' must be one of safetensors, got {}", name, clutch::name(x.dtype())));
}

std::vector<CheckpointFile> files_of(const char* op, const std::map<std::string, Sharded>& tensors, const Stream& stream) {
  std::map<std::string, std::vector<Piece>> pieces;
  std::size_t most = 0;
  for (const auto& [name, x] : tensors) most = std::max(most, (pieces[name] = written(x)).size());
  const Group& group = tensors.begin()->second.mesh().group();
  std::vector<CheckpointFile> files;
  for (std::size_t i = 0; i < most; ++i) {
    // A file has a box of each tensor.
    std::vector<SafetensorsItem> items;
    nlohmann::json places = nlohmann::json::object();
    for (const auto& [name, x] : tensors) {
      if (i >= pieces[name].size()) continue;
      const Box& box = pieces[name][i].box;
      items.push_back({name, clutch::detail::safetensors_type(x.dtype()), box.sizes, bytes_for(x.dtype(), static_cast<std::uint64_t>(numel(box.sizes)))});
      places[name][kOffsets] = list_of(box.offsets);
    }
    std::string text;
    try {
      text = clutch::detail::safetensors_header(items, {{"format", "pt"}, {"DCP_VERSION", "1.0"}, {kShardingInfo, places.dump()}});
    } catch (const nlohmann::json::exception&) {
      text.clear();
    }
    if (text.empty()) throw Error(ErrorCode::invalid_argument, op, "names must be UTF-8, got other bytes");
    const std::uint64_t length = text.size();
    if (length > clutch::detail::kMostHeader)
      throw Error(ErrorCode::invalid_argument, op, fmt::format("the header must have at most {} bytes, got {}", clutch::detail::kMostHeader, length));
    std::size_t all = sizeof length + text.size();
    for (const SafetensorsItem& item : items) all += item.bytes;
    CheckpointFile file{.name = fmt::format("shard-{:05}-model-00001-of-00001.safetensors",
                                            i * static_cast<std::size_t>(group.size()) + static_cast<std::size_t>(group.rank()) + 1),
                        .bytes = std::vector<std::byte>(all)};
    std::memcpy(file.bytes.data(), &length, sizeof length);
    std::memcpy(file.bytes.data() + sizeof length, text.data(), text.size());
    std::span<std::byte> left = std::span(file.bytes).subspan(sizeof length + text.size());
    for (const SafetensorsItem& item : items) {
      const std::string name(item.name);
      const Piece& piece = pieces[name][i];
      Tensor part = tensors.at(name).local();
      for (int d = 0; d < part.rank(); ++d) part = part.slice(d, piece.local[d], piece.local[d] + piece.box.sizes[d]);
      if (item.bytes > 0) part.read_bytes(left.first(item.bytes), stream);
      left = left.subspan(item.bytes);
    }
    files.push_back(std::move(file));
  }
  return files;
}

void CopiedBox::copy_to(std::span<std::byte> target) const {
  const int rank = sizes.rank();
  if (rank == 0) {
    std::memcpy(target.data(), source.data(), element);
    return;
  }
  // Rows of the last dimension.
  const std::int64_t rows = numel(sizes) / sizes[rank - 1];
  const std::size_t row = static_cast<std::size_t>(sizes[rank - 1]) * element;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t left = i, from = source_at[rank - 1], to = target_at[rank - 1], from_stride = source_sizes[rank - 1], to_stride = target_sizes[rank - 1];
    for (int d = rank - 1; d-- > 0;) {
      const std::int64_t at = left % sizes[d];
      left /= sizes[d];
      from += (source_at[d] + at) * from_stride, to += (target_at[d] + at) * to_stride;
      from_stride *= source_sizes[d], to_stride *= target_sizes[d];
    }
    std::memcpy(target.data() + static_cast<std::size_t>(to) * element, source.data() + static_cast<std::size_t>(from) * element, row);
  }
}

void CheckpointReader::bad(std::string_view file, const std::string& got) const {
  throw Error(ErrorCode::io, op_, fmt::format("{}: the files must be those of a whole checkpoint, got {}", file, got));
}

CheckpointReader::CheckpointReader(const char* op, const std::string& path) : op_(op), path_(path) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (at->path().extension() == ".safetensors") names_.push_back(at->path().string());
  if (error) throw Error(ErrorCode::io, op_, fmt::format("{}: the folder must be readable, got an error: {}", path, error.message()));
  if (names_.empty()) bad(path, "no *.safetensors file");
  std::sort(names_.begin(), names_.end());
  for (const std::string& file : names_) {
    files_.push_back(Safetensors::open(file));
    const Safetensors& of = files_.back();
    const auto info = of.metadata().find(kShardingInfo);
    nlohmann::json places;
    if (info != of.metadata().end()) {
      places = nlohmann::json::parse(info->second, nullptr, false);
      if (!places.is_object()) bad(file, "a DCP_SHARDING_INFO that is no JSON object");
    }
    for (const Safetensors::Entry& entry : of.entries()) {
      SavedBox chunk{.box = {.offsets = Dims::filled(entry.sizes.rank(), 0), .sizes = entry.sizes},
                     .dtype = entry.dtype,
                     .bytes = of.bytes(entry.name),
                     .file = files_.size() - 1};
      if (places.is_object()) {
        const auto place = places.find(entry.name);
        if (place == places.end() || !place->is_object() || !place->contains(kOffsets) || !(*place)[kOffsets].is_array() ||
            (*place)[kOffsets].size() != static_cast<std::size_t>(entry.sizes.rank()))
          bad(file, fmt::format("no place of '{}', of {} dimensions", entry.name, entry.sizes.rank()));
        int d = 0;
        for (const nlohmann::json& offset : (*place)[kOffsets]) {
          if (!offset.is_number_unsigned() || offset.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxNumel))
            bad(file, fmt::format("the place {} of '{}'", offset.dump(), entry.name));
          chunk.box.offsets[d++] = static_cast<std::int64_t>(offset.get<std::uint64_t>());
        }
      }
      for (const std::int64_t size : entry.sizes)
        if (size > kMaxNumel) bad(file, fmt::format("'{}' of shape {}", entry.name, to_string(entry.sizes)));
      chunks_[entry.name].push_back(chunk);
    }
  }
}

namespace {

/// What two boxes share; no box where that is nothing.
bool shared(const Box& a, const Box& b, Box& both) {
  both = {};
  for (int d = 0; d < a.sizes.rank(); ++d) {
    const std::int64_t begin = std::max(a.offsets[d], b.offsets[d]), end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    if (begin >= end) return false;
    both.offsets.push_back(begin), both.sizes.push_back(end - begin);
  }
  return true;
}

}  // namespace

std::vector<CopiedBox> CheckpointReader::copies_to(const std::string& name, const Sharded& x) const {
  check_saved(op_, name, x);
  const auto found = chunks_.find(name);
  if (found == chunks_.end()) throw Error(ErrorCode::invalid_argument, op_, fmt::format("{}: the checkpoint must have a tensor '{}', got none", path_, name));
  const std::vector<SavedBox>& chunks = found->second;
  const int rank = x.sizes().rank();
  Dims sizes = Dims::filled(rank, 0);
  for (const SavedBox& chunk : chunks) {
    if (chunk.box.sizes.rank() != rank)
      throw Error(ErrorCode::invalid_shape, op_,
                  fmt::format("'{}' must have {} dimensions as in {}, got {}", name, chunk.box.sizes.rank(), names_[chunk.file], rank));
    if (chunk.dtype != x.dtype())
      throw Error(ErrorCode::invalid_dtype, op_,
                  fmt::format("'{}' must be {} as in {}, got {}", name, clutch::name(chunk.dtype), names_[chunk.file], clutch::name(x.dtype())));
    for (int d = 0; d < rank; ++d) sizes[d] = std::max(sizes[d], chunk.box.offsets[d] + chunk.box.sizes[d]);
  }
  if (sizes != x.sizes())
    throw Error(ErrorCode::invalid_shape, op_, fmt::format("{}: '{}' must have the shape {}, got {}", path_, name, to_string(sizes), to_string(x.sizes())));
  const Dims local = x.local().sizes();
  std::vector<CopiedBox> copies;
  std::vector<const SavedBox*> taken;
  std::int64_t elements = 0;
  Box both;
  for (const Piece& piece : layout_of(x).pieces(x.mesh().coordinate()))
    for (const SavedBox& chunk : chunks) {
      if (!shared(chunk.box, piece.box, both)) continue;
      CopiedBox copy{.source = chunk.bytes,
                     .sizes = both.sizes,
                     .source_sizes = chunk.box.sizes,
                     .source_at = {},
                     .target_sizes = local,
                     .target_at = {},
                     .element = static_cast<std::size_t>(bits(x.dtype())) / 8};
      for (int d = 0; d < rank; ++d)
        copy.source_at.push_back(both.offsets[d] - chunk.box.offsets[d]), copy.target_at.push_back(piece.local[d] + both.offsets[d] - piece.box.offsets[d]);
      elements += numel(both.sizes);
      copies.push_back(copy);
      if (std::find(taken.begin(), taken.end(), &chunk) == taken.end()) taken.push_back(&chunk);
    }
  for (std::size_t i = 0; i < taken.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (shared(taken[i]->box, taken[j]->box, both))
        bad(names_[taken[i]->file], fmt::format("elements of '{}' that {} has, too", name, names_[taken[j]->file]));
  if (elements != x.local().numel()) bad(path_, fmt::format("{} of {} elements of '{}'", elements, x.local().numel(), name));
  return copies;
}

}}}}  // namespace clutch::v0::dist::detail
