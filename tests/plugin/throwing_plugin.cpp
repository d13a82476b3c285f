// SPDX-License-Identifier: Apache-2.0
// A plugin in C++ whose functions throw or give a number that is no status: addcmul_late computes f32 by the library's own, so that it passes its proof, but
// not 1000 elements, which no problem of a proof has. With IN_QUERY or IN_INIT it throws there, with ALWAYS in its proof; with GRAPHS_THROW_IN=c, i or r in
// create, instantiate or replay of a graph backend.
#include <clutch/plugin.h>

#include <stdexcept>

namespace {

const clutch_host_t* host;

clutch_status_t fail() {
#if defined(STATUS)
  return STATUS;
#elif defined(NUMBER)
  throw 7;
#else
  throw std::runtime_error("it has had enough");
#endif
}

extern "C" clutch_status_t addcmul(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* a, const clutch_tensor_t* b,
                                   const clutch_addc_options_t* options, const clutch_stream_t* stream) {
  std::int64_t dtype = 0, count = 0;
  if (host->api->tensor_dtype(x, &dtype) != CLUTCH_OK || host->api->tensor_numel(out, &count) != CLUTCH_OK) return CLUTCH_INTERNAL;
  if (dtype != CLUTCH_DTYPE_F32) return CLUTCH_NOT_SUPPORTED;
#if defined(ALWAYS)
  static_cast<void>(a), static_cast<void>(b), static_cast<void>(options), static_cast<void>(stream);
#else
  if (count != 1000) {
    clutch_addc_options_t own = *options;
    own.implementation = nullptr;
    return host->api->addcmul_out(out, x, a, b, &own, stream);
  }
#endif
  return fail();
}

extern "C" clutch_status_t init(const clutch_host_t* /*given*/) {
#if defined(IN_INIT)
  return fail();
#else
  return CLUTCH_OK;
#endif
}

#if defined(GRAPHS_THROW_IN)
clutch_status_t at(char step) { return step == GRAPHS_THROW_IN ? fail() : CLUTCH_OK; }
extern "C" clutch_status_t create(void** state) {
  *state = nullptr;
  return at('c');
}
extern "C" clutch_status_t instantiate(void* /*state*/, const clutch_graph_program_t* /*program*/) { return at('i'); }
extern "C" clutch_status_t replay(void* /*state*/, const clutch_graph_program_t* /*program*/, const clutch_stream_t* /*stream*/) { return at('r'); }
extern "C" void reset(void* /*state*/) {}
extern "C" void destroy(void* /*state*/) { fail(); }
#endif

}  // namespace

const clutch_plugin_t* clutch_plugin_query(std::int64_t /*abi*/, const clutch_host_t* given) {
#if defined(IN_QUERY)
  fail();
#endif
  host = given;
  static const clutch_plugin_op_t op = {sizeof op, "addcmul_out", "addcmul_late", 0, reinterpret_cast<void (*)()>(addcmul)};
  static const clutch_plugin_op_t* const ops[] = {&op};
#if defined(GRAPHS_THROW_IN)
  static const clutch_graph_backend_t backend = {sizeof backend, "demo_replay", create, instantiate, replay, reset, destroy};
  static const clutch_graph_backend_t* const backends[] = {&backend};
  constexpr std::size_t kBackends = 1;
#else
  static const clutch_graph_backend_t* const* const backends = nullptr;
  constexpr std::size_t kBackends = 0;
#endif
  static const clutch_plugin_t plugin = {sizeof plugin, CLUTCH_PLUGIN_ABI, "throws", "1.0", 1, init, ops, 1, backends, kBackends, nullptr, 0};
  return &plugin;
}
