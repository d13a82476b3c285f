// SPDX-License-Identifier: Apache-2.0
#include "cases/reduce.hpp"
#include "harness/rows.hpp"
#include "peers/omp.hpp"
#include "peers/omp_math.hpp"
#include "peers/torch.hpp"

namespace clutch::bench {

void register_reduce(Rows& rows);

namespace {

using cases::ReduceCase;

/// A reduction of a matrix, over its rows, its columns or all of it.
struct Reduced {
  const char* name;
  const char* torch;  ///< over x and dims
  Tensor (*run)(const Tensor& x, const ReduceOptions& options, const Stream& stream);
  double passes;  ///< how often x is read
};
const Reduced kReduced[] = {
    {"sum", "torch.sum(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return sum(x, o, s); }, 1},
    {"amax", "torch.amax(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return amax(x, o, s); }, 1},
    {"norm", "torch.linalg.vector_norm(x, 2, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return norm(x, 2, o, s); }, 1},
    {"var", "torch.var(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return var(x, 1, o, s); }, 2},
    {"logsumexp", "torch.logsumexp(x, dims)", [](const Tensor& x, const ReduceOptions& o, const Stream& s) { return logsumexp(x, o, s); }, 2},
};

struct Shape {
  const char* name;
  std::int64_t rows, columns;
  Dims dims;
  const char* torch_dims;
};
const Shape kShapes[] = {
    {"16777216", 1, 1 << 24, {0, 1}, "(0, 1)"},
    {"65536", 1, 1 << 16, {0, 1}, "(0, 1)"},
    {"1024", 1, 1024, {0, 1}, "(0, 1)"},
    {"rows_16384x1024", 1 << 14, 1024, {1}, "(1,)"},
    {"columns_16384x1024", 1 << 14, 1024, {0}, "(0,)"},
};

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
      double first = out->reshape({-1}).select(0, 0).item();
      if (!std::isfinite(first) || first == 0) return "not finite";
      return {};
    }
    std::vector<std::uint8_t> want = ReduceCase::expected<float>(name == "sum" ? Reduce::sum : Reduce::max, *raw, dims, raw->dtype);
    return out->to_bytes() == want ? "" : "not the bits of the contract's order";
  };
  if (dtype == DType::f32)
    work.peers.push_back({omp::name(), [raw, results = std::make_shared<std::vector<float>>(1 << 14), name = std::string_view(r.name), shape](int reps) {
                            for (int i = 0; i < reps; ++i)
                              omp::reduce_f32(name, results->data(), reinterpret_cast<const float*>(raw->raw.data()), shape.rows, shape.columns,
                                              shape.dims.rank() == 2 ? 2 : static_cast<int>(shape.dims[0]));
                          }});
  if (n >= kTriadFrom) work.peers.push_back(bandwidth_peer(device, "read", r.passes * static_cast<double>(n) * bits(dtype) / 8));
  add_torch_peer(work, device,
                 fmt::format("x = torch.rand({}, {}, device=device).to({}); dims = {}", shape.rows, shape.columns, torch_dtype(dtype), shape.torch_dims),
                 r.torch);
  return work;
}

}  // namespace

void register_reduce(Rows& rows) {
  for (const Reduced& r : kReduced)
    for (const Shape& shape : kShapes)
      for (DType dtype : {DType::f32, DType::bf16}) {
        if (dtype != DType::f32 && (std::string_view(r.name) != "sum" || shape.rows * shape.columns < 1 << 24)) continue;
        double bytes = r.passes * static_cast<double>(shape.rows * shape.columns) * bits(dtype) / 8;
        rows.push_back({.name = fmt::format("{}/{}/{}", r.name, name(dtype), shape.name),
                        .bytes = bytes,
                        .reads_only = true,
                        .in_quick = std::string_view(r.name) == "sum" && dtype == DType::f32 && shape.rows == 1,
                        .prepare = [r, shape, dtype](const Device& device) { return work_of(device, r, shape, dtype); }});
      }
}

}  // namespace clutch::bench
