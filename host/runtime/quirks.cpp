// SPDX-License-Identifier: Apache-2.0
#include "runtime/quirks.hpp"

#include <array>
#include <cstdlib>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Leading number of the driver's version: 3.1 for "3.1+debian".
double driver_number(const DeviceRecord& d) { return std::strtod(d.driver_version.c_str(), nullptr); }
bool is_pocl(const DeviceRecord& d) { return d.facts.platform_name == "Portable Computing Language"; }
bool is_intel_cpu(const DeviceRecord& d) { return d.facts.platform_name == "Intel(R) OpenCL" && d.facts.type == DeviceType::cpu; }
bool is_rusticl(const DeviceRecord& d) { return d.facts.platform_name == "rusticl"; }
bool is_nvidia(const DeviceRecord& d) { return d.facts.platform_name == "NVIDIA CUDA"; }
bool is_llvmpipe(const DeviceRecord& d) { return is_rusticl(d) && d.facts.name.starts_with("llvmpipe"); }

constexpr std::array kTable{
    QuirkRow{kQuirkJitPerLocalSize, "jit_per_local_size", is_pocl,
             "each local size is compiled at its first launch (50 to 80 ms): few local sizes, no offsets; binaries are saved "
             "after the launch",
             "measured on 3.1; PoCL lib/CL/devices/common.c"},
    QuirkRow{kQuirkCommandBufferArguments, "command_buffer_arguments", [](const DeviceRecord& d) { return is_pocl(d) && driver_number(d) < 5; },
             "replay of cl_khr_command_buffer reads the kernel's present arguments, recording unset ones crashes",
             "measured on 3.1; fixed by PoCL commit 526263215"},
    QuirkRow{kQuirkCommandBufferTimes, "command_buffer_times", [](const DeviceRecord& d) { return (is_pocl(d) && driver_number(d) < 6) || is_intel_cpu(d); },
             "the event of a command buffer covers its last command alone, or no time at all: markers around it are measured",
             "measured on PoCL 3.1 (TODO in its source) and on 2026.22; reproducer: CommandBuffers.RawFaultsAreWhatTheQuirkTableSays"},
    QuirkRow{kQuirkUnderclaimsRounding, "underclaims_rounding", is_rusticl,
             "claims neither FMA nor correct divide and sqrt, yet rounds correctly: the self-test decides", "measured on Mesa 22.3"},
    QuirkRow{kQuirkFailedWaitsPass, "failed_waits_pass", is_intel_cpu,
             "commands that wait for a user event whose status became negative run and complete as if it had succeeded",
             "measured on 2026.22; reproducer: Streams.AFailedEventSticksUntilReset"},
    QuirkRow{kQuirkSharedQueueHangs, "shared_queue_hangs",
             [](const DeviceRecord& d) { return is_pocl(d) && driver_number(d) < 4 && d.facts.name.starts_with("basic"); },
             "two threads that enqueue to and finish one queue may wait for a freed event's lock for ever; a stream per thread works",
             "measured on 3.1; reproducer: Hammer.TensorsOnSharedAndOwnStreams with the shared stream"},
    QuirkRow{kQuirkExitWhileBuilding, "exit_while_building", is_pocl,
             "a process that ends while a launch is still being compiled may crash in LLVM, whose globals are gone: the end of the main thread waits up to 10 s"
             " for the work",
             "seen on 3.1 by core dumps, one exit in 12 under load; reproducer: Environment.AProcessEndsAfterTheWorkThatMainLeft without finish_at_exit()"},
    QuirkRow{kQuirkLoopsEndEarly, "loops_end_early", is_llvmpipe,
             "a work-item's loops end silently after 65535 iterations in all (kLoopLimit): items take little work each; the self-test decides",
             "measured on Mesa 22.3, where leaving a loop counts as one more; LP_MAX_TGSI_LOOP_ITERATIONS in its source"},
    QuirkRow{kQuirkArgumentSizesPanic, "argument_sizes_panic", is_rusticl,
             "clSetKernelArg with a size other than the parameter's ends the process instead of returning CL_INVALID_ARG_SIZE",
             "seen on Mesa 22.3; reproducer: SavedGraphs.ForgedOnesGiveErrorsOrGraphs"},
    QuirkRow{kQuirkByteSelectsCrash, "byte_selects_crash", is_llvmpipe,
             "its compiler ends the process on a select of i8 values one of which is a constant: map, rowwise and matmul refuse these",
             "measured on Mesa 22.3 with LLVM 15"},
    QuirkRow{kQuirkEventsCost, "events_cost", is_nvidia,
             "the event of a command on a queue that measures time takes 7 us, where a launch takes 3: one command in kEventEach has an event",
             "measured on driver 580.159 with an H200"},
    QuirkRow{kQuirkSubDevicesUnnamed, "sub_devices_unnamed", is_pocl,
             "a context of the device alone takes queues of its sub-devices, too: partitions of any units are made on demand",
             "measured on 3.1; reproducer: Partitions.*"},
    QuirkRow{kQuirkQueuesTakeTurns, "queues_take_turns", is_intel_cpu,
             "one kernel runs at a time, on whatever queue and sub-device: a partition's kernel waits for the end of another one's",
             "measured on 2026.22 with two units; reproducer: Partitions.AKernelLeavesOtherPartitionsTheirUnits"},
    QuirkRow{kQuirkSlowHostTransfer, "one_thread_copies", is_pocl, "copy, fill and read commands run on one thread: kernels copy instead", "PoCL issue #716"},
};

}  // namespace

std::span<const QuirkRow> quirk_table() { return kTable; }

}}}  // namespace clutch::v0::detail
