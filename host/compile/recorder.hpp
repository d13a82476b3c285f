// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "compile/part.hpp"
#include "runtime/recorder.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Capture;

/// Why a recorded function cannot be replayed: its first part has not run, so that the function can run instead.
struct Refusal {
  std::string why;
};

/// Runs a function with stand-ins for its arguments, and records it in parts. Parts that the caller has replayed are followed: they are recorded and dropped,
/// the memory that is left of them becomes that of the replayed part, and the host reads behind them give the values that the caller has read.
class CompiledRecorder final : public HostReads {
 public:
  struct Setup {
    const CompileOptions& options;
    const Arguments& arguments;
    Stream stream;   ///< on which parts run
    Stream capture;  ///< which the function has as its current one
    PoolId pool;
    const std::vector<Outside>& outside;  ///< of parts that were recorded before
    std::vector<bool> written;            ///< regions that those write
  };
  /// `root` gets the parts, each behind the one that it follows.
  CompiledRecorder(const Setup& setup, std::unique_ptr<Part>& root, std::span<Part* const> replayed, std::span<const std::string> values);
  ~CompiledRecorder() override;

  /// Returns the call's results. Errors: those of compile(). Throws Refusal, too.
  CompiledOutcome run(CompiledFunction& function);
  /// Parts that this run has recorded.
  const std::vector<Part*>& recorded() const noexcept { return recorded_; }
  int breaks() const noexcept { return breaks_; }

  Answer begin(std::string_view call, const Tensor* tensor, void* destination) override;
  void end(const Tensor* tensor, const void* data) override;
  void failed(std::string_view call) noexcept override;

 private:
  void make_stand_ins();
  void begin_part();
  std::shared_ptr<Capture> capture() const;
  Part& part_before() const;
  /// Ends a part that was replayed before.
  void follow_part(std::string_view call);
  /// Ends a new part; without a call it is the last one.
  Part& end_part(std::string_view call, const Tensor* tensor, std::vector<Tensor>* results);
  void note_memory(Part& part);
  void note_kept_memory(Part& part);
  Origin origin_of(const Tensor& tensor, Part& part, bool last);
  int made_of(const std::shared_ptr<Storage>& storage, Part& part);
  void donate(const std::vector<Tensor>& results);
  void let_go() noexcept;
  void check_outside(const Part& part) const;

  const Setup& setup_;
  std::unique_ptr<Part>* slot_;
  std::span<Part* const> replayed_;
  std::span<const std::string> values_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::vector<Tensor> stand_ins_;
  std::optional<Graph> graph_;
  std::size_t followed_ = 0;
  std::vector<Part*> recorded_;
  std::set<const Storage*> own_;                     ///< memory that parts before the present one made
  std::map<const Storage*, int> held_;               ///< number of results in a storage
  std::map<std::shared_ptr<Storage>, int> donated_;  ///< results in the memory of an argument
  std::string failed_;                               ///< call after whose failure nothing more is recorded
  int breaks_ = 0;
  std::uint64_t donated_bytes_ = 0;
};

/// True while this thread runs a function that is being recorded.
bool records_function() noexcept;

}}}  // namespace clutch::v0::detail
