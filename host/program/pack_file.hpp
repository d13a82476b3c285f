// SPDX-License-Identifier: Apache-2.0
// Files of kernel packs and recordings, without a device. The format, version 1, in little-endian order:
//
//   header   96 bytes: "CLUTCHPK", format (4), kind (4), bytes of the file (8), bytes of the index (8), SHA-256 of the index, SHA-256 of the header so far
//   index    library version; targets; blobs (bytes, SHA-256); programs in ascending order of (target, key), each with its blobs' numbers
//   blobs    binaries and sources, one after another, up to the end of the file
//
// Every byte of the file is covered by one of the digests, and the reader takes nothing for granted: it checks header and index when it opens a file, and a
// blob when the blob is asked for. Texts are a length (4) and printable bytes, or, of options, any bytes.
#pragma once
#include "program/sha256.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

/// Name of the files of packs behind their last dot.
inline constexpr const char* kPackSuffix = ".clutchpack";

/// Names the file to which processes that use packs add what they took from packs and what they built; for clutch-pack prove.
inline constexpr const char* kPackCountsVariable = "LIBCLUTCH_PACK_COUNTS";

/// A local size of a kernel. `wide`: of launches with 2^16 - 1 or more work-items in a dimension, which PoCL compiles apart; else false.
struct LocalSize {
  std::uint32_t x = 0, y = 0, z = 0;
  bool wide = false;
  friend bool operator==(const LocalSize&, const LocalSize&) = default;
};

/// Which devices programs are for.
struct PackTarget {
  std::string isa;       ///< as isa_of() names it
  std::string driver;    ///< driver and version that must be the device's; empty: any
  std::string features;  ///< instructions that the processor must have, between blanks; empty: none
  std::string device;    ///< device that the programs were recorded on; empty: none, they were compiled without one
  std::string made_by;   ///< compilers, or the library and its driver
  std::string proved;    ///< what ran on a device of this ISA, and on which one; empty: nothing did
};
/// True if the same devices take programs of both.
bool is_same_target(const PackTarget& a, const PackTarget& b);

/// Texts as files of packs hold them: letters that no terminal takes for more than a letter; '?' stands for others.
std::string printable(std::string text);

struct PackProgram {
  Digest key{};              ///< pack_key() of options, entry and source
  std::uint32_t target = 0;  ///< index of its target
  std::string entry, options;
  std::vector<LocalSize> launches;  ///< recorded ones; on PoCL those that the binary contains
  std::string binary;               ///< empty in recordings of processes that ended before the program was saved
  std::string source;               ///< in recordings alone
};

/// What a file holds. A pack has one target.
struct PackContents {
  bool recording = false;
  std::string version;  ///< of the library
  std::vector<PackTarget> targets;
  std::vector<PackProgram> programs;
};

/// Key of a program among those of one ISA.
Digest pack_key(std::string_view options, std::string_view entry, std::string_view source);

/// The bytes of a file. Programs are sorted, equal blobs are stored once; of programs with equal keys and targets the first is kept.
std::string encode_pack(PackContents contents);

/// Adds what another recording of a program has. One binary is kept, with the launches of both; with `contains`, on PoCL, the one that contains more local
/// sizes, with its own. Returns false if neither binary contains all local sizes, so that some are lost.
bool merge_program(PackProgram& into, PackProgram more, bool contains);

/// Adds what `more` has, program by program. A proof stays if both have the same. Returns the entries of programs that lost local sizes.
std::vector<std::string> merge_packs(PackContents& into, PackContents more);

/// An open file. Its index is in memory, its blobs are read when they are asked for.
class PackFile {
 public:
  static constexpr std::uint32_t kNoBlob = 0xFFFF'FFFF;
  struct Blob {
    std::uint64_t offset = 0, bytes = 0;
    Digest digest{};
  };
  struct IndexRow {
    PackProgram program;  ///< without binary and source
    std::uint32_t binary = kNoBlob, source = kNoBlob;
  };
  struct Opened {
    std::shared_ptr<const PackFile> file;  ///< null if `problem` says why
    bool exists = false;
    std::string problem;  ///< names the file and what was expected
  };
  /// Opens a file that only trusted users can have written (support/private_folder.hpp).
  static Opened open(const std::filesystem::path& path);
  /// Reads bytes. `name` stands in messages.
  static Opened parse(std::string bytes, const std::string& name);

  const std::string& name() const noexcept { return name_; }
  bool recording() const noexcept { return recording_; }
  const std::string& version() const noexcept { return version_; }
  const std::vector<PackTarget>& targets() const noexcept { return targets_; }
  const std::vector<IndexRow>& rows() const noexcept { return rows_; }
  /// The program of a key of target 0; null if there is none.
  const IndexRow* find(const Digest& key) const;
  /// A blob whose digest is right; nullopt if it is not, or if the file has become shorter.
  std::optional<std::string> blob(std::uint32_t number) const;
  /// Everything. `problem` names the first blob that is damaged, without which the result is left.
  PackContents contents(std::string& problem) const;

 private:
  /// Parts of the file's bytes; nullopt past its end.
  using Read = std::function<std::optional<std::string>(std::uint64_t offset, std::uint64_t bytes)>;
  static Opened read_index(Read read, std::uint64_t file_bytes, const std::string& name);

  std::string name_;
  Read read_;
  bool recording_ = false;
  std::string version_;
  std::vector<PackTarget> targets_;
  std::vector<Blob> blobs_;
  std::vector<IndexRow> rows_;
};

/// Writes a file of a pack or recording by rename, for this user alone to write. Returns what failed; empty on success.
std::string write_pack(const std::filesystem::path& path, PackContents contents);

}}}  // namespace clutch::v0::detail
