// SPDX-License-Identifier: Apache-2.0
#include "support/op_runner.hpp"
#include "encode/matrix_instructions.hpp"

#include <fmt/format.h>

#include <optional>

namespace clutch::testing {

namespace {

/// A problem's tensors, between canaries.
struct Operands {
  std::vector<Guarded> inputs;
  std::vector<Tensor> views;
  Guarded out;
  Operands(const Device& device, const cases::Problem& problem)
      : inputs(make_inputs(device, problem)), out(device, problem.output.dtype, problem.output.sizes, problem.output.strides, problem.output.lead) {
    for (const Guarded& in : inputs) views.push_back(in.view());
  }
  static std::vector<Guarded> make_inputs(const Device& device, const cases::Problem& problem) {
    std::vector<Guarded> all;
    for (const cases::Operand& in : problem.inputs)
      all.emplace_back(device, in.dtype, in.sizes, in.strides, in.lead + static_cast<std::int64_t>(all.size()), &in.raw);
    return all;
  }
};

/// Lets plain code stand in for the matrix instructions that a problem is for, where the device has none.
class StandIn {
 public:
  StandIn(const Device& device, const cases::Problem& problem) {
    if (!problem.by_matrix_instructions) return;
    const detail::MatrixNumbers numbers{.kind = problem.inputs[0].dtype == DType::i8 ? MATMUL_NUMBERS_BYTES : MATMUL_NUMBERS_BF16};
    if (detail::matrix_instructions(detail::runtime_for(device), numbers, true).layout == detail::MatrixLayout::none)
      stand_in_.emplace(detail::MatrixLayout::mma);
  }

 private:
  std::optional<detail::MatrixStandIn> stand_in_;
};

}  // namespace

std::string run_once(const Device& device, const cases::Problem& problem, const Stream& stream, std::vector<std::uint8_t>* raw_out) {
  Operands operands(device, problem);
  const Tensor& out = operands.out.view();
  const StandIn stand_in(device, problem);
  problem.run(out, operands.views, stream);
  if (!problem.entry.empty() && !problem.is_helper && out.numel() > 0 && !last_plan().starts_with(problem.entry)) return "ran " + last_plan();
  std::vector<std::uint8_t> got = operands.out.get();
  if (raw_out) *raw_out = got;
  return compare_bits(got, problem.output.raw, problem.output.dtype, !device.traits().denormals);
}

std::string replay_problem(const Device& device, const cases::Problem& problem, const std::vector<std::uint8_t>& eager) {
  for (std::string backend : {"host", "native", "fused"}) {
    if (backend == "native" && device.traits().command_buffer == 0) continue;
    Stream stream(device);
    StreamGuard guard(stream);
    Operands operands(device, problem);
    Graph graph({.backend = backend});
    {
      const StandIn stand_in(device, problem);
      GraphCapture capture(graph, stream);
      problem.run(operands.out.view(), operands.views, {});
    }
    for (int replay = 1; replay <= 2; ++replay) {
      graph.replay();
      if (operands.out.get() != eager) return fmt::format("replay {} on backend {} differs from the eager call", replay, backend);
      for (Guarded& in : operands.inputs) in.restore();
      operands.out.restore();
    }
    GraphReport report = graph.report();
    std::size_t recorded = 0;
    for (const GraphNode& node : graph.nodes()) {
      recorded += node.kind != GraphNodeKind::host_task && node.kind != GraphNodeKind::opaque;
      if (!node.kernel.empty() && !(node.plan + " ").starts_with(node.kernel + " "))
        return fmt::format("kernel {} has the plan of another: {}", node.kernel, node.plan);
    }
    if (backend == "native" && report.native_nodes != recorded) return fmt::format("{} of {} nodes were recorded natively", report.native_nodes, recorded);
  }
  return {};
}

std::string run_problem(const Device& device, const cases::Problem& problem) {
  std::vector<std::uint8_t> eager;
  std::string wrong = run_once(device, problem, {}, &eager);
  // Simulators are for what kernels do, and slow.
  return !wrong.empty() || device.traits().simulator ? wrong : replay_problem(device, problem, eager);
}

bool proves(std::string_view entry) { return entry.find(tested_entries()) != std::string_view::npos; }

const std::vector<NamedProblem>& all_problems() {
  static const auto* all = [] {
    auto* result = new std::vector<NamedProblem>;
    for (const cases::OpRow& row : cases::op_rows()) {
      auto* of_op = new std::vector<cases::Problem>(row.problems(seed()));
      for (const cases::Problem& p : *of_op)
        if (proves(p.entry)) result->push_back({fmt::format("{}/{}/{}", row.stem, p.entry, p.name), row.stem, &p});
    }
    return result;
  }();
  return *all;
}

bool refuses_few_items(const DeviceTraits& traits, std::string_view why) {
  for (std::uint64_t items : {128, 256})
    if (traits.max_work_group < items && why.find(fmt::format("refuses: needs groups of {} items", items)) != std::string_view::npos) return true;
  return why.find(fmt::format("bytes of local memory, the device has {}", traits.local_bytes)) != std::string_view::npos && traits.local_bytes < (32u << 10);
}

FreshDevice::FreshDevice(const Device& like) : registry_(detail::make_registry()) {
  auto wanted = static_cast<std::size_t>(like.index());
  if (registry_->records.size() <= wanted) throw Error(ErrorCode::no_device, "FreshDevice", "enumeration does not find the device");
  device_ = Device(registry_->records[wanted].get());
}

FreshDevice::~FreshDevice() {
  for (const auto& record : registry_->records) delete record->runtime;
}

}  // namespace clutch::testing
