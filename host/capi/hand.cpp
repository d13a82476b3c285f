// SPDX-License-Identifier: Apache-2.0
#include "capi/hand.hpp"

#include <clutch/dlpack.hpp>
#include <clutch/interop_cl.hpp>

#include "expr/node.hpp"
#include "program/interned.hpp"

#include <fmt/format.h>

namespace clutch { inline namespace v0 { namespace capi {
namespace {

std::uint64_t stat(const std::map<std::string, std::uint64_t>& stats, const char* key) {
  const auto found = stats.find(key);
  if (found != stats.end()) return found->second;
  // Nothing is counted before the first use.
  if (stats.empty()) return 0;
  refuse(ErrorCode::invalid_argument, fmt::format("key must be one that memory_stat_keys gives, got '{}'", key));
}

std::vector<Rebinding> rebindings(const std::vector<Tensor>& captured, const std::vector<Tensor>& bound) {
  if (captured.size() != bound.size())
    refuse(ErrorCode::invalid_argument, fmt::format("captured and bound must be as many, got {} and {}", captured.size(), bound.size()));
  std::vector<Rebinding> result;
  for (std::size_t i = 0; i < captured.size(); ++i) result.push_back({captured[i], bound[i]});
  return result;
}

void check_lengths(const std::vector<std::string>& names, const std::vector<Tensor>& tensors) {
  if (names.size() != tensors.size())
    refuse(ErrorCode::invalid_argument, fmt::format("names and tensors must be as many, got {} and {}", names.size(), tensors.size()));
}

/// Text for as long as the process lives, as graphs keep names of arguments.
const char* kept(const char* given) { return detail::Interned(text(given)).c_str(); }

/// What a function gives of these expressions.
std::vector<Expr> applied(const ExprFunction& f, const std::vector<Expr>& to, const char* what) {
  if (f.input_count() != static_cast<int>(to.size()))
    refuse(ErrorCode::invalid_argument,
           fmt::format("{} must take the inputs and the totals before it, {} in all, got a function of {}", what, to.size(), f.input_count()));
  for (std::size_t i = 0; i < to.size(); ++i)
    if (f.input_dtype(static_cast<int>(i)) != to[i].dtype())
      refuse(ErrorCode::invalid_dtype,
             fmt::format("input {} of {} must be {}, got {}", i, what, name(to[i].dtype()), name(f.input_dtype(static_cast<int>(i)))));
  return detail::applied(f, to);
}

Defines defines_of(const clutch_kernel_source_t& source) {
  Defines result;
  for (const std::string& define : texts(source.defines, source.defines_count, at("source", "defines"))) {
    const std::size_t equals = define.find('=');
    if (equals == std::string::npos) refuse(ErrorCode::invalid_argument, fmt::format("source.defines must be NAME=VALUE, got '{}'", define));
    result.set_text(std::string_view(define).substr(0, equals), std::string_view(define).substr(equals + 1));
  }
  return result;
}

}  // namespace

Tensor from_bytes(std::span<const std::byte> data, const Dims& sizes, const TensorOptions& options, const Stream& stream) {
  return clutch::from_bytes(data.data(), data.size(), sizes, options, stream);
}
DType result_type(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& tensor : tensors) pointers.push_back(&tensor);
  return clutch::result_type(pointers);
}

DLManagedTensor* interop_to_dlpack(const Tensor& tensor, interop::DlpackMemory memory, const Stream& stream) {
  return interop::to_dlpack(tensor, memory, stream);
}
DLManagedTensorVersioned* interop_to_dlpack_versioned(const Tensor& tensor, interop::DlpackMemory memory, const Stream& stream) {
  return interop::to_dlpack_versioned(tensor, memory, stream);
}
Tensor interop_from_dlpack(DLManagedTensor* managed, const Device& device, const Stream& stream) { return interop::from_dlpack(managed, device, stream); }
Tensor interop_from_dlpack_versioned(DLManagedTensorVersioned* managed, const Device& device, const Stream& stream) {
  return interop::from_dlpack(managed, device, stream);
}
Stream interop_wrap_queue(void* queue) { return interop::wrap(static_cast<cl_command_queue>(queue)); }
Tensor interop_wrap_buffer(void* buffer, const Dims& sizes, DType dtype, const Device& device, std::uint64_t byte_offset) {
  return interop::wrap(static_cast<cl_mem>(buffer), sizes, dtype, device, byte_offset);
}
Event interop_wrap_event(void* event) { return interop::wrap(static_cast<cl_event>(event)); }
void* interop_mem(const Tensor& tensor) { return interop::mem(tensor); }
std::uint64_t interop_offset(const Tensor& tensor) { return interop::offset(tensor); }
void* interop_queue(const Stream& stream) { return interop::queue(stream); }
void* interop_context(const Stream& stream) { return interop::context(stream); }
void* interop_event(const Event& event) { return interop::event(event); }
void* interop_device_id(const Device& device) { return interop::device_id(device); }
void* interop_platform_id(const Device& device) { return interop::platform_id(device); }
void interop_release(void* context) { interop::release(static_cast<cl_context>(context)); }

std::uint64_t memory_stat(const char* key, const Device& device) { return stat(memory_stats(device), key); }
std::uint64_t memory_stat_of_pool(const PoolId& pool, const char* key, const Device& device) { return stat(memory_stats(pool, device), key); }
std::vector<std::string> memory_stat_keys(const Device& device) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : memory_stats(device)) keys.push_back(key);
  return keys;
}
PoolGuard pool_guard_create(const PoolId& pool) { return PoolGuard(pool); }
MemoryLabelGuard memory_label_guard_create(const char* label) { return MemoryLabelGuard(label); }

std::vector<std::string> safetensors_names(const Safetensors& file) {
  std::vector<std::string> names;
  for (const Safetensors::Entry& entry : file.entries()) names.push_back(entry.name);
  return names;
}
void save_safetensors(const char* path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors, const Stream& stream) {
  check_lengths(names, tensors);
  std::map<std::string, Tensor> all;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!all.emplace(names[i], tensors[i]).second) refuse(ErrorCode::invalid_argument, fmt::format("names must differ, got '{}' twice", names[i]));
  clutch::save_safetensors(path, all, {}, stream);
}

RowFunction row_function_create(const std::vector<DType>& inputs, const std::vector<Reduce>& ops, const std::vector<ExprFunction>& values,
                                const ExprFunction& elements, const ExprFunction& results) {
  if (ops.size() != values.size()) refuse(ErrorCode::invalid_argument, fmt::format("ops and values must be as many, got {} and {}", ops.size(), values.size()));
  Row row(inputs);
  std::vector<Expr> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) known.push_back(detail::expr_input(static_cast<int>(i), inputs[i]));
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::vector<Expr> value = applied(values[i], known, "a total's function");
    if (value.size() != 1) refuse(ErrorCode::invalid_argument, fmt::format("a total's function must give one value, got {}", value.size()));
    switch (ops[i]) {
      case Reduce::sum: known.push_back(row.sum(value[0])); break;
      case Reduce::mean: known.push_back(row.mean(value[0])); break;
      case Reduce::prod: known.push_back(row.prod(value[0])); break;
      case Reduce::amin: known.push_back(row.min(value[0])); break;
      case Reduce::amax: known.push_back(row.max(value[0])); break;
      default: refuse(ErrorCode::invalid_argument, "a total's op must be sum, mean, prod, amin or amax, got any or all");
    }
  }
  std::vector<Expr> outputs;
  if (!elements.empty()) outputs = applied(elements, known, "the elements' function");
  if (!results.empty())
    for (const Expr& result : applied(results, known, "the results' function")) row.result(result);
  return {row, outputs};
}

attention::SdpaBackends attention_sdpa_backends_create(const std::vector<attention::SdpaBackend>& order) {
  if (order.empty()) return attention::SdpaBackends({});
  if (order.size() == 1) return attention::SdpaBackends({order[0]});
  if (order.size() == 2) return attention::SdpaBackends({order[0], order[1]});
  refuse(ErrorCode::invalid_argument, fmt::format("order must name each backend at most once, got {} of them", order.size()));
}

void graph_replay_with(Graph& graph, const std::vector<Tensor>& captured, const std::vector<Tensor>& bound, const Stream& stream) {
  graph.replay(rebindings(captured, bound), stream);
}
void graph_rebind(Graph& graph, const std::vector<Tensor>& captured, const std::vector<Tensor>& bound) { graph.rebind(rebindings(captured, bound)); }
void graph_measure(Graph& graph, int replays, const Stream& stream) { graph.measure(replays, stream); }
void graph_update_number(Graph& graph, int node, const char* name, double value) { graph.update(node, {clutch::value(value, name)}); }
void graph_update_integer(Graph& graph, int node, const char* name, std::int64_t value) { graph.update(node, {clutch::value(value, name)}); }
void graph_update_tensor(Graph& graph, int node, const char* name, const Tensor& tensor) { graph.update(node, {input(tensor, name)}); }
void graph_save(const Graph& graph, const char* path, const std::vector<std::string>& names, const std::vector<Tensor>& tensors,
                const GraphSaveOptions& options) {
  check_lengths(names, tensors);
  std::vector<NamedTensor> named;
  for (std::size_t i = 0; i < names.size(); ++i) named.push_back({names[i], tensors[i]});
  graph.save(path, named, options);
}
GraphAnnotation graph_annotation_create(const char* name) { return GraphAnnotation(name); }

void launch(const clutch_kernel_source_t* source, const Geometry& geometry, const clutch_argument_t* const* arguments, std::size_t count,
            const Stream& stream) {
  if (!source) refuse_null("source");
  const clutch_kernel_source_t s = sized(source, "source");
  KernelSource kernel{.text = text(s.text), .entry = text(s.entry), .defines = defines_of(s), .options = text(s.options)};
  if (s.file) kernel.file = s.file;
  kernel.addressing = enumerator<Addressing>(s.addressing, at("source", "addressing"));
  kernel.binary = bytes(s.binary, s.binary_size, at("source", "binary"));
  kernel.spirv = bytes(s.spirv, s.spirv_size, at("source", "spirv"));
  std::vector<Argument> list_of;
  for (const clutch_argument_t* given : list(arguments, count, "arguments")) {
    if (!given) refuse_null("arguments");
    const clutch_argument_t a = sized(given, "an argument");
    Argument argument{.kind = enumerator<Argument::Kind>(a.kind, at("an argument", "kind")), .type = kept(a.type), .name = kept(a.name)};
    if (argument.kind == Argument::Kind::local) {
      argument.size = narrow<std::uint32_t>(static_cast<std::int64_t>(a.value_size), at("an argument", "value_size"));
    } else if (argument.kind == Argument::Kind::value) {
      const auto value = bytes(a.value, a.value_size, at("an argument", "value"));
      if (value.empty() || value.size() > sizeof argument.bytes)
        refuse(ErrorCode::invalid_argument, fmt::format("an argument's value must have 1 to {} bytes, got {}", sizeof argument.bytes, value.size()));
      argument.size = static_cast<std::uint32_t>(value.size());
      std::memcpy(argument.bytes, value.data(), value.size());
    } else if (a.tensor) {
      argument.tensor = &ref(a.tensor);
    }
    list_of.push_back(argument);
  }
  clutch::launch(kernel, geometry, list_of, stream);
}

}}}  // namespace clutch::v0::capi
