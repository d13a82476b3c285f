// SPDX-License-Identifier: Apache-2.0
// Saved graphs are safetensors files. The metadata holds the nodes as JSON ("clutch.graph") and a digest of the whole ("clutch.digest"). Tensors "buffer/<i>"
// hold captured memory, "source/<i>" and "binary/<i>" programs.
#include "graph/saved.hpp"

#include <clutch/files.hpp>
#include <clutch/version.hpp>

#include "graph/capture.hpp"
#include "program/sha256.hpp"
#include "runtime/launch_check.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

using nlohmann::json;

constexpr const char *kSave = "Graph::save", *kLoad = "Graph::load";
constexpr int kVersion = 1;

/// `got` names what stands in the place of a saved graph.
[[noreturn]] void damaged(std::string_view got) {
  throw Error(ErrorCode::io, kLoad, fmt::format("the file must be a saved graph without damage, got {}", got));
}

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (unsigned char b : bytes) text += fmt::format("{:02x}", b);
  return text;
}

std::vector<unsigned char> from_hex(const std::string& text) {
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) damaged("bytes of odd length");
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    int high = digit(text[i]), low = digit(text[i + 1]);
    if (high < 0 || low < 0) damaged("bytes that are no hexadecimal");
    bytes.push_back(static_cast<unsigned char>(high * 16 + low));
  }
  return bytes;
}

/// Digest of the JSON and of all tensors, in the order of their names.
std::string digest_of(const std::string& text, const std::map<std::string, std::string>& contents) {
  std::string all = to_hex(sha256(text));
  for (const auto& [name, bytes] : contents) all += fmt::format("\n{} {}", name, to_hex(sha256(bytes)));
  return to_hex(sha256(all));
}

/// Traits of rounding, by which kernels were selected.
json traits_json(const DeviceTraits& t) {
  return {{"fma_exact", t.fma_exact}, {"divide_exact", t.divide_exact}, {"sqrt_exact", t.sqrt_exact}, {"denormals", t.denormals}, {"fp64", t.fp64}};
}

json dims_json(const Dims& dims) { return std::vector<std::int64_t>(dims.begin(), dims.end()); }

// ---- saving -------------------------------------------------------------------------------------------------------

class Writer {
 public:
  Writer(const GraphState& state, std::span<const NamedTensor> tensors, const GraphSaveOptions& options)
      : state_(state), tensors_(tensors.begin(), tensors.end()), options_(options), ranges_(state.buffers.size()) {
    for (const NamedTensor& row : state.named)  // a loaded graph keeps its names
      if (std::none_of(tensors_.begin(), tensors_.end(), [&](const NamedTensor& t) { return t.name == row.name; })) tensors_.push_back(row);
  }

  void write(const std::string& path) {
    check();
    for (const GraphWork& node : state_.nodes)
      for (const GraphUse& use : node.uses) extend(use.buffer, use.byte_offset, use.byte_offset + use.bytes);
    json root{{"version", kVersion}, {"library", CLUTCH_VERSION}, {"device", device_key(state_.runtime())}, {"traits", traits_json(state_.runtime().traits())}};
    name_tensors();
    root["tensors"] = named_;
    root["buffers"] = buffers();
    root["nodes"] = json::array();
    for (const GraphWork& node : state_.nodes) root["nodes"].push_back(node_json(node));
    root["programs"] = programs_;
    std::string text;
    try {
      text = root.dump();
    } catch (const json::exception&) {
      throw Error(ErrorCode::invalid_argument, kSave, "names and annotations must be UTF-8, got other bytes");
    }
    Stream stream(state_.runtime().make_stream(StreamPriority::normal));
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, bytes] : contents_)
      tensors[name] = from_bytes(bytes.data(), bytes.size(), {static_cast<std::int64_t>(bytes.size())},
                                 {.dtype = DType::u8, .device = Device(&state_.runtime().device())}, stream);
    save_safetensors(path, tensors, {{"clutch.graph", text}, {"clutch.digest", digest_of(text, contents_)}}, stream);
  }

 private:
  struct Range {
    std::uint64_t begin = UINT64_MAX, end = 0;
  };

  void check() const {
    std::string refused;
    for (std::size_t i = 0; i < state_.nodes.size(); ++i) {
      const GraphWork& node = state_.nodes[i];
      if (node.kind == GraphNodeKind::host_task || node.kind == GraphNodeKind::opaque)
        refused += fmt::format("{}node {}: {} ({})", refused.empty() ? "" : ", ", i, node.op, name(node.kind));
    }
    if (!refused.empty())
      throw Error(ErrorCode::not_supported, kSave, fmt::format("nodes of a graph to save must be kernels, copies and fills, got {}", refused));
    if (state_.has_rebound())
      throw Error(ErrorCode::invalid_argument, kSave, "the captured tensors must be bound, got others in their place; capture anew, or save before");
  }

  void extend(int buffer, std::uint64_t begin, std::uint64_t end) {
    Range& range = ranges_[static_cast<std::size_t>(buffer)];
    if (begin == end) return;
    range.begin = std::min(range.begin, begin);
    range.end = std::max(range.end, end);
  }

  /// Offset of a byte in the part of its buffer that the file holds.
  std::uint64_t rebased(int buffer, std::uint64_t offset) const {
    const Range& range = ranges_[static_cast<std::size_t>(buffer)];
    bool temporary = !state_.buffers[static_cast<std::size_t>(buffer)].storage;
    return temporary || range.end == 0 ? offset : offset - range.begin;
  }

  void name_tensors() {
    std::vector<int> buffers;
    std::set<std::string> names;
    for (const NamedTensor& row : tensors_) {
      auto refuse = [&](std::string_view why) { throw Error(ErrorCode::invalid_argument, kSave, fmt::format("tensor '{}' {}", row.name, why)); };
      if (!row.tensor.defined()) refuse("must be defined, got an undefined one");
      if (!row.tensor.is_contiguous()) refuse(fmt::format("must be contiguous, got strides {}", to_string(row.tensor.strides())));
      if (!names.insert(row.name).second) refuse("must have a name of its own, got one that another has");
      auto found = std::find_if(state_.buffers.begin(), state_.buffers.end(), [&](const GraphBuffer& b) { return b.storage == row.tensor.storage(); });
      if (found == state_.buffers.end()) refuse("must be used by a node, got one that none uses");
      buffers.push_back(static_cast<int>(found - state_.buffers.begin()));
      extend(buffers.back(), row.tensor.byte_offset(), row.tensor.byte_offset() + row.tensor.nbytes());
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& t = tensors_[i].tensor;
      named_.push_back({{"name", tensors_[i].name},
                        {"buffer", buffers[i]},
                        {"offset", rebased(buffers[i], t.byte_offset())},
                        {"dtype", name(t.dtype())},
                        {"sizes", dims_json(t.sizes())}});
    }
  }

  json buffers() {
    json rows = json::array();
    Stream stream(state_.runtime().make_stream(StreamPriority::normal));
    // The file must have what other streams are still writing.
    state_.runtime().synchronize();
    std::map<int, const std::vector<unsigned char>*> written;  // what a node's first replay writes
    for (const GraphWork& node : state_.nodes)
      if (node.contents) written[node.uses.back().buffer] = node.contents.get();
    for (std::size_t i = 0; i < state_.buffers.size(); ++i) {
      const GraphBuffer& buffer = state_.buffers[i];
      const Range& range = ranges_[i];
      std::uint64_t bytes = !buffer.storage ? buffer.bytes : range.end == 0 ? 0 : range.end - range.begin;
      rows.push_back({{"kind", name(buffer.kind)}, {"bytes", bytes}});
      if (!buffer.storage || bytes == 0) continue;
      if (auto found = written.find(static_cast<int>(i)); found != written.end()) {
        contents_[fmt::format("buffer/{}", i)] = std::string(found->second->begin(), found->second->end());
        continue;
      }
      std::vector<std::uint8_t> raw = Tensor(buffer.storage, range.begin, {static_cast<std::int64_t>(bytes)}, {1}, DType::u8).to_bytes(stream);
      contents_[fmt::format("buffer/{}", i)] = std::string(raw.begin(), raw.end());
    }
    return rows;
  }

  int program_of(const Kernel& kernel) {
    auto [found, fresh] = program_ids_.try_emplace(&kernel, static_cast<int>(programs_.size()));
    if (!fresh) return found->second;
    const Program& program = kernel.program();
    if (program.source().empty())
      throw Error(ErrorCode::not_supported, kSave, fmt::format("kernels of a graph to save must have text, got {} of a binary or of SPIR-V", kernel.name()));
    programs_.push_back({{"entry", kernel.name()}, {"wrapper", kernel.wrapper()}, {"options", program.options()}});
    contents_[fmt::format("source/{}", found->second)] = std::string(program.source());
    if (options_.binaries) {
      std::string binary = program.binary();
      if (!binary.empty()) contents_[fmt::format("binary/{}", found->second)] = std::move(binary);
    }
    return found->second;
  }

  json node_json(const GraphWork& node) {
    json row{{"kind", name(node.kind)}, {"op", node.op}, {"uses", json::array()}};
    for (const GraphUse& use : node.uses)
      row["uses"].push_back({{"buffer", use.buffer},
                             {"offset", rebased(use.buffer, use.byte_offset)},
                             {"access", static_cast<int>(use.access)},
                             {"dtype", name(use.dtype)},
                             {"sizes", dims_json(use.sizes)},
                             {"strides", dims_json(use.strides)}});
    if (node.kind == GraphNodeKind::fill) row["pattern"] = node.pattern;
    row["cost"] = {node.cost.flops, node.cost.bytes, node.cost.flops64};
    if (node.labels) {
      row["labels"] = json::array();
      for (const GraphLabel& label : *node.labels) row["labels"].push_back({{"name", label.name}, {"values", label.values}});
    }
    if (node.kind != GraphNodeKind::kernel) return row;
    row["program"] = program_of(*node.kernel);
    if (!node.plan.empty()) row["plan"] = node.plan.str();
    const Geometry& g = node.geometry;
    row["geometry"] = {g.global, g.local, g.global_y, g.local_y, g.global_z, g.local_z};
    row["bytes"] = hex(node.bytes);
    if (node.table.first_base >= 0) row["table"] = {{"first_base", node.table.first_base}, {"use", node.table.use}, {"entries", node.table.entries}};
    row["arguments"] = json::array();
    for (const BoundArgument& b : node.bound)
      row["arguments"].push_back(
          {{"kind", static_cast<int>(b.kind)}, {"size", b.size}, {"at", b.at}, {"use", b.use}, {"local", b.local}, {"type", b.type}, {"name", b.name}});
    return row;
  }

  const GraphState& state_;
  std::vector<NamedTensor> tensors_;
  GraphSaveOptions options_;
  std::vector<Range> ranges_;
  std::map<std::string, std::string> contents_;
  json named_ = json::array(), programs_ = json::array();
  std::map<const Kernel*, int> program_ids_;
};

// ---- loading ------------------------------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const std::string& path, const Device& device, const std::string& backend, bool relaxed)
      : file_(open(path)), runtime_(runtime_for(device)), state_(std::make_unique<GraphState>(runtime_, backend, make_backend(backend, relaxed))) {}

  std::unique_ptr<GraphState> read() {
    auto graph = file_.metadata().find("clutch.graph"), digest = file_.metadata().find("clutch.digest");
    if (graph == file_.metadata().end() || digest == file_.metadata().end()) damaged("metadata without clutch.graph or clutch.digest");
    std::map<std::string, std::string> contents;
    for (const auto& entry : file_.entries()) contents[entry.name] = text_of(entry.name);
    if (digest_of(graph->second, contents) != digest->second) damaged("contents with another digest");
    json root = json::parse(graph->second, nullptr, false);
    if (root.is_discarded()) damaged("a clutch.graph that is no JSON");
    if (int version = root.at("version").get<int>(); version != kVersion)
      throw Error(ErrorCode::io, kLoad, fmt::format("a saved graph must be of version {}, got version {}", int{kVersion}, version));
    check_traits(root.at("traits"));
    same_device_ = root.at("device").get<std::string>() == device_key(runtime_);
    stream_ = Stream(runtime_.make_stream(StreamPriority::normal));
    state_->arena = GraphArena::of(runtime_, {});
    read_buffers(root.at("buffers"));
    read_programs(root.at("programs"));
    for (const json& row : root.at("nodes")) read_node(row);
    read_tensors(root.at("tensors"));
    state_->finish(stream_.impl());
    stream_.synchronize();
    return std::move(state_);
  }

 private:
  static Safetensors open(const std::string& path) {
    try {
      return Safetensors::open(path);
    } catch (const Error& e) {
      throw Error(ErrorCode::io, kLoad, e.message());
    }
  }

  std::string text_of(const std::string& name) const {
    if (std::none_of(file_.entries().begin(), file_.entries().end(), [&](const auto& e) { return e.name == name && e.dtype == DType::u8; }))
      damaged(fmt::format("a file without {}", name));
    std::span<const std::byte> bytes = file_.bytes(name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void check_traits(const json& saved) const {
    json here = traits_json(runtime_.traits());
    std::string lacks;
    for (const auto& [trait, has] : here.items())
      if (saved.at(trait).get<bool>() && !has.get<bool>()) lacks += fmt::format(" {}", trait);
    if (!lacks.empty())
      throw Error(
          ErrorCode::not_supported, kLoad,
          fmt::format("the device must have the traits that the graph's kernels were chosen for, got device {} without{}", runtime_.device().index, lacks));
  }

  void read_buffers(const json& rows) {
    for (const json& row : rows) {
      GraphBuffer buffer;
      std::string kind = row.at("kind").get<std::string>();
      buffer.bytes = row.at("bytes").get<std::uint64_t>();
      if (buffer.bytes > (std::uint64_t{1} << 57)) damaged("a buffer past every device's limit");
      bool known = false;
      for (auto k : {GraphBuffer::Kind::external, GraphBuffer::Kind::temporary, GraphBuffer::Kind::result, GraphBuffer::Kind::constant})
        if (name(k) == kind) buffer.kind = k, known = true;
      if (!known) damaged(fmt::format("a buffer of kind '{}'", kind));
      if (buffer.kind != GraphBuffer::Kind::temporary) {
        auto size = static_cast<std::int64_t>(buffer.bytes);
        Device device(&runtime_.device());
        Tensor memory;
        if (size == 0) {
          memory = empty({1}, {.dtype = DType::u8, .device = device}, stream_);
        } else {
          std::string bytes = text_of(fmt::format("buffer/{}", state_->buffers.size()));
          if (bytes.size() != buffer.bytes) damaged("a buffer of another size");
          memory = from_bytes(bytes.data(), bytes.size(), {size}, {.dtype = DType::u8, .device = device}, stream_);
        }
        buffer.storage = memory.storage();
      }
      state_->buffers.push_back(std::move(buffer));
    }
  }

  void read_programs(const json& rows) {
    for (const json& row : rows) {
      std::string entry = row.at("entry").get<std::string>(), wrapper = row.at("wrapper").get<std::string>(), options = row.at("options").get<std::string>();
      std::size_t i = kernels_.size();
      std::string binary;
      std::string binary_name = fmt::format("binary/{}", i);
      if (same_device_ && std::any_of(file_.entries().begin(), file_.entries().end(), [&](const auto& e) { return e.name == binary_name; }))
        binary = text_of(binary_name);
      kernels_.push_back(
          &runtime_.programs().find_whole({.text = {}, .file = "<saved graph>", .entry = entry, .defines = {}, .options = options, .wrapper_name = wrapper},
                                          text_of(fmt::format("source/{}", i)), binary));
    }
  }

  static DType dtype_of_name(const std::string& wanted) {
    try {
      return dtype_from_name(wanted);
    } catch (const Error& e) {
      damaged(fmt::format("a dtype that is none: {}", e.message()));
    }
  }

  static Dims dims_of(const json& row) {
    Dims dims;
    if (!row.is_array() || row.size() > static_cast<std::size_t>(kMaxRank)) damaged("sizes or strides that are none");
    for (const json& v : row) {
      auto n = v.get<std::int64_t>();
      if (n < 0 || n > (std::int64_t{1} << 50)) damaged("a size or stride out of range");
      dims.push_back(n);
    }
    return dims;
  }

  /// Bytes that a tensor reaches. Errors: as damaged() if the tensor exceeds its buffer.
  std::uint64_t extent(int buffer, std::uint64_t offset, DType dtype, const Dims& sizes, const Dims& strides) const {
    if (buffer < 0 || buffer >= static_cast<int>(state_->buffers.size())) damaged("a buffer that is not there");
    if (sizes.rank() != strides.rank()) damaged("sizes and strides of different ranks");
    std::uint64_t last = 0, bytes = 0;
    bool none = false;
    for (int i = 0; i < sizes.rank(); ++i) {
      none = none || sizes[i] == 0;
      std::uint64_t reach = 0;
      if (sizes[i] > 1 && (__builtin_mul_overflow(static_cast<std::uint64_t>(sizes[i] - 1), static_cast<std::uint64_t>(strides[i]), &reach) ||
                           __builtin_add_overflow(last, reach, &last) || last > (std::uint64_t{1} << 57)))
        damaged("a tensor past every device's limit");
    }
    if (!none) bytes = bytes_for(dtype, last + 1);
    std::uint64_t has = state_->buffers[static_cast<std::size_t>(buffer)].bytes;
    if (bytes > 0 && (offset > has || bytes > has - offset)) damaged("a tensor outside of its buffer");
    return bytes;
  }

  void read_node(const json& row) {
    GraphWork node;
    std::string kind = row.at("kind").get<std::string>();
    bool known = false;
    for (auto k : {GraphNodeKind::kernel, GraphNodeKind::copy, GraphNodeKind::fill})
      if (name(k) == kind) node.kind = k, known = true;
    if (!known) damaged(fmt::format("a node of kind '{}'", kind));
    node.op = Interned(row.at("op").get<std::string>()).c_str();
    for (const json& u : row.at("uses")) {
      GraphUse use;
      use.buffer = u.at("buffer").get<int>();
      use.byte_offset = u.at("offset").get<std::uint64_t>();
      int access = u.at("access").get<int>();
      if (access < 0 || access > static_cast<int>(Argument::Kind::inout)) damaged("an access that is none");
      use.access = static_cast<Argument::Kind>(access);
      use.dtype = dtype_of_name(u.at("dtype").get<std::string>());
      use.sizes = dims_of(u.at("sizes"));
      use.strides = dims_of(u.at("strides"));
      use.bytes = extent(use.buffer, use.byte_offset, use.dtype, use.sizes, use.strides);
      node.uses.push_back(use);
    }
    if (row.contains("cost")) {
      const auto cost = row.at("cost").get<std::vector<double>>();
      // Those of f64 apart since 0.2.
      if (cost.size() < 2 || cost.size() > 3 || !std::all_of(cost.begin(), cost.end(), [](double x) { return x >= 0; })) damaged("a cost that is none");
      node.cost = {cost[0], cost[1], cost.size() == 3 ? cost[2] : 0};
    }
    if (row.contains("labels")) {
      auto labels = std::make_shared<std::vector<GraphLabel>>();
      for (const json& l : row.at("labels"))
        labels->push_back({l.at("name").get<std::string>(), l.at("values").get<std::vector<std::pair<std::string, std::string>>>()});
      node.labels = std::move(labels);
    }
    if (node.kind == GraphNodeKind::copy && (node.uses.size() != 2 || node.uses[0].bytes != node.uses[1].bytes)) damaged("a copy of unequal sizes");
    if (node.kind == GraphNodeKind::fill && node.uses.size() != 1) damaged("a fill of no tensor");
    if (node.kind == GraphNodeKind::fill) node.pattern = row.at("pattern").get<std::uint8_t>();
    if (node.kind == GraphNodeKind::kernel) read_kernel(row, node);
    state_->nodes.push_back(std::move(node));
  }

  void read_kernel(const json& row, GraphWork& node) {
    auto program = row.at("program").get<std::uint64_t>();
    if (program >= kernels_.size()) damaged("a program that is not there");
    node.kernel = kernels_[static_cast<std::size_t>(program)];
    if (row.contains("plan")) node.plan = Interned(row.at("plan").get<std::string>());
    auto g = row.at("geometry").get<std::vector<std::uint64_t>>();
    if (g.size() != 6 || std::any_of(g.begin(), g.end(), [](std::uint64_t v) { return v > std::uint64_t{1} << 40; })) damaged("a geometry that is none");
    if (g[0] == 0 || g[2] == 0 || g[4] == 0) damaged("a geometry of no work-items");
    node.geometry = {.global = g[0], .local = g[1], .global_y = g[2], .local_y = g[3], .global_z = g[4], .local_z = g[5]};
    node.bytes = from_hex(row.at("bytes").get<std::string>());
    for (const json& a : row.at("arguments")) {
      BoundArgument b;
      int kind = a.at("kind").get<int>();
      if (kind < 0 || kind > static_cast<int>(BoundArgument::Kind::local)) damaged("an argument of no kind");
      b.kind = static_cast<BoundArgument::Kind>(kind);
      b.size = a.at("size").get<std::uint16_t>();
      b.at = a.at("at").get<std::uint16_t>();
      b.use = a.at("use").get<int>();
      b.local = a.at("local").get<std::uint32_t>();
      b.type = Interned(a.at("type").get<std::string>()).c_str();
      b.name = Interned(a.at("name").get<std::string>()).c_str();
      bool tensor = b.kind == BoundArgument::Kind::memory || b.kind == BoundArgument::Kind::offset;
      if (tensor && (b.use < 0 || b.use >= static_cast<int>(node.uses.size()))) damaged("an argument of no tensor");
      if (b.kind == BoundArgument::Kind::bytes && std::size_t{b.at} + b.size > node.bytes.size()) damaged("an argument without its bytes");
      node.bound.push_back(b);
    }
    if (static_cast<int>(node.bound.size()) != node.kernel->argument_count()) damaged("a kernel with another number of arguments");
    if (row.contains("table")) read_table(row.at("table"), node);
    node.object = ClKernel(node.kernel->make_bare());
    node.set.resize(node.uses.size());
    const std::uint64_t local_bytes = set_arguments(node, node.object.get());
    check_limits(node, local_bytes);
    check_launch(*node.kernel, node.geometry, local_bytes, node.op);
  }

  /// Checks a launch that is valid in itself against the device's limits.
  static void check_limits(const GraphWork& node, std::uint64_t local_bytes) {
    const Geometry& g = node.geometry;
    const DeviceTraits& traits = node.kernel->program().runtime().traits();
    auto lacks = [&](std::string what) { throw Error(ErrorCode::not_supported, kLoad, fmt::format("kernel {} of the graph {}", node.kernel->name(), what)); };
    // Each factor is below 2^40, as read_kernel() checks.
    const auto items = static_cast<double>(std::max<std::uint64_t>(g.local, 1)) * static_cast<double>(g.local_y) * static_cast<double>(g.local_z);
    if (items > static_cast<double>(node.kernel->max_work_group()))
      lacks(fmt::format("needs groups of {:.0f} work-items, the device has at most {} for it", items, node.kernel->max_work_group()));
    const std::uint64_t wanted = local_bytes + node.kernel->static_local_bytes();
    if (wanted > traits.local_bytes) lacks(fmt::format("needs {} bytes of local memory, the device has {}", wanted, traits.local_bytes));
  }

  static void read_table(const json& row, GraphWork& node) {
    GraphTable& table = node.table;
    table.first_base = row.at("first_base").get<int>();
    table.use = row.at("use").get<int>();
    table.entries = row.at("entries").get<std::vector<int>>();
    auto uses = static_cast<int>(node.uses.size()), arguments = static_cast<int>(node.bound.size());
    if (table.first_base < 0 || table.first_base > arguments - TensorTable::kBases) damaged("a table without its buffers");
    for (int i = 0; i < TensorTable::kBases; ++i)
      if (node.bound[static_cast<std::size_t>(table.first_base) + static_cast<std::size_t>(i)].kind != BoundArgument::Kind::memory)
        damaged("a table without its buffers");
    if (table.use < 0 || table.use >= uses || node.uses[static_cast<std::size_t>(table.use)].bytes != table.entries.size() * sizeof(std::uint64_t))
      damaged("a table that is not there");
    for (int use : table.entries)
      if (use < -1 || use >= uses) damaged("a table of tensors that are not there");
  }

  void read_tensors(const json& rows) {
    for (const json& row : rows) {
      int buffer = row.at("buffer").get<int>();
      auto offset = row.at("offset").get<std::uint64_t>();
      DType dtype = dtype_of_name(row.at("dtype").get<std::string>());
      Dims sizes = dims_of(row.at("sizes"));
      for (std::int64_t n = 1, i = 0; i < sizes.rank(); ++i)
        if (__builtin_mul_overflow(n, std::max<std::int64_t>(sizes[static_cast<int>(i)], 1), &n)) damaged("a tensor past every device's limit");
      Dims strides = contiguous_strides(sizes);
      extent(buffer, offset, dtype, sizes, strides);
      const auto& storage = state_->buffers[static_cast<std::size_t>(buffer)].storage;
      if (!storage) damaged("a named tensor in a temporary");
      state_->named.push_back({row.at("name").get<std::string>(), Tensor(storage, offset, sizes, strides, dtype)});
    }
  }

  Safetensors file_;
  Runtime& runtime_;
  std::unique_ptr<GraphState> state_;
  Stream stream_;
  bool same_device_ = false;
  std::vector<Kernel*> kernels_;
};

}  // namespace

void save_graph(const GraphState& state, const std::string& path, std::span<const NamedTensor> tensors, const GraphSaveOptions& options) {
  if (illegal_beside(kSave)) return;
  Writer(state, tensors, options).write(path);
}

std::unique_ptr<GraphState> load_graph(const std::string& path, const Device& device, const GraphOptions& options, const std::string& backend) {
  Reader reader(path, device, backend, options.relaxed_rounding);
  try {
    std::unique_ptr<GraphState> state = reader.read();
    if (!options.keep_graph) state->instantiate();
    return state;
  } catch (const json::exception& e) {
    damaged(fmt::format("fields of other names or types: {}", e.what()));
  } catch (const Error& e) {
    // The caller gave a path alone, so any other mismatch is damage of the file.
    switch (e.code()) {
      case ErrorCode::invalid_argument:
      case ErrorCode::invalid_shape:
      case ErrorCode::invalid_dtype:
      case ErrorCode::invalid_overlap: damaged(fmt::format("contents that are refused: {}", e.message()));
      default: throw;
    }
  }
}

}}}  // namespace clutch::v0::detail
