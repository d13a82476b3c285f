// SPDX-License-Identifier: Apache-2.0
#include "cases/@STEM@.hpp"
#include "harness/rows.hpp"
#include "support/compare.hpp"

namespace clutch::bench {

void register_@STEM@(Rows& rows);

namespace {

/// A problem of the descriptor, with contiguous operands.
Work work_of(const Device& device, const cases::Problem& problem) {
  auto upload = [&](const cases::Operand& o) { return from_bytes(o.raw.data(), o.raw.size(), o.sizes, {.dtype = o.dtype, .device = device}); };
  std::vector<Tensor> in;
  for (const cases::Operand& o : problem.inputs) in.push_back(upload(o));
  Tensor out = empty(problem.output.sizes, {.dtype = problem.output.dtype, .device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) problem.run(out, in, stream);
    stream.synchronize();
  };
  work.check = [=]() { return testing::compare_bits(out.to_bytes(), problem.output.raw, problem.output.dtype, !device.traits().denormals); };
  return work;
}

}  // namespace

void register_@STEM@(Rows& rows) {
  // Small problems: a launch counts more than its work. Rows at the sizes of your users come beside their peers.
  for (const cases::Problem& problem : cases::@PASCAL@Case::problems(1))
    rows.push_back({.name = fmt::format("{}/{}_{}", problem.entry, problem.name, rows.size()),
                    .bytes = kStated,
                    .prepare = [problem](const Device& device) { return work_of(device, problem); }});
}

}  // namespace clutch::bench
