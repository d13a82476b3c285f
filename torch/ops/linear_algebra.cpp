// SPDX-License-Identifier: Apache-2.0
// Eigenpairs. What clutch lacks of dense linear algebra runs on the CPU, by LAPACK.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/eigh.hpp>

namespace torch_clutch {
namespace {

// Nothing waits: what does not converge, or is not finite, is NaN in its matrix's results.
std::tuple<at::Tensor&, at::Tensor&> eigh_out(const at::Tensor& self, c10::string_view uplo, bool vectors, at::Tensor& w, at::Tensor& v) {
  at::native::resize_output(w, self.sizes().slice(0, self.sizes().size() - 1));
  if (vectors) at::native::resize_output(v, self.sizes());
  if (self.numel() == 0) return {w, v};
  const clutch::linalg::EighOptions options{.uplo = uplo == "U" || uplo == "u" ? clutch::linalg::Uplo::upper : clutch::linalg::Uplo::lower};
  const clutch::Tensor a = wrap(self);
  clutch::Dims batch = a.sizes();
  batch.erase(batch.rank() - 1);
  batch.erase(batch.rank() - 1);
  const clutch::TensorOptions counts{.dtype = clutch::DType::i32, .device = a.device()};
  const clutch::linalg::EighStatus status{.info = clutch::empty(batch, counts), .sweeps = clutch::empty(batch, counts)};
  if (vectors)
    clutch::linalg::eigh_out(wrap(w), wrap(v), status, a, options);
  else
    clutch::linalg::eigvalsh_out(wrap(w), status, a, options);
  return {w, v};
}

}  // namespace

void add_linear_algebra(OpTable& table) {
  table.family("linear algebra");
  table.add<"_linalg_eigh.eigenvalues", &eigh_out>("linalg::eigh, linalg::eigvalsh");
}

}  // namespace torch_clutch
