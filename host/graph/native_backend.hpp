// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/command_buffer.hpp"
#include "graph/state.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Replays by cl_khr_command_buffer. Each recorded kernel is an object of its own whose arguments no other code changes, and all is validated before, so that
/// drivers that read arguments at replay, or crash instead of returning an error, work as well. Nodes are recorded in parts of bounded length, because drivers
/// keep arrays of nodes on the stack and replay long ones slowly. Host tasks and opaque nodes run between parts.
class NativeBackend : public GraphImpl {
 public:
  NativeBackend() = default;
  ~NativeBackend() override = default;
  std::string refuses(const GraphProgram& program) const override;
  void instantiate(const GraphProgram& program) override;
  void changed(const GraphProgram& program, std::span<const int> nodes) override;
  void replay(const GraphProgram& program, const Stream& stream) override;
  void reset() override;
  std::string debug() const override;
  std::pair<std::uint64_t, std::uint64_t> native() const override;

  /// What a command buffer's queues must have in common.
  struct QueueKind {
    cl_command_queue_properties properties = 0;
    cl_device_id device = nullptr;
    friend bool operator==(const QueueKind&, const QueueKind&) = default;
  };

 private:
  /// A command buffer and what it replays. The stream keeps it until its replay is over.
  struct Recorded {
    const CommandBufferApi* api;
    CommandBufferApi::Buffer buffer = nullptr;
    std::vector<ClKernel> kernels;
    std::vector<void*> commands;  ///< by node of the part, if the driver can update commands
    ClEvent last;                 ///< event of the last replay, if the next replay or an update needs it
    explicit Recorded(const CommandBufferApi* of) : api(of) {}
    ~Recorded();
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;
  };
  /// Nodes from `first` to `end` - 1: a command buffer, or one node that runs on the host.
  struct Part {
    int first = 0, end = 0;
    bool on_host = false;
    std::shared_ptr<Recorded> now;
    /// Command buffers by their arguments. One that is updated in place is not among them.
    std::unordered_map<std::string, std::shared_ptr<Recorded>> variants;
  };
  /// Sets part.now to the command buffer for the present arguments, recorded first if there is none.
  void prepare(const GraphState& state, Part& part, cl_command_queue queue) const;
  std::shared_ptr<Recorded> record(const GraphState& state, const Part& part, cl_command_queue queue) const;
  bool update(const GraphState& state, const Part& part, std::span<const int> nodes) const;
  static std::string key_of(const GraphState& state, const Part& part);
  void record_all(const GraphState& state, cl_command_queue queue);

  const CommandBufferApi* api_ = nullptr;
  std::vector<Part> parts_;
  QueueKind kind_;  ///< of the queue that the command buffers were recorded for
  std::uint64_t known_stream_ = 0;
  bool saved_ = false;
  mutable std::uint64_t updated_ = 0;  ///< number of command buffers changed in place
};

}}}  // namespace clutch::v0::detail
