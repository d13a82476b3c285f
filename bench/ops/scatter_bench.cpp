// SPDX-License-Identifier: Apache-2.0
#include "cases/group.hpp"
#include "cases/scatter.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_strided.hpp"
#include "peers/torch.hpp"

#include <clutch/nn.hpp>

namespace clutch::bench {

void register_scatter(Rows& rows);
void sweep_scatter(SweptOps& ops);

namespace {

struct Shape {
  const char* name;
  std::int64_t entries, rows, features;
  bool in_default;
};

std::vector<float> randoms(std::int64_t n, std::uint64_t seed) {
  model::Random random(seed);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = static_cast<float>(random.uniform(-1, 1));
  return v;
}

/// Rows of src added to those of self that an index names, all of whose elements name the same row.
Work scatter_work(const Device& device, const Shape& s) {
  auto index = std::make_shared<std::vector<std::int64_t>>(cases::GroupCase::indices(s.entries, s.rows, 3));
  auto src = std::make_shared<std::vector<float>>(randoms(s.entries * s.features, 5));
  Tensor x = from_host(*src, {s.entries, s.features}, device), self = empty({s.rows, s.features}, {.device = device});
  Tensor at = from_host(*index, {s.entries, 1}, device).expand({s.entries, s.features});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) scatter_reduce_(self, 0, at, x, {}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    fill_(self, 0);
    scatter_reduce_(self, 0, at, x);
    std::vector<float> want(static_cast<std::size_t>(s.rows * s.features), 0), got = self.to_host<float>();
    for (std::size_t k = 0; k < index->size(); ++k)
      for (std::size_t f = 0; f < static_cast<std::size_t>(s.features); ++f)
        want[static_cast<std::size_t>((*index)[k] * s.features) + f] += (*src)[k * static_cast<std::size_t>(s.features) + f];
    return got == want ? "" : "an element is wrong";
  };
  auto result = std::make_shared<std::vector<float>>(static_cast<std::size_t>(s.rows * s.features), 0.0f);
  work.peers.push_back({omp::name(), [=](int reps) {
                          for (int i = 0; i < reps; ++i) omp::scatter_sum_f32(result->data(), src->data(), index->data(), s.entries, s.features);
                        }});
  add_torch_peer(
      work, device,
      fmt::format("i = torch.randint(0, {1}, ({0}, 1)).expand({0}, {2}); x = torch.randn({0}, {2}); y = torch.zeros({1}, {2})", s.entries, s.rows, s.features),
      "y.scatter_reduce_(0, i, x, 'sum')");
  return work;
}

/// Rows of a table, or their gradients.
Work embedding_work(const Device& device, const Shape& s, bool backward) {
  auto index = std::make_shared<std::vector<std::int64_t>>(cases::GroupCase::indices(s.entries, s.rows, 3));
  auto values = std::make_shared<std::vector<float>>(randoms((backward ? s.entries : s.rows) * s.features, 5));
  Tensor x = from_host(*values, {backward ? s.entries : s.rows, s.features}, device), at = from_host(*index, {s.entries}, device);
  auto last = std::make_shared<Tensor>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *last = backward ? nn::embedding_backward(x, at, s.rows, {}, stream) : nn::embedding(x, at, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    auto n = static_cast<std::size_t>(s.features);
    std::vector<float> got = last->to_host<float>(), want(got.size(), 0);
    for (std::size_t k = 0; k < index->size(); ++k)
      for (std::size_t f = 0; f < n; ++f) {
        std::size_t row = static_cast<std::size_t>((*index)[k]) * n + f;
        if (backward)
          want[row] += (*values)[k * n + f];
        else
          want[k * n + f] = (*values)[row];
      }
    return got == want ? "" : "an element is wrong";
  };
  auto result = std::make_shared<std::vector<float>>(static_cast<std::size_t>((backward ? s.rows : s.entries) * s.features), 0.0f);
  work.peers.push_back({omp::name(), [=](int reps) {
                          for (int i = 0; i < reps; ++i) {
                            if (backward) {
                              std::fill(result->begin(), result->end(), 0.0f);
                              omp::scatter_sum_f32(result->data(), values->data(), index->data(), s.entries, s.features);
                            } else {
                              omp::gather_rows_f32(result->data(), values->data(), index->data(), s.entries, s.features);
                            }
                          }
                        }});
  std::string setup = fmt::format("i = torch.randint(0, {}, ({},)); x = torch.randn({}, {})", s.rows, s.entries, backward ? s.entries : s.rows, s.features);
  add_torch_peer(work, device, setup,
                 backward ? fmt::format("torch.ops.aten.embedding_dense_backward(x, i, {}, -1, False)", s.rows) : "torch.nn.functional.embedding(i, x)");
  return work;
}

}  // namespace

void sweep_scatter(SweptOps& ops) {
  ops.push_back({.name = "scatter",
                 .parameters = {{.name = "op", .words = {"sum", "embedding", "embedding_backward"}},
                                {.name = "entries", .most = 4000000},
                                {.name = "rows", .most = 1000000},
                                {.name = "features", .most = 4096, .often_least = 0.25}},
                 .load =
                     [](const RandomShape& s) {
                       const auto entries = static_cast<double>(s.number("entries")), rows = static_cast<double>(s.number("rows"));
                       const auto features = static_cast<double>(s.number("features"));
                       // Indices, rows on both sides, here and at the peer; about 2 ns a number.
                       return Load{16 * (entries + (entries + rows) * features), 200 * (entries + rows) * features};
                     },
                 .prepare =
                     [](const Device& device, const RandomShape& s) {
                       const Shape shape{"", s.number("entries"), s.number("rows"), s.number("features"), false};
                       const std::string& op = s.word("op");
                       return op == "sum" ? scatter_work(device, shape) : embedding_work(device, shape, op == "embedding_backward");
                     }});
}

void register_scatter(Rows& rows) {
  const Shape shapes[] = {
      {"1000000x10000x1", 1000000, 10000, 1, true}, {"200000x20000x64", 200000, 20000, 64, true}, {"20000x2000x64", 20000, 2000, 64, false}};
  for (const Shape& s : shapes)
    rows.push_back({.name = fmt::format("scatter/sum/f32/{}", s.name),
                    // Operands once: the plans of wide rows state what grouping and reducing move, too.
                    .bytes = static_cast<double>(s.entries) * (8 + 4 * static_cast<double>(s.features)) + 8 * static_cast<double>(s.rows * s.features),
                    .in_default = s.in_default,
                    .prepare = [s](const Device& device) { return scatter_work(device, s); }});
  const Shape table{"65536x32000x256", 65536, 32000, 256, true};
  for (bool backward : {false, true})
    rows.push_back({.name = fmt::format("embedding{}/f32/{}", backward ? "_backward" : "", table.name),
                    // Rows that are read and written: the plans state indices and, for gradients, what grouping moves, too.
                    .bytes = static_cast<double>(table.entries * table.features) * 8,
                    .in_default = true,
                    .prepare = [table, backward](const Device& device) { return embedding_work(device, table, backward); }});
}

}  // namespace clutch::bench
