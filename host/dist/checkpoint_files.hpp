// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint: which rank writes which parts, and where a part's elements are in files of other parts.
#pragma once
#include <clutch/dist/sharded.hpp>
#include <clutch/files.hpp>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace dist { namespace detail {

struct CheckpointFile {
  std::string name;
  std::vector<std::byte> bytes;
};

/// Errors: invalid_argument; invalid_dtype.
void check_saved(const char* op, const std::string& name, const Sharded& x);
/// The files that this rank writes; waits for the stream.
std::vector<CheckpointFile> files_of(const char* op, const std::map<std::string, Sharded>& tensors, const Stream& stream);

/// Elements that a file's box and a local part share.
struct CopiedBox {
  std::span<const std::byte> source;  ///< the file's box
  Dims sizes;                         ///< of what they share
  Dims source_sizes, source_at;
  Dims target_sizes, target_at;
  std::size_t element;  ///< bytes
  /// Copies them to the bytes of the local part.
  void copy_to(std::span<std::byte> target) const;
};

class CheckpointReader {
 public:
  /// Errors: io.
  CheckpointReader(const char* op, const std::string& path);
  /// What brings all elements of the local part. Errors: those of load().
  std::vector<CopiedBox> copies_to(const std::string& name, const Sharded& x) const;

 private:
  struct SavedBox {
    Box box;
    DType dtype;
    std::span<const std::byte> bytes;
    std::size_t file;
  };
  [[noreturn]] void bad(std::string_view file, const std::string& got) const;
  const char* op_;
  std::string path_;
  std::vector<Safetensors> files_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<SavedBox>, std::less<>> chunks_;
};

}}}}  // namespace clutch::v0::dist::detail
