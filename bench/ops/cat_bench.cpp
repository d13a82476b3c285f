// SPDX-License-Identifier: Apache-2.0
#include "cases/cat.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"

#include <numeric>

namespace clutch::bench {

void register_cat(Rows& rows);

namespace {

/// Parts of (rows, columns) each, joined along the columns.
struct Join {
  std::vector<Tensor> parts;
  Tensor out;
  std::vector<omp::Buffer> host;
};

Work work_of(const Device& device, std::int64_t count, std::int64_t rows, std::int64_t columns) {
  auto join = std::make_shared<Join>();
  const std::int64_t n = count * rows * columns;
  for (std::int64_t i = 0; i < count; ++i) join->parts.push_back(full({rows, columns}, static_cast<double>(i), {.device = device}));
  join->out = empty({rows, count * columns}, {.device = device});
  join->host.emplace_back(static_cast<std::uint64_t>(n) * 4);
  join->host.emplace_back(static_cast<std::uint64_t>(n) * 4);
  synchronize(device);
  Work work;
  work.run = [join, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) cat_out(join->out, join->parts, 1, {}, stream);
    stream.synchronize();
  };
  work.check = [join, columns, count]() -> std::string {
    const std::vector<float> got = join->out.to_host<float>();
    for (std::size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<float>(static_cast<std::int64_t>(i) / columns % count)) return "an element is of another part";
    return {};
  };
  // A plain copy of as many bytes: the least that a join moves.
  work.peers.push_back({omp::name(), [join, n](int reps) {
                          for (int i = 0; i < reps; ++i) omp::copy(join->host[1].data(), join->host[0].data(), static_cast<long>(n) * 4);
                        }});
  add_torch_peer(work, device,
                 fmt::format("parts = [torch.full(({}, {}), float(i), device=device) for i in range({})]; out = torch.empty({}, {}, device=device)", rows,
                             columns, count, rows, count * columns),
                 "torch.cat(parts, 1, out=out)");
  return work;
}

}  // namespace

void register_cat(Rows& rows) {
  struct Size {
    std::int64_t count, rows, columns;
    bool in_quick;
  };
  for (Size s : {Size{3, 1024, 384, true}, Size{2, 65536, 8, false}, Size{500, 1, 100, false}, Size{8, 1, 1 << 20, false}})
    rows.push_back(
        {.name = fmt::format("cat/{}x{}x{}", s.count, s.rows, s.columns), .bytes = kStated, .in_quick = s.in_quick, .prepare = [s](const Device& device) {
           return work_of(device, s.count, s.rows, s.columns);
         }});
}

}  // namespace clutch::bench
