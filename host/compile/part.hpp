// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/compile.hpp>

#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Bytes that one argument, or several that overlap, take in a storage.
struct Region {
  int first = -1;                    ///< number of the tensor that begins where the region begins
  int tensors = 0;                   ///< in the region
  std::uint64_t begin = 0, end = 0;  ///< bytes from the begin of the cl_mem
};

/// Tensors of a call's arguments, and how they share memory.
struct Arguments {
  explicit Arguments(std::span<const Tensor> all);
  /// Bytes from the begin of the cl_mem to element 0.
  std::uint64_t address(int tensor) const;
  /// A tensor of bytes that has all elements of the region.
  Tensor region_bytes(int region) const;

  std::span<const Tensor> tensors;
  std::vector<Region> regions;
  std::vector<int> region_of;  ///< by tensor; -1: undefined or without elements
  std::string refusal;         ///< why regions do not tell how they overlap
};

/// Where a tensor of a recording lies at a replay.
struct Origin {
  enum class Kind : std::uint8_t { none, argument, made, kept };
  Kind kind = Kind::none;
  int index = -1;          ///< of the argument, or in Part::made
  std::int64_t shift = 0;  ///< bytes from the argument's element 0, or from the begin of what is made
  Dims sizes, strides;
  DType dtype = DType::f32;
  Tensor kept;
};

/// Memory of results, made at each call.
struct Made {
  std::uint64_t bytes = 0;
  Tensor captured;      ///< all bytes of the captured memory
  bool bound = false;   ///< the graph writes the new memory in the place of the captured one
  bool copied = false;  ///< the captured memory is copied to the new one behind the replay
};

/// Bytes of a tensor that a function refers to and that is no argument.
struct Outside {
  cl_mem mem = nullptr;
  std::uint64_t begin = 0, end = 0;
  bool written = false;
};

/// What a function enqueues from its begin, or from a host read, to the next host read or its end.
struct Part {
  explicit Part(Graph recorded) : graph(std::move(recorded)) {}
  struct Input {
    int region = -1;
    Tensor captured;  ///< bytes
    bool written = false;
  };
  Graph graph;
  std::uint64_t nodes = 0;
  std::vector<Input> inputs;
  std::vector<Outside> outside;
  // A part that ends with a host read:
  bool reads = false;
  std::string call;                                                ///< "Tensor::item"
  Origin read;                                                     ///< none: the call waits
  std::vector<std::shared_ptr<Storage>> alive;                     ///< memory that the function had then, in the order in which it was made
  std::map<std::string, std::unique_ptr<Part>, std::less<>> next;  ///< by the bytes that were read
  // A part that ends with the function:
  std::vector<Origin> results;
  std::vector<Made> made;
  std::uint64_t donated_bytes = 0;
  std::shared_ptr<const void> rest;
};

/// Replays a part with the call's arguments; `made` is memory for Part::made.
void replay_part(Part& part, const Arguments& arguments, std::span<const std::shared_ptr<Storage>> made, const Stream& stream);
/// Replays the last part. Returns the call's results.
std::vector<Tensor> finish_call(Part& part, const Arguments& arguments, const Stream& stream);
/// The tensor of a call.
Tensor tensor_at(const Origin& origin, const Arguments& arguments, std::span<const std::shared_ptr<Storage>> made);
/// Makes the call that a part ends with. Returns what was read.
std::string read_of(const Part& part, const Arguments& arguments, const Stream& stream);
/// Orders `later` behind the work on `first` so far. Does nothing where `first` has failed.
void order_behind(const Stream& later, const Stream& first);
/// Number of the argument's region that shares memory with one of `outside`, where one of both is written; -1: none.
int conflict(const Arguments& arguments, std::span<const Outside> outside, const std::vector<bool>& written);

}}}  // namespace clutch::v0::detail
