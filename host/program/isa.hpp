// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/device.hpp>

#include "program/pack_file.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct DeviceRecord;

/// Name of what a device's programs are compiled for:
///   amdgcn-amd-amdhsa--gfx942   AMD's driver (ROCm): the target of CL_DEVICE_NAME; its xnack and sramecc are left to the program
///   ptx-sm_90                   NVIDIA's driver: PTX for this compute capability, which later ones take, too
///   intel-dg2, intel-pvc, ...   Intel's GPUs: the family of CL_DEVICE_IP_VERSION_INTEL
///   pocl-3.1-pthread-skylake-avx512   PoCL: its version, its device and LLVM's name of the processor, without the brand that CL_DEVICE_NAME adds
/// and the platform's and device's names in small letters for all others.
std::string isa_of(const DeviceRecord& record);
/// For clutch-pack.
CLUTCH_API std::string isa_of(const Device& device);

/// The ISAs whose programs the device takes: its own, and on NVIDIA's driver those of earlier compute capabilities, the latest first.
std::vector<std::string> isas_taken(const DeviceRecord& record);

/// The device as a target of programs that its driver made, which that driver alone takes.
PackTarget target_of(const DeviceRecord& record);

/// Why programs for a target are not for the device; empty if they are.
std::string misfit(const PackTarget& target, const DeviceRecord& record);
/// For clutch-pack.
CLUTCH_API std::string misfit(const PackTarget& target, const Device& device);

/// True if programs for the ISA come with the processor, so that they need no proof of their own: those of PoCL, which were recorded as they ran.
bool is_proved_by_recording(std::string_view isa);

}}}  // namespace clutch::v0::detail
