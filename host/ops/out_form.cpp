// SPDX-License-Identifier: Apache-2.0
#include "ops/out_form.hpp"

#include <clutch/ops/copy.hpp>

#include "encode/elementwise.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

void check_out(const Tensor& out, const Dims& sizes, DType dtype, std::string_view what, std::string_view op) {
  if (!out.defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("{} must be defined, got an undefined tensor", what));
  if (!(out.sizes() == sizes))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must have shape {}, got {}", what, to_string(sizes), to_string(out.sizes())));
  if (out.dtype() != dtype) throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be {}, got {}", what, name(dtype), name(out.dtype())));
  check_no_self_overlap(out, op);
}

bool takes_results(std::span<const Asked> asked, std::span<const Tensor* const> inputs) {
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Asked& a = asked[i];
    if (!a.out.defined()) continue;
    if (!a.exists || !(a.out.sizes() == a.sizes) || a.out.dtype() != a.dtype || !a.out.is_contiguous()) return false;
    const Runtime* runtime = &a.out.storage()->runtime();
    for (const Asked& other : asked.subspan(i + 1))
      if (other.out.defined() && may_overlap(a.out, other.out)) return false;
    for (const Tensor* input : inputs)
      if (input->defined() && (&input->storage()->runtime() != runtime || may_overlap(a.out, *input))) return false;
  }
  return true;
}

Tensor result_tensor(const Tensor& out, const Dims& sizes, DType dtype, std::span<const Tensor* const> inputs, const Stream& stream) {
  const Asked asked[] = {{out, sizes, dtype}};
  return out.defined() && takes_results(asked, inputs) ? out : empty(sizes, {.dtype = dtype, .device = stream.device()}, stream);
}

namespace {
bool is_same(const Tensor& a, const Tensor& b) { return a.storage() == b.storage() && a.byte_offset() == b.byte_offset() && a.strides() == b.strides(); }
}  // namespace

void store(std::span<const Stored> results, std::string_view op, const Stream& given) {
  std::vector<const Stored*> wanted;
  for (const Stored& s : results) {
    if (!s.out.defined()) continue;
    if (!s.made.defined()) throw Error(ErrorCode::invalid_argument, op, fmt::format("{} must be undefined: the call has no such result, got a tensor", s.what));
    check_out(s.out, s.made.sizes(), s.made.dtype(), s.what, op);
    const Tensor* both[] = {&s.made, &s.out};
    common_runtime(both, op);
    for (const Stored* other : wanted) check_apart(s.out, other->out, op);
    for (const Stored& other : results)  // a result may be a view of one of the call's inputs
      if (&other != &s && other.made.defined()) check_apart(s.out, other.made, op);
    wanted.push_back(&s);
  }
  for (const Stored* s : wanted)
    if (!is_same(s->out, s->made)) copy_(s->out, s->made, {}, resolve_stream(given, s->made.storage()->runtime(), op));
}

void store(const Tensor& out, const Tensor& made, std::string_view op, const Stream& stream) {
  check_out(out, made.sizes(), made.dtype(), "out", op);
  const Stored one[] = {{out, made, "out"}};
  store(one, op, stream);
}

void store(std::span<const Tensor> outs, std::span<const Tensor> made, std::string_view what, std::string_view op, const Stream& stream) {
  if (outs.size() != made.size())
    throw Error(ErrorCode::invalid_argument, op, fmt::format("there must be {} tensors for {}, got {}", made.size(), what, outs.size()));
  std::vector<Stored> all;
  for (std::size_t i = 0; i < outs.size(); ++i) all.push_back({outs[i], made[i], what});
  store(all, op, stream);
}

}}}  // namespace clutch::v0::detail
