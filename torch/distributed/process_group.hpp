// SPDX-License-Identifier: Apache-2.0
// The backend `clutch` of torch.distributed: PyTorch's collectives by the groups of clutch::dist.
#pragma once
#include <clutch/dist.hpp>
#include <clutch/event.hpp>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace torch_clutch {

/// Calls of a group that PyTorch waits for as one.
class WorkClutch final : public c10d::Work {
 public:
  struct Call {
    clutch::dist::Work work;
    clutch::Stream stream;  ///< in whose order the results are
    bool is_beside;         ///< it is not the caller's
    clutch::Event done;     ///< behind the results
  };
  /// `blocks`: wait() waits on the host.
  WorkClutch(int rank, c10d::OpType type, std::vector<Call> calls, std::vector<at::Tensor> outputs, bool blocks);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override { return outputs_; }
  /// Makes the current stream wait; the host does not, but for a time-out, a barrier, a receive from any rank, and where TORCH_CLUTCH_BLOCKING_WAIT=1.
  /// Errors: DistBackendError for a call that failed.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void blockCurrentStream() override;
  void abort() override;
  /// Complete at once, as results are in the order of a stream.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  /// Complete when the call is, with c10d::WorkResult.
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  float getDuration() const override;
  uint64_t getSequencenumber() const override;

  const std::vector<Call>& calls() const { return calls_; }

 private:
  clutch::dist::Work::Status status() const;
  /// Waits on the host. Errors: the call's.
  static void finish(const Call& call, std::chrono::milliseconds timeout = kNoTimeout);
  void throw_if_failed() const;

  const std::vector<Call> calls_;
  const std::vector<at::Tensor> outputs_;
  const bool blocks_;
  std::mutex future_mutex_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class ProcessGroupClutch final : public c10d::Backend {
 public:
  struct Options final : c10d::Backend::Options {
    explicit Options(std::chrono::milliseconds timeout) : c10d::Backend::Options("clutch", timeout) {}
  };
  ProcessGroupClutch(clutch::dist::Group group, c10::intrusive_ptr<c10d::Backend::Options> options);

  const std::string getBackendName() const override { return "clutch"; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  c10d::ErrorType getError() override;
  void abort() override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return calls_made_; }
  void enableCollectivesTiming() override {}
  c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                          const c10::intrusive_ptr<c10d::Backend::Options>& options) override;
  void startCoalescing() override;
  c10::intrusive_ptr<c10d::Work> endCoalescing() override;

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(std::vector<at::Tensor>& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors, const c10d::ReduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& output, at::Tensor& input, const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> gather(std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
                                        const c10d::GatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                         const c10d::ScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
                                                const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs,
                                                                 const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
                                               const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> alltoall(std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const c10d::AllToAllOptions& options) override;
  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int to, int tag) override;
  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int from, int tag) override;
  c10::intrusive_ptr<c10d::Work> recvAnysource(std::vector<at::Tensor>& tensors, int tag) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

 private:
  /// What a call is, beside its tensors.
  struct Asked {
    c10d::OpType type;
    const char* name;  ///< as profilers show it
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool async = true;
    bool blocks = false;
  };
  using Calls = std::vector<clutch::dist::Work>;
  /// Runs `make(options)`, which gives the group's calls: on the current stream, or on one of its own that goes on beside it.
  template <class F>
  c10::intrusive_ptr<c10d::Work> run(const Asked& asked, c10::Device device, std::vector<at::Tensor> outputs, F&& make);
  clutch::Stream stream_beside(const clutch::Stream& current);
  c10::intrusive_ptr<c10d::Work> send_to_self(const at::Tensor& tensor, int tag);
  c10::intrusive_ptr<c10d::Work> receive_from_self(const at::Tensor& tensor, int tag);
  void check_root(int64_t root) const;
  void check_list(size_t tensors, const char* what) const;

  const clutch::dist::Group group_;
  const c10::intrusive_ptr<c10d::Backend::Options> options_;
  const bool blocks_;
  std::mutex mutex_;
  std::vector<clutch::Stream> streams_;
  std::atomic<uint64_t> calls_made_{0};
  bool coalesces_ = false;
  std::vector<WorkClutch::Call> coalesced_;
  std::vector<at::Tensor> coalesced_outputs_;
  /// Messages of this rank to itself with one tag, which meet in the order of the calls.
  struct Line {
    struct Sent {
      at::Tensor copy;
      clutch::Event done;
    };
    std::deque<Sent> sent;
    std::deque<at::Tensor> receiving;  ///< of blocks of calls alone
  };
  std::map<int, Line> lines_;
};

}  // namespace torch_clutch
