// SPDX-License-Identifier: Apache-2.0
#pragma once
// A product between the selection of its kernel (run.cpp) and its launches (launch.cpp).
#include "ops/matmul/call.hpp"
#include "ops/traced.hpp"

#include <array>

namespace clutch { inline namespace v0 { namespace detail {

/// A tensor with the strides of its matrices' rows and columns and, for each dim of the batch, of the matrices.
struct Strided {
  const Tensor* tensor = nullptr;
  std::int64_t row = 0, column = 0;
  Dims batch;

  Strided() = default;
  Strided(const Tensor& t, const Dims& sizes) : tensor(&t) {
    const Dims strides = broadcast_strides(t, sizes);
    row = strides[sizes.rank() - 2], column = strides[sizes.rank() - 1];
    for (int d = 0; d < sizes.rank() - 2; ++d) batch.push_back(strides[d]);
  }
};

/// Parts into which a size is cut, the last one of which may be smaller.
inline std::int64_t parts_of(std::int64_t size, std::int64_t part) {
  return static_cast<std::int64_t>(matmul_parts(static_cast<std::uint64_t>(size), static_cast<std::uint64_t>(part)));
}

/// The chosen kernel of a product, and the sizes of a launch.
struct ProductForm {
  std::string_view entry;
  bool is_packed, sparse, dot = false, panels = false, by_rows = false, by_words = false, by_tiles = false, by_few = false, by_matrix = false;
  std::int64_t rows, n, k, batch;
  Tiling tiling;
};

/// A call with its operands and its kernel.
struct Product : ProductForm {
  MatmulCall c;
  const Stream& stream;
  const DeviceTraits& traits;
  MatmulProblem p;
  std::vector<Tensor> inputs;   // in the dtypes in which they are traced
  std::vector<Dims> positions;  // strides of the positions that the function reads
  bool complex;
  Tensor a;                       // as the kernel reads it
  Tensor converted;               // b in the compute type, for kernels that need this
  std::vector<Strided> operands;  // out, a, b, inputs
  std::int64_t rank = 1;          // of the batch, with dims joined; a launch takes the innermost dim
  std::array<std::int64_t, 16> size{};
  std::vector<std::int64_t> stride;
  /// The operands that the kernel reads, a and b, of a launch that is made again with another function; else undefined.
  Tensor again_a, again_b;
  SparsePacking again_left;

  Product(MatmulCall call, const Stream& s)
      : c(std::move(call)),
        stream(s),
        traits(c.runtime->traits()),
        p{.function = c.f->empty() ? 0 : c.f->body()->id, .a = c.a.dtype(), .b = matrix_dtype(*c.b), .output = c.output},
        inputs(as_traced(c.inputs, s)),
        complex(is_complex(c.a.dtype())) {
    is_packed = c.b->packed() && c.b->packed()->state()->panels.defined(), sparse = c.sparse != nullptr;
    if (sparse) p.left = MatmulProblem::Left::sparse;
  }

  const Tensor& b() const { return converted.defined() ? converted : memory_of(*c.b); }
  ProductForm& form() { return *this; }
  const ProductForm& form() const { return *this; }
  bool is_again() const { return again_a.defined(); }
  std::int64_t parts() const { return complex ? 2 : 1; }
  DType product() const { return is_byte(p.a) ? DType::i32 : matmul_compute(p); }
  std::int64_t lanes() const { return panel_lanes(traits, p); }
  double flops() const { return matmul_flops(rows, n, k, batch, complex) / (sparse ? 2 : 1); }  ///< of a launch
  std::int64_t batch_stride(std::size_t operand) const { return stride[16 * operand]; }
  bool a_core_each() const { return row_tuning(traits).local == 1; }

  bool note_function();
  void choose_entry();
  void note_matrix_instructions();
  bool gains_by_matrix() const;
  std::string_view matrix_entry() const { return sparse ? "matmul_sparse_matrix" : "matmul_matrix"; }
  bool converts_a() const;
  void lay_out();
  bool fits_lanes() const;
  bool gains_by_lanes() const;
  bool is_narrow_batch() const;
  bool gains_as_f32() const;
  bool gains_by_items() const;
  bool has_few() const;
  MatmulProblem few_problem() const;
  bool gains_by_few() const;
  void choose_tiling();
  void transpose_results();
  void turn_results();

  /// Binds alpha or beta in the type that the kernel takes.
  void number(Encoder& encoder, double v, const char* what) const {
    if (product() == DType::f64) return (void)encoder.value(v, what);
    if (product() == DType::i32) return (void)encoder.value(static_cast<std::int32_t>(v), what);
    encoder.value(static_cast<float>(v), what);
  }
};

/// True if the driver takes matmul_matrix for the product; if not, that is logged once.
bool has_matrix_plan(Product& product);
/// Enqueues the product by the chosen kernel.
void launch(Product& product);

}}}  // namespace clutch::v0::detail
