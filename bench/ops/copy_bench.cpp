// SPDX-License-Identifier: Apache-2.0
#include "cases/copy.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_strided.hpp"
#include "peers/torch.hpp"
#include "support/compare.hpp"

namespace clutch::bench {

void register_copy(Rows& rows);
void sweep_copy(SweptOps& ops);

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

/// A permuted view, or one whose rows lie apart or are turned by steps, made contiguous.
Work permuted_of(const Device& device, const RandomShape& shape) {
  const DType dtype = dtype_named(shape.word("dtype"));
  const Dims sizes{shape.number("a"), shape.number("b"), shape.number("c")};
  const std::string& order = shape.word("order");  // of the source's dimensions in memory, the outermost first
  const std::int64_t step = shape.number("step");  // of its innermost one
  Dims strides{0, 0, 0};
  std::int64_t count = step;
  for (int place = 2; place >= 0; --place) {
    const int d = order[static_cast<std::size_t>(place)] - '0';
    strides[d] = count;
    count *= sizes[d];
  }
  auto raw = std::make_shared<std::vector<std::uint8_t>>(model::make_values(static_cast<std::size_t>(count), dtype, 7, false));
  Tensor from = from_bytes(raw->data(), raw->size(), {count}, {.dtype = dtype, .device = device}).as_strided(sizes, strides);
  Tensor to = empty(sizes, {.dtype = dtype, .device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) copy_(to, from, {}, stream);
    stream.synchronize();
  };
  const int width = bits(dtype) / 8;
  const omp::Three n{sizes[0], sizes[1], sizes[2]}, s{strides[0], strides[1], strides[2]};
  auto host = std::make_shared<std::vector<omp::Buffer>>();
  host->emplace_back(raw->size());
  host->emplace_back(static_cast<std::uint64_t>(to.numel()) * static_cast<std::uint64_t>(width));
  std::memcpy((*host)[0].data(), raw->data(), raw->size());
  work.check = [=]() -> std::string {
    const std::vector<std::uint8_t> got = to.to_bytes();
    std::size_t at = 0;
    for (long i = 0; i < n[0]; ++i)
      for (long j = 0; j < n[1]; ++j)
        for (long k = 0; k < n[2]; ++k, at += static_cast<std::size_t>(width))
          if (std::memcmp(got.data() + at, raw->data() + (i * s[0] + j * s[1] + k * s[2]) * width, static_cast<std::size_t>(width)) != 0)
            return fmt::format("element {} {} {} is another", i, j, k);
    return {};
  };
  work.peers.push_back({omp::name(), [=](int reps) {
                          for (int i = 0; i < reps; ++i) omp::copy_strided(width, (*host)[1].data(), (*host)[0].data(), n, s);
                        }});
  const std::string torch = dtype == DType::i8 ? "torch.int8" : torch_dtype(dtype);
  add_torch_peer(work, device,
                 fmt::format("x = torch.zeros({}, dtype={}, device=device).as_strided(({}, {}, {}), ({}, {}, {})); out = torch.empty({}, {}, {}, dtype={})",
                             count, torch, n[0], n[1], n[2], s[0], s[1], s[2], n[0], n[1], n[2], torch),
                 "out.copy_(x)");
  return work;
}

}  // namespace

void sweep_copy(SweptOps& ops) {
  ops.push_back(
      {.name = "copy",
       .parameters = {{.name = "dtype", .words = {"f32", "f64", "f16", "i8"}},
                      {.name = "a", .most = 100000, .often_least = 0.2},
                      {.name = "b", .most = 100000},
                      {.name = "c", .most = 100000},
                      {.name = "order", .words = {"012", "021", "102", "120", "201", "210"}},
                      {.name = "step", .most = 4, .often_least = 0.7}},
       .load =
           [](const RandomShape& s) {
             const double n = static_cast<double>(s.number("a") * s.number("b")) * static_cast<double>(s.number("c"));
             return Load{static_cast<double>(bytes_for(dtype_named(s.word("dtype")), 1)) * n * (4 + 4 * static_cast<double>(s.number("step"))), 200 * n};
           },
       .prepare = permuted_of});
}

void register_copy(Rows& rows) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16}) add(rows, "copy", dtype, dtype, dtype, dtype == DType::f32);
  // cast/<dtype>: from f32 to it; cast/f32: from f16.
  for (DType dtype : {DType::f16, DType::bf16, DType::f64}) add(rows, "cast", dtype, DType::f32, dtype, dtype == DType::bf16);
  add(rows, "cast", DType::f32, DType::f16, DType::f32, false);
}

}  // namespace clutch::bench
