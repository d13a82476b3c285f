// SPDX-License-Identifier: Apache-2.0
#include "graph/report.hpp"

#include "graph/fused_backend.hpp"
#include "graph/html.hpp"
#include "graph/number_type.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

std::string_view role(Argument::Kind kind) {
  switch (kind) {
    case Argument::Kind::input: return "input";
    case Argument::Kind::output: return "output";
    case Argument::Kind::inout: return "inout";
    case Argument::Kind::local: return "local";
    default: return "value";
  }
}

std::string value_text(const BoundArgument& bound, const unsigned char* bytes) {
  std::string raw;
  for (int i = 0; i < bound.size; ++i) raw += fmt::format("{:02x}", bytes[i]);
  return with_number_type(bound.type, raw, [&]<class T>(T v) {
    std::memcpy(&v, bytes, sizeof v);
    return fmt::format("{}", v);
  });
}

GraphArgument tensor_argument(const GraphUse& use, std::string name) {
  GraphArgument a;
  a.kind = use.access;
  a.name = std::move(name);
  a.dtype = use.dtype;
  a.sizes = use.sizes;
  a.strides = use.strides;
  a.buffer = use.buffer;
  a.byte_offset = use.byte_offset;
  return a;
}

nlohmann::json numbers(const Dims& dims) { return nlohmann::json(std::vector<std::int64_t>(dims.begin(), dims.end())); }

std::string json_dump(const GraphState& state) {
  nlohmann::json root;
  GraphReport report = describe(state);
  root["format"] = "clutch graph 1";
  root["device"] = {{"name", state.runtime().device().facts.name}, {"platform", state.runtime().device().facts.platform_name}};
  root["backend"] = {{"name", report.backend}, {"why", report.why}, {"native_nodes", report.native_nodes}, {"native_parts", report.native_parts}};
  root["replays"] = report.replays;
  root["memory"] = {{"temporary_bytes", report.temporary_bytes},
                    {"reserved_bytes", report.reserved_bytes},
                    {"external_bytes", report.external_bytes},
                    {"result_bytes", report.result_bytes},
                    {"constant_bytes", report.constant_bytes}};
  root["buffers"] = nlohmann::json::array();
  for (const GraphReport::Buffer& b : report.buffers) {
    nlohmann::json row{{"kind", b.kind}, {"bytes", b.bytes}, {"first", b.first}, {"last", b.last}};
    if (b.segment >= 0) row["segment"] = b.segment, row["offset"] = b.offset;
    root["buffers"].push_back(std::move(row));
  }
  if (!report.groups.empty()) {
    root["groups"] = nlohmann::json::array();
    for (const GraphReport::Group& g : report.groups) root["groups"].push_back({{"form", g.form}, {"kernel", g.kernel}, {"nodes", g.nodes}});
  }
  root["nodes"] = nlohmann::json::array();
  for (const GraphNode& node : describe_nodes(state)) {
    nlohmann::json row{{"id", node.id}, {"kind", name(node.kind)}, {"op", node.op}, {"stream", node.stream}, {"dependencies", node.dependencies}};
    row["flops"] = node.cost.flops, row["bytes"] = node.cost.bytes;
    if (node.measured_us > 0) row["measured_us"] = node.measured_us;
    if (!node.why.empty()) row["why"] = node.why;
    if (!node.plan.empty()) row["plan"] = node.plan;
    if (!node.kernel.empty()) {
      row["kernel"] = node.kernel;
      const Geometry& g = node.geometry;
      row["global"] = {g.global, g.global_y, g.global_z};
      row["local"] = {g.local, g.local_y, g.local_z};
    }
    row["arguments"] = nlohmann::json::array();
    for (const GraphArgument& a : node.arguments) {
      nlohmann::json argument{{"kind", role(a.kind)}, {"name", a.name}};
      if (a.buffer >= 0) {
        argument["dtype"] = name(a.dtype);
        argument["sizes"] = numbers(a.sizes);
        argument["strides"] = numbers(a.strides);
        argument["buffer"] = a.buffer;
        argument["byte_offset"] = a.byte_offset;
      } else {
        argument["value"] = a.value;
      }
      row["arguments"].push_back(std::move(argument));
    }
    if (!node.labels.empty()) {
      row["labels"] = nlohmann::json::array();
      for (const GraphLabel& label : node.labels) {
        nlohmann::json values = nlohmann::json::object();
        for (const auto& [key, value] : label.values) values[key] = value;
        row["labels"].push_back({{"name", label.name}, {"values", std::move(values)}});
      }
    }
    root["nodes"].push_back(std::move(row));
  }
  return root.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

std::string dot_dump(const GraphState& state) {
  GraphReport report = describe(state);
  std::string text = "digraph clutch {\n  rankdir=TB;\n  node [shape=box, fontname=\"monospace\"];\n";
  text += fmt::format("  label=\"{}\";\n", escaped(fmt::format("{} nodes, {} bytes of temporaries in {}; backend {}: {}", state.nodes.size(),
                                                               report.temporary_bytes, report.reserved_bytes, report.backend, report.why)));
  for (const GraphNode& node : describe_nodes(state)) {
    std::string title = fmt::format("{} {}", node.id, node.op);
    if (node.op != node.kernel && !node.kernel.empty()) title += fmt::format("\n{}", node.kernel);
    if (node.kind != GraphNodeKind::kernel) title += fmt::format("\n{}", name(node.kind));
    for (const GraphArgument& a : node.arguments)
      if (a.buffer >= 0) title += fmt::format("\n{} {} {} in {}", a.name, name(a.dtype), to_string(a.sizes), a.buffer);
    for (const GraphLabel& label : node.labels) title += fmt::format("\n@{}", label.name);
    text += fmt::format("  n{} [label=\"{}\"];\n", node.id, escaped(title));
    for (int before : node.dependencies) text += fmt::format("  n{} -> n{};\n", before, node.id);
  }
  return text + "}\n";
}

}  // namespace

std::vector<std::string> argument_names(const GraphWork& node) {
  std::vector<std::string> names;
  int inputs = 0, outputs = 0, inouts = 0, values = 0, locals = 0;
  auto next = [&](Argument::Kind kind) {
    switch (kind) {
      case Argument::Kind::input: return fmt::format("input{}", inputs++);
      case Argument::Kind::output: return fmt::format("output{}", outputs++);
      case Argument::Kind::inout: return fmt::format("inout{}", inouts++);
      case Argument::Kind::local: return fmt::format("local{}", locals++);
      default: return fmt::format("value{}", values++);
    }
  };
  if (node.kind != GraphNodeKind::kernel) {
    for (const GraphUse& use : node.uses) names.push_back(next(use.access));
    return names;
  }
  for (const BoundArgument& bound : node.bound) {
    std::string by_order;
    switch (bound.kind) {
      case BoundArgument::Kind::memory: by_order = next(node.uses[static_cast<std::size_t>(bound.use)].access); break;
      case BoundArgument::Kind::offset: break;
      case BoundArgument::Kind::local: by_order = next(Argument::Kind::local); break;
      case BoundArgument::Kind::bytes: by_order = next(Argument::Kind::value); break;
    }
    names.push_back(*bound.name ? bound.name : by_order);
  }
  return names;
}

GraphNode describe_node(const GraphState& state, int id) {
  const GraphWork& work = state.nodes[static_cast<std::size_t>(id)];
  GraphNode node;
  node.id = id;
  node.kind = work.kind;
  node.op = work.op;
  node.stream = work.stream;
  node.geometry = work.geometry;
  node.dependencies = work.after;
  if (work.labels) node.labels = *work.labels;
  node.cost = work.cost;
  node.plan = work.plan.str();
  if (!state.measured.empty()) node.measured_us = state.measured[static_cast<std::size_t>(id)];
  std::vector<std::string> names = argument_names(work);
  if (!work.kernel) {
    for (std::size_t u = 0; u < work.uses.size(); ++u) node.arguments.push_back(tensor_argument(work.uses[u], names[u]));
    return node;
  }
  node.kernel = work.kernel->name();
  for (std::size_t i = 0; i < work.bound.size(); ++i) {
    const BoundArgument& bound = work.bound[i];
    if (bound.kind == BoundArgument::Kind::offset) continue;
    if (bound.kind == BoundArgument::Kind::memory) {
      node.arguments.push_back(tensor_argument(work.uses[static_cast<std::size_t>(bound.use)], names[i]));
      continue;
    }
    GraphArgument a;
    a.name = names[i];
    a.kind = bound.kind == BoundArgument::Kind::local ? Argument::Kind::local : Argument::Kind::value;
    a.value = bound.kind == BoundArgument::Kind::local ? fmt::format("{}", bound.local) : value_text(bound, work.bytes.data() + bound.at);
    node.arguments.push_back(std::move(a));
  }
  return node;
}

std::vector<GraphNode> describe_nodes(const GraphState& state) {
  std::vector<GraphNode> all;
  for (int i = 0; i < static_cast<int>(state.nodes.size()); ++i) all.push_back(describe_node(state, i));
  if (const FusedBackend* fused = state.fused_backend(); fused && fused->fused()) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i].why = fmt::format("not run: {}", fused->why_alone()[i]);
    for (const FusedStep& step : fused->steps())
      for (int node : step.nodes) {
        const std::string& alone = fused->why_alone()[static_cast<std::size_t>(node)];
        all[static_cast<std::size_t>(node)].why = step.nodes.size() > 1 ? fmt::format("one launch ({}) with {} others", step.form, step.nodes.size() - 1)
                                                                        : fmt::format("a launch of its own: {}", alone);
      }
  }
  return all;
}

GraphReport describe(const GraphState& state) {
  GraphReport report;
  std::vector<std::uint64_t> segments;
  // Temporaries are where the launches have them that replay now.
  const FusedBackend* fused = state.fused_backend();
  if (fused && fused->fused())
    for (std::size_t s = 0; s < fused->steps().size(); ++s)
      if (const FusedStep& step = fused->steps()[s]; step.nodes.size() > 1)
        report.groups.push_back({step.form, fused->fused()->nodes[s].kernel->name(), step.nodes});
  std::vector<Lifetime> lifetimes;
  for (const GraphBuffer& buffer : state.buffers)
    if (buffer.kind == GraphBuffer::Kind::temporary && buffer.first >= 0) lifetimes.push_back({buffer.bytes, buffer.first, buffer.last});
  for (std::uint64_t bytes : plan_memory(lifetimes, {}, 0).segments) report.unfused_bytes += bytes;
  const GraphState* replays = fused && fused->is_chosen() && fused->fused() && !fused->replays_nodes() ? fused->fused() : &state;
  for (std::size_t b = 0; b < state.buffers.size(); ++b) {
    const GraphBuffer& buffer = state.buffers[b];
    const Placement& place = replays->buffers[b].place;
    GraphReport::Buffer row{std::string(name(buffer.kind)), buffer.bytes, buffer.first, buffer.last, place.segment, place.offset};
    report.buffers.push_back(std::move(row));
    switch (buffer.kind) {
      case GraphBuffer::Kind::external: report.external_bytes += buffer.bytes; break;
      case GraphBuffer::Kind::result: report.result_bytes += buffer.bytes; break;
      case GraphBuffer::Kind::constant: report.constant_bytes += buffer.bytes; break;
      case GraphBuffer::Kind::temporary:
        if (place.segment < 0) break;
        report.temporary_bytes += buffer.bytes;
        auto segment = static_cast<std::size_t>(place.segment);
        if (segments.size() <= segment) segments.resize(segment + 1);
        segments[segment] = std::max(segments[segment], place.offset + buffer.bytes);
        break;
    }
  }
  for (std::uint64_t bytes : segments) report.reserved_bytes += bytes;
  report.backend = state.backend_name();
  report.why = state.instantiated() ? state.backend().debug() : "not instantiated";
  if (state.instantiated()) std::tie(report.native_nodes, report.native_parts) = state.backend().native();
  report.replays = state.replays();
  return report;
}

std::string dump(const GraphState& state, GraphDump format) {
  switch (format) {
    case GraphDump::json: return json_dump(state);
    case GraphDump::html: return html_dump({state.runtime().device().facts.name, describe_nodes(state), describe(state)});
    default: return dot_dump(state);
  }
}
}}}  // namespace clutch::v0::detail
