// SPDX-License-Identifier: Apache-2.0
// Annotations of graphs' nodes as PyTorch's merge tool reads them: a pickle of protocol 2, {graph_id << 32 | node: [{key: value}, ...]}.
#include "profile/output.hpp"
#include "profile/profile.hpp"
#include "runtime/pickle.hpp"

#include <set>

namespace clutch { inline namespace v0 { namespace detail {

void write_annotations(const Profile& profile, const std::string& path) {
  OutputFile out(path, "profiler::Profiler::export_kernel_annotations");
  PickleWriter pickle;
  pickle.begin_dict();
  for (const auto& [graph, nodes] : profile.log->graph_labels)
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].empty()) continue;
      pickle.integer(std::uint64_t{graph} << 32 | node);
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
