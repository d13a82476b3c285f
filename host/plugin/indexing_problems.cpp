// SPDX-License-Identifier: Apache-2.0
// Problems of ops that count, find and move elements by their numbers.
#include <clutch/nn.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/group.hpp>
#include <clutch/ops/index.hpp>
#include <clutch/ops/nonzero.hpp>
#include <clutch/ops/scatter.hpp>
#include <clutch/ops/segment.hpp>
#include <clutch/ops/sort.hpp>
#include <clutch/sparse.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

constexpr DType kIndices[] = {DType::i32, DType::i64};
constexpr Reduce kReduces[] = {Reduce::sum, Reduce::prod, Reduce::amin, Reduce::amax, Reduce::mean};

/// Whole numbers from least to below end.
Tensor whole(PluginProblems& problems, DType dtype, std::int64_t least, std::int64_t end, const Dims& sizes) {
  const Tensor random = problems.random(DType::u32, sizes);
  std::vector<std::int64_t> values;
  for (const std::uint32_t x : random.to_host<std::uint32_t>(problems.stream())) values.push_back(least + static_cast<std::int64_t>(x % (end - least)));
  const TensorOptions on{.dtype = dtype, .device = problems.stream().device()};
  if (dtype == DType::i64) return from_bytes(values.data(), values.size() * 8, sizes, on, problems.stream());
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  return from_bytes(narrow.data(), narrow.size() * 4, sizes, on, problems.stream());
}

/// Ascending numbers of `count` segments of `entries`, some of them empty.
Tensor offsets_of(PluginProblems& problems, DType dtype, std::int64_t count, std::int64_t entries) {
  std::vector<std::int64_t> values = whole(problems, DType::i64, 0, entries + 1, {count + 1}).to_host<std::int64_t>(problems.stream());
  std::sort(values.begin(), values.end());
  values.front() = 0, values.back() = entries;
  const TensorOptions on{.dtype = dtype, .device = problems.stream().device()};
  if (dtype == DType::i64) return from_bytes(values.data(), values.size() * 8, {count + 1}, on, problems.stream());
  const std::vector<std::int32_t> narrow(values.begin(), values.end());
  return from_bytes(narrow.data(), narrow.size() * 4, {count + 1}, on, problems.stream());
}

}  // namespace

void topk_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, std::int64_t k, int dim, bool largest) {
    Dims sizes = x.sizes();
    sizes[dim] = k;
    PluginProblem one{.name = fmt::format("{} {}, {} {} along {}", name(x.dtype()), to_string(x.sizes()), k, largest ? "largest" : "smallest", dim),
                      .inputs = {x},
                      .outputs = {{x.dtype(), sizes}, {DType::i64, sizes}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      topk_out({to[0], to[1]}, x, k, dim, {.largest = largest, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { topk(x, 0, 0, {}, problems.stream()); }))
    for (const bool largest : {true, false}) {
      add(problems.random(dtype, {3, 301}), 7, 1, largest);
      add(problems.random(dtype, {40, 7}), 40, 0, largest);
      add(problems.random(dtype, {11, 23, 2}).transpose(0, 1), 3, 1, largest);
      add(problems.random(dtype, {5000}), 1, 0, largest);
      if (is_floating(dtype)) add(problems.special(dtype, 200), 90, 0, largest);
    }
}

void kthvalue_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, std::int64_t k, int dim, bool keepdim) {
    Dims sizes = x.sizes();
    if (keepdim)
      sizes[dim] = 1;
    else
      sizes.erase(dim);
    PluginProblem one{.name = fmt::format("{} {}, number {} along {}{}", name(x.dtype()), to_string(x.sizes()), k, dim, keepdim ? ", kept" : ""),
                      .inputs = {x},
                      .outputs = {{x.dtype(), sizes}, {DType::i64, sizes}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      kthvalue_out({to[0], to[1]}, x, k, dim, {.keepdim = keepdim, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { kthvalue(x.reshape({0, 1}), 1, 1, {}, problems.stream()); }))
    for (const bool keepdim : {false, true}) {
      add(problems.random(dtype, {3, 301}), 7, 1, keepdim);
      add(problems.random(dtype, {40, 7}), 40, 0, keepdim);
      add(problems.random(dtype, {11, 23, 2}).transpose(0, 1), 3, 1, keepdim);
      add(problems.random(dtype, {5000}), 1, 0, keepdim);
      if (is_floating(dtype)) add(problems.special(dtype, 200), 90, 0, keepdim);
    }
}

void nonzero_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, std::int64_t size, std::int64_t fill) {
    PluginProblem one{
        .name = fmt::format("{} {}, {} rows", name(x.dtype()), to_string(x.sizes()), size), .inputs = {x}, .outputs = {{DType::i64, {size, x.rank()}}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      nonzero_static_out(to[0], x, size, {.fill_value = fill, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nonzero_static(x, 0, {}, problems.stream()); })) {
    add(problems.random(dtype, {2000}), 900, -1);
    add(problems.random(dtype, {9, 31}).mT(), 400, -1);
    add(problems.random(dtype, {3, 4, 5}), 70, 12);
    if (is_floating(dtype)) add(problems.special(dtype, 300), 300, 0);
  }
}

void group_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& index, std::int64_t groups) {
    PluginProblem one{.name = fmt::format("{} {} of {} groups", name(index.dtype()), to_string(index.sizes()), groups),
                      .inputs = {index},
                      .outputs = {{DType::i32, {groups + 1}}, {DType::i32, {index.numel()}}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      group_by_out({to[0], to[1]}, index, groups, {.implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : kIndices) {
    add(whole(problems, dtype, 0, 7, {900}), 7);
    add(whole(problems, dtype, 0, 3000, {5000}), 3000);
    add(whole(problems, dtype, 5, 6, {300}), 20);
    add(whole(problems, dtype, 0, 1, {1}), 1);
    add(whole(problems, dtype, 0, 12, {700, 2}).select(1, 1), 12);
  }
}

void gather_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, int dim, const Tensor& index, bool gaps) {
    PluginProblem one{.name = fmt::format("{} {} along {} by {} {}{}", name(x.dtype()), to_string(x.sizes()), dim, name(index.dtype()),
                                          to_string(index.sizes()), gaps ? " with gaps" : ""),
                      .inputs = {x, index},
                      .outputs = {{x.dtype(), index.sizes(), gaps}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& stream) { gather_out(to[0], x, dim, index, stream); };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { gather(x, 0, problems.none(DType::i32), problems.stream()); }))
    for (const DType index : kIndices) {
      add(problems.random(dtype, {90}), 0, whole(problems, index, 0, 90, {400}), false);
      add(problems.random(dtype, {9, 31}), 1, whole(problems, index, 0, 31, {7, 50}), true);
      add(problems.random(dtype, {12, 5, 6}).transpose(0, 1), 1, whole(problems, index, 0, 12, {5, 3, 6}), false);
      // Outside of x, and rows, whose numbers are repeated.
      add(problems.random(dtype, {30, 8}), 0, whole(problems, index, -3, 33, {20, 8}), false);
      add(problems.random(dtype, {30, 8}), 0, whole(problems, index, 0, 30, {20, 1}).expand({20, 8}), false);
    }
}

void scatter_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& self, int dim, const Tensor& index, const Tensor& src, Reduce reduce, bool include_self) {
    PluginProblem one{.name = fmt::format("{} {} along {} by {} {}, reduce {}{}", name(self.dtype()), to_string(self.sizes()), dim, name(index.dtype()),
                                          to_string(index.sizes()), static_cast<int>(reduce), include_self ? "" : " without self"),
                      .inputs = {self, index, src},
                      .outputs = {{self.dtype(), self.sizes()}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      scatter_reduce_out(to[0], self, dim, index, src, {.reduce = reduce, .include_self = include_self, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  const Tensor none = problems.none(DType::i32);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { scatter_reduce(x, 0, none, x, {}, problems.stream()); }))
    for (const DType index : kIndices)
      for (const Reduce reduce : kReduces)
        for (const bool include_self : {true, false}) {
          const ScatterOptions options{.reduce = reduce, .include_self = include_self};
          if (!problems.is_taken([&] { scatter_reduce(problems.none(dtype), 0, none, problems.none(dtype), options, problems.stream()); })) continue;
          auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
          add(random({40}), 0, whole(problems, index, 0, 40, {300}), random({300}), reduce, include_self);
          add(random({6, 11}), 1, whole(problems, index, -1, 12, {5, 40}), random({6, 40}), reduce, include_self);
          add(random({10, 9}), 0, whole(problems, index, 0, 10, {33, 1}).expand({33, 9}), random({33, 9}), reduce, include_self);
        }
}

void index_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, std::vector<Tensor> indices, const Dims& sizes, bool any_nan) {
    PluginProblem one{.name = fmt::format("{} {} by {} tensors to {}", name(x.dtype()), to_string(x.sizes()), indices.size(), to_string(sizes)),
                      .inputs = {x},
                      .outputs = {{x.dtype(), sizes}},
                      .any_nan = any_nan};
    for (const Tensor& t : indices)
      if (t.defined()) one.inputs.push_back(t);
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& stream) { index_out(to[0], x, indices, stream); };
    problems.add(std::move(one));
  };
  const Tensor some = problems.none(DType::i64);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { index(x, {some}, problems.stream()); })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    for (const DType of : kIndices) {
      add(random({50}), {whole(problems, of, -50, 50, {300})}, {300}, false);
      add(random({9, 31, 4}), {whole(problems, of, 0, 9, {6, 1}), whole(problems, of, -31, 31, {5})}, {6, 5, 4}, false);
      add(random({9, 7, 4}), {Tensor(), whole(problems, of, 0, 7, {20})}, {9, 20, 4}, false);
      add(random({9, 31}).mT(), {whole(problems, of, -40, 40, {60})}, {60, 9}, true);
    }
    // A mask whose count is known.
    std::vector<std::uint8_t> mask(40);
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1;
    const Tensor masked = from_bytes(mask.data(), mask.size(), {40}, {.dtype = DType::boolean, .device = problems.stream().device()}, problems.stream());
    add(random({40, 3}), {masked}, {13, 3}, false);
  }
}

void index_put_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& self, std::vector<Tensor> indices, const Tensor& values, bool accumulate) {
    PluginProblem one{.name = fmt::format("{} {} by {} tensors{}", name(self.dtype()), to_string(self.sizes()), indices.size(), accumulate ? ", added" : ""),
                      .inputs = {self, values},
                      .outputs = {{self.dtype(), self.sizes()}}};
    for (const Tensor& t : indices)
      if (t.defined()) one.inputs.push_back(t);
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& stream) {
      copy_(to[0], self, {}, stream);
      index_put_(to[0], indices, values, {.accumulate = accumulate}, stream);
    };
    problems.add(std::move(one));
  };
  const Tensor some = problems.none(DType::i64);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { index_put(x, {some}, x, {}, problems.stream()); }))
    for (const bool accumulate : {false, true}) {
      if (!problems.is_taken([&] { index_put(problems.none(dtype), {some}, problems.none(dtype), {.accumulate = accumulate}, problems.stream()); })) continue;
      auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
      for (const DType of : kIndices) {
        add(random({50}), {whole(problems, of, -60, 60, {300})}, random({300}), accumulate);
        add(random({9, 31, 4}), {whole(problems, of, 0, 9, {6, 1}), whole(problems, of, -31, 31, {5})}, random({6, 5, 4}), accumulate);
        add(random({9, 7, 4}), {Tensor(), whole(problems, of, 0, 7, {20})}, random({1, 20, 4}), accumulate);
      }
    }
}

void segment_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& data, const Tensor& offsets, const SegmentOptions& options, bool gaps) {
    Dims sizes = data.sizes();
    sizes[0] = offsets.numel() - 1;
    PluginProblem one{
        .name = fmt::format("{} {} by {} {}, reduce {}{}{}", name(data.dtype()), to_string(data.sizes()), name(offsets.dtype()), to_string(offsets.sizes()),
                            static_cast<int>(options.reduce), options.initial ? " with an initial value" : "", gaps ? " with gaps" : ""),
        .inputs = {data, offsets},
        .outputs = {{data.dtype(), sizes, gaps}},
        .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      SegmentOptions by = options;
      by.implementation = implementation;
      segment_reduce_out(to[0], data, offsets, by, stream);
    };
    problems.add(std::move(one));
  };
  const Tensor two = from_bytes("\0\0\0\0\0\0\0\0", 8, {2}, {.dtype = DType::i32, .device = problems.stream().device()}, problems.stream());
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { segment_reduce(x.reshape({0, 0}), two, {}, problems.stream()); }))
    for (const DType of : kIndices)
      for (const Reduce reduce : kReduces)
        for (const bool initial : {false, true}) {
          SegmentOptions options{.reduce = reduce};
          if (initial) options.initial = 1.5;
          auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
          add(random({300, 5}), offsets_of(problems, of, 20, 300), options, false);
          add(random({70}), offsets_of(problems, of, 90, 70), options, false);
          add(random({16, 40}).mT(), offsets_of(problems, of, 3, 40), options, true);
          add(problems.special(dtype, 200).reshape({50, 4}), offsets_of(problems, of, 9, 50), options, false);
        }
}

namespace {

/// Whole numbers of any dtype, as whole() makes them.
Tensor any_whole(PluginProblems& problems, DType dtype, std::int64_t least, std::int64_t end, const Dims& sizes) {
  const std::vector<std::int64_t> values = whole(problems, DType::i64, least, end, sizes).to_host<std::int64_t>(problems.stream());
  std::vector<std::uint8_t> bytes;
  for (const std::int64_t value : values)
    for (int i = 0; i < bits(dtype); i += 8) bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> i));
  return from_bytes(bytes.data(), bytes.size(), sizes, {.dtype = dtype, .device = problems.stream().device()}, problems.stream());
}

}  // namespace

void embedding_problems(PluginProblems& problems) {
  const Stream& stream = problems.stream();
  auto add = [&](const Tensor& weight, const Tensor& index) {
    Dims sizes = index.sizes();
    sizes.push_back(weight.size(1));
    PluginProblem one{.name = fmt::format("{} {} by {} {}", name(weight.dtype()), to_string(weight.sizes()), name(index.dtype()), to_string(index.sizes())),
                      .inputs = {weight, index},
                      .outputs = {{weight.dtype(), sizes}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& on) { nn::embedding_out(to[0], weight, index, on); };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& weight) { nn::embedding(weight.reshape({0, 1}), problems.none(DType::i64), stream); }))
    for (const DType of : problems.dtypes([&](const Tensor& index) { nn::embedding(problems.none(dtype, {0, 1}), index, stream); })) {
      if (is_packed(dtype)) continue;  // a plugin's kernel has no word for them
      const std::int64_t least = kDTypes[static_cast<std::size_t>(of)].is_signed ? -2 : 0;
      add(problems.random(dtype, {90, 33}), any_whole(problems, of, 0, 90, {7, 20}));
      add(problems.random(dtype, {16, 40}).mT(), any_whole(problems, of, 0, 40, {60}));
      add(problems.random(dtype, {50, 8}), any_whole(problems, of, least, 52, {4, 5, 6}).transpose(0, 2));  // some are no rows
      add(problems.random(dtype, {5, 1}), any_whole(problems, of, 0, 5, {}));
    }
}

void embedding_gradient_problems(PluginProblems& problems) {
  const Stream& stream = problems.stream();
  auto add = [&](const Tensor& grad, const Tensor& index, std::int64_t rows, std::int64_t padding, bool scaled) {
    const nn::EmbeddingBackwardOptions options{.padding_index = padding, .scale_by_frequency = scaled};
    PluginProblem one{.name = fmt::format("{} {} of {} {} to {} rows, padding {}{}", name(grad.dtype()), to_string(grad.sizes()), name(index.dtype()),
                                          to_string(index.sizes()), rows, padding, scaled ? ", scaled" : ""),
                      .inputs = {grad, index},
                      .outputs = {{grad.dtype(), {rows, grad.size(-1)}}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& on) { nn::embedding_backward_out(to[0], grad, index, rows, options, on); };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& g) { nn::embedding_backward(g.reshape({0, 1}), problems.none(DType::i64), 0, {}, stream); }))
    for (const DType of : problems.dtypes([&](const Tensor& index) { nn::embedding_backward(problems.none(dtype, {0, 1}), index, 0, {}, stream); }))
      for (const bool scaled : {false, true}) {
        if (is_packed(dtype)) continue;
        add(problems.random(dtype, {7, 20, 33}), any_whole(problems, of, 0, 90, {7, 20}), 90, -1, scaled);
        add(problems.random(dtype, {60, 16}), any_whole(problems, of, 0, 5, {60}), 5, 3, scaled);
        add(problems.random(dtype, {9, 100}).mT(), any_whole(problems, of, 0, 40, {100}), 41, -1, scaled);
      }
}

void spmm_problems(PluginProblems& problems) {
  auto add = [&](const sparse::Csr& a, const Tensor& b, Reduce reduce, bool gaps) {
    PluginProblem one{.name = fmt::format("{} {}{} by {} {}, reduce {}{}", name(b.dtype()), to_string(b.sizes()), a.values.defined() ? " times values" : "",
                                          name(a.offsets.dtype()), name(a.columns.dtype()), static_cast<int>(reduce), gaps ? " with gaps" : ""),
                      .inputs = {a.offsets, a.columns, b},
                      .outputs = {{b.dtype(), {a.offsets.numel() - 1, b.size(1)}, gaps}},
                      .any_nan = true};
    if (a.values.defined()) one.inputs.push_back(a.values);
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      sparse::spmm_out(to[0], a, b, {.reduce = reduce, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  const Tensor two = from_bytes("\0\0\0\0\0\0\0\0", 8, {2}, {.dtype = DType::i32, .device = problems.stream().device()}, problems.stream());
  const Tensor none = problems.none(DType::i32);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) {
         sparse::spmm({.offsets = two, .columns = none, .width = 0}, x.reshape({0, 0}), {}, problems.stream());
       }))
    for (const DType of : kIndices)
      for (const DType columns : kIndices)
        for (const bool values : {false, true})
          for (const Reduce reduce : kReduces) {
            auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
            auto matrix = [&](std::int64_t rows, std::int64_t width, std::int64_t entries, std::int64_t least) {
              return sparse::Csr{.offsets = offsets_of(problems, of, rows, entries),
                                 .columns = whole(problems, columns, least, width - least, {entries}),
                                 .values = values ? random({entries}) : Tensor(),
                                 .width = width};
            };
            add(matrix(20, 33, 200, 0), random({33, 16}), reduce, false);
            add(matrix(7, 12, 30, -1), random({12, 5}), reduce, true);
          }
}

}}}  // namespace clutch::v0::detail
