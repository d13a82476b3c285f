// SPDX-License-Identifier: Apache-2.0
#include "support/op_runner.hpp"

#include <fmt/format.h>

namespace clutch::testing {

std::string run_problem(const Device& device, const cases::Problem& problem, const Stream& stream, std::vector<std::uint8_t>* raw_out) {
  std::vector<Guarded> inputs;
  inputs.reserve(problem.inputs.size());
  std::vector<Tensor> views;
  for (const cases::Operand& in : problem.inputs) {
    inputs.emplace_back(device, in.dtype, in.sizes, in.strides, in.lead + static_cast<std::int64_t>(inputs.size()), &in.raw);
    views.push_back(inputs.back().view());
  }
  Guarded out(device, problem.output.dtype, problem.output.sizes, problem.output.strides, problem.output.lead);
  problem.run(out.view(), views, stream);
  if (!problem.entry.empty() && !problem.is_helper && out.view().numel() > 0 && !last_plan().starts_with(problem.entry)) return "ran " + last_plan();
  std::vector<std::uint8_t> got = out.get();
  if (raw_out) *raw_out = got;
  return compare_bits(got, problem.output.raw, problem.output.dtype, !device.traits().denormals);
}

const std::vector<NamedProblem>& all_problems() {
  static const auto* all = [] {
    auto* result = new std::vector<NamedProblem>;
    for (const cases::OpRow& row : cases::op_rows()) {
      auto* of_op = new std::vector<cases::Problem>(row.problems(seed()));
      for (const cases::Problem& p : *of_op) result->push_back({fmt::format("{}/{}/{}", row.stem, p.entry, p.name), row.stem, &p});
    }
    return result;
  }();
  return *all;
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
