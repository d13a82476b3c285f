// SPDX-License-Identifier: Apache-2.0
// Annotations of graphs' nodes as PyTorch's merge tool reads them: a pickle of protocol 2, {graph_id << 32 | node: [{key: value}, ...]}.
#include "profile/output.hpp"
#include "profile/profile.hpp"

#include <set>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Appends what Python's pickle reads; of its operations no more than such a dictionary takes.
class Pickle {
 public:
  Pickle() : bytes_("\x80\x02") {}
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  void begin_list() { bytes_ += "]("; }
  void end_list() { bytes_ += 'e'; }
  void text(const std::string& value) {
    bytes_ += 'X';
    little_endian(value.size(), 4);
    bytes_ += value;
  }
  void number(std::uint64_t value) {
    bytes_ += "\x8a\x09";  // nine bytes, so that no bit is taken for a sign
    little_endian(value, 8);
    bytes_ += '\0';
  }
  std::string finish() { return std::move(bytes_) + '.'; }

 private:
  void little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> 8 * i & 255);
  }
  std::string bytes_;
};

}  // namespace

void write_annotations(const Profile& profile, const std::string& path) {
  OutputFile out(path, "profiler::Profiler::export_kernel_annotations");
  Pickle pickle;
  pickle.begin_dict();
  for (const auto& [graph, nodes] : profile.log->graph_labels)
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].empty()) continue;
      pickle.number(std::uint64_t{graph} << 32 | node);
      pickle.begin_list();
      for (const NodeLabel& label : nodes[node]) {
        pickle.begin_dict();
        pickle.text("str");
        pickle.text(label.name);
        for (const auto& [key, value] : label.values) {
          pickle.text(key);
          pickle.text(value);
        }
        pickle.end_dict();
      }
      pickle.end_list();
    }
  pickle.end_dict();
  out.write(pickle.finish());
  out.commit();
}

}}}  // namespace clutch::v0::detail
