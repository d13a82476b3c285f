// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/registry.hpp"
#include "runtime/runtime.hpp"
#include "support/fixture.hpp"
#include "support/op_case.hpp"

#include <memory>
#include <string>

namespace clutch::testing {

/// Runs a problem on guarded operands; returns what is wrong. With `raw_out` also the bytes it gave.
std::string run_once(const Device& device, const cases::Problem& problem, const Stream& stream = {}, std::vector<std::uint8_t>* raw_out = nullptr);
/// Captures the problem's call, replays it twice on each backend of graphs that the device has, and compares with the bytes that it gave eagerly.
std::string replay_problem(const Device& device, const cases::Problem& problem, const std::vector<std::uint8_t>& eager);
/// Both: what tests of ops run.
std::string run_problem(const Device& device, const cases::Problem& problem);

/// Every problem of every op, with "stem/entry/name" before it.
struct NamedProblem {
  std::string name;
  std::string_view stem;
  const cases::Problem* problem;
};
const std::vector<NamedProblem>& all_problems();
/// True if CLUTCH_TEST_ENTRIES lets the entry be proved. all_problems() has those of such entries.
bool proves(std::string_view entry);
/// Whether an implementation that a problem forces refused since its groups, which are for GPUs, need more items than the device allows: no more than every GPU
/// has.
bool refuses_few_items(const DeviceTraits& traits, std::string_view why);

/// A device found, described and set up anew, with nothing shared with the process's own: the place for faults. Its tensors
/// and streams must be gone before it is.
class FreshDevice {
 public:
  /// The device that is `like`'s twin. Errors: no_device if enumeration does not find it.
  explicit FreshDevice(const Device& like);
  ~FreshDevice();
  FreshDevice(const FreshDevice&) = delete;
  FreshDevice& operator=(const FreshDevice&) = delete;
  const Device& device() const { return device_; }
  const detail::DeviceRecord& record() const { return *device_.record(); }

 private:
  std::unique_ptr<detail::Registry> registry_;
  Device device_;
};

}  // namespace clutch::testing
