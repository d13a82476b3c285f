// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/graph.hpp>

#include "graph/memory_plan.hpp"
#include "program/program.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/storage.hpp"

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Memory that nodes use as a unit: a storage of the caller's, or one made in the capture.
struct GraphBuffer {
  enum class Kind : std::uint8_t { external, temporary, result, constant };
  Kind kind = Kind::external;
  std::uint64_t bytes = 0;
  int first = -1, last = -1;         ///< nodes
  bool written = false;              ///< by one of the nodes
  std::shared_ptr<Storage> storage;  ///< of all but temporaries
  Placement place;                   ///< of temporaries
};
std::string_view name(GraphBuffer::Kind kind) noexcept;

/// A tensor as an argument of a node.
struct GraphUse {
  int buffer = -1;
  std::uint64_t byte_offset = 0;  ///< of element 0 in the buffer
  std::uint64_t bytes = 0;        ///< from element 0 to the end of the last element that the strides reach
  Argument::Kind access = Argument::Kind::input;
  DType dtype = DType::f32;
  Dims sizes, strides;
};

/// Tensors of a node that its kernel reads through a TensorTable. Their addresses become known when the graph is instantiated, and may change.
struct GraphTable : LaunchTable {
  int use = -1;  ///< index of the use that is the table itself
  std::vector<std::uint64_t> words;
  bool stale = false;  ///< words differ from those on the device
};

struct Meaning;

/// A recorded call. Its kernel object is its own, so no other code sets the arguments.
struct GraphWork {
  GraphNodeKind kind = GraphNodeKind::kernel;
  const char* op = "";  ///< lives as long as the process, as an Encoder's
  Interned plan;
  Cost cost;
  std::uint64_t stream = 0;
  Kernel* kernel = nullptr;
  ClKernel object;
  Geometry geometry;
  std::vector<GraphUse> uses;
  std::vector<Address> base;  ///< addresses of the uses, set by the capture, update() or rebind()
  std::vector<Address> set;   ///< addresses for the present replay, which are the arguments of `object`
  std::vector<BoundArgument> bound;
  GraphTable table;
  std::vector<unsigned char> bytes;
  /// What the last use's memory holds, which is the node's own; null if it has none.
  std::shared_ptr<const std::vector<unsigned char>> contents;
  bool has_contents = false;  ///< the device has them
  std::uint8_t pattern = 0;   ///< of a fill
  HostTask task;
  OpaqueTask opaque;
  bool knows_memory = false;  ///< of an opaque task: HostWork::knows_memory
  std::vector<int> after;
  std::shared_ptr<const std::vector<GraphLabel>> labels;
  std::shared_ptr<const Meaning> meaning;  ///< what the launch computes; null if the op does not say
  bool updated = false;                    ///< by GraphState::update()
  bool temporary_replaced = false;         ///< by GraphState::update(), which gave the node another tensor in the place of a temporary

  /// The same call without addresses and kernel object.
  GraphWork copy() const;
  /// Whether a use is its table, or what the table says is there: words and contents that are addresses of this program alone.
  bool holds_table(int use) const { return table.first_base >= 0 && (use == table.use || (contents && use + 1 == static_cast<int>(uses.size()))); }
};

/// Sets the node's arguments on a kernel object. Returns the bytes of local memory among the arguments.
/// Errors: invalid_argument for an argument that does not fit its parameter.
std::uint64_t set_arguments(const GraphWork& node, cl_kernel kernel);

/// A finished capture: nodes, memory and the backend that replays them.
class GraphState {
 public:
  GraphState(Runtime& runtime, std::string backend_name, std::unique_ptr<GraphImpl> backend)
      : runtime_(runtime), backend_name_(std::move(backend_name)), backend_(std::move(backend)) {}
  ~GraphState();
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  /// Unique in the process, from 1.
  std::uint32_t id() const noexcept { return id_; }

  std::vector<GraphWork> nodes;
  std::vector<GraphBuffer> buffers;
  std::shared_ptr<GraphArena> arena;
  std::vector<NamedTensor> named;  ///< of a loaded graph
  std::vector<double> measured;    ///< microseconds of each node, by measure(); empty: not measured
  /// Events that a replay on another stream than `origin` must follow: the last replay; before the first replay, uploads of constants.
  std::vector<ClEvent> pending;
  std::uint64_t origin = 0;  ///< id of the stream of the last replay; before the first replay, of the captured stream

  /// Completes a graph that has its nodes and buffers: finds dependencies, places temporaries, informs the backend.
  /// Errors: out_of_memory.
  void finish(const std::shared_ptr<StreamImpl>& stream);
  /// Binds temporaries and prepares the backend. Errors: not_supported if the backend refuses the graph.
  void instantiate();
  void replay(std::span<const Rebinding> rebindings, const Stream& stream) { replay(rebindings, stream, "Graph::replay", nullptr); }
  /// Gives the nodes memory where the backend replays others in their place.
  void place_nodes();
  /// Replays node by node and returns the median time of each, in microseconds. Errors: Graph::measure()'s.
  std::vector<double> measure(int replays, const Stream& stream);
  void update(int node, std::span<const Argument> arguments);
  void rebind(std::span<const Rebinding> rebindings);
  /// Enqueues nodes on the stream's queue; the stream takes their events.
  void enqueue(std::span<const GraphWork> work, const std::shared_ptr<StreamImpl>& stream) const;
  /// A new kernel object with all of the node's arguments, for command buffers.
  ClKernel make_kernel(const GraphWork& node) const;

  // For a backend whose own program is a graph of this kind.
  /// Takes the memory of `from`, the graph that the nodes come from: all buffers but temporaries, which get places for these nodes. Uses of buffer -1 get
  /// memory of their own.
  void take_memory(const GraphState& from);
  /// Changes the address of a use; end_moves() makes the changes.
  void move_use(int node, int use, const Address& to) { moving_.push_back({node, use, to}); }
  void end_moves();
  /// Sets a node's values, as bytes of its arguments.
  void set_values(GraphWork& node, const std::vector<unsigned char>& bytes);
  void replay_by_backend(const Stream& stream);

  /// The nodes that a node follows because of data and events, and not because their temporaries have one place.
  const std::vector<int>& dependencies(int node) const {
    return unplaced_after_.empty() ? nodes[static_cast<std::size_t>(node)].after : unplaced_after_[static_cast<std::size_t>(node)];
  }
  /// True if rebind() or update() replaced a captured tensor.
  bool has_rebound() const noexcept { return !put_in_.empty(); }
  bool instantiated() const noexcept { return instantiated_; }
  /// The backend, or one that it chooses from, that replays a program of its own, whose temporaries have places of their own; null if there is none.
  class FusedBackend* fused_backend() const noexcept;
  const GraphImpl& backend() const noexcept { return *backend_; }
  const std::string& backend_name() const noexcept { return backend_name_; }
  std::uint64_t replays() const noexcept { return replays_; }

 private:
  /// A use and its new address.
  struct Move {
    int node, use;
    Address to;
  };
  /// Errors: invalid_argument for an undefined tensor; device_mismatch; invalid_dtype.
  void check_replacement(const Tensor& given, DType recorded, std::string_view op) const;
  /// One replay; with `times`, node by node, and what each took is put there.
  void replay(std::span<const Rebinding> rebindings, const Stream& stream, const char* call, std::vector<double>* times);
  std::vector<Move> moves_of(std::span<const Rebinding> rebindings, std::string_view op);
  void find_lifetimes();
  std::shared_ptr<StreamImpl> home() const;
  void bind_nodes();
  void place_temporaries(const std::shared_ptr<StreamImpl>& stream);
  /// Errors: invalid_overlap if a node writes one of two tensors whose overlap differs from that in the capture.
  void check_overlaps(std::span<const Move> moves, std::string_view op) const;
  void apply(std::span<const Move> moves);
  /// Computes words and bases of a node's table from the present addresses. Errors: not_supported if the tensors lie in too many buffers.
  void resolve_table(GraphWork& node) const;
  void upload_tables(StreamImpl& stream);
  /// Orders the stream's next commands after all events in `pending`, if the stream is not `origin`.
  void follow(StreamImpl& stream);
  void replayed_on(StreamImpl& stream);
  void note_uses(const std::shared_ptr<StreamImpl>& stream);

  /// Gives the profiler the labels of the nodes, once in each profile.
  void note_labels() const;

  Runtime& runtime_;
  const std::uint32_t id_ = next_id();
  static std::uint32_t next_id() noexcept;
  std::string backend_name_;
  std::unique_ptr<GraphImpl> backend_;
  bool instantiated_ = false;
  bool placed_ = false;                           ///< temporaries have places
  std::weak_ptr<StreamImpl> home_;                ///< whose pool they come from
  std::vector<Move> moving_;                      ///< of move_use()
  std::vector<std::vector<int>> unplaced_after_;  ///< by node, of a graph that a backend fuses
  std::uint64_t replays_ = 0;
  std::vector<std::vector<std::pair<int, int>>> uses_;  ///< (node, use) by buffer
  std::unordered_map<const Storage*, int> buffer_of_;
  std::vector<std::shared_ptr<Storage>> put_in_;  ///< storages of rebind() and update()
  std::vector<std::pair<int, int>> moved_;        ///< (node, use) that the last replay alone rebound
  Clock seen_;                                    ///< clock of the last replay's stream, for the race checker
  /// Commands of a replay. The memory is kept, because large allocations between those of a driver slow both down.
  mutable std::vector<StreamImpl::Submitted> commands_;
};

/// Names of a node's arguments: given by the op, else by kind and order. One for each entry of `bound` (empty for a tensor's offset), or for each use if the
/// node is not a kernel.
std::vector<std::string> argument_names(const GraphWork& node);

/// Makes a backend by name. Errors: invalid_argument, which lists the names.
std::unique_ptr<GraphImpl> make_backend(std::string_view name, bool relaxed_rounding = false);
bool is_own_backend(std::string_view name) noexcept;

}}}  // namespace clutch::v0::detail
