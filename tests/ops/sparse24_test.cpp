// SPDX-License-Identifier: Apache-2.0
#include "cases/sparse24.hpp"

#include "ops/matmul_plan.hpp"
#include "runtime/quirks.hpp"
#include "runtime/runtime.hpp"
#include "support/op_runner.hpp"

#include <clutch/clutch.hpp>
#include <clutch/interop_cl.hpp>

#include <chrono>
#include <cmath>
#include <random>
#include <thread>

namespace clutch::testing { namespace {

using cases::Problem;
using cases::Sparse24Case;
using sparse::PruneRule;

/// Whether the device takes a kernel that is forced.
bool takes(const Device& device, std::string_view entry, DType dtype) {
  try {
    const detail::MatmulProblem problem{.left = detail::MatmulProblem::Left::sparse, .a = dtype, .b = dtype};
    return entry.empty() || (detail::select(device.traits(), problem, entry), true);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::not_supported);
    return false;
  }
}

constexpr PruneRule kRules[] = {PruneRule::groups, PruneRule::tile_values, PruneRule::tile_magnitudes, PruneRule::causal1122};

/// Small whole numbers of a dtype, pruned.
Tensor whole_2_4(const Dims& sizes, DType dtype, const Device& device, std::uint64_t seed) {
  Tensor w = map([](Expr x) { return floor(x * 9.0f) - 4.0f; }, rand(sizes, {.device = device, .seed = seed}));
  return sparse::prune_2_4(w.to(dtype));
}
Tensor whole(const Dims& sizes, DType dtype, const Device& device, std::uint64_t seed) {
  return map([](Expr x) { return floor(x * 9.0f) - 4.0f; }, rand(sizes, {.device = device, .seed = seed})).to(dtype);
}

TEST(Sparse24, NothingIsNothing) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Dims& sizes : {Dims{0, 64}, Dims{64, 0}, Dims{0, 0}}) {
      SCOPED_TRACE(to_string(sizes));
      const Tensor w = zeros(sizes, {.device = device});
      for (PruneRule rule : kRules) {
        EXPECT_EQ(sparse::prune_2_4(w, {.rule = rule}).sizes(), sizes);
        EXPECT_EQ(sparse::mask_2_4(w, {.rule = rule}).sizes(), sizes);
      }
      EXPECT_NO_THROW(sparse::require_2_4(w));
      const Tensor mask = sparse::mask_2_4(w);
      EXPECT_EQ(sparse::apply_mask(w, mask).sizes(), sizes);
      EXPECT_EQ(sparse::to_bitmask(mask).numel(), 0);
      const sparse::SemiStructured s = sparse::compress(w);
      EXPECT_EQ(sparse::decompress(s).sizes(), sizes);
      const Tensor b = full({sizes[1], 3}, 1, {.device = device}), product = sparse::matmul(s, b);
      EXPECT_EQ(product.sizes(), (Dims{sizes[0], 3}));
      for (double x : values(product)) EXPECT_EQ(x, 0);
    }
  }
}

TEST(Sparse24, PrunesByEachRule) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : Sparse24Case::kDtypes)
      for (PruneRule rule : kRules)
        for (auto [m, k] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 5}, {4, 4}, {7, 66}, {8, 300}, {13, 18}})
          for (bool transposed : {false, true}) {
            Problem p = Sparse24Case::prune(rule == PruneRule::groups ? "sparse24_groups" : "sparse24_tiles", dtype, rule, m, k, transposed, seed());
            ASSERT_EQ(run_once(device, p), "") << name(dtype) << " rule " << static_cast<int>(rule) << " " << m << " " << k << " " << transposed;
          }
  }
}

/// Ties go to the first, NaN is kept, zeros' signs do not matter; and the tile's example that PyTorch documents.
TEST(Sparse24, TiesAndNaN) {
  CLUTCH_EACH_DEVICE(device) {
    const float nan = NAN, inf = INFINITY;
    struct Row {
      std::vector<float> w, kept;
    };
    for (const Row& row : {Row{{1, 1, 1, 1}, {1, 1, 0, 0}}, Row{{-2, 1, 2, -2}, {-2, 0, 2, 0}}, Row{{inf, nan, 3, -inf}, {inf, nan, 0, 0}},
                           Row{{nan, 1, nan, nan}, {nan, 0, nan, 0}}, Row{{0, -0.0f, 0, 5}, {0, 0, 0, 5}}}) {
      // Alone, and among others, where a whole vector goes at once.
      for (int copies : {1, 8}) {
        std::vector<float> w, want;
        for (int i = 0; i < copies; ++i) w.insert(w.end(), row.w.begin(), row.w.end()), want.insert(want.end(), row.kept.begin(), row.kept.end());
        const std::vector<float> got = sparse::prune_2_4(from_host(w, {1, 4 * copies}, device)).to_host<float>();
        for (std::size_t i = 0; i < want.size(); ++i)
          EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]) << i << ": " << got[i] << " instead of " << want[i];
      }
    }
    Tensor tile = from_host<float>(std::vector<float>{9, 1, 7, 4, 1, 2, 3, 0, 8, 3, 5, 4, 1, 2, 6, 2}, {4, 4}, device);
    EXPECT_EQ(sparse::prune_2_4(tile, {.rule = PruneRule::tile_values}).to_host<float>(), (std::vector<float>{9, 0, 7, 0, 0, 2, 0, 0, 8, 0, 0, 4, 0, 2, 6, 0}));
    // What is 2:4 both ways.
    for (PruneRule rule : {PruneRule::tile_values, PruneRule::tile_magnitudes, PruneRule::causal1122}) {
      Tensor both = sparse::prune_2_4(randn({64, 48}, {.device = device, .seed = 5}), {.rule = rule});
      sparse::require_2_4(both);
      sparse::require_2_4(both.mT());
    }
  }
}

TEST(Sparse24, MasksAreWhatIsKept) {
  CLUTCH_EACH_DEVICE(device) {
    for (PruneRule rule : kRules) {
      Tensor w = randn({10, 70}, {.device = device, .seed = 3}), mask = sparse::mask_2_4(w, {.rule = rule});
      EXPECT_EQ(mask.dtype(), DType::boolean);
      EXPECT_EQ(sparse::apply_mask(w, mask).to_bytes(), sparse::prune_2_4(w, {.rule = rule}).to_bytes());
    }
  }
}

/// Values and metadata of every pattern, as PyTorch names their places.
TEST(Sparse24, EveryPatternOfAQuad) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr float kNumbers[] = {1, -2, 64, -128};
    std::vector<float> w;
    for (int set = 0; set < 16; ++set)
      for (int e = 0; e < 4; ++e) w.push_back(set >> e & 1 ? kNumbers[e] : 0.0f);
    for (DType dtype : Sparse24Case::kDtypes)
      for (std::int64_t rows : {16, 1})  // a quad in each, and all in one
        for (bool strict : {true, false}) {
          SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), rows, strict));
          const sparse::SemiStructured s = sparse::compress(from_host(w, {rows, 64 / rows}, device).to(dtype), {.strict = strict});
          const std::vector<float> values = s.values().to(DType::f32).to_host<float>();
          const std::vector<std::uint8_t> codes = s.metadata().to_host<std::uint8_t>();
          for (std::size_t set = 0; set < 16; ++set) {
            const auto two = Sparse24Case::places({(set & 1) != 0, (set & 2) != 0, (set & 4) != 0, (set & 8) != 0});
            const int code = rows == 16 ? codes[set] : codes[set / 2] >> 4 * (set % 2) & 15;
            EXPECT_EQ(code, two[0] | two[1] << 2) << set;
            for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(values[2 * set + i], w[4 * set + static_cast<std::size_t>(two[i])]) << set;
          }
          EXPECT_EQ(s.info().to_host<std::int32_t>()[0], strict ? 7 : -1) << "the first with three";
        }
  }
}

TEST(Sparse24, CompressesAndBack) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : Sparse24Case::kDtypes)
      for (std::int64_t m : {1, 3, 17})
        for (std::int64_t k : {1, 2, 3, 4, 5, 31, 64, 300})
          for (bool transposed : {false, true})
            ASSERT_EQ(run_once(device, Sparse24Case::round_trip("sparse24_compress", dtype, m, k, transposed, seed())), "")
                << name(dtype) << " " << m << " " << k;
    for (const Dims& empty_one : {Dims{0, 8}, Dims{5, 0}}) {
      const sparse::SemiStructured s = sparse::compress(empty(empty_one, {.device = device}));
      EXPECT_EQ(sparse::decompress(s).sizes(), empty_one);
    }
  }
}

TEST(Sparse24, RefusesWhatIsNot2Of4) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor w = sparse::prune_2_4(randn({6, 20}, {.device = device, .seed = 1}));
    EXPECT_EQ(sparse::is_2_4(w).to(DType::u8).to_host<std::uint8_t>()[0], 1);
    sparse::require_2_4(w);
    fill_(w.slice(0, 4, 5).slice(1, 8, 12), 1);
    EXPECT_EQ(sparse::is_2_4(w).to(DType::u8).to_host<std::uint8_t>()[0], 0);
    try {
      sparse::require_2_4(w);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(e.what()).find("row 4, columns 8 to 11"), std::string::npos) << e.what();
    }
    // Never silently pruned: NaN throughout, the least integer, in either kernel.
    const Tensor b = randn({20, 9}, {.device = device, .seed = 2});
    const sparse::SemiStructured bad = sparse::compress(w), lossy = sparse::compress(w, {.strict = false});
    EXPECT_EQ(bad.info().to_host<std::int32_t>()[0], 4 * 5 + 2);
    for (std::string implementation : {"", "matmul_sparse_panels", "matmul_sparse_tiles", "matmul_sparse_items"}) {
      if (!takes(device, implementation, DType::i8)) continue;
      for (float x : sparse::matmul(bad, b, {.implementation = implementation}).to_host<float>()) EXPECT_TRUE(std::isnan(x));
      for (float x : sparse::matmul(lossy, b, {.implementation = implementation}).to_host<float>()) EXPECT_FALSE(std::isnan(x));
      const Tensor bytes = full({4, 8}, 1, {.dtype = DType::i8, .device = device});
      const sparse::SemiStructured all = sparse::compress(bytes);
      for (const Tensor& c :
           {sparse::matmul(all, bytes.mT(), {.implementation = implementation}), sparse::matmul_transposed(bytes, all, {.implementation = implementation})})
        for (std::int32_t x : c.to_host<std::int32_t>()) EXPECT_EQ(x, INT32_MIN);
    }
    EXPECT_EQ(code_of([&] { sparse::compress(b.to(DType::i32)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::compress(b.unsqueeze(0)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { sparse::matmul(lossy, b.mT()); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { sparse::matmul(lossy, b.to(DType::bf16)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::matmul(sparse::SemiStructured(), b); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { sparse::to_cutlass(lossy); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::linear(b.mT(), lossy, b); }), ErrorCode::invalid_shape);
  }
}

TEST(Sparse24, CutlassOrderIsTheirs) {
  CLUTCH_EACH_DEVICE(device) {
    for (auto [m, k] : {std::pair<std::int64_t, std::int64_t>{32, 64}, {64, 192}, {96, 320}})
      for (DType dtype : {DType::f16, DType::bf16, DType::i8}) {
        ASSERT_EQ(run_once(device, Sparse24Case::cutlass(dtype, m, k, seed())), "") << name(dtype) << " " << m << " " << k;
        Tensor w = whole_2_4({m, k}, dtype, device, 4);
        EXPECT_EQ(sparse::decompress(sparse::from_cutlass(sparse::to_cutlass(sparse::compress(w)))).to_bytes(), w.to_bytes());
      }
    // Two zeros, then two numbers, everywhere: 0xEEEE, as PyTorch documents.
    Tensor w = map([](Expr x) { return x; }, from_host(std::vector<float>{0, 0, 1, 1}, {1, 1, 4}, device).expand({32, 8, 4})).reshape({32, 32}).to(DType::f16);
    for (std::int16_t word : sparse::to_cutlass(sparse::compress(w)).metadata.to_host<std::int16_t>()) EXPECT_EQ(word, -4370);
  }
}

/// Whole numbers: exact in every dtype, whatever the shape, on either side.
TEST(Sparse24, ProductsOfWholeNumbersAreExact) {
  CLUTCH_EACH_DEVICE(device) {
    const bool smoke = level() == "smoke";
    for (DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8e4m3fn, DType::f64}) {
      if (dtype == DType::f64 && skip_without(device, "fp64", device.traits().fp64)) continue;
      for (std::int64_t m : {1, 3, 40, 200})
        for (std::int64_t n : {1, 7, 16, 33, 64, 65, 150})
          for (std::int64_t k : {1, 3, 30, 64, 130, 260}) {
            if (smoke && (m + n + k) % (dtype == DType::f32 ? 11 : 37) != 0) continue;
            Tensor w = whole_2_4({m, k}, dtype, device, 1), b = whole({k, n}, dtype, device, 2), dense = sparse::decompress(sparse::compress(w));
            ASSERT_EQ(dense.to_bytes(), w.to_bytes());
            const linalg::MatmulOptions options{.dtype = dtype == DType::i8 ? DType::i32 : dtype == DType::f64 ? DType::f64 : DType::f32};
            linalg::MatmulOptions items = options;
            items.implementation = "matmul_items";
            const std::vector<std::uint8_t> want = linalg::matmul(w, b, items).to_bytes();
            const sparse::SemiStructured s = sparse::compress(w);
            EXPECT_EQ(sparse::matmul(s, b, options).to_bytes(), want) << name(dtype) << " " << m << " " << n << " " << k;
            EXPECT_EQ(sparse::matmul(s, b.mT().contiguous().mT(), options).to_bytes(), want) << name(dtype) << " b transposed " << m << " " << n << " " << k;
            Tensor transposed = sparse::matmul_transposed(b.mT(), s, options);
            EXPECT_EQ(transposed.mT().contiguous().to_bytes(), want) << name(dtype) << " on the right " << m << " " << n << " " << k;
            for (std::string_view forced : {"matmul_sparse_panels", "matmul_sparse_tiles", "matmul_sparse_items"}) {
              if (!takes(device, forced, dtype)) continue;
              items.implementation = forced;
              EXPECT_EQ(sparse::matmul(s, b, items).to_bytes(), want) << name(dtype) << " " << forced << " " << m << " " << n << " " << k;
            }
          }
    }
  }
}

/// Bytes of their whole range, signed and unsigned columns, in batches: by dot products, whether or not the device has an instruction for them.
TEST(Sparse24, BytesByDotProducts) {
  CLUTCH_EACH_DEVICE(device) {
    auto bytes = [&](const Dims& sizes, DType dtype, unsigned from) {
      std::mt19937 engine(from);
      std::vector<std::int32_t> numbers;
      for (std::int64_t i = 0; i < numel(sizes); ++i) numbers.push_back(static_cast<std::int32_t>(engine() % 256) - (dtype == DType::u8 ? 0 : 128));
      return from_host(numbers, sizes, device).to(dtype);
    };
    for (DType of_b : {DType::i8, DType::u8})
      for (std::int64_t batch : {1, 3})
        for (std::int64_t m : {1, 16, 37})
          for (std::int64_t n : {1, 2, 5, 16, 50})
            for (std::int64_t k : {1, 31, 32, 100, 1000}) {
              if (level() == "smoke" && (batch + m + n + k) % 7 != 0) continue;
              const Tensor w = sparse::prune_2_4(bytes({m, k}, DType::i8, 1)), b = bytes({batch, k, n}, of_b, 2), before = bytes({batch, m, n}, DType::i32, 3);
              const sparse::SemiStructured s = sparse::compress(w);
              const Tensor want = before.clone();
              linalg::matmul_out(want, w, b, {.alpha = 2, .beta = -3, .implementation = "matmul_items"});
              for (std::string implementation : {"", "matmul_sparse_dot"})
                for (const Tensor& given : {b, b.mT().contiguous().mT()}) {
                  const linalg::MatmulOptions options{.alpha = 2, .beta = -3, .implementation = implementation};
                  const Tensor got = before.clone(), transposed = before.mT().clone();
                  sparse::matmul_out(got, s, given, options);
                  sparse::matmul_transposed_out(transposed, given.mT(), s, options);
                  ASSERT_EQ(got.to_bytes(), want.to_bytes()) << implementation << " " << name(of_b) << " " << batch << " " << m << " " << n << " " << k;
                  ASSERT_EQ(transposed.mT().contiguous().to_bytes(), want.to_bytes()) << implementation << " on the right " << m << " " << n << " " << k;
                }
            }
  }
}

TEST(Sparse24, EverySizeUpTo40) {
  const std::int64_t step = level() == "nightly" ? 1 : 13;
  CLUTCH_EACH_DEVICE(device) {
    Tensor all_w = whole_2_4({40, 40}, DType::f32, device, 1), all_b = whole({40, 40}, DType::f32, device, 2);
    for (std::int64_t m = 0; m <= 40; m += step)
      for (std::int64_t k = 0; k <= 40; k += step) {
        const Tensor w = all_w.slice(0, 0, m).slice(1, 0, k);
        const sparse::SemiStructured s = sparse::compress(w, {.strict = true});
        ASSERT_EQ(sparse::decompress(s).to_bytes(), w.contiguous().to_bytes());
        // Columns of the product with all columns.
        const Tensor whole_product = linalg::matmul(w, all_b.slice(0, 0, k), {.implementation = "matmul_items"});
        for (std::int64_t n = 0; n <= 40; n += step) {
          const Tensor b = all_b.slice(0, 0, k).slice(1, 0, n);
          const std::vector<std::uint8_t> want = whole_product.slice(1, 0, n).contiguous().to_bytes();
          ASSERT_EQ(sparse::matmul(s, b).to_bytes(), want) << m << " " << n << " " << k;
          ASSERT_EQ(sparse::matmul_transposed(b.mT(), s).mT().contiguous().to_bytes(), want) << m << " " << n << " " << k << " on the right";
        }
      }
  }
}

/// Any numbers: the bits of the dense product of the same matrix, with epilogues, batches, alpha and beta.
TEST(Sparse24, ProductsHaveTheDenseBits) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f32, DType::bf16}) {
      auto random = [&](const Dims& sizes, std::uint64_t from) { return randn(sizes, {.dtype = dtype, .device = device, .seed = from}); };
      Tensor w = sparse::prune_2_4(random({70, 203}, 1)), bias = random({70}, 2);
      const sparse::SemiStructured s = sparse::compress(w);
      // (name; x; result)
      for (const Dims& of_x : {Dims{1, 203}, Dims{9, 203}, Dims{130, 203}, Dims{3, 5, 203}, Dims{203}}) {
        if (dtype == DType::bf16 && of_x[0] != 9 && level() == "smoke") continue;
        Tensor x = random(of_x, 3);
        EXPECT_EQ(sparse::matmul_transposed(x, s).to_bytes(), linalg::matmul(x, w.mT()).to_bytes()) << to_string(of_x);
        for (nn::Activation activation : {nn::Activation::none, nn::Activation::relu, nn::Activation::gelu, nn::Activation::silu}) {
          if (of_x[0] != 9 && (activation != nn::Activation::relu || level() == "smoke")) continue;
          if ((activation == nn::Activation::none || activation == nn::Activation::silu) && level() == "smoke") continue;
          EXPECT_EQ(sparse::linear(x, s, bias, {.activation = activation}).to_bytes(), linalg::linear(x, w, bias, {.activation = activation}).to_bytes())
              << to_string(of_x) << " activation " << static_cast<int>(activation);
        }
        EXPECT_EQ(sparse::linear(x, s).to_bytes(), linalg::linear(x, w).to_bytes());
      }
      // Batches on the right, an epilogue with positions and another tensor, an output that lies across.
      Tensor b = random({4, 203, 20}, 4), rest = random({70, 20}, 5);
      EXPECT_EQ(sparse::matmul(s, b).to_bytes(), linalg::matmul(w, b).to_bytes());
      auto f = [](Expr x, Expr r) { return select(position(-2) < position(-1) * 3, x + r, x * 2.0f); };
      const ExprFunction traced = trace(f, std::array{DType::f32, traced_dtypes(std::span(&rest, 1))[0]});
      EXPECT_EQ(sparse::matmul(s, b, traced, std::span(&rest, 1)).to_bytes(), linalg::matmul(w, b, traced, std::span<const Tensor>(&rest, 1)).to_bytes());
      Tensor turned_rest = rest.mT();
      EXPECT_EQ(sparse::matmul_transposed(b.mT(), s, traced, std::span(&turned_rest, 1)).to_bytes(),
                linalg::matmul(b.mT(), w.mT(), traced, std::span<const Tensor>(&turned_rest, 1)).to_bytes());
      Tensor out = random({20, 70}, 6), other = out.clone();
      const ExprFunction none;
      sparse::matmul_transposed_out(out, b.select(0, 1).mT(), s, none, {}, {.alpha = 0.5, .beta = 2});
      linalg::matmul_out(other, b.select(0, 1).mT(), w.mT(), {.alpha = 0.5, .beta = 2});
      EXPECT_EQ(out.to_bytes(), other.to_bytes());
      sparse::matmul_out(out.mT(), s, b.select(0, 2), none, {}, {.alpha = 0.5, .beta = 2});
      linalg::matmul_out(other.mT(), w, b.select(0, 2), {.alpha = 0.5, .beta = 2});
      EXPECT_EQ(out.to_bytes(), other.to_bytes());
    }
  }
}

/// The dense layer's gradients, whichever way x's is computed; the weight's where it holds values.
TEST(Sparse24, BitmasksAreInPyTorchsOrder) {
  CLUTCH_EACH_DEVICE(device) {
    const std::int64_t m = 24, k = 40;
    Tensor mask = sparse::mask_2_4(randn({m, k}, {.device = device, .seed = 6}), {.rule = PruneRule::tile_magnitudes});
    const std::vector<std::uint8_t> kept = mask.to_bytes(), bits = sparse::to_bitmask(mask).to_host<std::uint8_t>();
    ASSERT_EQ(bits.size(), kept.size() / 8);
    for (std::int64_t r = 0; r < m; ++r)
      for (std::int64_t c = 0; c < k; ++c) {
        const std::int64_t tile = r % 8 / 4 * 2 + c % 8 / 4, bit = r % 4 * 4 + c % 4;
        const std::uint8_t byte = bits[static_cast<std::size_t>(((r / 8 * (k / 8) + c / 8) * 4 + tile) * 2 + bit / 8)];
        ASSERT_EQ(byte >> (bit % 8) & 1, kept[static_cast<std::size_t>(r * k + c)]) << r << " " << c;
      }
    EXPECT_EQ(sparse::from_bitmask(sparse::to_bitmask(mask)).to_bytes(), kept);
    EXPECT_EQ(sparse::from_bitmask(sparse::to_bitmask(mask.mT())).to_bytes(), mask.mT().contiguous().to_bytes());
    EXPECT_EQ(sparse::to_bitmask(mask.slice(0, 0, 0)).sizes(), (Dims{0, 5, 8}));
    EXPECT_EQ(code_of([&] { sparse::to_bitmask(mask.slice(0, 0, 12)); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { sparse::to_bitmask(mask.to(DType::u8)); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::from_bitmask(mask); }), ErrorCode::invalid_dtype);
  }
}

/// f8 with scales of rows and columns, to every result dtype; i8 through a lambda.
TEST(Sparse24, ScaledProductsAreTheDenseOnes) {
  CLUTCH_EACH_DEVICE(device) {
    const RandomOptions f32{.device = device, .seed = 4};
    Tensor w = sparse::prune_2_4(randn({37, 90}, f32).to(DType::f8e4m3fn)), b = randn({90, 21}, f32).to(DType::f8e4m3fn), bias = randn({37, 1}, f32);
    Tensor rows = rand({37, 1}, f32), columns = rand({1, 21}, f32), one = full({}, 0.75f, {.device = device});
    const sparse::SemiStructured s = sparse::compress(w);
    struct Case {
      DType dtype;
      Tensor of_w, bias;
    };
    for (const Case& c : {Case{DType::f32, rows, {}}, Case{DType::bf16, one, bias}, Case{DType::f16, rows, bias}}) {
      if (level() == "smoke" && c.dtype == DType::f16) continue;
      Tensor want = linalg::scaled_matmul(w, b, c.of_w, columns, {.bias = c.bias, .dtype = c.dtype});
      EXPECT_EQ(sparse::scaled_matmul(s, b, c.of_w, columns, {.bias = c.bias, .dtype = c.dtype}).to_bytes(), want.to_bytes()) << name(c.dtype);
      Tensor across = c.bias.defined() ? c.bias.mT() : Tensor(), of_rows = c.of_w.rank() == 2 ? c.of_w.mT() : c.of_w;
      Tensor transposed = sparse::scaled_matmul_transposed(b.mT(), s, columns.mT(), of_rows, {.bias = across, .dtype = c.dtype});
      EXPECT_EQ(transposed.mT().contiguous().to_bytes(), want.to_bytes()) << name(c.dtype);
    }
    EXPECT_EQ(code_of([&] { sparse::scaled_matmul(s, b, rows.to(DType::bf16), one); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { sparse::scaled_matmul(s, b, rows, one, {.dtype = DType::f64}); }), ErrorCode::invalid_dtype);
    Tensor bytes = whole_2_4({20, 64}, DType::i8, device, 5), others = whole({64, 30}, DType::i8, device, 6), scale = rand({20, 1}, f32);
    const sparse::SemiStructured of_bytes = sparse::compress(bytes);
    auto f = [](Expr x, Expr by) { return cast(x, DType::f32) * by; };
    EXPECT_EQ(sparse::matmul(of_bytes, others, f, {scale}).to_bytes(), linalg::matmul(bytes, others, f, {scale}).to_bytes());
    Tensor across = scale.mT();
    EXPECT_EQ(sparse::matmul_transposed(others.mT(), of_bytes, f, {across}).mT().contiguous().to_bytes(), linalg::matmul(bytes, others, f, {scale}).to_bytes());
  }
}

TEST(Sparse24, GradientsAreTheDenseOnes) {
  CLUTCH_EACH_DEVICE(device) {
    for (nn::Activation activation : {nn::Activation::none, nn::Activation::gelu}) {
      Tensor w = sparse::prune_2_4(randn({48, 36}, {.device = device, .seed = 1}), {.rule = PruneRule::tile_magnitudes});
      Tensor x = randn({2, 5, 36}, {.device = device, .seed = 2}), bias = randn({48}, {.device = device, .seed = 3});
      Tensor grad = randn({2, 5, 48}, {.device = device, .seed = 4});
      const sparse::SemiStructured s = sparse::compress(w), transposed = sparse::compress(w.mT());
      const linalg::LinearGradients want = linalg::linear_backward(grad, x, w, bias, {.activation = activation});
      for (const sparse::SemiStructured& of_transpose : {sparse::SemiStructured(), transposed})
        for (bool masked : {false, true}) {
          const linalg::LinearGradients got =
              sparse::linear_backward(grad, x, s, bias, {.activation = activation, .transposed = of_transpose, .masked = masked});
          EXPECT_EQ(got.x.to_bytes(), want.x.to_bytes());
          EXPECT_EQ(got.bias.to_bytes(), want.bias.to_bytes());
          EXPECT_EQ(got.weight.to_bytes(), (masked ? sparse::apply_mask(want.weight, sparse::mask_of(s)) : want.weight).to_bytes());
        }
      // Where there are values there is a gradient.
      EXPECT_EQ(sparse::apply_mask(w, sparse::mask_of(s)).to_bytes(), w.to_bytes());
    }
  }
}

/// A perceptron learns a function of two numbers, is pruned, and learns on with its masks: as good as before within a point of accuracy.
TEST(Sparse24, APrunedNetworkKeepsItsAccuracy) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().quirks & detail::kQuirkLoopsEndEarly) continue;
    constexpr std::int64_t kRows = 512, kHidden = 128;
    Tensor x = randn({kRows, 16}, {.device = device, .seed = 1});
    // Whether the point lies outside of a circle: 1 or -1.
    Tensor target = map([](Expr a, Expr b) { return select(a * a + b * b > 1.4f, Expr(1.0f), Expr(-1.0f)); }, x.slice(1, 0, 1), x.slice(1, 1, 2));
    Tensor w1 = randn({kHidden, 16}, {.device = device, .seed = 2}), b1 = full({kHidden}, 0, {.device = device});
    Tensor w2 = map([](Expr v) { return v * 0.1f; }, randn({1, kHidden}, {.device = device, .seed = 3}));
    optim::AdamW trainer({w1, b1, w2}, {.lr = 0.02, .weight_decay = 0.001});
    Tensor m1, m2;
    auto accuracy = [&] {
      const bool is_sparse = m1.defined();
      Tensor h = is_sparse ? sparse::linear(x, sparse::compress(w1), b1, {.activation = nn::Activation::relu})
                           : linalg::linear(x, w1, b1, {.activation = nn::Activation::relu});
      Tensor y = is_sparse ? sparse::linear(h, sparse::compress(w2)) : linalg::linear(h, w2);
      return mean(map([](Expr a, Expr t) { return select(a * t > 0.0f, Expr(1.0f), Expr(0.0f)); }, y, target)).to_host<float>()[0];
    };
    auto step = [&] {
      const sparse::SemiStructured s1 = m1.defined() ? sparse::compress(w1) : sparse::SemiStructured(), s2 = m1.defined() ? sparse::compress(w2) : s1;
      const bool is_sparse = m1.defined();
      Tensor h = is_sparse ? sparse::linear(x, s1, b1, {.activation = nn::Activation::relu}) : linalg::linear(x, w1, b1, {.activation = nn::Activation::relu});
      Tensor y = is_sparse ? sparse::linear(h, s2) : linalg::linear(h, w2);
      Tensor grad = map([](Expr a, Expr t) { return (a - t) * (2.0f / kRows); }, y, target);
      linalg::LinearGradients of2 = is_sparse ? sparse::linear_backward(grad, h, s2) : linalg::linear_backward(grad, h, w2);
      linalg::LinearGradients of1 = is_sparse ? sparse::linear_backward(of2.x, x, s1, b1, {.activation = nn::Activation::relu})
                                              : linalg::linear_backward(of2.x, x, w1, b1, {.activation = nn::Activation::relu});
      const Tensor grads[] = {of1.weight, of1.bias, of2.weight};
      trainer.step(grads);
      if (!is_sparse) return;
      copy_(w1, sparse::apply_mask(w1, m1)), copy_(w2, sparse::apply_mask(w2, m2));
    };
    for (int i = 0; i < 300; ++i) step();
    const float dense = accuracy();
    EXPECT_GT(dense, 0.95f);
    m1 = sparse::mask_2_4(w1), m2 = sparse::mask_2_4(w2);
    copy_(w1, sparse::apply_mask(w1, m1)), copy_(w2, sparse::apply_mask(w2, m2));
    for (int i = 0; i < 300; ++i) step();
    EXPECT_GE(accuracy(), dense - 0.01f);
    sparse::require_2_4(w1), sparse::require_2_4(w2);
  }
}

/// Nothing to add is zero, nothing to give is empty.
TEST(Sparse24, EmptyProducts) {
  CLUTCH_EACH_DEVICE(device) {
    for (const Dims& of_w : {Dims{5, 0}, Dims{0, 8}})
      for (std::int64_t n : {0, 1, 20, 200}) {
        const sparse::SemiStructured w = sparse::compress(full(of_w, 1, {.device = device}));
        Tensor b = full({of_w[1], n}, 1, {.device = device}), y = sparse::matmul(w, b), bias = full({of_w[0]}, 2, {.device = device});
        EXPECT_EQ(y.sizes(), (Dims{of_w[0], n}));
        for (float x : y.to_host<float>()) EXPECT_EQ(x, 0);
        for (float x : sparse::linear(b.mT(), w, bias).to_host<float>()) EXPECT_EQ(x, 2);
        EXPECT_EQ(sparse::linear(full({2, 3, of_w[1]}, 1, {.device = device}), w, bias).sizes(), (Dims{2, 3, of_w[0]}));
      }
  }
}

/// Numbers of b that meet no value do not count.
TEST(Sparse24, WhatMeetsNoValueDoesNotCount) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor w = from_host(std::vector<float>{1, 0, 2, 0, 0, 3, 0, 4}, {1, 8}, device), b = full({8, 40}, 1.0f, {.device = device});
    for (std::int64_t row : {1, 3, 4, 6}) fill_(b.slice(0, row, row + 1), NAN);
    const sparse::SemiStructured s = sparse::compress(w);
    for (std::string implementation : {"", "matmul_sparse_items"}) {
      const std::vector<float> got = sparse::matmul(s, b, {.implementation = implementation}).to_host<float>();
      EXPECT_TRUE(got == std::vector<float>(40, 10.0f) || last_plan().starts_with("matmul_sparse_tiles")) << last_plan();
    }
  }
}

TEST(Sparse24, IsCapturedAndSharedByStreams) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor w = sparse::prune_2_4(randn({96, 128}, {.device = device, .seed = 1})), x = randn({130, 128}, {.device = device, .seed = 2});
    const std::vector<std::uint8_t> want = linalg::matmul(x, w.mT()).to_bytes();
    // What is packed in a capture is packed at each replay.
    const sparse::SemiStructured fresh = sparse::compress(w);
    Stream stream(device);
    stream.synchronize();
    Tensor out;
    Graph graph;
    synchronize(device);
    graph.capture_begin(stream);
    out = sparse::matmul_transposed(x, fresh, {}, stream);
    graph.capture_end();
    for (int i = 0; i < 2; ++i) {
      graph.replay(stream);
      stream.synchronize();
      EXPECT_EQ(out.to_bytes(stream), want);
    }
    // Packed on one stream, read on another.
    const sparse::SemiStructured s = sparse::compress(w);
    synchronize(device);
    Stream one(device), two(device);
    Tensor first = sparse::matmul_transposed(x, s, {}, one), second = sparse::matmul_transposed(x, s, {}, two);
    EXPECT_EQ(first.to_bytes(one), want);
    EXPECT_EQ(second.to_bytes(two), want);
  }
}

/// Warmed up on one stream and captured on another, which is how captures are to be made: replays wait for what the first stream packed, on any stream.
TEST(Sparse24, IsCapturedBesideTheStreamThatPackedIt) {
  CLUTCH_EACH_DEVICE(device) {
    if (known_bug(device, "shared_queue_hangs")) continue;  // its locks: completing an event for which work waits hangs, too
    Tensor w = sparse::prune_2_4(randn({96, 128}, {.device = device, .seed = 1})), x = randn({130, 128}, {.device = device, .seed = 2});
    const std::vector<std::uint8_t> want = linalg::matmul(x, w.mT()).to_bytes();
    sparse::matmul_transposed(x, sparse::compress(w));  // builds the programs
    // Tiles and items read the compressed matrix itself.
    const bool packs = last_plan().starts_with("matmul_sparse_panels");
    for (bool on_another : {false, true}) {
      const sparse::SemiStructured s = sparse::compress(w);
      synchronize(device);
      Stream warm(device), captured(device), another(device);
      cl_int status = CL_SUCCESS;
      cl_event gate = clCreateUserEvent(interop::context(warm), &status);
      ASSERT_EQ(status, CL_SUCCESS);
      warm.wait(interop::wrap(gate));
      Tensor first = sparse::matmul_transposed(x, s, {}, warm), out;
      Graph graph;
      {
        GraphCapture capture(graph, captured);
        out = sparse::matmul_transposed(x, s);
      }
      const Stream& stream = on_another ? another : captured;
      graph.replay(stream);
      Event replayed;
      replayed.record(stream);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      EXPECT_TRUE(!packs || !replayed.query()) << "what it reads is not packed yet";
      EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
      clReleaseEvent(gate);
      EXPECT_EQ(out.to_bytes(stream), want);
      EXPECT_EQ(first.to_bytes(warm), want);
      // Nothing is left to wait for.
      graph.replay(stream);
      EXPECT_EQ(out.to_bytes(stream), want);
    }
  }
}

TEST(Sparse24, ResultsLieApartFromTheMatrix) {
  CLUTCH_EACH_DEVICE(device) {
    const sparse::SemiStructured w = sparse::compress(sparse::prune_2_4(randn({16, 16}, {.device = device, .seed = 1})));
    const Tensor x = randn({4, 16}, {.device = device, .seed = 2}), values = w.values();
    ASSERT_EQ(values.numel(), 16 * 8);
    EXPECT_EQ(code_of([&] { sparse::matmul_out(values.as_strided({16, 4}, {4, 1}, 64), w, x.mT()); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { sparse::matmul_transposed_out(values.as_strided({4, 16}, {16, 1}, 64), x, w); }), ErrorCode::invalid_overlap);
  }
}

}}  // namespace clutch::testing
