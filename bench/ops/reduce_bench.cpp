// SPDX-License-Identifier: Apache-2.0
#include "cases/reduce.hpp"
#include "harness/operands.hpp"
#include "harness/rows.hpp"
#include "harness/sweep.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/omp_strided.hpp"
#include "peers/torch.hpp"

namespace clutch::bench {

void register_reduce(Rows& rows);
void sweep_reduce(SweptOps& ops);

namespace {

using cases::ReduceCase;

struct Shape {
  const char* name;
  std::int64_t rows, columns;
  Dims dims;
  const char* torch_dims;
};

/// A reduction of a matrix, over its rows, its columns or all of it.
struct Reduced {
  const char* name;
  const char* torch;  ///< over x and dims
  Tensor (*run)(const Tensor& x, const ReduceOptions& options, const Stream& stream);
  double passes;           ///< how often x is read
  bool near_rows = false;  ///< but rows once
  double bytes(const Shape& shape, DType dtype) const {
    double reads = near_rows && shape.dims.rank() == 1 && shape.dims[0] == 1 ? 1 : passes;
    return reads * static_cast<double>(shape.rows * shape.columns) * bits(dtype) / 8;
  }
};
const Reduced kReduced[] = {
    {"sum", "torch.sum(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return sum(x, o, s); }, 1},
    {"amax", "torch.amax(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return amax(x, o, s); }, 1},
    {"norm", "torch.linalg.vector_norm(x, 2, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return norm(x, 2, o, s); }, 1},
    {"var", "torch.var(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return var(x, 1, o, s); }, 2, true},
    {"logsumexp", "torch.logsumexp(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return logsumexp(x, o, s); }, 2, true},
};

const Shape kShapes[] = {
    {"16777216", 1, 1 << 24, {0, 1}, "(0, 1)"},
    {"65536", 1, 1 << 16, {0, 1}, "(0, 1)"},
    {"1024", 1, 1024, {0, 1}, "(0, 1)"},
    {"rows_16384x1024", 1 << 14, 1024, {1}, "(1,)"},
    {"columns_16384x1024", 1 << 14, 1024, {0}, "(0,)"},
};

/// For each result (axis 0: a column's, 1: a row's, 2: of all): norm, var or logsumexp.
std::vector<double> by_double(std::string_view name, const float* x, std::int64_t rows, std::int64_t columns, int axis) {
  const std::int64_t results = axis == 2 ? 1 : axis == 1 ? rows : columns, m = rows * columns / results;
  auto at = [&](std::int64_t i, std::int64_t k) { return static_cast<double>(x[axis == 0 ? k * columns + i : i * m + k]); };
  std::vector<double> made;
  for (std::int64_t i = 0; i < results; ++i) {
    double sum = 0, squares = 0, powers = 0;
    for (std::int64_t k = 0; k < m; ++k) {
      double v = at(i, k);
      sum += v, squares += v * v;
      if (name == "logsumexp") powers += std::exp(v);
    }
    double n = static_cast<double>(m);
    made.push_back(name == "norm" ? std::sqrt(squares) : name == "logsumexp" ? std::log(powers) : (squares - sum * sum / n) / (n - 1));
  }
  return made;
}

Work work_of(const Device& device, const Reduced& r, const Shape& shape, DType dtype) {
  std::int64_t n = shape.rows * shape.columns;
  auto raw = std::make_shared<cases::Operand>(
      cases::Operand{dtype, {shape.rows, shape.columns}, {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(n)))});
  model::Random random(5);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) model::store_at(raw->raw.data(), i, dtype, random.uniform(-1, 1));
  Tensor x = from_bytes(raw->raw.data(), raw->raw.size(), raw->sizes, {.dtype = dtype, .device = device});
  auto out = std::make_shared<Tensor>();
  Work work;
  work.run = [x, out, run = r.run, dims = shape.dims, device](int reps) {
    Stream stream = current_stream(device);
    for (int i = 0; i < reps; ++i) *out = run(x, {.dims = dims}, stream);
    stream.synchronize();
  };
  // The order of the contract for sums and maxima; a bound for what is made of several.
  work.check = [raw, out, name = std::string_view(r.name), shape]() -> std::string {
    std::vector<int> dims;
    for (std::int64_t d : shape.dims) dims.push_back(static_cast<int>(d));
    if (name != "sum" && name != "amax") {
      // In double, from what the elements sum to.
      const auto* elements = reinterpret_cast<const float*>(raw->raw.data());
      std::vector<double> want = by_double(name, elements, shape.rows, shape.columns, shape.dims.rank() == 2 ? 2 : static_cast<int>(shape.dims[0]));
      std::vector<float> got = out->to_host<float>();
      for (std::size_t i = 0; i < want.size(); ++i)
        if (!(std::fabs(got[i] - want[i]) <= 1e-4 * std::fabs(want[i]))) return fmt::format("result {} is {} instead of {}", i, got[i], want[i]);
      return got.size() == want.size() ? "" : "another count of results";
    }
    std::vector<std::uint8_t> want = ReduceCase::expected<float>(name == "sum" ? Reduce::sum : Reduce::amax, *raw, dims, raw->dtype);
    return out->to_bytes() == want ? "" : "not the bits of the contract's order";
  };
  if (dtype == DType::f32)
    work.peers.push_back({omp::name(), [raw, results = std::make_shared<std::vector<float>>(1 << 14), name = std::string_view(r.name), shape](int reps) {
                            for (int i = 0; i < reps; ++i)
                              omp::reduce_f32(name, results->data(), reinterpret_cast<const float*>(raw->raw.data()), shape.rows, shape.columns,
                                              shape.dims.rank() == 2 ? 2 : static_cast<int>(shape.dims[0]));
                          }});
  if (n >= kTriadFrom) work.peers.push_back(bandwidth_peer(device, "read", r.bytes(shape, dtype)));
  add_torch_peer(work, device,
                 fmt::format("x = torch.rand({}, {}, device=device).to({}); dims = {}", shape.rows, shape.columns, torch_dtype(dtype), shape.torch_dims),
                 r.torch);
  return work;
}

/// Any dimensions of three, whose rows or planes may lie apart, or which may be exchanged.
Work random_of(const Device& device, const RandomShape& shape) {
  const DType dtype = dtype_named(shape.word("dtype"));
  const std::int64_t a = shape.number("a"), b = shape.number("b"), c = shape.number("c");
  const std::string &op = shape.word("op"), &layout = shape.word("layout"), &dims_text = shape.word("dims");
  std::vector<int> dims;
  Dims gone;
  int bits_gone = 0;
  for (char d : dims_text) dims.push_back(d - '0'), gone.push_back(d - '0'), bits_gone |= 1 << (d - '0');
  auto raw = std::make_shared<cases::Operand>(
      cases::Operand{dtype, {a, b, c}, {}, std::vector<std::uint8_t>(bytes_for(dtype, static_cast<std::uint64_t>(a * b * c)))});
  model::Random random(5);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a * b * c); ++i) model::store_at(raw->raw.data(), i, dtype, random.uniform(-1, 1));
  const std::int64_t row = layout == "rows" ? c + 3 : c, plane = layout == "planes" ? (b + 1) * row : b * row;
  const std::array<std::int64_t, 3> strides = layout == "transposed" ? std::array{b * c, std::int64_t{1}, b}
                                              : layout == "reversed" ? std::array{std::int64_t{1}, a, a * b}
                                                                     : std::array{plane, row, std::int64_t{1}};
  auto make = [&] {
    Tensor dense = from_bytes(raw->raw.data(), raw->raw.size(), raw->sizes, {.dtype = dtype, .device = device});
    Tensor x = zeros({a * plane}, {.dtype = dtype, .device = device}).as_strided({a, b, c}, {strides[0], strides[1], strides[2]});
    copy_(x, dense);
    return x;
  };
  Tensor x = make();
  auto out = std::make_shared<Tensor>();
  Work work;
  work.run = [=](int reps) {
    Stream stream = current_stream(device);
    const ReduceOptions options{.dims = gone};
    for (int i = 0; i < reps; ++i) *out = op == "sum" ? sum(x, options, stream) : op == "amax" ? amax(x, options, stream) : norm(x, 2, options, stream);
    stream.synchronize();
  };
  work.check = [=]() -> std::string {
    const bool wide = dtype == DType::f64;
    if (op != "norm") {
      const Reduce reduce = op == "sum" ? Reduce::sum : Reduce::amax;
      const auto want = wide ? ReduceCase::expected<double>(reduce, *raw, dims, dtype) : ReduceCase::expected<float>(reduce, *raw, dims, dtype);
      return out->to_bytes() == want ? "" : "not the bits of the contract's order";
    }
    std::vector<double> squares(static_cast<std::size_t>(out->numel()), 0);
    const std::int64_t kept_b = bits_gone & 2 ? 1 : b, kept_c = bits_gone & 4 ? 1 : c;
    for (std::int64_t i = 0, at = 0; i < a; ++i)
      for (std::int64_t j = 0; j < b; ++j)
        for (std::int64_t k = 0; k < c; ++k, ++at) {
          const double v = model::value_at(raw->raw.data(), static_cast<std::size_t>(at), dtype);
          squares[static_cast<std::size_t>(((bits_gone & 1 ? 0 : i) * kept_b + (bits_gone & 2 ? 0 : j)) * kept_c + (bits_gone & 4 ? 0 : k))] += v * v;
        }
    const std::vector<std::uint8_t> got = out->to_bytes();
    const double bound = dtype == DType::f32 || wide ? 1e-4 : 2e-2;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const double is = model::value_at(got.data(), i, dtype), want = std::sqrt(squares[i]);
      if (!(std::fabs(is - want) <= bound * want)) return fmt::format("result {} is {} instead of {}", i, is, want);
    }
    return {};
  };
  if (dtype == DType::f32 || dtype == DType::bf16) {
    auto host = std::make_shared<omp::Buffer>(bytes_for(dtype, static_cast<std::uint64_t>(a * plane)));
    const std::vector<std::uint8_t> stored = x.as_strided({a * plane}, {1}).to_bytes();
    std::memcpy(host->data(), stored.data(), stored.size());
    auto results = std::make_shared<std::vector<float>>(static_cast<std::size_t>(a * b * c));
    work.peers.push_back({omp::name(), [=](int reps) {
                            for (int i = 0; i < reps; ++i)
                              omp::reduce_strided(op, dtype == DType::bf16, results->data(), host->data(), {a, b, c}, strides, bits_gone);
                          }});
  }
  std::string torch_dims;
  for (int d : dims) torch_dims += fmt::format("{}, ", d);
  add_torch_peer(work, device,
                 fmt::format("x = torch.rand({}, device=device).to({}).as_strided(({}, {}, {}), ({}, {}, {})); dims = ({})", a * plane, torch_dtype(dtype), a,
                             b, c, strides[0], strides[1], strides[2], torch_dims),
                 op == "sum"    ? "torch.sum(x, dims)"
                 : op == "amax" ? "torch.amax(x, dims)"
                                : "torch.linalg.vector_norm(x, 2, dims)");
  return work;
}

}  // namespace

void sweep_reduce(SweptOps& ops) {
  ops.push_back({.name = "reduce",
                 .parameters = {{.name = "op", .words = {"sum", "sum", "amax", "norm"}},
                                {.name = "dtype", .words = {"f32", "f32", "bf16", "f16", "f64"}},
                                {.name = "a", .most = 100000, .often_least = 0.2},
                                {.name = "b", .most = 10000, .often_least = 0.2},
                                {.name = "c", .most = 1000000},
                                {.name = "dims", .words = {"0", "1", "2", "01", "02", "12", "012"}},
                                {.name = "layout", .words = {"plain", "rows", "planes", "transposed", "reversed"}}},
                 .load =
                     [](const RandomShape& s) {
                       const DType dtype = dtype_named(s.word("dtype"));
                       const double n = static_cast<double>(s.number("a") * s.number("b")) * static_cast<double>(s.number("c") + 3);
                       // Here, at the peer and for the check; the model takes 30 ns an element.
                       return Load{(3.0 * bits(dtype) / 8 + 8) * n, 300 * n};
                     },
                 .prepare = random_of});
}

void register_reduce(Rows& rows) {
  for (const Reduced& r : kReduced)
    for (const Shape& shape : kShapes)
      for (DType dtype : {DType::f32, DType::bf16}) {
        if (dtype != DType::f32 && (std::string_view(r.name) != "sum" || shape.rows * shape.columns < 1 << 24)) continue;
        rows.push_back({.name = fmt::format("{}/{}/{}", r.name, name(dtype), shape.name),
                        // What the bandwidth peer reads, too: the plans state partial results besides.
                        .bytes = r.bytes(shape, dtype),
                        .reads_only = true,
                        .in_quick = std::string_view(r.name) == "sum" && dtype == DType::f32 && shape.rows == 1,
                        .prepare = [r, shape, dtype](const Device& device) { return work_of(device, r, shape, dtype); }});
      }
}

}  // namespace clutch::bench
