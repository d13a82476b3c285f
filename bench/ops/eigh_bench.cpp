// SPDX-License-Identifier: Apache-2.0
#include "cases/eigh.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/eigen.hpp"
#include "peers/lapack.hpp"
#include "peers/torch.hpp"

#include <array>

namespace clutch::bench {

void register_eigh(Rows& rows);
void sweep_eigh(SweptOps& ops);

namespace {

using cases::EighCase;
using cases::HostMatrix;
using linalg::EighDriver;

struct Shape {
  std::int64_t batch, n;
};

/// `driver`, if one is given, is the device's own one for the row "/own".
void add_row(Rows& rows, const std::string& group, DType dtype, Shape s, bool vectors, bool in_default, EighDriver driver = EighDriver::automatic) {
  Row row{.name = fmt::format("{}/{}/b{}_n{}{}", group, name(dtype), s.batch, s.n, driver == EighDriver::automatic ? "" : "/own"),
          // Matrices, vectors and values once: the plans state scratch and status, and the device-wide driver's each of its launches.
          .bytes = EighCase::bytes(s.n, static_cast<std::int64_t>(bits(dtype) / 8)) * static_cast<double>(s.batch),
          .in_default = in_default};
  const bool complex = is_complex(dtype);
  const DType real = EighCase::real_of(dtype);
  auto number_at = [=](const std::uint8_t* raw, std::size_t i) {
    return std::complex<double>(model::value_at(raw, complex ? 2 * i : i, real), complex ? model::value_at(raw, 2 * i + 1, real) : 0);
  };
  row.prepare = [=](const Device& device) {
    auto host = std::make_shared<std::vector<std::uint8_t>>();
    auto checked = std::make_shared<std::vector<HostMatrix>>();
    {
      model::Random random(11);
      const auto count = static_cast<std::size_t>(s.batch * s.n * s.n), parts = static_cast<std::size_t>(complex ? 2 : 1);
      host->resize(bytes_for(dtype, count));
      for (std::int64_t m = 0; m < s.batch; ++m)
        for (std::int64_t i = 0; i < s.n; ++i)
          for (std::int64_t j = 0; j <= i; ++j)
            for (std::size_t part = 0; part < parts; ++part) {
              double x = 0;
              for (int k = 0; k < 4; ++k) x += random.uniform(-1, 1);
              if (part == 1 && i == j) x = 0;
              model::store_at(host->data(), static_cast<std::size_t>((m * s.n + i) * s.n + j) * parts + part, real, x);
              model::store_at(host->data(), static_cast<std::size_t>((m * s.n + j) * s.n + i) * parts + part, real, part == 0 ? x : -x);
            }
      for (std::int64_t m : {std::int64_t{0}, s.batch - 1}) {
        HostMatrix matrix{s.n, {}};
        for (std::int64_t i = 0; i < s.n * s.n; ++i) matrix.a.push_back(number_at(host->data(), static_cast<std::size_t>(m * s.n * s.n + i)));
        checked->push_back(std::move(matrix));
      }
    }
    Tensor a = from_bytes(host->data(), host->size(), {s.batch, s.n, s.n}, {.dtype = dtype, .device = device});
    Tensor w = empty({s.batch, s.n}, {.dtype = real, .device = device}), v = empty({s.batch, s.n, s.n}, {.dtype = dtype, .device = device}).mT();
    const linalg::EighStatus status{empty({s.batch}, {.dtype = DType::i32, .device = device}), empty({s.batch}, {.dtype = DType::i32, .device = device})};
    Work work;
    work.run = [=](int reps) {
      Stream stream = current_stream(device);
      for (int i = 0; i < reps; ++i) {
        if (vectors)
          linalg::eigh_out(w, v, status, a, {.driver = driver}, stream);
        else
          linalg::eigvalsh_out(w, status, a, {.driver = driver}, stream);
      }
      stream.synchronize();
    };
    work.check = [=]() -> std::string {
      linalg::require_converged(status);
      double eps = EighCase::epsilon(dtype);
      for (std::size_t i = 0; i < checked->size(); ++i) {
        std::int64_t m = i == 0 ? 0 : s.batch - 1;
        std::vector<std::uint8_t> raw_w = w.select(0, m).to_bytes(), raw_v = v.select(0, m).mT().to_bytes();
        std::vector<double> values;
        std::vector<std::complex<double>> columns;
        for (std::int64_t k = 0; k < s.n; ++k) values.push_back(model::value_at(raw_w.data(), static_cast<std::size_t>(k), real));
        for (std::size_t k = 0; k < static_cast<std::size_t>(s.n * s.n); ++k) columns.push_back(number_at(raw_v.data(), k));
        std::vector<double> want = lapack::eigenvalues((*checked)[i].a, s.n);
        auto r = EighCase::ratios((*checked)[i], values.data(), vectors ? columns.data() : nullptr, s.n, eps, want);
        if (!(r.residual <= 30) || !(r.orthogonality <= 30) || !(r.spectrum <= 30) || !r.ascending)
          return fmt::format("matrix {}: residual {:.3g}, orthogonality {:.3g}, values {:.3g}", m, r.residual, r.orthogonality, r.spectrum);
      }
      return {};
    };
    for (bool all_cores : {true, false}) work.peers.push_back(lapack::eigh_peer(host, dtype, s.batch, s.n, vectors, all_cores));
    if (auto direct = complex ? std::nullopt : eigen::eigh_peer(host, dtype, s.batch, s.n, vectors)) work.peers.push_back(*direct);
    add_torch_peer(work, device, fmt::format("x = torch.randn({}, {}, {}, dtype={}); x = x + x.mH", s.batch, s.n, s.n, torch_dtype(dtype)),
                   vectors ? "torch.linalg.eigh(x)" : "torch.linalg.eigvalsh(x)");
    return work;
  };
  rows.push_back(std::move(row));
}

}  // namespace

void sweep_eigh(SweptOps& ops) {
  ops.push_back({.name = "eigh",
                 .parameters = {{.name = "dtype", .words = {"f32", "f64", "c64", "c128"}},
                                {.name = "n", .most = 1024},
                                {.name = "batch", .most = 100000, .often_least = 0.25},
                                {.name = "vectors", .words = {"yes", "no"}}},
                 .load =
                     [](const RandomShape& s) {
                       const DType dtype = dtype_named(s.word("dtype"));
                       const auto n = static_cast<double>(s.number("n")), batch = static_cast<double>(s.number("batch")), wide = bits(dtype) / 32.0;
                       // The steps of LAPACK's best routine, at the rate of matrix products: about 40 n^3, and 5000 for whatever n.
                       return Load{16 * wide * batch * n * n, batch * wide * (40 * n * n * n + 5000)};
                     },
                 .prepare =
                     [](const Device& device, const RandomShape& s) {
                       Rows rows;
                       add_row(rows, "eigh", dtype_named(s.word("dtype")), {s.number("batch"), s.number("n")}, s.word("vectors") == "yes", false);
                       return rows[0].prepare(device);
                     }});
}

void register_eigh(Rows& rows) {
  const Shape kTable[] = {{1 << 19, 2},  {1 << 18, 3}, {1 << 16, 4}, {1 << 15, 6}, {1 << 14, 8}, {1 << 13, 12}, {1 << 12, 16}, {1 << 11, 24},
                          {1 << 10, 32}, {512, 48},    {256, 64},    {128, 96},    {64, 128},    {8, 256},      {2, 512},      {1, 1024}};
  for (Shape s : kTable) {
    add_row(rows, "eigh", DType::f32, s, true, true);
    // Beside sizes that LAPACKE may take.
    if (s.n >= 256) add_row(rows, "eigh", DType::f32, s, true, true, EighDriver::qr_group);
    add_row(rows, "eigh", DType::f64, s, true, false);
    add_row(rows, "eigh", DType::c64, s, true, false);
    add_row(rows, "eigh", DType::c128, s, true, false);
    add_row(rows, "eigvalsh", DType::f32, s, false, false);
  }
  // At constant work: no size may fall out of line.
  for (std::int64_t n = 2; n <= 1024; n = n < 64 ? n + 1 : n < 128 ? n + 8 : n < 256 ? n + 32 : n * 2)
    add_row(rows, "eigh_sweep", DType::f32, {std::max<std::int64_t>(1, (1 << 26) / (n * n * n + 30 * n)), n}, true, false);
}

}  // namespace clutch::bench
