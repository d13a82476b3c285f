// SPDX-License-Identifier: Apache-2.0
#pragma once
// What random programs are made of: their ops, and the bodies of their lambdas.
#include "support/random_program.hpp"

#include <functional>
#include <optional>
#include <set>

namespace clutch::testing {

/// What the body of a lambda is given.
struct BodyArguments {
  std::vector<Expr> x;
  std::vector<double> p;    ///< values of params
  std::vector<Captured> c;  ///< tensors that it reads at computed places
  Generator generator;
};
/// A function that "map" has by name, always of the same dtypes, so that few kernels are built.
struct ProgramBody {
  const char* name;
  std::vector<DType> inputs;
  int params;
  std::vector<std::pair<DType, int>> captured;  ///< dtype and rank
  bool draws;
  std::function<std::vector<Expr>(const BodyArguments&)> outputs;
};
const std::vector<ProgramBody>& all_program_bodies();
/// Errors: std::invalid_argument for an unknown name.
const ProgramBody& program_body(std::string_view name);

/// A call with the tensors of its numbers, for the function that runs it.
class GivenCall {
 public:
  GivenCall(const ProgramCall& call, const ProgramRun& run);
  const Tensor& operator[](std::size_t i) const;
  std::span<const Tensor> tensors(std::size_t from = 0) const { return std::span(tensors_).subspan(std::min(from, tensors_.size())); }
  bool has(const char* key) const { return call_.values.count(key) > 0; }
  /// Values by name. Errors: std::invalid_argument if there is none and no default, or one of another kind.
  const std::string& text(const char* key) const;
  double number(const char* key) const;
  std::int64_t whole(const char* key, std::optional<std::int64_t> otherwise = {}) const;
  Dims dims(const char* key) const;
  std::vector<double> numbers(const char* key) const;
  DType dtype(const char* key) const { return dtype_from_name(text(key)); }
  /// A number that is whole if its text has neither a point nor an exponent.
  Scalar scalar(const char* key) const;
  /// The generator of the value "generator".
  const Generator& generator() const;
  const Device& device() const { return run_.device(); }

 private:
  const ProgramCall& call_;
  const ProgramRun& run_;
  std::vector<Tensor> tensors_;
};

/// Draws the arguments of a call.
class CallDraw {
 public:
  CallDraw(model::Random& random, const ProgramOptions& options, ProgramRun& run, Program& program, int& next);
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_.next() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list.at(below(list.size()));
  }
  bool wide() const { return options_.wide; }
  const ProgramBody& body() { return *pick(bodies_); }
  /// One of some names of a list (by day of its first ones) that the programs of the block have in common.
  std::string function(std::vector<std::string> names, std::size_t by_day);

  /// A tensor for which `fits` holds; -1 without one. Later ones are likelier.
  int find(const std::function<bool(const Tensor&)>& fits);
  /// One of a dtype (of a floating one if none is asked for); new where there is none, and now and then anyway.
  int of(DType dtype);
  int floating() { return of(dtype()); }
  /// One that broadcasts to these sizes, or has exactly them.
  int partner(const Dims& sizes, DType dtype);
  int exactly(const Dims& sizes, DType dtype);
  /// Whole numbers of a shape, to index a dimension of that size.
  int indices(const Dims& sizes, std::int64_t below);
  /// A dtype of pointwise calls: by day f32.
  DType dtype();
  Dims sizes(int least_rank = 0, int most_rank = 3);
  std::int64_t size();
  /// A dimension of the tensor, from the end or the begin, as a value "dim"; false for rank 0.
  bool dim(ProgramCall& call, const Tensor& t, const char* key = "dim");
  std::string scalar(bool whole);
  std::string generator() { return std::to_string(below(ProgramRun::kGenerators)); }
  const Tensor& operator[](int number) const { return run_.tensor(number); }

 private:
  friend Program make_program(std::uint64_t seed, const ProgramOptions& options, ProgramRun& run);
  int input(const Dims& sizes, DType dtype, std::int64_t below = 0);
  model::Random& random_;
  const ProgramOptions& options_;
  ProgramRun& run_;
  Program& program_;
  int& next_;
  std::vector<std::int64_t> sizes_;  ///< of the program: few, so that shapes meet
  // Programs whose seeds are neighbours have some bodies, ops and dtypes in common, so that few kernels are built for many programs.
  static constexpr std::uint64_t kBlock = 64, kWideBlock = 1024;
  std::vector<const ProgramBody*> bodies_;
  std::set<std::string> ops_;
  std::vector<DType> dtypes_;
  std::uint64_t block_;
};

/// An op of programs. To add one, add a row; functions that it takes are told by a name, as those of "map" are.
struct ProgramOp {
  enum class Does : std::uint8_t {
    makes,   ///< reads its tensors and makes others
    writes,  ///< writes the first `written` of its tensors, or as many as its value "outs" says if that is 0
    views,   ///< makes views, touches no memory
    none,    ///< neither
  };
  std::string name;
  int weight;  ///< how often it is drawn; 0: never by itself
  bool usual;  ///< all programs may have it, not some alone
  Does does;
  int written;
  std::function<bool(CallDraw&, ProgramCall&)> draw;  ///< false if nothing fits
  std::function<std::vector<Tensor>(const GivenCall&)> run;
};
const std::vector<ProgramOp>& all_program_ops();
/// Errors: std::invalid_argument for an unknown name.
const ProgramOp& program_op(std::string_view name);

std::string dims_text(const Dims& dims);

}  // namespace clutch::testing
