// SPDX-License-Identifier: Apache-2.0
#include <clutch/dist/checkpoint.hpp>

#include "dist/checkpoint_files.hpp"
#include "dist/group_calls.hpp"
#include "dist/hash.hpp"
#include "support/shared_file.hpp"

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>

namespace clutch { inline namespace v0 { namespace dist {

namespace {

using namespace detail;
namespace fs = std::filesystem;

constexpr const char* kSave = "dist::save";

/// The right to write to a path: of this process's saves one has it at a time.
class Turn {
 public:
  explicit Turn(std::string path) : path_(std::move(path)) {
    std::unique_lock lock(mutex());
    changed().wait(lock, [&] { return taken().insert(path_).second; });
  }
  ~Turn() {
    const std::lock_guard lock(mutex());
    taken().erase(path_);
    changed().notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::condition_variable& changed() {
    static std::condition_variable one;
    return one;
  }
  static std::set<std::string>& taken() {
    static std::set<std::string> one;
    return one;
  }
  std::string path_;
};

/// The largest number that a rank gives.
std::int64_t largest_of_all(const Group& group, std::int64_t mine, const CallOptions& options, const Device& device) {
  const Stream stream = !options.stream.empty() ? options.stream : current_stream(device);
  const Tensor number = from_host({mine}, stream.device(), stream);
  group.all_reduce_(number, {.op = ReduceOp::max, .stream = stream, .timeout = options.timeout, .where = options.where}).synchronize();
  return number.to_host<std::int64_t>(stream)[0];
}

/// What all ranks must say alike.
std::int64_t hash_of(const std::string& path, const std::map<std::string, Sharded>& tensors) {
  std::string text = path + "\n";
  for (const auto& [name, x] : tensors) {
    text += fmt::format("{}:{}:{}:{}", name, clutch::name(x.dtype()), to_string(x.sizes()), to_string(x.mesh().shape()));
    for (const Placement& p : x.placements()) text += to_string(p);
    text += '\n';
  }
  Hash hash;
  hash.add(text);
  return static_cast<std::int64_t>(hash.value() >> 1);
}

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::io, kSave, fmt::format("{}: the folder must be writable, got an error: {}", path, problem));
}

/// What a thread does of a save: writes this rank's files and, when all ranks have, lets the folder take its place.
struct Writing {
  std::string path, folder;
  std::vector<CheckpointFile> files;
  Group group;
  Device device;
  Timeout timeout;
  SourceLine where;
  std::shared_ptr<Turn> turn;  ///< of rank 0

  void write() const {
    std::exception_ptr mine;
    try {
      for (const CheckpointFile& file : files)
        if (const std::string problem = clutch::detail::replace_file_durably(folder + "/" + file.name, file.bytes, 0666); !problem.empty()) fail(path, problem);
    } catch (...) {
      mine = std::current_exception();
    }
    const CallOptions options{.stream = Stream(device), .timeout = timeout, .where = where};
    agree(mine, options);
    if (group.rank() == 0) try {
        if (const std::string problem = clutch::detail::replace_folder(folder, path); !problem.empty()) fail(path, problem);
      } catch (...) {
        mine = std::current_exception();
      }
    agree(mine, options);
  }
  /// Removes the folder, which no rank writes to.
  void discard() const {
    std::error_code ignored;  // the next save removes what is left
    if (turn) fs::remove_all(folder, ignored);
  }
  /// Goes on if all ranks do.
  void agree(const std::exception_ptr& mine, const CallOptions& options) const {
    const bool has_failed = largest_of_all(group, mine ? 1 : 0, options, device) != 0;
    if (has_failed) discard();
    if (mine) std::rethrow_exception(mine);
    if (has_failed) throw Error(ErrorCode::peer_failed, kSave, fmt::format("{}: all ranks must write their files, got one that could not", path));
  }
};

}  // namespace

bool Saving::done() const { return !future_.valid() || future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

void Saving::wait() const {
  if (future_.valid()) future_.get();
}

Saving save(const std::string& path, const std::map<std::string, Sharded>& tensors, const CallOptions& options) {
  return named(kSave, [&] {
    if (tensors.empty()) throw Error(ErrorCode::invalid_argument, kSave, "there must be a tensor, got none");
    if (options.async) throw Error(ErrorCode::invalid_argument, kSave, "async must be false, since a thread writes the files anyway, got true");
    const Group group = tensors.begin()->second.mesh().group();
    const Device device = tensors.begin()->second.local().device();
    for (const auto& [name, x] : tensors) {
      if (x.mesh().group().impl() != group.impl())
        throw Error(ErrorCode::invalid_argument, kSave, fmt::format("meshes must be of one group, got '{}' of another", name));
      check_saved(kSave, name, x);
    }
    std::error_code error;
    std::string place = fs::absolute(path, error).lexically_normal().string();
    if (place.ends_with('/')) place.pop_back();
    auto writing = std::make_shared<Writing>();
    writing->path = place, writing->folder = place + ".saving";
    std::string problem;
    if (group.rank() == 0) {
      writing->turn = std::make_shared<Turn>(place);
      fs::remove_all(writing->folder, error);
      if (!error) fs::create_directories(writing->folder, error);
      if (error) problem = fmt::format("{}: {}", writing->folder, error.message());
    }
    // Two numbers, the second the first one's complement: the largest ones fit each other where all are equal.
    const std::int64_t hash = hash_of(path, tensors);
    const std::int64_t most = largest_of_all(group, hash, options, device), least = ~largest_of_all(group, ~hash, options, device);
    if (most != least) {
      writing->discard();
      throw Error(ErrorCode::mismatch, kSave, "all ranks must give the same path and tensors, got different paths, names, dtypes, sizes or placements");
    }
    if (largest_of_all(group, problem.empty() ? 0 : 1, options, device) != 0) {
      if (!problem.empty()) fail(place, problem);
      throw Error(ErrorCode::peer_failed, kSave, fmt::format("{}: rank 0 must make the folder, got an error there", place));
    }
    writing->files = files_of(kSave, tensors, options.stream);
    writing->group = group.split(0, group.rank(), group.name() + ".checkpoint", options);
    writing->device = device, writing->timeout = options.timeout, writing->where = options.where;
    // What it holds goes with its end, and not with the last Saving.
    auto write = [writing]() mutable {
      const std::shared_ptr<Writing> held = std::move(writing);
      held->write();
    };
    writing.reset();
    return Saving(std::async(std::launch::async, std::move(write)).share());
  });
}

void load(const std::string& path, const std::map<std::string, Sharded>& tensors, const Stream& stream) {
  constexpr const char* kLoad = "dist::load";
  named(kLoad, [&] {
    const CheckpointReader reader(kLoad, path);
    std::vector<std::vector<CopiedBox>> copies;
    for (const auto& [name, x] : tensors) copies.push_back(reader.copies_to(name, x));
    std::size_t next = 0;
    for (const auto& [name, x] : tensors) {
      const Tensor local = x.local();
      std::vector<std::byte> bytes(local.nbytes());
      for (const CopiedBox& box : copies[next]) box.copy_to(bytes);
      ++next;
      if (!bytes.empty()) local.write(bytes, stream);
    }
  });
}

}}}  // namespace clutch::v0::dist
