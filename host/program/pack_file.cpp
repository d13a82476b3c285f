// SPDX-License-Identifier: Apache-2.0
#include "program/pack_file.hpp"

#include "support/private_folder.hpp"
#include "support/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <utility>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

constexpr std::string_view kMagic = "CLUTCHPK";
constexpr std::uint32_t kFormat = 1;
constexpr std::size_t kDigestBytes = sizeof(Digest), kHeaderBytes = 96, kChecked = kHeaderBytes - kDigestBytes;
enum Kind : std::uint32_t { kPack = 0, kRecording = 1 };

struct Writer {
  std::string bytes;
  void number(std::uint64_t n, int width) {
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(n >> (8 * i));
  }
  void u32(std::size_t n) { number(n, 4); }
  void u64(std::size_t n) { number(n, 8); }
  void text(std::string_view t) { u32(t.size()), bytes += t; }
  void digest(const Digest& d) { bytes.append(reinterpret_cast<const char*>(d.data()), d.size()); }
};

/// Reads from the front. `whole` is false once a read would pass the end; then numbers are 0 and texts empty.
struct Reader {
  std::string_view left;
  bool whole = true, printable = true;

  std::string_view skip(std::uint64_t bytes) {
    if (bytes > left.size()) {
      whole = false, left = {};
      return {};
    }
    std::string_view part = left.substr(0, static_cast<std::size_t>(bytes));
    left.remove_prefix(part.size());
    return part;
  }
  std::uint64_t number(int width) {
    std::uint64_t n = 0;
    const std::string_view part = skip(static_cast<std::uint64_t>(width));
    for (std::size_t i = 0; i < part.size(); ++i) n |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    return n;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string any_text() { return std::string(skip(u32())); }
  /// A text that may be logged: nothing that a terminal would take for more than a letter.
  std::string text() {
    std::string t = any_text();
    printable = printable && std::all_of(t.begin(), t.end(), [](char c) { return c >= ' ' && c < 127; });
    return t;
  }
  Digest digest() {
    Digest d{};
    if (const std::string_view part = skip(kDigestBytes); !part.empty()) std::memcpy(d.data(), part.data(), kDigestBytes);
    return d;
  }
  /// A count of rows of at least so many bytes each, so that nobody can have memory made for more rows than the file has.
  std::uint32_t count(std::size_t least_bytes) {
    const std::uint32_t n = u32();
    if (n > left.size() / least_bytes) whole = false;
    return whole ? n : 0;
  }
};

}  // namespace

std::string printable(std::string text) {
  for (char& c : text)
    if (c < ' ' || c >= 127) c = '?';
  return text;
}

bool is_same_target(const PackTarget& a, const PackTarget& b) { return a.isa == b.isa && a.driver == b.driver && a.features == b.features; }

Digest pack_key(std::string_view options, std::string_view entry, std::string_view source) {
  return sha256(fmt::format("clutch pack {}\n{} {} {}\n{}\n{}\n{}", kFormat, options.size(), entry.size(), source.size(), options, entry, source));
}

std::string encode_pack(PackContents contents) {
  auto& programs = contents.programs;
  auto place = [](const PackProgram& p) { return std::pair(p.target, p.key); };
  std::stable_sort(programs.begin(), programs.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  programs.erase(std::unique(programs.begin(), programs.end(), [&](const auto& a, const auto& b) { return place(a) == place(b); }), programs.end());
  std::vector<std::string_view> blobs;
  std::vector<Digest> digests;
  std::map<Digest, std::uint32_t> known;
  auto number_of = [&](const std::string& blob) {
    if (blob.empty()) return PackFile::kNoBlob;
    const Digest digest = sha256(blob);
    const auto [at, added] = known.try_emplace(digest, static_cast<std::uint32_t>(blobs.size()));
    if (added) blobs.push_back(blob), digests.push_back(digest);
    return at->second;
  };
  Writer rows;
  rows.u32(programs.size());
  for (const PackProgram& p : programs) {
    rows.digest(p.key), rows.u32(p.target), rows.text(printable(p.entry)), rows.text(p.options), rows.u32(p.launches.size());
    for (const LocalSize& l : p.launches) rows.u32(l.x), rows.u32(l.y), rows.u32(l.z), rows.u32(l.wide);
    rows.u32(number_of(p.binary)), rows.u32(number_of(p.source));
  }
  Writer index;
  index.text(printable(contents.version));
  index.u32(contents.targets.size());
  for (const PackTarget& t : contents.targets)
    for (const std::string* text : {&t.isa, &t.driver, &t.features, &t.device, &t.made_by, &t.proved}) index.text(printable(*text));
  index.u32(blobs.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < blobs.size(); ++i) index.u64(blobs[i].size()), index.digest(digests[i]), bytes += blobs[i].size();
  index.bytes += rows.bytes;
  Writer file;
  file.bytes.reserve(kHeaderBytes + index.bytes.size() + bytes);
  file.bytes += kMagic;
  file.u32(kFormat), file.u32(contents.recording ? kRecording : kPack);
  file.u64(kHeaderBytes + index.bytes.size() + bytes), file.u64(index.bytes.size());
  file.digest(sha256(index.bytes));
  file.digest(sha256(file.bytes));
  file.bytes += index.bytes;
  for (const std::string_view blob : blobs) file.bytes += blob;
  return std::move(file.bytes);
}

bool merge_program(PackProgram& kept, PackProgram more, bool contains) {
  if (kept.source.empty()) kept.source = std::move(more.source);
  std::vector<LocalSize> all = kept.launches;
  for (const LocalSize& l : more.launches)
    if (std::find(all.begin(), all.end(), l) == all.end()) all.push_back(l);
  if (kept.binary.empty() || (contains && !more.binary.empty() && more.launches.size() > kept.launches.size()))
    kept.binary = std::move(more.binary), kept.launches = std::move(more.launches);
  if (contains) return kept.binary.empty() || kept.launches.size() >= all.size();
  kept.launches = std::move(all);
  return true;
}

std::vector<std::string> merge_packs(PackContents& into, PackContents more) {
  std::vector<std::string> incomplete;
  std::vector<std::uint32_t> target_of(more.targets.size());
  for (std::size_t t = 0; t < more.targets.size(); ++t) {
    auto same = [&](const PackTarget& other) { return is_same_target(other, more.targets[t]); };
    auto found = std::find_if(into.targets.begin(), into.targets.end(), same);
    target_of[t] = static_cast<std::uint32_t>(found - into.targets.begin());
    if (found == into.targets.end())
      into.targets.push_back(more.targets[t]);
    else if (found->proved != more.targets[t].proved)
      found->proved.clear();
  }
  std::map<std::pair<std::uint32_t, Digest>, std::size_t> known;
  for (std::size_t i = 0; i < into.programs.size(); ++i) known.try_emplace({into.programs[i].target, into.programs[i].key}, i);
  for (PackProgram& p : more.programs) {
    p.target = target_of[p.target];
    const auto [at, added] = known.try_emplace({p.target, p.key}, into.programs.size());
    if (added) {
      into.programs.push_back(std::move(p));
      continue;
    }
    PackProgram& kept = into.programs[at->second];
    // A binary of PoCL has code for its own local sizes alone.
    const bool contains = into.targets[p.target].isa.starts_with("pocl-");
    if (!merge_program(kept, std::move(p), contains)) incomplete.push_back(kept.entry);
  }
  return incomplete;
}

PackFile::Opened PackFile::open(const std::filesystem::path& path) {
  PrivateFile opened = open_private_file(path);
  if (!opened.exists) return {.file = nullptr, .exists = false, .problem = fmt::format("{} is not there", path.string())};
  if (!opened.refusal.empty()) return {.file = nullptr, .exists = true, .problem = std::move(opened.refusal)};
  return read_index(std::move(opened.read), opened.bytes, path.string());
}

PackFile::Opened PackFile::parse(std::string bytes, const std::string& name) {
  const std::uint64_t size = bytes.size();
  auto read = [bytes = std::move(bytes)](std::uint64_t offset, std::uint64_t part) -> std::optional<std::string> {
    if (offset > bytes.size() || part > bytes.size() - offset) return std::nullopt;
    return bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(part));
  };
  return read_index(std::move(read), size, name);
}

PackFile::Opened PackFile::read_index(Read read, std::uint64_t bytes, const std::string& name) {
  auto refused = [&](std::string why) { return Opened{.file = nullptr, .exists = true, .problem = fmt::format("{} is not used: {}", name, why)}; };
  const std::string head = read(0, std::min<std::uint64_t>(bytes, kHeaderBytes)).value_or("");
  Reader header{head};
  if (header.skip(kMagic.size()) != kMagic) return refused("it must be a kernel pack, which begins with CLUTCHPK");
  const std::uint32_t format = header.u32(), kind = header.u32();
  if (header.whole && format != kFormat) return refused(fmt::format("its format must be {}, got {}", kFormat, format));
  const std::uint64_t file_bytes = header.u64(), index_bytes = header.u64();
  const Digest index_digest = header.digest(), header_digest = header.digest();
  if (!header.whole) return refused(fmt::format("its header must have {} bytes, got {}", kHeaderBytes, bytes));
  if (sha256(std::string_view(head).substr(0, kChecked)) != header_digest) return refused("its header is damaged");
  if (file_bytes != bytes) return refused(fmt::format("it must have {} bytes, got {}", file_bytes, bytes));
  if (kind > kRecording || index_bytes > bytes - kHeaderBytes) return refused("its header must name a known kind and an index within the file");
  const std::string of_index = read(kHeaderBytes, index_bytes).value_or("");
  Reader index{of_index};
  if (sha256(index.left) != index_digest) return refused("its index is damaged");

  auto file = std::make_shared<PackFile>();
  file->name_ = name, file->read_ = std::move(read), file->recording_ = kind == kRecording;
  file->version_ = index.text();
  constexpr std::size_t kTexts = 6;
  file->targets_.resize(index.count(kTexts * 4));
  for (PackTarget& t : file->targets_)
    for (std::string* text : {&t.isa, &t.driver, &t.features, &t.device, &t.made_by, &t.proved}) *text = index.text();
  file->blobs_.resize(index.count(8 + kDigestBytes));
  std::uint64_t at = kHeaderBytes + index_bytes;
  for (Blob& b : file->blobs_) {
    b.offset = at, b.bytes = index.u64(), b.digest = index.digest();
    if (b.bytes > bytes - at) return refused("its blobs must end with the file");
    at += b.bytes;
  }
  file->rows_.resize(index.count(kDigestBytes + 6 * 4));
  bool sound = true;
  for (std::size_t i = 0; i < file->rows_.size() && index.whole; ++i) {
    IndexRow& row = file->rows_[i];
    row.program.key = index.digest(), row.program.target = index.u32(), row.program.entry = index.text(), row.program.options = index.any_text();
    row.program.launches.resize(index.count(4 * 4));
    for (LocalSize& l : row.program.launches) l.x = index.u32(), l.y = index.u32(), l.z = index.u32(), l.wide = index.u32() != 0;
    row.binary = index.u32(), row.source = index.u32();
    for (const std::uint32_t blob : {row.binary, row.source}) sound = sound && (blob == kNoBlob || blob < file->blobs_.size());
    sound = sound && row.program.target < file->targets_.size();
    if (i > 0) {
      const PackProgram& before = file->rows_[i - 1].program;
      sound = sound && std::pair(before.target, before.key) < std::pair(row.program.target, row.program.key);
    }
  }
  if (!index.whole || !index.left.empty() || at != bytes) return refused("the lengths of its index must be those of the file");
  if (!sound || !index.printable) return refused("its index must name blobs and targets that it has, in order, by printable texts");
  if (!file->recording_ && file->targets_.size() != 1) return refused(fmt::format("a pack must be for one ISA, got {}", file->targets_.size()));
  return {.file = std::move(file), .exists = true, .problem = {}};
}

const PackFile::IndexRow* PackFile::find(const Digest& key) const {
  auto place = [](const IndexRow& r) { return std::pair(r.program.target, r.program.key); };
  const std::pair wanted(std::uint32_t{0}, key);
  auto found = std::lower_bound(rows_.begin(), rows_.end(), wanted, [&](const IndexRow& r, const auto& w) { return place(r) < w; });
  return found != rows_.end() && place(*found) == wanted ? &*found : nullptr;
}

std::optional<std::string> PackFile::blob(std::uint32_t number) const {
  if (number >= blobs_.size()) return std::nullopt;
  const Blob& b = blobs_[number];
  std::optional<std::string> bytes = read_(b.offset, b.bytes);
  if (bytes && sha256(*bytes) != b.digest) bytes.reset();
  return bytes;
}

PackContents PackFile::contents(std::string& problem) const {
  PackContents all{.recording = recording_, .version = version_, .targets = targets_, .programs = {}};
  for (const IndexRow& row : rows_) {
    PackProgram program = row.program;
    bool whole = true;
    for (auto [number, to] : {std::pair(row.binary, &program.binary), std::pair(row.source, &program.source)}) {
      if (number == kNoBlob) continue;
      std::optional<std::string> bytes = blob(number);
      whole = whole && bytes;
      if (bytes) *to = std::move(*bytes);
    }
    if (whole)
      all.programs.push_back(std::move(program));
    else if (problem.empty())
      problem = fmt::format("{}: the program of {} ({}) is damaged", name_, row.program.entry, to_hex(row.program.key).substr(0, 16));
  }
  return all;
}

std::string write_pack(const std::filesystem::path& path, PackContents contents) {
  const std::string bytes = encode_pack(std::move(contents));
  const std::array parts{std::as_bytes(std::span(bytes))};
  return replace_file(path.string(), parts, 0644);
}

}}}  // namespace clutch::v0::detail
