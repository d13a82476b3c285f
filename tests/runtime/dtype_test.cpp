// SPDX-License-Identifier: Apache-2.0
#include "program/sha256.hpp"
#include "support/fixture.hpp"

namespace clutch::testing { namespace {

TEST(DTypes, NamesAndBits) {
  for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(dtype_from_name(name(static_cast<DType>(i))), static_cast<DType>(i));
  EXPECT_EQ(bits(DType::f6e3m2), 6);
  EXPECT_EQ(bytes_for(DType::f4e2m1, 5), 3u);
  EXPECT_EQ(bytes_for(DType::f6e2m3, 4), 3u);
  EXPECT_EQ(bits(DType::c128), 128);
  EXPECT_EQ(code_of([] { dtype_from_name("f99"); }), ErrorCode::invalid_dtype);
}

TEST(DTypes, SmallFloatsRoundAsTheModel) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    auto raw = static_cast<std::uint16_t>(code);
    double h = static_cast<double>(model::f16_value(raw)), b = static_cast<double>(model::bf16_value(raw));
    if (!std::isnan(h)) {
      ASSERT_EQ(decode_small_float(raw, DType::f16), h);
      ASSERT_EQ(encode_small_float(h, DType::f16), raw);
    }
    if (!std::isnan(b)) {
      ASSERT_EQ(decode_small_float(raw, DType::bf16), b);
      ASSERT_EQ(encode_small_float(b, DType::bf16), raw);
    }
  }
  model::Random random(seed());
  for (int i = 0; i < 200000; ++i) {
    double x = std::ldexp(random.uniform(-2, 2), static_cast<int>(random.next() % 60) - 30);
    ASSERT_EQ(encode_small_float(x, DType::f16), model::to_f16(x)) << x;
    ASSERT_EQ(encode_small_float(x, DType::bf16), model::to_bf16(x)) << x;
    for (DType d : {DType::f8e4m3fn, DType::f8e5m2})
      for (Overflow o : {Overflow::nonfinite, Overflow::saturate}) ASSERT_EQ(encode_small_float(x, d, o), model::to_f8(x, d, o)) << x << ' ' << name(d);
    ASSERT_EQ(encode_small_float(x, DType::f8e8m0fnu), model::to_e8m0(x)) << x;
  }
}

TEST(DTypes, MicroscalingValues) {
  std::vector<double> fp4;
  for (std::uint16_t c = 0; c < 8; ++c) fp4.push_back(decode_small_float(c, DType::f4e2m1));
  EXPECT_EQ(fp4, (std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  EXPECT_EQ(decode_small_float(31, DType::f6e2m3), 7.5);
  EXPECT_EQ(decode_small_float(31, DType::f6e3m2), 28);
  EXPECT_EQ(decode_small_float(0, DType::f8e8m0fnu), 0x1p-127);
  EXPECT_EQ(static_cast<float>(float16(1.5)), 1.5f);
  EXPECT_EQ(static_cast<float>(bfloat16(-3)), -3.0f);
}

TEST(DTypes, PromotionTable) {
  EXPECT_EQ(promote_types(DType::f16, DType::bf16), DType::f32);
  EXPECT_EQ(promote_types(DType::i64, DType::f16), DType::f16);
  EXPECT_EQ(promote_types(DType::u8, DType::i8), DType::i16);
  EXPECT_EQ(promote_types(DType::u8, DType::i32), DType::i32);
  EXPECT_EQ(promote_types(DType::boolean, DType::u8), DType::u8);
  EXPECT_EQ(promote_types(DType::c64, DType::f64), DType::c128);
  EXPECT_EQ(promote_types(DType::f32, DType::c64), DType::c64);
  EXPECT_EQ(promote_types(DType::f64, DType::f32), DType::f64);
  EXPECT_EQ(promote_types(DType::u64, DType::f16), DType::f16);
  EXPECT_EQ(promote_types(DType::u32, DType::u32), DType::u32);
  for (DType d : {DType::boolean, DType::u8, DType::i64, DType::u32, DType::c64})
    EXPECT_EQ(code_of([&] { promote_types(DType::u16, d); }), ErrorCode::invalid_dtype) << name(d);
  EXPECT_EQ(code_of([] { promote_types(DType::f8e5m2, DType::f32); }), ErrorCode::invalid_dtype);
  for (int i = 0; i < kDTypeCount; ++i)
    for (int j = 0; j < kDTypeCount; ++j) {
      auto a = static_cast<DType>(i), b = static_cast<DType>(j);
      auto lone = [](DType d) { return d == DType::u16 || d == DType::u32 || d == DType::u64; };
      if (a != b && ((lone(a) && !is_floating(b)) || (lone(b) && !is_floating(a)))) continue;
      if ((is_floating(a) && bits(a) <= 8) || (is_floating(b) && bits(b) <= 8)) continue;
      EXPECT_EQ(promote_types(a, b), promote_types(b, a)) << name(a) << ' ' << name(b);
    }
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(detail::to_hex(detail::sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(detail::to_hex(detail::sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(detail::to_hex(detail::sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(detail::to_hex(detail::sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}}  // namespace clutch::testing
