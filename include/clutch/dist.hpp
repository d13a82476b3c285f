// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks that work together: groups, and collectives over tensors of any OpenCL device. The library clutch_dist, a
// component of the package of its own; it uses MPI, which the library clutch does not.
//
//   auto world = clutch::dist::open();          // mpirun -np 2 program
//   world.all_reduce_(gradient);                // in the order of the current stream; the host does not wait
//
// Order of sums: a balanced tree over the ranks, lower ranks on the left, whatever the algorithm: all ranks get the
// same bits, and the same ones from each algorithm and each transport.
#include <clutch/event.hpp>
#include <clutch/expr.hpp>
#include <clutch/ops/optim.hpp>
#include <clutch/tensor.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#if defined(__GNUC__)
#define CLUTCH_DIST_API __attribute__((visibility("default")))
#else
#define CLUTCH_DIST_API
#endif

namespace clutch { inline namespace v0 { namespace dist {

namespace detail {
class GroupImpl;
class SymmetricImpl;
struct CallState;
struct HookState;
struct ShardedAdamWState;
struct GroupCalls;
struct BatchState;
}  // namespace detail

/// The reduction of the ranks' elements. avg divides the sum by the number of ranks, integers towards 0; premul_sum
/// multiplies each element by ReduceOptions::factor before.
enum class ReduceOp : std::uint8_t { sum, avg, prod, min, max, band, bor, bxor, premul_sum };

/// Returns the enumerator's name: "premul_sum".
CLUTCH_DIST_API std::string_view name(ReduceOp op) noexcept;

enum class Order : std::uint8_t {
  canonical,  ///< bits depend neither on rank nor on algorithm nor on transport
  any,        ///< allows the ring, whose sums begin at another rank for each block: all ranks still get the same bits
};

/// How a collective goes about it. One that does not do the collective, or not for so many ranks, is an Error.
enum class Algorithm : std::uint8_t {
  automatic,  ///< by bytes and ranks
  one_shot,   ///< all_reduce, reduce: each rank sends all to all
  direct,     ///< each rank reduces a block of all ranks and sends it to all: the least traffic in few rounds
  tree,       ///< all_reduce, reduce, broadcast
  halving,    ///< all_reduce of a power of two of ranks
  ring,       ///< all_reduce with Order::any
  /// each rank lays its numbers, 64 KiB at a time, into memory that the ranks of a host share, and reads those of all;
  /// copies of more bytes it reads out of the others' own memory, where the system allows it. Not where ranks have
  /// different numbers of rows
  board,
  /// kernels that work on the memory of all ranks at once: of tensors in Symmetric memory
  kernel,
};

using Timeout = std::chrono::milliseconds;

/// A call that ranks make together. A cheap value: copies share the call. An empty Work is done.
class CLUTCH_DIST_API Work {
 public:
  enum class Status : std::uint8_t {
    waiting,    ///< for the stream's work before it
    running,    ///< with the other ranks
    done,       ///< its results are there
    timed_out,  ///< a rank did not come, or did not go on, within the time-out
    failed,     ///< for another reason
  };

  Work() = default;
  /// Never waits. A recorded call has that of its last replay.
  Status status() const noexcept;
  /// Makes the stream (empty: the current one of the call's device) wait for the results; the host does not. Calls that
  /// are not asynchronous need none of it on their own stream.
  void wait(const Stream& stream = {}) const;
  /// Waits on the host, at most for so long; 0: for the call's own time-out.
  /// Errors: timed_out, peer_failed, mismatch or what else the call failed with, naming group, call and rank.
  void synchronize(Timeout timeout = {}) const;
  /// The number of the call in its group, the same on all ranks; of sends and receives that of the two ranks.
  std::uint64_t sequence() const noexcept;
  /// The rank from which a receive of kAnyRank got its message. Errors: invalid_argument before it is done.
  int source() const;
  /// Milliseconds with the other ranks, by the host's clock. Errors: invalid_argument before it is done.
  double milliseconds() const;
  /// Calls the function once with the final status, at once if there is one. It runs on the progress thread: it must
  /// neither throw nor wait for a Work.
  void on_done(std::function<void(Status)> function) const;

  explicit Work(std::shared_ptr<detail::CallState> state) noexcept : state_(std::move(state)) {}

 private:
  friend struct detail::CallState;
  std::shared_ptr<detail::CallState> state_;
};

/// A place in a program's text: what errors and records say of a call.
struct SourceLine {
  const char* file = "";
  unsigned line = 0;
  const char* function = "";
  /// The place that the call itself stands at.
  static constexpr SourceLine here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE(),
                                   const char* function = __builtin_FUNCTION()) noexcept {
    return {file, line, function};
  }
};

struct CallOptions {
  Stream stream = {};    ///< in whose order the call is; empty: the current one of the tensors' device
  bool async = false;    ///< the stream goes on meanwhile; Work::wait() joins them again
  Timeout timeout = {};  ///< 0: the group's
  Algorithm algorithm = Algorithm::automatic;
  SourceLine where = SourceLine::here();
};

/// A function of one traced value, such as [](const Expr& x) { return x * x; }.
using ElementFunction = std::function<Expr(const Expr&)>;

struct ReduceOptions {
  ReduceOp op = ReduceOp::sum;
  double factor = 1;  ///< of premul_sum
  Order order = Order::canonical;
  /// Applied to each rank's elements before the reduction, and to the result behind it, with the bits of map(): each
  /// gives numbers of the tensors' dtype. All ranks must have the same functions, but for captured tensors.
  /// Launches: those of Symmetric memory's kernel alone, unless a function has a captured tensor, position or random
  ///   number.
  /// Errors: invalid_dtype for dtypes that map() does not take. A call that fails leaves the output undefined where
  ///   there is map_after.
  ElementFunction map_before = {}, map_after = {};
  Stream stream = {};  ///< as CallOptions, this one and those below
  bool async = false;
  Timeout timeout = {};
  Algorithm algorithm = Algorithm::automatic;
  SourceLine where = SourceLine::here();
};

struct OpenOptions {
  /// A caller's `MPI_Comm*`, whose ranks the group has: it is duplicated, and MPI_Init_thread with MPI_THREAD_MULTIPLE
  /// and MPI_Finalize stay the caller's business. Null: MPI_COMM_WORLD of a program that mpirun started, which open()
  /// initializes where nobody has; one rank alone without mpirun.
  void* communicator = nullptr;
  Timeout timeout = std::chrono::minutes(10);  ///< of calls that state none
  std::string name = "world";
  int flight_records = 2000;  ///< of the flight recorder, which all groups made of this one share; 0: none
  /// The recorder's file, to whose name the rank is added: it outlives the process, however that ends. Empty: memory of
  /// the process alone.
  std::filesystem::path flight_file = {};
  /// The program is to go on without ranks that are killed (Group::reconfigure()), which needs `mpirun
  /// --enable-recovery`.
  bool reconfigurable = false;
  /// As if each rank had a host of its own: nothing but messages, and no memory that ranks share. The same on all
  /// ranks.
  bool apart = false;
};

inline constexpr int kAnyRank = -1;

/// A call, as hooks are told of it. Views hold until the hook returns.
struct CallInfo {
  std::string_view kind;       ///< "all_reduce", "send", "Symmetric": as errors name it
  std::uint64_t sequence = 0;  ///< Work::sequence(); of receives known to on_done() alone
  std::string_view group;      ///< its name
  DType dtype = DType::u8;
  std::uint64_t elements = 0;                  ///< of the larger one of input and output; 0 where ranks may differ
  int root = -1;                               ///< -1: the call has none
  int peer = kAnyRank;                         ///< of sends and receives
  ReduceOp op = ReduceOp::sum;                 ///< of reductions
  Algorithm algorithm = Algorithm::automatic;  ///< that does it; automatic: there is no choice
  SourceLine where;
};

/// Keeps a function among those that a group calls, until it ends. Moves.
/// End: waits where another thread runs the function, which is not called any more then. The function may end its own
///   Hook, on the thread that runs it.
class CLUTCH_DIST_API Hook {
 public:
  Hook() = default;
  ~Hook();
  Hook(Hook&& other) noexcept = default;
  Hook& operator=(Hook&& other) noexcept;
  /// As the destructor. The second call does nothing.
  void remove() noexcept;

  explicit Hook(std::shared_ptr<detail::HookState> state) noexcept : state_(std::move(state)) {}

 private:
  std::shared_ptr<detail::HookState> state_;
};

/// Formats of dumps of the flight recorder, for clutch-flight and PyTorch's analyzer (docs/flight.md).
enum class FlightFormat : std::uint8_t { torch_pickle, json };

/// Ranks, of which this process is one. A cheap value: copies share the group.
/// Calls: every rank makes the same calls in the same order. A rank that makes another call, or the same with another
///   dtype, size, root or reduction, makes the call an Error (mismatch) on every rank, before any number has moved; the
///   group may be used further. Two groups do not wait for each other.
/// Tensors: of any device and any strides, on each rank. Those that are not contiguous are copied once. Outputs may be
///   the inputs, or, of all_gather and reduce_scatter, the rank's own block of one may be the other; else an overlap is
///   an Error.
/// Dtypes: copies take all but packed ones of an odd count. Reductions: all floating dtypes, f16, bf16 and f8 computed
///   in f32 and rounded once; complex ones but for min and max; integers, which wrap, but for premul_sum; bool, of
///   which sum and max are "or", prod and min "and", but for avg and premul_sum. band, bor, bxor take integers and
///   bool. A NaN wins in min and max.
/// Stream: calls are in the order of a stream, and the host waits for nothing. Captures record calls, and each replay
///   makes them again.
/// Errors: invalid_argument for an empty group, a rank without meaning, an algorithm that does not do it, a failed
/// group;
///   invalid_shape; invalid_dtype; device_mismatch; invalid_overlap. A later failure fails the stream (stream_failed),
///   and Work::synchronize() says why.
/// Threads: calls of one group must be made in the same order on all ranks, so by one thread at a time.
class CLUTCH_DIST_API Group {
 public:
  Group() = default;
  bool empty() const noexcept { return impl_ == nullptr; }
  /// Errors: invalid_argument for an empty Group (so for all below).
  int rank() const;
  int size() const;
  /// The ranks' numbers in the group of open().
  std::span<const int> global_ranks() const;
  const std::string& name() const;

  /// The ranks that give the same color, ordered by key and rank. Collective; waits. A negative color: an empty Group.
  Group split(int color, int key = 0, const std::string& name = {}, const CallOptions& options = {}) const;
  /// A group of these ranks of this one, in this order, of which this process is one. Collective among them; waits.
  /// Errors: invalid_argument for a rank that is twice there or not below size(), or without this one.
  Group subgroup(std::span<const int> ranks, const std::string& name = {}) const;

  /// Every rank gets the reduction of all.
  Work all_reduce_(const Tensor& self, const ReduceOptions& options = {}) const;
  Work all_reduce_out(const Tensor& out, const Tensor& in, const ReduceOptions& options = {}) const;
  /// The root gets it. `out` is the root's; others give an undefined one.
  Work reduce_(const Tensor& self, int root, const ReduceOptions& options = {}) const;
  Work reduce_out(const Tensor& out, const Tensor& in, int root, const ReduceOptions& options = {}) const;
  /// Rank r gets block r of the reduction. Shapes: `in` has size() times as many elements as `out`.
  Work reduce_scatter_out(const Tensor& out, const Tensor& in, const ReduceOptions& options = {}) const;
  /// Every rank gets the tensors of all, one behind the other. Shapes: `out` has size() times as many elements as `in`.
  Work all_gather_out(const Tensor& out, const Tensor& in, const CallOptions& options = {}) const;
  /// The root gets them. `out` is the root's; others give an undefined one.
  Work gather_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options = {}) const;
  /// Rank r gets block r of the root's `in`; others give an undefined one.
  Work scatter_out(const Tensor& out, const Tensor& in, int root, const CallOptions& options = {}) const;
  /// Every rank gets what the root has.
  Work broadcast_(const Tensor& self, int root, const CallOptions& options = {}) const;
  /// Block b of rank a's `in` becomes block a of rank b's `out`.
  Work all_to_all_out(const Tensor& out, const Tensor& in, const CallOptions& options = {}) const;

  /// The same of lists of tensors of one dtype, in one message: they are copied to the message by one launch, and from
  /// it by another. Shapes: each out fits its input as above.
  /// Errors: invalid_argument for an empty list, or lists of two lengths; invalid_dtype and device_mismatch where
  ///   tensors differ.
  Work all_reduce_coalesced_(std::span<const Tensor> tensors, const ReduceOptions& options = {}) const;
  Work reduce_scatter_coalesced_out(std::span<const Tensor> outs, std::span<const Tensor> ins,
                                    const ReduceOptions& options = {}) const;
  Work all_gather_coalesced_out(std::span<const Tensor> outs, std::span<const Tensor> ins,
                                const CallOptions& options = {}) const;

  /// The same where ranks have different numbers of rows (entries of dimension 0): rows[r] are rank r's, the same list
  /// on all ranks. Errors: invalid_shape where tensors have other rows.
  Work reduce_scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows,
                            const ReduceOptions& options = {}) const;
  Work all_gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows,
                        const CallOptions& options = {}) const;
  Work gather_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root,
                    const CallOptions& options = {}) const;
  Work scatter_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> rows, int root,
                     const CallOptions& options = {}) const;
  /// out_rows[r] rows come from rank r, in_rows[r] go there. Errors: mismatch on every rank where two ranks differ.
  Work all_to_all_v_out(const Tensor& out, const Tensor& in, std::span<const std::int64_t> out_rows,
                        std::span<const std::int64_t> in_rows, const CallOptions& options = {}) const;

  /// A message of one rank to another: sends and receives of two ranks with one tag match in the order of the calls.
  /// Errors: mismatch on both where dtype or elements differ; invalid_argument for a tag outside 0 to kMaxTag.
  Work send(const Tensor& in, int to, int tag = 0, const CallOptions& options = {}) const;
  /// `from` may be kAnyRank.
  Work recv(const Tensor& out, int from, int tag = 0, const CallOptions& options = {}) const;
  static constexpr int kMaxTag = (1 << 20) - 1;

  /// Ends when all ranks have come to it, in the stream's order.
  Work barrier(const CallOptions& options = {}) const;

  /// Time-out of later calls that state none.
  void set_timeout(Timeout timeout) const;

  // Functions that are called for what this rank does in this group, not in groups made of it. None may wait for a
  // Work or throw (what it throws is lost), and one is called by one thread at a time. Without any a call costs two
  // relaxed loads more. Errors: invalid_argument for an empty function.
  /// When a call gets its number: by the thread that makes it, in the order of the calls, and once more at each replay.
  [[nodiscard]] Hook on_call(std::function<void(const CallInfo&)> function) const;
  /// When a call has ended, before its Work says so: by the progress thread, or, of calls of few bytes, by the one that
  /// makes it.
  [[nodiscard]] Hook on_done(std::function<void(const CallInfo&, Work::Status)> function) const;
  /// Once, when failed() becomes true, by the thread that finds it out: the progress thread, or the caller of abort();
  /// at once where the group has failed.
  [[nodiscard]] Hook on_abort(std::function<void()> function) const;

  /// Fails all calls under way and all later ones of this rank; the other ranks run into their time-outs.
  void abort(const std::string& why) const;
  /// Writes what the flight recorder has of this rank's last calls to a file of that name with the rank behind it.
  /// Errors: not_supported without a recorder; io.
  void dump_flight(const std::filesystem::path& prefix, FlightFormat format = FlightFormat::torch_pickle) const;
  /// True after a call timed out or lost a rank, or after abort(): all calls are Errors.
  bool failed() const;
  /// Ranks whose process has ended, and those that kept a call waiting past its time-out, as this rank has seen it.
  std::vector<int> lost() const;
  /// A group of ranks of this one that go on without the others, in this order, whether this group has failed or not.
  /// It has ways and memory of its own, which nothing that the others still send or store reaches. Collective among
  /// them; waits. `epoch`: the same number on all, another one for each try. Errors: as subgroup(); timed_out, after
  /// this group's time-out, naming the ranks that did not come.
  Group reconfigure(std::span<const int> survivors, std::uint64_t epoch) const;
  /// The same of all ranks that come: they agree by messages on whom they go on without. A rank of a process that has
  /// ended is known at once; for one that only does not come all others wait for this group's time-out.
  /// Errors: timed_out where no more ranks come than do not, ended ones not counted: who goes on must be told then, as
  ///   each half might; peer_failed on a rank that the others have given up.
  Group reconfigure(std::uint64_t epoch) const;

  explicit Group(std::shared_ptr<detail::GroupImpl> impl) noexcept : impl_(std::move(impl)) {}
  const std::shared_ptr<detail::GroupImpl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<detail::GroupImpl> impl_;
};

/// Calls that begin together: those that this thread makes of the group while a Batch of it lives.
/// Example: Batch batch(group); group.send(mine, next); group.recv(theirs, before); batch.end();
/// Order: the calls begin with end(), behind the stream's work before, and each goes on by itself, so that sends and
///   receives wait for none of the others, in whatever order they are made. Until then nothing may wait for their
///   Works.
/// Errors: invalid_argument for a second Batch of a group before the first has ended, and for a call that names another
///   stream than the Batch's.
class CLUTCH_DIST_API Batch {
 public:
  /// `options`: the stream, which goes on when all calls are done unless they are asynchronous.
  /// Errors: invalid_argument for an empty group or an algorithm, which the calls choose.
  explicit Batch(const Group& group, const CallOptions& options = {});
  /// As end(), but for errors.
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// Returns a call that is done when all are, or failed with the first error in the order of the calls; without calls
  /// an empty Work.
  /// Errors: invalid_argument the second time.
  Work end();

 private:
  std::unique_ptr<detail::BatchState> state_;
};

/// Memory of which each rank of a group has a part, in a segment that the ranks of a host share: any op and any kernel
/// works on the parts of other ranks as it does on its own. A cheap value: copies share the memory.
/// Collectives: all_reduce_, reduce_scatter_out, all_gather_out, all_to_all_out and broadcast_ of tensors in it take
///   Algorithm::kernel where they are large enough, as long as a Symmetric of the memory lives: one launch on each rank
///   reads from all ranks, or writes to all, and nothing is sent. Bits are those of other algorithms. Views must begin
///   at the same element on all ranks.
/// Order: work on a peer's part is in the order of this rank's stream alone. Group::barrier(), or a signal, tells the
///   other ranks that it is done, and that it may begin.
/// Memory: counts nowhere in the pool's statistics; it lives as long as a tensor of it, on this rank and on others.
class CLUTCH_DIST_API Symmetric {
 public:
  /// How this rank reaches another one's part.
  enum class Tier : std::uint8_t {
    direct,  ///< its kernels read and write the memory itself
    remote,  ///< by collectives and messages: on another host, or of a device that computes in a memory of its own
  };

  Symmetric() = default;
  /// Collective; waits. Each tier is tried: a kernel writes, and a kernel of the other rank reads, both ways.
  /// Shapes: the same on all ranks. The elements are undefined.
  /// Errors: mismatch on every rank where sizes or dtypes differ; out_of_memory; invalid_argument for an empty group or
  ///   less than one channel.
  Symmetric(const Dims& sizes, const Group& group, const TensorOptions& options = {}, int channels = 64);

  bool empty() const noexcept { return impl_ == nullptr; }
  /// Errors: invalid_argument if it is empty (so for all below).
  const Group& group() const;
  /// This rank's part.
  Tensor local() const;
  Tier tier(int rank) const;
  bool all_direct() const;
  /// A rank's part, which any op takes; of this rank local(). Errors: not_supported where tier(rank) is remote.
  Tensor peer(int rank) const;

  /// Adds to a counter that this rank has at another one, one for each channel, in the stream's order: what the stream
  /// wrote to that rank before is there when the counter is. Errors: not_supported where tier(to) is remote.
  void signal(int to, int channel = 0, std::uint32_t add = 1, const Stream& stream = {}) const;
  /// Makes the stream wait until the counter that another rank has here is at least so large. The host does not wait.
  Work wait_signal(int from, int channel, std::uint32_t at_least, const CallOptions& options = {}) const;

  /// Copies a tensor to the elements from number `offset` on of another rank's part, in row-major order, and then, with
  /// a channel of 0 or more, adds 1 to that counter as signal() does. The other rank calls nothing.
  /// Work: done when the stream has done it; empty in a capture.
  /// Dtypes: the memory's.
  /// Errors: invalid_shape past the end of the part; invalid_dtype; device_mismatch; invalid_argument for a rank or
  ///   channel that is not there; not_supported where tier(to) is remote.
  Work put(const Tensor& in, int to, std::int64_t offset = 0, int channel = -1, const CallOptions& options = {}) const;
  /// Copies such elements of another rank's part to a tensor. As put().
  Work get(const Tensor& out, int from, std::int64_t offset = 0, const CallOptions& options = {}) const;

  const std::shared_ptr<detail::SymmetricImpl>& impl() const noexcept { return impl_; }

 private:
  std::shared_ptr<detail::SymmetricImpl> impl_;
};

/// AdamW over ranks that have the same parameters and each its own gradients (ZeRO's stages 1 and 2): a step averages
/// the gradients, updates the parameters and hands them to all ranks. Each rank keeps the moments of its share alone.
/// Launches: one on each rank where all ranks reach each other's memory and there are at most 9 of them: it reads its
///   share of all gradients, and stores the updated share of the parameters to all ranks. Else reduce_scatter, update
///   and all_gather by messages, with the same bits.
/// Shapes: parameters and gradients are f32 of the same sizes on all ranks, contiguous: all parameters of a model are
///   views of the one memory, its gradients of the other.
/// Accuracy: the bits of all_reduce_ with ReduceOp::avg and optim::AdamW with Numerics::source on each rank.
/// Errors: invalid_dtype unless f32; invalid_shape; invalid_argument for options out of PyTorch's ranges; not_supported
///   for amsgrad, maximize, a Precision other than the default one and Numerics::source, and a stream that is captured.
/// Threads: one at a time.
class CLUTCH_DIST_API ShardedAdamW {
 public:
  ShardedAdamW(const Symmetric& params, const Symmetric& grads, const optim::AdamWOptions& options = {});
  ~ShardedAdamW();
  ShardedAdamW(ShardedAdamW&&) noexcept;
  ShardedAdamW& operator=(ShardedAdamW&&) noexcept;

  /// Collective. `grad_factor`: f32 of one element by which averaged gradients are multiplied, such as a clipping's;
  /// undefined: 1. It must be the same on all ranks.
  /// Errors: mismatch on every rank where ranks are at different steps or learning rates; parameters and moments are
  ///   then as they were.
  Work step(const Tensor& grad_factor = {}, const CallOptions& options = {});
  /// Collective. The norm of the ranks' averaged gradients, and the factor that would clip them, for step().
  /// Order: sums of 1024 elements, then of those, each as reduce()'s. So neither bits of the norm nor what a step makes
  ///   of its factor depend on the number of ranks, where those of the averages do not.
  /// Accuracy: that of reduce()'s sums.
  /// Traffic: the ranks' gradients once more, each rank a share, and a number for 1024 elements.
  /// Memory: averages of this rank's share, kept from the first call on.
  /// Errors: invalid_argument for a max_norm that is negative or NaN, and an asynchronous call.
  optim::GradNorm grad_norm(double max_norm, const optim::ClipOptions& options = {}, const CallOptions& call = {});
  double lr() const;
  void set_lr(double lr);
  std::int64_t steps() const;
  /// Moments of this rank's share, a tensor of one dimension; the first element is number share_begin().
  Tensor exp_avg() const;
  Tensor exp_avg_sq() const;
  std::int64_t share_begin() const;

 private:
  std::unique_ptr<detail::ShardedAdamWState> state_;
};

/// The ranks that mpirun started, or those of a communicator. Collective; waits, and connects all ranks.
/// Lost ranks: a rank of this host whose process ends is an Error (peer_failed) of all calls that wait for others,
///   within milliseconds; one of another host, or that hangs, after the time-out. Then MPI is not finalized at the end.
/// Errors: not_supported where MPI was initialized without MPI_THREAD_MULTIPLE, or where mpirun ends all ranks with one
///   and OpenOptions::reconfigurable asks for more; timed_out.
CLUTCH_DIST_API Group open(const OpenOptions& options = {});

/// Ranks that are threads of this process, each with the group of its own: tests and debuggers need no mpirun. Results
/// are those of as many processes, bit for bit. Errors: invalid_argument for less than one rank.
CLUTCH_DIST_API std::vector<Group> open_threads(int ranks, const OpenOptions& options = {});

}}}  // namespace clutch::v0::dist
