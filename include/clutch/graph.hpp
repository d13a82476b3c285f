// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/allocator.hpp>
#include <clutch/kernel.hpp>
#include <clutch/stream.hpp>
#include <clutch/tensor.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 {

namespace detail {
class GraphHandle;
class GraphState;
}  // namespace detail

/// Which calls are illegal while a stream is capturing.
/// All modes: calls on a capturing stream that need its work to run are illegal: synchronize, query, to_host, item,
///   waiting for its events.
/// Differences: the modes differ in calls on anything else that wait, query or get memory from the driver: synchronize,
///   Stream::query, Event::wait, Event::query, to_host, item, empty_cache, new segments of the allocator, and in the
///   capturing thread every allocation on a stream that does not capture.
enum class CaptureMode : std::uint8_t {
  global,         ///< illegal in every thread
  thread_local_,  ///< illegal in the capturing thread
  relaxed,        ///< legal
};

struct GraphOptions {
  bool keep_graph = false;   ///< capture_end() does not instantiate; instantiate() or the first replay() does
  std::string backend = {};  ///< "auto", "host", "native", "fused" or a registered one; empty: CLUTCH_GRAPH
  /// Leaves values unrounded that nodes of a fused launch pass to one another in f16, bf16 and narrower floating
  /// dtypes, so that results need not have the bits of eager calls. Tensors that a launch stores are rounded as ever.
  /// For the backend "fused" alone.
  bool relaxed_rounding = false;
};

struct CaptureOptions {
  CaptureMode mode = CaptureMode::global;
  /// Pool that the graph's temporaries share with other graphs: pool() of one of them, or new_pool(). {0, 0}: one of
  /// its own. Graphs of one pool overwrite each other's temporaries, so their replays must not overlap in time.
  PoolId pool = {};
};

enum class GraphNodeKind : std::uint8_t { kernel, copy, fill, host_task, opaque };

/// Returns "kernel", "copy", "fill", "host_task" or "opaque".
CLUTCH_API std::string_view name(GraphNodeKind kind) noexcept;

/// One argument of a recorded node, as dumps show it.
struct GraphArgument {
  Argument::Kind kind = Argument::Kind::value;
  std::string name;               ///< the op's name for it, else "input0", "output1", "value2" by kind and order
  DType dtype = DType::f32;       ///< of a tensor
  Dims sizes, strides;            ///< of a tensor
  int buffer = -1;                ///< of a tensor: its memory, an index into GraphReport::buffers
  std::uint64_t byte_offset = 0;  ///< of a tensor's element 0 in its buffer
  std::string value;              ///< of a value, printed by its type, else its bytes in hexadecimal
};

/// A name with key-values that GraphAnnotation put on nodes.
struct GraphLabel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;
};

/// A recorded call, as dumps show it.
struct GraphNode {
  int id = 0;
  GraphNodeKind kind = GraphNodeKind::kernel;
  std::string op;      ///< the public function that recorded it
  std::string kernel;  ///< the entry; empty for other kinds
  std::string plan;    ///< text of the plan that chose the kernel; of host and opaque tasks what their caller gave
  Cost cost;           ///< what its plan states
  std::uint64_t stream = 0;
  Geometry geometry;
  std::vector<GraphArgument> arguments;
  std::vector<int> dependencies;   ///< nodes whose results it reads or overwrites, or that an event puts before it
  std::vector<GraphLabel> labels;  ///< annotations around it, outermost first
  std::string why;                 ///< why the backend put it into a group, or left it alone; empty: it makes no groups
  double measured_us = 0;          ///< device time as Graph::measure() found it last; 0: not measured
};

/// Memory that a graph needs and how it replays.
struct GraphReport {
  struct Buffer {
    /// "external" (a caller's tensor), "temporary", "result" (made in the capture, kept), "constant"
    std::string kind;
    std::uint64_t bytes = 0;
    int first = -1, last = -1;  ///< nodes that use it first and last
    int segment = -1;           ///< of a temporary
    std::uint64_t offset = 0;   ///< of a temporary, in its segment
  };
  std::vector<Buffer> buffers;
  /// Nodes that the backend replays by one launch.
  struct Group {
    std::string form;        ///< what they became: "pointwise" or "rows"
    std::string kernel;      ///< that runs them
    std::vector<int> nodes;  ///< in capture order
  };
  std::vector<Group> groups;
  std::uint64_t temporary_bytes = 0;  ///< of all temporaries together
  std::uint64_t reserved_bytes = 0;   ///< of the segments that hold them: the peak
  std::uint64_t unfused_bytes = 0;    ///< the same if each node were a launch of its own
  std::uint64_t external_bytes = 0, result_bytes = 0, constant_bytes = 0;
  std::string backend;             ///< that replays now
  std::string why;                 ///< and why it was chosen
  std::uint64_t native_nodes = 0;  ///< nodes recorded in command buffers
  std::uint64_t native_parts = 0;  ///< command buffers
  std::uint64_t replays = 0;
};

/// A call that is illegal in a capture, as dry_run() lists them.
struct CaptureProblem {
  std::string call;     ///< "Stream::synchronize"
  std::string message;  ///< why, and what to do instead
  int node = 0;         ///< number of nodes recorded before it
};

/// A tensor that stands for another one: see Graph::rebind.
struct Rebinding {
  Tensor captured;
  Tensor bound;
};

/// A captured tensor by the name that a saved graph has for it.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};
struct GraphSaveOptions {
  bool binaries = false;  ///< the device's binaries besides the sources: the same device and driver build nothing
};

enum class GraphDump : std::uint8_t {
  json,  ///< everything
  dot,   ///< nodes and dependencies for Graphviz
  html,  ///< a page for people, which needs nothing else
};

/// Input of a backend: the nodes of one instantiated graph, with fixed addresses. interop_cl.hpp gives their
/// kernels.
class CLUTCH_API GraphProgram {
 public:
  explicit GraphProgram(const detail::GraphState& state) noexcept : state_(state) {}
  Device device() const;
  int size() const noexcept;
  GraphNodeKind kind(int node) const;
  GraphNode node(int node) const;
  /// Enqueues one node on the stream by the queue.
  void enqueue(int node, const Stream& stream) const;
  const detail::GraphState& state() const noexcept { return state_; }

 private:
  const detail::GraphState& state_;
};

/// Work of a device, captured once and replayed by one call: clutch's ops, callers' own kernels, copies, host tasks.
/// Replays: on every OpenCL device; by the queue ("host": everything was checked, selected and bound when it was
///   captured), by cl_khr_command_buffer ("native"), by fewer launches ("fused") or by a registered backend.
/// Fused: pointwise calls, copies, casts, reductions and functions of rows that read each other's results, or one
///   tensor, become one launch; temporaries that no other call reads are not stored. Each result has the bits of the
///   calls; of a NaN, its being one.
/// Memory: tensors that existed before the capture are read and written where they are; the graph keeps their memory
///   alive. Temporaries share a pool of the graph's own. Addresses are the same at each replay.
/// Random numbers: generators advance at each replay.
/// Threads: capturing from several threads needs CaptureMode::relaxed or streams forked beforehand; other calls on one
///   Graph need the caller's lock.
/// Source: torch.cuda.CUDAGraph and torch.accelerator.Graph (PyTorch 2.12).
/// Differences on purpose: illegal calls are named with the op; nodes can be updated; memory that existed before is
///   retained; a host read never silently waits.
class CLUTCH_API Graph {
 public:
  explicit Graph(const GraphOptions& options = {});
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Records what is enqueued on the stream from now on instead of running it. Streams that wait for an event of the
  /// stream record, too, until they are joined by an event. Never waits.
  /// Errors: capturing if the stream or this graph is capturing already; invalid_argument for an empty Stream, if the
  ///   graph holds a capture (reset() it), if the pool is another device's, or for an unknown backend.
  void capture_begin(const Stream& stream, const CaptureOptions& options = {});
  /// Ends the capture, places temporaries and, without keep_graph, instantiates. When the capture failed the stream
  /// works as before and the graph is as after reset().
  /// Errors: capturing if nothing is being captured, if an illegal call invalidated the capture (it names op and call),
  ///   or for forked streams that were not joined; out_of_memory.
  void capture_end();
  /// Ends a capture and forgets it. Never throws.
  void capture_abandon() noexcept;
  bool is_capturing() const noexcept;

  /// Makes the graph ready to replay: kernels and arguments are bound and checked.
  /// Errors: invalid_argument without a capture.
  void instantiate();
  /// Enqueues the graph's work on the stream (empty: the current one of its device), after its last replay where that
  /// was on another stream: two replays of a graph never overlap. Waits only where the graph has host tasks.
  /// Errors: invalid_argument without a finished capture; capturing inside a capture; device_mismatch; stream_failed.
  void replay(const Stream& stream = {});
  /// The same with other tensors in the place of captured ones, for this replay alone: see rebind(). Nothing is built.
  void replay(std::span<const Rebinding> rebindings, const Stream& stream = {});
  void replay(std::initializer_list<Rebinding> rebindings, const Stream& stream = {}) {
    replay(std::span<const Rebinding>(rebindings.begin(), rebindings.size()), stream);
  }
  /// Frees everything; the graph can capture again. Work that replays waits for nothing: memory returns in stream
  /// order.
  void reset();

  /// The pool of its temporaries, for CaptureOptions::pool. {0, 0} before the first capture.
  PoolId pool() const;

  /// The nodes, in capture order.
  std::vector<GraphNode> nodes() const;
  /// Ids of the nodes of that op or kernel, or with that annotation.
  std::vector<int> find(std::string_view op_kernel_or_label) const;
  GraphReport report() const;
  std::string to_string(GraphDump format = GraphDump::json) const;
  /// Writes nodes, memory plan, backend and why it was chosen. Without a format the ending of the path tells it.
  /// Endings: .json, .html; dot for all others.
  /// Errors: io.
  void debug_dump(std::string_view path) const;
  void debug_dump(std::string_view path, GraphDump format) const;
  /// Runs the graph so many times, node after node by the queue whatever the backend, and returns the median time of
  /// each node in microseconds, which nodes() and dumps show from then on. Waits.
  /// Host tasks: their time is the host's.
  /// Memory and generators: afterwards as after so many replays.
  /// Errors: as replay(); invalid_argument unless `replays` is in [1, 10000]; not_supported without a usable timer.
  std::vector<double> measure(int replays = 10, const Stream& stream = {});

  /// Changes arguments of a recorded node, found by their names. A number takes the recorded type. A tensor must have
  /// the dtype, sizes and strides of the recorded one (the node's kernel was chosen for them) and overlap the node's
  /// other tensors exactly where that one did.
  /// Errors: invalid_argument for an unknown node or name, or a number that does not fit; invalid_shape, invalid_dtype,
  ///   device_mismatch, invalid_overlap. Nothing is changed then.
  void update(int node, std::span<const Argument> arguments);
  void update(int node, std::initializer_list<Argument> arguments) {
    update(node, std::span<const Argument>(arguments.begin(), arguments.size()));
  }
  /// Puts other tensors in the place of captured ones, in all nodes: inputs, outputs, weights. Both must be contiguous,
  /// of one dtype and shape, and what a node uses of the captured tensor's memory must be inside it. Refers to the
  /// tensors that were captured, however often it is called.
  /// Errors: as update(); invalid_argument if no node uses the captured tensor.
  void rebind(std::span<const Rebinding> rebindings);
  void rebind(std::initializer_list<Rebinding> rebindings) {
    rebind(std::span<const Rebinding>(rebindings.begin(), rebindings.size()));
  }

  /// Writes nodes, kernel sources and what the captured memory holds now (all but temporaries) to a safetensors file,
  /// for processes without the code that captured. `tensors` are the captured ones that they find by name: inputs,
  /// outputs, weights. Waits.
  /// Errors: not_supported naming the host tasks and opaque nodes, which cannot be carried; invalid_argument for a
  ///   tensor that no node uses or that is not contiguous, a name twice, or while other tensors are bound in the place
  ///   of captured ones; io.
  void save(const std::string& path, std::span<const NamedTensor> tensors = {},
            const GraphSaveOptions& options = {}) const;
  void save(const std::string& path, std::initializer_list<NamedTensor> tensors,
            const GraphSaveOptions& options = {}) const {
    save(path, std::span<const NamedTensor>(tensors.begin(), tensors.size()), options);
  }
  /// A saved graph on a device (empty: the current one), with memory of its own. Waits. The file carries kernels: load
  /// none whose origin you do not trust.
  /// Errors: io if it cannot be read, is damaged or of another version; not_supported naming what the device lacks
  ///   (rounding that the kernels were chosen for, group size, local memory); build_failure; out_of_memory.
  static Graph load(const std::string& path, const Device& device = {}, const GraphOptions& options = {});
  /// A tensor of a loaded graph: copy inputs into it, read outputs from it, or rebind() it.
  /// Errors: invalid_argument lists the names.
  Tensor tensor(std::string_view name) const;
  std::vector<std::string> tensor_names() const;

  /// The program that a backend would replay, for interop::kernel(). Valid until the graph is reset.
  /// Errors: invalid_argument without a finished capture.
  GraphProgram program() const;

  detail::GraphHandle& handle() const noexcept { return *handle_; }

 private:
  std::unique_ptr<detail::GraphHandle> handle_;
};

/// Captures while it lives: what this thread does on the stream, which is its current one meanwhile. Ends the capture
/// at the end of its scope, and throws what capture_end() throws; leaving the scope by an exception abandons it.
class CLUTCH_API GraphCapture {
 public:
  GraphCapture(Graph& graph, const Stream& stream, const CaptureOptions& options = {});
  ~GraphCapture() noexcept(false);  // NOLINT(bugprone-exception-escape)
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

 private:
  Graph& graph_;
  StreamGuard guard_;
  int exceptions_;
};

/// Runs `f` as a capture that nothing comes of and lists every illegal call in it. Such calls do nothing: host reads
/// give zeros, waits return at once.
CLUTCH_API std::vector<CaptureProblem> dry_run(const std::function<void()>& f, const Stream& stream,
                                               const CaptureOptions& options = {});

/// Names the nodes that this thread records while it lives, with key-values; nests. Kept in dumps and by every backend.
/// Threads: a capture takes the names of the thread that began it for what threads without names record.
class CLUTCH_API GraphAnnotation {
 public:
  explicit GraphAnnotation(std::string_view name,
                           std::initializer_list<std::pair<std::string_view, std::string_view>> values = {});
  ~GraphAnnotation();
  GraphAnnotation(const GraphAnnotation&) = delete;
  GraphAnnotation& operator=(const GraphAnnotation&) = delete;

 private:
  std::shared_ptr<const std::vector<GraphLabel>> outer_;
};

/// A way to replay graphs, one object per captured graph. Implementations outside of the library are registered by name
/// and chosen as the library's own. Calls come in the order begin, end, instantiate, then replay and changed, at last
/// reset; loaded graphs have no begin.
class CLUTCH_API GraphImpl {
 public:
  virtual ~GraphImpl();
  /// A capture begins on the stream.
  virtual void begin(const Stream& stream, CaptureMode mode);
  /// It has ended; the nodes are those of the program, their temporaries have addresses.
  virtual void end(const GraphProgram& program);
  /// The pool for the graph's temporaries, asked before begin() where the caller gives none; {0, 0}: one of the graph's
  /// own.
  virtual PoolId pool() const;
  /// Why the backend refuses the graph; empty if it takes it.
  virtual std::string refuses(const GraphProgram& program) const;
  /// Prepares replays. Errors are the caller's.
  virtual void instantiate(const GraphProgram& program) = 0;
  /// Arguments of these nodes changed. By default everything is prepared anew.
  virtual void changed(const GraphProgram& program, std::span<const int> nodes);
  /// Enqueues the whole graph on the stream.
  virtual void replay(const GraphProgram& program, const Stream& stream) = 0;
  /// Lets go of what instantiate() made.
  virtual void reset() = 0;
  /// Lines for dumps.
  virtual std::string debug() const;
  /// Nodes that replay in command buffers, and how many of those there are.
  virtual std::pair<std::uint64_t, std::uint64_t> native() const;
};

using GraphImplFactory = std::function<std::unique_ptr<GraphImpl>()>;
/// Adds a backend, or replaces the one of that name. Errors: invalid_argument for "auto" and the library's own names.
CLUTCH_API void register_graph_backend(std::string_view name, GraphImplFactory factory);
/// Names of the backends, the library's own first.
CLUTCH_API std::vector<std::string> graph_backends();

struct GraphedCallableOptions {
  int warm_ups = 3;  ///< runs of `f` before it is captured, which build its programs
  GraphOptions graph = {};
  CaptureOptions capture = {};
};

/// A function that replays what it did with its samples: see make_graphed_callable().
class CLUTCH_API GraphedCallable {
 public:
  /// Copies the inputs into the captured ones (those that are them already are not copied), replays, and returns the
  /// captured outputs, which the next call overwrites. Inputs may be captured ones in another order or overlap them:
  /// all count as they are before the call.
  /// Errors: invalid_shape, invalid_dtype if an input is unlike its sample; invalid_overlap where samples share memory
  ///   and inputs do not do so alike.
  const std::vector<Tensor>& operator()(std::span<const Tensor> inputs, const Stream& stream = {});
  const std::vector<Tensor>& operator()(std::initializer_list<Tensor> inputs, const Stream& stream = {}) {
    return (*this)(std::span<const Tensor>(inputs.begin(), inputs.size()), stream);
  }
  Graph& graph() noexcept { return graph_; }
  const std::vector<Tensor>& inputs() const noexcept { return inputs_; }

 private:
  explicit GraphedCallable(const GraphOptions& options) : graph_(options) {}
  friend CLUTCH_API GraphedCallable
  make_graphed_callable(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                        std::span<const Tensor> samples, const GraphedCallableOptions& options);
  Graph graph_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<std::pair<std::size_t, std::size_t>> shared_;  // samples that share memory
};

/// Captures f(samples) on a stream of its own after warm-ups. The samples are the captured inputs. Waits for the
/// warm-ups.
/// Errors: those of f and of Graph::capture_end().
/// Source: torch.cuda.make_graphed_callables.
CLUTCH_API GraphedCallable make_graphed_callable(const std::function<std::vector<Tensor>(std::span<const Tensor>)>& f,
                                                 std::span<const Tensor> samples,
                                                 const GraphedCallableOptions& options = {});

}}  // namespace clutch::v0
