// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/clutch.hpp>

#include <string>
#include <vector>

namespace clutch_pack {

/// Runs calls of every op's common classes on a device, so that CLUTCH_PACK_RECORD notes their programs and local sizes. Returns a line for each call that
/// failed. On devices whose groups are threads the shapes are small, since each kernel runs there; elsewhere they are those that plans are made for.
std::vector<std::string> run_workload(const clutch::Device& device, const std::vector<clutch::DType>& dtypes);

}  // namespace clutch_pack
