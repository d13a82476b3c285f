// SPDX-License-Identifier: Apache-2.0
// x[i, j], x[i, j] = y and their like: indices become places in a flat view, which index_select and scatter_reduce read and write. clutch's index() and
// index_put() take the place of gathered() and put() once they are there.
#include "ops/table.hpp"
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/scatter.hpp>

namespace torch_clutch {
namespace {

using Indices = c10::List<std::optional<at::Tensor>>;

at::Tensor numbers(const at::Tensor& like, int64_t count) { return at::arange(count, like.options().dtype(at::kLong)); }

// Of each place the number of the last element that is written there, -1 of others.
at::Tensor last_writer(const at::Tensor& places, int64_t size) {
  at::Tensor last = at::full({size}, -1, places.options().dtype(at::kLong));
  if (places.numel() > 0)
    clutch::scatter_reduce_(wrap(last), 0, wrap(places), wrap(numbers(places, places.numel())), {.reduce = clutch::Reduce::amax, .include_self = true});
  return last;
}

// out = self, but elements of the flat `source` where `last` names one.
void put_last(const at::Tensor& out, const at::Tensor& self, const at::Tensor& last, const at::Tensor& source) {
  if (source.numel() == 0) {
    if (!out.is_same(self)) out.copy_(self);
    return;
  }
  apply(out, {wrap(last), wrap(self)}, [](const In& in) { return clutch::select(in.x[0] >= 0, in.c[0][in.x[0]], in.x[1]); }, {}, {wrap(source)});
}

void check_scatter(const at::Tensor& self, int64_t& dim, const at::Tensor& index) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.numel() == 0 || index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "scatter(): Expected dtype int32 or int64 for index");
}
// The number of the last element of `index` that names a place of self, in the shape of self; elements are numbered in row-major order.
at::Tensor last_of_scatter(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const at::Tensor last = at::full(self.sizes(), -1, index.options().dtype(at::kLong));
  clutch::scatter_reduce_(wrap(last), static_cast<int>(dim), wrap(index), wrap(numbers(index, index.numel()).view(index.sizes())),
                          {.reduce = clutch::Reduce::amax, .include_self = true});
  return last;
}
at::Tensor& scatter_src_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, at::Tensor& out) {
  check_scatter(self, dim, index);
  TORCH_CHECK(index.numel() == 0 || self.scalar_type() == source.scalar_type(), "scatter(): Expected self.dtype to be equal to src.dtype");
  at::native::resize_output(out, self.sizes());
  if (index.numel() == 0 || self.numel() == 0) return out.is_same(self) ? out : out.copy_(self);
  if (self.dim() == 0) return out.copy_(source.reshape({-1})[0]);
  if (index.dim() == 0) return torch_clutch::scatter_src_out(self, dim, index.reshape({1}), source.reshape({1}), out);
  TORCH_CHECK(index.dim() == self.dim() && source.dim() == self.dim(), "Index tensor must have the same number of dimensions as self tensor");
  at::Tensor written = source;
  for (int64_t d = 0; d < index.dim(); ++d) {
    TORCH_CHECK(index.size(d) <= source.size(d) && (d == dim || index.size(d) <= self.size(d)), "Expected index ", index.sizes(), " to be no larger than self ",
                self.sizes(), " apart from dimension ", dim, " and to be no larger than src ", source.sizes());
    written = written.narrow(d, 0, index.size(d));
  }
  put_last(out, self, last_of_scatter(self, dim, index), written.reshape({-1}));
  return out;
}
at::Tensor& scatter_value_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value, at::Tensor& out) {
  return torch_clutch::scatter_src_out(self, dim, index, at::full({}, value, self.options()).expand(index.sizes()), out);
}

// ---- indices of several dimensions

// Boolean masks as the indices of their true elements; others as i64 ones.
std::vector<at::Tensor> expanded(const at::Tensor& self, const Indices& indices) {
  std::vector<at::Tensor> made;
  for (const std::optional<at::Tensor>& given : indices) {
    if (!given.has_value() || !given->defined()) {
      made.emplace_back();
      continue;
    }
    const at::Tensor index = given->to(self.device());
    if (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte) {
      for (int64_t d = 0; d < index.dim(); ++d) {
        const auto of = static_cast<int64_t>(made.size()) + d;
        TORCH_CHECK_INDEX(of < self.dim() && index.size(d) == self.size(of), "The shape of the mask ", index.sizes(), " at index ", d,
                          " does not match the shape of the indexed tensor ", self.sizes(), " at index ", of);
      }
      for (const at::Tensor& column : index.nonzero().unbind(1)) made.push_back(column);
    } else {
      TORCH_CHECK_INDEX(at::isIntegralType(index.scalar_type(), false), "tensors used as indices must be long, int, byte or bool tensors");
      made.push_back(index.to(at::kLong));
    }
  }
  TORCH_CHECK_INDEX(static_cast<int64_t>(made.size()) <= self.dim(), "too many indices for tensor of dimension ", self.dim(), " (got ", made.size(), ")");
  return made;
}

// self with its indexed dimensions first and joined into one, of which `places` are wanted.
struct Indexed {
  at::DimVector order;        // dimensions of self: indexed ones, then the others
  int64_t places_size = 1;    // of the joined dimension
  at::Tensor places;          // flat
  at::DimVector index_shape;  // what the indices broadcast to
  at::DimVector rest;         // sizes of the other dimensions
  int64_t before = 0;         // how many of them come before the indices in the result

  Indexed(const at::Tensor& self, const Indices& indices) {
    std::vector<at::Tensor> given = expanded(self, indices);
    std::vector<at::Tensor> used;
    std::vector<int64_t> used_dims;
    for (size_t d = 0; d < given.size(); ++d)
      if (given[d].defined()) used.push_back(given[d]), used_dims.push_back(static_cast<int64_t>(d));
    TORCH_CHECK_INDEX(!used.empty(), "at least one index must be provided");
    used = at::expand_outplace(used);
    index_shape = at::DimVector(used[0].sizes());
    for (int64_t d : used_dims) order.push_back(d);
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (std::find(used_dims.begin(), used_dims.end(), d) != used_dims.end()) continue;
      order.push_back(d);
      rest.push_back(self.size(d));
    }
    const bool adjacent = used_dims.back() - used_dims.front() + 1 == static_cast<int64_t>(used_dims.size());
    before = adjacent ? used_dims.front() : 0;
    for (size_t i = 0; i < used.size(); ++i) {
      const int64_t size = self.size(used_dims[i]);
      TORCH_CHECK_INDEX(size > 0 || used[i].numel() == 0, "index is out of bounds for dimension with size 0");
      const at::Tensor wrapped = at::empty(used[i].sizes(), used[i].options());
      const clutch::Tensor index = wrap(used[i]);
      if (i == 0)
        apply(wrapped, {index}, [](const In& in) { return clutch::select(in.x[0] < 0, in.x[0] + in.n[0], in.x[0]); }, {size});
      else
        apply(wrapped, {index, wrap(places)}, [](const In& in) { return in.x[1] * in.n[0] + clutch::select(in.x[0] < 0, in.x[0] + in.n[0], in.x[0]); }, {size});
      places = wrapped;
      places_size *= size;
    }
    places = places.reshape({-1});
  }

  int64_t rest_size() const { return c10::multiply_integers(rest); }
  at::Tensor rows_of(const at::Tensor& self) const { return self.permute(order).reshape({places_size, rest_size()}); }
  // Rows in the order of places as the result of indexing.
  at::Tensor result(const at::Tensor& rows) const {
    at::DimVector sizes(index_shape);
    sizes.append(rest.begin(), rest.end());
    at::Tensor shaped = rows.view(sizes);
    if (before == 0) return shaped;
    at::DimVector moved;
    const auto count = static_cast<int64_t>(index_shape.size());
    for (int64_t d = 0; d < before; ++d) moved.push_back(count + d);
    for (int64_t d = 0; d < count; ++d) moved.push_back(d);
    for (int64_t d = count + before; d < shaped.dim(); ++d) moved.push_back(d);
    return shaped.permute(moved);
  }
  // Values that broadcast to the result as rows in the order of places.
  at::Tensor rows_of_values(const at::Tensor& values) const {
    at::DimVector sizes;
    for (int64_t d = 0; d < before; ++d) sizes.push_back(rest[static_cast<size_t>(d)]);
    sizes.append(index_shape.begin(), index_shape.end());
    for (size_t d = static_cast<size_t>(before); d < rest.size(); ++d) sizes.push_back(rest[d]);
    at::Tensor shaped = values.expand(sizes);
    at::DimVector moved;
    const auto count = static_cast<int64_t>(index_shape.size());
    for (int64_t d = 0; d < count; ++d) moved.push_back(before + d);
    for (int64_t d = 0; d < before; ++d) moved.push_back(d);
    for (int64_t d = count + before; d < shaped.dim(); ++d) moved.push_back(d);
    return shaped.permute(moved).reshape({places.numel(), rest_size()});
  }
};

at::Tensor gathered(const at::Tensor& self, const Indexed& indexed) {
  at::Tensor rows = at::empty({indexed.places.numel(), indexed.rest_size()}, self.options());
  if (rows.numel() > 0) clutch::index_select_out(wrap(rows), wrap(indexed.rows_of(self)), 0, wrap(indexed.places));
  return indexed.result(rows);
}
at::Tensor& index_out(const at::Tensor& self, const Indices& indices, at::Tensor& out) {
  const at::Tensor found = gathered(self, Indexed(self, indices));
  at::native::resize_output(out, found.sizes());
  return out.copy_(found);
}
at::Tensor index(const at::Tensor& self, const Indices& indices) { return gathered(self, Indexed(self, indices)).contiguous(); }

at::Tensor& index_put_(at::Tensor& self, const Indices& indices, const at::Tensor& values, bool accumulate, bool) {
  TORCH_CHECK_INDEX(self.scalar_type() == values.scalar_type(), "Index put requires the source and destination dtypes match, got ", self.scalar_type(),
                    " for the destination and ", values.scalar_type(), " for the source.");
  if (self.dim() == 0) refuse("a tensor of rank 0");
  const Indexed indexed(self, indices);
  if (indexed.places.numel() == 0 || self.numel() == 0) return self;
  const at::Tensor rows = indexed.rows_of(self), source = indexed.rows_of_values(values.to(self.device()));
  if (accumulate) {
    clutch::scatter_reduce_(wrap(rows), 0, wrap(indexed.places.unsqueeze(1).expand(source.sizes())), wrap(source), {.reduce = clutch::Reduce::sum});
  } else {
    const at::Tensor last = last_writer(indexed.places, indexed.places_size).unsqueeze(1).expand(rows.sizes());
    apply(rows, {wrap(last), wrap(rows)},
          [](const In& in) {
            return clutch::select(in.x[0] >= 0, in.c[0][{in.x[0], clutch::position(1)}], in.x[1]);
          },
          {}, {wrap(source)});
  }
  // The rows are self's own memory where its indexed dimensions come first.
  if (!rows.is_alias_of(self)) {
    at::DimVector sizes;
    for (int64_t d : indexed.order) sizes.push_back(self.size(d));
    self.permute(indexed.order).copy_(rows.view(sizes));
  }
  return self;
}

at::Tensor& index_copy_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  if (!out.is_same(self)) out.copy_(self);
  if (index.numel() == 0 || self.numel() == 0) return out;
  if (self.dim() == 0) return out.copy_(source.reshape({-1})[0]);
  dim = at::maybe_wrap_dim(dim, self.dim());
  at::Tensor moved = out.movedim(dim, 0);
  Indices indices;
  indices.push_back(std::optional(index.reshape({-1})));
  torch_clutch::index_put_(moved, indices, (source.dim() == 0 ? source.reshape({1}) : source.movedim(dim, 0)), false, true);
  return out;
}
at::Tensor& index_fill_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, "index_fill_(): Expected dtype int64 for index.");
  if (self.dim() == 0) return index.numel() == 0 ? self : self.fill_(value);
  dim = at::maybe_wrap_dim(dim, self.dim());
  TORCH_CHECK(index.dim() <= 1, "Index has to be a vector/scalar");
  if (index.numel() == 0 || self.numel() == 0) return self;
  at::Tensor moved = self.movedim(dim, 0);
  Indices indices;
  indices.push_back(std::optional(index.reshape({-1})));
  torch_clutch::index_put_(moved, indices, at::full({}, value, self.options()), false, true);
  return self;
}
at::Tensor& index_fill_tensor_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value.dim(), " dimension(s).");
  return torch_clutch::index_fill_(self, dim, index, value.item());
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "take(): Expected a long tensor for index, but got ", index.scalar_type());
  Indices indices;
  indices.push_back(std::optional(index));
  return torch_clutch::index(self.reshape({-1}), indices);
}
at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  TORCH_CHECK(index.scalar_type() == at::kLong, "put_(): Expected a long tensor for index, but got ", index.scalar_type());
  TORCH_CHECK(index.numel() == source.numel(), "put_(): Expected source and index to have the same number of elements");
  if (index.numel() == 0) return self;
  at::Tensor flat = self.reshape({-1});
  Indices indices;
  indices.push_back(std::optional(index.reshape({-1})));
  torch_clutch::index_put_(flat, indices, source.reshape({-1}), accumulate, true);
  return flat.is_alias_of(self) ? self : self.copy_(flat.view(self.sizes()));
}

}  // namespace

void add_advanced_indexing(OpTable& table) {
  table.family("indexing by several tensors");
  table.add<"scatter.src_out", &scatter_src_out>("scatter_reduce, map with captured()");
  table.add<"scatter.value_out", &scatter_value_out>("scatter_reduce, map with captured()");
  table.add<"index.Tensor", &index>("index_select of places");
  table.add<"index.Tensor_out", &index_out>("index_select of places");
  table.add<"_index_put_impl_", &index_put_>("scatter_reduce, map with captured()");
  table.add<"index_copy.out", &index_copy_out>("scatter_reduce, map with captured()");
  table.add<"index_fill_.int_Scalar", &index_fill_>("scatter_reduce, map with captured()");
  table.add<"index_fill_.int_Tensor", &index_fill_tensor_>("scatter_reduce, map with captured()");
  table.add<"take", &take>("index_select of places");
  table.add<"put_", &put_>("scatter_reduce, map with captured()");
}

}  // namespace torch_clutch
