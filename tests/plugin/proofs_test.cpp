// SPDX-License-Identifier: Apache-2.0
// The problems that plugins' implementations are proved by: they have each dtype and option that an op takes, and find an implementation that is wrong in one.
#include "plugin/proofs.hpp"

#include "capi/plugin_calls.hpp"
#include "plugin/problems.hpp"
#include "support/fixture.hpp"

#include <map>

namespace clutch::testing { namespace {

using detail::PluginImplementation;
using Arguments = std::span<const void* const>;

template <class T>
const T& at(Arguments a, std::size_t i) {
  return *static_cast<const T*>(a[i]);
}
template <class Options>
Options own(Arguments a, std::size_t i) {
  Options options = at<Options>(a, i);
  options.implementation.clear();
  return options;
}

/// What the tests know of an op that plugins may implement.
struct Op {
  std::string_view function;
  /// The library's own.
  void (*run)(Arguments a);
  /// The output that a lie spoils.
  const Tensor& (*output)(Arguments a);
  /// Calls that proofs must have, as PluginImplementation::call_of() tells them; a call that the op's own checks refuse is left out.
  std::set<std::string> (*calls)(const Device& device);
  std::string_view rare;  ///< a call that few plugins are written for; empty: the last one
  bool by_day = true;     ///< lies are sought by day, too; kin of an op for which they are wait for the night
};

const Tensor& first(Arguments a) { return at<Tensor>(a, 0); }
Tensor none(DType dtype, const Device& device, const Dims& sizes = {0}) { return empty(sizes, {.dtype = dtype, .device = device}); }

template <class Call>
bool takes(const Call& call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_dtype) << error.what();
    return false;
  }
}
std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

template <auto kOp>
std::set<std::string> addc_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType dtype : all_dtypes()) {
    const Tensor x = none(dtype, device);
    if (takes([&] { kOp(x, x, x, {}, {}); }))
      for (int order = 0; order < 3; ++order) all.insert(fmt::format("{0} {0} {0} {0} order {1}", name(dtype), order));
  }
  return all;
}
std::set<std::string> cumsum_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())
      if (takes([&] { cumsum_out(none(out, device), none(x, device)); }))
        for (const char* end : {"", " reverse"}) all.insert(fmt::format("{} {}{}", name(out), name(x), end));
  return all;
}
std::set<std::string> sort_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { sort(none(x, device)); }))
      for (const char* end : {"", " descending"}) all.insert(fmt::format("{0} i64 {0}{1}", name(x), end));
  return all;
}
std::set<std::string> fill_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { fill_(none(x, device), 2.5); })) all.insert(std::string(name(x)));
  return all;
}
std::set<std::string> cat_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { cat(std::vector<Tensor>{none(x, device), none(x, device)}); })) all.insert(fmt::format("{0} {0}", name(x)));
  return all;
}
template <auto kOut, bool kOfBool = true>
std::set<std::string> reduce_calls(const Device& device) {
  std::set<std::string> all;
  // Of complex numbers a call for each part.
  const auto part = [](DType dtype) { return name(dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype); };
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())
      if ((kOfBool || x != DType::boolean) && takes([&] { kOut(none(out, device, {0, 1}), none(x, device, {0, 3}), {.dims = {1}, .keepdim = true}, {}); }))
        for (const char* end : {"", " keepdim"}) all.insert(fmt::format("{} {}{}", part(out), part(x), end));
  return all;
}
template <auto kOut>
std::set<std::string> softmax_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())  // whole numbers of parts of 1 are left to the library
      if (is_floating(out) && takes([&] { kOut(none(out, device, {4, 0}), none(x, device, {4, 0}), -1, {}); }))
        all.insert(fmt::format("{} {}", name(out), name(x)));
  return all;
}
std::set<std::string> matmul_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType a : all_dtypes())
    for (const DType b : all_dtypes())
      for (const DType out : all_dtypes())
        if (takes([&] { linalg::matmul_out(none(out, device, {2, 0}), none(a, device, {2, 4}), none(b, device, {4, 0})); }))
          all.insert(fmt::format("{} {} {} numerics 0", name(out), name(a), name(b)));
  return all;
}
std::set<std::string> flex_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType dtype : all_dtypes()) {
    const Tensor x = none(dtype, device, {0, 2, 4, 8});
    if (!takes([&] { attention::flex(x, x, x); })) continue;
    for (const char* scale : {"", " scale"})
      for (const char* gqa : {"", " enable_gqa"})
        for (const char* returned : {"", " return_lse"})
          for (const bool lse : {false, true})
            all.insert(fmt::format("{0} {1} none none {0} {0} {0}{2}{3}{4} none none none none numerics 0", name(dtype),
                                   !lse                  ? "none"
                                   : dtype == DType::f64 ? "f64"
                                                         : "f32",
                                   scale, gqa, returned));
  }
  return all;
}

std::set<std::string> copy_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType to : all_dtypes())
    for (const DType from : all_dtypes())
      for (const int overflow : {0, 1})
        if (!is_packed(to) && !is_packed(from) && takes([&] { copy_(none(to, device), none(from, device), {.overflow = static_cast<Overflow>(overflow)}); }))
          all.insert(fmt::format("{} {} overflow {}", name(to), name(from), overflow));
  return all;
}
std::set<std::string> map_calls(const Device& device) {
  std::set<std::string> all;
  const auto least = [](Expr x, Expr y) { return select(x < y, x, y); };
  const auto line = [](Expr x, Expr y) { return x * param(3) + y; };
  for (const DType dtype : all_dtypes()) {
    const Tensor both[] = {none(dtype, device), none(dtype, device)};
    if (!takes([&] { map(least, {both[0], both[1]}); })) continue;
    all.insert(fmt::format("{0} {1} {0} {0}", name(dtype), detail::trace_over<2>(least, both, "map").text()));
    if (is_floating(dtype)) all.insert(fmt::format("{0} {1} {0} {0}", name(dtype), detail::trace_over<2>(line, both, "map").text()));
  }
  return all;
}
std::set<std::string> topk_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { topk(none(x, device), 0, 0); }))
      for (const char* end : {"", " largest"}) all.insert(fmt::format("{0} i64 {0}{1}", name(x), end));
  return all;
}
std::set<std::string> nonzero_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { nonzero_static(none(x, device), 0); })) all.insert(fmt::format("i64 {}", name(x)));
  return all;
}
std::set<std::string> group_calls(const Device& /*device*/) { return {"i32 i32 i32", "i32 i32 i64"}; }

constexpr const char* kIndices[] = {"i32", "i64"};

std::set<std::string> gather_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { gather(none(x, device), 0, none(DType::i64, device)); }))
      for (const char* index : kIndices) all.insert(fmt::format("{0} {0} {1}", name(x), index));
  return all;
}
std::set<std::string> scatter_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const int reduce : {0, 1, 2, 3, 4})
      if (takes([&] { scatter_reduce(none(x, device), 0, none(DType::i64, device), none(x, device), {.reduce = static_cast<Reduce>(reduce)}); }))
        for (const char* index : kIndices)
          for (const char* end : {"", " include_self"}) all.insert(fmt::format("{0} {0} {1} {0} reduce {2}{3}", name(x), index, reduce, end));
  return all;
}
std::set<std::string> index_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { index(none(x, device), {none(DType::i64, device)}); }))
      for (const char* indices : {"i32", "i64", "none i32", "none i64", "bool"}) all.insert(fmt::format("{0} {0} {1}", name(x), indices));
  return all;
}
std::set<std::string> index_put_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const bool accumulate : {false, true})
      if (takes([&] { index_put(none(x, device), {none(DType::i64, device)}, none(x, device), {.accumulate = accumulate}); }))
        for (const char* indices : {"i32", "i64", "none i32", "none i64"})
          all.insert(fmt::format("{0} {0} {1} {0}{2}", name(x), indices, accumulate ? " accumulate" : ""));
  return all;
}
std::set<std::string> segment_calls(const Device& device) {
  std::set<std::string> all;
  const Tensor offsets = zeros({2}, {.dtype = DType::i64, .device = device});
  for (const DType x : all_dtypes())
    if (takes([&] { segment_reduce(none(x, device, {0, 0}), offsets); }))
      for (const char* of : kIndices)
        for (int reduce = 0; reduce < 5; ++reduce)
          for (const char* end : {"", " initial"}) all.insert(fmt::format("{0} {0} {1} reduce {2}{3}", name(x), of, reduce, end));
  return all;
}
std::set<std::string> spmm_calls(const Device& device) {
  std::set<std::string> all;
  const Tensor offsets = zeros({2}, {.dtype = DType::i64, .device = device});
  for (const DType x : all_dtypes())
    if (takes([&] { sparse::spmm({.offsets = offsets, .columns = none(DType::i64, device), .width = 0}, none(x, device, {0, 0})); }))
      for (const char* of : kIndices)
        for (const char* columns : kIndices)
          for (int reduce = 0; reduce < 5; ++reduce)
            for (const bool values : {false, true})
              all.insert(fmt::format("{0} {1} {2} {3} {0} reduce {4}", name(x), of, columns, values ? name(x) : "none", reduce));
  return all;
}
std::set<std::string> sparse_matmul_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType w : all_dtypes()) {
    if (!takes([&] { sparse::prune_2_4(none(w, device, {0, 32})); })) continue;
    const sparse::SemiStructured matrix = sparse::compress(none(w, device, {0, 32}));
    for (const DType b : all_dtypes())
      for (const DType out : all_dtypes())
        if (takes([&] { sparse::matmul_out(none(out, device, {0, 0}), matrix, none(b, device, {32, 0})); }))
          all.insert(fmt::format("{} {} {} numerics 0", name(out), name(w), name(b)));
  }
  return all;
}
template <bool kVectors>
std::set<std::string> eigh_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType a : all_dtypes())
    if (a != DType::f16 && a != DType::bf16 && takes([&] { linalg::eigh(none(a, device, {0, 2, 2})); }))
      for (const int uplo : {0, 1})
        all.insert(fmt::format("{0}{1} i32 i32 {2} uplo {3} driver 0 phase 0 accuracy 0",
                               name(a == DType::c64    ? DType::f32
                                    : a == DType::c128 ? DType::f64
                                                       : a),
                               kVectors ? fmt::format(" {}", name(a)) : "", name(a), uplo));
  return all;
}
template <auto kOp>
std::set<std::string> draw_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { kOp(none(x, device), {.seed = 1}, {}); })) all.insert(fmt::format("{} seed", name(x)));
  return all;
}
/// Of a step with lists of `states`, each a letter: x is given, - is not; with what is set of its options.
std::set<std::string> step_calls(const Device& device, const std::vector<std::pair<std::string, std::string>>& rows) {
  std::set<std::string> all;
  for (const DType x : {DType::f32, DType::f16, DType::bf16, DType::f64})
    for (const auto& [states, set] : rows) {
      if (x == DType::f64 && !device.traits().fp64) continue;
      std::string text = fmt::format("{0} {0}", name(x));
      for (const char c : states) text += fmt::format(" {}", c == 'x' ? name(x) : "none");
      all.insert(fmt::format("{} f32{} numerics 0 state 0 rounding 0 none none none none norm_type 0", text, set));
    }
  return all;
}
std::set<std::string> sgd_calls(const Device& device) {
  return step_calls(device, {{"-", ""}, {"-", " maximize"}, {"x", ""}, {"x", " maximize"}, {"x", " nesterov"}, {"x", " nesterov maximize"}});
}
std::set<std::string> adam_calls(const Device& device) {
  return step_calls(device, {{"xx-", ""},
                             {"xx-", " maximize"},
                             {"xx-", " maximize decoupled_weight_decay"},
                             {"xxx", " amsgrad"},
                             {"xxx", " amsgrad maximize"},
                             {"xxx", " amsgrad maximize decoupled_weight_decay"}});
}
std::set<std::string> adamw_calls(const Device& device) {
  return step_calls(device, {{"xx-", ""}, {"xx-", " maximize"}, {"xxx", " amsgrad"}, {"xxx", " amsgrad maximize"}});
}
std::set<std::string> adagrad_calls(const Device& device) { return step_calls(device, {{"x", ""}, {"x", " maximize"}}); }
std::set<std::string> rmsprop_calls(const Device& device) {
  return step_calls(device, {{"x--", ""}, {"x--", " maximize"}, {"xxx", " centered"}, {"xxx", " centered maximize"}});
}

std::set<std::string> function_reduce_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes()) {
    const Tensor lines = none(x, device, {0, 1});
    const Tensor both[] = {lines, lines};
    const auto square = [](Expr v) { return v * v; };
    if (!takes([&] { reduce(Reduce::sum, square, lines, {.dims = {1}}); })) continue;
    const DType last = x == DType::f64 ? DType::f64 : DType::f32;
    const Tensor of_last = none(last, device);
    const std::string one = detail::trace_over<1>(square, std::span(&lines, 1), "reduce").text(),
                      two = detail::trace_over<2>([](Expr v, Expr w) { return v * param(4) + w; }, both, "reduce").text(),
                      after = detail::trace_over<1>([](Expr v) { return v + v; }, std::span(&of_last, 1), "reduce").text();
    for (const Reduce op : {Reduce::sum, Reduce::amax}) {
      const std::string head = fmt::format("{} op {}", name(reduce(op, square, lines, {.dims = {1}}).dtype()), static_cast<int>(op));
      for (const char* end : {"", " keepdim"}) all.insert(fmt::format("{} {} {}{}", head, one, name(x), end));
      if (!is_floating(x)) continue;
      all.insert(fmt::format("{0} {1} {2} {2}", head, two, name(x)));
      all.insert(fmt::format("{} {} {} after {}", head, one, name(x), after));
    }
  }
  return all;
}
std::set<std::string> function_matmul_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes()) {
    if (is_complex(x) || !takes([&] { linalg::product_dtype(x, x); })) continue;
    const DType product = linalg::product_dtype(x, x);
    const Tensor both[] = {none(product, device), none(product, device)};
    const ExprFunction one = detail::trace_over<1>([](Expr v) { return select(v < 0, 0, v); }, std::span(both).first(1), "matmul"),
                       two = detail::trace_over<2>([](Expr v, Expr w) { return v * param(3) + w; }, both, "matmul");
    const Tensor more = none(product, device, {0, 0});
    if (!takes([&] { linalg::matmul_out(none(product, device, {0, 0}), none(x, device, {0, 2}), none(x, device, {2, 0}), two, std::span(&more, 1)); }))
      continue;
    all.insert(fmt::format("{0} {1} {1} {2} numerics 0", name(product), name(x), one.text()));
    all.insert(fmt::format("{0} {1} {1} {2} {0} numerics 0", name(product), name(x), two.text()));
  }
  return all;
}
/// Of scans: what each set of further tensors makes of a head of results and a tail of options.
template <class Row>
std::set<std::string> scan_calls(const Row& row) {
  std::set<std::string> all;
  for (const DType x : {DType::f32, DType::f16, DType::bf16})
    for (const DType shared : {DType::f32, DType::f16, DType::bf16})
      for (int set = 0; set < 64; ++set)
        if ((x == DType::f32 && shared == DType::f32) || set == 0 || set == 63) {
          auto has = [&](int bit, DType dtype) { return set >> bit & 1 ? name(dtype) : "none"; };
          const std::string given = fmt::format("{0} {0} f32 {1} {1} {2} {3} {4}{5} {6}", name(x), name(shared), has(0, DType::f32), has(1, x),
                                                has(2, DType::f32), set >> 3 & 1 ? " delta_softplus" : "", has(4, DType::f32));
          all.insert(fmt::format("{} {}", row(x, shared, has), given));
        }
  return all;
}
std::set<std::string> forward_scan_calls(const Device& /*device*/) {
  return scan_calls([](DType x, DType, const auto& has) { return fmt::format("{} {}", name(x), has(5, DType::f32)); });
}
std::set<std::string> backward_scan_calls(const Device& /*device*/) {
  return scan_calls([](DType x, DType shared, const auto& has) {
    return fmt::format("{0} {0} f32 {1} {1} {2} {3} {4} {5} {0} {6}", name(x), name(shared), has(0, DType::f32), has(1, x), has(2, DType::f32),
                       has(4, DType::f32), has(5, DType::f32));
  });
}
template <auto kOut>
std::set<std::string> softmax_gradient_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())
      if (is_floating(out) && takes([&] { kOut(none(out, device, {4, 0}), none(x, device, {4, 0}), none(x, device, {4, 0}), -1, {}); }))
        all.insert(fmt::format("{0} {1} {1}", name(out), name(x)));
  return all;
}

std::set<std::string> norm_gradient_calls(const Device& device, bool layers) {
  std::set<std::string> all;
  for (const DType x : all_dtypes()) {
    if (!takes([&] { nn::rms_norm(none(x, device, {0, 4})); })) continue;
    const std::string t(name(x)), rows(layers ? fmt::format("{0} {0}", x == DType::f64 ? "f64" : "f32") : x == DType::f64 ? "f64" : "f32");
    for (const std::string& weight : {t, std::string("none")}) all.insert(fmt::format("{0} {1}{2} {0} {0} {3} {1}", t, weight, layers ? " " + t : "", rows));
  }
  return all;
}
std::set<std::string> layer_norm_gradient_calls(const Device& device) { return norm_gradient_calls(device, true); }
std::set<std::string> rms_norm_gradient_calls(const Device& device) { return norm_gradient_calls(device, false); }

std::set<std::string> rows_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes()) {
    const Tensor lines[] = {none(x, device, {0, 3}), none(x, device, {0, 3})};
    const auto below = [](Row& row, Expr v) { return v - row.max(v); };
    if (!takes([&] { rowwise(below, {lines[0]}); })) continue;
    const std::vector<DType> traced = traced_dtypes(lines);
    const RowFunction one = trace_rows(below, std::array{traced[0]});
    all.insert(fmt::format("{} {} {}", name(rowwise(one, std::span(lines).first(1))[0].dtype()), one.text(), name(x)));
    if (!is_floating(x)) continue;
    const auto shifted = [](Row& row, Expr v, Expr w) {
      Expr total = row.sum(v * w);
      row.result(total);
      return v * param(7) + total;
    };
    const RowFunction two = trace_rows(shifted, std::array{traced[0], traced[1]});
    const std::vector<Tensor> made = rowwise(two, lines);
    all.insert(fmt::format("{0} {1} {2} {3} {3}", name(made[0].dtype()), name(made[1].dtype()), two.text(), name(x)));
  }
  return all;
}
template <bool kLayers>
std::set<std::string> norm_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes()) {
    if (!takes([&] { nn::rms_norm(none(x, device, {0, 4})); })) continue;
    const std::string t(name(x)), kept = x == DType::f64 ? "f64" : "f32";
    const std::set<std::string> weights{"none", t, x == DType::f64 ? t : "f32"};
    for (const std::string& weight : weights)
      for (const std::string& bias : weights) {
        if (weight != "none" && bias != "none" && weight != bias) continue;
        if (kLayers) all.insert(fmt::format("{0} {1} {1} {0} {2} {3}", t, kept, weight, bias));
        if (!kLayers && bias == "none") all.insert(fmt::format("{0} {1} {0} {2}", t, kept, weight));
      }
  }
  return all;
}
/// Of cross entropy: what a row makes of the dtypes of the logits, of what is kept and of the target, and of the rest.
template <class Row>
std::set<std::string> classes_calls(const Device& device, const Row& row) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType target : all_dtypes()) {
      const Tensor logits = none(x, device, {0, 4});
      if (is_packed(target)) continue;  // their elements are no bytes, which plugins' kernels have no word for
      if (!takes([&] { nn::cross_entropy(logits, none(target, device, is_floating(target) ? Dims{0, 4} : Dims{0})); })) continue;
      for (const std::string& weight : {std::string("none"), std::string(name(x))})
        for (int reduction = 0; reduction < 3; ++reduction)
          all.insert(row(name(x), x == DType::f64 ? "f64" : "f32", name(target), fmt::format("{} reduction {}", weight, reduction)));
    }
  return all;
}
std::set<std::string> cross_entropy_calls(const Device& device) {
  return classes_calls(device, [](auto x, auto kept, auto target, const auto& rest) { return fmt::format("{0} {1} {1} {0} {2} {3}", x, kept, target, rest); });
}
std::set<std::string> cross_entropy_gradient_calls(const Device& device) {
  return classes_calls(device,
                       [](auto x, auto kept, auto target, const auto& rest) { return fmt::format("{0} {0} {0} {2} none {1} {1} {3}", x, kept, target, rest); });
}
std::set<std::string> kthvalue_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    if (takes([&] { kthvalue(none(x, device, {0, 2}), 1); }))
      for (const char* end : {"", " keepdim"}) all.insert(fmt::format("{0} i64 {0}{1}", name(x), end));
  return all;
}
template <bool kGradient>
std::set<std::string> embedding_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType index : all_dtypes()) {
      if (is_packed(x)) continue;
      const Tensor rows = none(x, device, {0, 4}), numbers = none(index, device);
      if (!kGradient && takes([&] { nn::embedding(rows, numbers); })) all.insert(fmt::format("{0} {0} {1}", name(x), name(index)));
      if (kGradient && takes([&] { nn::embedding_backward(rows, numbers, 0); }))
        for (const char* end : {"", " scale_by_frequency"}) all.insert(fmt::format("{0} {0} {1}{2}", name(x), name(index), end));
    }
  return all;
}

using List = std::span<const Tensor>;
const Tensor& first_of_list(Arguments a) { return at<List>(a, 0)[0]; }
template <auto kOut>
void reduce_into(Arguments a) {
  kOut(first(a), at<Tensor>(a, 1), own<ReduceOptions>(a, 2), at<Stream>(a, 3));
}

const Op kOps[] = {
    {"addcdiv_out", [](Arguments a) { addcdiv_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), own<AddcOptions>(a, 4), at<Stream>(a, 5)); },
     first, addc_calls<addcdiv>, "bf16 bf16 bf16 bf16 order 2"},
    {"addcmul_out", [](Arguments a) { addcmul_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), own<AddcOptions>(a, 4), at<Stream>(a, 5)); },
     first, addc_calls<addcmul>, "u32 u32 u32 u32 order 1"},
    {"cumsum_out", [](Arguments a) { cumsum_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), own<CumsumOptions>(a, 3), at<Stream>(a, 4)); }, first, cumsum_calls,
     "u64 u16 reverse"},
    {"sort_out", [](Arguments a) { sort_out(at<Sorted>(a, 0), at<Tensor>(a, 1), at<int>(a, 2), own<SortOptions>(a, 3), at<Stream>(a, 4)); },
     [](Arguments a) -> const Tensor& { return at<Sorted>(a, 0).indices; }, sort_calls, "bool i64 bool descending"},
    {"linalg_matmul_out",
     [](Arguments a) { linalg::matmul_out(first(a), at<Tensor>(a, 1), at<linalg::MatrixOperand>(a, 2), own<linalg::MatmulOptions>(a, 3), at<Stream>(a, 4)); },
     first, matmul_calls, "i32 u8 i8 numerics 0"},
    {"attention_flex_out",
     [](Arguments a) {
       attention::flex_out(at<attention::FlexResult>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), own<attention::FlexOptions>(a, 4),
                           at<Stream>(a, 5));
     },
     [](Arguments a) -> const Tensor& { return at<attention::FlexResult>(a, 0).out; }, flex_calls,
     "bf16 f32 none none bf16 bf16 bf16 scale enable_gqa return_lse none none none none numerics 0"},
    {"fill_", [](Arguments a) { fill_(first(a), at<double>(a, 1), own<FillOptions>(a, 2), at<Stream>(a, 3)); }, first, fill_calls, "f8e8m0fnu"},
    {"cat_out", [](Arguments a) { cat_out(first(a), at<std::span<const Tensor>>(a, 1), at<int>(a, 2), own<CatOptions>(a, 3), at<Stream>(a, 4)); }, first,
     cat_calls, "c64 c64"},
    {"sum_out", reduce_into<sum_out>, first, reduce_calls<sum_out>, "u8 u16 keepdim"},
    {"prod_out", reduce_into<prod_out>, first, reduce_calls<prod_out>, "i64 u8", false},
    {"amin_out", reduce_into<amin_out>, first, reduce_calls<amin_out, false>, "i16 i16 keepdim", false},
    {"amax_out", reduce_into<amax_out>, first, reduce_calls<amax_out, false>, "bf16 bf16", false},
    {"mean_out", reduce_into<mean_out>, first, reduce_calls<mean_out>, "f16 f16 keepdim", false},
    {"nn_softmax_out", [](Arguments a) { nn::softmax_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), at<Stream>(a, 3)); }, first, softmax_calls<nn::softmax_out>,
     "bf16 f16"},
    {"nn_log_softmax_out", [](Arguments a) { nn::log_softmax_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), at<Stream>(a, 3)); }, first,
     softmax_calls<nn::log_softmax_out>, "f32 bf16", false},
    {"copy_", [](Arguments a) { copy_(first(a), at<Tensor>(a, 1), own<CopyOptions>(a, 2), at<Stream>(a, 3)); }, first, copy_calls, "u16 f64 overflow 1"},
    {"map_out",
     [](Arguments a) { map_out(at<List>(a, 0), at<ExprFunction>(a, 1), at<List>(a, 2), own<MapOptions>(a, 3), at<Stream>(a, 4)); },
     first_of_list,
     map_calls,
     {}},
    {"topk_out",
     [](Arguments a) { topk_out(at<Sorted>(a, 0), at<Tensor>(a, 1), at<std::int64_t>(a, 2), at<int>(a, 3), own<TopkOptions>(a, 4), at<Stream>(a, 5)); },
     [](Arguments a) -> const Tensor& { return at<Sorted>(a, 0).values; }, topk_calls, "i8 i64 i8 largest"},
    {"nonzero_static_out",
     [](Arguments a) { nonzero_static_out(first(a), at<Tensor>(a, 1), at<std::int64_t>(a, 2), own<NonzeroStaticOptions>(a, 3), at<Stream>(a, 4)); }, first,
     nonzero_calls, "i64 c128"},
    {"group_by_out", [](Arguments a) { group_by_out(at<Groups>(a, 0), at<Tensor>(a, 1), at<std::int64_t>(a, 2), own<GroupOptions>(a, 3), at<Stream>(a, 4)); },
     [](Arguments a) -> const Tensor& { return at<Groups>(a, 0).order; }, group_calls, "i32 i32 i64"},
    {"gather_out", [](Arguments a) { gather_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), at<Tensor>(a, 3), at<Stream>(a, 4)); }, first, gather_calls,
     "u8 u8 i64"},
    {"scatter_reduce_out",
     [](Arguments a) {
       scatter_reduce_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), at<Tensor>(a, 3), at<Tensor>(a, 4), own<ScatterOptions>(a, 5), at<Stream>(a, 6));
     },
     first, scatter_calls, "f16 f16 i64 f16 reduce 3"},
    {"index_out", [](Arguments a) { index_out(first(a), at<Tensor>(a, 1), at<List>(a, 2), at<Stream>(a, 3)); }, first, index_calls, "c64 c64 none i32"},
    {"index_put_out",
     [](Arguments a) { index_put_out(first(a), at<Tensor>(a, 1), at<List>(a, 2), at<Tensor>(a, 3), at<IndexPutOptions>(a, 4), at<Stream>(a, 5)); }, first,
     index_put_calls, "u16 u16 i32 u16 accumulate"},
    {"segment_reduce_out", [](Arguments a) { segment_reduce_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), own<SegmentOptions>(a, 3), at<Stream>(a, 4)); },
     first, segment_calls, "bf16 bf16 i64 reduce 4 initial"},
    {"sparse_spmm_out",
     [](Arguments a) { sparse::spmm_out(first(a), at<sparse::Csr>(a, 1), at<Tensor>(a, 2), own<sparse::SpmmOptions>(a, 3), at<Stream>(a, 4)); }, first,
     spmm_calls, "f32 i64 i32 none f32 reduce 3"},
    {"sparse_matmul_out",
     [](Arguments a) { sparse::matmul_out(first(a), at<sparse::SemiStructured>(a, 1), at<Tensor>(a, 2), own<linalg::MatmulOptions>(a, 3), at<Stream>(a, 4)); },
     first, sparse_matmul_calls, "f32 bf16 bf16 numerics 0"},
    {"linalg_eigh_out",
     [](Arguments a) {
       linalg::eigh_out(first(a), at<Tensor>(a, 1), at<linalg::EighStatus>(a, 2), at<Tensor>(a, 3), at<linalg::EighOptions>(a, 4), at<Stream>(a, 5));
     },
     [](Arguments a) -> const Tensor& { return at<Tensor>(a, 1); }, eigh_calls<true>, "f32 f32 i32 i32 f32 uplo 1 driver 0 phase 0 accuracy 0"},
    {"uniform_", [](Arguments a) { uniform_(first(a), at<UniformOptions>(a, 1), at<Stream>(a, 2)); }, first, draw_calls<uniform_>, "f16 seed"},
    {"normal_", [](Arguments a) { normal_(first(a), at<NormalOptions>(a, 1), at<Stream>(a, 2)); }, first, draw_calls<normal_>, "bf16 seed", false},
    {"optim_sgd_",
     [](Arguments a) {
       optim::sgd_(at<List>(a, 0), at<List>(a, 1), at<List>(a, 2), at<Tensor>(a, 3), at<optim::SGDOptions>(a, 4), at<optim::StepOptions>(a, 5),
                   at<Stream>(a, 6));
     },
     first_of_list,
     sgd_calls,
     {},
     false},
    {"optim_adam_",
     [](Arguments a) {
       optim::adam_(at<List>(a, 0), at<List>(a, 1), at<List>(a, 2), at<List>(a, 3), at<List>(a, 4), at<Tensor>(a, 5), at<optim::AdamOptions>(a, 6),
                    at<optim::StepOptions>(a, 7), at<Stream>(a, 8));
     },
     first_of_list,
     adam_calls,
     {},
     false},
    {"optim_adamw_",
     [](Arguments a) {
       optim::adamw_(at<List>(a, 0), at<List>(a, 1), at<List>(a, 2), at<List>(a, 3), at<List>(a, 4), at<Tensor>(a, 5), at<optim::AdamWOptions>(a, 6),
                     at<optim::StepOptions>(a, 7), at<Stream>(a, 8));
     },
     first_of_list,
     adamw_calls,
     {}},
    {"optim_adagrad_",
     [](Arguments a) {
       optim::adagrad_(at<List>(a, 0), at<List>(a, 1), at<List>(a, 2), at<Tensor>(a, 3), at<optim::AdagradOptions>(a, 4), at<optim::StepOptions>(a, 5),
                       at<Stream>(a, 6));
     },
     first_of_list,
     adagrad_calls,
     {},
     false},
    {"optim_rmsprop_",
     [](Arguments a) {
       optim::rmsprop_(at<List>(a, 0), at<List>(a, 1), at<List>(a, 2), at<List>(a, 3), at<List>(a, 4), at<Tensor>(a, 5), at<optim::RMSpropOptions>(a, 6),
                       at<optim::StepOptions>(a, 7), at<Stream>(a, 8));
     },
     first_of_list,
     rmsprop_calls,
     {},
     false},
    {"reduce_out",
     [](Arguments a) { reduce_out(first(a), at<Reduce>(a, 1), at<ExprFunction>(a, 2), at<List>(a, 3), own<ReduceOptions>(a, 4), at<Stream>(a, 5)); },
     first,
     function_reduce_calls,
     {}},
    {"linalg_matmul_function_out",
     [](Arguments a) {
       linalg::matmul_out(first(a), at<Tensor>(a, 1), at<linalg::MatrixOperand>(a, 2), at<ExprFunction>(a, 3), at<List>(a, 4), own<linalg::MatmulOptions>(a, 5),
                          at<Stream>(a, 6));
     },
     first,
     function_matmul_calls,
     {}},
    {"selective_scan_out",
     [](Arguments a) {
       selective_scan_out(at<SelectiveScanResult>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<Tensor>(a, 4), at<Tensor>(a, 5),
                          own<SelectiveScanOptions>(a, 6), at<Stream>(a, 7));
     },
     [](Arguments a) -> const Tensor& { return at<SelectiveScanResult>(a, 0).y; }, forward_scan_calls,
     "bf16 f32 bf16 bf16 f32 f16 f16 f32 bf16 f32 delta_softplus f32"},
    {"selective_scan_backward_out",
     [](Arguments a) {
       selective_scan_backward_out(at<SelectiveScanGradients>(a, 0), at<SelectiveScanResult>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<Tensor>(a, 4),
                                   at<Tensor>(a, 5), at<Tensor>(a, 6), own<SelectiveScanOptions>(a, 7), at<Stream>(a, 8));
     },
     [](Arguments a) -> const Tensor& { return at<SelectiveScanGradients>(a, 0).b; }, backward_scan_calls,
     "f32 f32 f32 f32 f32 none f32 none none f32 f32 f32 f32 f32 f32 f32 none f32 none delta_softplus none"},
    {"nn_softmax_backward_out", [](Arguments a) { nn::softmax_backward_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<int>(a, 3), at<Stream>(a, 4)); },
     first, softmax_gradient_calls<nn::softmax_backward_out>, "bf16 f16 f16"},
    {"nn_log_softmax_backward_out",
     [](Arguments a) { nn::log_softmax_backward_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<int>(a, 3), at<Stream>(a, 4)); }, first,
     softmax_gradient_calls<nn::log_softmax_backward_out>, "f32 bf16 bf16", false},
    {"nn_layer_norm_backward_out",
     [](Arguments a) {
       nn::layer_norm_backward_out(at<nn::LayerNormGradients>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<Tensor>(a, 4), at<Tensor>(a, 5),
                                   at<nn::NormOptions>(a, 6), at<Stream>(a, 7));
     },
     [](Arguments a) -> const Tensor& { return at<nn::LayerNormGradients>(a, 0).bias; }, layer_norm_gradient_calls, "bf16 bf16 bf16 bf16 bf16 f32 f32 bf16"},
    {"nn_rms_norm_backward_out",
     [](Arguments a) {
       nn::rms_norm_backward_out(at<nn::RmsNormGradients>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<Tensor>(a, 4),
                                 at<nn::NormOptions>(a, 5), at<Stream>(a, 6));
     },
     [](Arguments a) -> const Tensor& { return at<nn::RmsNormGradients>(a, 0).x; }, rms_norm_gradient_calls, "f16 none f16 f16 f32 none", false},
    {"rowwise_out",
     [](Arguments a) { rowwise_out(at<List>(a, 0), at<RowFunction>(a, 1), at<List>(a, 2), own<RowwiseOptions>(a, 3), at<Stream>(a, 4)); },
     first_of_list,
     rows_calls,
     {}},
    {"nn_layer_norm_out",
     [](Arguments a) {
       nn::layer_norm_out(at<nn::LayerNormResult>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<nn::NormOptions>(a, 4), at<Stream>(a, 5));
     },
     [](Arguments a) -> const Tensor& { return at<nn::LayerNormResult>(a, 0).rstd; }, norm_calls<true>, "bf16 f32 f32 bf16 f32 none"},
    {"nn_rms_norm_out",
     [](Arguments a) { nn::rms_norm_out(at<nn::RmsNormResult>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<nn::NormOptions>(a, 3), at<Stream>(a, 4)); },
     [](Arguments a) -> const Tensor& { return at<nn::RmsNormResult>(a, 0).y; }, norm_calls<false>, "f16 f32 f16 f32", false},
    {"nn_cross_entropy_out",
     [](Arguments a) {
       nn::cross_entropy_out(at<nn::CrossEntropyResult>(a, 0), at<Tensor>(a, 1), at<Tensor>(a, 2), at<nn::CrossEntropyOptions>(a, 3), at<Stream>(a, 4));
     },
     [](Arguments a) -> const Tensor& { return at<nn::CrossEntropyResult>(a, 0).log_sum; }, cross_entropy_calls, "f16 f32 f32 f16 u8 f16 reduction 1"},
    {"nn_cross_entropy_backward_out",
     [](Arguments a) {
       nn::cross_entropy_backward_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Tensor>(a, 3), at<nn::CrossEntropyResult>(a, 4),
                                      at<nn::CrossEntropyOptions>(a, 5), at<Stream>(a, 6));
     },
     first, cross_entropy_gradient_calls, "bf16 bf16 bf16 f32 none f32 f32 none reduction 0"},
    {"kthvalue_out",
     [](Arguments a) { kthvalue_out(at<Sorted>(a, 0), at<Tensor>(a, 1), at<std::int64_t>(a, 2), at<int>(a, 3), own<KthvalueOptions>(a, 4), at<Stream>(a, 5)); },
     [](Arguments a) -> const Tensor& { return at<Sorted>(a, 0).indices; }, kthvalue_calls, "u16 i64 u16 keepdim"},
    {"nn_embedding_out", [](Arguments a) { nn::embedding_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<Stream>(a, 3)); }, first, embedding_calls<false>,
     "bf16 bf16 i16"},
    {"nn_embedding_backward_out",
     [](Arguments a) {
       nn::embedding_backward_out(first(a), at<Tensor>(a, 1), at<Tensor>(a, 2), at<std::int64_t>(a, 3), at<nn::EmbeddingBackwardOptions>(a, 4),
                                  at<Stream>(a, 5));
     },
     first, embedding_calls<true>, "f32 f32 u8 scale_by_frequency", false},
    {"linalg_eigvalsh_out",
     [](Arguments a) { linalg::eigvalsh_out(first(a), at<linalg::EighStatus>(a, 1), at<Tensor>(a, 2), at<linalg::EighOptions>(a, 3), at<Stream>(a, 4)); },
     first, eigh_calls<false>, "f32 i32 i32 f32 uplo 1 driver 0 phase 0 accuracy 0", false},
};

/// An implementation that notes what it is asked for, takes one call alone, or all, and computes it by the library's own, or wrongly in one element.
class Mirror : public PluginImplementation {
 public:
  Mirror(const capi::PluginCall& of, const Op& known) : call(of), own(known) { op = of.op, name = fmt::format("{}_mirror", of.function), plugin = "mirror"; }
  std::string run(Arguments arguments) const override {
    const std::string asked_for = call_of(arguments);
    asked.insert(asked_for);
    if (!taken.empty() && asked_for != taken) return fmt::format("dtypes and options must be those of another call, got {}", asked_for);
    own.run(arguments);
    if (!lies) return {};
    Tensor element = own.output(arguments);
    while (element.rank() > 0) element = element.select(0, element.size(0) - 1);
    const Stream& stream = at<Stream>(arguments, arguments.size() - 1);
    std::vector<std::uint8_t> bytes = element.to_bytes(stream);
    bytes.back() ^= 0x40;
    element.write(std::as_bytes(std::span(bytes)), stream);
    return {};
  }
  std::string call_of(Arguments arguments) const override { return call.tell(arguments.data()); }
  std::string refusal(const Device& device, Arguments /*arguments*/) const override { return detail::prove(*this, device).wrong; }

  const capi::PluginCall& call;
  const Op& own;
  std::string taken;  ///< empty: all
  bool lies = false;
  mutable std::set<std::string> asked;
};

/// One for each op, known to the library as long as the process lives.
Mirror& mirror(const capi::PluginCall& call) {
  static auto& made = *new std::map<std::string_view, Mirror*>();
  Mirror*& one = made[call.function];
  if (!one) {
    const auto known = std::find_if(std::begin(kOps), std::end(kOps), [&](const Op& op) { return op.function == call.function; });
    if (known == std::end(kOps))
      throw Error(ErrorCode::internal, "proofs", fmt::format("kOps must have a row of {}, which plugins may implement", call.function));
    auto owned = std::make_unique<Mirror>(call, *known);
    one = owned.get();
    detail::add_plugin_implementation(std::move(owned));
  }
  one->taken = "none", one->asked.clear(), one->lies = false;
  return *one;
}

TEST(Proofs, HaveEachDtypeAndOptionThatTheOpTakes) {
  const Device device = default_device();
  for (const capi::PluginCall& call : capi::plugin_calls()) {
    SCOPED_TRACE(call.function);
    const Mirror& by = mirror(call);
    const detail::Proof proof = detail::prove(by, device);
    if (detail::has_functions(by.op))
      EXPECT_EQ(proof.wrong, "") << "it may be made for a function of which there is no problem";
    else
      EXPECT_NE(proof.wrong.find("problems must be computed, got a refusal of each"), std::string::npos) << proof.wrong;
    EXPECT_TRUE(proof.calls.empty());
    const std::set<std::string> wanted = by.own.calls(device);
    EXPECT_GE(wanted.size(), 2u);
    for (const std::string& one : wanted) EXPECT_TRUE(by.asked.contains(one)) << "no problem of: " << one;
    for (const std::string& one : by.asked) EXPECT_TRUE(wanted.contains(one)) << "a problem of what the op does not take: " << one;
  }
}

TEST(Proofs, FindALieInOneCallAlone) {
  const Device device = default_device();
  for (const capi::PluginCall& call : capi::plugin_calls()) {
    SCOPED_TRACE(call.function);
    Mirror& by = mirror(call);
    const bool nightly = level() == "nightly";
    if (!nightly && !by.own.by_day) continue;
    std::set<std::string> calls = by.own.calls(device);
    if (!nightly) calls = {by.own.rare.empty() ? *calls.rbegin() : std::string(by.own.rare)};
    by.taken = nightly ? "" : *calls.begin();
    const detail::Proof honest = detail::prove(by, device);
    EXPECT_EQ(honest.wrong, "");
    EXPECT_EQ(honest.calls, calls);
    by.lies = true;
    for (const std::string& one : calls) {
      by.taken = one;
      const detail::Proof lie = detail::prove(by, device);
      EXPECT_NE(lie.wrong.find(", got "), std::string::npos) << one << ": " << lie.wrong;
      EXPECT_FALSE(lie.calls.contains(one));
    }
  }
}

}}  // namespace clutch::testing
