// SPDX-License-Identifier: Apache-2.0
#include <clutch/dlpack.hpp>
#include <clutch/interop_cl.hpp>

#include "interop/dlpack_abi.hpp"
#include "support/fixture.hpp"

#include <memory>

namespace clutch::testing { namespace {

using interop::DlpackMemory;
using interop::from_dlpack;
using interop::to_dlpack;
using interop::to_dlpack_versioned;

/// A producer's tensor in host memory that counts its deletions.
struct Producer {
  std::vector<float> values{0, 1, 2, 3, 4, 5};
  std::int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
  int deleted = 0;
  DLManagedTensor managed{};
  Producer() {
    managed.dl_tensor = {values.data(), {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* m) { ++static_cast<Producer*>(m->manager_ctx)->deleted; };
  }
};

TEST(Dlpack, MemoryOfTheDeviceGoesOutAndComesBackInPlace) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor x = arange(0, 24, 1, {.device = device}).reshape({2, 3, 4}).transpose(0, 2).slice(0, 1, 4);
    std::vector<float> want = x.to_host<float>();
    DLManagedTensor* managed = to_dlpack(x);
    EXPECT_EQ(managed->dl_tensor.device.device_type, 4);
    EXPECT_EQ(managed->dl_tensor.device.device_id, device.index());
    EXPECT_EQ(managed->dl_tensor.data, interop::mem(x));
    EXPECT_EQ(managed->dl_tensor.byte_offset, interop::offset(x));
    EXPECT_EQ(managed->dl_tensor.strides[0], 1);
    x = {};  // what was handed out lives on
    Tensor back = from_dlpack(managed);
    EXPECT_EQ(back.sizes(), (Dims{3, 3, 2}));
    EXPECT_EQ(back.to_host<float>(), want);
    fill_(back, 7);
    EXPECT_EQ(back.to_host<float>()[0], 7);
    DLManagedTensorVersioned* versioned = to_dlpack_versioned(back);
    EXPECT_EQ(versioned->version.major, 1u);
    EXPECT_EQ(versioned->flags, 0u);
    EXPECT_EQ(from_dlpack(versioned).to_host<float>(), std::vector<float>(18, 7));
  }
}

TEST(Dlpack, ProducersAreToldWhenNoWorkUsesTheirMemory) {
  CLUTCH_EACH_DEVICE(device) {
    Tensor memory = full({6}, 2, {.device = device});
    synchronize(device);
    Producer p;
    p.managed.dl_tensor.data = interop::mem(memory);
    p.managed.dl_tensor.byte_offset = interop::offset(memory);
    p.managed.dl_tensor.device = {4, 0};
    {
      Tensor taken = from_dlpack(&p.managed), view = taken.select(0, 1);
      fill_(view, 5);
      taken = {};
      EXPECT_EQ(p.deleted, 0);
    }
    EXPECT_EQ(p.deleted, 1);
    EXPECT_EQ(memory.to_host<float>(), (std::vector<float>{2, 2, 2, 5, 5, 5}));
  }
}

TEST(Dlpack, HostMemoryIsCopiedBothWays) {
  CLUTCH_EACH_DEVICE(device) {
    Producer p;
    EXPECT_EQ(from_dlpack(&p.managed, device).to_host<float>(), p.values);
    EXPECT_EQ(p.deleted, 1);
    // Any strides, negative ones, too: the last element first.
    p.managed.dl_tensor.strides = p.strides;
    p.strides[0] = -3, p.strides[1] = -1, p.managed.dl_tensor.byte_offset = 5 * sizeof(float);
    EXPECT_EQ(from_dlpack(&p.managed, device).to_host<float>(), (std::vector<float>{5, 4, 3, 2, 1, 0}));
    p.strides[0] = 0, p.strides[1] = 1, p.managed.dl_tensor.byte_offset = 4;
    EXPECT_EQ(from_dlpack(&p.managed, device).to_host<float>(), (std::vector<float>{1, 2, 3, 1, 2, 3}));
    p.shape[0] = 0;
    EXPECT_EQ(from_dlpack(&p.managed, device).sizes(), (Dims{0, 3}));
    EXPECT_EQ(p.deleted, 4);
    for (DType dtype : {DType::f64, DType::bf16, DType::i64, DType::boolean, DType::c64, DType::f8e4m3fn, DType::f8e8m0fnu, DType::f4e2m1, DType::f6e3m2}) {
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(bytes_for(dtype, 8)), 1);
      Tensor x = from_bytes(bytes.data(), bytes.size(), {2, 4}, {.dtype = dtype, .device = device});
      Tensor back = from_dlpack(to_dlpack_versioned(x, DlpackMemory::host), device);
      EXPECT_EQ(back.dtype(), dtype);
      EXPECT_EQ(back.to_bytes(), bytes) << name(dtype);
    }
    DLManagedTensorVersioned* copied = to_dlpack_versioned(full({2}, 1, {.device = device}), DlpackMemory::host);
    EXPECT_EQ(copied->flags, 2u);
    copied->deleter(copied);
  }
}

TEST(Dlpack, RefusedTensorsStayTheCallers) {
  CLUTCH_EACH_DEVICE(device) {
    Producer p;
    auto refused = [&](auto&& change) {
      p.managed = Producer().managed;
      p.managed.manager_ctx = &p, p.shape[0] = 2, p.shape[1] = 3;
      p.managed.dl_tensor.data = p.values.data(), p.managed.dl_tensor.shape = p.shape;
      change(p.managed.dl_tensor);
      return code_of([&] { from_dlpack(&p.managed, device); });
    };
    EXPECT_EQ(refused([](DLTensor& t) { t.dtype.lanes = 4; }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([](DLTensor& t) { t.dtype = {1, 128, 1}; }), ErrorCode::invalid_dtype);
    EXPECT_EQ(refused([](DLTensor& t) { t.device.device_type = 2; }), ErrorCode::not_supported);
    EXPECT_EQ(refused([](DLTensor& t) { t.ndim = 13; }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([](DLTensor& t) { t.ndim = -1; }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([](DLTensor& t) { t.shape[0] = -2; }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([](DLTensor& t) { t.shape[0] = INT64_MAX; }), ErrorCode::invalid_shape);
    EXPECT_EQ(refused([](DLTensor& t) { t.shape = nullptr; }), ErrorCode::invalid_argument);
    EXPECT_EQ(refused([](DLTensor& t) { t.data = nullptr; }), ErrorCode::invalid_argument);
    std::int64_t nowhere[] = {0, 0};
#ifndef __SANITIZE_ADDRESS__  // which ends the process instead of throwing bad_alloc
    EXPECT_EQ(refused([&](DLTensor& t) { t.strides = nowhere, t.shape[0] = std::int64_t{1} << 47; }), ErrorCode::out_of_memory);
#endif
    EXPECT_EQ(refused([&](DLTensor& t) { t.strides = nowhere, t.shape[0] = std::int64_t{1} << 60; }), ErrorCode::invalid_shape);
    Tensor memory = zeros({6}, {.device = device});
    std::int64_t strides[] = {3, 1};
    auto on_device = [&](auto&& change) {
      return refused([&](DLTensor& t) {
        t.data = interop::mem(memory), t.byte_offset = interop::offset(memory), t.device = {4, 0}, t.strides = strides;
        change(t);
      });
    };
    EXPECT_EQ(on_device([&](DLTensor&) { strides[0] = -3; }), ErrorCode::invalid_shape);
    EXPECT_EQ(on_device([&](DLTensor&) { strides[0] = INT64_MAX; }), ErrorCode::invalid_shape);
    EXPECT_EQ(on_device([&](DLTensor&) { strides[0] = std::int64_t{1} << 40; }), ErrorCode::invalid_shape);
    EXPECT_EQ(on_device([&](DLTensor& t) { strides[0] = 3, t.byte_offset += 2; }), ErrorCode::invalid_shape);
    EXPECT_EQ(on_device([&](DLTensor& t) { t.data = nullptr; }), ErrorCode::invalid_argument);
    EXPECT_EQ(p.deleted, 0);
    EXPECT_EQ(code_of([&] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { to_dlpack(Tensor()); }), ErrorCode::invalid_argument);
    DLManagedTensorVersioned* versioned = to_dlpack_versioned(memory);
    versioned->version.major = 2;
    EXPECT_EQ(code_of([&] { from_dlpack(versioned); }), ErrorCode::not_supported);
    versioned->version.major = 1, versioned->flags = 4;
    EXPECT_EQ(code_of([&] { from_dlpack(versioned); }), ErrorCode::not_supported);
    versioned->deleter(versioned);
  }
}

}}  // namespace clutch::testing
