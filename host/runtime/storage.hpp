// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/tensor.hpp>

#include "runtime/stream.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Recording;
struct Block;

/// Bytes at an offset of a cl_mem: a block of a pool's segment, a caller's wrapped buffer, or memory of a capture that has no address yet.
class Storage : public std::enable_shared_from_this<Storage> {
 public:
  /// Takes a block of the stream's pool, or, while the stream captures, memory without an address.
  Storage(const std::shared_ptr<StreamImpl>& stream, std::uint64_t bytes, std::string_view op);
  /// Wraps a caller's buffer. `keeper`, if given, is released once no work uses the memory any more.
  Storage(Runtime& runtime, ClMem buffer, std::uint64_t bytes, std::shared_ptr<void> keeper = {});
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Runtime& runtime() const noexcept { return runtime_; }
  cl_mem mem() const noexcept { return mem_; }
  std::uint64_t offset() const noexcept { return offset_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// The block of a pool; null for a caller's buffer and for memory without an address.
  const Block* block() const noexcept { return block_; }

  /// True for memory of a recording that has not placed it, so that it has no address. Its index in the recording is `recorded_buffer_`.
  bool unplaced() const noexcept { return mem_ == nullptr; }
  const std::shared_ptr<Recording>& recording() const noexcept { return recording_; }
  int recorded_buffer() const noexcept { return recorded_buffer_; }
  /// Takes a block of the pool. Errors: out_of_memory.
  void place(std::string_view op);
  /// Id of the innermost branch that made the memory, outside of which nothing knows what is in it; 0: none, or a caller's buffer.
  std::uint64_t branch() const noexcept { return branch_; }
  void set_branch(std::uint64_t id) noexcept { branch_ = id; }
  /// Gives memory of a recording the address of another storage, in whose place it is used from now on.
  void stand_for(std::shared_ptr<Storage> other);
  /// The storage that this one stands for; null: none.
  const std::shared_ptr<Storage>& stands_for() const noexcept { return stands_for_; }
  /// Gives the memory back. No work may use it after; the address stays as a number, to compare with others.
  void let_go() noexcept;
  /// True if both storages are parts of one buffer, so that their offsets tell whether they overlap.
  bool same_memory(const Storage& other) const noexcept { return mem_ ? mem_ == other.mem_ : this == &other; }

  /// Notes that work on `stream` uses the memory; the memory is not reused before that work is done.
  void used_on(const std::shared_ptr<StreamImpl>& stream, bool writes, const char* op) {
    if (stream->id() != last_user_.load(std::memory_order_relaxed)) [[unlikely]]
      note_user(stream);
    if (check_races_) [[unlikely]]
      check_race(*stream, writes, op);
  }

 private:
  void take_block(std::string_view op);
  void return_block();
  void note_user(const std::shared_ptr<StreamImpl>& stream);
  void check_race(StreamImpl& stream, bool writes, const char* op);

  Runtime& runtime_;
  std::shared_ptr<StreamImpl> home_;  ///< null for a caller's buffer, and for a block of a partition's stream, whose units it would keep
  std::shared_ptr<Recording> recording_;
  int recorded_buffer_ = -1;
  Block* block_ = nullptr;
  std::shared_ptr<Storage> stands_for_;
  std::shared_ptr<void> keeper_;
  ClMem wrapped_;
  cl_mem mem_ = nullptr;
  std::uint64_t offset_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t branch_ = 0;
  std::atomic<std::uint64_t> last_user_{0};
  std::mutex mutex_;
  // Streams other than home_ that used this memory. A live stream is never removed, because it reports its use only once.
  std::vector<std::shared_ptr<StreamEnd>> users_;
  std::size_t sweep_at_ = 16;  ///< number of users at which finished streams are removed
  bool check_races_ = false;
  std::uint64_t writer_ = 0, write_ticket_ = 0;
  const char* write_op_ = "";
  Clock readers_;
};

/// Address of a tensor: byte `offset` of a buffer.
struct Address {
  cl_mem mem = nullptr;
  std::uint64_t offset = 0;
  friend bool operator==(const Address&, const Address&) = default;
};

/// Errors: capturing for memory of a capture that has not ended, or has failed.
inline void check_placed(const Storage& storage, std::string_view op) {
  if (storage.unplaced()) [[unlikely]]
    throw Error(ErrorCode::capturing, op, "the tensor must have memory, got one of a capture that has not ended, or has failed");
}
/// The storage of a tensor. Errors: invalid_argument for an undefined tensor.
Storage& storage_of(const Tensor& tensor, std::string_view op);
/// The stream on which a tensor is made: the given one, else the device's current one. Errors: device_mismatch.
Stream stream_for(const Stream& stream, const Device& device, std::string_view op);
/// Bytes from element 0 to the end of the last element that the strides reach; 0 for an empty tensor.
std::uint64_t extent_bytes(const Tensor& tensor);
/// Strides of a contiguous tensor, in elements.
Dims contiguous_strides(const Dims& sizes);

}}}  // namespace clutch::v0::detail

namespace clutch { inline namespace v0 { namespace interop {

/// wrap() with an object that is released once no work uses the buffer any more.
Tensor wrap_kept(cl_mem buffer, const Dims& sizes, DType dtype, const Device& device, std::uint64_t byte_offset, std::shared_ptr<void> keeper);

}}}  // namespace clutch::v0::interop
