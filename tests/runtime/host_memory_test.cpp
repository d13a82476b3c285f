// SPDX-License-Identifier: Apache-2.0
// Storage handles, mapped tensors, and memory that drivers copy from without a copy of their own.
#include "support/fixture.hpp"

#include <clutch/clutch.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace clutch::testing { namespace {

TEST(StorageHandle, MakesTensorsOfOneMemory) {
  CLUTCH_EACH_DEVICE(device) {
    const StorageHandle memory(1024, device);
    EXPECT_EQ(memory.bytes(), 1024u);
    EXPECT_EQ(memory.device(), device);
    EXPECT_TRUE(memory.has_memory());
    const Tensor floats = memory.view({16, 16}, DType::f32), column = memory.view({16}, {16}, DType::f32, 4), words = memory.view({256}, DType::i32);
    fill_(floats, 1);
    fill_(column, 2);
    EXPECT_EQ(floats.select(1, 1).contiguous().to_host<float>(), std::vector<float>(16, 2));
    EXPECT_EQ(words.to_host<std::int32_t>()[0], 0x3F800000);
    EXPECT_TRUE(column.shares_storage(words));
    EXPECT_EQ(StorageHandle(column.slice(0, 3, 5)), memory) << "all of the memory of any view";
    EXPECT_FALSE(StorageHandle(64, device) == memory);
    EXPECT_EQ(memory_address(column), memory_address(floats) + 4);
    std::weak_ptr<detail::Storage> watched = memory.storage();
    EXPECT_GE(watched.use_count(), 4);
    EXPECT_EQ(memory.view({0}, DType::f64, 1024).numel(), 0) << "nothing at the end";
    EXPECT_EQ(StorageHandle(0, device).bytes(), 0u);
  }
}

TEST(StorageHandle, RefusesWhatTheMemoryHasNot) {
  CLUTCH_EACH_DEVICE(device) {
    const StorageHandle memory(100, device);
    EXPECT_EQ(code_of([&] { memory.view({26}, DType::f32); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.view({25}, DType::f32, 4); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.view({1}, DType::u8, 101); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.view({2}, DType::f32, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { memory.view({2}, {-1}, DType::f32, 8); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { memory.view({2, 2}, {1}, DType::f32); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { memory.view({3, 3}, {INT64_MAX / 4, 1}, DType::f32); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([] { StorageHandle().bytes(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { StorageHandle{Tensor()}; }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { StorageHandle(std::uint64_t{1} << 60, device); }), ErrorCode::invalid_shape);
  }
}

TEST(StorageHandle, OfACaptureHasNoMemoryYet) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    Graph graph;
    StorageHandle made;
    const Tensor out = zeros({8}, {.device = device}, stream);
    {
      GraphCapture capture(graph, stream);
      made = StorageHandle(32, device, stream);
      EXPECT_FALSE(made.has_memory());
      fill_(made.view({8}, DType::f32), 4, {}, stream);
      copy_(out, made.view({8}, DType::f32), {}, stream);
    }
    graph.replay(stream);
    EXPECT_EQ(out.to_host<float>(stream), std::vector<float>(8, 4));
  }
}

TEST(HostMapping, ReadsAndWritesTheTensorItself) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    Tensor t = arange(0, 1000, 1, {.device = device}, stream);
    for (int i = 0; i < 20; ++i) add_(t, 1.0, {}, stream);  // the mapping waits for these
    {
      HostMapping mapping(t.slice(0, 100, 200), MapAccess::read_write, stream);
      ASSERT_TRUE(mapping.mapped());
      const std::span<float> numbers = mapping.as<float>();
      ASSERT_EQ(numbers.size(), 100u);
      EXPECT_EQ(numbers[7], 127);
      numbers[7] = -1;
      // What is next to it is free.
      add_(t.slice(0, 0, 100), 1.0, {}, stream);
    }
    const std::vector<float> got = t.to_host<float>(stream);
    EXPECT_EQ(got[107], -1);
    EXPECT_EQ(got[0], 21);
    EXPECT_EQ(got[99], 120);
    EXPECT_EQ(got[108], 128);
    HostMapping first(t, MapAccess::read, stream);
    HostMapping second = std::move(first);
    EXPECT_FALSE(first.mapped());  // NOLINT: what it says after the move
    EXPECT_EQ(second.as<float>()[107], -1);
    second.unmap();
    second.unmap();
    EXPECT_FALSE(second.mapped());
    HostMapping all(t, MapAccess::write, stream);
    std::fill(all.as<float>().begin(), all.as<float>().end(), 6.0f);
    all.unmap();
    mul_(t, 2.0, {}, stream);
    EXPECT_EQ(t.to_host<float>(stream), std::vector<float>(1000, 12)) << "work behind unmap() sees what was written";
    HostMapping none(zeros({0}, {.device = device}, stream), MapAccess::read, stream);
    EXPECT_TRUE(none.mapped() && none.bytes().empty());
  }
}

TEST(HostMapping, IsNoCopyOnDevicesOfTheHostsMemory) {
  CLUTCH_EACH_DEVICE(device) {
    if (device.platform() != "Portable Computing Language") continue;
    const Tensor t = full({4096}, 1, {.device = device});
    const void* first = HostMapping(t).bytes().data();
    EXPECT_EQ(HostMapping(t).bytes().data(), first) << "the same memory at each mapping";
    EXPECT_EQ(static_cast<const void*>(HostMapping(t.slice(0, 16, 32)).bytes().data()), static_cast<const std::byte*>(first) + 64);
  }
}

TEST(HostMapping, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    const Tensor t = zeros({4, 4}, {.device = device});
    EXPECT_EQ(code_of([&] { HostMapping{t.mT()}; }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { HostMapping{Tensor()}; }), ErrorCode::invalid_argument);
    HostMapping one(t);
    EXPECT_EQ(code_of([&] { HostMapping{t}; }), ErrorCode::invalid_argument) << "mapped already";
    EXPECT_EQ(code_of([&] { one.as<double>(); }), ErrorCode::invalid_dtype);
    one.unmap();
    EXPECT_EQ(code_of([&] { one.bytes(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { HostMapping{t}; }), ErrorCode::ok);
    const Stream stream(device);
    EXPECT_EQ(code_of([&] {
                Graph graph;
                GraphCapture capture(graph, stream);
                HostMapping mapping(t, MapAccess::read, stream);
              }),
              ErrorCode::capturing);
  }
}

TEST(HostBuffer, GoesBetweenHostAndDevice) {
  CLUTCH_EACH_DEVICE(device) {
    const Stream stream(device);
    HostBuffer buffer(4096, device, stream);
    ASSERT_TRUE(buffer.with_host());
    ASSERT_EQ(buffer.bytes().size(), 4096u);
    std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{0});
    const float numbers[] = {1, 2, 3, 4};
    std::memcpy(buffer.bytes().data() + 64, numbers, sizeof numbers);
    const Tensor t = buffer.tensor({4}, DType::f32, 64);
    buffer.to_device();
    EXPECT_FALSE(buffer.with_host());
    EXPECT_EQ(code_of([&] { buffer.bytes(); }), ErrorCode::invalid_argument);
    mul_(t, 10.0, {}, stream);
    EXPECT_EQ(t.to_host<float>(stream), (std::vector<float>{10, 20, 30, 40}));
    add_(t, 1.0, {}, stream);
    buffer.to_host(stream);
    float back[4];
    std::memcpy(back, buffer.bytes().data() + 64, sizeof back);
    EXPECT_EQ(back[3], 41);
    // As the source of a copy that does not wait.
    Tensor target = zeros({1024}, {.device = device}, stream);
    target.write_kept(buffer.bytes(), {}, stream);
    stream.synchronize();
    EXPECT_EQ(target.slice(0, 16, 20).to_host<float>(stream), (std::vector<float>{11, 21, 31, 41}));
    buffer.to_device();
    HostBuffer moved = std::move(buffer);
    EXPECT_FALSE(buffer.defined());  // NOLINT: what it says after the move
    moved = HostBuffer(16, device, stream);
    EXPECT_EQ(moved.size(), 16u);
    EXPECT_EQ(t.to_host<float>(stream)[0], 11) << "a tensor keeps the memory";
  }
}

TEST(HostBuffer, RefusesBadInput) {
  CLUTCH_EACH_DEVICE(device) {
    EXPECT_EQ(code_of([&] { HostBuffer(0, device); }), ErrorCode::invalid_argument);
    HostBuffer buffer(16, device);
    EXPECT_EQ(code_of([&] { buffer.tensor({5}, DType::f32); }), ErrorCode::invalid_shape);
    EXPECT_EQ(code_of([&] { buffer.tensor({1}, DType::f32, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([] { HostBuffer().tensor({1}); }), ErrorCode::invalid_argument);
  }
}

}}  // namespace clutch::testing
