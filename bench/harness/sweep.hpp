// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "harness/bench.hpp"
#include "harness/shapes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace clutch::bench {

/// What a shape takes, about: memory of operands here and with peers, and operations of a call.
struct Load {
  double bytes = 0, operations = 0;
};

/// An op that random shapes are drawn for.
struct SweptOp {
  std::string name;
  std::vector<Parameter> parameters;
  std::function<Load(const RandomShape&)> load;
  std::function<Work(const Device&, const RandomShape&)> prepare;
  std::function<std::string(const RandomShape&)> refuses = {};  ///< what the shape must be; empty if it is
};
using SweptOps = std::vector<SweptOp>;

/// Every op with random shapes.
void register_swept(SweptOps& ops);

struct SweepOptions {
  std::string filter;               ///< shapes whose text it finds
  std::vector<std::string> shapes;  ///< these instead of random ones
  int count = 0;                    ///< random shapes of each op
  std::uint64_t seed = 1;
  double seconds = 0.3;  ///< for each peer of a shape; a call takes at most a tenth of it, about
  double mebibytes = 512;
  int pairs = 0;
  std::string json, compare, git_hash;
  bool list = false;
};

/// Checks and times shapes on the devices and prints each op's ratios to its fastest peers. Returns the exit status: 1 if a shape failed, or is slower than in
/// the file of `compare`. Errors: invalid_argument for shapes, and for filters that find none; io.
int run_sweep(const SweepOptions& options, const std::vector<Device>& devices);

}  // namespace clutch::bench
