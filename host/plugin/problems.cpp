// SPDX-License-Identifier: Apache-2.0
#include "plugin/problems.hpp"

#include <clutch/attention.hpp>
#include <clutch/nn.hpp>
#include <clutch/ops/addc.hpp>
#include <clutch/ops/cat.hpp>
#include <clutch/ops/copy.hpp>
#include <clutch/ops/cumsum.hpp>
#include <clutch/ops/fill.hpp>
#include <clutch/ops/matmul.hpp>
#include <clutch/ops/reduce.hpp>
#include <clutch/ops/sort.hpp>

#include "plugin/op_problems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Writes a number as an element.
void put(std::uint8_t* at, DType dtype, double value) {
  if (is_complex(dtype)) dtype = dtype == DType::c64 ? DType::f32 : DType::f64;
  if (dtype == DType::f64) {
    std::memcpy(at, &value, sizeof value);
  } else if (dtype == DType::f32) {
    const auto single = static_cast<float>(value);
    std::memcpy(at, &single, sizeof single);
  } else {
    const std::uint16_t coded = encode_small_float(value, dtype);
    for (int i = 0; i < bits(dtype) / 8; ++i) at[i] = static_cast<std::uint8_t>(coded >> (8 * i));
  }
}

void addc_problems(PluginProblems& problems, bool quotient) {
  auto add = [&](DType dtype, const Tensor& x, const Tensor& a, const Tensor& b, bool gaps, AddcOrder order, double value) {
    PluginProblem one{.name = fmt::format("{} {}{} order {}", name(dtype), to_string(x.sizes()), gaps ? " with gaps" : "", static_cast<int>(order)),
                      .inputs = {x, a, b},
                      .outputs = {{dtype, broadcast_shapes(std::vector<Dims>{x.sizes(), a.sizes(), b.sizes()}), gaps}}};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      (quotient ? addcdiv_out : addcmul_out)(out[0], x, a, b, {.value = value, .order = order, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  auto in_place = [&](DType dtype) {
    const Tensor x = problems.random(dtype, {4, 100}), a = problems.random(dtype, {4, 100}), b = problems.random(dtype, {100});
    PluginProblem one{.name = fmt::format("{} (4, 100) in place", name(dtype)), .inputs = {x, a, b}, .outputs = {{dtype, x.sizes()}}};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      copy_(out[0], x, {}, stream);
      (quotient ? addcdiv_ : addcmul_)(out[0], a, b, {.value = 1.5, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  constexpr AddcOrder kFirst = AddcOrder::fma_of_quotient;
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { (quotient ? addcdiv : addcmul)(x, x, x, {}, problems.stream()); })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    in_place(dtype);
    if (is_floating(dtype)) {
      add(dtype, problems.special(dtype, 500), problems.special(dtype, 500), problems.special(dtype, 500), false, kFirst, 2);
      problems.list.back().any_nan = true;
    }
    for (const AddcOrder order : {kFirst, AddcOrder::product_first, AddcOrder::unfused}) {
      add(dtype, random({1237}), random({1237}), random({1237}), false, order, -3);
      add(dtype, random({5, 67}), random({67}), random({5, 1}), true, order, 1);
      add(dtype, random({31, 9}).mT(), random({9, 31}), random({31}), false, order, 0.75);
    }
    add(dtype, random({}), random({}), random({}), false, kFirst, 2);
    add(dtype, random({2, 3, 2, 5, 7}).transpose(0, 3), random({3, 1, 1, 7}), random({5, 1, 2, 1, 1}), true, kFirst, -2);
  }
}

void fill_problems(PluginProblems& problems) {
  auto add = [&](DType dtype, const Dims& sizes, bool gaps, bool transposed, double value) {
    PluginProblem one{.name = fmt::format("{} {}{}{} with {}", name(dtype), to_string(sizes), gaps ? " with gaps" : "", transposed ? " transposed" : "", value),
                      .outputs = {{dtype, sizes, gaps}},
                      .any_nan = true};
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      fill_(transposed ? out[0].mT() : out[0], value, {.implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { fill_(x, 1, {}, problems.stream()); })) {
    // Rounding, both ends of ranges, and what only some dtypes have.
    for (const double value :
         std::initializer_list<double>{0.0, -0.0, 1.0, 0.1, -3.7, 300.0, -70000.0, 5e9, 3e19, -3e19, 1e39, INFINITY, -INFINITY, NAN, 1e-7, 1e-41})
      add(dtype, {37}, false, false, value);
    add(dtype, {}, false, false, 2);
    add(dtype, {2500}, false, false, -1.5);
    add(dtype, {5, 67}, true, false, 1.25);
    add(dtype, {31, 9}, false, true, 3);
    add(dtype, {2, 3, 1, 5, 7}, true, true, 17);
  }
}

void cat_problems(PluginProblems& problems) {
  auto add = [&](const std::vector<Tensor>& tensors, int dim, DType out, bool gaps) {
    Dims sizes = tensors[0].sizes();
    std::string shapes;
    for (const Tensor& t : tensors) shapes += fmt::format(" {}", to_string(t.sizes()));
    for (std::size_t i = 1; i < tensors.size(); ++i) sizes[dim] += tensors[i].sizes()[dim];
    PluginProblem one{
        .name = fmt::format("{}{} along {}{}", name(out), shapes, dim, gaps ? " with gaps" : ""), .inputs = tensors, .outputs = {{out, sizes, gaps}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      cat_out(to[0], tensors, dim, {.implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { cat({&x, 1}, 0, {}, problems.stream()); })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    add({random({1000}), random({1}), random({337})}, 0, dtype, false);
    add({random({3, 50}), random({4, 50})}, 0, dtype, false);
    add({random({7, 5}), random({7, 2}), random({7, 1})}, 1, dtype, true);
    add({random({9, 31}).mT(), random({31, 1}).expand({31, 9}), random({31, 40}).slice(1, 3, 39, 2)}, 1, dtype, false);
    add({random({2, 3, 4, 5}), random({2, 3, 1, 5})}, 2, dtype, true);
    add({random({6, 6})}, 0, dtype, false);
    std::vector<Tensor> many;
    for (int i = 0; i < 20; ++i) many.push_back(random({1 + i % 3, 33}));
    add(many, 0, dtype, false);
  }
  add({problems.random(DType::f16, {40}), problems.random(DType::f32, {60})}, 0, DType::f32, false);
}

/// A reduction's two forms.
struct Reducing {
  Tensor (*made)(const Tensor& x, const ReduceOptions& options, const Stream& stream);
  void (*into)(const Tensor& out, const Tensor& x, const ReduceOptions& options, const Stream& stream);
  bool of_bool = true;  ///< extremes of bool are any() and all()
};

void reduce_problems(PluginProblems& problems, const Reducing& by_name) {
  auto add = [&](const Tensor& x, DType out, const Dims& dims, bool keepdim, bool gaps) {
    ReduceOptions options{.dims = dims, .keepdim = keepdim};
    PluginProblem one{.name = fmt::format("{} {} to {} over {}{}{}", name(x.dtype()), to_string(x.sizes()), name(out), to_string(dims), keepdim ? ", kept" : "",
                                          gaps ? " with gaps" : ""),
                      .inputs = {x},
                      .any_nan = true};
    for (int d = 0; d < x.rank(); ++d) {
      const bool gone = dims.empty() || std::any_of(dims.begin(), dims.end(), [&](std::int64_t given) { return (given + x.rank()) % x.rank() == d; });
      if (one.outputs.empty()) one.outputs.push_back({out, {}, gaps});
      if (!gone) one.outputs[0].sizes.push_back(x.sizes()[d]);
      if (gone && keepdim) one.outputs[0].sizes.push_back(1);
    }
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      ReduceOptions by = options;
      by.implementation = implementation;
      by_name.into(to[0], x, by, stream);
    };
    problems.add(std::move(one));
  };
  const ReduceOptions lines{.dims = {1}};
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { by_name.made(x.reshape({0, 1}), lines, problems.stream()); })) {
    if (dtype == DType::boolean && !by_name.of_bool) continue;
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    const DType usual = by_name.made(problems.none(dtype, {0, 1}), lines, problems.stream()).dtype();
    for (const DType out : problems.dtypes([&](const Tensor& to) { by_name.into(to, problems.none(dtype, {0, 1}), lines, problems.stream()); }))
      for (const bool keepdim : {false, true}) {
        add(random({9, 300}), out, {1}, keepdim, false);
        if (out != usual) continue;
        add(random({5, 41, 7}), out, {1}, keepdim, true);
        add(random({5, 41, 7}), out, {0, -1}, keepdim, false);
        add(random({17, 33}).mT(), out, {-1}, keepdim, false);
        add(random({3, 5000}), out, {1}, keepdim, false);
        add(random({2100, 6}), out, {0}, keepdim, false);
        add(random({1, 700}).expand({4, 700}), out, {0}, keepdim, false);
        add(random({2500}), out, {}, keepdim, false);
        add(random({4, 1}), out, {1}, keepdim, false);
        if (is_floating(dtype) && bits(dtype) >= 16) add(problems.special(dtype, 800).reshape({200, 4}), out, {1}, keepdim, false);
      }
  }
}

void cumsum_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, DType out, int dim, bool reverse, bool gaps) {
    PluginProblem one{.name = fmt::format("{} to {}, {} along {}{}{}", name(x.dtype()), name(out), to_string(x.sizes()), dim, reverse ? " in reverse" : "",
                                          gaps ? " with gaps" : ""),
                      .inputs = {x},
                      .outputs = {{out, x.sizes(), gaps}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      cumsum_out(to[0], x, dim, {.reverse = reverse, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  auto in_place = [&](DType dtype) {
    const Tensor x = problems.random(dtype, {6, 90});
    PluginProblem one{.name = fmt::format("{} (6, 90) in place", name(dtype)), .inputs = {x}, .outputs = {{dtype, x.sizes()}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      copy_(to[0], x, {}, stream);
      cumsum_out(to[0], to[0], 1, {.implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { cumsum(x, 0, {}, problems.stream()); }))
    for (const DType out : problems.dtypes([&](const Tensor& to) { cumsum_out(to, problems.none(dtype), 0, {}, problems.stream()); }))
      for (const bool reverse : {false, true}) {
        add(problems.random(dtype, {2500}), out, 0, reverse, false);
        add(problems.random(dtype, {3, 41, 5}), out, 1, reverse, true);
        add(problems.random(dtype, {17, 33}).mT(), out, 0, reverse, false);
        add(problems.random(dtype, {1}), out, 0, reverse, false);
      }
  for (const DType out : problems.dtypes([&](const Tensor& to) { cumsum_out(to, to, 0, {}, problems.stream()); })) in_place(out);
}

void sort_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& x, int dim, bool descending) {
    PluginProblem one{.name = fmt::format("{} {} along {}{}", name(x.dtype()), to_string(x.sizes()), dim, descending ? ", descending" : ""),
                      .inputs = {x},
                      .outputs = {{x.dtype(), x.sizes()}, {DType::i64, x.sizes()}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      sort_out({to[0], to[1]}, x, dim, {.descending = descending, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  std::vector<double> special;  // NaN, zeros of both signs and infinities
  for (int i = 0; i < 200; ++i) special.push_back(i % 5 == 0 ? NAN : i % 5 == 1 ? 0.0 : i % 5 == 2 ? -0.0 : i % 5 == 3 ? INFINITY : -INFINITY);
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { sort(x, 0, {}, problems.stream()); }))
    for (const bool descending : {false, true}) {
      add(problems.random(dtype, {3, 301}), 1, descending);
      add(problems.random(dtype, {40, 7}), 0, descending);
      add(problems.random(dtype, {11, 23, 2}).transpose(0, 1), 1, descending);
      add(problems.random(dtype, {9000}), 0, descending);
      if (is_floating(dtype)) add(problems.from_values(dtype, special), 0, descending);
    }
}

void matmul_problems(PluginProblems& problems) {
  auto add = [&](const Tensor& a, const Tensor& b, DType out, double alpha, double beta) {
    Dims sizes = a.sizes();
    sizes[sizes.rank() - 1] = b.size(-1);
    const Tensor before = problems.random(out, sizes);
    PluginProblem one{.name = fmt::format("{} {} {} {} to {}, alpha {} beta {}", name(a.dtype()), to_string(a.sizes()), name(b.dtype()), to_string(b.sizes()),
                                          name(out), alpha, beta),
                      .inputs = {a, b, before},
                      .outputs = {{out, sizes}}};
    one.run = [=](std::span<const Tensor> to, const std::string& implementation, const Stream& stream) {
      if (beta != 0) copy_(to[0], before, {}, stream);
      linalg::matmul_out(to[0], a, b, {.alpha = alpha, .beta = beta, .implementation = implementation}, stream);
    };
    problems.add(std::move(one));
  };
  const Stream& stream = problems.stream();
  auto is_read = [&](DType a, DType b, DType out) {  // by beta
    return problems.is_taken([&] { linalg::matmul_out(problems.none(out, {0, 0}), problems.none(a, {0, 1}), problems.none(b, {1, 0}), {.beta = 2}, stream); });
  };
  auto add_dtypes = [&](DType a, DType b, DType out) {
    auto left = [&](const Dims& sizes) { return problems.random(a, sizes); };
    auto right = [&](const Dims& sizes) { return problems.random(b, sizes); };
    add(left({37, 53}), right({53, 29}), out, 1, 0);
    if (is_read(a, b, out))
      add(left({53, 37}).mT(), right({29, 53}).mT(), out, -3, 2);
    else
      add(left({53, 37}).mT(), right({29, 53}).mT(), out, -3, 0);
    add(left({3, 8, 16}), right({3, 16, 8}), out, 1, 0);
    add(left({1, 300}), right({300, 65}), out, 1, 0);
    add(left({130, 140}), right({140, 150}), out, 1, 0);
  };
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto a = static_cast<DType>(i);
    for (const DType b : problems.dtypes([&](const Tensor& t) { linalg::product_dtype(a, t.dtype()); }))
      for (const DType out : problems.dtypes([&](const Tensor& t) {
             linalg::matmul_out(t.reshape({0, 0}), problems.none(a, {0, 1}), problems.none(b, {1, 0}), {}, stream);
           }))
        add_dtypes(a, b, out);
  }
}

void softmax_problems(PluginProblems& problems, bool logs) {
  const auto out_form = logs ? nn::log_softmax_out : nn::softmax_out;
  const bool fp64 = problems.stream().device().traits().fp64;
  const DType widest = fp64 ? DType::f64 : DType::f32;
  /// `range`: how far elements of a row are from its largest one, at most.
  auto problem = [&](const Tensor& x, DType out, int dim, double range) {
    PluginProblem one{
        .name = fmt::format("{} to {} {} along {}", name(x.dtype()), name(out), to_string(x.sizes()), dim), .inputs = {x}, .outputs = {{out, x.sizes()}}};
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& stream) { out_form(to[0], x, dim, stream); };
    one.exact = [=](std::span<const Tensor> to, const Stream& stream) { out_form(to[0], x.to(widest, {}, stream), dim, stream); };
    one.widest = widest;
    // The contract's, and the store's rounding; without fp64 the own result may be as far off.
    const double eps = x.dtype() == DType::f64 ? 0x1p-53 : 0x1p-24;
    one.bounds = {store_bound(out)};
    // Of a logarithm the error of the sum is absolute.
    (logs ? one.bounds[0].absolute : one.bounds[0].relative) += (range + 46) * (fp64 && x.dtype() != DType::f64 ? 1 : 2) * eps;
    if (out == DType::f32 && x.dtype() == DType::f64) one.bounds[0].relative += 0x1p-24;
    if (logs) one.bounds[0].relative += 4 * eps;
    one.bounds[0].absolute += 0x1p-126;  // what flushing takes
    return one;
  };
  auto add = [&](const Tensor& x, DType out, int dim, bool gaps, double range) {
    PluginProblem one = problem(x, out, dim, range);
    one.outputs[0].gaps = gaps;
    if (gaps) one.name += " with gaps";
    problems.add(std::move(one));
  };
  auto in_place = [&](const Tensor& x) {
    PluginProblem one = problem(x, x.dtype(), 1, 12);
    one.name += " in place";
    one.run = [=](std::span<const Tensor> to, const std::string&, const Stream& stream) {
      copy_(to[0], x, {}, stream);
      out_form(to[0], to[0], 1, stream);
    };
    problems.add(std::move(one));
  };
  const double inf = INFINITY;
  const std::vector<double> special{0, -inf, 5, -30, -inf, -inf, -inf, -inf, inf, 1, -inf, 2, NAN, 0, -inf, inf, 60, 3, 0, -0.0};
  for (const DType dtype : problems.dtypes([&](const Tensor& x) { nn::softmax(x, 0, problems.stream()); })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    in_place(random({7, 90}));
    for (const DType out : problems.dtypes([&](const Tensor& to) { out_form(to, problems.none(dtype), 0, problems.stream()); })) {
      if (!is_floating(out)) continue;  // integers of numbers below 1
      add(random({3, 700}), out, 1, false, 12);
      add(random({700, 6}), out, 0, true, 12);
      add(random({5, 41, 7}), out, -2, false, 12);
      add(random({17, 33}).mT(), out, 1, true, 12);
      add(random({2048}), out, 0, false, 12);
      add(random({4, 1}), out, 1, false, 12);
      add(random({}), out, 0, false, 12);
      add(problems.from_values(dtype, special).reshape({5, 4}), out, 1, false, 64);
    }
  }
}

void flex_problems(PluginProblems& problems) {
  const bool fp64 = problems.stream().device().traits().fp64;
  const DType widest = fp64 ? DType::f64 : DType::f32;
  auto add = [&](const Tensor& q, const Tensor& k, const Tensor& v, attention::FlexOptions options, bool lse) {
    Dims sizes = q.sizes(), lines = q.sizes();
    sizes[3] = v.size(3), lines.erase(3);
    const DType dtype = q.dtype();
    PluginProblem one{.name = fmt::format("{} q {} k {}{}", name(dtype), to_string(q.sizes()), to_string(k.sizes()), lse ? " with lse" : ""),
                      .inputs = {q, k, v},
                      .outputs = {{dtype, sizes}}};
    if (lse) one.outputs.push_back({dtype == DType::f64 ? DType::f64 : DType::f32, lines});
    one.run = [=](std::span<const Tensor> out, const std::string& implementation, const Stream& stream) {
      attention::FlexOptions by = options;
      by.implementation = implementation;
      attention::flex_out({out[0], lse ? out[1] : Tensor(), {}, {}}, q, k, v, by, stream);
    };
    one.exact = [=](std::span<const Tensor> out, const Stream& stream) {
      const auto wide = [&](const Tensor& t) { return t.to(widest, {}, stream); };
      attention::flex_out({out[0], lse ? out[1] : Tensor(), {}, {}}, wide(q), wide(k), wide(v), options, stream);
    };
    one.widest = widest;
    // The contract's 2e-6 of unit-normal tensors at E = 64, growing with E's root and with a scale that makes scores larger, and the store's rounding; without
    // fp64 the own result may be as far off.
    const double root = std::sqrt(static_cast<double>(q.size(3))), grown = std::isnan(options.scale) ? 1 : std::max(1.0, options.scale * root);
    const double own = (fp64 ? 1 : 2) * (dtype == DType::f64 ? 1e-14 : 2e-6) * std::max(1.0, root / 8) * grown;
    const PluginProblem::Bound stored = store_bound(dtype);
    one.bounds = {{own + stored.absolute, stored.relative}, {2 * own, dtype == DType::f64 ? 0x1p-50 : 0x1p-22}};
    problems.add(std::move(one));
  };
  for (const DType dtype : problems.dtypes([&](const Tensor& t) {
         const Tensor x = t.reshape({0, 1, 1, 1});
         attention::flex(x, x, x, {}, problems.stream());
       })) {
    auto random = [&](const Dims& sizes) { return problems.random(dtype, sizes); };
    add(random({2, 3, 37, 64}), random({2, 3, 53, 64}), random({2, 3, 53, 64}), {}, false);
    add(random({1, 2, 1, 64}), random({1, 2, 700, 64}), random({1, 2, 700, 64}), {}, true);
    add(random({2, 4, 20, 32}), random({2, 2, 33, 32}), random({2, 2, 33, 48}), {.enable_gqa = true}, false);
    add(random({1, 25, 3, 64}).transpose(1, 2), random({1, 40, 3, 64}).transpose(1, 2), random({1, 40, 3, 64}).transpose(1, 2), {.scale = 0.3}, true);
    add(random({3, 2, 9, 16}), random({1, 2, 14, 16}), random({1, 2, 14, 16}), {}, false);
    // Callers that take lse ask for it by return_lse, or by the tensor alone.
    for (const bool gqa : {false, true})
      for (const double scale : {attention::kDefaultScale, 0.3})
        for (const bool returned : {false, true})
          for (const bool lse : {false, true})
            add(random({2, 4, 5, 16}), random({2, gqa ? 2 : 4, 11, 16}), random({2, gqa ? 2 : 4, 11, 8}),
                {.scale = scale, .enable_gqa = gqa, .return_lse = returned}, lse);
  }
}

}  // namespace

PluginProblem::Bound store_bound(DType dtype) {
  switch (dtype) {
    case DType::f16: return {0x1p-25, 0x1p-11};
    case DType::bf16: return {0, 0x1p-8};
    default: return {};
  }
}

PluginProblems::PluginProblems(const Stream& stream)
    : stream_(stream), random_(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())) {}

Tensor PluginProblems::random(DType dtype, const Dims& sizes) {
  const std::int64_t n = numel(sizes);
  const auto bytes = static_cast<std::size_t>(bits(dtype) / 8);
  std::vector<std::uint8_t> all(static_cast<std::size_t>(n) * bytes);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < all.size(); i += bytes) {
    if (is_floating(dtype) || is_complex(dtype)) {
      put(&all[i], dtype, normal(random_));
      if (is_complex(dtype)) put(&all[i + bytes / 2], dtype, normal(random_));
      continue;
    }
    std::uint64_t whole = random_();
    if (dtype == DType::boolean)
      whole &= 1;
    else if (i / bytes % 4 != 0)
      whole = kDTypes[static_cast<std::size_t>(dtype)].is_signed ? whole % 80 - 40 : whole % 80;
    for (std::size_t k = 0; k < bytes; ++k) all[i + k] = static_cast<std::uint8_t>(whole >> (8 * k));
  }
  return from_bytes(all.data(), all.size(), sizes, {.dtype = dtype, .device = stream_.device()}, stream_);
}

Tensor PluginProblems::special(DType dtype, std::int64_t n) {
  std::vector<double> values{0.0, -0.0, INFINITY, -INFINITY, 1, -3, 60000, 3e38};
  if (stream_.device().traits().denormals) values.insert(values.end(), {1e-40, -6e-8});
  std::vector<double> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(values[random_() % values.size()]);
  return from_values(dtype, all);
}

Tensor PluginProblems::from_values(DType dtype, std::span<const double> values) {
  const auto bytes = static_cast<std::size_t>(bits(dtype) / 8);
  std::vector<std::uint8_t> all(values.size() * bytes);
  for (std::size_t i = 0; i < values.size(); ++i) put(&all[i * bytes], dtype, values[i]);
  return from_bytes(all.data(), all.size(), {static_cast<std::int64_t>(values.size())}, {.dtype = dtype, .device = stream_.device()}, stream_);
}

void add_problems(PluginProblems& problems, std::string_view op) {
  if (op == "addcdiv") addc_problems(problems, true);
  if (op == "addcmul") addc_problems(problems, false);
  if (op == "cumsum") cumsum_problems(problems);
  if (op == "sort") sort_problems(problems);
  if (op == "linalg::matmul") matmul_problems(problems);
  if (op == "attention::flex") flex_problems(problems);
  if (op == "fill_") fill_problems(problems);
  if (op == "cat") cat_problems(problems);
  if (op == "sum") reduce_problems(problems, {sum, sum_out});
  if (op == "prod") reduce_problems(problems, {prod, prod_out});
  if (op == "amin") reduce_problems(problems, {amin, amin_out, false});
  if (op == "amax") reduce_problems(problems, {amax, amax_out, false});
  if (op == "mean") reduce_problems(problems, {mean, mean_out});
  if (op == "nn::softmax") softmax_problems(problems, false);
  if (op == "nn::log_softmax") softmax_problems(problems, true);
  if (op == "copy_") copy_problems(problems);
  if (op == "map") map_problems(problems);
  if (op == "topk") topk_problems(problems);
  if (op == "nonzero_static") nonzero_problems(problems);
  if (op == "group_by") group_problems(problems);
  if (op == "gather") gather_problems(problems);
  if (op == "scatter_reduce") scatter_problems(problems);
  if (op == "index") index_problems(problems);
  if (op == "index_put") index_put_problems(problems);
  if (op == "segment_reduce") segment_problems(problems);
  if (op == "sparse::spmm") spmm_problems(problems);
  if (op == "sparse::matmul") sparse_matmul_problems(problems);
  if (op == "linalg::eigh") eigh_problems(problems, true);
  if (op == "linalg::eigvalsh") eigh_problems(problems, false);
  if (op == "uniform_") draw_problems(problems, false);
  if (op == "normal_") draw_problems(problems, true);
  if (op.starts_with("optim::")) optim_problems(problems, op);
  if (op == "reduce") reduction_problems(problems);
  if (op == "linalg::matmul_function") product_problems(problems);
  if (op == "selective_scan") scan_problems(problems);
  if (op == "selective_scan_backward") scan_gradient_problems(problems);
  if (op == "nn::softmax_backward") softmax_gradient_problems(problems, false);
  if (op == "nn::log_softmax_backward") softmax_gradient_problems(problems, true);
  if (op == "nn::layer_norm_backward") norm_gradient_problems(problems, true);
  if (op == "nn::rms_norm_backward") norm_gradient_problems(problems, false);
  if (op == "rowwise") rows_problems(problems);
  if (op == "nn::layer_norm") norm_problems(problems, true);
  if (op == "nn::rms_norm") norm_problems(problems, false);
  if (op == "nn::cross_entropy") cross_entropy_problems(problems);
  if (op == "nn::cross_entropy_backward") cross_entropy_gradient_problems(problems);
  if (op == "kthvalue") kthvalue_problems(problems);
  if (op == "nn::embedding") embedding_problems(problems);
  if (op == "nn::embedding_backward") embedding_gradient_problems(problems);
}

bool has_functions(std::string_view op) { return op == "map" || op == "reduce" || op == "rowwise" || op == "linalg::matmul_function"; }

void add_problems_of_call(PluginProblems& problems, std::string_view op, std::span<const void* const> arguments) {
  auto dtypes = [&](std::size_t i) {
    std::vector<DType> all;
    for (const Tensor& t : *static_cast<const std::span<const Tensor>*>(arguments[i])) all.push_back(t.dtype());
    return all;
  };
  auto dtype = [&](std::size_t i) { return static_cast<const Tensor*>(arguments[i])->dtype(); };
  if (op == "reduce")
    return reduction_problems(problems, *static_cast<const Reduce*>(arguments[1]), *static_cast<const ExprFunction*>(arguments[2]), dtype(0), dtypes(3),
                              *static_cast<const ReduceOptions*>(arguments[4]));
  if (op == "linalg::matmul_function")
    return product_problems(problems, *static_cast<const ExprFunction*>(arguments[3]), dtype(0), dtype(1),
                            static_cast<const linalg::MatrixOperand*>(arguments[2])->tensor()->dtype(), dtypes(4));
  if (op == "rowwise") return rows_problems(problems, *static_cast<const RowFunction*>(arguments[1]), dtypes(0), dtypes(2));
  function_problems(problems, *static_cast<const ExprFunction*>(arguments[1]), dtypes(0), dtypes(2));
}

}}}  // namespace clutch::v0::detail
