// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/graph.hpp>

#include "graph/state.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace clutch::inline v0::detail {

/// What an Encoder binds before dispatch(), kept beside the bytes when its stream captures.
struct GraphDraft {
  struct Operand {
    Tensor tensor;
    Argument::Kind access;
  };
  std::shared_ptr<Capture> capture;
  std::vector<Operand> operands;
  std::vector<GraphBound> bound;
  GraphTable table;
};

/// What an event of a capturing stream marks: how far it and those that it waited for had come.
struct CaptureMark {
  std::weak_ptr<Capture> capture;
  int last = -1;                      ///< node
  std::map<std::uint64_t, int> seen;  ///< per stream the number of its nodes before here
};

/// A capture that is underway. Streams that record hold it; all functions may be called from any thread.
class Capture : public std::enable_shared_from_this<Capture> {
 public:
  Capture(Runtime& runtime, std::shared_ptr<StreamImpl> origin, const CaptureOptions& options, bool dry);
  ~Capture();

  Runtime& runtime() const noexcept { return runtime_; }
  CaptureMode mode() const noexcept { return options_.mode; }
  std::thread::id thread() const noexcept { return thread_; }
  const std::shared_ptr<GraphArena>& arena() const noexcept { return arena_; }

  /// Takes over the stream, or lets all streams go.
  void begin();
  void detach() noexcept;

  // Recording. Errors: capturing once the capture is invalid or over; those of OpenCL for arguments that do not fit.
  void record_kernel(StreamImpl& stream, const char* op, const KernelHandle& handle, const Geometry& geometry, GraphDraft& draft,
                     std::span<const unsigned char> bytes);
  void record_copy(StreamImpl& stream, const char* op, const Tensor& destination, const Tensor& source);
  void record_fill(StreamImpl& stream, const char* op, const Tensor& tensor, std::uint8_t pattern);
  void record_upload(StreamImpl& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data);
  void record_host(StreamImpl& stream, const char* op, GraphWork work, std::span<const Tensor> inputs, std::span<const Tensor> outputs);

  /// Memory without an address yet, for a Storage that is being made; returns its buffer.
  int add_memory(Storage* storage, std::uint64_t bytes);
  void memory_released(int buffer) noexcept;

  CaptureMark mark(StreamImpl& stream);
  /// Orders what the stream records from now on behind the mark; a stream that does not capture joins.
  void wait(const std::shared_ptr<StreamImpl>& stream, const CaptureMark& mark);

  /// Orders all replays behind work outside of the capture, of which the caller knows nothing: what the library keeps and other streams made.
  void follow(const Event& made);

  /// A call that cannot be in a capture: throws and invalidates, or, in a dry run, notes it and returns true.
  bool illegal(std::string_view call, std::string_view why);
  const std::vector<CaptureProblem>& problems() const noexcept { return problems_; }

  /// Names the forked streams that were not joined; empty if none.
  std::string unjoined() const;
  int recorded() const;
  /// Lets go of everything recorded.
  void drop() noexcept;
  /// The captured nodes and memory with addresses. Errors: as Graph::capture_end().
  void finish(GraphState& state);

 private:
  struct Lane {
    std::shared_ptr<StreamImpl> stream;
    int last = -1;
    std::map<std::uint64_t, int> seen;
    std::vector<int> waits;
  };
  struct Memory {
    GraphBuffer buffer;
    Storage* made = nullptr;  ///< of memory made in the capture while its Storage lives
    bool in_capture = false;
    std::shared_ptr<std::uint8_t[]> data;  ///< of a constant
  };
  void check_valid(const char* op) const;
  Lane& lane_of(StreamImpl& stream, const char* op);
  GraphUse use_of(const Tensor& tensor, Argument::Kind access, const char* op);
  void add(StreamImpl& stream, GraphWork work);
  void record(StreamImpl& stream, GraphWork work, std::span<const GraphDraft::Operand> operands);
  void add_table(GraphWork& work, GraphTable table);
  void place_constants();
  void place_memory(GraphState& state);

  Runtime& runtime_;
  std::shared_ptr<StreamImpl> origin_;
  CaptureOptions options_;
  bool dry_;
  std::thread::id thread_;
  std::shared_ptr<GraphArena> arena_;
  mutable std::mutex mutex_;
  bool over_ = false;
  std::optional<Error> invalid_;
  std::vector<CaptureProblem> problems_;
  std::vector<Lane> lanes_;
  std::vector<GraphWork> nodes_;
  std::vector<Memory> memory_;
  std::vector<Event> followed_;
  std::map<const Storage*, int> externals_;
};

/// True, after a dry run has noted it, if the call is to do nothing. Errors: capturing if the stream is capturing.
bool illegal_on(StreamImpl& stream, std::string_view call);
/// The same for calls on anything else that wait, query or get memory from the driver, by the modes of the captures underway.
bool illegal_beside(std::string_view call);
/// The same for allocations of the capturing thread on a stream that does not capture.
void check_allocation_beside(std::string_view op);

/// Runs what the stream is given next behind the event; in a capture, all replays of the graph. Never waits.
void run_behind(const Stream& stream, const Event& made);

/// What the library itself must do at once and wait for, whoever captures meanwhile: self-tests, the default generator.
class CaptureExempt {
 public:
  CaptureExempt() noexcept;
  ~CaptureExempt();
  CaptureExempt(const CaptureExempt&) = delete;
  CaptureExempt& operator=(const CaptureExempt&) = delete;
};

}  // namespace clutch::inline v0::detail
