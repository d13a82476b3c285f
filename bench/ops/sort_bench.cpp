// SPDX-License-Identifier: Apache-2.0
#include "cases/sort.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"

namespace clutch::bench {

void register_sort(Rows& rows);

namespace {

struct Shape {
  const char* name;
  DType dtype;
  std::int64_t lines, m, k;  ///< k: elements of a line that are kept; m: a sort
  bool in_default;
};

Work work_of(const Shape& s, const Device& device) {
  // Numbers that differ, as those of other benchmarks do; the sum of places tells results apart.
  auto raw = std::make_shared<cases::SortCase::Raw>(cases::SortCase::elements(s.dtype, s.lines * s.m, 3, false));
  const Tensor x = from_bytes(raw->data(), raw->size(), {s.lines, s.m}, {.dtype = s.dtype, .device = device});
  auto last = std::make_shared<Sorted>();
  const bool is_sort = s.k == s.m;
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *last = is_sort ? sort(x, -1, {}, stream) : topk(x, s.k, -1, {}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    const cases::SortCase::Result want = cases::SortCase::model(*raw, s.dtype, s.lines, s.m, s.k, !is_sort);
    if (last->indices.to_host<std::int64_t>() != want.indices) return "not the stable order";
    return last->values.to_bytes() == want.values ? "" : "other elements than the model's";
  };
  if (is_sort && s.dtype == DType::f32) {
    auto values = std::make_shared<std::vector<float>>(raw->size() / 4);
    auto indices = std::make_shared<std::vector<std::int64_t>>(values->size());
    work.peers.push_back({omp::name(), [=](int reps) {
                            for (int i = 0; i < reps; ++i)
                              omp::stable_sort_f32(values->data(), indices->data(), reinterpret_cast<const float*>(raw->data()), s.lines, s.m);
                          }});
  }
  const bool whole = !is_floating(s.dtype);
  const std::string setup = whole ? fmt::format("x = torch.randint(-2**40, 2**40, ({}, {}))", s.lines, s.m)
                                  : fmt::format("x = torch.rand({}, {}).to({})", s.lines, s.m, torch_dtype(s.dtype));
  if (is_sort) add_torch_peer(work, device, setup, "torch.sort(x, stable=True)", "stable");
  add_torch_peer(work, device, setup, is_sort ? std::string("torch.sort(x)") : fmt::format("torch.topk(x, {})", s.k));
  return work;
}

}  // namespace

void register_sort(Rows& rows) {
  constexpr std::int64_t kMillion = 1000000;
  const Shape shapes[] = {{"sort/f32/1000000", DType::f32, 1, kMillion, kMillion, true},
                          {"sort/f32/1000x1000", DType::f32, 1000, 1000, 1000, true},
                          {"sort/f32/50000x20", DType::f32, 50000, 20, 20, false},
                          {"sort/f32/10000x100", DType::f32, 10000, 100, 100, false},
                          {"sort/f32/10000000", DType::f32, 1, 10 * kMillion, 10 * kMillion, false},
                          {"sort/i64/1000000", DType::i64, 1, kMillion, kMillion, false},
                          {"sort/bf16/1000x1000", DType::bf16, 1000, 1000, 1000, false},
                          {"topk/f32/64x50000/k50", DType::f32, 64, 50000, 50, true},
                          {"topk/f32/1000000/k1000", DType::f32, 1, kMillion, 1000, false},
                          {"topk/f32/10000x64/k8", DType::f32, 10000, 64, 8, false}};
  for (const Shape& s : shapes)
    rows.push_back({.name = s.name,
                    // Elements, values and indices once: the plans state entries of runs, too.
                    .bytes = cases::SortCase::bytes(s.dtype, s.lines * s.m, s.lines, s.k),
                    .in_default = s.in_default,
                    .prepare = [s](const Device& device) { return work_of(s, device); }});
}

}  // namespace clutch::bench
