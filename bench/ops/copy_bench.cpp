// SPDX-License-Identifier: Apache-2.0
#include "cases/copy.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"
#include "support/compare.hpp"

namespace clutch::bench {

void register_copy(Rows& rows);

namespace {

using cases::CopyCase;

struct Pair {
  std::vector<std::uint8_t> raw;
  Tensor to, from;
  std::vector<omp::Buffer> host;
};

Work work_of(const Device& device, DType from, DType to, std::int64_t n) {
  auto p = std::make_shared<Pair>();
  p->raw = model::make_values(static_cast<std::size_t>(n), from, 7, false);
  p->from = from_bytes(p->raw.data(), p->raw.size(), {n}, {.dtype = from, .device = device});
  p->to = empty({n}, {.dtype = to, .device = device});
  p->host.emplace_back(p->raw.size());
  p->host.emplace_back(bytes_for(to, static_cast<std::uint64_t>(n)));
  std::memcpy(p->host[0].data(), p->raw.data(), p->raw.size());
  synchronize(device);
  Work work;
  work.run = [p, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) copy_(p->to, p->from, {}, stream);
    stream.synchronize();
  };
  work.check = [p, from, to, n, device] {
    std::vector<std::uint8_t> want(bytes_for(to, static_cast<std::uint64_t>(n)));
    if (from == to)
      want = p->raw;
    else
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) CopyCase::reference(want.data(), to, p->raw.data(), from, i, Overflow::nonfinite);
    return testing::compare_bits(p->to.to_bytes(), want, to, !device.traits().denormals);
  };
  work.peers.push_back({omp::name(), [p, from, to, n](int reps) {
                          for (int i = 0; i < reps; ++i) {
                            if (from == to)
                              omp::copy(p->host[1].data(), p->host[0].data(), static_cast<long>(p->raw.size()));
                            else
                              omp::cast(from, to, p->host[1].data(), p->host[0].data(), n);
                          }
                        }});
  if (n >= kTriadFrom) work.peers.push_back(triad_peer(device, CopyCase::bytes(n, from, to)));
  add_torch_peer(work, device, fmt::format("x = torch.rand({}).to(device, {}); out = torch.empty_like(x, dtype={})", n, torch_dtype(from), torch_dtype(to)),
                 "out.copy_(x)");
  return work;
}

void add(Rows& rows, std::string_view op, DType shown, DType from, DType to, bool may_be_quick) {
  for (SweptSize size : element_sizes())
    rows.push_back({.name = row_name(op, shown, size.n),
                    .bytes = kStated,
                    .in_default = size.in_default,
                    .in_quick = size.in_quick && may_be_quick,
                    .prepare = [from, to, n = size.n](const Device& device) { return work_of(device, from, to, n); }});
}

}  // namespace

void register_copy(Rows& rows) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16}) add(rows, "copy", dtype, dtype, dtype, dtype == DType::f32);
  // cast/<dtype>: from f32 to it; cast/f32: from f16.
  for (DType dtype : {DType::f16, DType::bf16, DType::f64}) add(rows, "cast", dtype, DType::f32, dtype, dtype == DType::bf16);
  add(rows, "cast", DType::f32, DType::f16, DType::f32, false);
}

}  // namespace clutch::bench
