// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"
#include "program/sha256.hpp"
#include "runtime/cl_api.hpp"

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

class Runtime;
class Program;

/// One entry of a built program, with its launch limits. Lives as long as its runtime.
class Kernel {
 public:
  Kernel(Program& program, std::string_view entry, std::string wrapper);
  ~Kernel();

  Program& program() const noexcept { return program_; }
  /// The name shown to people; the wrapper's name never is. It lives as long as the process.
  const char* name() const noexcept { return entry_.c_str(); }
  /// The same as the plan of a launch that has no other.
  const Interned& plan() const noexcept { return entry_; }
  const std::string& wrapper() const noexcept { return wrapper_; }
  std::uint64_t id() const noexcept { return id_; }
  /// The kernel of that id; null if its runtime is no more.
  static Kernel* find(std::uint64_t id) noexcept;
  std::uint64_t max_work_group() const noexcept { return max_work_group_; }
  int argument_count() const noexcept { return argument_count_; }
  std::uint64_t static_local_bytes() const noexcept { return local_bytes_; }
  /// True the first time a local size is launched: some drivers compile then, so the binary is worth saving after it.
  bool first_launch(std::uint64_t x, std::uint64_t y, std::uint64_t z);
  /// A new cl_kernel of the entry that the caller owns.
  cl_kernel make_bare() const;

 private:
  friend class KernelLease;
  cl_kernel acquire();
  void give_back(cl_kernel kernel) noexcept;
  static void return_all(std::vector<std::vector<cl_kernel>>& lists) noexcept;
  friend struct ThreadKernels;

  Program& program_;
  Interned entry_;
  std::string wrapper_;
  std::uint64_t id_;
  std::uint64_t max_work_group_ = 0, local_bytes_ = 0;
  int argument_count_ = 0;
  std::mutex mutex_;
  std::vector<ClKernel> owned_;   // all ever made; threads only borrow them
  std::vector<cl_kernel> spare_;  // of threads that ended
  std::vector<std::uint64_t> launched_;
  std::atomic<std::uint64_t> last_launched_{0};
};

/// A cl_kernel for one launch, borrowed from this thread's free list from the first set-arg to the enqueue's return.
class KernelLease {
 public:
  explicit KernelLease(Kernel& kernel) : kernel_(kernel), raw_(kernel.acquire()) {}
  ~KernelLease() { kernel_.give_back(raw_); }
  KernelLease(const KernelLease&) = delete;
  KernelLease& operator=(const KernelLease&) = delete;
  cl_kernel get() const noexcept { return raw_; }

 private:
  Kernel& kernel_;
  cl_kernel raw_;
};

/// Build logs of programs that were built without an error, as "entry: log"; for tests.
std::vector<std::string> build_logs();

/// What identifies a program and how to make it.
struct ProgramRequest {
  std::string_view text;  ///< OpenCL C, with its own #line
  std::string_view file;  ///< file name in messages, if the text has no #line
  std::string_view entry;
  const Defines& defines;
  std::string_view options = {};
  std::string_view wrapper_name = {};  ///< entry of `wrapper_text`, launched instead of `entry`; empty: none
  std::string_view wrapper_text = {};
  std::string_view expression = {};  ///< text that stands where `text` includes expression.clh
};

class Program {
 public:
  /// `saved` is the digest of the binary that the disk cache has; all 0 if none.
  Program(Runtime& runtime, ClProgram program, std::filesystem::path file, const Digest& key, const Digest& saved);
  Runtime& runtime() const noexcept { return runtime_; }
  cl_program get() const noexcept { return program_.get(); }
  Kernel& kernel() noexcept { return *kernel_; }
  /// What it was built from, for saved graphs: views into its store.
  std::string_view source() const noexcept { return source_; }
  const std::string& options() const noexcept { return options_; }
  void set_text(std::string_view source, std::string_view options) { source_ = source, options_ = options; }
  /// Its present binary; empty if the driver gives none.
  std::string binary() const;
  void set_kernel(std::unique_ptr<Kernel> kernel) { kernel_ = std::move(kernel); }
  /// Writes the binary to the disk cache if it differs from the one there. Never throws.
  void save() noexcept;

 private:
  Runtime& runtime_;
  ClProgram program_;
  std::filesystem::path file_;
  Digest key_;
  Digest saved_;
  std::mutex mutex_;
  std::unique_ptr<Kernel> kernel_;
  std::string_view source_;
  std::string options_;  ///< the request's own
};

/// Programs of one runtime by (text, entry, sorted defines, options); built once, kept on disk.
class ProgramStore {
 public:
  explicit ProgramStore(Runtime& runtime) : runtime_(runtime) {}
  /// Errors: build_failure, opencl.
  Kernel& find(const ProgramRequest& request);
  /// An entry of the library's own kernels/<stem>.cl.
  Kernel& find(std::string_view stem, std::string_view entry, const Defines& defines, std::string_view expression = {}, std::string_view options = {});
  /// A program of a complete source, as Program::source() returns it; `binary`, if not empty, is tried first.
  Kernel& find_whole(const ProgramRequest& request, std::string source, std::string_view binary = {});

 private:
  struct Slot {
    std::mutex building;
    std::unique_ptr<Program> program;
  };
  std::unique_ptr<Program> make(const ProgramRequest& request, const std::string& source, const std::string& options, std::string_view binary);

  Runtime& runtime_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Slot>> slots_;
};

/// Replaces `from` by `to` in the source of programs that are built while it lives, by which tests plant defects. The first
/// `from` after the text `after` is replaced; if there is none, the first of all.
class SourceMutation {
 public:
  SourceMutation(std::string_view from, std::string_view to, std::string_view after = {});
  ~SourceMutation();
  SourceMutation(const SourceMutation&) = delete;
  SourceMutation& operator=(const SourceMutation&) = delete;
  /// Number of programs that had the text.
  int applied() const;
};

/// Text that identifies device, driver and our version in keys of the disk cache.
std::string device_key(const Runtime& runtime);

}}}  // namespace clutch::v0::detail
