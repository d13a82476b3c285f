// SPDX-License-Identifier: Apache-2.0
// Calls without elements: they check what calls with elements check, and answer as PyTorch does. Each op's own test has its other cases.
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <functional>

namespace clutch::testing { namespace {

/// A call that takes the name of an implementation, with `n` rows of elements, or columns.
struct Named {
  const char* op;
  std::function<void(const std::string& implementation, std::int64_t n)> call;
};

std::vector<Named> named_calls(const Device& d) {
  auto rows = [d](std::int64_t n) { return full({n, 16}, 1, {.device = d}); };
  auto csr = [d](std::int64_t n) {
    return sparse::Csr{zeros({n + 1}, {.dtype = DType::i64, .device = d}), zeros({5}, {.dtype = DType::i64, .device = d}), full({5}, 1, {.device = d}), 3};
  };
  auto heads = [d](std::int64_t n) { return full({1, 1, n, 8}, 1, {.device = d}); };
  auto index = [d](std::int64_t n) { return zeros({n, 1}, {.dtype = DType::i64, .device = d}).expand({n, 16}); };
  return {
      {"addcmul", [=](auto& i, auto n) { addcmul(rows(n), rows(n), rows(n), {.implementation = i}); }},
      {"copy_", [=](auto& i, auto n) { copy_(rows(n), rows(n), {.implementation = i}); }},
      {"cast", [=](auto& i, auto n) { cast(rows(n), DType::f16, {.implementation = i}); }},
      {"cat",
       [=](auto& i, auto n) {
         cat(std::vector{rows(n), rows(n)}, 0, {.implementation = i});
       }},
      {"stack",
       [=](auto& i, auto n) {
         stack(std::vector{rows(n), rows(n)}, 0, {.implementation = i});
       }},
      {"split_copy", [=](auto& i, auto n) { split_copy(rows(n), std::vector<std::int64_t>{n}, 0, {.implementation = i}); }},
      {"foreach_copy_", [=](auto& i, auto n) { foreach_copy_(std::vector{rows(n)}, std::vector{rows(n)}, {.implementation = i}); }},
      {"cumsum", [=](auto& i, auto n) { cumsum(rows(n), 1, {.implementation = i}); }},
      {"selective_scan",
       [=](auto& i, auto n) {
         const Tensor x = full({1, n, 2}, 1, {.device = d}), b = full({1, n, 3}, 1, {.device = d});
         selective_scan(x, x, zeros({2, 3}, {.device = d}), b, b, {.implementation = i});
       }},
      {"selective_scan_backward",
       [=](auto& i, auto n) {
         const Tensor x = full({1, n, 2}, 1, {.device = d}), b = full({1, n, 3}, 1, {.device = d});
         selective_scan_backward({x, {}}, x, x, zeros({2, 3}, {.device = d}), b, b, {.implementation = i});
       }},
      {"group_by", [=](auto& i, auto n) { group_by(zeros({n}, {.dtype = DType::i64, .device = d}), 3, {.implementation = i}); }},
      {"sort", [=](auto& i, auto n) { sort(rows(n), 1, {.implementation = i}); }},
      {"argsort", [=](auto& i, auto n) { argsort(rows(n), 0, {.implementation = i}); }},
      {"topk", [=](auto& i, auto n) { topk(rows(n), 0, 1, {.implementation = i}); }},
      {"nonzero", [=](auto& i, auto n) { nonzero(rows(n), {.implementation = i}); }},
      {"nonzero_static", [=](auto& i, auto n) { nonzero_static(rows(n), 3, {.implementation = i}); }},
      {"unique", [=](auto& i, auto n) { unique(rows(n), {.return_inverse = true, .return_counts = true, .implementation = i}); }},
      {"fill_", [=](auto& i, auto n) { fill_(rows(n), 2, {.implementation = i}); }},
      {"arange_", [=](auto& i, auto n) { arange_(rows(n), 0, 1, {.implementation = i}); }},
      {"map", [=](auto& i, auto n) { map([](Expr x) { return x + 1; }, {rows(n)}, {.implementation = i}); }},
      {"map_out", [=](auto& i, auto n) { map_out(rows(n), [](Expr x) { return x + 1; }, {rows(n)}, {.implementation = i}); }},
      {"reduce", [=](auto& i, auto n) { reduce(Reduce::sum, [](Expr x) { return x * x; }, {rows(n)}, {.dims = {1}, .implementation = i}); }},
      {"sum", [=](auto& i, auto n) { sum(rows(n), {.dims = {1}, .implementation = i}); }},
      {"argmax", [=](auto& i, auto n) { argmax(rows(n), {.dims = {1}, .implementation = i}); }},
      {"rowwise", [=](auto& i, auto n) { rowwise([](Row& row, Expr x) { return x / row.sum(x); }, {rows(n)}, {.implementation = i}); }},
      {"matmul", [=](auto& i, auto n) { linalg::matmul(rows(n), rows(8).mT(), {.implementation = i}); }},
      {"sparse::matmul",
       [=](auto& i, auto n) {
         sparse::matmul(sparse::compress(zeros({32, 64}, {.device = d})), full({64, n}, 1, {.device = d}), {.implementation = i});
       }},
      {"segment_reduce", [=](auto& i, auto n) { segment_reduce(rows(7), zeros({n + 1}, {.dtype = DType::i64, .device = d}), {.implementation = i}); }},
      {"segment_reduce_backward",
       [=](auto& i, auto n) { segment_reduce_backward(rows(n), rows(n), rows(7), zeros({n + 1}, {.dtype = DType::i64, .device = d}), {.implementation = i}); }},
      {"sparse::spmm", [=](auto& i, auto n) { sparse::spmm(csr(n), rows(3), {.implementation = i}); }},
      {"sparse::spmm_backward", [=](auto& i, auto n) { sparse::spmm_backward(rows(n), rows(n), csr(n), rows(3), {.implementation = i}); }},
      {"scatter_reduce", [=](auto& i, auto n) { scatter_reduce(rows(7), 0, index(n), rows(n), {.implementation = i}); }},
      {"scatter_reduce_backward", [=](auto& i, auto n) { scatter_reduce_backward(rows(7), rows(7), rows(7), 0, index(n), rows(n), {.implementation = i}); }},
      {"flex", [=](auto& i, auto n) { attention::flex(heads(n), heads(4), heads(4), {.implementation = i}); }},
      {"flex_backward",
       [=](auto& i, auto n) {
         const Tensor q = heads(n), k = heads(4);
         attention::flex_backward(q, q, k, k, attention::flex(q, k, k, {.return_lse = true}), {.implementation = i});
       }},
  };
}

TEST(Empty, UnknownImplementationsAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Named& named : named_calls(device))
      for (std::int64_t n : {0, 4}) {
        EXPECT_EQ(code_of([&] { named.call("no_such_one", n); }), ErrorCode::invalid_argument) << named.op << " of " << n;
        EXPECT_EQ(code_of([&] { named.call("", n); }), ErrorCode::ok) << named.op << " of " << n;
      }
    const Tensor none = zeros({0, 4}, {.device = device});
    EXPECT_EQ(rowwise([](Row& row, Expr x) { return x / row.sum(x); }, {none}, {.implementation = "rowwise_composed"})[0].sizes(), (Dims{0, 4}));
  }
}

std::vector<float> zero_numbers(std::size_t n) { return std::vector<float>(n, 0.0f); }

// torch.sparse.mm(a, b, reduce) of a CSR matrix without rows is of shape (0, n); without entries it is 0 everywhere, for all reductions. The gradient of b is
// 0, that of the values has no elements.
TEST(Empty, SparseProductsAnswerAsPyTorchs) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor none = zeros({0}, {.dtype = DType::i64, .device = device}), b = full({5, 3}, 2, {.device = device});
    auto csr = [&](std::int64_t rows, std::int64_t width) {
      return sparse::Csr{zeros({rows + 1}, {.dtype = DType::i64, .device = device}), none, zeros({0}, {.device = device}), width};
    };
    for (Reduce reduce : {Reduce::sum, Reduce::mean, Reduce::amin, Reduce::amax, Reduce::prod}) {
      const sparse::SpmmOptions options{.reduce = reduce};
      const Tensor of_no_rows = sparse::spmm(csr(0, 5), b, options);
      EXPECT_EQ(of_no_rows.sizes(), (Dims{0, 3}));
      EXPECT_EQ(sparse::spmm(csr(2, 5), b, options).to_host<float>(), zero_numbers(6));
      EXPECT_EQ(sparse::spmm(csr(2, 0), zeros({0, 3}, {.device = device}), options).to_host<float>(), zero_numbers(6));
      EXPECT_EQ(sparse::spmm(csr(2, 5), zeros({5, 0}, {.device = device}), options).sizes(), (Dims{2, 0}));
      for (std::int64_t rows : {0, 2}) {
        const Tensor result = sparse::spmm(csr(rows, 5), b, options);
        const sparse::SpmmGradients made = sparse::spmm_backward(full({rows, 3}, 1, {.device = device}), result, csr(rows, 5), b, options);
        EXPECT_EQ(made.values.sizes(), (Dims{0}));
        EXPECT_EQ(made.b.sizes(), b.sizes());
        EXPECT_EQ(made.b.to_host<float>(), zero_numbers(15)) << rows << " rows, reduction " << static_cast<int>(reduce);
      }
    }
  }
}

// torch.nn.functional.embedding without indices has the index's shape and the table's features, also of a table without rows; the table's gradient is 0.
TEST(Empty, EmbeddingsAnswerAsPyTorchs) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t rows : {0, 3}) {
      const Tensor table = full({rows, 4}, 1, {.device = device});
      for (const Dims& sizes : {Dims{0}, Dims{2, 0}}) {
        const Tensor index = zeros(sizes, {.dtype = DType::i64, .device = device}), made = nn::embedding(table, index);
        Dims wanted = sizes;
        wanted.push_back(4);
        EXPECT_EQ(made.sizes(), wanted);
        const Tensor gradient = nn::embedding_backward(made, index, rows);
        EXPECT_EQ(gradient.sizes(), table.sizes());
        EXPECT_EQ(gradient.to_host<float>(), zero_numbers(static_cast<std::size_t>(4 * rows)));
      }
    }
    // PyTorch refuses indices that are no row; here each gives NaN, as the header says.
    const Tensor index = zeros({2}, {.dtype = DType::i64, .device = device}), made = nn::embedding(zeros({0, 4}, {.device = device}), index);
    for (float x : made.to_host<float>()) EXPECT_TRUE(std::isnan(x));
    EXPECT_EQ(nn::embedding_backward(full({2, 4}, 1, {.device = device}), index, 0).sizes(), (Dims{0, 4}));
    const Tensor narrow = zeros({3, 0}, {.device = device});
    EXPECT_EQ(nn::embedding(narrow, index).sizes(), (Dims{2, 0}));
  }
}

// torch.nn.functional.linear of no rows is of shape (0, out), and the gradients of weight and bias are 0; of no features it is the bias.
TEST(Empty, LinearLayersAnswerAsPyTorchs) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor weight = full({2, 3}, 1, {.device = device}), bias = from_host<float>({5, 6}, device);
    for (nn::Activation activation : {nn::Activation::none, nn::Activation::relu})
      for (const Dims& batch : {Dims{0}, Dims{4, 0}}) {
        Dims of_x = batch, of_y = batch;
        of_x.push_back(3), of_y.push_back(2);
        const Tensor x = zeros(of_x, {.device = device}), y = linalg::linear(x, weight, bias, {.activation = activation});
        EXPECT_EQ(y.sizes(), of_y);
        EXPECT_EQ(linalg::linear(x, linalg::PackedMatrix(weight.mT()), bias, {.activation = activation}).sizes(), of_y);
        const linalg::LinearGradients made = linalg::linear_backward(y, x, weight, bias, {.activation = activation});
        EXPECT_EQ(made.x.sizes(), of_x);
        EXPECT_EQ(made.weight.to_host<float>(), zero_numbers(6));
        EXPECT_EQ(made.bias.to_host<float>(), zero_numbers(2));
      }
    const Tensor x = zeros({4, 0}, {.device = device}), none = zeros({2, 0}, {.device = device}), y = linalg::linear(x, none, bias);
    EXPECT_EQ(y.to_host<float>(), (std::vector<float>{5, 6, 5, 6, 5, 6, 5, 6}));
    const linalg::LinearGradients made = linalg::linear_backward(y, x, none, bias);
    EXPECT_EQ(made.x.sizes(), x.sizes());
    EXPECT_EQ(made.weight.sizes(), none.sizes());
    EXPECT_EQ(made.bias.to_host<float>(), (std::vector<float>{20, 24}));
    // Of no outputs the result is empty, and x's gradient is 0.
    const Tensor rows = zeros({4, 8}, {.device = device}), no_outputs = zeros({0, 8}, {.device = device}), empty_rows = linalg::linear(rows, no_outputs);
    EXPECT_EQ(empty_rows.sizes(), (Dims{4, 0}));
    for (const linalg::LinearGradients& of :
         {linalg::linear_backward(empty_rows, rows, no_outputs), sparse::linear_backward(empty_rows, rows, sparse::compress(no_outputs))}) {
      EXPECT_EQ(of.x.to_host<float>(), zero_numbers(32));
      EXPECT_EQ(of.weight.sizes(), no_outputs.sizes());
    }
  }
}

}}  // namespace clutch::testing
