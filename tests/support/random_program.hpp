// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random programs of the library's ops: values that can be printed, parsed again, run eagerly or in a capture, and made smaller.
#include <clutch/clutch.hpp>

#include "support/host_model.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch::testing {

/// One call of a program: "%3 %4 = map %0 %1 body=pair params=0.5,2 @1".
struct ProgramCall {
  std::string op;
  std::vector<int> results;                   ///< numbers of the tensors that it makes
  std::vector<int> tensors;                   ///< and of those that it is given
  std::map<std::string, std::string> values;  ///< all other arguments
  int stream = 0;                             ///< 0, or 1 for the side stream
  friend bool operator==(const ProgramCall&, const ProgramCall&) = default;
};

/// Calls in order. Those of "input" make what exists before the program runs and stand first.
/// Streams: a call that uses what the other stream works on waits for it by an event, so that any calls may be left out.
/// Drops: "drop %3" lets go of a handle; tensors that are never dropped are kept to the end, and compared.
struct Program {
  std::uint64_t seed = 0;  ///< that it was made from; 0: by hand
  std::vector<ProgramCall> calls;
  friend bool operator==(const Program&, const Program&) = default;
};

/// One line a call, after a line with the seed. parse_program() takes the text back, with ';' for the ends of lines, too.
/// Errors of parse_program: std::invalid_argument names the line and what is wrong with it.
std::string program_text(const Program& program);
Program parse_program(std::string_view text);

/// Names of all ops that programs have, of "input" and "drop", too; and of the bodies that "map" has.
std::vector<std::string> program_ops();
std::vector<std::string> program_bodies();
/// Whether an op writes the memory of one of its arguments, and whether it makes a view of one.
bool program_op_writes(std::string_view op);
bool program_op_views(std::string_view op);

/// Everything that a program leaves: whole storages of the tensors that live at its end, and states of its generators.
struct ProgramState {
  struct Memory {
    std::string what;  ///< "%3, a bf16 (2, 3) of strides (3, 1) at byte 8, %5, ..."
    DType dtype;       ///< of all tensors in it; u8 if they have several
    std::vector<std::uint8_t> bytes;
    friend bool operator==(const Memory&, const Memory&) = default;
  };
  std::vector<Memory> memory;  ///< in the order of the first tensor in each
  std::vector<GeneratorState> generators;
  friend bool operator==(const ProgramState&, const ProgramState&) = default;
};
/// What differs first, bit for bit but for signs and payloads of NaNs, which no contract keeps; empty if nothing does.
std::string difference(const ProgramState& got, const ProgramState& want);

/// Runs a program's calls on two streams of a device. What a call makes has the bits of a run before, as its inputs and generators do.
class ProgramRun {
 public:
  static constexpr int kStreams = 2, kGenerators = 2;

  explicit ProgramRun(const Device& device);
  /// Makes the inputs anew, with the program's bytes, and seeds the generators. Forgets what was before.
  void begin(const Program& program);
  /// Runs all calls but the inputs, with the inputs as they are now: a second time goes on from where the first ended. All work is behind stream() then.
  void run(const Program& program);
  /// The parts of run(), for programs that are being made.
  void start();
  void call(const ProgramCall& call);
  void join();
  /// The parts of call(): the library's call, and what it made taken by its numbers.
  /// Errors: clutch::Error of the library; std::invalid_argument for a call that is none of its op.
  std::vector<Tensor> perform(const ProgramCall& call);
  void keep(const ProgramCall& call, const std::vector<Tensor>& made);
  /// Waits, then reads everything.
  ProgramState state() const;

  const Device& device() const noexcept { return device_; }
  const Stream& stream(int i = 0) const { return streams_.at(static_cast<std::size_t>(i)); }
  const Generator& generator(int i) const { return generators_.at(static_cast<std::size_t>(i)); }
  /// Tensors by their numbers, without those that were dropped. Errors: std::invalid_argument for another number.
  const Tensor& tensor(int number) const;
  const std::map<int, Tensor>& tensors() const noexcept { return tensors_; }

 private:
  /// What the streams did to one storage, or to a generator: the number of the last call on each that read or wrote it.
  struct Uses {
    std::array<std::uint64_t, kStreams> read{}, written{};
  };
  void use(const void* memory, bool write, int stream);
  /// Lets the stream wait for all that the other one was given.
  void order(int from, int to);

  Device device_;
  std::array<Stream, kStreams> streams_;
  std::array<Generator, kGenerators> generators_;
  std::map<int, Tensor> inputs_, tensors_;
  std::map<const void*, Uses> uses_;
  std::array<std::uint64_t, kStreams> count_{};                       ///< calls on each stream
  std::array<std::array<std::uint64_t, kStreams>, kStreams> seen_{};  ///< [s][t]: calls of t that s has waited for
  bool forked_ = false;
};

struct ProgramOptions {
  int calls = 20;     ///< besides inputs, drops and views
  bool wide = false;  ///< all dtypes and functions, where by day few kernels are to be built
};

/// A program of random calls, all of which the library takes. Runs them as it makes them, on `run`, to see what they make.
/// Numbers: the same seed and options give the same program on devices that take the same calls.
Program make_program(std::uint64_t seed, const ProgramOptions& options, ProgramRun& run);

}  // namespace clutch::testing
