// SPDX-License-Identifier: Apache-2.0
// The C ABI from C++: defaults, enums, results beside C++'s own, and errors at the border. Programs of it: c99_test.c, ctypes_test.py.
#include "capi/hand.hpp"
#include "support/fixture.hpp"

#include <thread>

namespace clutch::testing { namespace {

template <class T>
bool same(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    return a == b || (a != a && b != b);
  else if constexpr (requires { a == b; })
    return a == b;
  else if constexpr (std::is_same_v<T, Tensor>)
    return !a.defined() && !b.defined();
  else if constexpr (std::is_same_v<T, DTypeList>)
    return a.size() == b.size();
  else if constexpr (requires { a.empty(); })
    return a.empty() && b.empty();
  else
    return true;  // a struct within, whose own test looks
}
bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) { return a.size() == b.size(); }

#include "defaults.inc"

/// Objects for the length of a test.
struct Objects {
  ~Objects() {
    for (clutch_tensor_t* tensor : tensors) clutch_tensor_release(tensor);
  }
  clutch_tensor_t* of(const Tensor& value) {
    tensors.push_back(new clutch_tensor_t{value});
    return tensors.back();
  }
  std::vector<clutch_tensor_t*> tensors;
};

std::vector<std::uint8_t> bits(const Tensor& tensor) { return tensor.to_bytes(); }

TEST(CAbi, ResultsAreThoseOfCpp) {
  CLUTCH_EACH_DEVICE(device) {
    Objects o;
    const Tensor a = randn({6, 8, 8}, {.device = device, .seed = 3}), b = randn({6, 8, 8}, {.device = device, .seed = 4});
    Tensor out = empty({6, 8, 8}, {.device = device});
    ASSERT_EQ(clutch_sub_out(o.of(out), o.of(a), o.of(b), nullptr, nullptr), CLUTCH_OK);
    EXPECT_EQ(bits(out), bits(sub(a, b)));
    clutch_cumsum_options_t cumsum_options = CLUTCH_CUMSUM_OPTIONS_INIT;
    cumsum_options.reverse = 1;
    ASSERT_EQ(clutch_cumsum_out(o.of(out), o.of(a), 1, &cumsum_options, nullptr), CLUTCH_OK);
    EXPECT_EQ(bits(out), bits(cumsum(a, 1, {.reverse = true})));
    clutch_linalg_matmul_options_t half = CLUTCH_LINALG_MATMUL_OPTIONS_INIT;
    half.alpha = 0.5;
    ASSERT_EQ(clutch_linalg_matmul_out(o.of(out), o.of(a), o.of(b), &half, nullptr), CLUTCH_OK);
    EXPECT_EQ(bits(out), bits(linalg::matmul(a, b, {.alpha = 0.5})));
    const Tensor weight = randn({8}, {.device = device, .seed = 5}), mean = empty({6, 8, 1}, {.device = device}), rstd = empty({6, 8, 1}, {.device = device});
    clutch_nn_layer_norm_result_t norm = CLUTCH_NN_LAYER_NORM_RESULT_INIT;
    norm.y = o.of(out);
    norm.mean = o.of(mean);
    norm.rstd = o.of(rstd);
    ASSERT_EQ(clutch_nn_layer_norm_out(&norm, o.of(a), o.of(weight), nullptr, nullptr, nullptr), CLUTCH_OK);
    const nn::LayerNormResult wanted = nn::layer_norm(a, weight);
    EXPECT_EQ(bits(out), bits(wanted.y));
    EXPECT_EQ(bits(rstd), bits(wanted.rstd));
    // Lists of lists.
    const Tensor first = zeros({8}, {.device = device}), second = zeros({6, 8}, {.device = device});
    const clutch_tensor_t* xs[] = {o.of(weight), o.of(a.select(1, 0))};
    const clutch_tensor_t* outs[] = {o.of(first), o.of(second)};
    const clutch_tensor_t* const* inputs[] = {xs};
    const clutch_tensor_t* const* outputs[] = {outs};
    const std::size_t two = 2;
    const ExprFunction twice = trace<1>([](Expr x) { return x + x; }, {DType::f32});
    clutch_expr_function_t function{twice};
    ASSERT_EQ(clutch_foreach_map_out(outputs, &two, 1, &function, inputs, &two, 1, nullptr, nullptr), CLUTCH_OK) << clutch_error_message();
    EXPECT_EQ(bits(second), bits(add(a.select(1, 0), a.select(1, 0))));
    // 2:4 weights and attention, whose options hold objects and structs.
    const Tensor w = randn({8, 8}, {.device = device, .seed = 6});
    clutch_tensor_t* pruned = o.of(empty({8, 8}, {.device = device}));
    ASSERT_EQ(clutch_sparse_prune_2_4_out(pruned, o.of(w), nullptr, nullptr), CLUTCH_OK);
    clutch_sparse_semi_structured_t* packed = nullptr;
    ASSERT_EQ(clutch_sparse_compress(pruned, nullptr, nullptr, &packed), CLUTCH_OK);
    const Tensor product = empty({6, 8, 8}, {.device = device});
    ASSERT_EQ(clutch_sparse_matmul_out(o.of(product), packed, o.of(a), nullptr, nullptr), CLUTCH_OK);
    EXPECT_EQ(bits(product), bits(sparse::matmul(sparse::compress(sparse::prune_2_4(w)), a)));
    clutch_sparse_semi_structured_release(packed);
    const Tensor q = a.unsqueeze(0), attended = empty({1, 6, 8, 8}, {.device = device}), used = from_host<std::int32_t>({5}, device);
    clutch_attention_varlen_t varlen = CLUTCH_ATTENTION_VARLEN_INIT;
    varlen.seqused_kv = o.of(used);
    clutch_attention_flex_options_t flex = CLUTCH_ATTENTION_FLEX_OPTIONS_INIT;
    flex.varlen = &varlen;
    flex.has_scale = 1;
    flex.scale = 0.25;
    clutch_attention_flex_result_t result = CLUTCH_ATTENTION_FLEX_RESULT_INIT;
    result.out = o.of(attended);
    ASSERT_EQ(clutch_attention_flex_out(&result, o.of(q), o.of(q), o.of(q), &flex, nullptr), CLUTCH_OK) << clutch_error_message();
    EXPECT_EQ(bits(attended), bits(attention::flex(q, q, q, {.scale = 0.25, .varlen = {.seqused_kv = used}}).out));
    // Random numbers by a seed.
    clutch_uniform_options_t uniform = CLUTCH_UNIFORM_OPTIONS_INIT;
    uniform.has_seed = 1;
    uniform.seed = 11;
    ASSERT_EQ(clutch_uniform_(o.of(out), &uniform, nullptr), CLUTCH_OK);
    EXPECT_EQ(bits(out), bits(rand({6, 8, 8}, {.device = device, .seed = 11})));
  }
}

TEST(CAbi, GraphsHaveTheNamesOfCpp) {
  const Device device = test_devices()[0];
  Objects o;
  const Stream stream(device);
  const Tensor x = full({4, 4}, 1, {.device = device});
  clutch_stream_t given{stream};
  ASSERT_EQ(clutch_exp_out(o.of(x), o.of(x), nullptr, &given), CLUTCH_OK);
  clutch_graph_t* graph = nullptr;
  ASSERT_EQ(clutch_graph_create(nullptr, &graph), CLUTCH_OK);
  ASSERT_EQ(clutch_graph_capture_begin(graph, &given, nullptr), CLUTCH_OK);
  ASSERT_EQ(clutch_exp_out(o.of(x), o.of(x), nullptr, &given), CLUTCH_OK);
  ASSERT_EQ(clutch_graph_capture_end(graph), CLUTCH_OK);
  std::int64_t nodes[4] = {-1, -1, -1, -1};
  std::size_t count = 0;
  ASSERT_EQ(clutch_graph_find(graph, "exp_out", nodes, 4, &count), CLUTCH_OK);
  EXPECT_EQ(count, 1u);
  clutch_graph_release(graph);
}

TEST(CAbi, EachThreadHasItsLastError) {
  clutch_device_t* device = nullptr;
  EXPECT_EQ(clutch_tensor_device(nullptr, &device), CLUTCH_INVALID_ARGUMENT);
  const std::string ours = clutch_error_message();
  EXPECT_EQ(ours, "clutch_tensor_device: tensor must not be NULL, got NULL");
  std::thread([] {
    EXPECT_STREQ(clutch_error_message(), "");
    EXPECT_EQ(clutch_tensor_rank(nullptr, nullptr), CLUTCH_INVALID_ARGUMENT);
  }).join();
  EXPECT_EQ(ours, clutch_error_message());
  EXPECT_STREQ(clutch_error_op(), "clutch_tensor_device");
  EXPECT_STREQ(clutch_status_name(77), "unknown");
}

TEST(CAbi, NumbersAreChecked) {
  Objects o;
  const Tensor x = full({4, 4}, 1, {.device = test_devices()[0]});
  EXPECT_EQ(clutch_mul_number_(o.of(x), {0.5, 1}, nullptr, nullptr), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(clutch_mul_number_(o.of(x), {0.5, 2}, nullptr, nullptr), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(clutch_mul_number_(o.of(x), {1e300, 1}, nullptr, nullptr), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(clutch_mul_number_(o.of(x), {0.5, 0}, nullptr, nullptr), CLUTCH_OK);
  clutch_tensor_t* result = nullptr;
  EXPECT_EQ(clutch_tensor_select(o.of(x), std::int64_t{1} << 40, 0, &result), CLUTCH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(clutch_error_message()).find("dim must be from -2147483648 to 2147483647, got 1099511627776"), std::string::npos)
      << clutch_error_message();
  const std::int64_t many[13] = {};
  EXPECT_EQ(clutch_zeros(many, 13, nullptr, nullptr, &result), CLUTCH_INVALID_SHAPE);
  clutch_reduce_options_t options = CLUTCH_REDUCE_OPTIONS_INIT;
  options.keepdim = 2;
  EXPECT_EQ(clutch_sum_out(o.of(x), o.of(x), &options, nullptr), CLUTCH_INVALID_ARGUMENT);
  EXPECT_STREQ(clutch_error_message(), "clutch_sum_out: options.keepdim must be 0 or 1, got 2");
}

TEST(CAbi, RowFunctionsAreChecked) {
  const ExprFunction one = trace<1>([](Expr x) { return x; }, {DType::f32});
  const clutch_expr_function_t* function = new clutch_expr_function_t{one};
  const clutch_expr_function_t* two[] = {function, function};
  const std::int64_t f32 = CLUTCH_DTYPE_F32, f64 = CLUTCH_DTYPE_F64, ops[] = {CLUTCH_REDUCE_SUM, CLUTCH_REDUCE_SUM}, any[] = {CLUTCH_REDUCE_ANY};
  clutch_row_function_t* row = nullptr;
  EXPECT_EQ(clutch_row_function_create(&f32, 1, ops, 2, two, 2, nullptr, nullptr, &row), CLUTCH_INVALID_ARGUMENT) << "the second has two inputs";
  EXPECT_EQ(clutch_row_function_create(&f32, 1, ops, 2, two, 1, nullptr, nullptr, &row), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(clutch_row_function_create(&f64, 1, ops, 1, two, 1, nullptr, nullptr, &row), CLUTCH_INVALID_DTYPE);
  EXPECT_EQ(clutch_row_function_create(&f32, 1, any, 1, two, 1, nullptr, nullptr, &row), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(clutch_row_function_create(&f32, 1, ops, 1, two, 1, nullptr, nullptr, &row), CLUTCH_INVALID_ARGUMENT) << "no outputs";
  EXPECT_EQ(row, nullptr);
  // Its text, and what is read of it.
  ASSERT_EQ(clutch_row_function_create(&f32, 1, ops, 1, two, 1, nullptr, nullptr, &row), CLUTCH_INVALID_ARGUMENT);
  const clutch_expr_function_t* elements = new clutch_expr_function_t{trace<2>([](Expr x, Expr sum) { return x * param(3) + sum; }, {DType::f32, DType::f32})};
  ASSERT_EQ(clutch_row_function_create(&f32, 1, ops, 1, two, 1, elements, nullptr, &row), CLUTCH_OK) << clutch_error_message();
  char text[400] = {};
  std::size_t length = 0;
  ASSERT_EQ(clutch_row_function_text(row, text, sizeof text, &length), CLUTCH_OK);
  EXPECT_EQ(std::string(text).substr(0, 19), "rows f32\ntotal sum\n");
  EXPECT_EQ(length, std::string(text).size());
  clutch_row_function_t *read = nullptr, *given = nullptr;
  ASSERT_EQ(clutch_row_function_parse(text, &read), CLUTCH_OK) << clutch_error_message();
  std::int64_t params = 0;
  double value = -1;
  EXPECT_EQ(clutch_row_function_param_count(read, &params), CLUTCH_OK);
  EXPECT_EQ(params, 1);
  EXPECT_EQ(clutch_row_function_param_value(row, 0, &value), CLUTCH_OK);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(clutch_row_function_with_params(read, &value, 1, &given), CLUTCH_OK);
  value = -1;
  EXPECT_EQ(clutch_row_function_param_value(given, 0, &value), CLUTCH_OK);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(clutch_row_function_param_value(given, 1, &value), CLUTCH_INVALID_ARGUMENT);
  clutch_row_function_t* none = nullptr;
  EXPECT_EQ(clutch_row_function_parse("rows f32\n", &none), CLUTCH_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  for (const clutch_row_function_t* f : {row, read, given}) clutch_row_function_release(f);
  clutch_expr_function_release(elements);
  clutch_expr_function_release(function);
}

}}  // namespace clutch::testing
