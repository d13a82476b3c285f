// SPDX-License-Identifier: Apache-2.0
#include "cases/fill.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"

namespace clutch::bench {

void register_fill(Rows& rows);

namespace {

Work work_of(const Device& device, std::int64_t n) {
  Tensor out = empty({n}, {.device = device});
  auto host = std::make_shared<omp::Buffer>(static_cast<std::uint64_t>(n) * 4);
  Work work;
  work.run = [out, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) fill_(out, 1.5, {}, stream);
    stream.synchronize();
  };
  work.check = [out]() -> std::string {
    for (float x : out.to_host<float>())
      if (x != 1.5f) return "an element is not 1.5";
    return {};
  };
  work.peers.push_back({omp::name(), [host, n](int reps) {
                          for (int i = 0; i < reps; ++i) omp::fill_f32(static_cast<float*>(host->data()), 1.5f, n);
                        }});
  if (n >= kTriadFrom) work.peers.push_back(triad_peer(device, cases::FillCase::bytes(n, DType::f32)));
  add_torch_peer(work, device, fmt::format("x = torch.empty({}, device=device)", n), "x.fill_(1.5)");
  return work;
}

}  // namespace

void register_fill(Rows& rows) {
  for (SweptSize size : element_sizes())
    rows.push_back({.name = row_name("fill", DType::f32, size.n),
                    .bytes = kStated,
                    .in_default = size.in_default,
                    .in_quick = size.in_quick,
                    .prepare = [n = size.n](const Device& device) { return work_of(device, n); }});
}

}  // namespace clutch::bench
