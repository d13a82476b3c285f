/* SPDX-License-Identifier: Apache-2.0 */
/* Devices whose memory is the host's, and which have no compiler. WRITES: 0, or the code that each write to memory gives. */
#ifndef ALIGNMENT
#define ALIGNMENT 128
#endif
#ifndef LAUNCH
#define LAUNCH launch
#endif
#ifndef WRITES
#define WRITES 0
#endif
static clutch_status_t device_count(int64_t* result) {
  *result = 1;
  return CLUTCH_OK;
}
static clutch_status_t device_facts(int64_t device, clutch_device_facts_t* facts) {
  if (device != 0 || facts->size < sizeof *facts) return CLUTCH_INVALID_ARGUMENT;
  facts->name = "demo device";
  facts->type = CLUTCH_DEVICE_TYPE_ACCELERATOR;
  facts->compute_units = 1, facts->max_group_items = 64, facts->group_multiple = 32, facts->vector_bytes = 4, facts->alignment = ALIGNMENT;
  facts->memory_bytes = facts->largest_buffer_bytes = 1 << 28, facts->local_bytes = 1 << 15, facts->argument_bytes = 1024;
  return CLUTCH_OK;
}
static clutch_status_t memory_allocate(int64_t device, uint64_t bytes, void** result) {
  (void)device;
  *result = malloc((size_t)bytes);
  return *result ? CLUTCH_OK : CLUTCH_OUT_OF_MEMORY;
}
static void memory_release(int64_t device, void* memory) {
  (void)device;
  free(memory);
}
static clutch_status_t memory_map(int64_t device, void* memory, uint64_t offset, uint64_t bytes, void** result) {
  (void)device, (void)bytes;
  *result = (char*)memory + offset;
  return CLUTCH_OK;
}
static void memory_unmap(int64_t device, void* memory, void* address) { (void)device, (void)memory, (void)address; }
static clutch_status_t program_build(int64_t device, const char* text, size_t bytes, const char* options, void** result) {
  (void)device, (void)text, (void)bytes, (void)options, (void)result;
  host->set_error("it has no compiler");
  return CLUTCH_BUILD_FAILURE;
}
static clutch_status_t program_binary(void* program, char* binary, size_t capacity, size_t* bytes) {
  (void)program, (void)binary, (void)capacity;
  *bytes = 0;
  return CLUTCH_OK;
}
static void release(void* object) { (void)object; }
static clutch_status_t kernel_create(void* program, const char* name, clutch_device_kernel_facts_t* facts, void** result) {
  (void)program, (void)name, (void)facts, (void)result;
  return CLUTCH_INVALID_ARGUMENT;
}
static clutch_status_t queue_create(int64_t device, void** result) {
  (void)device;
  *result = &host;
  return CLUTCH_OK;
}
static clutch_status_t launch(void* queue, void* kernel, const clutch_device_launch_t* given) {
  (void)queue, (void)kernel, (void)given;
  return CLUTCH_INTERNAL;
}
static clutch_status_t write_to(void* queue, void* to, uint64_t offset, const void* from, uint64_t bytes) {
  (void)queue;
  memcpy((char*)to + offset, from, (size_t)bytes);
  return WRITES;
}
static clutch_status_t read_from(void* queue, const void* from, uint64_t offset, void* to, uint64_t bytes) {
  (void)queue;
  memcpy(to, (const char*)from + offset, (size_t)bytes);
  return CLUTCH_OK;
}
static clutch_status_t copy(void* queue, void* to, uint64_t to_offset, const void* from, uint64_t from_offset, uint64_t bytes) {
  (void)queue;
  memmove((char*)to + to_offset, (const char*)from + from_offset, (size_t)bytes);
  return CLUTCH_OK;
}
static clutch_status_t fill(void* queue, void* to, uint64_t offset, uint64_t bytes, const void* pattern, size_t pattern_bytes) {
  uint64_t at;
  (void)queue;
  for (at = 0; at < bytes; at += pattern_bytes) memcpy((char*)to + offset + at, pattern, pattern_bytes);
  return CLUTCH_OK;
}
static const clutch_device_backend_t demo_devices = {
    sizeof demo_devices, "demo devices", "1", device_count, device_facts, memory_allocate, NULL, memory_release, memory_map, memory_unmap,
    program_build, program_build, program_binary, release, kernel_create, release, queue_create, release, LAUNCH, write_to, read_from, copy, fill};
static const clutch_device_backend_t* const device_backends[] = {&demo_devices};
