// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/export.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace clutch { inline namespace v0 {

/// Says what kind of failure an Error reports. The numbers are the C ABI's and never change.
enum class ErrorCode : std::int32_t {
  ok = 0,
  invalid_argument = 1,  ///< a value outside its contract that none of the codes below names
  invalid_shape = 2,     ///< wrong rank or sizes, shapes that do not broadcast, negative sizes
  invalid_dtype = 3,     ///< a dtype, or a mix of dtypes, that the op refuses
  device_mismatch = 4,   ///< tensors or streams of different devices or contexts in one call
  invalid_overlap = 5,   ///< an output that overlaps itself or overlaps an input partially
  invalid_setting = 6,   ///< an unknown CLUTCH_* name or a bad value of a known one
  no_platform = 7,       ///< no OpenCL driver is installed
  no_device = 8,         ///< a selector or the visible list leaves no device
  not_supported = 9,     ///< the device or this version cannot do it; the message names the trait
  out_of_memory = 10,    ///< memory is short after caches were freed; the message says wanted and had
  build_failure = 11,    ///< a program did not compile; the message has log, defines and path:line
  opencl = 12,           ///< another OpenCL call failed; cl_name() says with what
  stream_failed = 13,    ///< work on a stream failed; sticks until Stream::reset()
  device_lost = 14,      ///< the device is gone; sticks until Stream::reset()
  strict = 15,           ///< CLUTCH_STRICT forbids the fall-back that the call would take
  io = 16,               ///< a file could not be read or written
  capturing = 17,        ///< the call is illegal while its stream is capturing
  internal = 18,         ///< a defect of this library
  not_converged = 19,    ///< an iteration ended at its limit, or its input was not finite
  timed_out = 20,        ///< other ranks did not come to a call, or did not go on, within its time-out
  peer_failed = 21,      ///< another rank, or the group that it is in, has failed
  mismatch = 22,         ///< ranks made different calls, or the same with different arguments
};

/// Returns the enumerator's name, "invalid_shape" for ErrorCode::invalid_shape.
CLUTCH_API std::string_view name(ErrorCode code) noexcept;

/// The one exception type of the library: what() reads "op: message".
/// Names: op() is the public function that was called, as it is written behind `clutch::`: "addcdiv", "nn::softmax",
///   "linalg::matmul_out", "Tensor::reshape", "Graph::replay"; of a constructor its class, "Stream"; of steps the
///   optimizer's class, "optim::AdamW::step"; of an operator of traced values its sign, "operator<<". Graph nodes carry
///   the same names.
/// Inner calls: functions that a public function calls never stand in its place: a sum that finds no memory is "sum".
/// Other names: an Encoder's and a kernel's errors have the names that their callers gave them; a sticky stream_failed
///   has that of the call whose work failed first.
class CLUTCH_API Error : public std::runtime_error {
 public:
  /// While a public function runs, its name stands in the place of `op`.
  Error(ErrorCode code, std::string_view op, std::string_view message, std::int32_t cl_code = 0);
  ~Error() override;

  ErrorCode code() const noexcept { return code_; }
  /// The public function that refused or failed.
  const std::string& op() const noexcept { return op_; }
  const std::string& message() const noexcept { return message_; }
  /// The OpenCL status behind the error; 0 when none is.
  std::int32_t cl_code() const noexcept { return cl_code_; }
  /// OpenCL's name of cl_code(), "CL_OUT_OF_RESOURCES"; empty when there is none.
  std::string_view cl_name() const noexcept;

 private:
  ErrorCode code_;
  std::int32_t cl_code_;
  std::string op_;
  std::string message_;
};

}}  // namespace clutch::v0
