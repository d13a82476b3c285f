// SPDX-License-Identifier: Apache-2.0
// Addresses of device memory. PyTorch wants a pointer that is unique, ordered and can be added to; OpenCL has a buffer and an offset. So each block of memory
// gets a range of addresses that are reserved and never mapped: arithmetic on them works, and an access of the host is a fault at a place that tells what
// happened.
#pragma once
#include <c10/core/Allocator.h>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace torch_clutch {

struct Block {
  clutch::Tensor bytes;  ///< u8: keeps the memory of clutch alive
  c10::DeviceIndex device = 0;
  std::uintptr_t address = 0;
  std::uint64_t size = 0;      ///< bytes of the tensor
  std::uint64_t reserved = 0;  ///< bytes of addresses
  /// What was made of the memory's values and goes with it.
  std::shared_ptr<void> attached = nullptr;
};

/// PyTorch's handle of `bytes`, which it frees.
c10::DataPtr adopt(clutch::Tensor bytes, c10::DeviceIndex device);
/// The handle of no bytes.
c10::DataPtr empty_pointer(c10::DeviceIndex device);
/// The block of a storage's memory; null for one of no bytes.
Block* block_of(const c10::DataPtr& pointer);
/// The block that an address lies in, or ends; null if there is none.
Block* find_block(const void* address);
/// Frees the block that begins at `address`: the deleter of its handles, whose context is the address, as PyTorch's copies on write want it.
void free_block(void* address);
/// "[0x..., 0x...)": where faults of the host come from device memory.
std::string address_range();

}  // namespace torch_clutch
