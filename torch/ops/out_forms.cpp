// SPDX-License-Identifier: Apache-2.0
// out= of ops whose kernels make their results: made as without it, and copied.
#include "ops/table.hpp"
#include "ops/traced.hpp"

namespace torch_clutch {
namespace {

at::Tensor& deliver_as_is(const at::Tensor& made, at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == made.scalar_type(), "Expected out tensor to have dtype ", made.scalar_type(), " but got ", out.scalar_type());
  return deliver(made, out);
}

at::Tensor& max_out(const at::Tensor& self, at::Tensor& out) { return deliver_as_is(self.max(), out); }
at::Tensor& min_out(const at::Tensor& self, at::Tensor& out) { return deliver_as_is(self.min(), out); }
at::Tensor& angle_out(const at::Tensor& self, at::Tensor& out) { return deliver(self.angle(), out); }
at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) { return deliver_as_is(self.take(index), out); }
at::Tensor& mvlgamma_out(const at::Tensor& self, int64_t p, at::Tensor& out) { return deliver(self.mvlgamma(p), out); }
at::Tensor& narrow_copy_out(const at::Tensor& self, int64_t dim, c10::SymInt start, c10::SymInt length, at::Tensor& out) {
  return deliver_as_is(self.narrow(dim, start.expect_int(), length.expect_int()), out);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("results of the caller's");
  table.add<"max.unary_out", &max_out>("amax, copy_");
  table.add<"min.unary_out", &min_out>("amin, copy_");
  table.add<"angle.out", &angle_out>("map of select, copy_");
  table.add<"take.out", &take_out>("index, copy_");
  table.add<"mvlgamma.out", &mvlgamma_out>("map, copy_");
  table.add<"narrow_copy.out", &narrow_copy_out>("copy_");
}

}  // namespace torch_clutch
