// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "graph/command_buffer.hpp"
#include "graph/state.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Replays by cl_khr_command_buffer. Each recorded kernel is an object of its own that nobody touches afterwards, everything was
/// validated before: drivers that read arguments at replay, or crash on what they should refuse, are served alike. Nodes go into
/// parts of bounded length, since drivers keep arrays of them on the stack and replay long ones slowly; host tasks and opaque
/// nodes stand between parts.
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

 private:
  /// A command buffer with what it replays; kept by the stream until a replay of it is over.
  struct Recorded {
    const CommandBufferApi* api;
    CommandBufferApi::Buffer buffer = nullptr;
    std::vector<ClKernel> kernels;
    std::vector<void*> commands;  ///< by node of the part, where the driver can update them
    ClEvent last;                 ///< of the last replay, where the next one or an update must know
    explicit Recorded(const CommandBufferApi* of) : api(of) {}
    ~Recorded();
    Recorded(const Recorded&) = delete;
    Recorded& operator=(const Recorded&) = delete;
  };
  /// Nodes from `first` up to `end` (not with it): recorded, or one that runs on the host.
  struct Part {
    int first = 0, end = 0;
    bool on_host = false;
    std::shared_ptr<Recorded> now;
    /// By what their arguments were. What is updated in place is in none.
    std::unordered_map<std::string, std::shared_ptr<Recorded>> variants;
  };
  /// The part's command buffer for the present arguments, recorded now if it was not before.
  void prepare(const GraphState& state, Part& part, cl_command_queue queue) const;
  std::shared_ptr<Recorded> record(const GraphState& state, const Part& part, cl_command_queue queue) const;
  bool update(const GraphState& state, const Part& part, std::span<const int> nodes) const;
  static std::string key_of(const GraphState& state, const Part& part);
  void record_all(const GraphState& state, cl_command_queue queue);

  const CommandBufferApi* api_ = nullptr;
  std::vector<Part> parts_;
  cl_command_queue_properties properties_ = 0;  ///< of the queue that they were recorded for
  std::uint64_t known_stream_ = 0;
  bool saved_ = false;
  mutable std::uint64_t updated_ = 0;  ///< command buffers changed in place
};

}}}  // namespace clutch::v0::detail
