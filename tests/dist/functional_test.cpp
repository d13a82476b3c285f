// SPDX-License-Identifier: Apache-2.0
// Functional collectives: bits of the calls in place, and gradients against finite differences.
#include "dist/numbers.hpp"

#include <clutch/dist/functional.hpp>

#include <cmath>
#include <functional>
#include <numeric>

namespace clutch::testing { namespace {

using namespace dist;

const std::vector<int> kRanks{1, 2, 3, 4};

/// Rank r's share of rows where they are uneven; rank 1 has none.
std::vector<std::int64_t> uneven(int ranks) {
  std::vector<std::int64_t> sizes;
  for (int r = 0; r < ranks; ++r) sizes.push_back(r == 1 ? 0 : 2 + r);
  return sizes;
}
std::int64_t sum_of(const std::vector<std::int64_t>& sizes) { return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}); }
std::int64_t before(const std::vector<std::int64_t>& sizes, int rank) { return std::accumulate(sizes.begin(), sizes.begin() + rank, std::int64_t{0}); }

TEST(Functional, HasTheBitsOfTheCallsInPlace) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    const Dims sizes{2, 3 * n, 4};
    const Tensor x = numbers_of(me, sizes, 1), before_call = x.clone();
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::premul_sum}) {
      SCOPED_TRACE(name(op));
      const dist::ReduceOptions options{.op = op, .factor = 0.3};
      const Tensor whole = x.clone();
      g.all_reduce_(whole, options);
      expect_bits(functional::all_reduce(x, g, options), whole, "all_reduce");
      expect_bits(functional::reduce_scatter(x, 1, g, options), whole.slice(1, 3 * me, 3 * me + 3).contiguous(), "reduce_scatter");
      std::vector<std::int64_t> rows(static_cast<std::size_t>(n), 0);
      rows.back() = 3 * n - 1, rows.front() += 1;
      const std::int64_t first = before(rows, me);
      expect_bits(functional::reduce_scatter_v(x, -2, rows, g, options), whole.slice(1, first, first + rows[static_cast<std::size_t>(me)]).contiguous());
      const Tensor at_root = functional::reduce(x, n - 1, g, options);
      EXPECT_EQ(at_root.defined(), me == n - 1);
      if (at_root.defined()) expect_bits(at_root, whole, "reduce");
    }
    expect_bits(x, before_call, "the input");
  });
}

TEST(Functional, MovesPartsAlongAnyDimension) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    const Dims sizes{2, 3 * n, 2 * n};
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(numbers_of(r, sizes, 7));
    const Tensor& mine = all[static_cast<std::size_t>(me)];
    for (int dim = 0; dim < 3; ++dim) {
      SCOPED_TRACE(dim);
      expect_bits(functional::all_gather(mine, dim, g), cat(all, dim));
      // A view with strides.
      expect_bits(functional::all_gather(mine.transpose(0, 2), dim, g), cat(all, 2 - dim).transpose(0, 2).contiguous());
      const Tensor gathered = functional::gather(mine, dim, n - 1, g);
      EXPECT_EQ(gathered.defined(), me == n - 1);
      if (gathered.defined()) expect_bits(gathered, cat(all, dim));
      const Tensor whole = cat(all, dim);
      expect_bits(functional::scatter(me == 0 ? whole : Tensor(), sizes, DType::f32, dim, 0, g), mine);
      const std::vector<std::int64_t> parts = uneven(n);
      auto part_of = [&](int r) { return all[static_cast<std::size_t>(r)].slice(dim, 0, std::min(parts[static_cast<std::size_t>(r)], mine.size(dim))); };
      std::vector<std::int64_t> lengths;
      std::vector<Tensor> pieces;
      for (int r = 0; r < n; ++r) pieces.push_back(part_of(r)), lengths.push_back(pieces.back().size(dim));
      expect_bits(functional::all_gather_v(part_of(me), dim, lengths, g), cat(pieces, dim));
    }
    expect_bits(functional::broadcast(mine, n - 1, g), all.back());
    for (const int from : {1, 2})
      for (const int to : {0, 1, 2}) {
        std::vector<Tensor> pieces;
        const std::int64_t part = mine.size(from) / n;
        for (const Tensor& x : all) pieces.push_back(x.slice(from, part * me, part * me + part));
        expect_bits(functional::all_to_all(mine, from, to, g), cat(pieces, to));
      }
    // Uneven ones: rows that one rank gives all others, and a tensor cut along another dimension.
    std::vector<std::int64_t> goes, comes;
    for (int r = 0; r < n; ++r) goes.push_back((me + 2 * r) % 3), comes.push_back((r + 2 * me) % 3);
    auto sent = [&](int r) {
      return numbers_of(r,
                        {[&] {
                           std::int64_t rows = 0;
                           for (int k = 0; k < n; ++k) rows += (r + 2 * k) % 3;
                           return rows;
                         }(),
                         5},
                        9);
    };
    std::vector<Tensor> pieces;
    for (int r = 0; r < n; ++r) {
      std::int64_t at = 0;
      for (int k = 0; k < me; ++k) at += (r + 2 * k) % 3;
      pieces.push_back(sent(r).slice(0, at, at + (r + 2 * me) % 3));
    }
    expect_bits(functional::all_to_all_v(sent(me), 0, goes, 0, comes, g), cat(pieces, 0));
    const std::vector<std::int64_t> rows = uneven(n), columns = uneven(n);
    const Tensor whole = shared_numbers({3, sum_of(rows), sum_of(columns)}, 11);
    const std::int64_t row = before(rows, me), column = before(columns, me);
    const Tensor by_rows = whole.slice(1, row, row + rows[static_cast<std::size_t>(me)]);
    const Tensor by_columns = whole.slice(2, column, column + columns[static_cast<std::size_t>(me)]);
    expect_bits(functional::all_to_all_v(by_rows, 2, columns, 1, rows, g), by_columns.contiguous());
    // A ring.
    const int next = (me + 1) % n, last = (me + n - 1) % n;
    expect_bits(functional::send_recv(mine, next, last, g), all[static_cast<std::size_t>(last)]);
    const Tensor piped = functional::send_recv(mine, me + 1 < n ? me + 1 : functional::kNoRank, me > 0 ? me - 1 : functional::kNoRank, g);
    EXPECT_EQ(piped.defined(), me > 0);
    if (me > 0) expect_bits(piped, all[static_cast<std::size_t>(me) - 1]);
  });
}

TEST(Functional, GraphsMakeTheCallsAgain) {
  for_ranks({2, 3}, [](const Group& g) {
    const int n = g.size(), me = g.rank();
    const Stream stream = current_stream();
    const Tensor x = zeros({3, n}), gathered = zeros({3, n * n}), sum = zeros({3, 1}), passed = zeros({3, n}), grad = zeros({3, n});
    const int next = (me + 1) % n, last = (me + n - 1) % n;
    auto calls = [&] {
      copy_(gathered, functional::all_gather(x, 1, g));
      copy_(sum, functional::reduce_scatter(x, 1, g));
      copy_(passed, functional::send_recv(x, next, last, g));
      copy_(grad, functional::all_reduce_backward(x, x, functional::all_reduce(x, g, {.op = ReduceOp::max}), g, {.op = ReduceOp::max}));
    };
    Graph graph;
    graph.capture_begin(stream, {.mode = CaptureMode::relaxed});
    calls();
    graph.capture_end();
    for (unsigned replay = 0; replay < 3; ++replay) {
      copy_(x, numbers_of(me, {3, n}, 60 + replay));
      graph.replay(stream);
      const std::vector<Tensor> got{gathered.clone(), sum.clone(), passed.clone(), grad.clone()};
      calls();
      const Tensor wanted[] = {gathered, sum, passed, grad};
      for (std::size_t i = 0; i < got.size(); ++i) expect_bits(got[i], wanted[i]);
      expect_bits(passed, numbers_of(last, {3, n}, 60 + replay));
    }
  });
}

using Forward = std::function<Tensor(const Tensor&)>;
using Backward = std::function<Tensor(const Tensor& grad, const Tensor& in, const Tensor& out)>;

/// Compares the gradients with central differences of the ranks' summed losses, each a weighted sum of a rank's results. `salt`: of the numbers.
void expect_gradients(const Group& g, const char* what, const Tensor& x, const Forward& forward, const Backward& backward) {
  SCOPED_TRACE(what);
  constexpr double kStep = 1e-4, kBound = 1e-6;
  const Tensor out = forward(x);
  const Tensor weights = out.defined() ? numbers_of(g.rank(), out.sizes(), 31, DType::f64) : Tensor();
  const Tensor gradient = backward(weights, x, out);
  auto loss = [&](const Tensor& at) {
    const Tensor result = forward(at);
    double sum = 0;
    if (result.defined()) {
      const std::vector<double> values = result.to_host<double>(), factors = weights.to_host<double>();
      for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * factors[i];
    }
    const Tensor all = from_host({sum});
    g.all_reduce_(all);
    return all.item();
  };
  const Tensor most = from_host({x.defined() ? x.numel() : std::int64_t{0}});
  g.all_reduce_(most, {.op = ReduceOp::max});
  const auto elements = static_cast<std::int64_t>(most.item());
  std::vector<double> wanted;
  if (x.defined()) {
    ASSERT_TRUE(gradient.defined());
    EXPECT_EQ(gradient.sizes(), x.sizes());
    wanted = gradient.to_host<double>();
  }
  for (int r = 0; r < g.size(); ++r)
    for (std::int64_t i = 0; i < elements; ++i) {
      const bool is_mine = r == g.rank() && x.defined() && i < x.numel();
      auto moved = [&](double by) {
        if (!is_mine) return x;
        std::vector<double> numbers = x.to_host<double>();
        numbers[static_cast<std::size_t>(i)] += by;
        return from_host(numbers, x.sizes());
      };
      const double difference = (loss(moved(kStep)) - loss(moved(-kStep))) / (2 * kStep);
      if (is_mine) {
        EXPECT_NEAR(wanted[static_cast<std::size_t>(i)], difference, kBound * (1 + std::abs(difference))) << "element " << i;
      }
    }
}

TEST(Functional, GradientsOfReductionsAreThoseOfDifferences) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), root = n - 1;
    const Tensor x = numbers_of(g.rank(), {n, 1}, 41, DType::f64), wide = numbers_of(g.rank(), {1, 2}, 42, DType::f64);
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::prod, ReduceOp::min, ReduceOp::max, ReduceOp::premul_sum}) {
      SCOPED_TRACE(name(op));
      const dist::ReduceOptions options{.op = op, .factor = 0.3};
      expect_gradients(
          g, "all_reduce", x, [&](const Tensor& in) { return functional::all_reduce(in, g, options); },
          [&](const Tensor& grad, const Tensor& in, const Tensor& out) { return functional::all_reduce_backward(grad, in, out, g, options); });
      expect_gradients(
          g, "reduce", x, [&](const Tensor& in) { return functional::reduce(in, root, g, options); },
          [&](const Tensor& grad, const Tensor& in, const Tensor& out) { return functional::reduce_backward(grad, in, out, root, g, options); });
      expect_gradients(
          g, "reduce_scatter", x, [&](const Tensor& in) { return functional::reduce_scatter(in, 0, g, options); },
          [&](const Tensor& grad, const Tensor& in, const Tensor& out) { return functional::reduce_scatter_backward(grad, in, out, 0, g, options); });
    }
    std::vector<std::int64_t> columns(static_cast<std::size_t>(n), 0);
    columns.back() = 2;
    const dist::ReduceOptions most{.op = ReduceOp::max};
    expect_gradients(
        g, "reduce_scatter_v", wide, [&](const Tensor& in) { return functional::reduce_scatter_v(in, 1, columns, g, most); },
        [&](const Tensor& grad, const Tensor& in, const Tensor& out) { return functional::reduce_scatter_v_backward(grad, in, out, 1, columns, g, most); });
  });
}

TEST(Functional, GradientsOfCopiesAreThoseOfDifferences) {
  for_ranks(kRanks, [](const Group& g) {
    const int n = g.size(), me = g.rank(), root = n - 1;
    const Tensor x = numbers_of(me, {2, n}, 51, DType::f64);
    expect_gradients(
        g, "all_gather", x, [&](const Tensor& in) { return functional::all_gather(in, 1, g); },
        [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::all_gather_backward(grad, 1, g); });
    expect_gradients(
        g, "gather", x, [&](const Tensor& in) { return functional::gather(in, 1, root, g); },
        [&](const Tensor& grad, const Tensor& in, const Tensor&) { return functional::gather_backward(grad, in, 1, root, g); });
    expect_gradients(
        g, "broadcast", x, [&](const Tensor& in) { return functional::broadcast(in, root, g); },
        [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::broadcast_backward(grad, root, g); });
    expect_gradients(
        g, "scatter", me == root ? x : Tensor(),
        [&](const Tensor& in) {
          return functional::scatter(in, {2, 1}, DType::f64, 1, root, g);
        },
        [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::scatter_backward(grad, 1, root, g); });
    for (const int to : {0, 1})
      expect_gradients(
          g, "all_to_all", x, [&](const Tensor& in) { return functional::all_to_all(in, 1, to, g); },
          [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::all_to_all_backward(grad, 1, to, g); });
    const std::vector<std::int64_t> rows = uneven(n);
    std::vector<std::int64_t> columns(static_cast<std::size_t>(n), 1);
    columns.front() = 0;
    const Tensor mine = numbers_of(me, {rows[static_cast<std::size_t>(me)], n - 1}, 53, DType::f64);
    expect_gradients(
        g, "all_gather_v", mine, [&](const Tensor& in) { return functional::all_gather_v(in, 0, rows, g); },
        [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::all_gather_v_backward(grad, 0, rows, g); });
    expect_gradients(
        g, "all_to_all_v", mine, [&](const Tensor& in) { return functional::all_to_all_v(in, 1, columns, 0, rows, g); },
        [&](const Tensor& grad, const Tensor&, const Tensor&) { return functional::all_to_all_v_backward(grad, 1, columns, 0, rows, g); });
    const int to = me + 1 < n ? me + 1 : functional::kNoRank, from = me > 0 ? me - 1 : functional::kNoRank;
    expect_gradients(
        g, "send_recv", x, [&](const Tensor& in) { return functional::send_recv(in, to, from, g); },
        [&](const Tensor& grad, const Tensor& in, const Tensor&) { return functional::send_recv_backward(grad, in, to, from, g); });
  });
}

TEST(Functional, TiesShareTheGradientAndZerosHaveTheOthersProduct) {
  for_ranks({3}, [](const Group& g) {
    const int n = g.size();
    if (n < 2) return;
    // Element 0: rank 0 and 1 have the most; element 1: all the same; element 2: all NaN.
    const double nan = std::nan("");
    const Tensor x = from_host({g.rank() < 2 ? 4.0 : 1.0, 7.0, nan}), grad = from_host({1.0, 2.0, 6.0});
    const dist::ReduceOptions most{.op = ReduceOp::max};
    const Tensor out = functional::all_reduce(x, g, most);
    const std::vector<double> got = functional::all_reduce_backward(grad, x, out, g, most).to_host<double>();
    EXPECT_EQ(got, (std::vector<double>{g.rank() < 2 ? n / 2.0 : 0.0, 2.0, 6.0}));
    // One zero, and two of them.
    const double zero_of_one = g.rank() == 0 ? 0 : 3, zero_of_two = g.rank() < 2 ? 0 : 3;
    const dist::ReduceOptions prod{.op = ReduceOp::prod};
    const Tensor y = from_host({zero_of_one, zero_of_two});
    const std::vector<double> through =
        functional::all_reduce_backward(from_host({1.0, 1.0}), y, functional::all_reduce(y, g, prod), g, prod).to_host<double>();
    EXPECT_EQ(through[0], g.rank() == 0 ? n * std::pow(3.0, n - 1) : 0.0);
    const dist::ReduceOptions squares{.map_before = [](const Expr& v) { return v * v; }};
    EXPECT_EQ(code_of([&] { functional::all_reduce_backward(y, y, y, g, squares); }), ErrorCode::invalid_argument);
  });
}

TEST(Functional, Errors) {
  for_ranks({2}, [](const Group& g) {
    const Tensor x = zeros({4, 3}), whole = zeros({4}, {.dtype = DType::i32});
    const int n = g.size();
    EXPECT_EQ(code_of([&] { functional::all_reduce(x, Group()); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_reduce(Tensor(), g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_reduce(x, g, {.async = true}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_gather(x, 2, g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_gather(zeros({}), 0, g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::reduce_scatter(zeros({n + 1}), 0, g); }), n == 1 ? ErrorCode::ok : ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { functional::reduce_scatter_v(x, 0, std::vector<std::int64_t>(static_cast<std::size_t>(n), 3), g); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { functional::all_gather_v(x, 0, std::vector<std::int64_t>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, g); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_reduce_backward(whole, whole, whole, g, {.op = ReduceOp::bor}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { functional::all_reduce_backward(whole, whole, whole, g, {.op = ReduceOp::prod}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { functional::broadcast(x, n, g); }), ErrorCode::invalid_argument);
    EXPECT_NE(message_of([&] { functional::all_gather(x, 2, g); }).find("dist::functional::all_gather: the dimension must be one of 2"), std::string::npos);
    EXPECT_NE(message_of([&] { functional::all_to_all_backward(x, 5, 0, g); }).find("dist::functional::all_to_all_backward"), std::string::npos);
    // Nothing was called meanwhile.
    expect_bits(functional::all_reduce(full({1}, 1), g), full({1}, n));
  });
}

}}  // namespace clutch::testing
