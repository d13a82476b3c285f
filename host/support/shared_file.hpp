// SPDX-License-Identifier: Apache-2.0
// Files that several processes use at a time, and what processes of a machine know of each other. POSIX alone.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Memory of a new file, which other processes read while it changes and which is whole after the process was killed; without a path memory of the process
/// alone. All bytes are 0 at first and there: a full disk is found when the mapping is made.
class SharedMapping {
 public:
  /// The file has a temporary name until publish(). problem() is empty on success.
  SharedMapping(std::string path, std::size_t bytes, unsigned mode);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::byte* memory() const noexcept { return memory_; }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Lets the file take the place of `path`. Returns what failed; empty on success.
  std::string publish();
  /// What failed, with the path and the system's reason.
  const std::string& problem() const noexcept { return problem_; }

 private:
  std::string path_, temporary_, problem_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A file that another process may change, cut or remove meanwhile: bytes are copied out of it.
class SharedReader {
 public:
  explicit SharedReader(const std::string& path);
  ~SharedReader();
  SharedReader(const SharedReader&) = delete;
  SharedReader& operator=(const SharedReader&) = delete;

  /// Bytes of the file when it was opened.
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Copies bytes from `offset` on; returns how many there were.
  std::size_t copy(std::uint64_t offset, std::span<std::byte> to) const noexcept;
  const std::string& problem() const noexcept { return problem_; }

 private:
  int file_ = -1;
  std::uint64_t bytes_ = 0;
  std::string problem_;
};

/// replace_file (system.hpp) for what must outlive a crash of the machine: the file's bytes and its name are on the disk when this returns.
std::string replace_file_durably(const std::string& path, std::span<const std::byte> bytes, unsigned mode);

/// Lets a folder take the place of another one at once, so that there is one or the other whenever the system or the process ends, and removes the other one.
/// Returns what failed; empty on success.
std::string replace_folder(const std::string& folder, const std::string& path);

/// A process, as others of its machine may look for it.
struct ProcessIdentity {
  std::string host;           ///< the machine's name
  std::uint64_t machine = 0;  ///< its boot and the process's space of ids; 0: not known
  std::uint64_t id = 0;
  std::uint64_t begun = 0;  ///< ticks from the boot to its begin, which tell it from a later one of that id; 0: not known
};
ProcessIdentity this_process();
enum class ProcessState : std::uint8_t { unknown, running, ended };
/// Unknown for processes of other machines.
ProcessState state_of(const ProcessIdentity& process);

/// True if the system takes its time from the processor's counter of ticks (x86's TSC), which then has one rate on all cores.
bool has_steady_ticks() noexcept;

/// The system's number of this thread.
std::uint64_t thread_id() noexcept;

}}}  // namespace clutch::v0::detail
