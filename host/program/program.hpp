// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/kernel.hpp>

#include "program/interned.hpp"
#include "program/pack_file.hpp"
#include "program/pack_store.hpp"
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
  /// The entry's name for messages, never the wrapper's. It lives as long as the process.
  const char* name() const noexcept { return entry_.c_str(); }
  /// The entry's name as the plan of a launch that has no other plan.
  const Interned& plan() const noexcept { return entry_; }
  const std::string& wrapper() const noexcept { return wrapper_; }
  /// The name of the kernel that is launched.
  const std::string& launched_name() const noexcept { return wrapper_.empty() ? entry_.str() : wrapper_; }
  /// The local sizes of its launches so far.
  std::vector<LocalSize> launched();
  std::uint64_t id() const noexcept { return id_; }
  /// The kernel with this id; null if its runtime was released.
  static Kernel* find(std::uint64_t id) noexcept;
  std::uint64_t max_work_group() const noexcept { return max_work_group_; }
  /// Items of which the device runs multiples side by side: a sub-group's, 1 where the driver does not say.
  std::uint64_t preferred_multiple() const noexcept { return preferred_multiple_; }
  int argument_count() const noexcept { return argument_count_; }
  std::uint64_t static_local_bytes() const noexcept { return local_bytes_; }
  /// The geometry with a local size in place of one that the driver chooses, where it must be known whether a program contains it.
  Geometry with_local(Geometry g) const noexcept;
  /// True at the first launch with this local size if the program is then to be saved: some drivers compile at that launch.
  bool first_launch(const Geometry& geometry);
  /// Sees that a launch does not end the process for want of a linker. Errors: build_failure if the driver would need one that is not there.
  void check_local_size(const Geometry& geometry, const char* op) const {
    if (last_launched_.load(std::memory_order_relaxed) != packed(geometry)) [[unlikely]]
      check_first(geometry, op);
  }
  /// True for the library's own kernels, which are right for any number of work-groups.
  bool takes_any_groups() const noexcept;
  /// A new cl_kernel of the entry. The caller owns it.
  cl_kernel make_bare() const;

 private:
  friend class KernelLease;
  friend class ProgramStore;
  /// The local size and, in bit 62, whether the launch is wide.
  std::uint64_t packed(const Geometry& geometry) const noexcept;
  std::uint64_t chosen_local(std::uint64_t global) const noexcept;
  void check_first(const Geometry& geometry, const char* op) const;
  cl_kernel acquire();
  void give_back(cl_kernel kernel) noexcept;
  static void return_all(std::vector<std::vector<cl_kernel>>& lists) noexcept;
  friend struct ThreadKernels;

  Program& program_;
  Interned entry_;
  std::string wrapper_;
  std::uint64_t id_;
  std::uint64_t max_work_group_ = 0, preferred_multiple_ = 1, local_bytes_ = 0;
  std::uint64_t required_local_ = 0;  ///< of reqd_work_group_size in x; 0: none
  int argument_count_ = 0;
  std::mutex mutex_;
  std::vector<ClKernel> owned_;   // all that were made; threads borrow them
  std::vector<cl_kernel> spare_;  // returned by threads that ended
  std::vector<std::uint64_t> launched_;
  std::vector<LocalSize> sizes_;  ///< those of launched_
  std::atomic<std::uint64_t> last_launched_{0};
  std::atomic<Kernel*> predicated_{nullptr};  ///< ProgramStore::predicated() of this kernel, once it was asked for
};

/// A cl_kernel for one launch, borrowed from this thread's free list until the enqueue returns. Its arguments must be set within that time.
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

/// Key and parts of a program.
struct ProgramRequest {
  std::string_view text;  ///< OpenCL C, with its own #line
  std::string_view file;  ///< file name in messages, if the text has no #line
  std::string_view entry;
  const Defines& defines;
  std::string_view options = {};
  std::string_view wrapper_name = {};  ///< entry of `wrapper_text`, launched instead of `entry`; empty: none
  std::string_view wrapper_text = {};
  std::string_view expression = {};  ///< replaces `#include "expression.clh"` in `text`
  /// A caller's program without text: at most one of them
  std::string_view binary = {}, spirv = {};
};

/// Where a program came from.
enum class ProgramOrigin : std::uint8_t { built, loaded, packed };

class Program {
 public:
  /// `saved` is the digest of the binary in the disk cache; all 0 if there is none.
  Program(Runtime& runtime, ClProgram program, std::filesystem::path file, const Digest& key, const Digest& saved);
  Runtime& runtime() const noexcept { return runtime_; }
  cl_program get() const noexcept { return program_.get(); }
  Kernel& kernel() noexcept { return *kernel_; }
  /// Source and options that the program was built from, for saved graphs: views into the program store. A caller's binary and SPIR-V have no source.
  std::string_view source() const noexcept { return source_; }
  const std::string& options() const noexcept { return options_; }
  void set_text(std::string_view source, std::string_view options) { source_ = source, options_ = options; }
  /// The present binary; empty if the driver gives none.
  std::string binary() const;
  void set_kernel(std::unique_ptr<Kernel> kernel) { kernel_ = std::move(kernel); }
  /// Writes the binary to the disk cache if it differs from the one there, and notes it for CLUTCH_PACK_RECORD. Never throws.
  void save() noexcept;

  /// Tells where the program came from: `binary` is what was loaded, `key` the program's in packs.
  void set_origin(ProgramOrigin origin, std::string_view binary, std::string_view entry, const Digest& key);
  ProgramOrigin origin() const noexcept { return origin_; }
  /// True if the driver compiles each local size at its first launch, wide ones apart (binary_check.hpp).
  bool links_at_launch() const noexcept { return links_at_launch_; }
  /// True if the binary that was loaded has a kernel's code for this local size.
  bool contains(const LocalSize& size) const;

 private:
  Runtime& runtime_;
  ClProgram program_;
  std::filesystem::path file_;
  Digest key_;
  Digest saved_;
  std::mutex mutex_;
  std::unique_ptr<Kernel> kernel_;
  std::string_view source_;
  std::string options_;  ///< options of the request
  ProgramOrigin origin_ = ProgramOrigin::built;
  bool links_at_launch_ = false;
  std::vector<LocalSize> contained_;  ///< of drivers that link at launches alone
  Digest pack_key_{};                 ///< all 0: of no pack
};

/// Programs of one runtime by (text, entry, sorted defines, options). Each is built once and kept in the disk cache.
class ProgramStore {
 public:
  explicit ProgramStore(Runtime& runtime) : runtime_(runtime) {}
  /// Errors: build_failure, opencl; not_supported for SPIR-V that the device does not take.
  Kernel& find(const ProgramRequest& request);
  /// An entry of the library's own kernels/<stem>.cl.
  Kernel& find(std::string_view stem, std::string_view entry, const Defines& defines, std::string_view expression = {}, std::string_view options = {});
  /// A program of a complete source, as Program::source() returns it. `binary`, if not empty, is tried first.
  Kernel& find_whole(const ProgramRequest& request, std::string source, std::string_view binary = {});
  /// The same kernel with CLUTCH_PREDICATED defined, which has one more operand in front, a u32, and does nothing where that is 0. Null if its source has no
  /// such kernel. Errors: build_failure, opencl.
  Kernel* predicated(Kernel& kernel);

 private:
  struct Slot {
    std::mutex building;
    std::unique_ptr<Program> program;
  };
  Kernel& find_compiled(const ProgramRequest& request);
  /// The slot of a key, which lives as long as the store; `known` is the key as it is kept.
  std::shared_ptr<Slot> slot_of(std::string key, std::string_view* known = nullptr);
  std::unique_ptr<Program> make(const ProgramRequest& request, std::string_view source, const std::string& options, std::string_view binary);
  std::unique_ptr<Program> make_given(const ProgramRequest& request);
  /// A program of a pack; null if no pack has it, or if it is refused, which is logged.
  std::unique_ptr<Program> make_packed(const ProgramRequest& request, const std::string& options, const std::filesystem::path& file, const Digest& key,
                                       const Digest& pack_key);
  /// True if a pack has a program's local sizes that this binary lacks and that the driver cannot compile.
  bool is_in_pack_alone(const ProgramRequest& request, const Digest& pack_key, std::string_view binary);

  Runtime& runtime_;
  PackStore packs_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Slot>> slots_;
};

/// For tests that plant defects: while it lives, replaces `from` by `to` in the source of programs that are built. The first `from` after the text `after` is
/// replaced; if none follows `after`, the first `from` of the source.
class SourceMutation {
 public:
  SourceMutation(std::string_view from, std::string_view to, std::string_view after = {});
  ~SourceMutation();
  SourceMutation(const SourceMutation&) = delete;
  SourceMutation& operator=(const SourceMutation&) = delete;
  /// Number of programs that contained the text.
  int applied() const;
};

/// Identifies device, driver and library version in keys of the disk cache.
std::string device_key(const Runtime& runtime);

inline Geometry Kernel::with_local(Geometry g) const noexcept {
  if (g.local == 0 && program_.links_at_launch()) g.local = chosen_local(g.global);
  return g;
}

}}}  // namespace clutch::v0::detail
