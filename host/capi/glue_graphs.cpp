// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_graph_release(const clutch_graph_t* graph) { release(graph); }
void clutch_graph_annotation_release(const clutch_graph_annotation_t* graph_annotation) { release(graph_annotation); }
void clutch_profiler_release(const clutch_profiler_t* profiler) { release(profiler); }
void clutch_profiler_range_release(const clutch_profiler_range_t* range) { release(range); }
void clutch_graph_program_release(const clutch_graph_program_t* graph_program) { release(graph_program); }
clutch_status_t clutch_graph_create(const clutch_graph_options_t* options, clutch_graph_t** result) {
  return guarded("clutch_graph_create", [&] { clear(result); *result = new clutch_graph_t{Graph(capi::read(options, "options"))}; });
}
clutch_status_t clutch_graph_capture_begin(clutch_graph_t* graph, const clutch_stream_t* stream, const clutch_capture_options_t* options) {
  return guarded("clutch_graph_capture_begin", [&] { need(graph, "graph").capture_begin(capi::ref(stream), capi::read(options, "options")); });
}
clutch_status_t clutch_graph_capture_end(clutch_graph_t* graph) {
  return guarded("clutch_graph_capture_end", [&] { need(graph, "graph").capture_end(); });
}
clutch_status_t clutch_graph_capture_abandon(clutch_graph_t* graph) {
  return guarded("clutch_graph_capture_abandon", [&] { need(graph, "graph").capture_abandon(); });
}
clutch_status_t clutch_graph_is_capturing(const clutch_graph_t* graph, int64_t* result) {
  return guarded("clutch_graph_is_capturing", [&] { *cleared(result) = need(graph, "graph").is_capturing(); });
}
clutch_status_t clutch_graph_instantiate(clutch_graph_t* graph) {
  return guarded("clutch_graph_instantiate", [&] { need(graph, "graph").instantiate(); });
}
clutch_status_t clutch_graph_replay(clutch_graph_t* graph, const clutch_stream_t* stream) {
  return guarded("clutch_graph_replay", [&] { need(graph, "graph").replay(capi::ref(stream)); });
}
clutch_status_t clutch_graph_replay_with(clutch_graph_t* graph, const clutch_tensor_t* const* captured, size_t captured_count,
    const clutch_tensor_t* const* bound, size_t bound_count, const clutch_stream_t* stream) {
  return guarded("clutch_graph_replay_with", [&] { capi::graph_replay_with(capi::need(graph, "graph"), capi::tensors(captured, captured_count, "captured"),
    capi::tensors(bound, bound_count, "bound"), capi::ref(stream)); });
}
clutch_status_t clutch_graph_rebind(clutch_graph_t* graph, const clutch_tensor_t* const* captured, size_t captured_count, const clutch_tensor_t* const* bound,
    size_t bound_count) {
  return guarded("clutch_graph_rebind", [&] { capi::graph_rebind(capi::need(graph, "graph"), capi::tensors(captured, captured_count, "captured"),
    capi::tensors(bound, bound_count, "bound")); });
}
clutch_status_t clutch_graph_reset(clutch_graph_t* graph) {
  return guarded("clutch_graph_reset", [&] { need(graph, "graph").reset(); });
}
clutch_status_t clutch_graph_pool(const clutch_graph_t* graph, clutch_pool_id_t* result) {
  return guarded("clutch_graph_pool", [&] { write(need(graph, "graph").pool(), result, "result"); });
}
clutch_status_t clutch_graph_find(const clutch_graph_t* graph, const char* op_kernel_or_label, int64_t* values, size_t capacity, size_t* count) {
  return guarded("clutch_graph_find", [&] { put_numbers(need(graph, "graph").find(capi::text(op_kernel_or_label)), values, capacity, count); });
}
clutch_status_t clutch_graph_to_string(const clutch_graph_t* graph, clutch_graph_dump_t format, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_graph_to_string", [&] { put_text(need(graph, "graph").to_string(capi::enumerator<GraphDump>(format, "format")), text, capacity,
    length); });
}
clutch_status_t clutch_graph_debug_dump(const clutch_graph_t* graph, const char* path, clutch_graph_dump_t format) {
  return guarded("clutch_graph_debug_dump", [&] { need(graph, "graph").debug_dump(capi::text(path), capi::enumerator<GraphDump>(format, "format")); });
}
clutch_status_t clutch_graph_measure(clutch_graph_t* graph, int64_t replays, const clutch_stream_t* stream) {
  return guarded("clutch_graph_measure", [&] { capi::graph_measure(capi::need(graph, "graph"), capi::narrow<int>(replays, "replays"), capi::ref(stream)); });
}
clutch_status_t clutch_graph_update_number(clutch_graph_t* graph, int64_t node, const char* name, double value) {
  return guarded("clutch_graph_update_number", [&] { capi::graph_update_number(capi::need(graph, "graph"), capi::narrow<int>(node, "node"), capi::text(name),
    value); });
}
clutch_status_t clutch_graph_update_integer(clutch_graph_t* graph, int64_t node, const char* name, int64_t value) {
  return guarded("clutch_graph_update_integer", [&] { capi::graph_update_integer(capi::need(graph, "graph"), capi::narrow<int>(node, "node"), capi::text(name),
    value); });
}
clutch_status_t clutch_graph_update_tensor(clutch_graph_t* graph, int64_t node, const char* name, const clutch_tensor_t* tensor) {
  return guarded("clutch_graph_update_tensor", [&] { capi::graph_update_tensor(capi::need(graph, "graph"), capi::narrow<int>(node, "node"), capi::text(name),
    capi::ref(tensor)); });
}
clutch_status_t clutch_graph_save(const clutch_graph_t* graph, const char* path, const char* const* names, size_t names_count,
    const clutch_tensor_t* const* tensors, size_t tensors_count, const clutch_graph_save_options_t* options) {
  return guarded("clutch_graph_save", [&] { capi::graph_save(capi::ref(graph), capi::text(path), capi::texts(names, names_count, "names"),
    capi::tensors(tensors, tensors_count, "tensors"), capi::read(options, "options")); });
}
clutch_status_t clutch_graph_load(const char* path, const clutch_device_t* device, const clutch_graph_options_t* options, clutch_graph_t** result) {
  return guarded("clutch_graph_load", [&] { clear(result); *result = new clutch_graph_t{clutch::Graph::load(capi::text(path), capi::ref(device),
    capi::read(options, "options"))}; });
}
clutch_status_t clutch_graph_tensor(const clutch_graph_t* graph, const char* name, clutch_tensor_t** result) {
  return guarded("clutch_graph_tensor", [&] { clear(result); *result = new clutch_tensor_t{need(graph, "graph").tensor(capi::text(name))}; });
}
clutch_status_t clutch_graph_tensor_names(const clutch_graph_t* graph, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_graph_tensor_names", [&] { put_texts(need(graph, "graph").tensor_names(), text, capacity, length); });
}
clutch_status_t clutch_graph_annotation_create(const char* name, clutch_graph_annotation_t** result) {
  return guarded("clutch_graph_annotation_create",
    [&] { clear(result); *result = new clutch_graph_annotation_t{capi::graph_annotation_create(capi::text(name))}; });
}
clutch_status_t clutch_graph_backends(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_graph_backends", [&] { put_texts(clutch::graph_backends(), text, capacity, length); });
}
clutch_status_t clutch_graph_program_device(const clutch_graph_program_t* graph_program, clutch_device_t** result) {
  return guarded("clutch_graph_program_device", [&] { clear(result); *result = new clutch_device_t{need(graph_program, "graph_program").device()}; });
}
clutch_status_t clutch_graph_program_size(const clutch_graph_program_t* graph_program, int64_t* result) {
  return guarded("clutch_graph_program_size", [&] { *cleared(result) = need(graph_program, "graph_program").size(); });
}
clutch_status_t clutch_graph_program_kind(const clutch_graph_program_t* graph_program, int64_t node, clutch_graph_node_kind_t* result) {
  return guarded("clutch_graph_program_kind", [&] { *cleared(result) = static_cast<std::int64_t>(need(graph_program,
    "graph_program").kind(capi::narrow<int>(node, "node"))); });
}
clutch_status_t clutch_graph_program_enqueue(const clutch_graph_program_t* graph_program, int64_t node, const clutch_stream_t* stream) {
  return guarded("clutch_graph_program_enqueue", [&] { need(graph_program, "graph_program").enqueue(capi::narrow<int>(node, "node"), capi::ref(stream)); });
}
clutch_status_t clutch_launch(const clutch_kernel_source_t* source, const clutch_geometry_t* geometry, const clutch_argument_t* const* arguments,
    size_t arguments_count, const clutch_stream_t* stream) {
  return guarded("clutch_launch", [&] { capi::launch(source, capi::read(geometry, "geometry"), arguments, arguments_count, capi::ref(stream)); });
}
clutch_status_t clutch_profiler_create(const clutch_profiler_options_t* options, clutch_profiler_t** result) {
  return guarded("clutch_profiler_create", [&] { clear(result); *result = new clutch_profiler_t{profiler::Profiler(capi::read(options, "options"))}; });
}
clutch_status_t clutch_profiler_start(clutch_profiler_t* profiler) {
  return guarded("clutch_profiler_start", [&] { need(profiler, "profiler").start(); });
}
clutch_status_t clutch_profiler_stop(clutch_profiler_t* profiler) {
  return guarded("clutch_profiler_stop", [&] { need(profiler, "profiler").stop(); });
}
clutch_status_t clutch_profiler_step(clutch_profiler_t* profiler) {
  return guarded("clutch_profiler_step", [&] { need(profiler, "profiler").step(); });
}
clutch_status_t clutch_profiler_step_num(const clutch_profiler_t* profiler, int64_t* result) {
  return guarded("clutch_profiler_step_num", [&] { *cleared(result) = need(profiler, "profiler").step_num(); });
}
clutch_status_t clutch_profiler_add_metadata(clutch_profiler_t* profiler, const char* key, const char* value) {
  return guarded("clutch_profiler_add_metadata", [&] { need(profiler, "profiler").add_metadata(capi::text(key), capi::text(value)); });
}
clutch_status_t clutch_profiler_add_metadata_json(clutch_profiler_t* profiler, const char* key, const char* json) {
  return guarded("clutch_profiler_add_metadata_json", [&] { need(profiler, "profiler").add_metadata_json(capi::text(key), capi::text(json)); });
}
clutch_status_t clutch_profiler_table(const clutch_profiler_t* profiler, const clutch_profiler_table_options_t* options, char* text, size_t capacity,
    size_t* length) {
  return guarded("clutch_profiler_table", [&] { put_text(need(profiler, "profiler").table(capi::read(options, "options")), text, capacity, length); });
}
clutch_status_t clutch_profiler_totals(const clutch_profiler_t* profiler, clutch_profiler_profile_totals_t* result) {
  return guarded("clutch_profiler_totals", [&] { write(need(profiler, "profiler").totals(), result, "result"); });
}
clutch_status_t clutch_profiler_export_chrome_trace(const clutch_profiler_t* profiler, const char* path, const clutch_profiler_trace_options_t* options) {
  return guarded("clutch_profiler_export_chrome_trace", [&] { need(profiler, "profiler").export_chrome_trace(capi::text(path), capi::read(options,
    "options")); });
}
clutch_status_t clutch_profiler_export_html(const clutch_profiler_t* profiler, const char* path) {
  return guarded("clutch_profiler_export_html", [&] { need(profiler, "profiler").export_html(capi::text(path)); });
}
clutch_status_t clutch_profiler_export_kernel_annotations(const clutch_profiler_t* profiler, const char* path) {
  return guarded("clutch_profiler_export_kernel_annotations", [&] { need(profiler, "profiler").export_kernel_annotations(capi::text(path)); });
}
clutch_status_t clutch_profiler_range_create(const char* name, clutch_profiler_range_t** result) {
  return guarded("clutch_profiler_range_create", [&] { clear(result); *result = new clutch_profiler_range_t{profiler::Range(capi::text(name))}; });
}
clutch_status_t clutch_profiler_range_end(clutch_profiler_range_t* range) {
  return guarded("clutch_profiler_range_end", [&] { need(range, "range").end(); });
}

}  // extern "C"
