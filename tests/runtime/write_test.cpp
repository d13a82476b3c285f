// SPDX-License-Identifier: Apache-2.0
// Tensor::write, write_kept and read_bytes: host memory into tensors that exist, and out of them.
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <numeric>

namespace clutch::testing { namespace {

std::vector<std::byte> random_bytes(std::size_t n, std::uint64_t number) {
  model::Random random(seed() + number);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}
std::vector<std::uint8_t> as_u8(const std::vector<std::byte>& bytes) {
  std::vector<std::uint8_t> all;
  for (std::byte b : bytes) all.push_back(static_cast<std::uint8_t>(b));
  return all;
}

TEST(Write, BytesArriveInAnyLayoutAndNowhereElse) {
  CLUTCH_EACH_DEVICE(device) {
    for (DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64, DType::c128})
      for (std::int64_t n : {1, 7, 1000, 30000})
        for (const Dims& strides : {Dims{}, Dims{3}, Dims{1}}) {
          Guarded target(device, dtype, {n}, strides);
          const std::vector<std::byte> bytes = random_bytes(bytes_for(dtype, static_cast<std::uint64_t>(n)), static_cast<std::uint64_t>(n));
          target.view().write(bytes);
          ASSERT_EQ(target.get(), as_u8(bytes)) << name(dtype) << " n " << n << " strides " << strides;
          std::vector<std::byte> back(bytes.size());
          target.view().read_bytes(back);
          ASSERT_EQ(back, bytes);
        }
    Guarded matrix(device, DType::f32, {5, 70}, {1, 6});
    const std::vector<std::byte> bytes = random_bytes(5 * 70 * 4, 1);
    matrix.view().write(bytes);
    EXPECT_EQ(matrix.get(), as_u8(bytes)) << "a transposed view with gaps";
    zeros({0, 3}, {.device = device}).write({});
    zeros({0, 3}, {.device = device}).read_bytes({});
    Tensor packed = zeros({5}, {.dtype = DType::f4e2m1, .device = device});
    const std::byte three[] = {std::byte{0x12}, std::byte{0x34}, std::byte{0x05}};
    packed.write(three);
    EXPECT_EQ(packed.to_bytes(), (std::vector<std::uint8_t>{0x12, 0x34, 0x05}));
  }
}

TEST(Write, MemoryMayBeChangedWhenTheCallReturns) {
  CLUTCH_EACH_DEVICE(device) {
    for (std::size_t n : {std::size_t{100}, Tensor::kPutAside, Tensor::kPutAside + 4, std::size_t{4} << 20}) {
      const Stream stream(device);
      Tensor t = zeros({static_cast<std::int64_t>(n / 4)}, {.device = device}, stream);
      std::vector<std::byte> bytes = random_bytes(n, n);
      const std::vector<std::uint8_t> want = as_u8(bytes);
      for (int i = 0; i < 20; ++i) add_(t, 1.0, {}, stream);  // so that the write has something to wait for
      t.write(bytes, stream);
      std::fill(bytes.begin(), bytes.end(), std::byte{0xA5});
      EXPECT_EQ(t.to_bytes(stream), want) << n << " bytes";
    }
  }
}

TEST(Write, StandsInTheStreamsOrder) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    Tensor t = full({50000}, 1, {.device = device}, stream), sum = zeros({50000}, {.device = device}, stream);
    const auto twos = std::make_shared<std::vector<float>>(50000, 2.0f);
    const std::weak_ptr<std::vector<float>> watched = twos;
    const std::vector<float> threes(50000, 3.0f);
    add_out(sum, sum, t, {}, stream);
    t.write_kept(std::as_bytes(std::span(*twos)), twos, stream);
    add_out(sum, sum, t, {}, stream);
    t.write(std::as_bytes(std::span(threes)), stream);
    add_out(sum, sum, t, {}, stream);
    EXPECT_EQ(sum.to_host<float>(stream), std::vector<float>(50000, 6.0f));
    EXPECT_EQ(watched.use_count(), 1) << "the stream lets go of what it was given";
  }
}

TEST(Write, KeepsWhatItWasGivenUntilTheStreamHasRead) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    Tensor t = zeros({1 << 18}, {.device = device}, stream);
    std::weak_ptr<std::vector<float>> watched;
    {
      const auto values = std::make_shared<std::vector<float>>(1 << 18, 7.0f);
      watched = values;
      t.write_kept(std::as_bytes(std::span(*values)), values, stream);
    }
    EXPECT_EQ(t.to_host<float>(stream)[(1 << 18) - 1], 7);
    EXPECT_TRUE(watched.expired());
    // Without an owner the caller sees to it.
    const std::vector<float> mine(1 << 18, 9.0f);
    t.write_kept(std::as_bytes(std::span(mine)), {}, stream);
    stream.synchronize();
    EXPECT_EQ(t.to_host<float>(stream)[1], 9);
  }
}

TEST(Write, ReplaysWriteTheBytesOfTheCapture) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    Tensor t = zeros({40000}, {.device = device}, stream), part = t.slice(0, 7, 40000, 3), sum = zeros({40000}, {.device = device}, stream);
    std::vector<float> values(static_cast<std::size_t>(part.numel()), 5.0f);
    Graph graph;
    {
      GraphCapture capture(graph, stream);
      part.write(std::as_bytes(std::span(values)), stream);
      t.slice(0, 0, 2).write_kept(std::as_bytes(std::span(values).first(2)), {}, stream);
      add_out(sum, sum, t, {}, stream);
    }
    std::fill(values.begin(), values.end(), -1.0f);
    fill_(t, 1, {}, stream);
    graph.replay(stream), fill_(t, 2, {}, stream), graph.replay(stream);
    const std::vector<float> got = sum.to_host<float>(stream);
    EXPECT_EQ(got[7], 10);
    EXPECT_EQ(got[8], 3) << "1, then 2";
    EXPECT_EQ(got[0], 10);
  }
}

TEST(Write, RefusesWhatDoesNotFit) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor t = zeros({4, 4}, {.device = device});
    const std::vector<std::byte> bytes(64);
    EXPECT_EQ(code_of([&] { t.write(std::span(bytes).first(63)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.write_kept({}, {}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.write({static_cast<const std::byte*>(nullptr), 64}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.select(0, 0).expand({4, 4}).write(bytes); }), ErrorCode::invalid_overlap);
    EXPECT_EQ(code_of([&] { Tensor().write(bytes); }), ErrorCode::invalid_argument);
    const Tensor packed = zeros({4, 4}, {.dtype = DType::f4e2m1, .device = device});
    EXPECT_EQ(code_of([&] { packed.mT().write(std::span(bytes).first(8)); }), ErrorCode::invalid_shape);
    std::vector<std::byte> back(10);
    EXPECT_EQ(code_of([&] { t.read_bytes(back); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { t.read_bytes({static_cast<std::byte*>(nullptr), 64}); }), ErrorCode::invalid_argument);
    EXPECT_EQ(t.to_host<float>(), std::vector<float>(16, 0.0f)) << "nothing ran";
  }
}

}}  // namespace clutch::testing
