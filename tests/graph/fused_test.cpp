// SPDX-License-Identifier: Apache-2.0
// The backend "fused": what becomes one launch, and that each result has the bits of eager calls.
#include "graph/fused.hpp"

#include <clutch/nn.hpp>
#include <clutch/ops/segment.hpp>
#include <clutch/ops/sparse24.hpp>
#include <clutch/sparse.hpp>

namespace clutch::testing { namespace {

TEST(Fused, AChainIsOneLaunchThatStoresItsLastValueAlone) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t n : {1, 7, 1000, 70000}) {
      const Counts c = expect_eager_bits(device, {random({n}, device)}, [](const Tensors& in) {
        Tensor h = in[0];
        for (int i = 0; i < 10; ++i) h = add(mul(h, 0.5), 1);
        return Tensors{tanh(h)};
      });
      EXPECT_EQ(c.launches, 1);
      EXPECT_EQ(c.alone, 0);
    }
  }
}

TEST(Fused, StoresInNarrowDtypesRound) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::f16, DType::bf16, DType::i8, DType::i64, DType::boolean}) {
      SCOPED_TRACE(name(dtype));
      expect_eager_bits(device, {mul(random({3000}, device), 50)}, [dtype](const Tensors& in) {
        Tensor h = in[0].to(dtype);
        Tensor back = h.to(DType::f32);
        return Tensors{add(back, in[0]), mul(back, 3)};
      });
    }
  }
}

TEST(Fused, AStoreThatDoesNotRoundIsFound) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    Tensor x = random({1000}, device, DType::f16), y = random({1000}, device, DType::f16, 2);
    auto f = [&] { return mul(add(x, y), 3); };
    const Tensor want = f();
    for (bool broken : {false, true}) {
      detail::broken_rule = broken ? detail::BrokenRule::narrow_store : detail::BrokenRule::none;
      Graph graph({.backend = "fused"});
      Tensor got;
      {
        GraphCapture capture(graph, stream);
        got = f();
      }
      detail::broken_rule = detail::BrokenRule::none;
      graph.replay(stream);
      EXPECT_EQ(got.to_bytes(stream) != want.to_bytes(stream), broken);
    }
  }
}

TEST(Fused, RelaxedRoundingLeavesOutWhatNobodyStores) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    for (DType dtype : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(name(dtype));
      const Tensor x = random({1000}, device, dtype), y = random({1000}, device, dtype, 2);
      auto wide = [](const Tensor& t) { return t.to(DType::f32); };
      for (bool keeps_sum : {false, true}) {
        Graph graph({.backend = "fused", .relaxed_rounding = true});
        Tensor got, kept;
        {
          GraphCapture capture(graph, stream);
          Tensor s = add(x, y);
          if (keeps_sum) kept = s;
          got = sub(mul(s, 3), x);
        }
        graph.replay(stream);
        EXPECT_NE(graph.report().why.find(keeps_sum ? "1 values pass unrounded" : "2 values pass unrounded"), std::string::npos) << graph.report().why;
        const Tensor s = add(x, y), read = keeps_sum ? wide(s) : add(wide(x), wide(y));
        EXPECT_EQ(got.to_bytes(stream), sub(mul(read, 3), wide(x)).to(dtype).to_bytes(stream));
        EXPECT_NE(got.to_bytes(stream), sub(mul(s, 3), x).to_bytes(stream));
        if (keeps_sum) {
          EXPECT_EQ(kept.to_bytes(stream), s.to_bytes(stream));
        }
      }
      // Whole numbers and truth values are what calls make of them.
      Graph graph({.backend = "fused", .relaxed_rounding = true});
      Tensor got;
      {
        GraphCapture capture(graph, stream);
        got = mul(mul(x, 10).to(DType::i8).to(dtype), y);
      }
      graph.replay(stream);
      EXPECT_EQ(got.to_bytes(stream), mul(mul(wide(x), 10).to(DType::i8).to(dtype), y).to_bytes(stream));
    }
    for (const char* backend : {"host", "auto"})
      EXPECT_EQ(code_of([&] { Graph({.backend = backend, .relaxed_rounding = true}); }), ErrorCode::invalid_argument) << backend;
  }
}

TEST(Fused, BroadcastInputsAndSiblingsShareALaunch) {
  CLUTCH_EACH_DEVICE(device) {
    const Counts c = expect_eager_bits(device, {random({33, 65}, device), random({65}, device, DType::f32, 2), random({33, 1}, device, DType::f32, 3)},
                                       [](const Tensors& in) {
                                         Tensor a = add(in[0], in[1]), b = mul(in[0], in[2]);
                                         return Tensors{exp(a), tanh(b), maximum(a, b)};
                                       });
    EXPECT_EQ(c.launches, 1);
    EXPECT_EQ(c.alone, 0);
  }
}

// A launch has a bounded number of tensors: longer chains become several launches, and none stays apart for that.
TEST(Fused, ChainsOfMoreTensorsThanALaunchTakesAreSplit) {
  CLUTCH_EACH_DEVICE(device) {
    for (const bool strided : {false, true}) {
      SCOPED_TRACE(strided);
      const Counts c = expect_eager_bits(device, {random({40, 133, 202}, device)}, [strided](const Tensors& in) {
        Tensor h;
        for (int i = 0; i < 40; ++i) {
          Tensor other = cumsum(in[0].select(0, i), -1);  // a temporary that another node writes
          if (strided) other = other.slice(-1, 0, 200);
          h = h.defined() ? add(mul(h, 0.5), other) : mul(other, 2);
        }
        return Tensors{h};
      });
      EXPECT_EQ(c.alone, 40);  // cumsum()
      EXPECT_GE(c.launches, 2);
      EXPECT_LE(c.launches, 4);
    }
  }
}

TEST(Fused, WritesInPlaceKeepTheirOrder) {
  CLUTCH_EACH_DEVICE(device) {
    expect_eager_bits(device, {random({64, 64}, device), random({64, 64}, device, DType::f32, 2)}, [](const Tensors& in) {
      const Tensor &x = in[0], &y = in[1];
      Tensor before = mul(x, 2);  // reads what the next call overwrites
      add_(x, y);
      Tensor other = add(x.mT(), y);  // another view of what was written
      mul_(x, 3);
      copy_(y, x);
      add_(y.slice(0, 0, 10), 1);  // a part of it
      Tensor after = add(y, x);
      mul_(x.slice(1, 3, 8), before.slice(1, 3, 8));
      return Tensors{before, other, after, sum(x, {.dims = {0}})};
    });
  }
}

TEST(Fused, RowsTakeWhatIsBeforeAndBehindThem) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::int64_t m : {5, 1000}) {
      SCOPED_TRACE(m);
      Counts c = expect_eager_bits(device, {random({48, m}, device), random({48, m}, device, DType::f32, 2), random({m}, device, DType::f32, 3)},
                                   [](const Tensors& in) { return Tensors{nn::softmax(add(mul(relu(in[0]), in[1]), in[2]), -1)}; });
      EXPECT_EQ(c.launches, 1);
      EXPECT_EQ(c.alone, 0);
      c = expect_eager_bits(device, {random({48, m}, device), random({48, m}, device, DType::f32, 2), random({m}, device, DType::f32, 3), random({m}, device)},
                            [](const Tensors& in) {
                              add_(in[0], gelu(in[1]));
                              return Tensors{tanh(nn::layer_norm(in[0], in[2], in[3]).y)};
                            });
      EXPECT_EQ(c.launches, 1);
      EXPECT_EQ(c.alone, 0);
      expect_eager_bits(device, {random({48, m}, device), random({48, m}, device, DType::f32, 2)}, [](const Tensors& in) {
        Tensor h = mul(in[0], in[1]);
        Tensor s = sum(h, {.dims = {-1}, .keepdim = true}), t = sum(square(in[0]), {.dims = {0}}), mean_of = mean(exp(in[1]), {});
        return Tensors{div(in[0], s), t, mean_of, amax(abs(h), {.dims = {1}})};
      });
    }
  }
}

TEST(Fused, OpsWithoutElementsStayAlone) {
  CLUTCH_EACH_DEVICE(device)
  expect_eager_bits(device, {zeros({4, 3, 0}, {.device = device})}, [](const Tensors& in) {
    const Tensor h = mul(in[0], 2.0);
    return Tensors{sum(h, {.dims = {0, 2}}), sum(h, {.dims = {1, 2}}), amax(h, {.dims = {0}}), prod(relu(h), {.dims = {2}}), h};
  });
}

// Rows of a table by index, diagonals, and masks of triangles, beside calls of other shapes of the same elements.
TEST(Fused, FunctionsOfPositionsAreFusedWithOthers) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensors state{random({7, 12}, device), random({5, 1, 12}, device, DType::f32, 2), random({20, 12}, device, DType::f32, 3),
                        from_host<std::int64_t>({3, 19, 0, 7, 7, 2, 11}, device), random({5, 84}, device, DType::f32, 4)};
    auto at = [](int dim) { return cast(position(dim), DType::f32); };
    auto triangle = [](Expr x) { return select(position(-1) <= position(-2) + 2, x, Expr(-1)); };
    Counts c = expect_eager_bits(device, state, [&](const Tensors& in) { return Tensors{add(mul(map(triangle, {relu(in[0])}), 2), in[0])}; });
    EXPECT_EQ(c.launches, 1);
    EXPECT_EQ(c.alone, 0);
    c = expect_eager_bits(device, state, [&](const Tensors& in) {  // splits dimensions of the function's elements
      const Tensor h = map([&](Expr x) { return x * at(1) + at(0) * 0.5; }, {in[4]});
      return Tensors{add(h.reshape({5, 7, 12}), in[1])};
    });
    EXPECT_EQ(c.launches, 1);
    c = expect_eager_bits(device, state, [](const Tensors& in) { return Tensors{mul(add(index_select(in[2], 0, in[3]), in[0]), 3)}; });
    EXPECT_LE(c.launches + c.alone, 2);
    expect_eager_bits(device, state, [&](const Tensors& in) {  // in place, by rows, behind a product, and draws beside them
      map_out(std::span(&in[0], 1), trace(triangle, std::array{DType::f32}), std::span(&in[0], 1));
      const Tensor h = linalg::matmul(in[0], in[2].mT());
      return Tensors{nn::softmax(map(triangle, {h})), map([&](Expr x) { return x * random_uniform() + at(0); }, {in[0]}),
                     sum(map(triangle, {in[0]}), {.dims = {1}})};
    });
    expect_eager_bits(device, {random({1, 1, 6}, device), random({1}, device)}, [&](const Tensors& in) {
      return Tensors{add(map([&](Expr x) { return x + at(0) + at(1) * 3 + at(2); }, {in[0]}), in[1]), map([&](Expr x) { return x + at(0); }, {mul(in[1], 2)})};
    });
  }
}

TEST(Fused, ProductsTakeWhatReadsThem) {
  struct Case {
    Dims a, b;
    DType dtype;
  };
  CLUTCH_EACH_DEVICE(device) {
    std::vector<Case> cases{{{70, 90}, {90, 130}, DType::f32}, {{1, 64}, {64, 256}, DType::bf16}, {{3, 20, 50}, {3, 50, 17}, DType::f32}};
    if (level() == "nightly")  // programs of products take seconds to build
      cases.insert(cases.end(), {{{6, 300}, {300, 40}, DType::bf16},
                                 {{200, 33}, {33, 7}, DType::f16},
                                 {{3, 20, 50}, {50, 64}, DType::f32},
                                 {{2, 4, 9, 30}, {2, 4, 30, 35}, DType::bf16},
                                 {{40, 70}, {70, 60}, DType::f64}});
    for (const Case& c : cases) {
      if (c.dtype == DType::f64 && !device.traits().fp64) continue;
      SCOPED_TRACE(to_string(c.a) + " " + to_string(c.b) + " " + std::string(name(c.dtype)));
      Dims sizes = c.a;
      sizes[sizes.rank() - 1] = c.b[c.b.rank() - 1];
      const Tensor a = random(c.a, device, c.dtype), b = random(c.b, device, c.dtype, 2), bias = random({sizes[sizes.rank() - 1]}, device, c.dtype, 3);
      const Counts chain = expect_eager_bits(device, {a, b, bias, random(sizes, device, c.dtype, 4)},
                                             [](const Tensors& in) { return Tensors{add(relu(add(linalg::matmul(in[0], in[1]), in[2])), in[3])}; });
      EXPECT_EQ(chain.launches, 1);
      EXPECT_LE(chain.alone, 2) << "what packs or converts operands";
      expect_eager_bits(device, {a, b, bias, random(sizes, device, c.dtype, 4)}, [](const Tensors& in) {
        const Tensor h = linalg::matmul(in[0], in[1]);
        const Tensor half = mul(h, 0.5);
        add_(in[3], mul(h, half));  // an input that is the result, too
        return Tensors{in[3].to(DType::f32)};
      });
      expect_eager_bits(device, {a, b, bias}, [](const Tensors& in) {
        const Tensor h = add(linalg::matmul(in[0], in[1]), in[2]);
        return Tensors{relu(h), mul(h, h), h};  // three results
      });
    }
  }
}

// 2:4 matrices on either side, by the kernels of few rows and of many; dense products that are computed as the transposed ones, too.
TEST(Fused, SparseAndTransposedProductsTakeWhatReadsThem) {
  CLUTCH_EACH_DEVICE(device) {
    auto expect_one = [&](const Tensors& state, const std::function<Tensor(const Tensors&)>& product) {
      const Counts c = expect_eager_bits(device, state, [&](const Tensors& in) { return Tensors{add(relu(add(product(in), in[1])), in[2])}; });
      EXPECT_EQ(c.launches, 1);
      EXPECT_LE(c.alone, 3) << "what packs the matrix and the other operand";
    };
    std::vector<std::pair<DType, std::int64_t>> cases{{DType::f32, 3}, {DType::f32, 70}, {DType::i8, 5}};
    if (level() == "nightly") cases.insert(cases.end(), {{DType::f16, 1}, {DType::bf16, 200}, {DType::i8, 90}, {DType::i8, 1}});
    for (const auto& [dtype, n] : cases) {
      SCOPED_TRACE(fmt::format("{}, {} columns", name(dtype), n));
      const double scale = dtype == DType::i8 ? 30 : 1;
      const sparse::SemiStructured w = sparse::compress(sparse::prune_2_4(mul(random({48, 64}, device), scale).to(dtype)));
      const Tensor x = mul(random({64, n}, device, DType::f32, 2), scale).to(dtype);
      const DType out = sparse::matmul(w, x).dtype();
      expect_one({x, random({48, 1}, device, DType::f32, 3).to(out), random({48, n}, device, DType::f32, 4).to(out)},
                 [&](const Tensors& in) { return sparse::matmul(w, in[0]); });
      expect_one({x.mT().contiguous(), random({48}, device, DType::f32, 3).to(out), random({n, 48}, device, DType::f32, 4).to(out)},
                 [&](const Tensors& in) { return sparse::matmul_transposed(in[0], w); });
      // As devices compute that have no panels.
      expect_one({x.mT().contiguous(), random({48}, device, DType::f32, 3).to(out), random({n, 48}, device, DType::f32, 4).to(out)},
                 [&](const Tensors& in) { return sparse::matmul_transposed(in[0], w, {.implementation = "matmul_sparse_items"}); });
    }
    const Tensor a = random({300, 40}, device), b = random({40, 3}, device, DType::f32, 2);
    expect_one({a, random({3}, device, DType::f32, 3), random({300, 3}, device, DType::f32, 4), b},
               [](const Tensors& in) { return linalg::matmul(in[0], in[3]); });
  }
}

// Sums over neighbours of a graph, of segments and of groups; empty segments, columns that are no row of the data, results in other orders in memory.
TEST(Fused, ReductionsOfSegmentsTakeWhatReadsThem) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor offsets = from_host<std::int64_t>({0, 3, 3, 4, 9, 11, 11, 15}, device);
    const Tensor columns = from_host<std::int64_t>({4, 0, 2, 7, 1, 1, 3, 8, 5, 2, 2, 6, 0, 9, 4}, device);
    constexpr std::int64_t kRows = 7, kWidth = 9;  // column 9 is no row
    std::vector<std::pair<DType, std::int64_t>> cases{{DType::f32, 77}, {DType::bf16, 36}};
    if (level() == "nightly") cases.insert(cases.end(), {{DType::f32, 1}, {DType::f32, 36}, {DType::f16, 77}, {DType::f64, 36}});
    for (const auto& [dtype, features] : cases) {
      if (dtype == DType::f64 && !device.traits().fp64) continue;
      SCOPED_TRACE(fmt::format("{}, {} features", name(dtype), features));
      const Tensors state{random({kWidth, features}, device, dtype), random({15}, device, dtype, 2), random({features}, device, dtype, 3),
                          random({kRows, features}, device, dtype, 4)};
      auto product = [&](const Tensors& in, Reduce reduce = Reduce::sum) {
        return sparse::spmm({.offsets = offsets, .columns = columns, .values = in[1], .width = kWidth}, in[0], {.reduce = reduce});
      };
      auto chain = [](const Tensor& h, const Tensors& in) { return Tensors{add(relu(add(h, in[2])), in[3])}; };
      auto expect_one = [&](const std::function<Tensors(const Tensors&)>& f) { EXPECT_EQ(expect_eager_bits(device, state, f).launches, 1); };
      expect_one([&](const Tensors& in) { return chain(product(in), in); });
      expect_one([&](const Tensors& in) { return Tensors{mul(add(product(in, Reduce::mean), in[3]), in[2]).to(DType::f32)}; });
      expect_one([&](const Tensors& in) { return chain(product({in[0].mT().contiguous().mT(), in[1]}, Reduce::amax), in); });
      expect_one([&](const Tensors& in) {
        const Tensor h = segment_reduce(in[0], offsets.slice(0, 0, 5), {.reduce = Reduce::mean, .initial = 2});
        return Tensors{relu(sub(h, in[2]))};
      });
      // A result that is read as it is, too; one that is stored in another order; a sum that is added to what it is computed from.
      expect_eager_bits(device, state, [&](const Tensors& in) {
        const Tensor h = segment_reduce(in[0], offsets.slice(0, 0, 5));
        return Tensors{mul(h, h), sum(h)};
      });
      expect_eager_bits(device, state, [&](const Tensors& in) { return Tensors{mul(product(in).mT(), 2).contiguous()}; });
      expect_eager_bits(device, state, [&](const Tensors& in) {
        add_(in[0].slice(0, 0, kRows), product(in));
        return Tensors{};
      });
    }
  }
}

TEST(Fused, ProductsWithFunctionsOfTheirOwn) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor x = random({5, 12, 48}, device), w = random({80, 48}, device, DType::f32, 2), bias = random({80}, device, DType::f32, 3);
    const Counts c = expect_eager_bits(device, {x, w, bias, random({5, 12, 80}, device, DType::f32, 4)}, [](const Tensors& in) {
      return Tensors{mul(add(linalg::linear(in[0], in[1], in[2], {.activation = nn::Activation::relu}), in[3]), 3).to(DType::bf16)};
    });
    EXPECT_EQ(c.launches, 1);
    EXPECT_LE(c.alone, 1) << "what packs w";
    const linalg::PackedMatrix packed(w.mT());
    expect_eager_bits(device, {x, bias}, [&](const Tensors& in) { return Tensors{mul(linalg::linear(in[0], packed, in[1]), 2)}; });
    // Bytes, and alpha.
    const Tensor i = mul(random({33, 40}, device), 30).to(DType::i8), j = mul(random({40, 64}, device, DType::f32, 5), 20).to(DType::i8);
    expect_eager_bits(device, {i, j}, [&](const Tensors& in) { return Tensors{mul(linalg::matmul(in[0], in[1], {.alpha = 3}).to(DType::f32), 0.25)}; });
  }
}

TEST(Fused, ProductsLeaveWhatTheyCannotTake) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor a = random({24, 30}, device), b = random({30, 24}, device, DType::f32, 2);
    // A function of the result and of its transpose, of the operands, and of a product that another one reads.
    expect_eager_bits(device, {a, b}, [](const Tensors& in) {
      const Tensor h = linalg::matmul(in[0], in[1]);
      return Tensors{add(h, h.mT())};
    });
    expect_eager_bits(device, {a, b}, [](const Tensors& in) {
      add_(in[0], linalg::matmul(linalg::matmul(in[0], in[1]), in[0]));
      return Tensors{mul(in[0], 2)};
    });
    expect_eager_bits(device, {a, b}, [](const Tensors& in) {
      const Tensor h = relu(linalg::matmul(in[0], in[1]));
      return Tensors{add(linalg::matmul(h, h), 1), sum(h)};
    });
    // More tensors than the function of a product reads.
    expect_eager_bits(device, {a, b, random({24, 31}, device, DType::f32, 3)}, [](const Tensors& in) {
      Tensor h = linalg::matmul(in[0], in[1]);
      for (int i = 0; i < 7; ++i) h = add(h, in[2].slice(1, i, i + 24));
      return Tensors{h};
    });
    // Rows of a result that have others between them, and columns in another order.
    expect_eager_bits(device, {a, b, random({24, 48}, device, DType::f32, 3)}, [](const Tensors& in) {
      linalg::matmul_out(in[2].slice(1, 0, 24), in[0], in[1]);
      add_(in[2].slice(1, 0, 24), in[2].slice(1, 24, 48));
      return Tensors{};
    });
    expect_eager_bits(device, {a, b}, [](const Tensors& in) {
      const Tensor h = linalg::matmul(in[0], in[1]).reshape({24, 4, 6}).transpose(0, 1);
      return Tensors{mul(h, 2).contiguous()};
    });
    // Dropout, whose function reads the generator's state.
    expect_eager_bits(device, {a, b}, [](const Tensors& in) {
      return Tensors{map([](Expr x) { return select(random_uniform() < 0.3, Expr(0), x / 0.7); }, {linalg::matmul(in[0], in[1])})};
    });
  }
}

TEST(Fused, RandomDrawsAreThoseOfEagerCalls) {
  CLUTCH_EACH_DEVICE(device) {
    expect_eager_bits(device, {random({100, 33}, device)}, [](const Tensors& in) {
      auto dropout = [](Expr x) { return select(random_uniform() < 0.3, Expr(0), x / 0.7); };
      Tensor a = map(dropout, {gelu(in[0])}), b = map(dropout, {mul(a, 2)});
      return Tensors{add(a, b), map(dropout, {b})};
    });
  }
}

TEST(Fused, OtherTensorsAndNumbersTakeTheirPlaces) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    Tensor x = random({500}, device), y = random({500}, device, DType::f32, 2), z = empty({500}, {.device = device});
    auto f = [&](const Tensor& a, const Tensor& b, const Tensor& out) {
      Tensor h = add(a, b);
      mul_(h, 3);
      map_out(out, [](Expr u, Expr v) { return u - v; }, {h, b});
      add_(a, 1);
    };
    Graph graph({.backend = "fused"});
    {
      GraphCapture capture(graph, stream);
      f(x, y, z);
    }
    EXPECT_EQ(counts_of(graph).launches, 1);
    auto expect = [&](const Tensor& a, const Tensor& b, const Tensor& out) {
      SCOPED_TRACE(graph.report().why);
      // What shares memory in the call shares it in the eager one.
      Tensor a2 = a.clone(), b2 = b.shares_storage(a) ? a2 : b.clone(), out2 = out.shares_storage(a) ? a2 : out.shares_storage(b) ? b2 : out.clone();
      f(a2, b2, out2);
      graph.replay({{x, a}, {y, b}, {z, out}}, stream);
      EXPECT_EQ(bytes_of({a, b, out}, stream), bytes_of({a2, b2, out2}, stream));
    };
    Tensor p = random({500}, device, DType::f32, 5), q = random({500}, device, DType::f32, 6), r = empty({500}, {.device = device});
    expect(p, q, r);
    expect(x, q, r);
    expect(q, p, z);
    expect(p, p, r);  // inputs that share memory, one of which is written
    EXPECT_NE(graph.report().why.find("one by one"), std::string::npos) << graph.report().why;
    expect(p, q, p);  // the result takes an input's place
    expect(p, q, r);
    EXPECT_EQ(graph.report().why.find("one by one"), std::string::npos) << graph.report().why;
    // A number of a node that is a part of a launch.
    const auto [call, number] = param_of(graph, "add_");
    ASSERT_FALSE(number.empty());
    std::vector<float> want = x.to_host<float>(stream);
    graph.update(call, {value(5.0f, number.c_str())});
    graph.replay(stream);
    for (float& v : want) v += 5;
    EXPECT_EQ(x.to_host<float>(stream), want);
  }
}

TEST(Fused, OpsThatSayNothingStayInTheirPlace) {
  CLUTCH_EACH_DEVICE(device) {
    const Counts c = expect_eager_bits(device, {random({32, 32}, device), random({32, 32}, device, DType::f32, 2)}, [](const Tensors& in) {
      Tensor h = relu(add(in[0], 1));
      Tensor p = linalg::matmul(h, in[1]);
      return Tensors{add(mul(p, h), 1), cumsum(p, 0)};
    });
    EXPECT_EQ(c.launches, 2);
    EXPECT_EQ(c.alone, 2);
  }
}

// Tables of a launch that is in no group name other temporaries in the fused program than node by node, so each has its own.
TEST(Fused, TablesOfBothProgramsKeepTheirWordsWhileAutoChooses) {
  CLUTCH_EACH_DEVICE(device) {
    Stream stream(device);
    StreamGuard guard(stream);
    auto eager = [](const Tensor& x) {
      Tensor a = add(mul(add(x, 1), 3), x), b = mul(add(mul(x, x), 2), 0.5), c = sub(mul(b, 3), a);
      const Tensors parts{cumsum(a, 0), cumsum(b, 0), cumsum(c, 0)};
      return cat(parts);
    };
    Tensor x = random({300}, device), y = empty({900}, {.device = device}, stream);
    Graph graph({.backend = "auto"});
    {
      GraphCapture capture(graph, stream);
      copy_(y, eager(x));
    }
    for (int i = 0; i < 40; ++i) {
      const Tensor given = i % 3 == 0 ? x : random({300}, device, DType::f32, static_cast<std::uint64_t>(i) + 2);
      const Tensor out = i % 2 == 0 ? y : empty({900}, {.device = device}, stream);
      graph.replay({{x, given}, {y, out}}, stream);
      EXPECT_EQ(bytes_of(Tensors{out}, stream), bytes_of(Tensors{eager(given)}, stream)) << i << " " << graph.report().why;
    }
  }
}

}}  // namespace clutch::testing
