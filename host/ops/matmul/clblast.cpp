// SPDX-License-Identifier: Apache-2.0
// Products by CLBlast, which is loaded at first use.
#include "ops/matmul/clblast.hpp"

#include <clutch/error.hpp>

#include "ops/matmul_plan.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#ifdef CLUTCH_HAS_CLBLAST
#define CL_TARGET_OPENCL_VERSION 300
#include <clblast_c.h>

#include "support/shared_library.hpp"
#endif

#include <fmt/format.h>

#include <array>

namespace clutch { inline namespace v0 { namespace detail {

#ifdef CLUTCH_HAS_CLBLAST
namespace {

struct Library : SharedLibrary {
  decltype(&CLBlastSgemm) sgemm = nullptr;
  decltype(&CLBlastDgemm) dgemm = nullptr;

  Library() : SharedLibrary("CLBlast", "libclblast.so.1") {
    find(sgemm, "CLBlastSgemm");
    find(dgemm, "CLBlastDgemm");
  }
};
const Library& library() {
  static const Library found;
  return found;
}

/// The two ways to see a matrix, the last two dims of a tensor, as row-major BLAS does: rows, or columns, have unit stride and do not overlap.
bool lies_by_rows(const Tensor& t) {
  const std::int64_t rows = t.sizes()[t.rank() - 2], columns = t.sizes()[t.rank() - 1], row = t.strides()[t.rank() - 2], column = t.strides()[t.rank() - 1];
  return (column == 1 || columns == 1) && (row >= columns || rows == 1);
}
bool lies_by_columns(const Tensor& t) { return lies_by_rows(t.mT()); }

/// Matrices in terms of row-major BLAS, without their address.
struct Matrix {
  std::size_t lead, batch, element;
  bool transposed;

  explicit Matrix(const Tensor& t)
      : batch(static_cast<std::size_t>(t.strides()[0])), element(static_cast<std::size_t>(bits(t.dtype()) / 8)), transposed(!lies_by_rows(t)) {
    const std::int64_t rows = t.sizes()[1], columns = t.sizes()[2], row = t.strides()[1], column = t.strides()[2];
    lead = static_cast<std::size_t>(std::max<std::int64_t>(transposed ? (columns == 1 ? rows : column) : (rows == 1 ? columns : row), 1));
  }
  std::size_t at(const Encoder::Place& place, std::size_t i) const { return place.offset / element + i * batch; }
  CLBlastTranspose turn() const { return transposed ? CLBlastTransposeYes : CLBlastTransposeNo; }
};

}  // namespace

std::string clblast_refuses() { return library().why_not(); }

std::string clblast_refuses(const Tensor& t, std::string_view what) {
  if (!lies_by_rows(t) && !lies_by_columns(t)) return fmt::format("{} must be row-major or column-major, got strides {}", what, to_string(t.strides()));
  // Blocks of the allocator begin at whole elements of every dtype, so byte_offset() alone decides.
  const auto element = static_cast<std::size_t>(bits(t.dtype()) / 8);
  return t.byte_offset() % element == 0 ? "" : fmt::format("{} must begin at a whole element, got byte {}", what, t.byte_offset());
}

void clblast_gemm(const Tensor& c, const Tensor& a, const Tensor& b, double alpha, double beta, bool reads_c, const Stream& stream, const char* op) {
  // A transposed result is computed as the product of the transposes.
  if (c.strides()[2] != 1 && c.sizes()[2] > 1) return clblast_gemm(c.mT(), b.mT(), a.mT(), alpha, beta, reads_c, stream, op);
  auto check = [&](const Tensor& t, std::string_view what) {
    if (std::string why = clblast_refuses(t, what); !why.empty())
      throw Error(ErrorCode::not_supported, op, fmt::format("implementation {} refuses: {}", kClblast, why));
  };
  check(c, "the result"), check(a, "a"), check(b, "b");
  const Matrix of_c(c), of_a(a), of_b(b);
  if (of_c.transposed)
    throw Error(ErrorCode::not_supported, op,
                fmt::format("implementation clblast refuses: the result must be row-major, got strides {}", to_string(c.strides())));
  const auto m = static_cast<std::size_t>(c.sizes()[1]), n = static_cast<std::size_t>(c.sizes()[2]), k = static_cast<std::size_t>(a.sizes()[2]),
             batch = static_cast<std::size_t>(c.sizes()[0]);
  if (k == 0) throw Error(ErrorCode::not_supported, op, "implementation clblast refuses: k must be at least 1, got 0");
  const bool wide = c.dtype() == DType::f64;
  auto task = [=](void* given, std::span<const Encoder::Place> places) {
    auto queue = static_cast<cl_command_queue>(given);
    const Encoder::Place &in_a = places[0], &in_b = places[1], &in_c = places.back();
    auto memory = [](const Encoder::Place& place) { return static_cast<cl_mem>(place.mem); };
    auto run = [&](auto* gemm, auto scale, auto keep, std::size_t i) {
      return gemm(CLBlastLayoutRowMajor, of_a.turn(), of_b.turn(), m, n, k, scale, memory(in_a), of_a.at(in_a, i), of_a.lead, memory(in_b), of_b.at(in_b, i),
                  of_b.lead, keep, memory(in_c), of_c.at(in_c, i), of_c.lead, &queue, nullptr);
    };
    for (std::size_t i = 0; i < batch; ++i) {
      const CLBlastStatusCode status =
          wide ? run(library().dgemm, alpha, beta, i) : run(library().sgemm, static_cast<float>(alpha), static_cast<float>(beta), i);
      if (status != CLBlastSuccess) throw Error(ErrorCode::opencl, op, fmt::format("CLBlast: status {}", static_cast<int>(status)));
    }
  };
  Encoder encoder(stream, op);
  std::vector<Tensor> inputs{a, b};
  if (reads_c) inputs.push_back(c);
  encoder.flops(matmul_flops(c.sizes()[1], c.sizes()[2], a.sizes()[2], c.sizes()[0]));
  encoder.opaque(task, inputs, std::span(&c, 1), kClblast);
}
#else
std::string clblast_refuses() { return "the library was built without CLBlast"; }
std::string clblast_refuses(const Tensor&, std::string_view) { return clblast_refuses(); }
void clblast_gemm(const Tensor&, const Tensor&, const Tensor&, double, double, bool, const Stream&, const char* op) {
  throw Error(ErrorCode::not_supported, op, "needs CLBlast, the library has none: it was built without");
}
#endif

}}}  // namespace clutch::v0::detail
