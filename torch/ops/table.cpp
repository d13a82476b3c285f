// SPDX-License-Identifier: Apache-2.0
#include "ops/table.hpp"

namespace torch_clutch {

std::vector<OpRow>& OpTable::rows() {
  static auto* all = new std::vector<OpRow>;
  return *all;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  add_views(table);
  add_copies(table);
  add_factories(table);
  add_arithmetic(table);
  add_comparisons(table);
  add_functions(table);
  add_activations(table);
  add_reductions(table);
  add_rows(table);
  add_batch_norms(table);
  add_products(table);
  add_indexing(table);
  add_advanced_indexing(table);
  add_scatters(table);
  add_sorting(table);
  add_pads(table);
  add_losses(table);
  add_cross_entropy(table);
  add_random(table);
  add_attention(table);
  add_encoders(table);
  add_linear_algebra(table);
  add_recurrent(table);
  add_optimizers(table);
  add_convolutions(table);
}

// What no kernel is registered for.
TORCH_LIBRARY_IMPL(_, PrivateUse1, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&cpu_fallback>()); }

// Tensors with a lazy conjugate or minus are copied by _copy_from, which must see them: their own fallbacks would clone them by a copy, without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, library) { library.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

}  // namespace torch_clutch
