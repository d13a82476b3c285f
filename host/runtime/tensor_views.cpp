// SPDX-License-Identifier: Apache-2.0
#include <clutch/tensor.hpp>

#include "runtime/op_name.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace clutch { inline namespace v0 {

// Sizes, strides, offsets and counts of elements are at most kMaxNumel. numel() and as_strided(), which make every tensor, check this. So their bytes fit 64
// bits, and so does a sum of kMaxRank of them. Products with a stride may not; times() bounds these.
static_assert(kMaxNumel <= INT64_MAX / 128 / kMaxRank);

namespace {

/// Product of a stride and a size or step, limited to kMaxNumel. Only strides that no access uses exceed the limit: those of dimensions of size 1 and of empty
/// tensors.
std::int64_t times(std::int64_t stride, std::int64_t by) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(stride, by, &product) ? kMaxNumel : std::min(product, kMaxNumel);
}

}  // namespace

namespace detail {
Dims contiguous_strides(const Dims& sizes) {
  Dims strides = Dims::filled(sizes.rank(), 1);
  for (int d = sizes.rank() - 2; d >= 0; --d) strides[d] = times(strides[d + 1], std::max<std::int64_t>(sizes[d + 1], 1));
  return strides;
}

}  // namespace detail

namespace {

bool is_contiguous(const Dims& sizes, const Dims& strides) {
  std::int64_t expected = 1;
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
  for (int d = sizes.rank() - 1; d >= 0; --d) {
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

int wrap_dim(int dim, int rank, std::string_view op) {
  int wrapped = dim < 0 ? dim + rank : dim;
  if (wrapped < 0 || wrapped >= rank) throw Error(ErrorCode::invalid_argument, op, fmt::format("a dimension must be in [-{}, {}), got {}", rank, rank, dim));
  return wrapped;
}

/// Computes the strides of a view with other sizes, from the last dimension to the first. False if the new sizes need a copy.
bool view_strides(const Tensor& t, const Dims& sizes, Dims& strides) {
  strides = detail::contiguous_strides(sizes);
  if (t.numel() == 0 || t.is_contiguous()) return true;
  int view = sizes.rank() - 1;
  std::int64_t base = t.strides()[t.rank() - 1];
  std::int64_t have = 1, want = 1;
  for (int d = t.rank() - 1; d >= 0; --d) {
    have *= t.sizes()[d];
    bool ends = d == 0 || (t.sizes()[d - 1] != 1 && t.strides()[d - 1] != have * base);
    if (!ends) continue;
    while (view >= 0 && (want < have || sizes[view] == 1)) {
      strides[view] = want * base;
      want *= sizes[view];
      --view;
    }
    if (want != have) return false;
    if (d > 0) {
      base = t.strides()[d - 1];
      have = want = 1;
    }
  }
  return view == -1;
}

}  // namespace

void Dims::no_dimension(int i, int rank) { throw Error(ErrorCode::invalid_argument, "Dims", fmt::format("the index must be in [0, {}), got {}", rank, i)); }

void Dims::too_many() { throw Error(ErrorCode::invalid_shape, "Dims", fmt::format("a tensor must have at most {} dimensions, got more", kMaxRank)); }

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (int d = 0; d < dims.rank(); ++d) text += fmt::format("{}{}", d ? ", " : "", dims[d]);
  return text + (dims.rank() == 1 ? ",)" : ")");
}

std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << to_string(dims); }

std::int64_t numel(const Dims& sizes) {
  std::int64_t count = 1;
  bool empty = false, overflow = false;  // sizes of 0 are left out of `count`, because the strides of an empty shape are products of its other sizes
  for (std::int64_t size : sizes) {
    if (size < 0) throw Error(ErrorCode::invalid_shape, "numel", fmt::format("sizes must not be negative, got {}", to_string(sizes)));
    empty = empty || size == 0;
    overflow = overflow || (size > 0 && (__builtin_mul_overflow(count, size, &count) || count > kMaxNumel));
  }
  if (overflow) throw Error(ErrorCode::invalid_shape, "numel", fmt::format("the sizes of a tensor must multiply to at most 2^50, got {}", to_string(sizes)));
  return empty ? 0 : count;
}

Dims broadcast_shapes(std::span<const Dims> shapes, std::string_view op) {
  int rank = 0;
  for (const Dims& shape : shapes) rank = std::max(rank, shape.rank());
  Dims result = Dims::filled(rank, 1);
  for (const Dims& shape : shapes)
    for (int d = 0; d < shape.rank(); ++d) {
      std::int64_t& size = result[d + rank - shape.rank()];
      if (shape[d] == 1 || shape[d] == size) continue;
      if (size != 1) {
        std::string all;
        for (const Dims& s : shapes) all += (all.empty() ? "" : ", ") + to_string(s);
        throw Error(ErrorCode::invalid_shape, op, fmt::format("shapes must broadcast, got {}", all));
      }
      size = shape[d];
    }
  return result;
}

Tensor::Tensor(std::shared_ptr<detail::Storage> storage, std::uint64_t offset, const Dims& sizes, const Dims& strides, DType dtype)
    : storage_(std::move(storage)),
      offset_(offset),
      numel_(clutch::numel(sizes)),
      sizes_(sizes),
      strides_(strides),
      dtype_(dtype),
      contiguous_(clutch::is_contiguous(sizes, strides)) {}

Device Tensor::device() const {
  if (!storage_) throw Error(ErrorCode::invalid_argument, "Tensor::device", "the tensor must be defined, got an undefined one");
  return Device(&storage_->runtime().device());
}

std::int64_t Tensor::size(int dim) const { return sizes_[wrap_dim(dim, rank(), "Tensor::size")]; }
std::int64_t Tensor::stride(int dim) const { return strides_[wrap_dim(dim, rank(), "Tensor::stride")]; }

Tensor Tensor::as_strided(const Dims& sizes, const Dims& strides, std::int64_t offset) const {
  detail::OpName named("Tensor::as_strided");
  if (!storage_) throw Error(ErrorCode::invalid_argument, "as_strided", "the tensor must be defined, got an undefined one");
  if (sizes.rank() != strides.rank())
    throw Error(ErrorCode::invalid_shape, "as_strided",
                fmt::format("sizes and strides must be of one rank, got {} and {}", clutch::to_string(sizes), clutch::to_string(strides)));
  if (offset < -kMaxNumel || offset > kMaxNumel)
    throw Error(ErrorCode::invalid_shape, "as_strided", fmt::format("the offset must be at most 2^50 elements either way, got {}", offset));
  auto width = static_cast<std::int64_t>(bits(dtype_));
  if (offset * width % 8 != 0)
    throw Error(ErrorCode::invalid_argument, "as_strided", fmt::format("a view of {} must begin at a whole byte, got element {}", name(dtype_), offset));
  std::int64_t count = clutch::numel(sizes), last = 0;
  auto past = [&] {
    return Error(ErrorCode::invalid_shape, "as_strided",
                 fmt::format("a view must end inside of its storage of {} bytes, got sizes {} with strides {} at element {}", storage_->bytes(),
                             clutch::to_string(sizes), clutch::to_string(strides), offset));
  };
  for (int d = 0; d < sizes.rank(); ++d) {
    if (strides[d] < 0) throw Error(ErrorCode::invalid_argument, "as_strided", fmt::format("strides must not be negative, got {}", clutch::to_string(strides)));
    if (strides[d] > kMaxNumel)
      throw Error(ErrorCode::invalid_shape, "as_strided", fmt::format("strides must be at most 2^50, got {}", clutch::to_string(strides)));
    std::int64_t reach = 0;
    if (count > 0 && (__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) || reach > kMaxNumel)) throw past();
    last += reach;
  }
  std::int64_t begin = static_cast<std::int64_t>(offset_) + offset * width / 8;
  if (begin < 0 || (count > 0 && static_cast<std::uint64_t>(begin) + bytes_for(dtype_, static_cast<std::uint64_t>(last) + 1) > storage_->bytes())) throw past();
  return Tensor(storage_, static_cast<std::uint64_t>(begin), sizes, strides, dtype_);
}

Tensor Tensor::slice(int dim, std::int64_t begin, std::int64_t end, std::int64_t step) const {
  detail::OpName named("Tensor::slice");
  int d = wrap_dim(dim, rank(), "slice");
  if (step <= 0) throw Error(ErrorCode::invalid_argument, "slice", fmt::format("step must be positive, got {}", step));
  auto clip = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + sizes_[d] : i, 0, sizes_[d]); };
  begin = clip(begin);
  end = std::max(clip(end), begin);
  Dims sizes = sizes_, strides = strides_;
  sizes[d] = end == begin ? 0 : (end - begin - 1) / step + 1;
  strides[d] = times(strides[d], step);
  // Strides of an empty tensor may be so large that no product of them can be computed.
  return as_strided(sizes, strides, numel() == 0 || begin == sizes_[d] ? 0 : begin * strides_[d]);
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  detail::OpName named("Tensor::select");
  int d = wrap_dim(dim, rank(), "select");
  std::int64_t i = index < 0 ? index + sizes_[d] : index;
  if (i < 0 || i >= sizes_[d])
    throw Error(ErrorCode::invalid_argument, "select", fmt::format("the index must be in [-{}, {}), got {}", sizes_[d], sizes_[d], index));
  Dims sizes = sizes_, strides = strides_;
  const std::int64_t offset = numel() == 0 ? 0 : i * strides_[d];
  sizes.erase(d);
  strides.erase(d);
  return as_strided(sizes, strides, offset);
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  detail::OpName named("Tensor::transpose");
  int a = wrap_dim(dim0, rank(), "transpose"), b = wrap_dim(dim1, rank(), "transpose");
  Dims sizes = sizes_, strides = strides_;
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return as_strided(sizes, strides);
}

Tensor Tensor::mT() const {
  detail::OpName named("Tensor::mT");
  if (rank() < 2)
    throw Error(ErrorCode::invalid_shape, "Tensor::mT", fmt::format("the tensor must have at least two dimensions, got {}", clutch::to_string(sizes_)));
  return transpose(-2, -1);
}

Tensor Tensor::expand(const Dims& wanted) const {
  detail::OpName named("Tensor::expand");
  if (wanted.rank() < rank())
    throw Error(ErrorCode::invalid_shape, "expand",
                fmt::format("the sizes must have at least the {} dimensions of the tensor, got {}", rank(), clutch::to_string(wanted)));
  Dims sizes = wanted, strides = Dims::filled(wanted.rank(), 0);
  int lead = wanted.rank() - rank();
  for (int d = 0; d < wanted.rank(); ++d) {
    bool own = d >= lead;
    std::int64_t have = own ? sizes_[d - lead] : 1;
    if (sizes[d] == -1 && own) sizes[d] = have;
    if (sizes[d] != have && (have != 1 || sizes[d] < 0))
      throw Error(ErrorCode::invalid_shape, "expand",
                  fmt::format("sizes other than 1 of {} must stay as they are, got {}", clutch::to_string(sizes_), clutch::to_string(wanted)));
    if (own && sizes[d] == have) strides[d] = strides_[d - lead];
  }
  return as_strided(sizes, strides);
}

Tensor Tensor::unsqueeze(int dim) const {
  detail::OpName named("Tensor::unsqueeze");
  int d = wrap_dim(dim, rank() + 1, "unsqueeze");
  Dims sizes, strides;
  for (int i = 0; i <= rank(); ++i) {
    if (i == d) {
      sizes.push_back(1);
      strides.push_back(i < rank() ? times(strides_[i], sizes_[i]) : 1);
    }
    if (i < rank()) {
      sizes.push_back(sizes_[i]);
      strides.push_back(strides_[i]);
    }
  }
  return as_strided(sizes, strides);
}

Tensor Tensor::squeeze(int dim) const {
  detail::OpName named("Tensor::squeeze");
  int d = wrap_dim(dim, rank(), "squeeze");
  if (sizes_[d] != 1) return *this;
  Dims sizes = sizes_, strides = strides_;
  sizes.erase(d);
  strides.erase(d);
  return as_strided(sizes, strides);
}

Tensor Tensor::reshape(const Dims& wanted) const {
  detail::OpName named("Tensor::reshape");
  Dims sizes = wanted, known = wanted;
  int open = -1;
  for (int d = 0; d < sizes.rank(); ++d) {
    if (sizes[d] >= 0) continue;
    if (sizes[d] != -1 || open >= 0)
      throw Error(ErrorCode::invalid_shape, "reshape", fmt::format("sizes must not be negative but for one -1, got {}", clutch::to_string(wanted)));
    open = d;
    known[d] = 1;
  }
  std::int64_t count = clutch::numel(known);
  bool fills = open < 0 ? count == numel_ : count > 0 && numel_ % count == 0;
  if (!fills)
    throw Error(ErrorCode::invalid_shape, "reshape", fmt::format("the sizes must have {} elements in all, got {}", numel_, clutch::to_string(wanted)));
  if (open >= 0) sizes[open] = numel_ / count;
  Dims strides;
  if (view_strides(*this, sizes, strides)) return as_strided(sizes, strides);
  return contiguous().reshape(sizes);
}

}}  // namespace clutch::v0
