// SPDX-License-Identifier: Apache-2.0
#include "cases/group.hpp"
#include "harness/rows.hpp"
#include "peers/torch.hpp"

namespace clutch::bench {

void register_group(Rows& rows);

void register_group(Rows& rows) {
  const struct {
    const char* name;
    std::int64_t entries, groups;
    bool in_default;
  } shapes[] = {{"1000000x1000", 1000000, 1000, false}, {"1000000x100000", 1000000, 100000, true}};
  for (const auto& shape : shapes)
    rows.push_back(
        {.name = fmt::format("group_by/i64/{}", shape.name),
         // Index, order and offsets once: the plans of its passes state counts and the keys between them, too.
         .bytes = static_cast<double>(shape.entries) * 12 + static_cast<double>(shape.groups) * 4,
         .in_default = shape.in_default,
         .prepare = [shape](const Device& device) {
           auto index = std::make_shared<std::vector<std::int64_t>>(cases::GroupCase::indices(shape.entries, shape.groups, 3));
           Tensor x = from_host(*index, {shape.entries}, device);
           auto last = std::make_shared<Groups>();
           Work work;
           work.run = [=](int reps) {
             Stream stream = current_stream(device);
             for (int i = 0; i < reps; ++i) *last = group_by(x, shape.groups, {}, stream);
             stream.synchronize();
           };
           work.check = [=]() -> std::string {
             std::vector<std::int64_t> got = last->offsets.to(DType::i64).to_host<std::int64_t>(), order = last->order.to(DType::i64).to_host<std::int64_t>();
             got.insert(got.end(), order.begin(), order.end());
             return got == cases::GroupCase::model(*index, shape.groups) ? "" : "not the stable order";
           };
           add_torch_peer(work, device, fmt::format("x = torch.randint(0, {}, ({},))", shape.groups, shape.entries), "torch.argsort(x, stable=True)");
           return work;
         }});
}

}  // namespace clutch::bench
