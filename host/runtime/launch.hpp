// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include <cstdint>
#include <vector>

namespace clutch::inline v0::detail {

/// A tensor that a command uses.
struct Operand {
  Tensor tensor;
  Argument::Kind access;
};

/// An argument of a kernel by position: a tensor takes two.
struct BoundArgument {
  enum class Kind : std::uint8_t { memory, offset, bytes, local };
  Kind kind = Kind::bytes;
  std::uint16_t size = 0;
  std::uint16_t at = 0;     ///< of bytes: where they begin in Launch::bytes
  int use = -1;             ///< of memory and offset: the operand
  std::uint32_t local = 0;  ///< of local memory: its bytes
  const char* type = "";    ///< OpenCL C name of a number's type, empty for structs
  const char* name = "";    ///< what the op calls it; empty: named by kind and order
};

/// Operands that a kernel reaches by a TensorTable.
struct LaunchTable {
  int first_base = -1;       ///< first of TensorTable::kBases arguments of memory, behind which the table stands; -1: no table
  std::vector<int> entries;  ///< operands; -1: none
};

/// Everything that one launch of a kernel needs, as a value.
struct Launch {
  const char* op = "";  ///< lives as long as the process, as that of an Encoder
  KernelHandle kernel;  ///< with the text of its plan
  Geometry geometry;
  std::vector<Operand> operands;
  std::vector<BoundArgument> arguments;
  LaunchTable table;
  std::vector<unsigned char> bytes;  ///< of arguments
};

}  // namespace clutch::inline v0::detail
