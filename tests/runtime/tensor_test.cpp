// SPDX-License-Identifier: Apache-2.0
#include "support/fixture.hpp"

#include <sstream>

namespace clutch::testing { namespace {

TEST(Tensors, FactoriesAndViews) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = arange(0, 24, 1, {.device = device}).reshape({2, 3, 4});
    EXPECT_EQ(t.strides(), (Dims{12, 4, 1}));
    EXPECT_EQ(t.slice(2, 1, 4, 2).contiguous().to_host<float>(), (std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}));
    EXPECT_EQ(t.select(-1, -1).select(0, 1).to_host<float>(), (std::vector<float>{15, 19, 23}));
    EXPECT_EQ(t.transpose(0, 2).sizes(), (Dims{4, 3, 2}));
    EXPECT_EQ(t.mT().reshape({-1}).to_host<float>()[1], 4);
    EXPECT_EQ(t.slice(0, 0, 1).expand({5, 3, 4}).strides(), (Dims{0, 4, 1}));
    EXPECT_EQ(t.unsqueeze(1).squeeze(1).sizes(), t.sizes());
    EXPECT_TRUE(t.reshape({6, 4}).shares_storage(t)) << "a view where strides allow it";
    EXPECT_FALSE(t.mT().reshape({24}).shares_storage(t));
    EXPECT_TRUE(t.slice(1, 0, 2).reshape({2, 8}).shares_storage(t));
    EXPECT_EQ(full({}, 3, {.device = device}).reshape({1, 1, 1}).to_host<float>(), std::vector<float>{3}) << "from rank 0";
    EXPECT_EQ(t.slice(0, 5, 9).numel(), 0);
    EXPECT_EQ(zeros({0, 3}, {.device = device}).to_host<float>().size(), 0u);
    EXPECT_EQ(full({}, 2.5, {.device = device}).item(), 2.5);
    EXPECT_TRUE(zeros({4, 0, 2}, {.device = device}).is_contiguous());
    EXPECT_FALSE(t.mT().is_contiguous());
  }
}

TEST(Tensors, RefuseBadSizesAndIndices) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions o{.device = device};
    EXPECT_EQ(code_of([&] { empty({-1}, o); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { empty({1ll << 62, 4}, o); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { empty({1ll << 45}, o); }), ErrorCode::invalid_shape);
    EXPECT_NE(message_of([&] { empty({1ll << 45}, o); }).find("a buffer must have at most"), std::string::npos);
    EXPECT_EQ(code_of([&] { zeros({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, o); }), ErrorCode::invalid_shape);
    Tensor t = zeros({2, 3}, o);
    EXPECT_EQ(code_of([&] { t.select(2, 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.select(0, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.slice(0, 0, 1, 0); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.reshape({4}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { t.reshape({-1, -1}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { t.expand({2, 4}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { t.as_strided({2, 3}, {3, 2}); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { t.as_strided({2}, {-1}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.as_strided({1}, {1}, -1); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { arange(0, 1, 0, o); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { arange(0, 1e-49, 1e-50, {.device = device}); }), ErrorCode::invalid_argument) << "a step of 0 in f32";
    EXPECT_EQ(code_of([&] { arange(-1e39, 1e39, 1e39, {.device = device}); }), ErrorCode::invalid_argument) << "infinite in f32";
    EXPECT_EQ(code_of([&] { t.item(); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { t.to_host<double>(); }), ErrorCode::invalid_dtype);
    EXPECT_EQ(code_of([&] { from_host(std::vector<float>{1, 2}, {3}, device); }), ErrorCode::invalid_argument);
    Tensor packed = zeros({8}, {.dtype = DType::f4e2m1, .device = device});
    EXPECT_EQ(code_of([&] { packed.slice(0, 1, 3); }), ErrorCode::invalid_argument) << "would begin inside a byte";
    EXPECT_EQ(packed.slice(0, 2, 4).byte_offset(), 1u);
    EXPECT_EQ(code_of([] { Tensor().device(); }), ErrorCode::invalid_argument);
  }
}

TEST(Tensors, SizesAndStridesThatWrapAreRefused) {
  CLUTCH_EACH_DEVICE(device) {
    constexpr std::int64_t kHuge = std::int64_t{1} << 60, kMost = INT64_MAX;
    TensorOptions o{.device = device};
    Tensor t = arange(0, 24, 1, o);
    auto refuses = [](auto&& call) {
      ErrorCode code = code_of(call);
      return code == ErrorCode::invalid_shape || code == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(refuses([&] { t.as_strided({5}, {kHuge}); })) << "4 (2^60) elements of 4 bytes wrap to none";
    EXPECT_TRUE(refuses([&] { t.as_strided({5, 5}, {kHuge, kHuge}); }));
    EXPECT_TRUE(refuses([&] { t.as_strided({2}, {kMost}); }));
    EXPECT_TRUE(refuses([&] { t.as_strided({1}, {1}, kHuge); }));
    EXPECT_TRUE(refuses([&] { t.as_strided({1}, {1}, kMost); }));
    EXPECT_TRUE(refuses([&] { t.as_strided({1}, {1}, INT64_MIN); }));
    EXPECT_TRUE(refuses([&] { t.as_strided({0}, {1}, kMost); }));
    Tensor packed = zeros({8}, {.dtype = DType::f4e2m1, .device = device});
    EXPECT_TRUE(refuses([&] { packed.as_strided({2}, {kMost - 1}); }));
    EXPECT_TRUE(refuses([&] { zeros({2}, {.dtype = DType::c128, .device = device}).as_strided({2}, {kHuge}); }));
    for (std::int64_t step : {kMost, kHuge, std::int64_t{24}}) {
      Tensor first = t.slice(0, 3, 24, step);
      EXPECT_EQ(first.sizes(), (Dims{1})) << step;
      EXPECT_EQ(first.to_host<float>(), std::vector<float>{3}) << step;
      EXPECT_EQ(t.reshape({4, 6}).slice(0, 1, 4, step).contiguous().to_host<float>()[5], 11) << step;
      EXPECT_EQ(t.reshape({4, 6}).slice(0, 0, 4, step).slice(0, 0, 1, step).unsqueeze(0).reshape({6}).to_host<float>()[5], 5) << step;
    }
    EXPECT_EQ(t.slice(0, INT64_MIN, kMost).numel(), 24);
    EXPECT_EQ(t.slice(0, 0, 0, kMost).numel(), 0);
    EXPECT_TRUE(refuses([&] { t.select(0, INT64_MIN); }));
    EXPECT_TRUE(refuses([&] { t.expand({kHuge, 24}); })) << "the bytes of it wrap";
    EXPECT_TRUE(refuses([&] { zeros({1}, o).expand({kMost}); }));
    EXPECT_TRUE(refuses([&] { t.reshape({std::int64_t{1} << 32, std::int64_t{1} << 32, -1}); }));
    EXPECT_TRUE(refuses([&] { t.reshape({std::int64_t{1} << 32, std::int64_t{1} << 32, 24}); }));
    EXPECT_TRUE(refuses([&] { empty({0, kHuge, kHuge}, o); })) << "strides of it wrap";
    constexpr std::int64_t kMany = std::int64_t{1} << 40, kLate = (std::int64_t{1} << 30) - 1;
    const Tensor nothing = empty({0, 16}, o).as_strided({0, kMany}, {1, kMany});
    EXPECT_EQ(nothing.slice(1, kLate, kMany).numel() + nothing.select(1, kLate).numel(), 0) << "offsets of it wrap";
    EXPECT_TRUE(refuses([&] { empty({kHuge, kHuge, 0}, o); }));
    EXPECT_TRUE(refuses([&] { empty({kHuge, 16}, o); })) << "2^64 elements";
    EXPECT_TRUE(refuses([&] { empty({kHuge}, {.dtype = DType::c128, .device = device}); })) << "2^64 bytes";
    EXPECT_TRUE(refuses([&] { from_bytes(nullptr, 0, {kHuge}, {.dtype = DType::c128, .device = device}); }));
    EXPECT_TRUE(refuses([&] { from_host(std::vector<float>{}, {kHuge, 16}, device); }));
    EXPECT_TRUE(refuses([&] { arange(0, 8e18, 1, o); }));
    EXPECT_TRUE(refuses([] { Dims{}.erase(0); }));
    EXPECT_TRUE(refuses([] { Dims{1, 2}.erase(2); }));
    EXPECT_TRUE(refuses([] { Dims{1, 2}.erase(-1); }));
    Dims dims{1, 2, 3};
    dims.erase(1);
    EXPECT_EQ(dims, (Dims{1, 3}));
    EXPECT_TRUE(refuses([] { Dims::filled(kMaxRank + 1, 1); }));
    EXPECT_TRUE(refuses([] { Dims::filled(-1, 1); }));
  }
}

TEST(Tensors, NullMemoryIsRefused) {
  CLUTCH_EACH_DEVICE(device) {
    TensorOptions o{.device = device};
    EXPECT_EQ(code_of([&] { from_bytes(nullptr, 4, {1}, o); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { from_host(std::span<const float>(static_cast<const float*>(nullptr), 4), {4}, device); }), ErrorCode::invalid_argument);
    EXPECT_EQ(from_bytes(nullptr, 0, {0}, o).numel(), 0);
    Tensor t = zeros({4}, o);
    EXPECT_EQ(code_of([&] { t.read_into(std::span<float>(static_cast<float*>(nullptr), 4)); }), ErrorCode::invalid_argument);
    zeros({0}, o).read_into(std::span<float>());
  }
}

TEST(Tensors, ReadsAndWritesInto) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = arange(0, 5, 1, {.device = device});
    std::vector<float> host(5);
    t.read_into(std::span<float>(host));
    EXPECT_EQ(host[4], 4);
    EXPECT_EQ(code_of([&] { t.read_into(std::span<float>(host).first(4)); }), ErrorCode::invalid_argument);
    std::vector<float> big(300000, 1.25f);
    Tensor b = from_host(big, {300000}, device);
    std::fill(big.begin(), big.end(), 0.0f);  // the source may go at once
    EXPECT_EQ(b.to_host<float>(), std::vector<float>(300000, 1.25f));
  }
}

TEST(Tensors, Printing) {
  CLUTCH_EACH_DEVICE(device) {
    std::ostringstream out;
    out << arange(0, 4, 1, {.dtype = DType::i32, .device = device}).reshape({2, 2});
    EXPECT_EQ(out.str(), "tensor([[0, 1], [2, 3]], sizes=(2, 2), i32)");
    EXPECT_EQ(arange(0, 100, 1, {.device = device}).to_string(), "tensor([0, 1, 2, ..., 97, 98, 99], f32)");
    EXPECT_EQ(zeros({0}, {.device = device}).to_string(), "tensor([], sizes=(0,), f32)");
    EXPECT_EQ(zeros({3}, {.dtype = DType::f4e2m1, .device = device}).to_string(), "tensor([0, 0, 0], f4e2m1)");
    EXPECT_EQ(Tensor().to_string(), "tensor(undefined)");
  }
}

TEST(Tensors, TravelBetweenDevices) {
  const auto& all = test_devices();
  if (skip_without(all.front(), "second device", all.size() > 1)) return;
  Tensor here = arange(0, 1000, 1, {.device = all[0]});
  Tensor there = here.to(all[1]);
  EXPECT_EQ(there.device(), all[1]);
  EXPECT_EQ(there.to_host<float>(), here.to_host<float>());
  EXPECT_TRUE(here.to(all[0]).shares_storage(here));
}

TEST(Tensors, ResultTypeOfRank0IsWeak) {
  const Device& device = test_devices().front();
  auto make = [&](DType dtype, bool scalar) { return empty(scalar ? Dims{} : Dims{2}, {.dtype = dtype, .device = device}); };
  auto type = [&](const Tensor& a, const Tensor& b) {
    const Tensor* list[] = {&a, &b};
    return result_type(list);
  };
  EXPECT_EQ(type(make(DType::f32, false), make(DType::i64, true)), DType::f32);
  EXPECT_EQ(type(make(DType::i32, false), make(DType::f16, true)), DType::f16);
  EXPECT_EQ(type(make(DType::f16, false), make(DType::f32, true)), DType::f16);
  EXPECT_EQ(type(make(DType::u8, false), make(DType::i64, true)), DType::u8);
  EXPECT_EQ(type(make(DType::f16, true), make(DType::f32, true)), DType::f32);
  for (DType complex : {DType::c64, DType::c128}) {
    EXPECT_EQ(type(make(DType::f64, false), make(complex, true)), DType::c128);
    EXPECT_EQ(type(make(DType::f32, false), make(complex, true)), DType::c64);
    EXPECT_EQ(type(make(DType::bf16, false), make(complex, true)), DType::c64);
    EXPECT_EQ(type(make(DType::i64, false), make(complex, true)), complex);
    EXPECT_EQ(type(make(DType::c64, false), make(complex, true)), DType::c64);
  }
}

}}  // namespace clutch::testing
