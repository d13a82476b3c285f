// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/compile_fields.hpp>
#include <clutch/graph.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

/// Host reads in a compiled function: item(), to_host(), synchronize().
enum class GraphBreaks : std::uint8_t {
  forbidden,  ///< Error, which names the call
  allowed,    ///< what was recorded runs, the read has its value, and the recording goes on: see compile()
};

/// Memory of a compiled function's results.
enum class CompiledResults : std::uint8_t {
  fresh,   ///< new tensors at each call
  reused,  ///< the same at each call, which the next call with arguments of the class overwrites
};

/// A dimension whose size varies from call to call.
struct DynamicDim {
  int tensor = 0;  ///< number among the tensors of all arguments, in order
  int dim = 0;     ///< negative: from the end
};

struct CompileOptions {
  std::string name = "compiled";  ///< in reports, logs, profiles and graphs' dumps
  GraphOptions graph = {};
  std::vector<DynamicDim> dynamic = {};
  GraphBreaks graph_breaks = GraphBreaks::forbidden;
  CompiledResults results = CompiledResults::fresh;
  /// Numbers of tensors among those of all arguments whose elements the caller needs no more: results may take their
  /// memory. See compile().
  std::vector<int> donate = {};
  int warm_ups = 0;       ///< first calls of each class that run without capture, for functions that make state then
  int max_classes = 32;   ///< kept; past them the least recently used goes
  int max_sizes = 16;     ///< kept of one class with dynamic dimensions; past them the least recently used goes
  int max_branches = 32;  ///< parts behind host reads that a class keeps; past them it runs without capture
};

/// A condition under which a call may replay a class's graph.
struct CompiledGuard {
  std::string what;   ///< "argument 0: sizes"
  std::string value;  ///< "(2, 3)"
  /// Sizes or strides that dynamic dimensions change: another value is another graph of the same class.
  bool dynamic = false;
};

/// One class of arguments, at the sizes of its dynamic dimensions.
struct CompiledClass {
  std::vector<CompiledGuard> guards;
  std::string why;    ///< why it was made: "first call", or the guards of the nearest class that failed
  std::string eager;  ///< why its calls run without a graph; empty: they replay
  std::uint64_t calls = 0, captures = 0, replays = 0, eager_calls = 0;
  std::uint64_t parts = 0;          ///< graphs: more than one where it reads on the host
  std::uint64_t nodes = 0;          ///< of all parts
  std::uint64_t launches = 0;       ///< of all parts at a replay: a group that the backend fused is one
  std::uint64_t groups = 0;         ///< that the backend fused, of all parts
  std::uint64_t donated_bytes = 0;  ///< of results in the memory of donated arguments, at each call
};

/// Counts of a compiled function's calls, and its classes.
struct CompileReport {
  std::string name;
  std::uint64_t calls = 0;     ///< all of them
  std::uint64_t captures = 0;  ///< graphs that were recorded, one for each part
  std::uint64_t replays = 0;   ///< calls that ran by graphs alone, without the function
  std::uint64_t eager_calls =
      0;  ///< calls that ran the function without capture: CLUTCH_COMPILE=off, warm-ups, refusals
  std::uint64_t inline_calls = 0;  ///< calls within another capture or compiled function, which records them
  std::uint64_t recompiles = 0;    ///< classes after the first, without those that differ in dynamic dimensions alone
  std::uint64_t sizes = 0;         ///< graphs for further sizes of dynamic dimensions
  std::uint64_t evictions = 0;     ///< classes that max_classes or max_sizes removed
  std::uint64_t breaks = 0;        ///< host reads in calls, which ran one part and went on with another
  std::uint64_t failures = 0;      ///< captures that ended in an Error
  std::vector<CompiledClass> classes;     ///< that are kept, the last used first
  std::vector<std::string> reasons = {};  ///< of the last 32 recompiles, new sizes, evictions and refusals
  /// The report as text, a line for each fact.
  CLUTCH_API std::string to_string() const;
};

namespace detail {

class CompiledState;

/// A function with the arguments of one call.
class CLUTCH_API CompiledFunction {
 public:
  virtual ~CompiledFunction();
  /// Calls the function with these tensors in the place of the arguments' own. Returns the tensors of its result;
  /// `rest` gets the result without them.
  virtual std::vector<Tensor> run(std::span<const Tensor> tensors, std::shared_ptr<const void>& rest) = 0;
  virtual CompiledNames names() const = 0;
};

struct CompiledOutcome {
  std::vector<Tensor> tensors;
  std::shared_ptr<const void> rest;
};

CLUTCH_API std::shared_ptr<CompiledState> make_compiled(const CompileOptions& options);
/// False if the caller is to call the function itself.
CLUTCH_API bool call_compiled(CompiledState& state, CompiledFunction& function, const CompiledKey& key,
                              CompiledOutcome& outcome);
CLUTCH_API CompileReport explain_compiled(const CompiledState& state);
CLUTCH_API void reset_compiled(CompiledState& state);

template <class...>
inline constexpr char kCompiledKind = 0;

/// A function of known types with the arguments of one call.
template <class F, class... Args>
class CompiledCall final : public CompiledFunction {
 public:
  template <class T>
  using Copy = typename CompiledCopy<std::decay_t<const T>>::type;
  static_assert(std::is_invocable_v<F&, const Copy<Args>&...>,
                "compile(): the function must take its arguments by value or by const reference");
  using Result = std::decay_t<std::invoke_result_t<F&, const Copy<Args>&...>>;

  CompiledCall(F& f, const Args&... args) : f_(f), args_(args...) {}

  CompiledKey key() const {
    CompiledKey key;
    key.number(reinterpret_cast<std::uintptr_t>(&kCompiledKind<F, std::decay_t<const Args>...>));
    visit(key);
    return key;
  }
  std::vector<Tensor> run(std::span<const Tensor> tensors, std::shared_ptr<const void>& rest) override {
    auto copies = std::apply([](const Args&... args) { return std::tuple<Copy<Args>...>(copy(args)...); }, args_);
    CompiledExchange exchange{.tensors = tensors};
    std::apply([&](auto&... parts) { (walk(exchange, parts), ...); }, copies);
    if constexpr (std::is_void_v<Result>) {
      std::apply(f_, std::as_const(copies));
      return {};
    } else {
      auto made = std::make_shared<Result>(std::apply(f_, std::as_const(copies)));
      CompiledKey of_result;
      walk(of_result, *made);
      CompiledExchange none;
      walk(none, *made);
      rest = std::move(made);
      return std::move(of_result.tensors);
    }
  }
  /// Calls the function with the arguments themselves.
  Result direct() const { return std::apply(f_, args_); }
  CompiledNames names() const override {
    CompiledNames names;
    visit(names);
    return names;
  }

 private:
  template <class T>
  static Copy<T> copy(const T& value) {
    if constexpr (kIsSpan<T>)
      return Copy<T>(value.begin(), value.end());
    else
      return value;
  }
  template <class Visitor>
  void visit(Visitor& visitor) const {
    std::size_t index = 0;
    auto one = [&](const auto& arg) {
      visitor.enter(index++);
      walk(visitor, arg);
      visitor.leave();
    };
    std::apply([&](const auto&... args) { (one(args), ...); }, args_);
  }

  F& f_;
  std::tuple<const Args&...> args_;
};

}  // namespace detail

/// A function that replays what it did with arguments of the same class: see compile(). A cheap value; copies share the
/// function and its graphs.
template <class F>
class Compiled {
 public:
  Compiled(F f, const CompileOptions& options)
      : f_(std::make_shared<F>(std::move(f))), state_(detail::make_compiled(options)) {}

  /// Calls the function, or replays what it did.
  /// Errors: those of compile().
  template <class... Args>
  auto operator()(const Args&... args) const {
    using Call = detail::CompiledCall<F, Args...>;
    using Result = typename Call::Result;
    Call call(*f_, args...);
    detail::CompiledOutcome outcome;
    const bool done = detail::call_compiled(*state_, call, call.key(), outcome);
    if constexpr (std::is_void_v<Result>) {
      if (!done) call.direct();
    } else {
      if (!done) return call.direct();
      Result result = *static_cast<const Result*>(outcome.rest.get());
      detail::CompiledExchange exchange{.tensors = outcome.tensors};
      detail::walk(exchange, result);
      return result;
    }
  }

  /// Classes that were captured, their guards, and why.
  CompileReport explain() const { return detail::explain_compiled(*state_); }
  /// Forgets all graphs, and counts from 0 again. Work that runs is not disturbed.
  void reset() const { detail::reset_compiled(*state_); }

 private:
  std::shared_ptr<F> f_;
  std::shared_ptr<detail::CompiledState> state_;
};

/// Makes a callable of `f`, a function of tensors, that records at the first call with arguments of a class what f
/// enqueues, and replays it at all later ones without running f.
/// Arguments: tensors, numbers, enums, texts, Dims, Device, Generator, and structs (up to 20 fields), std::vector,
///   array, span, optional, pair, tuple, variant and map of those; f takes them by value or const reference. A class
///   with private members has a function compiled_fields(), found by its namespace, which returns std::tie(...) of
///   them.
/// Class: dtypes, ranks, sizes, strides, begin within 16 bytes, which tensors overlap and how, whether they are
/// defined,
///   the values of everything that is not a tensor, device, partition, and the thread's attention::SdpaBackends.
///   Nothing else may choose what f does: it is as it was at the capture.
/// Bits: those of the eager calls, on every backend. Sizes are never padded.
/// Weights: tensors that are arguments may be others at each call, so one layer compiled is all layers of a model.
///   Tensors that f refers to otherwise are read and written where they are, as by a Graph, which keeps their memory;
///   what f assigns to variables outside of it happens at captures alone.
/// Results: tensors of their own at each call (options.results). Those that are arguments, tensors that f refers to, or
///   views of them, are so at each call, and several views of one memory stay that.
///   Numbers in the result are those of the capture.
/// Writes: in the arguments' own memory.
/// Donation: a result takes the memory of a tensor in options.donate whose last reader comes before the result's first
///   writer, if it fits and is contiguous; the donated tensor's elements are undefined after the call.
/// Dynamic dimensions: each size has a graph of its own in a list of max_sizes; the graphs share programs and
///   temporaries' memory. A new size is no recompile in reports. No size uses another's graph, since kernels and launch
///   sizes may depend on it.
/// Host reads: an Error (capturing) that names the call; streams and tensors are as they were before. With
///   graph_breaks allowed the recorded part runs, f gets the real value, and the recording goes on; later calls replay
///   the part, read the value, and replay the part that followed this value before, or else run f anew, of which only
///   what follows the read runs on the device. f must do the same for equal values. Tensor's reads and
///   Stream::synchronize() break so; other calls that wait stay Errors.
/// Random numbers: generators advance at each call.
/// Inside: a call within a capture, or within another compiled function, runs f, which that one records.
/// Stream: the current one of the tensors' device. f runs with a stream of the compiled function's own as the current
///   one, so it must not enqueue on others, unless it forks and joins them by events.
/// Threads: any; calls take turns while they capture and enqueue.
/// Settings: CLUTCH_COMPILE=off runs f at each call; log writes each capture and its reason to the log.
/// Errors: those of f; capturing for calls that cannot be recorded; invalid_argument for options out of range, where f
///   does not do the same for equal values behind a host read, or where it keeps on after its host read has failed;
///   those of Graph::capture_end() and Graph::replay(). After an Error before the first host read nothing has run.
/// Source: torch.compile of PyTorch 2.12, with mode="reduce-overhead".
/// Differences on purpose: f is run, not read, so what it branches on must be in its arguments; no padding, no change
///   of bits.
template <class F>
Compiled<std::decay_t<F>> compile(F&& f, const CompileOptions& options = {}) {
  return Compiled<std::decay_t<F>>(std::forward<F>(f), options);
}

}}  // namespace clutch::v0
