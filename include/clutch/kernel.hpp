// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace clutch { inline namespace v0 {

class Encoder;
namespace detail {
class Interned;
class Kernel;
class Recorder;
class Storage;
struct HostWork;
struct Launch;
struct Meaning;
struct TableState;
Encoder& bind_args_in_memory(Encoder& encoder, const void* args, std::size_t size, const char* name);

/// OpenCL C's name of a number's type; empty for anything else.
template <class T>
constexpr const char* opencl_type() noexcept {
  if constexpr (std::is_same_v<T, float>)
    return "float";
  else if constexpr (std::is_same_v<T, double>)
    return "double";
  else if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>)
    return "";
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? "char" : "uchar";
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? "short" : "ushort";
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? "int" : "uint";
  else
    return std::is_signed_v<T> ? "long" : "ulong";
}
}  // namespace detail

/// Typed `#define`s of a program: sorted, free of repeats, part of the program's key.
class CLUTCH_API Defines {
 public:
  struct Entry {
    std::string name;
    std::string value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  Defines() = default;
  Defines(std::initializer_list<std::pair<std::string_view, std::string_view>> entries);
  /// Errors: invalid_argument for a name that is no identifier or is set already to another value.
  Defines& set(std::string_view name, std::int64_t value);
  Defines& set_text(std::string_view name, std::string_view value);
  /// NAME_IS_<DTYPE> = 1 and NAME = the OpenCL type that stores an element; kernels/common/dtype.clh reads both.
  Defines& set_type(std::string_view name, DType dtype);
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// "A=1 B=float"
  std::string to_string() const;

 private:
  std::vector<Entry> entries_;
};

/// How a kernel takes its tensors.
enum class Addressing : std::uint8_t {
  pointer,          ///< one `__global T*` argument at element 0, made by a wrapper around the entry
  base_and_offset,  ///< two arguments, `__global T* base, ulong byte_offset`: what the library's own kernels take
};

/// Somebody's own kernel: a program as text, binary or SPIR-V, and the entry in it. Views must hold until the call that
/// takes them returns.
/// Text: OpenCL C. With Addressing::pointer the entry must declare no __local variables of its own and no
///   reqd_work_group_size (OpenCL C forbids calling such a kernel): use base_and_offset there.
/// Without text: Addressing::base_and_offset, and no defines.
/// Trust: a binary is machine code. A whole one of PoCL with changed contents may end the process.
struct KernelSource {
  std::string_view text = {};
  std::string_view entry = {};
  Defines defines = {};
  std::string_view options = {};              ///< further build options
  std::string_view file = "<kernel source>";  ///< named in build logs
  Addressing addressing = Addressing::pointer;
  std::span<const std::byte> binary = {};  ///< in place of text: what KernelHandle::binary() gave on such a device
  std::span<const std::byte> spirv = {};  ///< in place of text: a SPIR-V module for OpenCL, whose kernels take pointers
};

/// Global and local sizes of up to three dimensions; local 0 in x lets the driver choose, or clutch where packs hold
/// local sizes.
struct Geometry {
  std::uint64_t global = 1;
  std::uint64_t local = 0;
  std::uint64_t global_y = 1;
  std::uint64_t local_y = 1;
  std::uint64_t global_z = 1;
  std::uint64_t local_z = 1;
};

/// One argument of launch(): a tensor with its direction, or a value.
class Argument {
 public:
  enum class Kind : std::uint8_t { input, output, inout, value, local };
  Kind kind = Kind::value;
  const Tensor* tensor = nullptr;
  std::uint32_t size = 0;  ///< of a value, in bytes; of local memory
  const char* type = "";   ///< OpenCL C name of a value's type
  const char* name = "";   ///< for Graph::update() and dumps; must live as long as graphs that record it
  alignas(16) unsigned char bytes[16] = {};
};

inline Argument input(const Tensor& t, const char* name = "") {
  return {.kind = Argument::Kind::input, .tensor = &t, .name = name};
}
inline Argument output(const Tensor& t, const char* name = "") {
  return {.kind = Argument::Kind::output, .tensor = &t, .name = name};
}
inline Argument inout(const Tensor& t, const char* name = "") {
  return {.kind = Argument::Kind::inout, .tensor = &t, .name = name};
}
/// A number by its C++ type: float, double, and integers of 8 to 64 bits.
template <class T>
requires std::is_arithmetic_v<T> Argument value(T v, const char* name = "") {
  static_assert(sizeof(T) <= 8 && !std::is_same_v<T, bool>);
  Argument a{.kind = Argument::Kind::value, .size = sizeof(T), .type = detail::opencl_type<T>(), .name = name};
  std::memcpy(a.bytes, &v, sizeof(T));
  return a;
}
/// Local memory of that many bytes for a `__local` pointer parameter.
inline Argument local_memory(std::uint32_t bytes) { return {.kind = Argument::Kind::local, .size = bytes}; }

/// Runs a kernel of the caller's on the stream: checked, cached, named and ordered like the library's own. Builds the
/// program at first use.
/// Errors: build_failure with log and path:line, also where (with Addressing::pointer) the arguments do not fit the
///   entry's parameters, and for a binary that is cut or another device's; invalid_argument without a program, entry
///   or an argument's tensor, for a wrong count or size of arguments, or a geometry past the device's limits or of
///   2^32 groups and more (of one work-item where the driver chooses the local size), naming the rule; not_supported
///   for SPIR-V on a device that takes none; device_mismatch.
CLUTCH_API void launch(const KernelSource& source, const Geometry& geometry, std::span<const Argument> arguments,
                       const Stream& stream = {});
inline void launch(const KernelSource& source, const Geometry& geometry, std::initializer_list<Argument> arguments,
                   const Stream& stream = {}) {
  launch(source, geometry, std::span<const Argument>(arguments.begin(), arguments.size()), stream);
}

/// A built kernel of one device. A cheap value that stays valid for the process.
class CLUTCH_API KernelHandle {
 public:
  KernelHandle() = default;
  bool empty() const noexcept { return kernel_ == nullptr; }
  /// Largest local size the device takes for this kernel.
  std::uint64_t max_work_group() const;
  /// The program as the driver gives it, for KernelSource::binary in other processes: of this device, or of one whose
  /// driver takes it. PoCL's has the machine code of local sizes that were launched, and compiles others when they are.
  /// Errors: not_supported if the driver gives none; invalid_argument for an empty handle.
  std::vector<std::byte> binary() const;
  explicit KernelHandle(detail::Kernel* kernel) noexcept : kernel_(kernel) {}
  KernelHandle(detail::Kernel* kernel, const detail::Interned& plan) noexcept;
  detail::Kernel* kernel() const noexcept { return kernel_; }
  /// Text of the plan that chose the kernel, which last_plan() and graphs show; without one, the kernel's name.
  detail::Interned plan() const noexcept;

 private:
  detail::Kernel* kernel_ = nullptr;
  const std::string* plan_ = nullptr;  // lives as long as the process
};

/// Builds (or finds) a kernel that takes base_and_offset tensors, ahead of its first launch. Errors: as launch().
CLUTCH_API KernelHandle prepare(const KernelSource& source, const Stream& stream = {});

/// Any number of tensors for one launch. Kernels cannot load pointers from memory, so they get the few buffers in which
/// the tensors are, and a table.
/// Parameters: kBases times `__global uchar*`, then the table as a tensor of 64-bit words (base and byte offset).
/// Words: word i says where element 0 of tensor i is: byte `word & (1ul << 56) - 1` of buffer `word >> 56`; all ones:
///   no tensor. They stay on the device for as long as the tensors stay where they are.
/// Copies: move-only.
/// Threads: not for two threads at once.
class CLUTCH_API TensorTable {
 public:
  static constexpr int kBases = 8;
  struct Column {
    Argument::Kind access;  ///< input, output or inout
    bool kept = false;      ///< the caller keeps these tensors, the same ones at each call: they are looked at once
  };
  /// Tensors come in rows of such columns.
  explicit TensorTable(std::vector<Column> columns);
  ~TensorTable();
  TensorTable(TensorTable&&) noexcept;
  TensorTable& operator=(TensorTable&&) noexcept;
  /// Where to end tables so that each one's rows are in at most kBases buffers: ends of ranges of rows.
  /// Errors: not_supported for a row that alone is in more.
  static std::vector<std::size_t> split(std::span<const Tensor* const> tensors, std::size_t columns);

 private:
  friend class Encoder;
  std::unique_ptr<detail::TableState> state_;
};

/// Least work of commands, as plans state it.
/// Flops: floating-point operations of the algorithm; a fused multiply-add counts two, a traced operation one. 0 where
///   the op states none. Attention counts the products of all scores: which blocks a mask leaves out is known to the
///   device alone.
/// Bytes: of memory that must be read and written, each element of an operand once; elements that a stride of 0 repeats
///   are one.
/// Flops64: of the flops those in f64: all of a command most of whose operands' bytes are of f64 or c128.
struct Cost {
  double flops = 0;
  double bytes = 0;
  double flops64 = 0;

  Cost& operator+=(const Cost& other) noexcept {
    flops += other.flops, bytes += other.bytes, flops64 += other.flops64;
    return *this;
  }
  friend Cost operator-(const Cost& a, const Cost& b) noexcept {
    return {a.flops - b.flops, a.bytes - b.bytes, a.flops64 - b.flops64};
  }
};

/// The one vocabulary in which ops say what to run. Arguments are bound by position, in the kernel's order; dispatch()
/// uses them up. Whether the work runs now or is recorded is the stream's business, never the op's.
class CLUTCH_API Encoder {
 public:
  /// `op`, a literal, is named in errors and by nodes of graphs, which keep the pointer.
  /// Errors: stream_failed or device_lost while the stream has a sticky failure; invalid_argument if it is empty.
  Encoder(const Stream& stream, const char* op);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  const Stream& stream() const noexcept { return stream_; }
  const char* op() const noexcept { return op_; }

  /// `name`, a literal, is what Graph::update() and dumps call the argument.
  Encoder& input(const Tensor& tensor, const char* name = "") { return bind(tensor, Argument::Kind::input, name); }
  Encoder& output(const Tensor& tensor, const char* name = "") { return bind(tensor, Argument::Kind::output, name); }
  Encoder& inout(const Tensor& tensor, const char* name = "") { return bind(tensor, Argument::Kind::inout, name); }
  /// Tensors by rows, the table's columns each; a null one stands for none.
  /// Errors: invalid_argument if they are in more than TensorTable::kBases buffers; in a graph that is found when it is
  ///   instantiated, and not_supported.
  Encoder& table(TensorTable& table, std::span<const Tensor* const> tensors);
  /// Any trivially copyable value: a number or a struct that the kernel declares alike.
  template <class T>
  requires std::is_trivially_copyable_v<T> Encoder& value(const T& v, const char* name = "") {
    return bind_bytes(&v, sizeof(T), detail::opencl_type<T>(), name);
  }
  /// A value whose type is known at run time only; `type` is OpenCL C's name of a number's.
  Encoder& bytes(const void* data, std::size_t size, const char* type = "", const char* name = "") {
    return bind_bytes(data, size, type, name);
  }
  /// Local memory of that many bytes for a `__local` pointer parameter.
  Encoder& local(std::size_t bytes);

  /// Memory from the stream's pool; the block returns to it, in stream order, when the Tensor goes. Filled with NaN
  /// bytes under CLUTCH_POISON_SCRATCH.
  Tensor scratch(const Dims& sizes, DType dtype);

  /// States the floating-point operations of the next launch, and its bytes where they are not those of the bound
  /// tensors (inout ones count twice).
  Encoder& flops(double count) noexcept;
  Encoder& moves(double bytes) noexcept;

  /// For the library's own ops: what the next launch computes, with which graphs fuse it with others. Only a graph that
  /// fuses asks for it.
  bool asks_for_meaning() const noexcept;
  Encoder& means(std::shared_ptr<const detail::Meaning> meaning) noexcept;

  /// Enqueues the kernel with the bound arguments. A geometry of zero work-items enqueues nothing.
  /// Errors: invalid_argument naming the broken launch rule; opencl; out_of_memory.
  void dispatch(const KernelHandle& kernel, const Geometry& geometry);
  /// Copies bytes between contiguous tensors of equal nbytes().
  void copy(const Tensor& destination, const Tensor& source);
  /// Runs a host library's work on mapped memory, in the stream's order.
  /// Pointers: they match inputs, then outputs. Tensors that begin at one place have one pointer.
  /// Plan: `plan`, if given, is what last_plan() and graphs show.
  /// Streams: host tasks on several streams may read one tensor at once (all but one get a copy of it).
  /// Stream: waits for the stream, in a capture at each replay: it is a counted host fall-back.
  /// Errors: strict under CLUTCH_STRICT=host; invalid_argument if the task is empty.
  void host_task(const std::function<void(std::span<void* const>)>& task, std::span<const Tensor> inputs,
                 std::span<const Tensor> outputs, std::string_view plan = {});
  /// Lets a library that enqueues by itself do so: `task` gets the cl_command_queue, in a capture that of each replay.
  void opaque(const std::function<void(void* queue)>& task, std::span<const Tensor> inputs,
              std::span<const Tensor> outputs, std::string_view plan = {});
  /// Where a tensor is: its cl_mem, and the byte of element 0 in that.
  struct Place {
    void* mem = nullptr;
    std::uint64_t offset = 0;
  };
  /// The same for a library that is given memory. The places match inputs, then outputs; in a capture they are those of
  /// each replay, also of tensors that the capture makes.
  void opaque(const std::function<void(void* queue, std::span<const Place> places)>& task,
              std::span<const Tensor> inputs, std::span<const Tensor> outputs, std::string_view plan = {});

 private:
  Encoder& bind(const Tensor& tensor, Argument::Kind kind, const char* name);
  Encoder& bind_bytes(const void* bytes, std::size_t size, const char* type, const char* name);
  void check_tensor(const Tensor& tensor, const char* what) const;
  void add_bytes(const Tensor& tensor, int times) noexcept;
  void hand_over(detail::HostWork work, std::string_view plan);
  friend Encoder& detail::bind_args_in_memory(Encoder& encoder, const void* args, std::size_t size, const char* name);

  Stream stream_;
  const char* op_;
  std::shared_ptr<detail::Recorder> recorder_;  // takes what is dispatched
  std::unique_ptr<detail::Launch> launch_;      // the next one
};

/// How often programs were built from source, loaded from the disk cache (or given as binaries), written to the disk
/// cache, and loaded from kernel packs.
struct BuildCounters {
  std::uint64_t built = 0;
  std::uint64_t loaded = 0;
  std::uint64_t saved = 0;
  std::uint64_t packed = 0;
};
CLUTCH_API BuildCounters build_counters() noexcept;
/// How often an op took a fall-back that CLUTCH_STRICT can forbid, by kind: "host", "extension", "untuned".
CLUTCH_API std::uint64_t fallback_count(std::string_view kind);

/// Text of the plan that this thread's last op ran: "addc_contiguous f32 ...". For tests, benches and logs.
CLUTCH_API std::string last_plan();

/// Sum of what this thread has enqueued or recorded since it began. The difference of two calls is the cost of what ran
/// between them: what clutch-bench's rows, cost models and profilers read. A launch that fails does not count.
/// Stream: never waits.
CLUTCH_API Cost enqueued_cost() noexcept;

}}  // namespace clutch::v0
