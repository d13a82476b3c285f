// SPDX-License-Identifier: Apache-2.0
#include "cases/rowwise.hpp"

#include "ops/rowwise_plan.hpp"
#include "support/differences.hpp"
#include "support/op_runner.hpp"

#include <clutch/nn.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace clutch::testing { namespace {

using cases::RowwiseCase;

TEST(Rowwise, LengthsAndDtypesHaveTheModelsBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : cases::ReduceCase::lengths(level())) {
        if (m > 20000 && dtype != DType::f32) continue;
        ASSERT_EQ(run_problem(device, RowwiseCase::problem("", "", dtype, 3, m, {}, {}, seed())), "") << name(dtype) << " rows of " << m;
        ASSERT_EQ(run_problem(device, RowwiseCase::problem("", "rowwise_strided", dtype, 3, m, {}, {}, seed())), "") << name(dtype) << " strided rows of " << m;
      }
    }
    // Three levels of blocks.
    if (level() == "nightly") {
      ASSERT_EQ(run_problem(device, RowwiseCase::problem("", "", DType::f32, 1, (std::int64_t{1} << 22) + 4099, {}, {}, seed())), "");
    }
  }
}

/// Values of a tensor as doubles.
void expect_near(const Tensor& got, const std::vector<double>& want, double tolerance, std::string_view what) {
  std::vector<double> g = values(got);
  ASSERT_EQ(g.size(), want.size()) << what;
  double most = 0;
  for (double w : want) most = std::max(most, std::fabs(w));
  ASSERT_GT(most, 0) << what << ": all zero proves nothing";
  for (std::size_t i = 0; i < g.size(); ++i) ASSERT_NEAR(g[i], want[i], tolerance * std::max(std::fabs(want[i]), most * 0.01)) << what << " at " << i;
}

TEST(Rowwise, SeveralOutputsAndRowsOverSeveralDimensions) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = randn({4, 5, 6, 7}, {.device = device, .seed = 1});
    auto f = [](Row& row, Expr a) {
      Expr total = row.sum(a), count = row.size();
      row.result(total);
      row.result(count);
      return std::array{a - total / count, a * 2};
    };
    for (const Dims& dims : {Dims{-1}, Dims{1}, Dims{0}, Dims{2, 3}, Dims{1, 3}, Dims{0, 1, 2, 3}}) {
      std::vector<Tensor> made = rowwise(f, {x}, {.dims = dims});
      ASSERT_EQ(made.size(), 4u);
      Tensor total = sum(x, {.dims = dims, .keepdim = true});
      EXPECT_EQ(made[2].to_bytes(), total.to_bytes()) << "reduce's order";
      const std::int64_t of_row = x.numel() / total.numel();
      const auto count = static_cast<double>(of_row);
      EXPECT_EQ(values(made[3]), std::vector<double>(static_cast<std::size_t>(total.numel()), count));
      EXPECT_EQ(made[0].to_bytes(), map([&](Expr a, Expr t) { return a - t / count; }, x, total).to_bytes());
      EXPECT_EQ(made[1].to_bytes(), mul(x, 2.0).to_bytes());
    }
    // In place, and rows that are columns of memory.
    Tensor y = x.clone(), transposed = x.reshape({140, 6}).mT();
    RowFunction centered = trace_rows([](Row& row, Expr a) { return a - row.mean(a); }, std::array{DType::f32});
    Tensor apart = rowwise(centered, std::span(&y, 1))[0];
    rowwise_out(std::span(&y, 1), centered, std::span(&y, 1));
    EXPECT_EQ(y.to_bytes(), apart.to_bytes());
    // Results are made of the inputs as they were; many rows, whose elements wait for the next row, and all of whose outputs are apart.
    for (std::int64_t m : {std::int64_t{64}, std::int64_t{2048}, std::int64_t{70}}) {
      Tensor many = randn({37, m}, {.device = device, .seed = 7}), kept = many.clone(), firsts = zeros({37, 1}, {.device = device});
      RowFunction f_in_place = trace_rows(
          [](Row& row, Expr a) {
            Expr e = exp(a - row.max(a)), all = row.sum(e);
            row.result(a + all * 0);
            return e * (1 / all);
          },
          std::array{DType::f32});
      const Tensor over[] = {many, firsts};
      rowwise_out(over, f_in_place, std::span(&many, 1));
      EXPECT_EQ(firsts.to_bytes(), kept.slice(1, 0, 1).contiguous().to_bytes());
      EXPECT_EQ(many.to_bytes(), nn::softmax(kept).to_bytes()) << m;
      for (std::int64_t i = 0; i < 37; i += 9) EXPECT_EQ(many.slice(0, i, i + 1).contiguous().to_bytes(), nn::softmax(kept.slice(0, i, i + 1)).to_bytes());
    }
    EXPECT_EQ(rowwise(centered, std::span(&transposed, 1))[0].to_bytes(), [&] {
      Tensor dense = transposed.clone();
      return rowwise(centered, std::span(&dense, 1))[0].to_bytes();
    }());
    // Integers count as f32; nothing gives nothing.
    Tensor whole = from_host<std::int32_t>({1, 2, 6}, device), none = zeros({3, 0}, {.device = device});
    EXPECT_EQ(values(rowwise([](Row& row, Expr a) { return a / row.sum(a); }, {whole})[0])[2], static_cast<double>(6.0f / 9.0f));
    EXPECT_EQ(values(rowwise([](Row& row, Expr a) { row.result(row.sum(a)); }, {none})[0]), (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(rowwise(centered, std::span(&none, 1))[0].numel(), 0);
  }
}

TEST(Rowwise, FewLongRowsAreTakenApartWithTheSameBits) {
  CLUTCH_EACH_DEVICE(device) {
    const std::int64_t m = 20001;
    Tensor x = randn({1, m}, {.device = device, .seed = 3}), w = randn({m}, {.device = device, .seed = 4}).to(DType::f16),
           s = full({}, 0.5, {.dtype = device.traits().fp64 ? DType::f64 : DType::f32, .device = device});
    auto f = [](Row& row, Expr a, Expr b, Expr scale) {
      Expr top = row.max(a * scale), e = exp(a * scale - top), total = row.sum(e * b);
      row.result(total + a);
      row.result(top);
      return std::array{e * b / total, a - row.mean(a)};
    };
    for (const Dims& dims : {Dims{-1}, Dims{0, 1}})
      for (DType dtype : {DType::f32, DType::bf16}) {
        auto made = [&](const std::string& implementation) {
          RowwiseOptions options{.dims = dims, .implementation = implementation};
          return rowwise(f, {x.to(dtype), w, s}, options);
        };
        std::vector<Tensor> composed = made("rowwise_composed");
        if (!known_bug(device, "loops_end_early")) {  // else such rows are always taken apart
          std::vector<Tensor> fused = made("rowwise_rows");
          for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(composed[k].to_bytes(), fused[k].to_bytes()) << "output " << k << " in " << name(dtype);
        }
        std::vector<Tensor> chosen = made("");
        for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(composed[k].to_bytes(), chosen[k].to_bytes()) << "output " << k << " in " << name(dtype);
      }
    // In place, in columns, in long rows that are chosen by themselves: against the sums.
    Tensor y = x.clone(), transposed = randn({m, 3}, {.device = device, .seed = 5}).mT();
    RowFunction centered = trace_rows([](Row& row, Expr a) { return a - row.mean(a); }, std::array{DType::f32});
    Tensor apart = rowwise(centered, std::span(&y, 1), {.implementation = "rowwise_composed"})[0];
    rowwise_out(std::span(&y, 1), centered, std::span(&y, 1), {.implementation = "rowwise_composed"});
    EXPECT_EQ(y.to_bytes(), apart.to_bytes());
    Tensor means = mean(transposed, {.dims = {-1}, .keepdim = true});
    EXPECT_EQ(rowwise(centered, std::span(&transposed, 1))[0].to_bytes(), sub(transposed, means).to_bytes());
  }
}

// Dimension before the last: where an item is a core, reduce and map read columns by vectors.
TEST(Rowwise, ColumnsHaveTheBitsOfTheReference) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    auto f = [](Row& row, Expr a, Expr b, Expr s) {
      Expr top = row.max(a * s), e = exp(a * s - top), total = row.sum(e * b);
      row.result(total + a);
      return std::array{e * b / total, a - row.mean(a)};
    };
    for (const Dims& sizes :
         {Dims{1, 128, 64}, Dims{1, 2100, 65}, Dims{3, 50, 70}, Dims{2, 1, 5000}, Dims{3, 97, 130}, Dims{2, 1030, 33}, Dims{1, 300, 1024}, Dims{5, 3, 17}}) {
      const Tensor x = randn(sizes, {.device = device, .seed = 6}), w = randn({sizes[1], 1}, {.device = device, .seed = 7}).to(DType::f16),
                   s = randn({sizes[2]}, {.device = device, .seed = 8});
      fill_(x.slice(2, 7, 8), std::nan(""));
      for (DType dtype : {DType::f32, DType::bf16}) {
        const Tensor a = x.to(dtype);
        auto made = [&](const std::string& implementation) { return rowwise(f, {a, w, s}, {.dims = {1}, .implementation = implementation}); };
        const std::vector<Tensor> chosen = made(""), strided = made("rowwise_strided");
        for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(chosen[k].to_bytes(), strided[k].to_bytes()) << "output " << k << " in " << name(dtype);
        if (dtype == DType::f32 && !known_bug(device, "loops_end_early")) {
          const std::vector<Tensor> groups = made("rowwise_column_groups");
          for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(groups[k].to_bytes(), strided[k].to_bytes()) << "output " << k << " by groups";
          if (sizes[1] <= 8) {
            const std::vector<Tensor> items = made("rowwise_items");
            for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(items[k].to_bytes(), strided[k].to_bytes()) << "output " << k << " by items";
          }
        }
        if (sizes[1] > 2048) continue;  // refused
        const std::vector<Tensor> forced = made("rowwise_columns");
        for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(forced[k].to_bytes(), strided[k].to_bytes()) << "output " << k << " in " << name(dtype);
        // The first elements over the input.
        const Tensor over[] = {a.clone(), empty(sizes, {.dtype = strided[1].dtype(), .device = device}), empty(strided[2].sizes(), {.device = device})};
        rowwise_out(over, trace_rows(f, std::array{DType::f32, DType::f32, DType::f32}), std::array{over[0], w, s},
                    {.dims = {1}, .implementation = "rowwise_columns"});
        for (std::size_t k = 0; k < 3; ++k)
          EXPECT_EQ(over[k].to_bytes(), strided[k].to(over[k].dtype()).to_bytes()) << "output " << k << " in place in " << name(dtype);
      }
    }
    // Columns so far apart that an item brings them near: a total's values over those that it brought, and beside them.
    const Tensor wide = randn({300, 4096}, {.device = device, .seed = seed()}), x = wide.slice(1, 5, 99), g = wide.slice(1, 100, 194);
    EXPECT_EQ(nn::softmax(x, 0).to_bytes(), nn::softmax(x.mT().contiguous(), -1).mT().contiguous().to_bytes());
    const auto norm = [](Row& row, Expr a, Expr b) {
      const Expr centre = a - row.mean(a);
      return centre / sqrt(row.mean(centre * centre) + 1e-5f) + a * b;
    };
    EXPECT_EQ(rowwise(norm, {x, g}, {.dims = {0}})[0].to_bytes(), rowwise(norm, {x, g}, {.dims = {0}, .implementation = "rowwise_strided"})[0].to_bytes());
  }
}

// Where an item is a core, rows shorter than a vector are lanes of transposed copies.
TEST(Rowwise, ManyShortRowsHaveTheBitsOfTheReference) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    const RowFunction f = trace_rows(
        [](Row& row, Expr a, Expr b, Expr s, Expr u) {
          const Expr top = row.max(a * s), e = exp(a * s - top), total = row.sum(e * b);
          row.result(total + top);
          return std::array{e * b / total, a - row.mean(a * u)};
        },
        std::array{DType::f32, DType::f32, DType::f32, DType::f32});
    for (const Dims& sizes : {Dims{600, 2}, Dims{40, 30, 7}, Dims{3, 500, 15}, Dims{1100, 1, 3}}) {
      const std::int64_t m = sizes[sizes.rank() - 1];
      Dims rows = sizes;
      rows[rows.rank() - 1] = 1;
      // An element each, one for all rows, one for each row, one for some of the rows.
      Dims some = sizes;
      some[0] = 1;
      const Tensor a = randn(sizes, {.device = device, .seed = seed()}), b = randn({m}, {.device = device, .seed = seed() + 1}).to(DType::bf16),
                   s = randn(rows, {.device = device, .seed = seed() + 2});
      for (const Tensor& u : {randn(sizes, {.device = device, .seed = seed() + 3}), randn(some, {.device = device, .seed = seed() + 4})}) {
        const Tensor in[] = {a, b, s, u};
        const std::vector<Tensor> want = rowwise(f, in, {.implementation = "rowwise_strided"}), got = rowwise(f, in);
        for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(got[k].to_bytes(), want[k].to_bytes()) << "output " << k << " of " << to_string(sizes);
        const Tensor over[] = {a.clone(), empty(sizes, {.device = device}), empty(rows, {.device = device})};
        rowwise_out(over, f, std::array{over[0], b, s, u});
        for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(over[k].to_bytes(), want[k].to_bytes()) << "output " << k << " in place of " << to_string(sizes);
      }
    }
  }
}

TEST(Rowwise, ValuesThatTotalsAndElementsShareHaveTheBitsOfThoseComputedAgain) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    // A long function of which two totals and the elements need the values, and which is stored, too.
    auto norm = [](Row& row, Expr a, Expr b, Expr scale) {
      const Expr h = tanh(exp(a - b) * scale) / 3 + a, mean = row.mean(h), variance = row.mean((h - mean) * (h - mean)),
                 y = (h - mean) / sqrt(variance + 1e-5f);
      row.result(variance);
      return std::array{h, y * sigmoid(y)};
    };
    const RowFunction f = trace_rows(norm, std::array{DType::f32, DType::f32, DType::f32});
    EXPECT_EQ(f.body()->kept, 0);
    EXPECT_GE(f.body()->kept_in_total[1], 0);
    for (std::int64_t m : {1, 16, 63, 64, 127, 256, 257, 1023, 1024, 1040, 2047, 2048, 2049, 4100}) {
      const Tensor x = randn({5, m}, {.device = device, .seed = seed()}), b = randn({m}, {.device = device, .seed = seed() + 1}).to(DType::bf16),
                   s = randn({5, 1}, {.device = device, .seed = seed() + 2});
      fill_(x.select(0, 1).slice(0, m / 2, m / 2 + 1), NAN);
      const Tensor in[] = {x, b, s};
      const std::vector<Tensor> want = rowwise(f, in, {.implementation = "rowwise_composed"});
      for (const char* implementation : {"", "rowwise_rows", "rowwise_strided"}) {
        const std::vector<Tensor> made = rowwise(f, in, {.implementation = implementation});
        for (std::size_t k = 0; k < want.size(); ++k)
          EXPECT_EQ(compare_bits(made[k].to_bytes(), want[k].to_bytes(), want[k].dtype(), !device.traits().denormals), "")
              << implementation << " output " << k << " of " << m;
      }
      // The first elements over the input.
      const Tensor over[] = {x, empty({5, m}, {.device = device}), empty({5, 1}, {.device = device})};
      rowwise_out(over, f, in);
      for (std::size_t k = 0; k < want.size(); ++k)
        EXPECT_EQ(compare_bits(over[k].to_bytes(), want[k].to_bytes(), want[k].dtype(), !device.traits().denormals), "") << "output " << k << " of " << m;
    }
    // Rows that are stored while the next one is read: more than a core's cache.
    const RowFunction softmax = trace_rows(
        [](Row& row, Expr a) {
          const Expr e = exp(a - row.max(a));
          return e / row.sum(e);
        },
        std::array{DType::f32});
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
      for (const std::int64_t m : {512, 509, 77, 9}) {
        if (level() == "smoke" && dtype != DType::f32 && m != 77) continue;
        const Tensor large = randn({400000 / m, m}, {.device = device, .seed = seed()}).to(dtype);
        const std::vector<std::uint8_t> want = rowwise(softmax, std::span(&large, 1), {.implementation = "rowwise_strided"})[0].to_bytes();
        EXPECT_EQ(rowwise(softmax, std::span(&large, 1), {.implementation = "rowwise_rows"})[0].to_bytes(), want) << name(dtype) << " " << m;
        rowwise_out(std::span(&large, 1), softmax, std::span(&large, 1), {.implementation = "rowwise_rows"});
        EXPECT_EQ(large.to_bytes(), want) << name(dtype) << " " << m << " in place";
      }
  }
}

TEST(Rowwise, GroupsOfItemsHaveTheBitsOfTheReference) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "loops_end_early")) continue;  // refused
    const RowwiseOptions strided{.implementation = "rowwise_strided"};
    // Four totals, outputs of both kinds, an input with one element in a row and one for all rows.
    const RowFunction four = trace_rows(
        [](Row& row, Expr a, Expr b, Expr s) {
          Expr most = row.max(a * s), least = row.min(b), e = exp(a * s - most), total = row.sum(e), product = row.prod(1 + b * 1e-3);
          row.result(total + a);
          row.result(product - least);
          return std::array{e / total, b * product};
        },
        std::array{DType::f32, DType::f32, DType::f32});
    const RowFunction softmax = trace_rows(
        [](Row& row, Expr a) {
          Expr e = exp(a - row.max(a)), all = row.sum(e);
          row.result(a);
          return e / all;
        },
        std::array{DType::f32});
    const std::array<std::string, 2> entries = {"rowwise_groups", "rowwise_column_groups"};
    for (std::int64_t m : {1, 15, 16, 17, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 5000, 100000}) {
      for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
        if ((dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) || (dtype != DType::f32 && m > 5000)) continue;
        if (level() == "smoke" && (dtype == DType::f64 || dtype == DType::f16)) continue;  // tests/cases/rowwise.hpp has them
        // More rows than teams of a group, or more than a group.
        EXPECT_EQ(run_problem(device, RowwiseCase::problem("", "rowwise_groups", dtype, m > 2048 ? 2 : 18, m, {m + 5, 1}, {}, seed())), "")
            << name(dtype) << " rows of " << m;
        if (dtype == DType::f32) {
          EXPECT_EQ(run_problem(device, RowwiseCase::problem("", "rowwise_column_groups", dtype, m > 2048 ? 2 : 35, m, {m + 5, 1}, {}, seed())), "")
              << "shared rows of " << m;
        }
      }
      if (m > 5000) continue;
      const Tensor x = randn({3, 2, m}, {.device = device, .seed = seed()}), w = randn({m}, {.device = device, .seed = seed() + 1}).to(DType::bf16),
                   s = randn({2, 1}, {.device = device, .seed = seed() + 2});
      // NaN, infinities and zeros of both signs.
      fill_(x.select(0, 0).select(0, 1).slice(0, m / 2, m / 2 + 1), NAN);
      fill_(x.select(0, 1).select(0, 0).slice(0, m - 1, m), INFINITY);
      fill_(x.select(0, 1).select(0, 1), -0.0);
      const Tensor in[] = {x, w, s};
      const std::vector<Tensor> want = rowwise(four, in, strided);
      for (const std::string& entry : entries) {
        const std::vector<Tensor> made = rowwise(four, in, {.implementation = entry});
        for (std::size_t k = 0; k < want.size(); ++k)
          EXPECT_EQ(compare_bits(made[k].to_bytes(), want[k].to_bytes(), want[k].dtype(), !device.traits().denormals), "")
              << entry << ": output " << k << " of " << m;
      }
      // Over the input; results are made of it as it was.
      const Tensor given = randn({37, m}, {.device = device, .seed = 7}), first = given.slice(1, 0, 1).clone();
      const std::vector<Tensor> apart = rowwise(softmax, std::span(&given, 1), strided);
      std::vector<std::string> all(entries.begin(), entries.end());
      if (m <= 64) all.emplace_back("rowwise_items");
      for (const std::string& entry : all) {
        const Tensor y = given.clone(), firsts = zeros({37, 1}, {.device = device}), over[] = {y, firsts};
        rowwise_out(over, softmax, std::span(&y, 1), {.implementation = entry});
        EXPECT_EQ(y.to_bytes(), apart[0].to_bytes()) << entry << " of " << m;
        EXPECT_EQ(firsts.to_bytes(), first.to_bytes()) << entry << " of " << m;
      }
    }
    const Tensor none = zeros({3, 0}, {.device = device});
    for (const std::string& entry : entries)
      EXPECT_EQ(values(rowwise([](Row& row, Expr a) { row.result(row.sum(a)); }, {none}, {.implementation = entry})[0]), (std::vector<double>{0, 0, 0}));
  }
}

TEST(Rowwise, SoftmaxStaysWithinItsBound) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : {1, 7, 1000, 2048}) {
        Tensor x = mul(randn({9, m}, {.device = device, .seed = 5}), 6.0).to(dtype), g = randn({9, m}, {.device = device, .seed = 6}).to(dtype);
        std::vector<double> in = values(x), soft = values(nn::softmax(x)), logs = values(nn::log_softmax(x)), hg = values(g);
        Tensor y = nn::softmax(x), l = nn::log_softmax(x);
        std::vector<double> hy = values(y), hl = values(l), back, log_back;
        double eps = dtype == DType::f64 ? 0x1p-53 : 0x1p-24, stored = dtype == DType::bf16 ? 0x1p-8 : eps;
        for (std::size_t r = 0; r < 9; ++r) {
          auto row = [&](std::size_t j) { return r * static_cast<std::size_t>(m) + j; };
          long double top = -1e300L, total = 0, gy = 0, gs = 0;
          for (std::size_t j = 0; j < static_cast<std::size_t>(m); ++j) top = std::max(top, static_cast<long double>(in[row(j)]));
          for (std::size_t j = 0; j < static_cast<std::size_t>(m); ++j)
            total += std::exp(in[row(j)] - top), gy += static_cast<long double>(hg[row(j)]) * hy[row(j)], gs += hg[row(j)];
          for (std::size_t j = 0; j < static_cast<std::size_t>(m); ++j) {
            long double centered = in[row(j)] - top, want = std::exp(centered) / total;
            ASSERT_LE(std::fabs(static_cast<double>(soft[row(j)] - want)), static_cast<double>(want * (46 - centered) * eps + want * stored + 1e-42L));
            ASSERT_NEAR(logs[row(j)], static_cast<double>(centered - std::log(total)),
                        60 * eps + (stored + eps) * static_cast<double>(std::fabs(centered) + 10));
            back.push_back(static_cast<double>(hy[row(j)] * (hg[row(j)] - gy)));
            log_back.push_back(static_cast<double>(hg[row(j)] - std::exp(static_cast<long double>(hl[row(j)])) * gs));
          }
        }
        if (m > 1) {
          expect_near(nn::softmax_backward(g, y), back, 400 * eps + 2 * stored, "softmax backward");
          expect_near(nn::log_softmax_backward(g, l), log_back, 4000 * eps + 2 * stored, "log_softmax backward");
        }
      }
    }
    const float inf = INFINITY;
    for (float v : nn::softmax(from_host<float>({-inf, -inf}, device)).to_host<float>()) EXPECT_TRUE(std::isnan(v));
    for (float v : nn::softmax(from_host<float>({1, std::nanf(""), 2}, device)).to_host<float>()) EXPECT_TRUE(std::isnan(v));
    EXPECT_EQ(nn::softmax(from_host<float>({-inf, 3, -inf}, device)).to_host<float>(), (std::vector<float>{0, 1, 0}));
    Tensor x = randn({3, 4, 5}, {.device = device, .seed = 2}), out = zeros({3, 4, 5}, {.device = device});
    nn::softmax_out(out, x, 1);
    EXPECT_EQ(out.to_bytes(), nn::softmax(x.transpose(1, 2).contiguous()).transpose(1, 2).contiguous().to_bytes());
    nn::log_softmax_out(out, x, 0);
    EXPECT_EQ(out.to_bytes(), nn::log_softmax(x, -3).to_bytes());
  }
}

TEST(Rowwise, NormsForwardAndBackward) {
  CLUTCH_EACH_DEVICE(device) {
    const std::size_t rows = 6, m = 320;
    for (DType dtype : {DType::f32, DType::bf16}) {
      double tolerance = dtype == DType::f32 ? 2e-5 : 2e-2;
      Tensor x = add(randn({2, 3, 16, 20}, {.device = device, .seed = 1}), 3.0).to(dtype), w = randn({16, 20}, {.device = device, .seed = 2}).to(dtype),
             b = randn({16, 20}, {.device = device, .seed = 3}).to(dtype), g = randn({2, 3, 16, 20}, {.device = device, .seed = 4}).to(dtype);
      std::vector<double> hx = values(x), hw = values(w), hb = values(b), hg = values(g);
      for (bool affine : {true, false})
        for (bool rms : {true, false}) {
          if (level() == "smoke" && dtype == DType::bf16 && !affine) continue;
          std::vector<double> y, dx, dw(m), db(m), mean, factor;
          for (std::size_t r = 0; r < rows; ++r) {
            double mu = 0, var = 0, a = 0, c = 0;
            for (std::size_t j = 0; j < m; ++j) mu += rms ? 0 : hx[r * m + j] / m;
            for (std::size_t j = 0; j < m; ++j) var += (hx[r * m + j] - mu) * (hx[r * m + j] - mu) / m;
            double s = 1 / std::sqrt(var + 1e-3);
            mean.push_back(mu), factor.push_back(s);
            for (std::size_t j = 0; j < m; ++j) {
              double normal = (hx[r * m + j] - mu) * s, gw = hg[r * m + j] * (affine ? hw[j] : 1);
              y.push_back(affine ? normal * hw[j] + (rms ? 0 : hb[j]) : normal);
              a += rms ? 0 : gw / m, c += gw * normal / m;
              dw[j] += hg[r * m + j] * normal, db[j] += hg[r * m + j];
            }
            for (std::size_t j = 0; j < m; ++j) dx.push_back(s * (hg[r * m + j] * (affine ? hw[j] : 1) - a - (hx[r * m + j] - mu) * s * c));
          }
          nn::NormOptions options{.normalized_rank = 2, .eps = 1e-3};
          Tensor weight = affine ? w : Tensor(), bias = affine ? b : Tensor();
          if (rms) {
            auto [out, rrms] = nn::rms_norm(x, weight, options);
            expect_near(out, y, tolerance, "rms_norm");
            EXPECT_EQ(rrms.sizes(), (Dims{2, 3, 1, 1}));
            expect_near(rrms, factor, 1e-5, "rrms");
            auto grads = nn::rms_norm_backward(g, x, rrms, weight, options);
            expect_near(grads.x, dx, 20 * tolerance, "rms_norm dx");
            if (affine) expect_near(grads.weight, dw, 20 * tolerance, "rms_norm dw");
            EXPECT_EQ(grads.weight.defined(), affine);
          } else {
            auto [out, mu, rstd] = nn::layer_norm(x, weight, bias, options);
            expect_near(out, y, 10 * tolerance, "layer_norm");
            expect_near(mu, mean, 1e-5, "mean");
            expect_near(rstd, factor, 1e-5, "rstd");
            auto grads = nn::layer_norm_backward(g, x, mu, rstd, weight, options);
            expect_near(grads.x, dx, 20 * tolerance, "layer_norm dx");
            if (affine) expect_near(grads.weight, dw, 20 * tolerance, "layer_norm dw");
            if (affine) expect_near(grads.bias, db, 20 * tolerance, "layer_norm db");
            EXPECT_EQ(grads.x.dtype(), dtype);
          }
        }
    }
    Tensor x = randn({3, 8}, {.device = device, .seed = 1});
    EXPECT_EQ(code_of([&] { nn::layer_norm(x, {}, {}, {.normalized_rank = 3}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nn::layer_norm(x, zeros({7}, {.device = device})); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { nn::rms_norm(x.to(DType::i32)); }), ErrorCode::invalid_dtype);
  }
}

/// The loss in double, as PyTorch's documentation states it.
double cross_entropy_model(const std::vector<double>& x, const std::vector<std::int64_t>& target, const std::vector<double>& weight, std::size_t classes,
                           std::int64_t ignored, double smoothing, nn::Reduction reduction, std::size_t one = 0) {
  double total = 0, count = 0, chosen = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == ignored) continue;
    double top = -1e300, sum = 0, smooth = 0;
    for (std::size_t c = 0; c < classes; ++c) top = std::max(top, x[i * classes + c]);
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(x[i * classes + c] - top);
    double lse = std::log(sum) + top;
    for (std::size_t c = 0; c < classes; ++c) smooth += weight[c] * (lse - x[i * classes + c]);
    auto t = static_cast<std::size_t>(target[i]);
    double loss = (1 - smoothing) * weight[t] * (lse - x[i * classes + t]) + smoothing / static_cast<double>(classes) * smooth;
    total += loss, count += weight[t];
    if (i == one) chosen = loss;
  }
  return reduction == nn::Reduction::mean ? total / count : reduction == nn::Reduction::sum ? total : chosen;
}

TEST(Rowwise, CrossEntropyForwardAndBackward) {
  CLUTCH_EACH_DEVICE(device) {
    const std::size_t n = 7, classes = 19;
    Tensor x = mul(randn({7, 19}, {.device = device, .seed = 1}), 3.0), w = rand({19}, {.device = device, .seed = 2});
    std::vector<std::int64_t> target{3, 0, 18, -100, 7, 7, 1};
    Tensor t = from_host<std::int64_t>(target, {7}, device);
    std::vector<double> hx = values(x), hw = values(w), ones(classes, 1);
    for (bool weighted : {false, true})
      for (double smoothing : {0.0, 0.1}) {
        if (level() == "smoke" && weighted == (smoothing == 0)) continue;
        for (nn::Reduction reduction : {nn::Reduction::mean, nn::Reduction::sum, nn::Reduction::none}) {
          nn::CrossEntropyOptions o{.reduction = reduction, .label_smoothing = smoothing};
          if (weighted) o.weight = w;
          const std::vector<double>& weights = weighted ? hw : ones;
          nn::CrossEntropyResult result = nn::cross_entropy(x, t, o);
          std::vector<double> want;
          if (reduction == nn::Reduction::none)
            for (std::size_t i = 0; i < n; ++i) want.push_back(cross_entropy_model(hx, target, weights, classes, -100, smoothing, reduction, i));
          else
            want.push_back(cross_entropy_model(hx, target, weights, classes, -100, smoothing, reduction));
          expect_near(result.loss, want, 1e-5, "cross_entropy");
          // Central differences of the model.
          Tensor g = reduction == nn::Reduction::none ? full({7}, 1.5, {.device = device}) : full({}, 1.5, {.device = device});
          std::vector<double> grad(hx.size());
          nn::Reduction whole = reduction == nn::Reduction::mean ? nn::Reduction::mean : nn::Reduction::sum;
          for (std::size_t k = 0; k < hx.size(); ++k) {
            std::vector<double> up = hx, down = hx;
            up[k] += 1e-5, down[k] -= 1e-5;
            grad[k] = 1.5 *
                      (cross_entropy_model(up, target, weights, classes, -100, smoothing, whole) -
                       cross_entropy_model(down, target, weights, classes, -100, smoothing, whole)) /
                      2e-5;
          }
          expect_near(nn::cross_entropy_backward(g, x, t, result, o), grad, 1e-4, "cross_entropy backward");
        }
      }
    // Classes in dimension 1 of three: the same as rows.
    Tensor deep = randn({2, 5, 3}, {.device = device, .seed = 4}), labels = from_host<std::int32_t>({0, 1, 2, 3, 4, 0}, device).reshape({2, 3});
    nn::CrossEntropyOptions none{.reduction = nn::Reduction::none};
    auto in_depth = nn::cross_entropy(deep, labels, none);
    Tensor rows = deep.transpose(1, 2).contiguous().reshape({6, 5});
    auto in_rows = nn::cross_entropy(rows, labels.reshape({6}), none);
    EXPECT_EQ(in_depth.loss.to_bytes(), in_rows.loss.to_bytes());
    EXPECT_EQ(in_depth.loss.sizes(), (Dims{2, 3}));
    EXPECT_TRUE(std::isnan(nn::cross_entropy(rows, from_host<std::int64_t>({0, 1, 2, 3, 4, 5}, device)).loss.item())) << "no class 5";
    EXPECT_TRUE(std::isnan(nn::cross_entropy(rows.slice(0, 0, 1), from_host<std::int64_t>({-100}, device)).loss.item())) << "0 / 0, as PyTorch";
    EXPECT_EQ(nn::cross_entropy(rows.select(0, 0), from_host<std::int64_t>({2}, device).select(0, 0)).loss.rank(), 0);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, x.select(1, 0)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, t.to(DType::boolean)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x.to(DType::i32), t); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, labels); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, t, {.label_smoothing = 2}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, t, {.weight = zeros({3}, {.device = device})}); }), ErrorCode::invalid_shape);
  }
}

TEST(Rowwise, CrossEntropyOfProbabilities) {
  CLUTCH_EACH_DEVICE(device) {
    const std::size_t n = 5, classes = 9;
    Tensor x = mul(randn({5, 9}, {.device = device, .seed = 1}), 3.0), w = rand({9}, {.device = device, .seed = 2});
    Tensor t = nn::softmax(randn({5, 9}, {.device = device, .seed = 3}));
    std::vector<double> hx = values(x), hw = values(w), ht = values(t);
    for (double smoothing : {0.0, 0.1})
      for (nn::Reduction reduction : {nn::Reduction::mean, nn::Reduction::sum, nn::Reduction::none}) {
        if (level() == "smoke" && (smoothing == 0) == (reduction == nn::Reduction::sum)) continue;
        nn::CrossEntropyOptions o{.weight = w, .reduction = reduction, .label_smoothing = smoothing};
        auto losses = [&](const std::vector<double>& logits) {
          std::vector<double> all;
          for (std::size_t i = 0; i < n; ++i) {
            double total = 0, loss = 0;
            for (std::size_t c = 0; c < classes; ++c) total += std::exp(logits[i * classes + c]);
            for (std::size_t c = 0; c < classes; ++c)
              loss += hw[c] * (ht[i * classes + c] * (1 - smoothing) + smoothing / static_cast<double>(classes)) * (std::log(total) - logits[i * classes + c]);
            all.push_back(loss);
          }
          return all;
        };
        auto whole = [&](const std::vector<double>& logits) {
          double sum = 0;
          for (double v : losses(logits)) sum += v;
          return reduction == nn::Reduction::mean ? sum / static_cast<double>(n) : sum;
        };
        nn::CrossEntropyResult result = nn::cross_entropy(x, t, o);
        expect_near(result.loss, reduction == nn::Reduction::none ? losses(hx) : std::vector<double>{whole(hx)}, 1e-5, "cross_entropy");
        Tensor g = full(result.loss.sizes(), 1, {.device = device});
        EXPECT_EQ(compare_gradient(whole, hx, nn::cross_entropy_backward(g, x, t, result, o).to_host<float>(), 1e-4), "");
      }
    // Certain classes: the same as their numbers.
    Tensor sure = from_host<float>({0, 1, 0, 0, 0, 1}, device).reshape({2, 3}), logits = x.slice(0, 0, 2).slice(1, 0, 3).contiguous();
    EXPECT_NEAR(nn::cross_entropy(logits, sure).loss.item(), nn::cross_entropy(logits, from_host<std::int64_t>({1, 2}, device)).loss.item(), 1e-6);
    EXPECT_EQ(code_of([&] { nn::cross_entropy(x, sure); }), ErrorCode::invalid_shape);
  }
}

/// Logits that have almost everything in common, of a dtype: `shift` plus numbers of a few units or of a few ulps, whichever are more; and rows of
/// extremes.
Tensor shifted_logits(const Device& device, DType dtype, double shift, std::int64_t rows, std::int64_t classes) {
  const double ulp = std::fabs(shift) * (dtype == DType::f64 ? 0x1p-52 : dtype == DType::f32 ? 0x1p-23 : dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
  model::Random random(seed() + static_cast<std::uint64_t>(classes));
  std::vector<std::uint8_t> raw(bytes_for(dtype, static_cast<std::uint64_t>(rows * classes)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows * classes); ++i)
    model::store_at(raw.data(), i, dtype, shift + random.uniform(-1, 1) * (i % 3 == 0 ? 3 : 3 + 2 * ulp));
  return from_bytes(raw.data(), raw.size(), {rows, classes}, {.dtype = dtype, .device = device});
}

/// Losses and gradients of rows in long double: the shares of the classes in the target are given, and their weights are in them.
struct ExactLoss {
  std::vector<long double> of_class, p;  ///< -log softmax, and softmax
  explicit ExactLoss(std::span<const double> logits) {
    long double top = -INFINITY, total = 0;
    for (double x : logits) top = std::max(top, static_cast<long double>(x));
    for (double x : logits) total += std::exp(x - top);
    for (double x : logits) of_class.push_back(std::log(total) - (x - top)), p.push_back(std::exp(x - top) / total);
  }
};

TEST(Rowwise, CrossEntropyKeepsItsAccuracyWhateverLogitsHaveInCommon) {
  CLUTCH_EACH_DEVICE(device) {
    const std::int64_t rows = 6, classes = 37;
    const std::vector<std::int64_t> target{3, 0, 36, -100, 7, 7};
    Tensor t = from_host<std::int64_t>(target, {rows}, device), w = rand({classes}, {.device = device, .seed = 2}),
           q = nn::softmax(randn({rows, classes}, {.device = device, .seed = 3}));
    const std::vector<double> hw = values(w), hq = values(q);
    for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      const double eps = dtype == DType::f64 ? 0x1p-53 : 0x1p-24, stored = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : eps;
      std::vector<double> shifts{0, 1e2, -1e4, 6e4};
      if (dtype != DType::f16) shifts.insert(shifts.end(), {1e5, 1e10, -1e20, 1e30, 3.3e38, -3.3e38});
      if (dtype == DType::f64) shifts.insert(shifts.end(), {1e100, -1.7e308});
      for (double shift : shifts)
        for (double smoothing : {0.0, 0.1})
          for (bool weighted : {false, true})
            for (bool by_probability : {false, true}) {
              if (level() == "smoke" && weighted != (smoothing > 0)) continue;
              SCOPED_TRACE(fmt::format("{} shift {} smoothing {} weighted {} probabilities {}", name(dtype), shift, smoothing, weighted, by_probability));
              Tensor x = shifted_logits(device, dtype, shift, rows, classes);
              const std::vector<double> hx = values(x);
              nn::CrossEntropyOptions o{.reduction = nn::Reduction::none, .label_smoothing = smoothing};
              if (weighted) o.weight = w;
              nn::CrossEntropyResult result = nn::cross_entropy(x, by_probability ? q : t, o);
              const std::vector<double> losses = values(result.loss),
                                        gradients =
                                            values(nn::cross_entropy_backward(full({rows}, 1, {.device = device}), x, by_probability ? q : t, result, o));
              for (std::size_t r = 0; r < static_cast<std::size_t>(rows); ++r) {
                const bool ignored = !by_probability && target[r] < 0;
                const ExactLoss exact(std::span<const double>(hx).subspan(r * static_cast<std::size_t>(classes), static_cast<std::size_t>(classes)));
                long double loss = 0, bound = 0, whole = 0;
                std::vector<long double> share;
                for (std::size_t c = 0; c < static_cast<std::size_t>(classes); ++c) {
                  long double hot = by_probability ? hq[r * classes + c] : static_cast<std::int64_t>(c) == target[r];
                  share.push_back((hot * (1 - smoothing) + smoothing / classes) * (weighted ? hw[c] : 1) * (ignored ? 0 : 1));
                  loss += share[c] * exact.of_class[c], whole += share[c];
                  bound += share[c] * (2 * exact.of_class[c] + std::log(static_cast<long double>(classes)) + 50) * eps;
                }
                // Sums of shares round, too.
                if (by_probability || smoothing > 0) bound += (45 * loss + 200 * whole) * eps;
                ASSERT_LE(std::fabs(losses[r] - loss), bound + loss * stored) << "row " << r << ": " << losses[r] << " for " << static_cast<double>(loss);
                for (std::size_t c = 0; c < static_cast<std::size_t>(classes); ++c) {
                  long double p = exact.p[c], distance = exact.of_class[c], want = whole * p - share[c];
                  long double most = whole * ((2 * distance + 2 * std::log(static_cast<long double>(classes)) + 50) * p + 2) * eps;
                  if (by_probability || smoothing > 0) most += whole * 45 * p * eps + 4 * share[c] * eps;
                  ASSERT_LE(std::fabs(gradients[r * classes + c] - want), most + std::fabs(want) * stored + 1e-7L * (dtype == DType::f16))
                      << "gradient " << r << ", " << c;
                }
              }
            }
    }
  }
}

TEST(Rowwise, CrossEntropyOfExtremes) {
  CLUTCH_EACH_DEVICE(device) {
    const float most = std::numeric_limits<float>::max(), inf = INFINITY;
    auto loss_of = [&](std::initializer_list<float> row, std::int64_t target) {
      Tensor x = from_host<float>(row, device).unsqueeze(0);
      return nn::cross_entropy(x, from_host<std::int64_t>({target}, device)).loss.item();
    };
    EXPECT_EQ(loss_of({most, -most, most}, 0), static_cast<double>(std::log(2.0f)));
    EXPECT_EQ(loss_of({most, -most, most}, 1), INFINITY) << "twice the largest number";
    EXPECT_EQ(loss_of({most, 0, -most}, 1), static_cast<double>(most));
    EXPECT_EQ(loss_of({-most, -most, -most, -most}, 3), static_cast<double>(std::log(4.0f)));
    EXPECT_EQ(loss_of({1, -inf, 1}, 0), static_cast<double>(std::log(2.0f)));
    EXPECT_EQ(loss_of({1, -inf, 1}, 1), INFINITY);
    for (std::int64_t target : {0, 1}) {
      EXPECT_TRUE(std::isnan(loss_of({1, inf, 2}, target))) << "+inf on the target or off it";
      EXPECT_TRUE(std::isnan(loss_of({-inf, -inf, -inf}, target)));
      EXPECT_TRUE(std::isnan(loss_of({1, NAN, 2}, target)));
    }
    // Gradients: of what is certain, of halves, of nothing but +inf.
    auto gradient_of = [&](std::initializer_list<float> row, std::int64_t target) {
      Tensor x = from_host<float>(row, device).unsqueeze(0), t = from_host<std::int64_t>({target}, device);
      return nn::cross_entropy_backward(full({}, 1, {.device = device}), x, t, nn::cross_entropy(x, t)).to_host<float>();
    };
    EXPECT_EQ(gradient_of({most, -most, most}, 0), (std::vector<float>{-0.5f, 0, 0.5f}));
    EXPECT_EQ(gradient_of({most, 0, -most}, 1), (std::vector<float>{1, -1, 0}));
    EXPECT_EQ(gradient_of({5, -inf, 5}, 1), (std::vector<float>{0.5f, -1, 0.5f}));
    for (float g : gradient_of({1, inf, 2}, 0)) EXPECT_TRUE(std::isnan(g));
    // A weight of 0 is a factor like any other; what is ignored is not looked at.
    Tensor bad = from_host<float>({1, inf, 2}, device).unsqueeze(0), first = from_host<std::int64_t>({0}, device);
    EXPECT_TRUE(std::isnan(nn::cross_entropy(bad, first, {.weight = zeros({3}, {.device = device}), .reduction = nn::Reduction::sum}).loss.item()));
    EXPECT_EQ(nn::cross_entropy(bad, first, {.ignore_index = 0, .reduction = nn::Reduction::sum}).loss.item(), 0);
    // Softmax and its logarithm, and the logarithm of the sum.
    Tensor x = from_host<float>({most, -most, most, 0}, device);
    EXPECT_EQ(nn::softmax(x).to_host<float>(), (std::vector<float>{0.5f, 0, 0.5f, 0}));
    EXPECT_EQ(nn::log_softmax(x).to_host<float>(), (std::vector<float>{-std::log(2.0f), -inf, -std::log(2.0f), -most}));
    EXPECT_EQ(logsumexp(x).item(), static_cast<double>(most));
    EXPECT_EQ(logsumexp(from_host<float>({-most, -most}, device)).item(), static_cast<double>(-most));
    Tensor y = nn::softmax(x), g = from_host<float>({1, 2, 3, 4}, device);
    EXPECT_EQ(nn::softmax_backward(g, y).to_host<float>(), (std::vector<float>{-0.5f, 0, 0.5f, 0}));
    EXPECT_EQ(nn::log_softmax_backward(g, nn::log_softmax(x)).to_host<float>(), (std::vector<float>{-4, 2, -2, 4}));
  }
}

TEST(Rowwise, RowsAlongAnyDimensionHaveTheBitsOfContiguousOnes) {
  CLUTCH_EACH_DEVICE(device) {
    // As many elements as copies are worth, and a few.
    for (const Dims& sizes : {Dims{70, 90}, Dims{5, 30, 40}, Dims{6, 7}}) {
      SCOPED_TRACE(to_string(sizes));
      const Tensor x = randn(sizes, {.device = device, .seed = 1}), last = x.transpose(0, -1).contiguous();
      EXPECT_EQ(nn::softmax(x, 0).to_bytes(), nn::softmax(last, -1).transpose(0, -1).contiguous().to_bytes());
      // Elements into a view, from a tensor that repeats along the rows' dimensions, and results of rows.
      const Tensor scale = randn({sizes[0]}, {.device = device, .seed = 2}), out = empty(last.sizes(), {.device = device});
      Dims of_scale = Dims::filled(sizes.rank(), 1);
      of_scale[0] = sizes[0];
      const RowFunction f = trace_rows(
          [](Row& row, Expr v, Expr w) {
            const Expr total = row.sum(v * w);
            row.result(total);
            return v * total + w;
          },
          std::array{DType::f32, DType::f32});
      const Tensor transposed[] = {x, scale.reshape(of_scale)};
      const std::vector<Tensor> got = rowwise(f, transposed, {.dims = {0}});
      Dims of_last = Dims::filled(sizes.rank(), 1);
      of_last[sizes.rank() - 1] = sizes[0];
      const Tensor contiguous[] = {last, scale.reshape(of_last)};
      const std::vector<Tensor> want = rowwise(f, contiguous, {.dims = {-1}});
      EXPECT_EQ(got[0].to_bytes(), want[0].transpose(0, -1).contiguous().to_bytes());
      EXPECT_EQ(got[1].to_bytes(), want[1].transpose(0, -1).contiguous().to_bytes());
      Dims of_result = sizes;
      of_result[0] = 1;
      const Tensor in_view[] = {out.transpose(0, -1), empty(of_result, {.device = device})};
      rowwise_out(in_view, f, transposed, {.dims = {0}});
      EXPECT_EQ(out.to_bytes(), want[0].to_bytes());
    }
  }
}

TEST(Rowwise, InputsMayRepeatAlongSomeDimensionsOfARow) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = randn({9, 30, 40}, {.device = device, .seed = 1}), y = randn({9, 1, 40}, {.device = device, .seed = 2}),
                 z = randn({30, 1}, {.device = device, .seed = 3});
    auto f = [](Row& row, Expr a, Expr b, Expr c) { return a - row.sum(a * b + c); };
    const Tensor got = rowwise(f, {x, y, z}, {.dims = {1, 2}})[0];
    const Tensor want = rowwise(f, {x, y.expand(x.sizes()).contiguous(), z.expand(x.sizes()).contiguous()}, {.dims = {1, 2}})[0];
    EXPECT_EQ(got.to_bytes(), want.to_bytes());
  }
}

// Weights of groups of channels have one element in each part of a row: read as they are or copied, and where totals read them, too.
TEST(Rowwise, PartsOfARowHaveTheBitsOfCopies) {
  const RowFunction normal = trace_rows(
      [](Row& row, Expr x, Expr w, Expr b) {
        const Expr mean = row.mean(x), centered = x - mean, rstd = rsqrt(row.mean(square(centered)) + 1e-5);
        row.result(rstd);
        return fma(centered * rstd, w, b);
      },
      std::array{DType::f32, DType::f32, DType::f32});
  const RowFunction weighted =
      trace_rows([](Row& row, Expr x, Expr w, Expr b) { return x * w - row.sum(x * w) + b; }, std::array{DType::f32, DType::f32, DType::f32});
  CLUTCH_EACH_DEVICE(device) {
    for (const Dims& sizes : {Dims{2, 3, 5, 32}, {2, 3, 5, 33}, {1, 2, 3, 1024}, {2, 2, 40, 16}, {3, 1, 1, 64}})
      for (const RowFunction& f : {normal, weighted}) {
        SCOPED_TRACE(to_string(sizes));
        const Dims of_parts{1, sizes[1], sizes[2], 1};
        const Tensor x = randn(sizes, {.device = device, .seed = 1}), w = randn(of_parts, {.device = device, .seed = 2}),
                     b = randn(of_parts, {.device = device, .seed = 3});
        const auto by = [&](const Tensor& of_w, const Tensor& of_b, std::string_view implementation) {
          std::vector<std::vector<float>> all;
          const Tensor all_inputs[] = {x, of_w, of_b};
          for (const Tensor& t : rowwise(f, all_inputs, {.dims = {2, 3}, .implementation = std::string(implementation)})) all.push_back(t.to_host<float>());
          return all;
        };
        const auto want = by(w.expand(sizes).contiguous(), b.expand(sizes).contiguous(), "rowwise_strided");
        for (std::string_view implementation : {"", "rowwise_rows", "rowwise_strided"}) {
          EXPECT_EQ(by(w, b, implementation), want) << implementation;
          EXPECT_EQ(by(w, b.expand(sizes).contiguous(), implementation), want) << implementation;
        }
      }
  }
}

// Many short rows, which go as lanes, with inputs that have no single stride along a row.
TEST(Rowwise, ShortRowsOfOtherStridesHaveTheBitsOfCopies) {
  const RowFunction f = trace_rows([](Row& row, Expr a, Expr w) { return (a - row.sum(a)) * w; }, std::array{DType::f32, DType::f32});
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = randn({100, 3, 4}, {.device = device, .seed = 1});
    for (const Tensor& w : {randn({3, 1}, {.device = device, .seed = 2}), randn({4, 3}, {.device = device, .seed = 3}).mT()}) {
      const Tensor given[] = {x, w}, copied[] = {x, w.expand(x.sizes()).contiguous()};
      EXPECT_EQ(rowwise(f, given, {.dims = {1, 2}})[0].to_bytes(), rowwise(f, copied, {.dims = {1, 2}, .implementation = "rowwise_strided"})[0].to_bytes());
    }
  }
}

TEST(RowFunction, TextsAreReadAsTheyAreWritten) {
  const DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  const RowFunction all[] = {
      trace_rows([](Row& row, Expr x) { return x - row.max(x); }, std::array{f32}),
      trace_rows(
          [](Row& row, Expr x) {
            Expr e = exp(x - row.max(x));
            return e * (1 / row.sum(e));
          },
          std::array{f64}),
      trace_rows(
          [](Row& row, Expr x, Expr y, Expr n) {
            Expr least = row.min(x * param(3)), product = row.prod(cast(n, DType::f32) + param(5)), total = row.mean(y + least * param(2));
            row.result(product - row.size());
            row.result(least * param(-1));
            return std::array{x * total + param(11), y / param(13)};
          },
          std::array{f32, f32, i32}),
      trace_rows([](Row& row, Expr x) { row.result(row.sum(x)); }, std::array{f32}),
  };
  EXPECT_EQ(all[0].text(),
            "rows f32\ntotal amax\ninputs f32 f32 f32 f32 f32 f32\noutputs %0\nelements\ninputs f32 f32 f32 f32 f32 f32\n"
            "%6 = sub %0 %1\noutputs %6\n");
  for (const RowFunction& f : all) {
    const RowFunction read = RowFunction::parse(f.text());
    EXPECT_EQ(read.text(), f.text());
    ASSERT_EQ(read.param_count(), f.param_count());
    EXPECT_EQ(read.element_count(), f.element_count());
    EXPECT_EQ(read.result_count(), f.result_count());
    std::vector<double> values;
    for (int i = 0; i < f.param_count(); ++i) {
      EXPECT_EQ(read.param_value(i), 0);
      values.push_back(f.param_value(i));
    }
    if (values.empty()) continue;
    CLUTCH_EACH_DEVICE(device) {
      std::vector<Tensor> inputs;
      for (int i = 0; i < f.input_count(); ++i)
        inputs.push_back(randn({6, 40}, {.device = device, .seed = 5 + static_cast<std::uint64_t>(i)}).to(i == 2 ? i32 : f32));
      const std::vector<Tensor> wanted = rowwise(f, inputs), got = rowwise(read.with_params(values), inputs);
      ASSERT_EQ(got.size(), wanted.size());
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].to_bytes(), wanted[i].to_bytes());
    }
  }
  EXPECT_EQ(all[2].param_count(), 6);
  std::multiset<double> values;
  for (int i = 0; i < 6; ++i) values.insert(all[2].param_value(i));
  EXPECT_EQ(values, (std::multiset<double>{-1, 2, 3, 5, 11, 13}));
  // An empty function has no text, and others' texts are refused with what must be.
  const std::string head = "inputs f32 f32 f32 f32 f32 f32\n", total = "rows f32\ntotal sum\n" + head + "outputs %0\n";
  const std::pair<std::string, const char*> bad[] = {
      {"", "begins with"},
      {"rows f32", "a line without an end"},
      {"rows f33\n", "f33"},
      {"rows f32\n", "must have a total"},
      {total, "must be an output"},
      {"rows f32\ntotal mean\n" + head + "outputs %0\n", "stands where a part"},
      {"rows f32\ntotal sum\ninputs f32\noutputs %0\n", "inputs must be the row's, then 5 of f32"},
      {"rows f32\ntotal sum\n" + head, "ends without"},
      {"rows f32\ntotal sum\n" + head + "outputs %0 %0\n", "a total must be of one value"},
      {"rows f32\ntotal sum\n" + head + "outputs %1\n", "must use earlier totals alone"},
      {total + "elements\n" + head + "%6 = add %0 %2\noutputs %6\n", "must use earlier totals alone"},
      {total + "elements\n" + head + "outputs %1\nelements\n" + head + "outputs %1\n", "stands where a part"},
      {total + "results\n" + head + "outputs %1\nelements\n" + head + "outputs %1\n", "stands where a part"},
      {total + total.substr(9) + total.substr(9) + total.substr(9) + total.substr(9), "more than 4 totals"},
      {total + "elements\n" + head + "%6 = nonsense %0\noutputs %6\n", "nonsense"},
  };
  for (const auto& [text, why] : bad) try {
      RowFunction::parse(text);
      ADD_FAILURE() << "was read: " << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what() << "\nof\n" << text;
    }
}

TEST(Rowwise, NothingIsNothing) {
  CLUTCH_EACH_DEVICE(device) {
    auto none_of = [&](const Dims& sizes) { return zeros(sizes, {.device = device}); };
    for (const Dims& sizes : {Dims{0}, Dims{3, 0}, Dims{0, 3}, Dims{2, 0, 4}}) {
      SCOPED_TRACE(to_string(sizes));
      Tensor x = none_of(sizes), out = none_of(sizes);
      for (int dim : {-1, 0}) {
        EXPECT_EQ(nn::softmax(x, dim).sizes(), sizes);
        EXPECT_EQ(nn::log_softmax(x, dim).sizes(), sizes);
        nn::softmax_out(out, x, dim);
        nn::log_softmax_out(out, x, dim);
        EXPECT_EQ(nn::softmax_backward(x, x, dim).sizes(), sizes);
        EXPECT_EQ(nn::log_softmax_backward(x, x, dim).sizes(), sizes);
      }
      auto layer = nn::layer_norm(x, none_of({sizes[sizes.rank() - 1]}));
      EXPECT_EQ(layer.y.sizes(), sizes);
      auto gradients = nn::layer_norm_backward(x, x, layer.mean, layer.rstd, none_of({sizes[sizes.rank() - 1]}));
      EXPECT_EQ(gradients.x.sizes(), sizes);
      for (double v : values(gradients.weight)) EXPECT_EQ(v, 0);
      for (double v : values(gradients.bias)) EXPECT_EQ(v, 0);
      EXPECT_EQ(nn::rms_norm(x).y.sizes(), sizes);
    }
    // Means of no losses are NaN, sums 0.
    using nn::Reduction;
    Tensor no_rows = none_of({0, 3}), no_classes = none_of({3, 0}), no_places = none_of({2, 3, 0});
    Tensor none = zeros({0}, {.dtype = DType::i64, .device = device}), three = from_host<std::int64_t>({0, -100, 2}, device);
    const double nan = NAN;
    const struct {
      Tensor logits, target;
      std::vector<double> losses;
    } cases[] = {{no_rows, none, {}},
                 {no_rows, no_rows, {}},
                 {no_classes, three, {nan, 0, nan}},
                 {no_classes, no_classes, {0, 0, 0}},
                 {no_places, zeros({2, 0}, {.dtype = DType::i64, .device = device}), {}},
                 {no_places, no_places, {}}};
    for (const auto& c : cases)
      for (double smoothing : {0.0, 0.1})
        for (bool weighted : {false, true}) {
          SCOPED_TRACE(
              fmt::format("logits {} target {} smoothing {} weighted {}", to_string(c.logits.sizes()), to_string(c.target.sizes()), smoothing, weighted));
          nn::CrossEntropyOptions o{.reduction = Reduction::none, .label_smoothing = smoothing};
          if (weighted) o.weight = none_of({c.logits.size(1)});
          nn::CrossEntropyResult each = nn::cross_entropy(c.logits, c.target, o);
          Dims rows = c.logits.sizes();
          rows.erase(1);
          EXPECT_EQ(each.loss.sizes(), rows);
          std::vector<double> got = values(each.loss);
          double total = 0;
          for (std::size_t i = 0; i < c.losses.size(); ++i) {
            total += c.losses[i];
            EXPECT_TRUE(got[i] == c.losses[i] || (std::isnan(got[i]) && std::isnan(c.losses[i]))) << i;
          }
          EXPECT_EQ(nn::cross_entropy_backward(full(rows, 1, {.device = device}), c.logits, c.target, each, o).sizes(), c.logits.sizes());
          for (Reduction reduction : {Reduction::sum, Reduction::mean}) {
            o.reduction = reduction;
            nn::CrossEntropyResult all = nn::cross_entropy(c.logits, c.target, o);
            double loss = all.loss.item();
            EXPECT_EQ(std::isnan(loss), reduction == Reduction::mean || std::isnan(total));
            if (!std::isnan(loss)) {
              EXPECT_EQ(loss, 0);
            }
            EXPECT_EQ(nn::cross_entropy_backward(full({}, 1, {.device = device}), c.logits, c.target, all, o).sizes(), c.logits.sizes());
          }
        }
  }
}

TEST(Rowwise, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = zeros({3, 4}, {.device = device}), none = zeros({3, 0}, {.device = device});
    auto soft = [](Row& row, Expr a) { return a - row.max(a); };
    RowFunction f = trace_rows(soft, std::array{DType::f32});
    auto run_with = [&](const Tensor& t, const RowwiseOptions& o) { return code_of([&] { rowwise(f, std::span(&t, 1), o); }); };
    EXPECT_EQ(run_with(x, {.dims = {2}}), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x, {.dims = {0, 0}}), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x, {.dims = {}}), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x, {.dtype = {DType::c64}}), ErrorCode::invalid_dtype);
    EXPECT_EQ(run_with(x, {.dtype = {DType::f32, DType::f32}}), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x, {.implementation = "rowwise_best"}), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x.mT(), {.implementation = "rowwise_rows"}), ErrorCode::not_supported);
    EXPECT_EQ(run_with(none, {}), ErrorCode::ok) << "no elements, of which no total is asked for";
    EXPECT_EQ(code_of([&] { rowwise([](Row& row, Expr a) { row.result(row.max(a)); }, {none}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(run_with(x.to(DType::i64), {}), ErrorCode::invalid_dtype);
    EXPECT_EQ(run_with(Tensor(), {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { rowwise([](Row&, Expr a) { return a; }, {x}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { rowwise([](Row& row, Expr a) { row.sum(a); }, {x}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                rowwise(
                    [](Row& row, Expr a) {
                      Expr t = row.sum(a);
                      for (int i = 0; i < 4; ++i) t = row.sum(a * t);
                      return t;
                    },
                    {x});
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { rowwise([](Row& row, Expr a) { return row.sum(a) * position(0); }, {x}); }), ErrorCode::invalid_argument);
    Tensor wrong = zeros({4, 3}, {.device = device}), transposed = x.as_strided({3, 3}, {1, 3});
    EXPECT_EQ(code_of([&] { rowwise_out(std::span(&wrong, 1), f, std::span(&x, 1)); }), ErrorCode::invalid_shape);
    Tensor square = x.as_strided({3, 3}, {3, 1});
    EXPECT_EQ(code_of([&] { rowwise_out(std::span(&transposed, 1), f, std::span(&square, 1)); }), ErrorCode::invalid_overlap);
  }
}

TEST(Rowwise, ShapesOfAClassBuildNothing) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t m : {5, 100, 1000, 10000}) nn::softmax(full({4, m}, 1, {.device = device}));
    auto before = build_counters();
    for (const Dims& sizes : {Dims{1, 1}, Dims{70, 9}, Dims{3, 12000}, Dims{9, 129}, Dims{2, 3, 4, 5}}) nn::softmax(full(sizes, 1, {.device = device}));
    EXPECT_EQ(build_counters().built + build_counters().loaded, before.built + before.loaded);
  }
}

TEST(Rowwise, SelectionByTraitsAlone) {
  DeviceTraits cpu = wide_cpu();
  detail::RowwiseProblem problem;
  EXPECT_EQ(detail::select(cpu, problem).entry, "rowwise_rows");
  EXPECT_EQ(detail::select(cpu, problem).tuning.width, 16);
  problem.types.has_wide = true;
  EXPECT_EQ(detail::select(cpu, problem).tuning.width, 8);
  problem.rows = false;
  EXPECT_EQ(detail::select(cpu, problem).entry, "rowwise_strided");
  problem.columns = true;
  EXPECT_EQ(detail::select(cpu, problem).entry, "rowwise_columns");
  cpu.fp64 = false, problem.types.has_f64 = true;
  EXPECT_EQ(code_of([&] { detail::select(cpu, problem); }), ErrorCode::not_supported);
  // Groups of several items.
  DeviceTraits gpu{.type = DeviceType::gpu, .max_work_group = 1024, .local_bytes = 16 << 10};
  gpu.fma_exact = gpu.divide_exact = gpu.sqrt_exact = true;
  detail::RowwiseProblem rows;
  detail::KernelPlan plan = detail::select(gpu, rows);
  EXPECT_EQ(plan.entry, "rowwise_groups");
  EXPECT_EQ(plan.tuning.width, 1);
  EXPECT_EQ(plan.tuning.local, 256u);
  EXPECT_EQ(plan.registers, 0);
  rows.held = 1;
  for (auto [length, count] : {std::pair{detail::RowLength::fits, 0}, {detail::RowLength::few_held, 8}, {detail::RowLength::held, 32}}) {
    rows.length = length;
    const std::string text = detail::select(gpu, rows).to_string();
    EXPECT_EQ(text.find(fmt::format("HELD={}", count)) != std::string::npos, count > 0) << text;
  }
  rows.held = detail::kNoneHeld;
  EXPECT_EQ(detail::select(gpu, rows).to_string().find("HELD="), std::string::npos);
  rows.length = detail::RowLength::short_rows;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_column_groups");
  EXPECT_EQ(detail::select(gpu, rows, "rowwise_groups").entry, "rowwise_groups");
  rows.eights = 1, rows.held = 1;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_column_groups");
  rows.many = true;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_items");
  rows.length = detail::RowLength::few_held;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_groups");
  rows.rows = false;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_items");
  rows.rows = true, rows.many = false, rows.eights = 0, rows.held = detail::kNoneHeld;
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "rowwise_items"); }).find("rows must have at most 64 elements"), std::string::npos);
  rows.length = detail::RowLength::chains;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_groups");
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "rowwise_column_groups"); }).find("rows must have at most 1048576 elements, got more"),
            std::string::npos);
  rows.length = detail::RowLength::long_rows;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_rows");
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "rowwise_groups"); }).find("rows must have at most 4194304 elements, got more"), std::string::npos);
  rows.length = detail::RowLength::fits, rows.accumulator = DType::f64;
  EXPECT_NE(message_of([&] { detail::select(gpu, rows, "rowwise_groups"); }).find("needs 18432 bytes of local memory, the device has 16384"),
            std::string::npos);
  rows.accumulator = DType::f32, rows.rows = false;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_column_groups");
  rows.columns = true;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_column_groups");
  rows.length = detail::RowLength::chains;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_strided");
  gpu.max_work_group = 32;
  rows.length = detail::RowLength::short_rows;
  EXPECT_EQ(detail::select(gpu, rows).entry, "rowwise_strided");
  EXPECT_EQ(detail::select(gpu, rows, "rowwise_columns").entry, "rowwise_columns");
}

TEST(RankZero, CountsAsOneDimension) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = full({}, 3, {.device = device}), g = full({}, 2, {.device = device});
    for (int dim : {0, -1}) {
      const Tensor y = nn::softmax(x, dim), l = nn::log_softmax(x, dim);
      EXPECT_EQ(y.sizes(), Dims{});
      EXPECT_EQ(y.item(), 1);
      EXPECT_EQ(l.item(), 0);
      EXPECT_EQ(nn::softmax_backward(g, y, dim).item(), 0);
      EXPECT_EQ(nn::log_softmax_backward(g, l, dim).item(), 0);
      const Dims dims{dim};
      EXPECT_EQ(sum(x, {.dims = dims}).item(), 3);
      EXPECT_EQ(sum(x, {.dims = dims, .keepdim = true}).sizes(), Dims{}) << "as torch";
      EXPECT_EQ(amax(x, {.dims = dims}).item(), 3);
      EXPECT_EQ(argmax(x, {.dims = dims}).item(), 0);
      EXPECT_EQ(logsumexp(x, {.dims = dims}).item(), 3);
      EXPECT_EQ(var(x, 0, {.dims = dims}).item(), 0);
      EXPECT_EQ(norm(x, 2, {.dims = dims}).item(), 3);
      EXPECT_EQ(cumsum(x, dim).item(), 3);
      const Tensor out = empty({}, {.device = device});
      cumsum_out(out, x, dim);
      EXPECT_EQ(out.item(), 3);
      nn::softmax_out(out, x, dim);
      EXPECT_EQ(out.item(), 1);
    }
    for (int dim : {1, -2}) {
      EXPECT_EQ(code_of([&] { nn::softmax(x, dim); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { sum(x, {.dims = {dim}}); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { cumsum(x, dim); }), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(code_of([&] { sum(x, {.dims = {0, -1}}); }), ErrorCode::invalid_argument) << "twice";
  }
}
}}  // namespace clutch::testing
