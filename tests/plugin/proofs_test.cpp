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
  std::string_view rare;  ///< a call that few plugins are written for
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
std::set<std::string> sum_calls(const Device& device) {
  std::set<std::string> all;
  // Of complex numbers a call for each part.
  const auto part = [](DType dtype) { return name(dtype == DType::c64 ? DType::f32 : dtype == DType::c128 ? DType::f64 : dtype); };
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())
      if (takes([&] { sum_out(none(out, device, {0, 1}), none(x, device, {0, 3}), {.dims = {1}, .keepdim = true}); }))
        for (const char* end : {"", " keepdim"}) all.insert(fmt::format("{} {}{}", part(out), part(x), end));
  return all;
}
std::set<std::string> softmax_calls(const Device& device) {
  std::set<std::string> all;
  for (const DType x : all_dtypes())
    for (const DType out : all_dtypes())  // whole numbers of parts of 1 are left to the library
      if (is_floating(out) && takes([&] { nn::softmax_out(none(out, device, {4, 0}), none(x, device, {4, 0})); }))
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
    {"sum_out", [](Arguments a) { sum_out(first(a), at<Tensor>(a, 1), own<ReduceOptions>(a, 2), at<Stream>(a, 3)); }, first, sum_calls, "u8 u16 keepdim"},
    {"nn_softmax_out", [](Arguments a) { nn::softmax_out(first(a), at<Tensor>(a, 1), at<int>(a, 2), at<Stream>(a, 3)); }, first, softmax_calls, "bf16 f16"},
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
    EXPECT_NE(proof.wrong.find("problems must be computed, got a refusal of each"), std::string::npos) << proof.wrong;
    EXPECT_TRUE(proof.calls.empty());
    const std::set<std::string> wanted = by.own.calls(device);
    EXPECT_GE(wanted.size(), 4u);
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
    const std::set<std::string> calls = nightly ? by.own.calls(device) : std::set<std::string>{std::string(by.own.rare)};
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
