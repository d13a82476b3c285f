// SPDX-License-Identifier: Apache-2.0
// Products by CLBlast, loaded at first use.
#include "ops/matmul/clblast.hpp"

#include <clutch/error.hpp>

#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#ifdef CLUTCH_HAS_CLBLAST
#define CL_TARGET_OPENCL_VERSION 300
#include <clblast_c.h>

#include "support/shared_library.hpp"
#endif

#include <fmt/format.h>

#include <array>

namespace clutch::inline v0::detail {

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

/// A matrix as row-major BLAS takes it.
struct Matrix {
  cl_mem memory;
  std::size_t offset, lead, batch;
  bool transposed;

  Matrix(const Tensor& t, std::string_view what, const char* op)
      : memory(t.storage()->mem()),
        offset((t.storage()->offset() + t.byte_offset()) / static_cast<std::size_t>(bits(t.dtype()) / 8)),
        batch(static_cast<std::size_t>(t.strides()[0])) {
    const std::int64_t rows = t.sizes()[1], columns = t.sizes()[2], row = t.strides()[1], column = t.strides()[2];
    const bool as_it_lies = (column == 1 || columns == 1) && (row >= columns || rows == 1);
    transposed = !as_it_lies;
    if (transposed && !((row == 1 || rows == 1) && (column >= rows || columns == 1)))
      throw Error(ErrorCode::not_supported, op, fmt::format("CLBlast takes no strides like {}'s", what));
    lead = static_cast<std::size_t>(std::max<std::int64_t>(transposed ? (columns == 1 ? rows : column) : (rows == 1 ? columns : row), 1));
  }
  std::size_t at(std::size_t i) const { return offset + i * batch; }
  CLBlastTranspose turn() const { return transposed ? CLBlastTransposeYes : CLBlastTransposeNo; }
};

}  // namespace

std::string clblast_refuses() { return library().why_not(); }

void clblast_gemm(const Tensor& c, const Tensor& a, const Tensor& b, double alpha, double beta, bool reads_c, const Stream& stream, const char* op) {
  // A result that lies transposed is the product of the transposes.
  if (c.strides()[2] != 1 && c.sizes()[2] > 1) return clblast_gemm(c.mT(), b.mT(), a.mT(), alpha, beta, reads_c, stream, op);
  const Matrix of_c(c, "the result", op), of_a(a, "a", op), of_b(b, "b", op);
  if (of_c.transposed) throw Error(ErrorCode::not_supported, op, "CLBlast takes no strides like the result's");
  const auto m = static_cast<std::size_t>(c.sizes()[1]), n = static_cast<std::size_t>(c.sizes()[2]), k = static_cast<std::size_t>(a.sizes()[2]),
             batch = static_cast<std::size_t>(c.sizes()[0]);
  if (k == 0) throw Error(ErrorCode::not_supported, op, "CLBlast takes no k of 0");
  const bool wide = c.dtype() == DType::f64;
  auto task = [=](void* given) {
    auto queue = static_cast<cl_command_queue>(given);
    for (std::size_t i = 0; i < batch; ++i) {
      const CLBlastStatusCode status =
          wide ? library().dgemm(CLBlastLayoutRowMajor, of_a.turn(), of_b.turn(), m, n, k, alpha, of_a.memory, of_a.at(i), of_a.lead, of_b.memory, of_b.at(i),
                                 of_b.lead, beta, of_c.memory, of_c.at(i), of_c.lead, &queue, nullptr)
               : library().sgemm(CLBlastLayoutRowMajor, of_a.turn(), of_b.turn(), m, n, k, static_cast<float>(alpha), of_a.memory, of_a.at(i), of_a.lead,
                                 of_b.memory, of_b.at(i), of_b.lead, static_cast<float>(beta), of_c.memory, of_c.at(i), of_c.lead, &queue, nullptr);
      if (status != CLBlastSuccess) throw Error(ErrorCode::opencl, op, fmt::format("CLBlast: status {}", static_cast<int>(status)));
    }
  };
  Encoder encoder(stream, op);
  std::vector<Tensor> inputs{a, b};
  if (reads_c) inputs.push_back(c);
  encoder.opaque(task, inputs, std::span(&c, 1));
}
#else
std::string clblast_refuses() { return "the library was built without CLBlast"; }
void clblast_gemm(const Tensor&, const Tensor&, const Tensor&, double, double, bool, const Stream&, const char* op) {
  throw Error(ErrorCode::not_supported, op, "the library was built without CLBlast");
}
#endif

}  // namespace clutch::inline v0::detail
