// SPDX-License-Identifier: Apache-2.0
#include "cases/cat.hpp"

#include "graph/backends.hpp"
#include "ops/cat_plan.hpp"
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <memory>

namespace clutch::testing { namespace {

using cases::CatCase;
using cases::Operand;
using List = std::vector<Tensor>;

/// Contiguous operands of random bytes, and tensors of them with these strides.
struct Made {
  std::vector<Operand> operands;
  std::vector<std::unique_ptr<Guarded>> guarded;
  List views;
  Made(const Device& device, DType dtype, const std::vector<Dims>& sizes, const Dims& strides = {}) {
    std::uint64_t number = seed();
    for (const Dims& s : sizes) {
      std::vector<std::uint8_t> raw(bytes_for(dtype, static_cast<std::uint64_t>(numel(s))));
      model::Random random(number++);
      for (std::uint8_t& b : raw) b = static_cast<std::uint8_t>(random.next());
      operands.push_back({dtype, s, strides, raw});
      guarded.push_back(std::make_unique<Guarded>(device, dtype, s, strides));
      guarded.back()->set(raw);
      views.push_back(guarded.back()->view());
    }
  }
};

TEST(Cat, JoinsAnyDtypeAlongAnyDimensionByEachImplementation) {
  const std::vector<std::vector<Dims>> shapes{{{5}, {1}, {0}, {70000}}, {{3, 5, 7}, {3, 5, 7}}, {{1, 1}}, {{40, 300}, {40, 300}, {40, 300}}};
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : CatCase::kDtypes)
      for (const auto& sizes : shapes) {
        if (level() == "smoke" && dtype != DType::u8 && dtype != DType::f32 && &sizes != &shapes[1]) continue;
        for (int dim = 0; dim < sizes[0].rank(); ++dim)
          for (const auto& row : detail::cat_implementations()) {
            Made made(device, dtype, sizes);
            const std::vector<std::uint8_t> want = CatCase::reference(made.operands, dim);
            ASSERT_EQ(cat(made.views, dim, {.implementation = std::string(row.name)}).to_bytes(), want) << name(dtype) << sizes[0] << " dim " << dim;
            ASSERT_TRUE(last_plan().starts_with(row.name)) << last_plan();
            ASSERT_EQ(cat(made.views, dim - sizes[0].rank()).to_bytes(), want) << "from the end";
          }
      }
  }
}

TEST(Cat, TakesViewsOfAnyStridesOnBothSides) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::u8, DType::f32}) {
      const std::vector<Dims> sizes{{6, 4, 9}, {6, 2, 9}, {6, 30, 9}};
      for (const Dims& strides : {Dims{1, 6, 180}, Dims{300, 10, 1}, Dims{3, 20, 620}}) {
        Made made(device, dtype, sizes, strides);
        Guarded out(device, dtype, {6, 36, 9}, {1, 7, 260});
        cat_out(out.view(), made.views, 1);
        ASSERT_EQ(out.get(), CatCase::reference(made.operands, 1)) << strides;
        for (const auto& guarded : made.guarded) guarded->get();  // inputs and what is around them stay
      }
    }
    // Expanded tensors, rows of one matrix, and one tensor twice.
    Tensor x = arange(0, 6, 1, {.device = device}), rows = x.reshape({2, 3});
    EXPECT_EQ(cat(List{x.slice(0, 0, 1).expand({3}), x, x}).to_host<float>(), (std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(cat(List{rows.mT(), rows.mT()}, 1).to_host<float>(), (std::vector<float>{0, 3, 0, 3, 1, 4, 1, 4, 2, 5, 2, 5}));
  }
}

TEST(Cat, PromotesAsPyTorchDoes) {
  CLUTCH_EACH_DEVICE(device) {
    auto of = [&](DType dtype, double v) { return full({2}, v, {.dtype = dtype, .device = device}); };
    Tensor mixed = cat(List{of(DType::i32, 3), of(DType::f16, 0.5), of(DType::boolean, 1)});
    EXPECT_EQ(mixed.dtype(), DType::f16);
    EXPECT_EQ(mixed.to(DType::f32).to_host<float>(), (std::vector<float>{3, 3, 0.5, 0.5, 1, 1}));
    EXPECT_EQ(cat(List{of(DType::f16, 1), of(DType::bf16, 1)}).dtype(), DType::f32);
    EXPECT_EQ(cat(List{of(DType::u8, 1), of(DType::i8, 1)}).dtype(), DType::i16);
    EXPECT_EQ(cat(List{zeros({0}, {.dtype = DType::f32, .device = device}), of(DType::i64, 7)}).dtype(), DType::f32) << "what is left out counts here";
    EXPECT_EQ(stack(List{full({}, 1, {.device = device}), full({}, 2, {.dtype = DType::i64, .device = device})}).to_host<float>(), (std::vector<float>{1, 2}));
  }
}

TEST(Cat, TensorsWithoutElements) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes) { return full(sizes, 1, {.device = device}); };
    EXPECT_EQ(cat(List{make({0}), make({2, 3}), make({0})}, -1).sizes(), (Dims{2, 3})) << "shape (0,) goes with any";
    EXPECT_EQ(cat(List{make({0}), make({0})}).sizes(), (Dims{0}));
    EXPECT_EQ(cat(List{make({2, 0}), make({2, 5})}, 1).sizes(), (Dims{2, 5}));
    EXPECT_EQ(cat(List{make({0, 4}), make({0, 4})}, 0).sizes(), (Dims{0, 4}));
    EXPECT_EQ(code_of([&] { cat(List{make({0, 4}), make({2, 5})}, 0); }), ErrorCode::invalid_shape);
    EXPECT_EQ(stack(List{make({0}), make({0})}, 1).sizes(), (Dims{0, 2}));
    EXPECT_EQ(split(make({0, 3}), 0).size(), 1u) << "an empty dimension has one part";
    EXPECT_EQ(split(make({0, 3}), 5).size(), 1u);
    foreach_copy_({}, {});
  }
}

TEST(Cat, StackAndSplitUndoEachOther) {
  CLUTCH_EACH_DEVICE(device) {
    Made made(device, DType::f32, std::vector<Dims>(7, Dims{3, 5}));
    for (int dim : {0, 1, 2, -1}) {
      const Tensor all = stack(made.views, dim);
      ASSERT_EQ(all.size(dim), 7);
      for (std::int64_t i = 0; i < 7; ++i)
        ASSERT_EQ(all.select(dim, i).to_bytes(), made.operands[static_cast<std::size_t>(i)].raw) << "dim " << dim << " tensor " << i;
      const std::vector<std::int64_t> sizes{2, 0, 5};
      const List copies = split_copy(all, sizes, dim), views = split(all, sizes, dim);
      ASSERT_EQ(copies.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_TRUE(copies[i].is_contiguous());
        ASSERT_TRUE(views[i].shares_storage(all) && !copies[i].shares_storage(all));
        ASSERT_EQ(copies[i].to_bytes(), views[i].to_bytes());
      }
      ASSERT_EQ(cat(views, dim).to_bytes(), all.to_bytes());
    }
    const List parts = split(arange(0, 10, 1, {.device = device}), 4);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[2].to_host<float>(), (std::vector<float>{8, 9}));
    Guarded first(device, DType::f32, {4, 3}, {1, 4}), second(device, DType::f32, {4, 2});
    const Tensor x = arange(0, 20, 1, {.device = device}).reshape({4, 5});
    split_copy_out(List{first.view(), second.view()}, x, 1);
    EXPECT_EQ(first.view().contiguous().to_host<float>(), x.slice(1, 0, 3).contiguous().to_host<float>());
    EXPECT_EQ(second.view().to_host<float>(), x.slice(1, 3, 5).contiguous().to_host<float>());
    first.get(), second.get();
  }
}

TEST(Cat, HundredsOfTensorsAreOneLaunch) {
  CLUTCH_EACH_BACKEND(device, backend) {
    const Stream stream(device);
    List parts, targets;
    std::vector<float> want;
    for (int i = 0; i < 500; ++i) {
      parts.push_back(full({i % 5}, i, {.device = device}, stream));
      targets.push_back(zeros({i % 5}, {.device = device}, stream));
      want.insert(want.end(), static_cast<std::size_t>(i % 5), static_cast<float>(i));
    }
    Tensor out = zeros({1000}, {.device = device}, stream);
    Graph graph({.backend = backend});
    {
      GraphCapture capture(graph, stream);
      cat_out(out, parts, 0, {}, stream);
      foreach_copy_(targets, parts, {}, stream);
    }
    EXPECT_EQ(graph.find("cat_out").size(), 1u);
    EXPECT_EQ(graph.find("foreach_copy_").size(), 1u);
    for (int replay = 0; replay < 2; ++replay) {
      fill_(out, -1, {}, stream);
      graph.replay(stream);
      EXPECT_EQ(out.to_host<float>(stream), want);
      EXPECT_EQ(targets[499].to_host<float>(stream), std::vector<float>(4, 499));
      fill_(targets[499], 0, {}, stream);
    }
  }
}

TEST(Cat, JoinsPastTheCacheByAnyAlignment) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.traits().simulator) continue;
    const std::int64_t rows = static_cast<std::int64_t>(std::min<std::uint64_t>(device.traits().cache_bytes / (4 * 4096) + 40, 20000));
    for (std::int64_t columns : {2048, 2047}) {
      const Tensor a = arange(0, static_cast<double>(rows * columns), 1, {.dtype = DType::i32, .device = device}).reshape({rows, columns}), b = neg(a);
      const Tensor all = cat(List{a, b}, 1);
      EXPECT_TRUE(clutch::all(eq(all.slice(1, 0, columns), a)).item() != 0) << columns;
      EXPECT_TRUE(clutch::all(eq(all.slice(1, columns, 2 * columns), b)).item() != 0) << columns;
    }
  }
}

TEST(Cat, CopiesOfListsOfSeveralDtypes) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor f = arange(0, 6, 1, {.device = device}), i = arange(0, 4, 1, {.dtype = DType::i64, .device = device});
    List to{zeros({6}, {.dtype = DType::bf16, .device = device}), zeros({4}, {.dtype = DType::i64, .device = device}), zeros({2, 3}, {.device = device}),
            zeros({0}, {.device = device})};
    foreach_copy_(to, List{f, i, f.reshape({3, 2}).mT(), zeros({0}, {.device = device})});
    EXPECT_EQ(to[0].to(DType::f32).to_host<float>(), f.to_host<float>());
    EXPECT_EQ(to[1].to_host<std::int64_t>(), i.to_host<std::int64_t>());
    EXPECT_EQ(to[2].to_host<float>(), (std::vector<float>{0, 2, 4, 1, 3, 5}));
    // Interleaved parts of one buffer, and a tensor onto itself.
    Tensor x = arange(0, 8, 1, {.device = device});
    foreach_copy_(List{x.slice(0, 0, 8, 4), x.slice(0, 1, 8, 4), f}, List{x.slice(0, 2, 8, 4), x.slice(0, 3, 8, 4), f});
    EXPECT_EQ(x.to_host<float>(), (std::vector<float>{2, 3, 2, 3, 6, 7, 6, 7}));
  }
}

TEST(Cat, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    auto make = [&](const Dims& sizes, DType dtype = DType::f32) { return zeros(sizes, {.dtype = dtype, .device = device}); };
    const Tensor a = make({2, 3}), whole = make({4, 3});
    EXPECT_EQ(code_of([&] { cat({}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cat(List{Tensor()}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cat(List{make({}), make({})}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cat(List{a, a}, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cat(List{a, make({2, 4})}, 0); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { cat(List{a, make({3})}, 0); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { cat(List{make({4}, DType::f4e2m1)}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { cat_out(make({5, 3}), List{a, a}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { cat_out(make({4, 3}, DType::f16), List{a, a}); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { cat_out(whole, List{whole.slice(0, 0, 2), a}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { cat_out(make({1, 3}).expand({4, 3}), List{a, a}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { cat(List{a, a}, 0, {.implementation = "cat_rows_"}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { cat(List{make({3, 2}).mT(), a}, 0, {.implementation = "cat_rows"}); }), ErrorCode::not_supported);
    EXPECT_EQ(code_of([&] { stack(List{a, make({3, 2})}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { stack(List{a}, 3); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { stack(List{make(Dims::filled(kMaxRank, 1))}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { split(a, 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split(a, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split(make({}), 1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split(a, std::vector<std::int64_t>{1, 2}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split(a, std::vector<std::int64_t>{1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split(a, std::vector<std::int64_t>{3, -1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { split_copy_out(List{make({1, 3}), make({1, 4})}, a); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { split_copy_out(List{whole.slice(0, 0, 1), whole.slice(0, 0, 1)}, a); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { split_copy_out(List{a.slice(0, 0, 1), make({1, 3})}, a); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { foreach_copy_(List{a}, List{a, a}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { foreach_copy_(List{a}, List{whole}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { foreach_copy_(List{a, a}, List{make({2, 3}), make({2, 3})}); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] {
                foreach_copy_(List{whole.slice(0, 0, 2), a}, List{a, make({2, 3})});
              }),
              ErrorCode::invalid_overlap)
        << "one's source is another's destination";
    EXPECT_EQ(code_of([&] { foreach_copy_(List{whole.slice(0, 0, 2)}, List{whole.slice(0, 1, 3)}); }), ErrorCode::invalid_overlap);
  }
}

TEST(Cat, SelectionByLayoutAlone) {
  DeviceTraits t{.type = DeviceType::gpu, .max_work_group = 64};
  EXPECT_EQ(detail::select(t, detail::CatProblem{}).entry, "cat_rows");
  EXPECT_EQ(detail::select(t, detail::CatProblem{.layout = detail::Layout::strided}).entry, "cat_strided");
}

}}  // namespace clutch::testing
