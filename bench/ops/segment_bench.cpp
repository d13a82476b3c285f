// SPDX-License-Identifier: Apache-2.0
#include "cases/segment.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/torch.hpp"

#include <clutch/ops/random.hpp>

namespace clutch::bench {

void register_segment(Rows& rows);
void sweep_segment(SweptOps& ops);

namespace {

using cases::SegmentCase;

struct Named {
  const char* name;
  Reduce reduce;
};
const Named kReductions[] = {{"sum", Reduce::sum}, {"mean", Reduce::mean}, {"amax", Reduce::amax}, {"amin", Reduce::amin}};

/// A matrix of `rows` squared with `degree` entries a row on average (0 to 2 degree), in random columns, times one of `features`.
Work work_of(const Device& device, const Named& named, std::int64_t rows, std::int64_t degree, std::int64_t features, bool is_product) {
  model::Random random(11);
  auto offsets = std::make_shared<std::vector<std::int64_t>>(1, 0);
  auto columns = std::make_shared<std::vector<std::int64_t>>();
  for (std::int64_t i = 0; i < rows; ++i)
    offsets->push_back(offsets->back() + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(2 * degree + 1)));
  for (std::int64_t k = 0; is_product && k < offsets->back(); ++k)
    columns->push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(rows)));
  std::int64_t data_rows = is_product ? rows : offsets->back();
  auto data = std::make_shared<std::vector<float>>(static_cast<std::size_t>(data_rows * features));
  auto values = std::make_shared<std::vector<float>>(columns->size());
  for (float& v : *data) v = static_cast<float>(random.uniform(-1, 1));
  for (float& v : *values) v = static_cast<float>(random.uniform(-1, 1));
  Tensor x = from_host(*data, {data_rows, features}, device), of = from_host(*offsets, {rows + 1}, device);
  sparse::Csr a{.offsets = of, .width = rows};
  if (is_product) a.columns = from_host(*columns, {offsets->back()}, device), a.values = from_host(*values, {offsets->back()}, device);
  Tensor out = empty({rows, features}, {.device = device});
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i)
      if (is_product)
        sparse::spmm_out(out, a, x, {.reduce = named.reduce}, stream);
      else
        segment_reduce_out(out, x, of, {.reduce = named.reduce}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    std::vector<float> want = SegmentCase::model<float>(named.reduce, *data, static_cast<std::size_t>(features), *offsets, *columns, *values, is_product);
    std::vector<float> got = out.to_host<float>();
    for (std::size_t i = 0; i < want.size(); ++i)
      if (got[i] != want[i] && !(std::isnan(got[i]) && std::isnan(want[i]))) return fmt::format("element {} is {} instead of {}", i, got[i], want[i]);
    return {};
  };
  auto result = std::make_shared<std::vector<float>>(static_cast<std::size_t>(rows * features));
  work.peers.push_back({omp::name(), [=](int reps) {
                          for (int i = 0; i < reps; ++i)
                            omp::segments_f32(named.name, result->data(), data->data(), offsets->data(), is_product ? columns->data() : nullptr,
                                              is_product ? values->data() : nullptr, rows, features);
                        }});
  std::string setup = fmt::format(
      "import warnings; warnings.filterwarnings('ignore'); d = torch.randint(0, {1}, ({0},)); o = torch.cat([torch.zeros(1, dtype=torch.int64), d.cumsum(0)]); "
      "e = "
      "int(o[-1]); ",
      rows, 2 * degree + 1);
  if (is_product)
    add_torch_peer(work, device,
                   setup + fmt::format("a = torch.sparse_csr_tensor(o, torch.randint(0, {0}, (e,)), torch.randn(e), ({0}, {0})); b = torch.randn({0}, {1})",
                                       rows, features),
                   fmt::format("torch.sparse.mm(a, b, '{}')", named.name));
  else
    add_torch_peer(work, device, setup + fmt::format("b = torch.randn(e, {})", features),
                   fmt::format("torch.segment_reduce(b, '{}', offsets=o, axis=0)", named.reduce == Reduce::amax   ? "max"
                                                                                   : named.reduce == Reduce::amin ? "min"
                                                                                                                  : named.name));
  return work;
}

/// The gradients of a product. Checked in the values' by double, in the dense matrix's by summing rows in the entries' order.
Work gradients_of(const Device& device, const Named& named, std::int64_t rows, std::int64_t degree, std::int64_t features) {
  model::Random random(12);
  std::vector<std::int64_t> offsets{0}, columns;
  for (std::int64_t i = 0; i < rows; ++i)
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(2 * degree + 1)));
  for (std::int64_t k = 0; k < offsets.back(); ++k) columns.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(rows)));
  Tensor b = randn({rows, features}, {.device = device, .seed = 1}), grad = randn({rows, features}, {.device = device, .seed = 2});
  sparse::Csr a{.offsets = from_host(offsets, {rows + 1}, device),
                .columns = from_host(columns, {offsets.back()}, device),
                .values = randn({offsets.back()}, {.device = device, .seed = 3}),
                .width = rows};
  Tensor result = sparse::spmm(a, b, {.reduce = named.reduce});
  auto last = std::make_shared<sparse::SpmmGradients>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *last = sparse::spmm_backward(grad, result, a, b, {.reduce = named.reduce}, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    auto n = static_cast<std::size_t>(features);
    std::vector<float> hb = b.to_host<float>(), hg = grad.to_host<float>(), hv = a.values.to_host<float>(), hy = result.to_host<float>();
    std::vector<double> of_values(hv.size()), of_b(hb.size());
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      auto begin = static_cast<std::size_t>(offsets[i]), end = static_cast<std::size_t>(offsets[i + 1]);
      for (std::size_t f = 0; f < n; ++f) {
        double g = hg[i * n + f];
        if (named.reduce == Reduce::mean && begin < end) g /= static_cast<double>(end - begin);
        bool taken = false;
        for (std::size_t k = begin; k < end; ++k) {
          std::size_t from = static_cast<std::size_t>(columns[k]) * n + f;
          if (named.reduce == Reduce::amax) {
            if (taken || hb[from] * hv[k] != hy[i * n + f]) continue;
            taken = true;
          }
          of_values[k] += g * hb[from], of_b[from] += g * hv[k];
        }
      }
    }
    auto compare = [](const std::vector<float>& got, const std::vector<double>& want, const char* what) -> std::string {
      for (std::size_t i = 0; i < want.size(); ++i)
        if (!(std::fabs(got[i] - want[i]) <= 1e-4 * (1 + std::fabs(want[i])))) return fmt::format("{} {} is {} instead of {}", what, i, got[i], want[i]);
      return {};
    };
    std::string wrong = compare(last->values.to_host<float>(), of_values, "value");
    return wrong.empty() ? compare(last->b.to_host<float>(), of_b, "element") : wrong;
  };
  add_torch_peer(work, device,
                 fmt::format("import warnings; warnings.filterwarnings('ignore'); torch.set_grad_enabled(True); d = torch.randint(0, {1}, ({0},)); "
                             "o = torch.cat([torch.zeros(1, dtype=torch.int64), d.cumsum(0)]); e = int(o[-1]); "
                             "a = torch.sparse_csr_tensor(o, torch.randint(0, {0}, (e,)), torch.randn(e), ({0}, {0})).requires_grad_(); "
                             "b = torch.randn({0}, {2}).requires_grad_(); y = torch.sparse.mm(a, b, '{3}'); g = torch.randn({0}, {2})",
                             rows, 2 * degree + 1, features, named.name),
                 "torch.autograd.grad(y, [a, b], g, retain_graph=True)");
  return work;
}

SweptOp swept(const char* name, bool is_product) {
  SweptOp op{.name = name,
             .parameters = {{.name = "reduce", .words = {}},
                            {.name = "rows", .most = 1000000},
                            {.name = "degree", .most = 4096},
                            {.name = "features", .most = 4096, .often_least = 0.25}},
             .load =
                 [](const RandomShape& s) {
                   const auto rows = static_cast<double>(s.number("rows")), entries = rows * static_cast<double>(s.number("degree"));
                   const auto features = static_cast<double>(s.number("features"));
                   // The model walks entries one by one, 2 ns each.
                   return Load{16 * entries + 12 * (rows + entries) * features, 200 * (entries * features + rows)};
                 },
             .prepare =
                 [is_product](const Device& device, const RandomShape& s) {
                   const auto& named =
                       *std::find_if(std::begin(kReductions), std::end(kReductions), [&](const Named& x) { return x.name == s.word("reduce"); });
                   return work_of(device, named, s.number("rows"), s.number("degree"), s.number("features"), is_product);
                 }};
  for (const Named& named : kReductions) op.parameters[0].words.emplace_back(named.name);
  return op;
}

}  // namespace

void sweep_segment(SweptOps& ops) {
  ops.push_back(swept("spmm", true));
  ops.push_back(swept("segment_reduce", false));
}

void register_segment(Rows& rows) {
  const struct {
    const char* name;
    std::int64_t rows, degree, features;
    bool in_default;
  } shapes[] = {{"100000x10x64", 100000, 10, 64, true},
                {"10000x10x64", 10000, 10, 64, false},
                {"100000x10x16", 100000, 10, 16, false},
                {"1000x200x256", 1000, 200, 256, false},
                {"100000x10x1", 100000, 10, 1, false}};
  for (bool is_product : {true, false})
    for (const Named& named : kReductions)
      for (const auto& shape : shapes) {
        double entries = static_cast<double>(shape.rows * shape.degree), features = static_cast<double>(shape.features), n = static_cast<double>(shape.rows);
        // A product's operands once: its plan states each row of b as often as an entry selects it.
        double bytes = is_product ? entries * 12 + n * 8 + 8 * n * features : kStated;
        if (is_product && named.reduce != Reduce::amin && shape.features > 1)
          rows.push_back({.name = fmt::format("spmm_backward/{}/f32/{}", named.name, shape.name),
                          // Operands once: the plans of its launches state each row of b as often as an entry selects it.
                          .bytes = entries * 24 + n * 8 + 16 * n * features,
                          .in_default = shape.in_default && named.reduce != Reduce::mean,
                          .prepare = [named, shape](const Device& device) { return gradients_of(device, named, shape.rows, shape.degree, shape.features); }});
        rows.push_back({.name = fmt::format("{}/{}/f32/{}", is_product ? "spmm" : "segment_reduce", named.name, shape.name),
                        .bytes = bytes,
                        .in_default = shape.in_default && (is_product || named.reduce == Reduce::sum),
                        .in_quick = shape.in_default && is_product && named.reduce == Reduce::sum,
                        .prepare = [named, shape, is_product](const Device& device) {
                          return work_of(device, named, shape.rows, shape.degree, shape.features, is_product);
                        }});
      }
}

}  // namespace clutch::bench
