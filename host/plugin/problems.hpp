// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/error.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A tensor that an implementation writes: its elements, and whether they have gaps between them.
struct PluginOutput {
  DType dtype;
  Dims sizes;
  bool gaps = false;
};

/// A call of an op, which a plugin's implementation and the library's own compute.
struct PluginProblem {
  std::string name;
  std::vector<Tensor> inputs;
  std::vector<PluginOutput> outputs;
  /// By an implementation's name; empty: the library's own.
  std::function<void(std::span<const Tensor> out, const std::string& implementation, const Stream& stream)> run;
  bool any_nan = false;  ///< the op does not say which NaN
  /// Of ops whose implementations may round differently: computes the outputs in the widest type, which those of the implementation are compared with.
  std::function<void(std::span<const Tensor> out, const Stream& stream)> exact = {};
  DType widest = DType::f64;
  struct Bound {
    double absolute = 0, relative = 0;
  };
  std::vector<Bound> bounds = {};  ///< of each output
  /// Of ops whose results are not unique: what is wrong with the outputs, in place of a comparison.
  std::function<std::string(std::span<const Tensor> out, const Stream& stream)> judge = {};
};

/// The rounding of a store in a dtype, of results that are compared with those in the widest one.
PluginProblem::Bound store_bound(DType dtype);

/// Problems on random numbers that differ in each process. The numbers are made on the host, so that a problem that is refused builds no program.
class PluginProblems {
 public:
  explicit PluginProblems(const Stream& stream);

  const Stream& stream() const { return stream_; }
  /// Numbers of a normal distribution; of integers and bool whole ones, many of them several times, every fourth one of the whole range.
  Tensor random(DType dtype, const Dims& sizes);
  /// Zeros and infinities of both signs, the largest numbers and, where the device has them, subnormal ones.
  Tensor special(DType dtype, std::int64_t n);
  Tensor from_values(DType dtype, std::span<const double> values);
  /// Each dtype for which call(an empty tensor of it) does not end in invalid_dtype: those that the op takes, by its own checks.
  template <class Call>
  std::vector<DType> dtypes(const Call& call) const {
    std::vector<DType> result;
    for (int i = 0; i < kDTypeCount; ++i)
      if (const auto dtype = static_cast<DType>(i); is_taken([&] { call(none(dtype)); })) result.push_back(dtype);
    return result;
  }
  /// A tensor without elements.
  Tensor none(DType dtype, const Dims& sizes = {0}) const { return empty(sizes, {.dtype = dtype, .device = stream_.device()}, stream_); }
  /// False if the call ends in invalid_dtype.
  template <class Call>
  static bool is_taken(const Call& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::invalid_dtype) throw;
      return false;
    }
  }
  void add(PluginProblem one) { list.push_back(std::move(one)); }
  std::vector<PluginProblem> list;

 private:
  Stream stream_;
  std::mt19937_64 random_;
};

/// Adds the problems of an op: of all dtypes and options that it takes. None for an op that plugins may not implement.
void add_problems(PluginProblems& problems, std::string_view op);
/// Whether an op's calls have a traced function, each of which is proved by problems of its own.
bool has_functions(std::string_view op);
/// Adds those of a call of such an op, whose out form's C++ arguments are given by their addresses.
void add_problems_of_call(PluginProblems& problems, std::string_view op, std::span<const void* const> arguments);

}}}  // namespace clutch::v0::detail
