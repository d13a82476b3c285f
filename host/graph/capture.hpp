// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/event.hpp>
#include <clutch/graph.hpp>

#include "graph/labels.hpp"
#include "graph/state.hpp"
#include "runtime/recorder.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// A storage with the memory of another one, which a capture tells from that.
std::shared_ptr<Storage> stand_in_for(const std::shared_ptr<Storage>& storage);

/// A capture that is underway.
class Capture final : public Recording {
 public:
  Capture(Runtime& runtime, std::shared_ptr<StreamImpl> origin, const CaptureOptions& options, bool dry);
  ~Capture() override;

  Runtime& runtime() const noexcept override { return runtime_; }
  const std::shared_ptr<GraphArena>& arena() const noexcept { return arena_; }

  /// begin() makes the stream record into this capture; detach() makes all streams of the capture stop recording.
  void begin();
  void detach() noexcept;

  void operand(const StreamRef& stream, Launch& launch, const Tensor& tensor, Argument::Kind access, const char* name) override;
  void table(const StreamRef& stream, Launch& launch, TableState& table, std::span<const Tensor* const> tensors) override;
  void kernel(const StreamRef& stream, Launch& launch) override;
  void copy(const StreamRef& stream, const char* op, const Tensor& destination, const Tensor& source) override;
  void fill(const StreamRef& stream, const char* op, const Tensor& tensor, std::uint8_t pattern) override;
  void upload(const StreamRef& stream, const char* op, const Tensor& destination, std::shared_ptr<std::uint8_t[]> data) override;
  void host(const StreamRef& stream, const HostWork& work) override;
  int allocate(Storage* storage, std::uint64_t bytes) override;
  void released(int buffer) noexcept override;
  RecordMark mark(StreamImpl& stream) override;
  void wait(const StreamRef& stream, const RecordMark& mark) override;
  void follow(const Event& made) override;
  bool asks_for_meaning() const noexcept override { return fuses_; }
  /// Launches are to say what they compute.
  void set_fuses(bool fuses) noexcept { fuses_ = fuses; }
  bool illegal(std::string_view call, std::string_view why) override;
  std::string forbids(Beside what) const override;

  const std::vector<CaptureProblem>& problems() const noexcept { return problems_; }

  /// Names of the forked streams that were not joined; empty if none.
  std::string unjoined() const;
  int recorded() const;
  /// Hands over the nodes recorded so far. Their buffers are those of the capture.
  std::vector<GraphWork> take();
  /// Storages made in the capture that exist, in the order in which they were made.
  std::vector<std::shared_ptr<Storage>> living() const;
  /// Puts the memory of a tensor from before the capture, all of its extent, in the place of `made`, a storage of the capture. False, and nothing changes,
  /// unless each call that uses the tensor's memory comes before the first one that uses `made`.
  bool reuse(const Storage& made, const Tensor& tensor);
  /// Releases everything that was recorded.
  void drop() noexcept;
  /// Moves the captured nodes into `state` and gives addresses to memory. Errors: as Graph::capture_end().
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
    Storage* made = nullptr;  ///< Storage whose memory was made in the capture; null once the Storage is destroyed
    bool in_capture = false;
    std::shared_ptr<std::uint8_t[]> data;  ///< contents of a constant
  };
  void check_valid(const char* op) const;
  Lane& lane_of(StreamImpl& stream, const char* op);
  GraphUse use_of(const Tensor& tensor, Argument::Kind access, const char* op);
  void add(StreamImpl& stream, GraphWork work);
  void record(StreamImpl& stream, GraphWork work, std::span<const Operand> operands);
  void add_table(GraphWork& work, LaunchTable table);
  void place_constants();
  void place_memory(GraphState& state);

  Runtime& runtime_;
  std::shared_ptr<StreamImpl> origin_;
  CaptureOptions options_;
  bool dry_;
  bool fuses_ = false;
  std::thread::id thread_;
  std::shared_ptr<ThreadLabels> labels_ = thread_labels();  ///< of the thread that began it, which others without any take
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

}}}  // namespace clutch::v0::detail
