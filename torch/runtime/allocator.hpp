// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

namespace torch_clutch {

/// The allocator of `clutch:N`, over clutch's own caching one: memory in stream order, statistics under PyTorch's keys.
c10::DeviceAllocator& allocator();

/// Whether new memory is filled: torch.utils.deterministic.fill_uninitialized_memory in deterministic mode.
bool fills_memory();

/// Memory of the host that is_pinned() knows. OpenCL has no pages to pin, so that it is plain memory, aligned to pages.
at::HostAllocator& host_allocator();
bool is_pinned(const void* address);

}  // namespace torch_clutch
