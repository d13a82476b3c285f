// SPDX-License-Identifier: Apache-2.0
// Programs: OpenCL C made a shared library by the machine's C++ compiler.
#pragma once
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace clutch_threads {

/// What a compiled kernel tells of itself: cl_kernel of opencl_c.hpp.
struct KernelFacts {
  struct Parameter {
    int kind;
    std::size_t bytes;
  };
  const char* name;
  void (*run)(void* const* arguments);
  const Parameter* parameters;
  std::size_t parameters_count;
  std::size_t required_items[3];
  int has_barriers;
};
/// What a compiled kernel asks: cl_item of opencl_c.hpp.
struct Item {
  std::size_t groups[3], items[3], offset[3];
  std::size_t group[3], item[3];
  unsigned dimensions;
  void (*barrier)();
};

/// A program that does not compile, or no compiler: what() is the log.
struct BuildError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Bytes that are no program of this compiler and machine.
struct NotAProgram : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Program {
 public:
  /// Errors: BuildError.
  static std::unique_ptr<Program> build(std::string_view text, std::string_view options);
  /// Errors: NotAProgram.
  static std::unique_ptr<Program> load(std::string_view binary);

  /// Null if the program has no kernel of that name.
  const KernelFacts* kernel(const std::string& name) const;
  /// Sets the item that the program's functions are asked about on this thread.
  void set_item(const Item* item) const noexcept { set_item_(item); }
  const std::string& binary() const noexcept { return binary_; }

 private:
  explicit Program(std::string binary);
  std::string binary_;
  void* library_ = nullptr;  ///< stays loaded: a thread may still have its local memory
  void (*set_item_)(const Item*) = nullptr;
};

/// The compiler: of THREADS_PLUGIN_CXX, or the first of c++, g++ and clang++ that PATH has. Empty without one.
const std::string& compiler();

}  // namespace clutch_threads
