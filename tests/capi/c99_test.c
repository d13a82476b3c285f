/* SPDX-License-Identifier: Apache-2.0 */
/* A program of C99 on the C ABI: what its user does, one after another. Results are compared with the host's. */
#include <clutch/clutch.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the place and the error's text. */
#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, clutch_error_message()); \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)
#define OK(call) CHECK((call) == CLUTCH_OK)
/* The call fails with this code and a text that has these words. */
#define FAILS(code, words, call)                                                                                       \
  do {                                                                                                                 \
    const clutch_status_t status_ = (call);                                                                            \
    if (status_ != (code) || strstr(clutch_error_message(), words) == NULL) {                                          \
      fprintf(stderr, "%s:%d: %s: %s: %s\n", __FILE__, __LINE__, #call, clutch_status_name(status_), clutch_error_message()); \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

enum { COUNT = 1000 };

static clutch_tensor_t* from_floats(const float* values, size_t count, const int64_t* sizes, size_t rank) {
  clutch_tensor_t* result = NULL;
  OK(clutch_from_bytes(values, count * sizeof *values, sizes, rank, NULL, NULL, &result));
  return result;
}
static void to_floats(const clutch_tensor_t* tensor, float* values, size_t count) { OK(clutch_tensor_read_bytes(tensor, values, count * sizeof *values, NULL)); }

static void devices(void) {
  int64_t count = 0, index = -1;
  OK(clutch_device_count(&count));
  CHECK(count > 0);
  clutch_device_t* device = NULL;
  OK(clutch_current_device(&device));
  OK(clutch_device_index(device, &index));
  CHECK(index >= 0 && index < count);
  char name[8];
  size_t length = 0;
  OK(clutch_device_name(device, name, sizeof name, &length));
  CHECK(strlen(name) == (length < 7 ? length : 7));
  char* whole = malloc(length + 1);
  OK(clutch_device_name(device, whole, length + 1, NULL));
  CHECK(strlen(whole) == length && strncmp(whole, name, strlen(name)) == 0);
  free(whole);
  clutch_device_traits_t traits = CLUTCH_DEVICE_TRAITS_INIT;
  OK(clutch_device_traits(device, &traits));
  CHECK(traits.compute_units >= 1 && traits.global_bytes > 0);
  clutch_device_release(device);
  clutch_device_release(NULL);
  FAILS(CLUTCH_NO_DEVICE, "matches no device", clutch_device_create("no such device", &device));
  CHECK(device == NULL);
}

static void elementwise(void) {
  float x[COUNT], y[COUNT], z[COUNT], got[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    x[i] = (float)i / 7;
    y[i] = (float)(i % 13) - 6;
    z[i] = (float)(i % 11) + 1;
  }
  const int64_t sizes[] = {COUNT};
  clutch_tensor_t* a = from_floats(x, COUNT, sizes, 1);
  clutch_tensor_t* b = from_floats(y, COUNT, sizes, 1);
  clutch_tensor_t* c = from_floats(z, COUNT, sizes, 1);
  clutch_tensor_t* out = NULL;
  OK(clutch_empty(sizes, 1, NULL, NULL, &out));
  clutch_addc_options_t options = CLUTCH_ADDC_OPTIONS_INIT;
  options.value = -0.5;
  OK(clutch_addcdiv_out(out, a, b, c, &options, NULL));
  to_floats(out, got, COUNT);
  for (int i = 0; i < COUNT; ++i) CHECK(got[i] == fmaf(-0.5f, y[i] / z[i], x[i]));
  /* A struct of an older header ends earlier: the fields behind have their defaults. What stands there is not read. */
  clutch_addc_options_t older = CLUTCH_ADDC_OPTIONS_INIT;
  older.value = -0.5;
  older.order = 99;
  older.implementation = (const char*)(uintptr_t)1;
  older.size = offsetof(clutch_addc_options_t, order);
  OK(clutch_addcdiv_(a, b, c, &older, NULL));
  float again[COUNT];
  to_floats(a, again, COUNT);
  CHECK(memcmp(again, got, sizeof got) == 0);
  options.order = 3;
  FAILS(CLUTCH_INVALID_ARGUMENT, "options.order must be one of 0 (fma_of_quotient), 1 (product_first), 2 (unfused), got 3",
        clutch_addcdiv_out(out, a, b, c, &options, NULL));
  FAILS(CLUTCH_INVALID_ARGUMENT, "clutch_addcdiv_out", clutch_addcdiv_out(out, a, b, c, &options, NULL));
  options.order = 0;
  options.implementation = "no_such";
  FAILS(CLUTCH_INVALID_ARGUMENT, "there are:", clutch_addcdiv_out(out, a, b, c, &options, NULL));
  CHECK(strcmp(clutch_error_op(), "addcdiv_out") == 0);
  clutch_tensor_t* part = NULL;
  OK(clutch_tensor_slice(c, 0, 0, 10, 1, &part));
  FAILS(CLUTCH_INVALID_SHAPE, "addcdiv_out", clutch_addcdiv_out(out, a, b, part, NULL, NULL));
  FAILS(CLUTCH_INVALID_ARGUMENT, "", clutch_addcdiv_out(NULL, a, b, c, NULL, NULL));

  /* A traced function by its text. */
  clutch_expr_function_t* f = NULL;
  OK(clutch_expr_function_parse("inputs f32 f32\n%2 = mul %0 %1\n%3 = add %2 %1\noutputs %3\n", &f));
  const clutch_tensor_t* inputs[] = {b, c};
  const clutch_tensor_t* outputs[] = {out};
  OK(clutch_map_out(outputs, 1, f, inputs, 2, NULL, NULL));
  to_floats(out, got, COUNT);
  for (int i = 0; i < COUNT; ++i) CHECK(got[i] == y[i] * z[i] + z[i]);
  FAILS(CLUTCH_INVALID_ARGUMENT, "line", clutch_expr_function_parse("inputs f32\nno sense\n", &f));
  CHECK(f == NULL);

  clutch_number_t two = {2, 1};
  clutch_tensor_t* doubled = NULL;
  OK(clutch_mul_number(b, two, NULL, NULL, &doubled));
  to_floats(doubled, got, COUNT);
  for (int i = 0; i < COUNT; ++i) CHECK(got[i] == 2 * y[i]);
  clutch_tensor_release(doubled);

  /* Reductions with options, views and lists. */
  clutch_reduce_options_t reduce = CLUTCH_REDUCE_OPTIONS_INIT;
  const int64_t dims[] = {-1};
  reduce.dims = dims;
  reduce.dims_count = 1;
  reduce.keepdim = 1;
  const int64_t rows[] = {10, 100}, columns[] = {10, 1};
  clutch_tensor_t *table = NULL, *sums = NULL;
  OK(clutch_tensor_reshape(c, rows, 2, &table));
  OK(clutch_zeros(columns, 2, NULL, NULL, &sums));
  OK(clutch_sum_out(sums, table, &reduce, NULL));
  float sum[10];
  to_floats(sums, sum, 10);
  for (int i = 0; i < 10; ++i) {
    float wanted = 0;
    for (int k = 0; k < 100; ++k) wanted += z[100 * i + k];
    CHECK(sum[i] == wanted);
  }
  size_t count = 0;
  int64_t shape[2];
  OK(clutch_tensor_sizes(table, NULL, 0, &count));
  CHECK(count == 2);
  OK(clutch_tensor_sizes(table, shape, 2, NULL));
  CHECK(shape[0] == 10 && shape[1] == 100);
  FAILS(CLUTCH_INVALID_ARGUMENT, "capacity must be at least 2, got 1", clutch_tensor_sizes(table, shape, 1, NULL));
  clutch_tensor_t* parts[4] = {NULL, NULL, NULL, NULL};
  OK(clutch_split(table, 3, 0, parts, 4, &count));
  CHECK(count == 4);
  FAILS(CLUTCH_INVALID_ARGUMENT, "cat_out", clutch_cat_out(table, NULL, 0, 0, NULL, NULL));
  FAILS(CLUTCH_INVALID_ARGUMENT, "tensors must not be NULL", clutch_cat_out(table, NULL, 4, 0, NULL, NULL));
  for (int i = 0; i < 4; ++i) clutch_tensor_release(parts[i]);

  /* Sorted values; an output that is not asked for is NULL. */
  clutch_sorted_t sorted = CLUTCH_SORTED_INIT;
  sorted.values = out;
  OK(clutch_sort_out(&sorted, b, 0, NULL, NULL));
  to_floats(out, got, COUNT);
  for (int i = 1; i < COUNT; ++i) CHECK(got[i - 1] <= got[i]);
  clutch_unique_options_t unique = CLUTCH_UNIQUE_OPTIONS_INIT;
  unique.return_counts = 1;
  clutch_unique_t found = CLUTCH_UNIQUE_INIT;
  OK(clutch_unique(b, &unique, NULL, &found));
  int64_t numel = 0;
  OK(clutch_tensor_numel(found.values, &numel));
  CHECK(numel == 13 && found.counts != NULL && found.inverse == NULL);
  clutch_tensor_release(found.values);
  clutch_tensor_release(found.counts);

  clutch_tensor_release(sums);
  clutch_tensor_release(table);
  clutch_tensor_release(part);
  clutch_tensor_release(out);
  clutch_tensor_release(c);
  clutch_tensor_release(b);
  clutch_tensor_release(a);
}

static void products(void) {
  const int64_t square[] = {2, 2};
  const float values[] = {2, 1, 1, 2};
  clutch_tensor_t* a = from_floats(values, 4, square, 2);
  clutch_tensor_t *w = NULL, *v = NULL, *out = NULL, *info = NULL, *sweeps = NULL;
  clutch_tensor_options_t integers = CLUTCH_TENSOR_OPTIONS_INIT;
  integers.dtype = CLUTCH_DTYPE_I32;
  OK(clutch_empty(square, 1, NULL, NULL, &w));
  OK(clutch_empty(square, 2, NULL, NULL, &v));
  OK(clutch_empty(square, 2, NULL, NULL, &out));
  OK(clutch_empty(NULL, 0, &integers, NULL, &info));
  OK(clutch_empty(NULL, 0, &integers, NULL, &sweeps));
  clutch_linalg_eigh_status_t status = CLUTCH_LINALG_EIGH_STATUS_INIT;
  status.info = info;
  status.sweeps = sweeps;
  OK(clutch_linalg_eigh_out(w, v, &status, a, NULL, NULL));
  OK(clutch_linalg_require_converged(&status, NULL));
  float eigenvalues[2];
  to_floats(w, eigenvalues, 2);
  CHECK(fabsf(eigenvalues[0] - 1) < 1e-5f && fabsf(eigenvalues[1] - 3) < 1e-5f);
  clutch_linalg_matmul_options_t options = CLUTCH_LINALG_MATMUL_OPTIONS_INIT;
  options.alpha = 3;
  OK(clutch_linalg_matmul_out(out, a, a, &options, NULL));
  float product[4];
  to_floats(out, product, 4);
  CHECK(product[0] == 15 && product[1] == 12 && product[2] == 12 && product[3] == 15);
  clutch_linalg_packed_matrix_t* packed = NULL;
  OK(clutch_linalg_packed_matrix_create(a, NULL, &packed));
  OK(clutch_linalg_matmul_packed_out(out, a, packed, NULL, NULL));
  to_floats(out, product, 4);
  CHECK(product[0] == 5 && product[1] == 4);
  clutch_linalg_packed_matrix_release(packed);

  /* Attention with a mask by text and a named one: two keys, the second of which the first query does not see. */
  const int64_t shape[] = {1, 1, 2, 2};
  clutch_tensor_t *q = NULL, *result = NULL;
  OK(clutch_tensor_reshape(a, shape, 4, &q));
  OK(clutch_empty(shape, 4, NULL, NULL, &result));
  clutch_expr_function_t* text = NULL;
  clutch_attention_mask_mod_t *mask = NULL, *causal = NULL, *both = NULL;
  OK(clutch_expr_function_parse("inputs i32 i32 i32 i32\n%4 = le %3 %2\noutputs %4\n", &text));
  OK(clutch_attention_mask_mod_create(text, &mask));
  OK(clutch_attention_causal(0, &causal));
  OK(clutch_attention_mask_mod_and(mask, causal, &both));
  clutch_attention_flex_options_t flex = CLUTCH_ATTENTION_FLEX_OPTIONS_INIT;
  flex.mask_mod = both;
  clutch_attention_flex_result_t results = CLUTCH_ATTENTION_FLEX_RESULT_INIT;
  results.out = result;
  OK(clutch_attention_flex_out(&results, q, q, q, &flex, NULL));
  float attended[4];
  to_floats(result, attended, 4);
  CHECK(fabsf(attended[0] - 2) < 1e-6f && fabsf(attended[1] - 1) < 1e-6f && attended[2] > 1 && attended[2] < 2);
  clutch_attention_mask_mod_release(both);
  clutch_attention_mask_mod_release(causal);
  clutch_attention_mask_mod_release(mask);
  clutch_expr_function_release(text);
  clutch_tensor_release(result);
  clutch_tensor_release(q);
  clutch_tensor_release(sweeps);
  clutch_tensor_release(info);
  clutch_tensor_release(out);
  clutch_tensor_release(v);
  clutch_tensor_release(w);
  clutch_tensor_release(a);
}

static void graphs(const char* path) {
  clutch_stream_t *stream = NULL, *given = NULL;
  OK(clutch_stream_create(NULL, NULL, &stream));
  OK(clutch_current_stream(NULL, &given));
  OK(clutch_set_current_stream(stream));
  const int64_t sizes[] = {COUNT};
  clutch_tensor_t *x = NULL, *y = NULL;
  OK(clutch_full(sizes, 1, 3, NULL, stream, &x));
  OK(clutch_zeros(sizes, 1, NULL, stream, &y));
  OK(clutch_exp_out(y, x, NULL, stream));
  clutch_graph_t* graph = NULL;
  OK(clutch_graph_create(NULL, &graph));
  OK(clutch_graph_capture_begin(graph, stream, NULL));
  FAILS(CLUTCH_CAPTURING, "", clutch_stream_synchronize(stream));
  clutch_graph_capture_abandon(graph);
  OK(clutch_graph_capture_begin(graph, stream, NULL));
  clutch_tensor_t* squares = NULL;
  OK(clutch_empty(sizes, 1, NULL, stream, &squares));
  OK(clutch_mul_out(squares, x, x, NULL, stream));
  OK(clutch_add_out(y, squares, x, NULL, stream));
  OK(clutch_graph_capture_end(graph));
  clutch_tensor_release(squares);
  OK(clutch_graph_replay(graph, stream));
  OK(clutch_stream_synchronize(stream));
  float got[COUNT];
  to_floats(y, got, COUNT);
  CHECK(got[0] == 12 && got[COUNT - 1] == 12);
  /* Saved with names, and loaded where nothing was captured. */
  const char* names[] = {"x", "y"};
  const clutch_tensor_t* tensors[] = {x, y};
  OK(clutch_graph_save(graph, path, names, 2, tensors, 2, NULL));
  clutch_graph_t* loaded = NULL;
  OK(clutch_graph_load(path, NULL, NULL, &loaded));
  clutch_tensor_t *in = NULL, *out = NULL;
  OK(clutch_graph_tensor(loaded, "x", &in));
  OK(clutch_graph_tensor(loaded, "y", &out));
  OK(clutch_fill_(in, 5, NULL, stream));
  OK(clutch_graph_replay(loaded, stream));
  to_floats(out, got, COUNT);
  CHECK(got[7] == 30);
  clutch_tensor_t* none = NULL;
  FAILS(CLUTCH_INVALID_ARGUMENT, "x", clutch_graph_tensor(loaded, "z", &none));
  OK(clutch_graph_measure(loaded, 2, stream));
  FAILS(CLUTCH_INVALID_ARGUMENT, "replays", clutch_graph_measure(loaded, 0, stream));
  size_t page = 0;
  OK(clutch_graph_to_string(loaded, CLUTCH_GRAPH_DUMP_HTML, NULL, 0, &page));
  CHECK(page > 1000);
  clutch_event_t *start = NULL, *end = NULL;
  OK(clutch_event_create(&start));
  OK(clutch_event_create(&end));
  OK(clutch_event_record(start, stream));
  OK(clutch_graph_replay(graph, stream));
  OK(clutch_event_record(end, stream));
  double ms = -1;
  OK(clutch_elapsed_ms(start, end, &ms));
  CHECK(ms >= 0);
  clutch_event_release(end);
  clutch_event_release(start);
  clutch_tensor_release(out);
  clutch_tensor_release(in);
  clutch_graph_release(loaded);
  clutch_graph_release(graph);
  clutch_tensor_release(y);
  clutch_tensor_release(x);
  OK(clutch_set_current_stream(given));
  clutch_stream_release(given);
  clutch_stream_release(stream);
}

static void training(void) {
  const int64_t sizes[] = {2};
  const float one[] = {1, 1}, gradient[] = {0.5f, -0.25f};
  clutch_tensor_t* p = from_floats(one, 2, sizes, 1);
  clutch_tensor_t* g = from_floats(gradient, 2, sizes, 1);
  clutch_optim_sgd_options_t options = CLUTCH_OPTIM_SGD_OPTIONS_INIT;
  options.lr = 2;
  const clutch_tensor_t *params[] = {p}, *grads[] = {g};
  clutch_optim_sgd_t* sgd = NULL;
  OK(clutch_optim_sgd_create(params, 1, &options, NULL, &sgd));
  clutch_tensor_t* norm = g;
  OK(clutch_optim_sgd_step(sgd, grads, 1, NULL, NULL, &norm));
  CHECK(norm == NULL);
  float got[2];
  to_floats(p, got, 2);
  CHECK(got[0] == 0 && got[1] == 1.5f);
  clutch_optim_sgd_release(sgd);
  options.lr = -1;
  FAILS(CLUTCH_INVALID_ARGUMENT, "-1", clutch_optim_sgd_create(params, 1, &options, NULL, &sgd));
  clutch_tensor_release(g);
  clutch_tensor_release(p);
}

static void kernels(void) {
  const int64_t sizes[] = {64};
  clutch_tensor_t *x = NULL, *y = NULL;
  OK(clutch_full(sizes, 1, 3, NULL, NULL, &x));
  OK(clutch_zeros(sizes, 1, NULL, NULL, &y));
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void scale(__global float* y, __global const float* x, float a) { y[get_global_id(0)] = a * x[get_global_id(0)] + OFFSET; }";
  source.entry = "scale";
  const char* defines[] = {"OFFSET=4"};
  source.defines = defines;
  source.defines_count = 1;
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = 64;
  const float a = 2;
  clutch_argument_t out = CLUTCH_ARGUMENT_INIT, in = CLUTCH_ARGUMENT_INIT, factor = CLUTCH_ARGUMENT_INIT;
  out.kind = CLUTCH_ARGUMENT_KIND_OUTPUT;
  out.tensor = y;
  in.kind = CLUTCH_ARGUMENT_KIND_INPUT;
  in.tensor = x;
  factor.kind = CLUTCH_ARGUMENT_KIND_VALUE;
  factor.value = &a;
  factor.value_size = sizeof a;
  factor.type = "float";
  const clutch_argument_t* arguments[] = {&out, &in, &factor};
  OK(clutch_launch(&source, &geometry, arguments, 3, NULL));
  float got[64];
  to_floats(y, got, 64);
  CHECK(got[0] == 10 && got[63] == 10);
  factor.value_size = 17;
  FAILS(CLUTCH_INVALID_ARGUMENT, "1 to 16 bytes, got 17", clutch_launch(&source, &geometry, arguments, 3, NULL));
  clutch_tensor_release(y);
  clutch_tensor_release(x);
}

/* DLPack's layouts, which a program has from dlpack.h. */
typedef struct {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor_t;
struct DLManagedTensor {
  dl_tensor_t tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned*);
  uint64_t flags;
  dl_tensor_t tensor;
};
enum { DL_CPU = 1, DL_CUDA = 2, DL_OPENCL = 4, DL_FLOAT = 2 };

static int deleted;
static void count_deletion(struct DLManagedTensor* managed) { deleted += managed->context == &deleted; }

/* Columns 1, 3 and 5 of four rows of six, lent and taken back: by the device's memory the same elements, by the host's a copy. */
static void dlpack(void) {
  const int64_t sizes[] = {4, 6};
  float values[24], got[24];
  for (int i = 0; i < 24; ++i) values[i] = (float)i;
  for (int memory = 0; memory < 2; ++memory)
    for (int versioned = 0; versioned < 2; ++versioned) {
      clutch_tensor_t *x = from_floats(values, 24, sizes, 2), *part = NULL, *back = NULL;
      OK(clutch_tensor_slice(x, 1, 1, 6, 2, &part));
      struct DLManagedTensor* lent = NULL;
      struct DLManagedTensorVersioned* of_version = NULL;
      if (versioned)
        OK(clutch_interop_to_dlpack_versioned(part, memory, NULL, &of_version));
      else
        OK(clutch_interop_to_dlpack(part, memory, NULL, &lent));
      const dl_tensor_t* t = versioned ? &of_version->tensor : &lent->tensor;
      const int on_host = memory == CLUTCH_INTEROP_DLPACK_MEMORY_HOST;
      CHECK(t->device.type == (on_host ? DL_CPU : DL_OPENCL) && t->dtype.code == DL_FLOAT && t->dtype.bits == 32 && t->dtype.lanes == 1);
      CHECK(t->ndim == 2 && t->shape[0] == 4 && t->shape[1] == 3 && t->strides[0] == (on_host ? 3 : 6) && t->strides[1] == (on_host ? 1 : 2));
      if (versioned) CHECK(of_version->version.major == 1 && of_version->flags == (on_host ? 2u : 0u));
      if (on_host) CHECK(memcmp((const char*)t->data + t->byte_offset, (const float[]){1, 3, 5, 7}, 4 * sizeof(float)) == 0);
      if (versioned)
        OK(clutch_interop_from_dlpack_versioned(of_version, NULL, NULL, &back));
      else
        OK(clutch_interop_from_dlpack(lent, NULL, NULL, &back));
      to_floats(back, got, 12);
      for (int i = 0; i < 12; ++i) CHECK(got[i] == values[i / 3 * 6 + 1 + 2 * (i % 3)]);
      /* What was lent lives on by what took it. */
      clutch_tensor_release(part);
      OK(clutch_fill_(back, -1, NULL, NULL));
      to_floats(x, got, 24);
      for (int i = 0; i < 24; ++i) CHECK(got[i] == (!on_host && i % 2 == 1 ? -1 : values[i]));
      clutch_tensor_release(x);
      to_floats(back, got, 12);
      CHECK(got[0] == -1 && got[11] == -1);
      clutch_tensor_release(back);
    }
  /* Without elements. */
  const int64_t none[] = {3, 0, 5};
  for (int memory = 0; memory < 2; ++memory) {
    clutch_tensor_t *x = NULL, *back = NULL;
    struct DLManagedTensor* lent = NULL;
    int64_t shape[3] = {0, 0, 0};
    OK(clutch_empty(none, 3, NULL, NULL, &x));
    OK(clutch_interop_to_dlpack(x, memory, NULL, &lent));
    OK(clutch_interop_from_dlpack(lent, NULL, NULL, &back));
    OK(clutch_tensor_sizes(back, shape, 3, NULL));
    CHECK(shape[0] == 3 && shape[1] == 0 && shape[2] == 5);
    clutch_tensor_release(back);
    clutch_tensor_release(x);
  }
  /* Memory of one's own: rows from the last to the first behind an offset. What is refused stays the caller's. */
  int64_t shape[] = {2, 3}, strides[] = {-3, 1};
  struct DLManagedTensor mine = {{&values[0], {DL_CPU, 0}, 2, {DL_FLOAT, 32, 1}, shape, strides, 5 * sizeof(float)}, &deleted, count_deletion};
  clutch_tensor_t* taken = NULL;
  OK(clutch_interop_from_dlpack(&mine, NULL, NULL, &taken));
  CHECK(deleted == 1);
  to_floats(taken, got, 6);
  CHECK(got[0] == 5 && got[2] == 7 && got[3] == 2 && got[5] == 4);
  clutch_tensor_release(taken);
  mine.tensor.dtype.lanes = 2;
  FAILS(CLUTCH_INVALID_DTYPE, "2 lanes", clutch_interop_from_dlpack(&mine, NULL, NULL, &taken));
  CHECK(taken == NULL);
  mine.tensor.dtype.lanes = 1;
  mine.tensor.ndim = 13;
  FAILS(CLUTCH_INVALID_SHAPE, "got 13", clutch_interop_from_dlpack(&mine, NULL, NULL, &taken));
  mine.tensor.ndim = 2;
  mine.tensor.device.type = DL_CUDA;
  FAILS(CLUTCH_NOT_SUPPORTED, "got device type 2", clutch_interop_from_dlpack(&mine, NULL, NULL, &taken));
  FAILS(CLUTCH_INVALID_ARGUMENT, "", clutch_interop_from_dlpack(NULL, NULL, NULL, &taken));
  CHECK(deleted == 1);
}

static void partitions(void) {
  int64_t all = 0, left = 0, units = 0, limit = 0;
  OK(clutch_free_units(NULL, &all));
  CHECK(all >= 1);
  clutch_partition_options_t options = CLUTCH_PARTITION_OPTIONS_INIT;
  clutch_partition_t* part = NULL;
  FAILS(CLUTCH_INVALID_ARGUMENT, "not both 0, got 0 and 0", clutch_partition_create(NULL, &options, &part));
  CHECK(part == NULL);
  options.units = all + 1;
  FAILS(CLUTCH_INVALID_ARGUMENT, "are free on device", clutch_partition_create(NULL, &options, &part));
  options.units = 1;
  options.workqueue_limit = 2;
  OK(clutch_partition_create(NULL, &options, &part));
  OK(clutch_partition_units(part, &units));
  OK(clutch_partition_workqueue_limit(part, &limit));
  OK(clutch_free_units(NULL, &left));
  CHECK(units >= 1 && limit == 2 && left == all - units);
  clutch_device_traits_t traits = CLUTCH_DEVICE_TRAITS_INIT;
  OK(clutch_partition_traits(part, &traits));
  CHECK(traits.compute_units == units);
  clutch_partition_guard_t* guard = NULL;
  OK(clutch_partition_guard_create(part, &guard));
  const int64_t sizes[] = {100};
  clutch_tensor_t* x = NULL;
  OK(clutch_full(sizes, 1, 3, NULL, NULL, &x));
  clutch_stream_t *current = NULL, *own = NULL;
  OK(clutch_current_stream(NULL, &current));
  OK(clutch_partition_stream(part, &own));
  uint64_t id = 0, of_own = 1;
  OK(clutch_stream_id(current, &id));
  OK(clutch_stream_id(own, &of_own));
  CHECK(id == of_own);
  OK(clutch_stream_synchronize(own));
  clutch_partition_guard_release(guard);
  clutch_stream_release(own);
  clutch_stream_release(current);
  clutch_partition_release(part);
  OK(clutch_free_units(NULL, &left));
  CHECK(left == all);
  float got[100];
  to_floats(x, got, 100);
  CHECK(got[99] == 3);
  clutch_tensor_release(x);
  /* A list that is too short makes nothing. */
  const int64_t wanted[] = {1, 1};
  clutch_partition_t* parts[2] = {NULL, NULL};
  size_t count = 0;
  if (all < 2) return;
  FAILS(CLUTCH_INVALID_ARGUMENT, "capacity must be at least 2, got 1", clutch_partition_split(NULL, wanted, 2, parts, 1, &count));
  OK(clutch_free_units(NULL, &left));
  CHECK(left == all && parts[0] == NULL);
  OK(clutch_partition_split(NULL, wanted, 2, parts, 2, &count));
  CHECK(count == 2);
  clutch_partition_release(parts[0]);
  clutch_partition_release(parts[1]);
}

static void errors(void) {
  int64_t rank = -1;
  const int64_t sizes[] = {4};
  clutch_tensor_t* x = NULL;
  OK(clutch_zeros(sizes, 1, NULL, NULL, &x));
  FAILS(CLUTCH_INVALID_ARGUMENT, "clutch_tensor_rank: tensor must not be NULL", clutch_tensor_rank(NULL, &rank));
  const char* text = clutch_error_message();
  /* Until another function fails, the text stays where it is. */
  OK(clutch_tensor_rank(x, &rank));
  CHECK(rank == 1 && text == clutch_error_message() && strstr(text, "clutch_tensor_rank") != NULL && strcmp(clutch_error_op(), "clutch_tensor_rank") == 0);
  FAILS(CLUTCH_INVALID_ARGUMENT, "clutch_tensor_numel", clutch_tensor_numel(NULL, &rank));
  CHECK(strcmp(clutch_status_name(CLUTCH_MISMATCH), "mismatch") == 0 && strcmp(clutch_status_name(-1), "unknown") == 0);
  clutch_tensor_release(x);
}

static void sizes_of_structs(void) {
  const int64_t sizes[] = {4};
  clutch_tensor_t* x = NULL;
  OK(clutch_zeros(sizes, 1, NULL, NULL, &x));
  /* A struct of a newer header: what this library does not know must be 0. */
  struct {
    clutch_reduce_options_t known;
    int64_t added;
  } newer = {CLUTCH_REDUCE_OPTIONS_INIT, 0};
  newer.known.size = sizeof newer;
  clutch_tensor_t* sum = NULL;
  OK(clutch_zeros(NULL, 0, NULL, NULL, &sum));
  OK(clutch_sum_out(sum, x, &newer.known, NULL));
  newer.added = 1;
  FAILS(CLUTCH_NOT_SUPPORTED, "of clutch_reduce_options_t that this version", clutch_sum_out(sum, x, &newer.known, NULL));
  const size_t wrong[] = {0, 1, 8, 20, 1000000};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    clutch_reduce_options_t options = CLUTCH_REDUCE_OPTIONS_INIT;
    options.size = wrong[i];
    char text[40];
    snprintf(text, sizeof text, "got %llu", (unsigned long long)wrong[i]);
    FAILS(CLUTCH_INVALID_ARGUMENT, text, clutch_sum_out(sum, x, &options, NULL));
  }
  /* Of a result an older caller gets what it has a place for. */
  clutch_memory_info_t info = CLUTCH_MEMORY_INFO_INIT;
  info.size = offsetof(clutch_memory_info_t, total);
  info.total = 42;
  OK(clutch_get_memory_info(NULL, &info));
  CHECK(info.free > 0 && info.total == 42 && info.size == offsetof(clutch_memory_info_t, total));
  clutch_tensor_release(sum);
  clutch_tensor_release(x);
}

int main(int count, char** arguments) {
  CHECK(clutch_abi_version() == CLUTCH_C_ABI);
  CHECK(strcmp(clutch_status_name(CLUTCH_INVALID_SHAPE), "invalid_shape") == 0);
  devices();
  elementwise();
  products();
  graphs(count > 1 ? arguments[1] : "c99_test.graph");
  training();
  kernels();
  dlpack();
  partitions();
  errors();
  sizes_of_structs();
  puts("the C ABI works in C99");
  return 0;
}
