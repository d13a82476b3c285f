// SPDX-License-Identifier: Apache-2.0
// 2:4 matrices by sparse::matmul. The library `clutch` has what torch.sparse's subclass for the device calls, on values and metadata in clutch's order;
// PyTorch's own ops are on those of CUTLASS.
#include "ops/table.hpp"
#include "ops/traced.hpp"
#include "runtime/block.hpp"

#include <ATen/ATen.h>
#include <clutch/sparse.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace torch_clutch {
namespace {

using clutch::sparse::CutlassLayout;
using clutch::sparse::PruneRule;
using clutch::sparse::SemiStructured;

// The matrices of one block of memory, with what products packed of them. They go when the memory goes, or when PyTorch has counted a write.
struct Kept {
  struct Entry {
    clutch::Tensor values, metadata;
    std::int64_t columns;
    std::uint32_t of_values, of_metadata;  // versions
    SemiStructured matrix;
  };
  std::mutex mutex;
  std::vector<Entry> entries;
};

bool same(const clutch::Tensor& a, const clutch::Tensor& b) {
  return a.storage() == b.storage() && a.byte_offset() == b.byte_offset() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// make()'s matrix, or the one that an earlier call made of these tensors.
template <class Make>
SemiStructured kept(const at::Tensor& values, const at::Tensor& metadata, std::int64_t columns, Make make) {
  Block* block = block_of(values.storage().data_ptr());
  if (block == nullptr || values.is_inference() || metadata.is_inference()) return make();  // PyTorch counts no writes to inference tensors
  const clutch::Tensor first = wrap(values), second = wrap(metadata);
  const std::uint32_t of_values = values._version(), of_metadata = metadata._version();
  std::shared_ptr<Kept> all;
  {
    static std::mutex of_blocks;
    std::lock_guard lock(of_blocks);
    if (block->attached == nullptr) block->attached = std::make_shared<Kept>();
    all = std::static_pointer_cast<Kept>(block->attached);
  }
  std::lock_guard lock(all->mutex);
  std::erase_if(all->entries, [&](const Kept::Entry& e) { return same(e.values, first) && (e.of_values != of_values || e.of_metadata != of_metadata); });
  for (const Kept::Entry& e : all->entries)
    if (same(e.values, first) && same(e.metadata, second) && e.columns == columns) return e.matrix;
  SemiStructured made = make();
  if (clutch::current_stream(first.device()).is_capturing()) return made;  // it is there when the graph has run
  all->entries.push_back({first, second, columns, of_values, of_metadata, made});
  return made;
}

SemiStructured matrix_of(const at::Tensor& values, const at::Tensor& metadata, std::int64_t columns) {
  return kept(values, metadata, columns, [&] { return SemiStructured(wrap(values), wrap(metadata), columns); });
}
SemiStructured from_cutlass(const at::Tensor& values, const at::Tensor& metadata) {
  return kept(values, metadata, 2 * values.size(-1), [&] { return clutch::sparse::from_cutlass({wrap(values), wrap(metadata)}); });
}

clutch::DTypeList result_dtype(std::optional<at::ScalarType> wanted, at::ScalarType given) {
  if (wanted) return need_dtype(*wanted);
  return c10::isIntegralType(given, true) ? clutch::DTypeList(clutch::DType::i32) : clutch::DTypeList(need_dtype(given));
}
// Sums of i8 are i32; torch.mm gives their low bits.
at::Tensor delivered(const clutch::Tensor& made, std::optional<at::ScalarType> wanted, at::ScalarType given) {
  at::Tensor out = unwrap(made);
  return wanted ? out : out.to(given);
}

clutch::nn::Activation activation_of(c10::string_view name) {
  using clutch::nn::Activation;
  for (const auto& [known, activation] :
       {std::pair<c10::string_view, Activation>("none", Activation::none), {"relu", Activation::relu}, {"silu", Activation::silu}})
    if (name == known) return activation;
  TORCH_CHECK(false, "activation must be none, relu or silu, got ", name);
}

void check_product(std::int64_t columns, const at::Tensor& dense, int dimension, const at::Tensor& values) {
  TORCH_CHECK(dense.size(dimension) == columns, "a 2:4 matrix of ", columns, " columns and a dense tensor of shape ", dense.sizes(), " cannot be multiplied");
  TORCH_CHECK(dense.scalar_type() == values.scalar_type(), "expected both operands to have the same dtype, but got: ", values.scalar_type(),
              " != ", dense.scalar_type());
}

// w b.
at::Tensor product(const SemiStructured& w, const at::Tensor& b, std::optional<at::ScalarType> out_dtype) {
  const clutch::Dims sizes = w.sizes();
  if (sizes[0] == 0 || b.size(1) == 0 || sizes[1] == 0) return at::zeros({sizes[0], b.size(1)}, b.options().dtype(out_dtype ? *out_dtype : b.scalar_type()));
  return delivered(clutch::sparse::matmul(w, wrap(b), {.dtype = result_dtype(out_dtype, b.scalar_type())}), out_dtype, b.scalar_type());
}
// activation(x w^T + bias).
at::Tensor linear(const at::Tensor& x, const SemiStructured& w, const std::optional<at::Tensor>& bias, c10::string_view activation,
                  std::optional<at::ScalarType> out_dtype) {
  const clutch::nn::Activation applied = activation_of(activation);
  const clutch::Dims sizes = w.sizes();
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = sizes[0];
  const bool has_bias = bias.has_value() && bias->defined();
  if (has_bias) TORCH_CHECK(bias->dim() == 1 && bias->size(0) == sizes[0], "bias must be of shape (", sizes[0], "), got ", bias->sizes());
  if (x.numel() == 0 || sizes[0] == 0) {
    at::Tensor out = at::zeros(shape, x.options().dtype(out_dtype ? *out_dtype : x.scalar_type()));
    if (has_bias) out.add_(*bias);
    return applied == clutch::nn::Activation::none ? out : applied == clutch::nn::Activation::relu ? out.relu_() : at::silu_(out);
  }
  if (c10::isIntegralType(x.scalar_type(), true)) {
    TORCH_CHECK(!has_bias && applied == clutch::nn::Activation::none, "products of integers take no bias and no activation");
    return delivered(clutch::sparse::matmul_transposed(wrap(x), w, {.dtype = result_dtype(out_dtype, x.scalar_type())}), out_dtype, x.scalar_type());
  }
  return unwrap(clutch::sparse::linear(wrap(x), w, wrap(bias), {.activation = applied, .dtype = result_dtype(out_dtype, x.scalar_type())}));
}

// What the subclass calls -------------------------------------------------------------------------------------------

template <class F>
auto on_device_of(const at::Tensor& tensor, F f) {
  const CurrentDevice current(tensor.device().index());
  return translated(f);
}

std::tuple<at::Tensor, at::Tensor> compress(const at::Tensor& dense) {
  return on_device_of(dense, [&] {
    const SemiStructured made = clutch::sparse::compress(wrap(dense), {.strict = false});
    return std::tuple(unwrap(made.values()), unwrap(made.metadata()));
  });
}
at::Tensor decompress(const at::Tensor& values, const at::Tensor& metadata, int64_t columns) {
  return on_device_of(values, [&] { return unwrap(clutch::sparse::decompress(matrix_of(values, metadata, columns))); });
}
// Where values are, zeros among them.
at::Tensor mask_of_matrix(const at::Tensor& values, const at::Tensor& metadata, int64_t columns) {
  return on_device_of(values, [&] { return unwrap(clutch::sparse::mask_of(matrix_of(values, metadata, columns))); });
}
at::Tensor multiply(const at::Tensor& values, const at::Tensor& metadata, int64_t columns, const at::Tensor& dense, std::optional<at::ScalarType> out_dtype) {
  check_product(columns, dense, 0, values);
  return on_device_of(values, [&] { return product(matrix_of(values, metadata, columns), dense, out_dtype); });
}
at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& values, const at::Tensor& metadata, int64_t columns, const std::optional<at::Tensor>& bias,
                        c10::string_view activation) {
  check_product(columns, x, -1, values);
  return on_device_of(x, [&] { return linear(x, matrix_of(values, metadata, columns), bias, activation, std::nullopt); });
}
at::Tensor multiply_scaled(const at::Tensor& values, const at::Tensor& metadata, int64_t columns, const at::Tensor& dense, const at::Tensor& scale,
                           const at::Tensor& scale_of_dense, const std::optional<at::Tensor>& bias, std::optional<at::ScalarType> out_dtype) {
  check_product(columns, dense, 0, values);
  return on_device_of(values, [&] {
    return unwrap(clutch::sparse::scaled_matmul(matrix_of(values, metadata, columns), wrap(dense), wrap(scale), wrap(scale_of_dense),
                                                {.bias = wrap(bias), .dtype = need_dtype(out_dtype.value_or(at::kBFloat16))}));
  });
}
PruneRule rule_of(c10::string_view name) {
  for (const auto& [known, rule] : {std::pair<c10::string_view, PruneRule>("", PruneRule::tile_values),
                                    {"largest_values_greedy", PruneRule::tile_values},
                                    {"largest_abs_values_greedy", PruneRule::tile_magnitudes},
                                    {"causal1122", PruneRule::causal1122},
                                    {"groups", PruneRule::groups}})
    if (name == known) return rule;
  TORCH_CHECK(false, "the algorithm must be largest_values_greedy, largest_abs_values_greedy, causal1122 or groups, got ", name);
}
at::Tensor mask(const at::Tensor& dense, c10::string_view algorithm) {
  return on_device_of(dense, [&] { return unwrap(clutch::sparse::mask_2_4(wrap(dense), {.rule = rule_of(algorithm)})); });
}

// A mask's bits in PyTorch's order, for any shape: blocks of 8 x 8 that go over the edge have zeros there.
at::Tensor bits_of(const at::Tensor& mask) {
  return on_device_of(mask, [&] {
    const at::Tensor whole = at::constant_pad_nd(mask, {0, -mask.size(1) & 7, 0, -mask.size(0) & 7});
    return unwrap(clutch::sparse::to_bitmask(wrap(whole)));
  });
}
// PyTorch transposes a matrix by transposing its mask's tensor of blocks, each of which stays as it was.
at::Tensor mask_of_bits(const at::Tensor& bits, int64_t rows, int64_t columns) {
  TORCH_CHECK(bits.scalar_type() == at::kByte && bits.dim() == 3 && bits.size(0) == (rows + 7) / 8 && bits.size(1) == (columns + 7) / 8 && bits.size(2) == 8,
              "the masks must be uint8 of shape (", (rows + 7) / 8, ", ", (columns + 7) / 8, ", 8), got ", bits.sizes());
  return on_device_of(bits, [&] {
    const bool turned = !bits.is_contiguous();
    const at::Tensor made = unwrap(clutch::sparse::from_bitmask(wrap(turned ? bits.transpose(0, 1).contiguous() : bits)));
    return (turned ? made.t() : made).narrow(0, 0, rows).narrow(1, 0, columns);
  });
}

// PyTorch's ops -----------------------------------------------------------------------------------------------------

void check_cutlass(const at::Tensor& numbers) {
  if (numbers.scalar_type() == at::kFloat) refuse("CUTLASS's order of float32, which is 1:2; torch.sparse.to_sparse_semi_structured() takes 2:4 ones");
}
/// The matrix, which must fit dimension `dimension` of `dense`.
SemiStructured operand(const at::Tensor& values, const at::Tensor& metadata, const at::Tensor& dense, int dimension) {
  TORCH_CHECK(values.dim() == 2 && metadata.dim() == 2, "values and metadata of a 2:4 matrix must be of two dimensions");
  check_cutlass(values);
  TORCH_CHECK(dimension < 0 || dense.dim() == 2, "the dense matrix must be of two dimensions, got ", dense.dim());
  check_product(2 * values.size(1), dense, dimension, values);
  return from_cutlass(values, metadata);
}
CutlassLayout cutlass_of(const at::Tensor& dense) {
  check_cutlass(dense);
  return clutch::sparse::to_cutlass(clutch::sparse::compress(wrap(dense), {.strict = false}));
}
std::tuple<at::Tensor, at::Tensor> to_semi_structured(const at::Tensor& dense) {
  const CutlassLayout made = cutlass_of(dense);
  return {unwrap(made.values), unwrap(made.metadata)};
}

at::Tensor mm(const at::Tensor& values, const at::Tensor& metadata, const at::Tensor& dense, std::optional<at::ScalarType> out_dtype) {
  return product(operand(values, metadata, dense, 0), dense, out_dtype);
}
// beta times the column of biases + alpha times the product.
at::Tensor addmm(const at::Tensor& bias, const at::Tensor& values, const at::Tensor& metadata, const at::Tensor& dense, const at::Scalar& alpha,
                 const at::Scalar& beta, std::optional<at::ScalarType> out_dtype) {
  const SemiStructured w = operand(values, metadata, dense, 0);
  TORCH_CHECK(bias.dim() == 1 && bias.size(0) == values.size(0), "the input must be of shape (", values.size(0), "), got ", bias.sizes());
  if (alpha.toDouble() == 1 && beta.toDouble() == 1 && !c10::isIntegralType(dense.scalar_type(), true))
    return linear(dense.t(), w, bias, "none", out_dtype).t();
  return at::add(product(w, dense, out_dtype).mul(alpha), bias.unsqueeze(1), beta);
}
at::Tensor linear_op(const at::Tensor& input, const at::Tensor& values, const at::Tensor& metadata, const std::optional<at::Tensor>& bias,
                     std::optional<c10::string_view> activation, std::optional<at::ScalarType> out_dtype) {
  return linear(input, operand(values, metadata, input, -1), bias, activation.value_or("none"), out_dtype);
}

// A mask (m, k) as a matrix of what its places are: 1 to 4 in each quad.
SemiStructured places_of(const clutch::Tensor& mask) {
  const clutch::Tensor places = clutch::empty(mask.sizes(), {.dtype = clutch::DType::i8, .device = mask.device()});
  apply(places, {mask}, [](const In& in) {
    return clutch::select(in.x[0], clutch::cast(clutch::floor_mod(clutch::position(1), 4) + 1, clutch::DType::i8), clutch::cast(Expr(0), clutch::DType::i8));
  });
  return clutch::sparse::compress(places);
}
// What of `dense` is at the places of a mask, zero where a quad has fewer, and their metadata. Of values alone zeros would count as places that are free.
CutlassLayout packed(const at::Tensor& dense, const SemiStructured& places) {
  const at::Tensor of_quads = unwrap(places.values()).view({dense.size(0), -1, 2});
  const at::Tensor at_places = at::gather(dense.contiguous().view({dense.size(0), -1, 4}), 2, of_quads.sub(1).clamp_min_(0).to(at::kLong));
  const at::Tensor values = at::where(of_quads.ne(0), at_places, at::zeros({}, dense.options())).view({dense.size(0), -1});
  return clutch::sparse::to_cutlass(SemiStructured(wrap(values), places.metadata(), dense.size(1)));
}
void check_tiles(const at::Tensor& dense) {
  TORCH_CHECK(dense.dim() == 2 && dense.size(0) % 64 == 0 && dense.size(1) % 64 == 0 && dense.numel() > 0,
              "the matrix must be of two dimensions, multiples of 64, got ", dense.sizes());
  TORCH_CHECK(dense.scalar_type() == at::kHalf || dense.scalar_type() == at::kBFloat16, "the matrix must be float16 or bfloat16, got ", dense.scalar_type());
}
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> tile(const at::Tensor& dense, c10::string_view algorithm, bool use_cutlass) {
  check_tiles(dense);
  if (!use_cutlass) refuse("the order of cuSPARSELt");
  const PruneRule rule = rule_of(algorithm);
  TORCH_CHECK(rule != PruneRule::groups, "the transpose of a matrix pruned by groups need not be 2:4");
  const clutch::Tensor mask = clutch::sparse::mask_2_4(wrap(dense), {.rule = rule});
  const CutlassLayout rows = packed(dense, places_of(mask)), columns = packed(dense.t(), places_of(mask.transpose(0, 1).contiguous()));
  return {unwrap(rows.values), unwrap(rows.metadata), unwrap(columns.values), unwrap(columns.metadata), unwrap(clutch::sparse::to_bitmask(mask))};
}
std::tuple<at::Tensor, at::Tensor> apply_mask(const at::Tensor& dense, const at::Tensor& bits) {
  check_tiles(dense);
  const clutch::Tensor mask = wrap(mask_of_bits(bits, dense.size(0), dense.size(1)).contiguous());
  const CutlassLayout rows = packed(dense, places_of(mask)), columns = packed(dense.t(), places_of(mask.transpose(0, 1).contiguous()));
  return {unwrap(rows.values), unwrap(columns.values)};
}
at::Tensor apply_mask_dense(const at::Tensor& dense, const at::Tensor& bits) {
  check_tiles(dense);
  return unwrap(clutch::sparse::apply_mask(wrap(dense), wrap(mask_of_bits(bits, dense.size(0), dense.size(1)))));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("2:4 matrices");
  table.add<"_to_sparse_semi_structured", &to_semi_structured>("sparse::compress, sparse::to_cutlass");
  table.add<"_sparse_semi_structured_mm", &mm>("sparse::matmul");
  table.add<"_sparse_semi_structured_addmm", &addmm>("sparse::linear");
  table.add<"_sparse_semi_structured_linear", &linear_op>("sparse::linear");
  table.add<"_sparse_semi_structured_tile", &tile>("sparse::mask_2_4, sparse::compress");
  table.add<"_sparse_semi_structured_apply", &apply_mask>("sparse::from_bitmask, sparse::compress");
  table.add<"_sparse_semi_structured_apply_dense", &apply_mask_dense>("sparse::apply_mask");
}

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def("semi_structured_compress(Tensor dense) -> (Tensor, Tensor)");
  library.def("semi_structured_decompress(Tensor values, Tensor metadata, int columns) -> Tensor");
  library.def("semi_structured_mask_of(Tensor values, Tensor metadata, int columns) -> Tensor");
  library.def("semi_structured_mm(Tensor values, Tensor metadata, int columns, Tensor dense, ScalarType? out_dtype=None) -> Tensor");
  library.def("semi_structured_linear(Tensor x, Tensor values, Tensor metadata, int columns, Tensor? bias, str activation=\"none\") -> Tensor");
  library.def(
      "semi_structured_scaled_mm(Tensor values, Tensor metadata, int columns, Tensor dense, Tensor scale, Tensor scale_of_dense, Tensor? bias, "
      "ScalarType? out_dtype) -> Tensor");
  library.def("semi_structured_mask(Tensor dense, str algorithm) -> Tensor");
  library.def("semi_structured_bits(Tensor mask) -> Tensor");
  library.def("semi_structured_mask_of_bits(Tensor bits, int rows, int columns) -> Tensor");
}
TORCH_LIBRARY_IMPL(clutch, PrivateUse1, library) {
  library.impl("semi_structured_compress", &compress);
  library.impl("semi_structured_decompress", &decompress);
  library.impl("semi_structured_mask_of", &mask_of_matrix);
  library.impl("semi_structured_mm", &multiply);
  library.impl("semi_structured_linear", &apply_linear);
  library.impl("semi_structured_scaled_mm", &multiply_scaled);
  library.impl("semi_structured_mask", &mask);
  library.impl("semi_structured_bits", &bits_of);
  library.impl("semi_structured_mask_of_bits", &mask_of_bits);
}

}  // namespace torch_clutch
