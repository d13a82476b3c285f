// SPDX-License-Identifier: Apache-2.0
// Made by scripts/c_abi of host/capi/abi.def. Do not edit.
#include "capi/hand.hpp"

using namespace clutch;        // NOLINT(google-build-using-namespace)
using namespace clutch::capi;  // NOLINT(google-build-using-namespace)

extern "C" {

void clutch_device_release(const clutch_device_t* device) { release(device); }
void clutch_stream_release(const clutch_stream_t* stream) { release(stream); }
void clutch_event_release(const clutch_event_t* event) { release(event); }
void clutch_tensor_release(const clutch_tensor_t* tensor) { release(tensor); }
void clutch_storage_handle_release(const clutch_storage_handle_t* storage_handle) { release(storage_handle); }
void clutch_generator_release(const clutch_generator_t* generator) { release(generator); }
void clutch_partition_release(const clutch_partition_t* partition) { release(partition); }
void clutch_partition_guard_release(const clutch_partition_guard_t* partition_guard) { release(partition_guard); }
void clutch_mem_pool_release(const clutch_mem_pool_t* mem_pool) { release(mem_pool); }
void clutch_pool_guard_release(const clutch_pool_guard_t* pool_guard) { release(pool_guard); }
void clutch_memory_label_guard_release(const clutch_memory_label_guard_t* memory_label_guard) { release(memory_label_guard); }
void clutch_host_mapping_release(const clutch_host_mapping_t* host_mapping) { release(host_mapping); }
void clutch_safetensors_release(const clutch_safetensors_t* safetensors) { release(safetensors); }
clutch_status_t clutch_device_count(int64_t* result) {
  return guarded("clutch_device_count", [&] { *cleared(result) = clutch::device_count(); });
}
clutch_status_t clutch_device_at(int64_t index, clutch_device_t** result) {
  return guarded("clutch_device_at", [&] { clear(result); *result = new clutch_device_t{clutch::device(capi::narrow<int>(index, "index"))}; });
}
clutch_status_t clutch_select_devices(const char* selector, clutch_device_t** results, size_t capacity, size_t* count) {
  return guarded("clutch_select_devices", [&] { put_objects(clutch::select_devices(capi::text(selector)), results, capacity, count); });
}
clutch_status_t clutch_device_create(const char* selector, clutch_device_t** result) {
  return guarded("clutch_device_create", [&] { clear(result); *result = new clutch_device_t{Device(capi::text(selector))}; });
}
clutch_status_t clutch_default_device(clutch_device_t** result) {
  return guarded("clutch_default_device", [&] { clear(result); *result = new clutch_device_t{clutch::default_device()}; });
}
clutch_status_t clutch_set_default_device(const clutch_device_t* device) {
  return guarded("clutch_set_default_device", [&] { clutch::set_default_device(capi::ref(device)); });
}
clutch_status_t clutch_current_device(clutch_device_t** result) {
  return guarded("clutch_current_device", [&] { clear(result); *result = new clutch_device_t{clutch::current_device()}; });
}
clutch_status_t clutch_set_current_device(const clutch_device_t* device) {
  return guarded("clutch_set_current_device", [&] { clutch::set_current_device(capi::ref(device)); });
}
clutch_status_t clutch_device_index(const clutch_device_t* device, int64_t* result) {
  return guarded("clutch_device_index", [&] { *cleared(result) = need(device, "device").index(); });
}
clutch_status_t clutch_device_type(const clutch_device_t* device, clutch_device_type_t* result) {
  return guarded("clutch_device_type", [&] { *cleared(result) = static_cast<std::int64_t>(need(device, "device").type()); });
}
clutch_status_t clutch_device_name(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_name", [&] { put_text(need(device, "device").name(), text, capacity, length); });
}
clutch_status_t clutch_device_vendor(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_vendor", [&] { put_text(need(device, "device").vendor(), text, capacity, length); });
}
clutch_status_t clutch_device_platform(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_platform", [&] { put_text(need(device, "device").platform(), text, capacity, length); });
}
clutch_status_t clutch_device_driver_version(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_driver_version", [&] { put_text(need(device, "device").driver_version(), text, capacity, length); });
}
clutch_status_t clutch_device_extensions(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_extensions", [&] { put_text(need(device, "device").extensions(), text, capacity, length); });
}
clutch_status_t clutch_device_uuid(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_uuid", [&] { put_text(need(device, "device").uuid(), text, capacity, length); });
}
clutch_status_t clutch_device_selector(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_selector", [&] { put_text(need(device, "device").selector(), text, capacity, length); });
}
clutch_status_t clutch_device_quirks(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_device_quirks", [&] { put_texts(need(device, "device").quirks(), text, capacity, length); });
}
clutch_status_t clutch_device_traits(const clutch_device_t* device, clutch_device_traits_t* result) {
  return guarded("clutch_device_traits", [&] { write(need(device, "device").traits(), result, "result"); });
}
clutch_status_t clutch_device_supports(const clutch_device_t* device, clutch_dtype_t dtype, int64_t* result) {
  return guarded("clutch_device_supports", [&] { *cleared(result) = need(device, "device").supports(capi::enumerator<DType>(dtype, "dtype")); });
}
clutch_status_t clutch_synchronize(const clutch_device_t* device) {
  return guarded("clutch_synchronize", [&] { clutch::synchronize(capi::ref(device)); });
}
clutch_status_t clutch_stream_create(const clutch_device_t* device, const clutch_stream_options_t* options, clutch_stream_t** result) {
  return guarded("clutch_stream_create", [&] { clear(result); *result = new clutch_stream_t{Stream(capi::ref(device), capi::read(options, "options"))}; });
}
clutch_status_t clutch_default_stream(const clutch_device_t* device, clutch_stream_t** result) {
  return guarded("clutch_default_stream", [&] { clear(result); *result = new clutch_stream_t{clutch::default_stream(capi::ref(device))}; });
}
clutch_status_t clutch_current_stream(const clutch_device_t* device, clutch_stream_t** result) {
  return guarded("clutch_current_stream", [&] { clear(result); *result = new clutch_stream_t{clutch::current_stream(capi::ref(device))}; });
}
clutch_status_t clutch_set_current_stream(const clutch_stream_t* stream) {
  return guarded("clutch_set_current_stream", [&] { clutch::set_current_stream(capi::ref(stream)); });
}
clutch_status_t clutch_stream_device(const clutch_stream_t* stream, clutch_device_t** result) {
  return guarded("clutch_stream_device", [&] { clear(result); *result = new clutch_device_t{need(stream, "stream").device()}; });
}
clutch_status_t clutch_stream_id(const clutch_stream_t* stream, uint64_t* result) {
  return guarded("clutch_stream_id", [&] { *cleared(result) = need(stream, "stream").id(); });
}
clutch_status_t clutch_stream_priority(const clutch_stream_t* stream, clutch_stream_priority_t* result) {
  return guarded("clutch_stream_priority", [&] { *cleared(result) = static_cast<std::int64_t>(need(stream, "stream").priority()); });
}
clutch_status_t clutch_stream_partition(const clutch_stream_t* stream, clutch_partition_t** result) {
  return guarded("clutch_stream_partition", [&] { clear(result); *result = new clutch_partition_t{need(stream, "stream").partition()}; });
}
clutch_status_t clutch_stream_query(const clutch_stream_t* stream, int64_t* result) {
  return guarded("clutch_stream_query", [&] { *cleared(result) = need(stream, "stream").query(); });
}
clutch_status_t clutch_stream_synchronize(const clutch_stream_t* stream) {
  return guarded("clutch_stream_synchronize", [&] { need(stream, "stream").synchronize(); });
}
clutch_status_t clutch_stream_wait(const clutch_stream_t* stream, const clutch_event_t* event) {
  return guarded("clutch_stream_wait", [&] { need(stream, "stream").wait(capi::ref(event)); });
}
clutch_status_t clutch_stream_flush(const clutch_stream_t* stream) {
  return guarded("clutch_stream_flush", [&] { need(stream, "stream").flush(); });
}
clutch_status_t clutch_stream_is_capturing(const clutch_stream_t* stream, int64_t* result) {
  return guarded("clutch_stream_is_capturing", [&] { *cleared(result) = need(stream, "stream").is_capturing(); });
}
clutch_status_t clutch_stream_reset(const clutch_stream_t* stream) {
  return guarded("clutch_stream_reset", [&] { need(stream, "stream").reset(); });
}
clutch_status_t clutch_event_create(clutch_event_t** result) {
  return guarded("clutch_event_create", [&] { clear(result); *result = new clutch_event_t{Event()}; });
}
clutch_status_t clutch_event_record(clutch_event_t* event, const clutch_stream_t* stream) {
  return guarded("clutch_event_record", [&] { need(event, "event").record(capi::ref(stream)); });
}
clutch_status_t clutch_event_query(const clutch_event_t* event, int64_t* result) {
  return guarded("clutch_event_query", [&] { *cleared(result) = need(event, "event").query(); });
}
clutch_status_t clutch_event_wait(const clutch_event_t* event) {
  return guarded("clutch_event_wait", [&] { need(event, "event").wait(); });
}
clutch_status_t clutch_elapsed_ms(const clutch_event_t* start, const clutch_event_t* end, double* result) {
  return guarded("clutch_elapsed_ms", [&] { *cleared(result) = clutch::elapsed_ms(capi::ref(start), capi::ref(end)); });
}
clutch_status_t clutch_partition_create(const clutch_device_t* device, const clutch_partition_options_t* options, clutch_partition_t** result) {
  return guarded("clutch_partition_create", [&] { clear(result); *result = new clutch_partition_t{clutch::Partition::create(capi::ref(device),
    capi::read(options, "options"))}; });
}
clutch_status_t clutch_partition_split(const clutch_device_t* device, const int64_t* units, size_t units_count, clutch_partition_t** results, size_t capacity,
    size_t* count) {
  return guarded("clutch_partition_split", [&] { put_objects(clutch::Partition::split(capi::ref(device), capi::i32s(units, units_count, "units")), results,
    capacity, count); });
}
clutch_status_t clutch_partition_device(const clutch_partition_t* partition, clutch_device_t** result) {
  return guarded("clutch_partition_device", [&] { clear(result); *result = new clutch_device_t{need(partition, "partition").device()}; });
}
clutch_status_t clutch_partition_units(const clutch_partition_t* partition, int64_t* result) {
  return guarded("clutch_partition_units", [&] { *cleared(result) = need(partition, "partition").units(); });
}
clutch_status_t clutch_partition_first_unit(const clutch_partition_t* partition, int64_t* result) {
  return guarded("clutch_partition_first_unit", [&] { *cleared(result) = need(partition, "partition").first_unit(); });
}
clutch_status_t clutch_partition_isolation(const clutch_partition_t* partition, clutch_isolation_t* result) {
  return guarded("clutch_partition_isolation", [&] { *cleared(result) = static_cast<std::int64_t>(need(partition, "partition").isolation()); });
}
clutch_status_t clutch_partition_workqueue_limit(const clutch_partition_t* partition, int64_t* result) {
  return guarded("clutch_partition_workqueue_limit", [&] { *cleared(result) = need(partition, "partition").workqueue_limit(); });
}
clutch_status_t clutch_partition_traits(const clutch_partition_t* partition, clutch_device_traits_t* result) {
  return guarded("clutch_partition_traits", [&] { write(need(partition, "partition").traits(), result, "result"); });
}
clutch_status_t clutch_partition_stream(const clutch_partition_t* partition, clutch_stream_t** result) {
  return guarded("clutch_partition_stream", [&] { clear(result); *result = new clutch_stream_t{need(partition, "partition").stream()}; });
}
clutch_status_t clutch_partition_make_stream(const clutch_partition_t* partition, const clutch_stream_options_t* options, clutch_stream_t** result) {
  return guarded("clutch_partition_make_stream", [&] { clear(result); *result = new clutch_stream_t{need(partition, "partition").make_stream(capi::read(options,
    "options"))}; });
}
clutch_status_t clutch_free_units(const clutch_device_t* device, int64_t* result) {
  return guarded("clutch_free_units", [&] { *cleared(result) = clutch::free_units(capi::ref(device)); });
}
clutch_status_t clutch_partition_guard_create(const clutch_partition_t* partition, clutch_partition_guard_t** result) {
  return guarded("clutch_partition_guard_create", [&] { clear(result); *result = new clutch_partition_guard_t{PartitionGuard(capi::ref(partition))}; });
}
clutch_status_t clutch_empty(const int64_t* sizes, size_t sizes_count, const clutch_tensor_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_empty", [&] { clear(result); *result = new clutch_tensor_t{clutch::empty(capi::dims(sizes, sizes_count, "sizes"), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_zeros(const int64_t* sizes, size_t sizes_count, const clutch_tensor_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_zeros", [&] { clear(result); *result = new clutch_tensor_t{clutch::zeros(capi::dims(sizes, sizes_count, "sizes"), capi::read(options,
    "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_full(const int64_t* sizes, size_t sizes_count, double value, const clutch_tensor_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_full", [&] { clear(result); *result = new clutch_tensor_t{clutch::full(capi::dims(sizes, sizes_count, "sizes"), value,
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_arange(double start, double end, double step, const clutch_tensor_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_arange", [&] { clear(result); *result = new clutch_tensor_t{clutch::arange(start, end, step, capi::read(options, "options"),
    capi::ref(stream))}; });
}
clutch_status_t clutch_from_bytes(const void* data, size_t data_size, const int64_t* sizes, size_t sizes_count, const clutch_tensor_options_t* options,
    const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_from_bytes", [&] { clear(result); *result = new clutch_tensor_t{capi::from_bytes(capi::bytes(data, data_size, "data"),
    capi::dims(sizes, sizes_count, "sizes"), capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_tensor_dtype(const clutch_tensor_t* tensor, clutch_dtype_t* result) {
  return guarded("clutch_tensor_dtype", [&] { *cleared(result) = static_cast<std::int64_t>(need(tensor, "tensor").dtype()); });
}
clutch_status_t clutch_tensor_device(const clutch_tensor_t* tensor, clutch_device_t** result) {
  return guarded("clutch_tensor_device", [&] { clear(result); *result = new clutch_device_t{need(tensor, "tensor").device()}; });
}
clutch_status_t clutch_tensor_rank(const clutch_tensor_t* tensor, int64_t* result) {
  return guarded("clutch_tensor_rank", [&] { *cleared(result) = need(tensor, "tensor").rank(); });
}
clutch_status_t clutch_tensor_sizes(const clutch_tensor_t* tensor, int64_t* values, size_t capacity, size_t* count) {
  return guarded("clutch_tensor_sizes", [&] { put_numbers(need(tensor, "tensor").sizes(), values, capacity, count); });
}
clutch_status_t clutch_tensor_strides(const clutch_tensor_t* tensor, int64_t* values, size_t capacity, size_t* count) {
  return guarded("clutch_tensor_strides", [&] { put_numbers(need(tensor, "tensor").strides(), values, capacity, count); });
}
clutch_status_t clutch_tensor_size(const clutch_tensor_t* tensor, int64_t dim, int64_t* result) {
  return guarded("clutch_tensor_size", [&] { *cleared(result) = need(tensor, "tensor").size(capi::narrow<int>(dim, "dim")); });
}
clutch_status_t clutch_tensor_stride(const clutch_tensor_t* tensor, int64_t dim, int64_t* result) {
  return guarded("clutch_tensor_stride", [&] { *cleared(result) = need(tensor, "tensor").stride(capi::narrow<int>(dim, "dim")); });
}
clutch_status_t clutch_tensor_numel(const clutch_tensor_t* tensor, int64_t* result) {
  return guarded("clutch_tensor_numel", [&] { *cleared(result) = need(tensor, "tensor").numel(); });
}
clutch_status_t clutch_tensor_nbytes(const clutch_tensor_t* tensor, uint64_t* result) {
  return guarded("clutch_tensor_nbytes", [&] { *cleared(result) = need(tensor, "tensor").nbytes(); });
}
clutch_status_t clutch_tensor_byte_offset(const clutch_tensor_t* tensor, uint64_t* result) {
  return guarded("clutch_tensor_byte_offset", [&] { *cleared(result) = need(tensor, "tensor").byte_offset(); });
}
clutch_status_t clutch_tensor_is_contiguous(const clutch_tensor_t* tensor, int64_t* result) {
  return guarded("clutch_tensor_is_contiguous", [&] { *cleared(result) = need(tensor, "tensor").is_contiguous(); });
}
clutch_status_t clutch_tensor_shares_storage(const clutch_tensor_t* tensor, const clutch_tensor_t* other, int64_t* result) {
  return guarded("clutch_tensor_shares_storage", [&] { *cleared(result) = need(tensor, "tensor").shares_storage(capi::ref(other)); });
}
clutch_status_t clutch_tensor_slice(const clutch_tensor_t* tensor, int64_t dim, int64_t begin, int64_t end, int64_t step, clutch_tensor_t** result) {
  return guarded("clutch_tensor_slice", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").slice(capi::narrow<int>(dim, "dim"), begin,
    end, step)}; });
}
clutch_status_t clutch_tensor_select(const clutch_tensor_t* tensor, int64_t dim, int64_t index, clutch_tensor_t** result) {
  return guarded("clutch_tensor_select", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").select(capi::narrow<int>(dim, "dim"),
    index)}; });
}
clutch_status_t clutch_tensor_transpose(const clutch_tensor_t* tensor, int64_t dim0, int64_t dim1, clutch_tensor_t** result) {
  return guarded("clutch_tensor_transpose", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").transpose(capi::narrow<int>(dim0, "dim0"),
    capi::narrow<int>(dim1, "dim1"))}; });
}
clutch_status_t clutch_tensor_mt(const clutch_tensor_t* tensor, clutch_tensor_t** result) {
  return guarded("clutch_tensor_mt", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").mT()}; });
}
clutch_status_t clutch_tensor_reshape(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count, clutch_tensor_t** result) {
  return guarded("clutch_tensor_reshape", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").reshape(capi::dims(sizes, sizes_count,
    "sizes"))}; });
}
clutch_status_t clutch_tensor_expand(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count, clutch_tensor_t** result) {
  return guarded("clutch_tensor_expand", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").expand(capi::dims(sizes, sizes_count,
    "sizes"))}; });
}
clutch_status_t clutch_tensor_unsqueeze(const clutch_tensor_t* tensor, int64_t dim, clutch_tensor_t** result) {
  return guarded("clutch_tensor_unsqueeze", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").unsqueeze(capi::narrow<int>(dim,
    "dim"))}; });
}
clutch_status_t clutch_tensor_squeeze(const clutch_tensor_t* tensor, int64_t dim, clutch_tensor_t** result) {
  return guarded("clutch_tensor_squeeze", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").squeeze(capi::narrow<int>(dim, "dim"))}; });
}
clutch_status_t clutch_tensor_as_strided(const clutch_tensor_t* tensor, const int64_t* sizes, size_t sizes_count, const int64_t* strides, size_t strides_count,
    int64_t offset, clutch_tensor_t** result) {
  return guarded("clutch_tensor_as_strided", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").as_strided(capi::dims(sizes, sizes_count,
    "sizes"), capi::dims(strides, strides_count, "strides"), offset)}; });
}
clutch_status_t clutch_tensor_contiguous(const clutch_tensor_t* tensor, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_tensor_contiguous", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").contiguous(capi::ref(stream))}; });
}
clutch_status_t clutch_tensor_clone(const clutch_tensor_t* tensor, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_tensor_clone", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").clone(capi::ref(stream))}; });
}
clutch_status_t clutch_tensor_to(const clutch_tensor_t* tensor, clutch_dtype_t dtype, const clutch_cast_options_t* options, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_tensor_to", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").to(capi::enumerator<DType>(dtype, "dtype"),
    capi::read(options, "options"), capi::ref(stream))}; });
}
clutch_status_t clutch_tensor_to_device(const clutch_tensor_t* tensor, const clutch_device_t* device, clutch_tensor_t** result) {
  return guarded("clutch_tensor_to_device", [&] { clear(result); *result = new clutch_tensor_t{need(tensor, "tensor").to(capi::ref(device))}; });
}
clutch_status_t clutch_tensor_read_bytes(const clutch_tensor_t* tensor, void* destination, size_t destination_size, const clutch_stream_t* stream) {
  return guarded("clutch_tensor_read_bytes", [&] { need(tensor, "tensor").read_bytes(capi::buffer(destination, destination_size, "destination"),
    capi::ref(stream)); });
}
clutch_status_t clutch_tensor_write(const clutch_tensor_t* tensor, const void* bytes, size_t bytes_size, const clutch_stream_t* stream) {
  return guarded("clutch_tensor_write", [&] { need(tensor, "tensor").write(capi::bytes(bytes, bytes_size, "bytes"), capi::ref(stream)); });
}
clutch_status_t clutch_tensor_item(const clutch_tensor_t* tensor, const clutch_stream_t* stream, double* result) {
  return guarded("clutch_tensor_item", [&] { *cleared(result) = need(tensor, "tensor").item(capi::ref(stream)); });
}
clutch_status_t clutch_tensor_to_string(const clutch_tensor_t* tensor, const clutch_stream_t* stream, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_tensor_to_string", [&] { put_text(need(tensor, "tensor").to_string(capi::ref(stream)), text, capacity, length); });
}
clutch_status_t clutch_tensor_share(const clutch_tensor_t* tensor, clutch_tensor_t** result) {
  return guarded("clutch_tensor_share", [&] { clear(result); *result = new clutch_tensor_t{capi::tensor_share(capi::ref(tensor))}; });
}
clutch_status_t clutch_promote_types(clutch_dtype_t a, clutch_dtype_t b, clutch_dtype_t* result) {
  return guarded("clutch_promote_types", [&] { *cleared(result) = static_cast<std::int64_t>(clutch::promote_types(capi::enumerator<DType>(a, "a"),
    capi::enumerator<DType>(b, "b"))); });
}
clutch_status_t clutch_dtype_from_name(const char* name, clutch_dtype_t* result) {
  return guarded("clutch_dtype_from_name", [&] { *cleared(result) = static_cast<std::int64_t>(clutch::dtype_from_name(capi::text(name))); });
}
clutch_status_t clutch_result_type(const clutch_tensor_t* const* tensors, size_t tensors_count, clutch_dtype_t* result) {
  return guarded("clutch_result_type", [&] { *cleared(result) = static_cast<std::int64_t>(capi::result_type(capi::tensors(tensors, tensors_count,
    "tensors"))); });
}
clutch_status_t clutch_copy_(const clutch_tensor_t* destination, const clutch_tensor_t* source, const clutch_copy_options_t* options,
    const clutch_stream_t* stream) {
  return guarded("clutch_copy_", [&] { clutch::copy_(capi::ref(destination), capi::ref(source), capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_fill_(const clutch_tensor_t* self, double value, const clutch_fill_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_fill_", [&] { clutch::fill_(capi::ref(self), value, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_arange_(const clutch_tensor_t* self, double start, double step, const clutch_fill_options_t* options, const clutch_stream_t* stream) {
  return guarded("clutch_arange_", [&] { clutch::arange_(capi::ref(self), start, step, capi::read(options, "options"), capi::ref(stream)); });
}
clutch_status_t clutch_storage_handle_create(const clutch_tensor_t* tensor, clutch_storage_handle_t** result) {
  return guarded("clutch_storage_handle_create", [&] { clear(result); *result = new clutch_storage_handle_t{StorageHandle(capi::ref(tensor))}; });
}
clutch_status_t clutch_storage_handle_create_bytes(uint64_t bytes, const clutch_device_t* device, const clutch_stream_t* stream,
    clutch_storage_handle_t** result) {
  return guarded("clutch_storage_handle_create_bytes", [&] { clear(result); *result = new clutch_storage_handle_t{StorageHandle(bytes, capi::ref(device),
    capi::ref(stream))}; });
}
clutch_status_t clutch_storage_handle_bytes(const clutch_storage_handle_t* storage_handle, uint64_t* result) {
  return guarded("clutch_storage_handle_bytes", [&] { *cleared(result) = need(storage_handle, "storage_handle").bytes(); });
}
clutch_status_t clutch_storage_handle_device(const clutch_storage_handle_t* storage_handle, clutch_device_t** result) {
  return guarded("clutch_storage_handle_device", [&] { clear(result); *result = new clutch_device_t{need(storage_handle, "storage_handle").device()}; });
}
clutch_status_t clutch_storage_handle_has_memory(const clutch_storage_handle_t* storage_handle, int64_t* result) {
  return guarded("clutch_storage_handle_has_memory", [&] { *cleared(result) = need(storage_handle, "storage_handle").has_memory(); });
}
clutch_status_t clutch_storage_handle_view(const clutch_storage_handle_t* storage_handle, const int64_t* sizes, size_t sizes_count, const int64_t* strides,
    size_t strides_count, clutch_dtype_t dtype, uint64_t byte_offset, clutch_tensor_t** result) {
  return guarded("clutch_storage_handle_view", [&] { clear(result); *result = new clutch_tensor_t{need(storage_handle, "storage_handle").view(capi::dims(sizes,
    sizes_count, "sizes"), capi::dims(strides, strides_count, "strides"), capi::enumerator<DType>(dtype, "dtype"), byte_offset)}; });
}
clutch_status_t clutch_host_mapping_create(const clutch_tensor_t* tensor, clutch_map_access_t access, const clutch_stream_t* stream,
    clutch_host_mapping_t** result) {
  return guarded("clutch_host_mapping_create", [&] { clear(result); *result = new clutch_host_mapping_t{HostMapping(capi::ref(tensor),
    capi::enumerator<MapAccess>(access, "access"), capi::ref(stream))}; });
}
clutch_status_t clutch_host_mapping_bytes(const clutch_host_mapping_t* host_mapping, void** result, size_t* size) {
  return guarded("clutch_host_mapping_bytes", [&] { put_memory(need(host_mapping, "host_mapping").bytes(), result, size); });
}
clutch_status_t clutch_host_mapping_unmap(clutch_host_mapping_t* host_mapping) {
  return guarded("clutch_host_mapping_unmap", [&] { need(host_mapping, "host_mapping").unmap(); });
}
clutch_status_t clutch_interop_to_dlpack(const clutch_tensor_t* tensor, clutch_interop_dlpack_memory_t memory, const clutch_stream_t* stream,
    struct DLManagedTensor** result) {
  return guarded("clutch_interop_to_dlpack", [&] { *cleared(result) = capi::interop_to_dlpack(capi::ref(tensor), capi::enumerator<interop::DlpackMemory>(memory,
    "memory"), capi::ref(stream)); });
}
clutch_status_t clutch_interop_to_dlpack_versioned(const clutch_tensor_t* tensor, clutch_interop_dlpack_memory_t memory, const clutch_stream_t* stream,
    struct DLManagedTensorVersioned** result) {
  return guarded("clutch_interop_to_dlpack_versioned", [&] { *cleared(result) = capi::interop_to_dlpack_versioned(capi::ref(tensor),
    capi::enumerator<interop::DlpackMemory>(memory, "memory"), capi::ref(stream)); });
}
clutch_status_t clutch_interop_from_dlpack(struct DLManagedTensor* managed, const clutch_device_t* device, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_interop_from_dlpack", [&] { clear(result); *result = new clutch_tensor_t{capi::interop_from_dlpack(managed, capi::ref(device),
    capi::ref(stream))}; });
}
clutch_status_t clutch_interop_from_dlpack_versioned(struct DLManagedTensorVersioned* managed, const clutch_device_t* device, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_interop_from_dlpack_versioned", [&] { clear(result); *result = new clutch_tensor_t{capi::interop_from_dlpack_versioned(managed,
    capi::ref(device), capi::ref(stream))}; });
}
clutch_status_t clutch_interop_wrap_queue(void* queue, clutch_stream_t** result) {
  return guarded("clutch_interop_wrap_queue", [&] { clear(result); *result = new clutch_stream_t{capi::interop_wrap_queue(queue)}; });
}
clutch_status_t clutch_interop_wrap_buffer(void* buffer, const int64_t* sizes, size_t sizes_count, clutch_dtype_t dtype, const clutch_device_t* device,
    uint64_t byte_offset, clutch_tensor_t** result) {
  return guarded("clutch_interop_wrap_buffer", [&] { clear(result); *result = new clutch_tensor_t{capi::interop_wrap_buffer(buffer, capi::dims(sizes,
    sizes_count, "sizes"), capi::enumerator<DType>(dtype, "dtype"), capi::ref(device), byte_offset)}; });
}
clutch_status_t clutch_interop_wrap_event(void* event, clutch_event_t** result) {
  return guarded("clutch_interop_wrap_event", [&] { clear(result); *result = new clutch_event_t{capi::interop_wrap_event(event)}; });
}
clutch_status_t clutch_interop_mem(const clutch_tensor_t* tensor, void** result) {
  return guarded("clutch_interop_mem", [&] { *cleared(result) = capi::interop_mem(capi::ref(tensor)); });
}
clutch_status_t clutch_interop_offset(const clutch_tensor_t* tensor, uint64_t* result) {
  return guarded("clutch_interop_offset", [&] { *cleared(result) = capi::interop_offset(capi::ref(tensor)); });
}
clutch_status_t clutch_interop_queue(const clutch_stream_t* stream, void** result) {
  return guarded("clutch_interop_queue", [&] { *cleared(result) = capi::interop_queue(capi::ref(stream)); });
}
clutch_status_t clutch_interop_context(const clutch_stream_t* stream, void** result) {
  return guarded("clutch_interop_context", [&] { *cleared(result) = capi::interop_context(capi::ref(stream)); });
}
clutch_status_t clutch_interop_event(const clutch_event_t* event, void** result) {
  return guarded("clutch_interop_event", [&] { *cleared(result) = capi::interop_event(capi::ref(event)); });
}
clutch_status_t clutch_interop_device_id(const clutch_device_t* device, void** result) {
  return guarded("clutch_interop_device_id", [&] { *cleared(result) = capi::interop_device_id(capi::ref(device)); });
}
clutch_status_t clutch_interop_platform_id(const clutch_device_t* device, void** result) {
  return guarded("clutch_interop_platform_id", [&] { *cleared(result) = capi::interop_platform_id(capi::ref(device)); });
}
clutch_status_t clutch_interop_release(void* context) {
  return guarded("clutch_interop_release", [&] { capi::interop_release(context); });
}
clutch_status_t clutch_memory_stat(const char* key, const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_memory_stat", [&] { *cleared(result) = capi::memory_stat(capi::text(key), capi::ref(device)); });
}
clutch_status_t clutch_memory_stat_keys(const clutch_device_t* device, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_memory_stat_keys", [&] { put_texts(capi::memory_stat_keys(capi::ref(device)), text, capacity, length); });
}
clutch_status_t clutch_memory_stat_of_pool(const clutch_pool_id_t* pool, const char* key, const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_memory_stat_of_pool", [&] { *cleared(result) = capi::memory_stat_of_pool(capi::read(pool, "pool"), capi::text(key),
    capi::ref(device)); });
}
clutch_status_t clutch_memory_allocated(const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_memory_allocated", [&] { *cleared(result) = clutch::memory_allocated(capi::ref(device)); });
}
clutch_status_t clutch_max_memory_allocated(const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_max_memory_allocated", [&] { *cleared(result) = clutch::max_memory_allocated(capi::ref(device)); });
}
clutch_status_t clutch_memory_reserved(const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_memory_reserved", [&] { *cleared(result) = clutch::memory_reserved(capi::ref(device)); });
}
clutch_status_t clutch_max_memory_reserved(const clutch_device_t* device, uint64_t* result) {
  return guarded("clutch_max_memory_reserved", [&] { *cleared(result) = clutch::max_memory_reserved(capi::ref(device)); });
}
clutch_status_t clutch_reset_peak_memory_stats(const clutch_device_t* device) {
  return guarded("clutch_reset_peak_memory_stats", [&] { clutch::reset_peak_memory_stats(capi::ref(device)); });
}
clutch_status_t clutch_reset_accumulated_memory_stats(const clutch_device_t* device) {
  return guarded("clutch_reset_accumulated_memory_stats", [&] { clutch::reset_accumulated_memory_stats(capi::ref(device)); });
}
clutch_status_t clutch_empty_cache(const clutch_device_t* device) {
  return guarded("clutch_empty_cache", [&] { clutch::empty_cache(capi::ref(device)); });
}
clutch_status_t clutch_get_memory_info(const clutch_device_t* device, clutch_memory_info_t* result) {
  return guarded("clutch_get_memory_info", [&] { write(clutch::get_memory_info(capi::ref(device)), result, "result"); });
}
clutch_status_t clutch_set_memory_limit(uint64_t bytes, const clutch_device_t* device) {
  return guarded("clutch_set_memory_limit", [&] { clutch::set_memory_limit(bytes, capi::ref(device)); });
}
clutch_status_t clutch_set_per_process_memory_fraction(double fraction, const clutch_device_t* device) {
  return guarded("clutch_set_per_process_memory_fraction", [&] { clutch::set_per_process_memory_fraction(fraction, capi::ref(device)); });
}
clutch_status_t clutch_get_per_process_memory_fraction(const clutch_device_t* device, double* result) {
  return guarded("clutch_get_per_process_memory_fraction", [&] { *cleared(result) = clutch::get_per_process_memory_fraction(capi::ref(device)); });
}
clutch_status_t clutch_memory_address(const clutch_tensor_t* tensor, uint64_t* result) {
  return guarded("clutch_memory_address", [&] { *cleared(result) = clutch::memory_address(capi::ref(tensor)); });
}
clutch_status_t clutch_set_allocator_settings(const char* text) {
  return guarded("clutch_set_allocator_settings", [&] { clutch::set_allocator_settings(capi::text(text)); });
}
clutch_status_t clutch_record_memory_history(const clutch_memory_history_options_t* options) {
  return guarded("clutch_record_memory_history", [&] { clutch::record_memory_history(capi::read(options, "options")); });
}
clutch_status_t clutch_stop_memory_history(void) {
  return guarded("clutch_stop_memory_history", [&] { clutch::stop_memory_history(); });
}
clutch_status_t clutch_dump_memory_snapshot(const char* path) {
  return guarded("clutch_dump_memory_snapshot", [&] { clutch::dump_memory_snapshot(capi::text(path)); });
}
clutch_status_t clutch_new_pool_id(clutch_pool_id_t* result) {
  return guarded("clutch_new_pool_id", [&] { write(clutch::new_pool(), result, "result"); });
}
clutch_status_t clutch_mem_pool_create(const clutch_mem_pool_options_t* options, clutch_mem_pool_t** result) {
  return guarded("clutch_mem_pool_create", [&] { clear(result); *result = new clutch_mem_pool_t{MemPool(capi::read(options, "options"))}; });
}
clutch_status_t clutch_mem_pool_id(const clutch_mem_pool_t* mem_pool, clutch_pool_id_t* result) {
  return guarded("clutch_mem_pool_id", [&] { write(need(mem_pool, "mem_pool").id(), result, "result"); });
}
clutch_status_t clutch_pool_guard_create(const clutch_pool_id_t* pool, clutch_pool_guard_t** result) {
  return guarded("clutch_pool_guard_create", [&] { clear(result); *result = new clutch_pool_guard_t{capi::pool_guard_create(capi::read(pool, "pool"))}; });
}
clutch_status_t clutch_memory_label_guard_create(const char* label, clutch_memory_label_guard_t** result) {
  return guarded("clutch_memory_label_guard_create",
    [&] { clear(result); *result = new clutch_memory_label_guard_t{capi::memory_label_guard_create(capi::text(label))}; });
}
clutch_status_t clutch_version(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_version", [&] { put_text(clutch::version(), text, capacity, length); });
}
clutch_status_t clutch_build_info(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_build_info", [&] { put_text(clutch::build_info(), text, capacity, length); });
}
clutch_status_t clutch_check_settings(void) {
  return guarded("clutch_check_settings", [&] { clutch::check_settings(); });
}
clutch_status_t clutch_cache_directory(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_cache_directory", [&] { put_text(clutch::cache_directory(), text, capacity, length); });
}
clutch_status_t clutch_cache_usage(clutch_cache_usage_t* result) {
  return guarded("clutch_cache_usage", [&] { write(clutch::cache_usage(), result, "result"); });
}
clutch_status_t clutch_clear_cache(clutch_cache_usage_t* result) {
  return guarded("clutch_clear_cache", [&] { write(clutch::clear_cache(), result, "result"); });
}
clutch_status_t clutch_build_counters(clutch_build_counters_t* result) {
  return guarded("clutch_build_counters", [&] { write(clutch::build_counters(), result, "result"); });
}
clutch_status_t clutch_enqueued_cost(clutch_cost_t* result) {
  return guarded("clutch_enqueued_cost", [&] { write(clutch::enqueued_cost(), result, "result"); });
}
clutch_status_t clutch_fallback_count(const char* kind, uint64_t* result) {
  return guarded("clutch_fallback_count", [&] { *cleared(result) = clutch::fallback_count(capi::text(kind)); });
}
clutch_status_t clutch_last_plan(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_last_plan", [&] { put_text(clutch::last_plan(), text, capacity, length); });
}
clutch_status_t clutch_load_npy(const char* path, const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_load_npy", [&] { clear(result); *result = new clutch_tensor_t{clutch::load_npy(capi::text(path), capi::ref(device),
    capi::ref(stream))}; });
}
clutch_status_t clutch_read_npy(const void* bytes, size_t bytes_size, const clutch_device_t* device, const clutch_stream_t* stream, clutch_tensor_t** result) {
  return guarded("clutch_read_npy", [&] { clear(result); *result = new clutch_tensor_t{clutch::read_npy(capi::bytes(bytes, bytes_size, "bytes"),
    capi::ref(device), capi::ref(stream))}; });
}
clutch_status_t clutch_save_npy(const char* path, const clutch_tensor_t* tensor, const clutch_stream_t* stream) {
  return guarded("clutch_save_npy", [&] { clutch::save_npy(capi::text(path), capi::ref(tensor), capi::ref(stream)); });
}
clutch_status_t clutch_safetensors_open(const char* path, clutch_safetensors_t** result) {
  return guarded("clutch_safetensors_open", [&] { clear(result); *result = new clutch_safetensors_t{clutch::Safetensors::open(capi::text(path))}; });
}
clutch_status_t clutch_safetensors_names(const clutch_safetensors_t* file, char* text, size_t capacity, size_t* length) {
  return guarded("clutch_safetensors_names", [&] { put_texts(capi::safetensors_names(capi::ref(file)), text, capacity, length); });
}
clutch_status_t clutch_safetensors_load(const clutch_safetensors_t* safetensors, const char* name, const clutch_device_t* device, const clutch_stream_t* stream,
    clutch_tensor_t** result) {
  return guarded("clutch_safetensors_load", [&] { clear(result); *result = new clutch_tensor_t{need(safetensors, "safetensors").load(capi::text(name),
    capi::ref(device), capi::ref(stream))}; });
}
clutch_status_t clutch_save_safetensors(const char* path, const char* const* names, size_t names_count, const clutch_tensor_t* const* tensors,
    size_t tensors_count, const clutch_stream_t* stream) {
  return guarded("clutch_save_safetensors", [&] { capi::save_safetensors(capi::text(path), capi::texts(names, names_count, "names"), capi::tensors(tensors,
    tensors_count, "tensors"), capi::ref(stream)); });
}
clutch_status_t clutch_tune_clear(void) {
  return guarded("clutch_tune_clear", [&] { clutch::tune::clear(); });
}
clutch_status_t clutch_tune_load(const char* path) {
  return guarded("clutch_tune_load", [&] { clutch::tune::load(capi::text(path)); });
}
clutch_status_t clutch_tune_save(const char* path) {
  return guarded("clutch_tune_save", [&] { clutch::tune::save(capi::text(path)); });
}
clutch_status_t clutch_tune_file(char* text, size_t capacity, size_t* length) {
  return guarded("clutch_tune_file", [&] { put_text(clutch::tune::file(), text, capacity, length); });
}

}  // extern "C"
