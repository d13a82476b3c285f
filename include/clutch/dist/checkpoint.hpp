// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checkpoints of Sharded tensors: a folder of safetensors files, to which each rank writes its parts. Any mesh reads
// what another one wrote; so does PyTorch's distributed checkpoint, by its HuggingFaceStorageReader.
//
//   dist::Saving saving = dist::save("step_1000", {{"weight", weight}, {"bias", bias}});
//   ... training goes on ...
//   saving.wait();
//   dist::load("step_1000", {{"weight", of_another_mesh}});
#include <clutch/dist/sharded.hpp>

#include <future>
#include <map>
#include <string>

namespace clutch { inline namespace v0 { namespace dist {

/// A checkpoint that is being written. A cheap value: copies share it; the last one waits for its end. An empty one is
/// done.
class CLUTCH_DIST_API Saving {
 public:
  Saving() = default;
  /// True when wait() would not wait. Never waits.
  bool done() const;
  /// Waits until all ranks' files are on the disk, in the place of what was there before.
  /// Errors: io and what else failed on this rank; peer_failed where another one failed. Then the folder that was there
  ///   before is there.
  void wait() const;

  explicit Saving(std::shared_future<void> future) noexcept : future_(std::move(future)) {}

 private:
  std::shared_future<void> future_;
};

/// Writes tensors to a folder. Collective over the group of their meshes: all ranks give the same path, names, sizes,
/// dtypes and placements, and see the same files.
/// Waits: for the stream, while this rank's parts are copied to host memory, and for all ranks; files are written by a
///   thread, meanwhile the tensors may change. Calls of that thread are in a group of their own, with its time-out.
/// Files: each rank writes what no other one does: of replicated tensors coordinate 0. They are
///   shard-RRRRR-model-00001-of-00001.safetensors, with the metadata "DCP_SHARDING_INFO", the places of parts; a part
///   of several boxes (split factors) is in as many files.
/// Whole or not: files are written to the folder `path`.saving and reach the disk, then the folder takes the place of
///   `path` at once. A process or machine that fails meanwhile leaves the old checkpoint. The next save to the path
///   removes what is left over.
/// Memory: host memory of this rank's parts until the files are written.
/// Errors: invalid_argument for no tensors, meshes of several groups, partial placements, a name that is "__metadata__"
///   or no UTF-8; invalid_dtype for c128; mismatch on every rank where ranks give different tensors; io also where
///   `path` is a file or the file system cannot exchange folders at once and there is a checkpoint: then give each one
///   a path of its own.
/// Threads: saves of one process to one path wait for one another; those of two programs must not meet.
CLUTCH_DIST_API Saving save(const std::string& path, const std::map<std::string, Sharded>& tensors,
                            const CallOptions& options = {});

/// Reads tensors from a folder into the local parts, each rank what it needs. No call among ranks: where one fails, the
/// others do not know. Nothing is written before all tensors were found to be there.
/// Files: all *.safetensors files of the folder, also those of PyTorch's distributed checkpoint and of models without
///   shards; they are mapped, and only parts that are needed are read. Other tensors in them are left alone.
/// Errors: invalid_argument for partial placements and names that the checkpoint has not; invalid_shape and
///   invalid_dtype unless sizes and dtype are the tensor's; io for files that break a rule of safetensors or of
///   DCP_SHARDING_INFO, and for elements that no file or two files have.
/// Stream: the parts are there in its order.
CLUTCH_DIST_API void load(const std::string& path, const std::map<std::string, Sharded>& tensors,
                          const Stream& stream = {});

}}}  // namespace clutch::v0::dist
