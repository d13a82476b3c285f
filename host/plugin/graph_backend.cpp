// SPDX-License-Identifier: Apache-2.0
#include "plugin/graph_backend.hpp"

#include <clutch/error.hpp>
#include <clutch/graph.hpp>

#include "capi/plugin_status.hpp"
#include "capi/types.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

class ByPlugin : public GraphImpl {
 public:
  explicit ByPlugin(const clutch_graph_backend_t& backend) : backend_(backend) {
    check("create", [&] { return backend_.create(&state_); });
  }
  ~ByPlugin() override {
    capi::call_plugin([&] {
      backend_.destroy(state_);
      return CLUTCH_OK;
    });
  }
  void instantiate(const GraphProgram& program) override {
    const clutch_graph_program_t given{program};
    check("instantiate", [&] { return backend_.instantiate(state_, &given); });
  }
  void replay(const GraphProgram& program, const Stream& stream) override {
    const clutch_graph_program_t given{program};
    const clutch_stream_t on{stream};
    check("replay", [&] { return backend_.replay(state_, &given, &on); });
  }
  void reset() override {
    check("reset", [&] {
      backend_.reset(state_);
      return CLUTCH_OK;
    });
  }

 private:
  template <class F>
  void check(std::string_view what, const F& f) const {
    const clutch_status_t status = capi::call_plugin(f);
    if (status != CLUTCH_OK)
      throw Error(capi::code_of(status), "Graph", fmt::format("graph backend {} failed in {}: {}", backend_.name, what, capi::reason_of(status)));
  }
  clutch_graph_backend_t backend_;
  void* state_ = nullptr;
};

}  // namespace

void add_graph_backend(const clutch_graph_backend_t& backend) {
  const std::vector<std::string> names = graph_backends();
  if (std::find(names.begin(), names.end(), backend.name) != names.end())
    throw Error(ErrorCode::invalid_argument, "plugins",
                fmt::format("a graph backend must have a name of its own, got {}, which is there already", backend.name));
  register_graph_backend(backend.name, [backend] { return std::make_unique<ByPlugin>(backend); });
}

}}}  // namespace clutch::v0::detail
