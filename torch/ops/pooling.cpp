// SPDX-License-Identifier: Apache-2.0
// Pooling over two dimensions, each pass one launch: an element reads the numbers of its window, and a gradient those of the windows that it is in.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/native/Pool.h>
#include <ATen/native/Resize.h>

#include <array>
#include <limits>

namespace torch_clutch {
namespace {

using clutch::position;
using clutch::select;

constexpr int64_t kMostTaps = 64;  // numbers of a window: each is a few operations of the kernel

/// Windows along one dimension: window o has the elements stride o - pad + dilation i for i below `size`.
struct Windows {
  int64_t size, stride, pad, dilation;
  int64_t input, output;
};
using Plane = std::array<Windows, 2>;

int64_t of(at::IntArrayRef given, size_t d) { return given.size() == 1 ? given[0] : given[d]; }

// What is wrong is left to the CPU's kernel, which says so.
Plane windows(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation, bool ceil) {
  auto counts = [](at::IntArrayRef given) { return given.size() == 1 || given.size() == 2; };
  if (self.dim() < 3 || self.dim() > 4 || self.numel() == 0 || !counts(kernel) || !(stride.empty() || counts(stride)) || !counts(padding) || !counts(dilation))
    refuse("pooling of such arguments");
  if (!at::isFloatingType(self.scalar_type())) refuse("pooling of ", self.scalar_type());
  Plane plane;
  for (size_t d = 0; d < 2; ++d) {
    Windows& w = plane[d];
    w = {.size = of(kernel, d),
         .stride = of(stride.empty() ? kernel : stride, d),
         .pad = of(padding, d),
         .dilation = of(dilation, d),
         .input = self.size(-2 + static_cast<int64_t>(d)),
         .output = 0};
    if (w.size < 1 || w.stride < 1 || w.dilation < 1 || w.pad < 0 || 2 * w.pad > (w.size - 1) * w.dilation + 1) refuse("pooling of such arguments");
    w.output = at::native::pooling_output_shape(w.input, w.size, w.pad, w.stride, w.dilation, ceil);
    if (w.output < 1) refuse("pooling of such arguments");
  }
  if (plane[0].size * plane[1].size > kMostTaps) refuse("windows of more than ", kMostTaps, " numbers");
  return plane;
}
at::DimVector shape_of(const at::Tensor& self, int64_t rows, int64_t columns) {
  at::DimVector shape(self.sizes());
  shape[shape.size() - 2] = rows, shape[shape.size() - 1] = columns;
  return shape;
}
/// (planes, rows, columns) of a contiguous tensor.
at::Tensor planes(const at::Tensor& t) { return t.view({-1, t.size(-2), t.size(-1)}); }
clutch::Tensor flat(const at::Tensor& t) { return wrap(t.contiguous().view({-1})); }

/// Runs `f`, given nothing, at each place of (planes, rows, columns); outputs must be contiguous.
template <std::size_t kOutputs, class F>
void at_each_place(const std::array<at::Tensor, kOutputs>& outputs, F f) {
  std::array<clutch::Tensor, kOutputs> out;
  for (std::size_t i = 0; i < kOutputs; ++i) out[i] = wrap(planes(outputs[i]));
  const std::span<const clutch::Tensor> first(out.data(), 1);
  const std::array<clutch::DType, 1> dtypes{clutch::traced_dtypes(first)[0]};
  clutch::map_out(out, clutch::trace(f, dtypes), first);
}
/// A result of the caller's: into it, or into a contiguous one that is copied there.
at::Tensor fresh(at::Tensor& out, at::IntArrayRef shape) {
  at::native::resize_output(out, shape);
  return out.is_contiguous() ? out : at::empty(shape, out.options());
}
void finish(at::Tensor& out, const at::Tensor& made) {
  if (!out.is_same(made)) out.copy_(made);
}

/// A tap of this place's window along one dimension: the element, and whether there is one.
struct Tap {
  Expr at, there;
};
Tap tap(const Windows& w, int dim, int64_t i) {
  const Expr at = position(dim) * w.stride + (i * w.dilation - w.pad);
  return {at, (at >= 0) & (at < w.input)};
}
/// The window in which this place is tap i.
Tap window_of(const Windows& w, int dim, int64_t i) {
  const Expr from = position(dim) + (w.pad - i * w.dilation), at = clutch::floor_div(from, w.stride);
  return {at, (clutch::floor_mod(from, w.stride) == 0) & (at >= 0) & (at < w.output)};
}
/// f(row, column) for each pair of taps.
template <class Taps, class F>
void each_tap(const Plane& plane, Taps taps, F f) {
  for (int64_t i = 0; i < plane[0].size; ++i)
    for (int64_t j = 0; j < plane[1].size; ++j) f(taps(plane[0], 1, i), taps(plane[1], 2, j));
}
Expr element(const Plane& plane, const Expr& row, const Expr& column) { return row * plane[1].input + column; }

std::tuple<at::Tensor&, at::Tensor&> max_out(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                                             at::IntArrayRef dilation, bool ceil, at::Tensor& out, at::Tensor& indices) {
  const Plane plane = windows(self, kernel, stride, padding, dilation, ceil);
  const at::DimVector shape = shape_of(self, plane[0].output, plane[1].output);
  const at::Tensor values = fresh(out, shape), places = fresh(indices, shape);
  const clutch::Tensor all = flat(self);
  at_each_place<2>({values, places}, [&](Expr) {
    const clutch::Captured x = clutch::captured(all);
    const Expr begin = position(0) * (plane[0].input * plane[1].input);
    Expr best = -std::numeric_limits<double>::infinity(), place = -1;
    bool first = true;
    each_tap(plane, &tap, [&](const Tap& row, const Tap& column) {
      const Expr there = row.there & column.there, at = element(plane, row.at, column.at), value = x[begin + select(there, at, 0)];
      const Expr takes = there & (first ? Expr(true) : (value > best) | clutch::isnan(value) | (place < 0));
      best = select(takes, value, first ? select(there, value, -std::numeric_limits<double>::infinity()) : best);
      place = select(takes, at, first ? select(there, at, -1) : place);
      first = false;
    });
    return std::array<Expr, 2>{best, place};
  });
  finish(out, values), finish(indices, places);
  return {out, indices};
}
at::Tensor& max_backward_out(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                             at::IntArrayRef dilation, bool ceil, const at::Tensor& indices, at::Tensor& out) {
  const Plane plane = windows(self, kernel, stride, padding, dilation, ceil);
  const at::Tensor made = fresh(out, self.sizes());
  const clutch::Tensor of_windows = flat(grad), places = flat(indices);
  at_each_place<1>({made}, [&](Expr) {
    const clutch::Captured g = clutch::captured(of_windows), place = clutch::captured(places);
    const Expr begin = position(0) * (plane[0].output * plane[1].output), mine = element(plane, position(1), position(2));
    Expr sum = 0.0;
    each_tap(plane, &window_of, [&](const Tap& row, const Tap& column) {
      const Expr there = row.there & column.there, at = begin + select(there, row.at * plane[1].output + column.at, 0);
      sum = sum + select(there & (place[at] == mine), g[at], 0.0);
    });
    return sum;
  });
  finish(out, made);
  return out;
}

/// By what the sum of window (row, column) is divided.
Expr divisor(const Plane& plane, const Expr& row, const Expr& column, bool count_pad, std::optional<int64_t> given) {
  if (given) return Expr(*given);
  const Expr at[] = {row, column};
  Expr numbers = 1;
  for (size_t d = 0; d < 2; ++d) {
    const Windows& w = plane[d];
    const Expr begin = at[d] * w.stride - w.pad, end = clutch::min(begin + w.size, w.input + w.pad);
    numbers = numbers * (count_pad ? end - begin : clutch::min(end, w.input) - clutch::max(begin, 0));
  }
  return numbers;
}
void check_divisor(std::optional<int64_t> given) {
  if (given && *given == 0) refuse("a divisor of zero");
}

at::Tensor& average_out(const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding, bool ceil, bool count_pad,
                        std::optional<int64_t> given, at::Tensor& out) {
  check_divisor(given);
  const Plane plane = windows(self, kernel, stride, padding, {1}, ceil);
  const at::Tensor made = fresh(out, shape_of(self, plane[0].output, plane[1].output));
  const clutch::Tensor all = flat(self);
  at_each_place<1>({made}, [&](Expr) {
    const clutch::Captured x = clutch::captured(all);
    const Expr begin = position(0) * (plane[0].input * plane[1].input);
    Expr sum = 0.0;
    each_tap(plane, &tap, [&](const Tap& row, const Tap& column) {
      const Expr there = row.there & column.there;
      sum = sum + select(there, x[begin + select(there, element(plane, row.at, column.at), 0)], 0.0);
    });
    return sum / clutch::cast(divisor(plane, position(1), position(2), count_pad, given), sum.dtype());
  });
  finish(out, made);
  return out;
}
at::Tensor& average_backward_out(const at::Tensor& grad, const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef stride, at::IntArrayRef padding,
                                 bool ceil, bool count_pad, std::optional<int64_t> given, at::Tensor& out) {
  check_divisor(given);
  const Plane plane = windows(self, kernel, stride, padding, {1}, ceil);
  const at::Tensor made = fresh(out, self.sizes());
  const clutch::Tensor of_windows = flat(grad);
  at_each_place<1>({made}, [&](Expr) {
    const clutch::Captured g = clutch::captured(of_windows);
    const Expr begin = position(0) * (plane[0].output * plane[1].output);
    Expr sum = 0.0;
    each_tap(plane, &window_of, [&](const Tap& row, const Tap& column) {
      const Expr there = row.there & column.there, value = g[begin + select(there, row.at * plane[1].output + column.at, 0)];
      sum = sum + select(there, value / clutch::cast(divisor(plane, row.at, column.at, count_pad, given), value.dtype()), 0.0);
    });
    return sum;
  });
  finish(out, made);
  return out;
}

// Windows of one size alone: others are the CPU's.
void check_equal(const at::Tensor& self, int64_t rows, int64_t columns) {
  if (self.dim() < 3 || self.dim() > 4 || self.numel() == 0 || rows < 1 || columns < 1 || self.size(-2) % rows != 0 || self.size(-1) % columns != 0)
    refuse("windows of several sizes");
}
at::Tensor adaptive(const at::Tensor& self, c10::SymIntArrayRef size) {
  TORCH_CHECK(size.size() == 2, "adaptive_avg_pool2d: output_size must be 2");
  const int64_t rows = size[0].expect_int(), columns = size[1].expect_int();
  check_equal(self, rows, columns);
  at::DimVector split(self.sizes().slice(0, self.sizes().size() - 2));
  const auto outer = static_cast<int64_t>(split.size());
  for (int64_t part : {rows, self.size(-2) / rows, columns, self.size(-1) / columns}) split.push_back(part);
  return self.reshape(split).mean({outer + 1, outer + 3});
}
at::Tensor adaptive_backward(const at::Tensor& grad, const at::Tensor& self) {
  check_equal(self, grad.size(-2), grad.size(-1));
  const int64_t high = self.size(-2) / grad.size(-2), wide = self.size(-1) / grad.size(-1);
  at::DimVector split(grad.sizes().slice(0, grad.sizes().size() - 2));
  for (int64_t part : {grad.size(-2), high, grad.size(-1), wide}) split.push_back(part);
  return grad.div(high * wide).unsqueeze(-1).unsqueeze(-3).expand(split).reshape(self.sizes());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  OpTable table(library);
  table.family("pooling");
  table.add<"max_pool2d_with_indices.out", &max_out>("map with position() and captured()");
  table.add<"max_pool2d_with_indices_backward.grad_input", &max_backward_out>("map with position() and captured()");
  table.add<"avg_pool2d.out", &average_out>("map with position() and captured()");
  table.add<"avg_pool2d_backward.grad_input", &average_backward_out>("map with position() and captured()");
  table.add<"_adaptive_avg_pool2d", &adaptive>("mean");
  table.add<"_adaptive_avg_pool2d_backward", &adaptive_backward>("copy_");
}

}  // namespace torch_clutch
