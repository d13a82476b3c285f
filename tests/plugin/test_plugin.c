/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins of the tests, one for each macro, in C99 and without libclutch: GOOD does what it says; the others lie, are of another ABI, or fail.
 *   addcmul_demo  f32, contiguous, of one shape, in the order fma_of_quotient; a score above 0. With WHOLE u32, too
 *   cumsum_demo   whole numbers of a contiguous line; by name alone
 *   attention_demo  f32, contiguous; by name alone
 *   fill_demo     f32, contiguous; by name, with FILLS by a score
 *   cat_demo      f32, contiguous, along dimension 0; by name alone
 *   sum_demo      all elements of contiguous i32; by name alone
 *   softmax_demo  f32, contiguous, along the last of two dimensions
 *   map_demo      the square of contiguous f32, a function that it knows by its text
 *   reduce_demo   the largest square of each row of contiguous f32, by that text
 *   product_demo  products of contiguous i8 matrices, shifted by a row, by its text
 *   rows_demo     f32 times the largest square of its row, by that text, of contiguous rows
 *   norm_demo     rms_norm of contiguous rows of f32, by other ops
 *   classes_demo  cross_entropy of contiguous f32 and i64, of each row, without weights and smoothing
 *   demo_replay   replays graphs node by node
 *   demo devices  with DEVICES: memory and queues without kernels
 */
#include <clutch/plugin.h>

#include <stdlib.h>
#include <string.h>

#ifndef NAME
#define NAME "demo"
#endif
#ifndef SCORE
#define SCORE 1
#endif
#ifndef ABI
#define ABI CLUTCH_PLUGIN_ABI
#endif
#ifndef OP
#define OP "addcmul_out"
#endif

static const clutch_host_t* host;

#define TRY(call)                                     \
  do {                                                \
    const clutch_status_t status_ = host->api->call;  \
    if (status_ != CLUTCH_OK) return status_;         \
  } while (0)

static clutch_status_t refuse(const char* why) {
  host->set_error(why);
  return CLUTCH_NOT_SUPPORTED;
}

/* Whether a tensor is contiguous, of this dtype, and has so many elements. */
static clutch_status_t is_plain(const clutch_tensor_t* tensor, int64_t dtype, int64_t count, int* answer) {
  int64_t contiguous = 0, type = -1, numel = -1;
  TRY(tensor_is_contiguous(tensor, &contiguous));
  TRY(tensor_dtype(tensor, &type));
  TRY(tensor_numel(tensor, &numel));
  *answer = contiguous && type == dtype && numel == count;
  return CLUTCH_OK;
}

static clutch_argument_t of_tensor(int64_t kind, const clutch_tensor_t* tensor) {
  clutch_argument_t argument = CLUTCH_ARGUMENT_INIT;
  argument.kind = kind;
  argument.tensor = tensor;
  return argument;
}
static clutch_argument_t of_value(const void* value, size_t size, const char* type) {
  clutch_argument_t argument = CLUTCH_ARGUMENT_INIT;
  argument.kind = CLUTCH_ARGUMENT_KIND_VALUE;
  argument.value = value;
  argument.value_size = size;
  argument.type = type;
  return argument;
}

#if defined(LIAR)
#define RESULT "i == 7 ? nextafter(r, INFINITY) : r"
#define FURTHER ""
#elif defined(BESIDE)
#define RESULT "r"
#define FURTHER "if (i == 0) out[-1] = r;"
#else
#define RESULT "r"
#define FURTHER ""
#endif
#if defined(SPOILS_INPUT)
#define X "__global float* x"
#define SPOIL "x[i] = 0;"
#define X_KIND CLUTCH_ARGUMENT_KIND_INOUT
#else
#define X "__global const float* x"
#define SPOIL ""
#define X_KIND CLUTCH_ARGUMENT_KIND_INPUT
#endif

#if defined(WHOLE) || defined(LIES_IN_U32)
#if defined(LIES_IN_U32)
#define WRONG " + (i == 7)"
#else
#define WRONG ""
#endif
static clutch_status_t whole(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* a, const clutch_tensor_t* b,
                             const clutch_addc_options_t* options, int64_t count, const clutch_stream_t* stream) {
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_whole(__global uint* out, __global const uint* x, __global const uint* a, __global const uint* b, uint value) {\n"
                "  const size_t i = get_global_id(0);\n  out[i] = x[i] + value * a[i] * b[i]" WRONG ";\n}\n";
  source.entry = "demo_whole";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)count;
  const uint32_t value = (uint32_t)(int64_t)options->value;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, x),
                                         of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, a), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, b), of_value(&value, sizeof value, "uint")};
  const clutch_argument_t* pointers[5];
  for (int i = 0; i < 5; ++i) pointers[i] = &arguments[i];
  return host->api->launch(&source, &geometry, pointers, 5, stream);
}
#endif

static clutch_status_t addcmul(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_tensor_t* a, const clutch_tensor_t* b,
                               const clutch_addc_options_t* options, const clutch_stream_t* stream) {
#if defined(REFUSES)
  (void)out, (void)x, (void)a, (void)b, (void)options, (void)stream;
  return refuse("it never does");
#elif defined(WRITES_AND_REFUSES)
  (void)x, (void)a, (void)b, (void)options;
  TRY(fill_(out, 0, NULL, stream));
  return refuse("it has begun");
#else
  int64_t count = 0;
  int plain[4] = {0, 0, 0, 0};
  TRY(tensor_numel(out, &count));
  const clutch_tensor_t* const all[] = {out, x, a, b};
#if defined(WHOLE) || defined(LIES_IN_U32)
  for (int i = 0; i < 4; ++i) {
    const clutch_status_t status = is_plain(all[i], CLUTCH_DTYPE_U32, count, &plain[i]);
    if (status != CLUTCH_OK) return status;
  }
  if (plain[0] && plain[1] && plain[2] && plain[3]) return whole(out, x, a, b, options, count, stream);
#endif
  for (int i = 0; i < 4; ++i) {
    const clutch_status_t status = is_plain(all[i], CLUTCH_DTYPE_F32, count, &plain[i]);
    if (status != CLUTCH_OK) return status;
  }
#if defined(SHY)
  /* No problem of a proof has so many. */
  if (count != 1000) return refuse("there must be 1000 elements");
#endif
  if (!plain[0] || !plain[1] || !plain[2] || !plain[3] || options->order != CLUTCH_ADDC_ORDER_FMA_OF_QUOTIENT)
    return refuse("tensors must be f32, contiguous and of one shape");
#if defined(FAILS)
  host->set_error("it fails on purpose");
  return CLUTCH_INVALID_ARGUMENT;
#endif
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo(__global float* out, " X ", __global const float* a, __global const float* b, float value, int one) {\n"
                "  const size_t i = get_global_id(0);\n"
                "  const float r = one ? fma(a[i], b[i], x[i]) : fma(value, a[i] * b[i], x[i]);\n"
                "  out[i] = " RESULT ";\n  " FURTHER SPOIL "\n}\n";
  source.entry = "demo";
  source.options = "-cl-fp32-correctly-rounded-divide-sqrt";
  source.file = "demo.cl";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)count;
  const float value = (float)options->value;
  const int32_t one = options->value == 1;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(X_KIND, x), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, a),
                                         of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, b), of_value(&value, sizeof value, "float"), of_value(&one, sizeof one, "int")};
  const clutch_argument_t* pointers[6];
  for (int i = 0; i < 6; ++i) pointers[i] = &arguments[i];
  return host->api->launch(&source, &geometry, pointers, 6, stream);
#endif
}

static clutch_status_t cumsum(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_cumsum_options_t* options,
                              const clutch_stream_t* stream) {
  int64_t count = 0, rank = 0;
  int x_plain = 0, out_plain = 0;
  (void)dim;
  TRY(tensor_numel(out, &count));
  TRY(tensor_rank(x, &rank));
  clutch_status_t status = is_plain(x, CLUTCH_DTYPE_I32, count, &x_plain);
  if (status == CLUTCH_OK) status = is_plain(out, CLUTCH_DTYPE_I64, count, &out_plain);
  if (status != CLUTCH_OK) return status;
  if (!x_plain || !out_plain || rank != 1 || options->reverse) return refuse("x must be a contiguous line of i32, summed forward");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_sums(__global long* out, __global const int* x, long n) { long s = 0; for (long i = 0; i < n; ++i) out[i] = s += x[i]; }";
  source.entry = "demo_sums";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.local = 1;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, x), of_value(&count, sizeof count, "long")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1], &arguments[2]};
  return host->api->launch(&source, &geometry, pointers, 3, stream);
}

#if defined(LIES_IN_ATTENTION)
#define FACTOR "1.0001f"
#else
#define FACTOR "1.0f"
#endif

static clutch_status_t attention(const clutch_attention_flex_result_t* results, const clutch_tensor_t* q, const clutch_tensor_t* k, const clutch_tensor_t* v,
                                 const clutch_attention_flex_options_t* options, const clutch_stream_t* stream) {
  int64_t of_q[4], of_k[4], of_v[4], count[4];
  int plain[4] = {0, 0, 0, 0};
  TRY(tensor_sizes(q, of_q, 4, NULL));
  TRY(tensor_sizes(k, of_k, 4, NULL));
  TRY(tensor_sizes(v, of_v, 4, NULL));
  const clutch_tensor_t* const all[] = {results->out, q, k, v};
  for (int i = 0; i < 4; ++i) {
    TRY(tensor_numel(all[i], &count[i]));
    const clutch_status_t status = is_plain(all[i], CLUTCH_DTYPE_F32, count[i], &plain[i]);
    if (status != CLUTCH_OK) return status;
  }
  if (!plain[0] || !plain[1] || !plain[2] || !plain[3] || of_q[0] != of_k[0])
    return refuse("tensors must be contiguous f32 of as many batches");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_attention(__global float* out, __global float* lse, __global const float* q, __global const float* k, __global const float* v,\n"
                "                             int wants_lse, long heads, long factor, long rows, long keys, long e, long ev, float scale) {\n"
                "  const long row = get_global_id(0), line = row / rows, b = line / heads, h = line % heads / factor;\n"
                "  q += row * e; k += (b * (heads / factor) + h) * keys * e; v += (b * (heads / factor) + h) * keys * ev; out += row * ev;\n"
                "  if (scale == 0) scale = 1 / sqrt((float)e);\n"
                "  float most = -INFINITY, sum = 0;\n"
                "  for (long s = 0; s < keys; ++s) { float x = 0; for (long i = 0; i < e; ++i) x = fma(q[i], k[s * e + i], x); most = fmax(most, x * scale); }\n"
                "  for (long i = 0; i < ev; ++i) out[i] = 0;\n"
                "  for (long s = 0; s < keys; ++s) {\n"
                "    float x = 0; for (long i = 0; i < e; ++i) x = fma(q[i], k[s * e + i], x);\n"
                "    const float p = exp(x * scale - most); sum += p;\n"
                "    for (long i = 0; i < ev; ++i) out[i] = fma(p, v[s * ev + i], out[i]);\n"
                "  }\n"
                "  for (long i = 0; i < ev; ++i) out[i] = out[i] / sum * " FACTOR ";\n"
                "  if (wants_lse) lse[row] = most + log(sum);\n"
                "}\n";
  source.entry = "demo_attention";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)(of_q[0] * of_q[1] * of_q[2]);
  const int32_t wants_lse = results->lse != NULL;
  const int64_t factor = of_q[1] / of_k[1];
  const float scale = options->has_scale ? (float)options->scale : 0;
  const clutch_argument_t arguments[] = {
      of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, results->out), of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, wants_lse ? results->lse : results->out),
      of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, q), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, k), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, v),
      of_value(&wants_lse, sizeof wants_lse, "int"), of_value(&of_q[1], 8, "long"), of_value(&factor, 8, "long"), of_value(&of_q[2], 8, "long"),
      of_value(&of_k[2], 8, "long"), of_value(&of_q[3], 8, "long"), of_value(&of_v[3], 8, "long"), of_value(&scale, sizeof scale, "float")};
  const clutch_argument_t* pointers[13];
  for (int i = 0; i < 13; ++i) pointers[i] = &arguments[i];
  return host->api->launch(&source, &geometry, pointers, 13, stream);
}

#if defined(FILLS)
#define FILL_SCORE 3
#else
#define FILL_SCORE 0
#endif
static clutch_status_t fill_all(const clutch_tensor_t* self, double value, const clutch_fill_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0;
  int plain = 0;
  (void)options;
  TRY(tensor_numel(self, &count));
  const clutch_status_t status = is_plain(self, CLUTCH_DTYPE_F32, count, &plain);
  if (status != CLUTCH_OK) return status;
  if (!plain) return refuse("the tensor must be contiguous f32");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_fill(__global float* out, float value) { out[get_global_id(0)] = value; }";
  source.entry = "demo_fill";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)count;
  const float single = (float)value;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, self), of_value(&single, sizeof single, "float")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1]};
  return host->api->launch(&source, &geometry, pointers, 2, stream);
}

/* LIES_IN_CAT: the last tensor comes first. */
static clutch_status_t cat(const clutch_tensor_t* out, const clutch_tensor_t* const* tensors, size_t tensors_count, int64_t dim,
                           const clutch_cat_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0, at = 0;
  int plain = 0;
  size_t i;
  (void)options;
  if (dim != 0) return refuse("the dimension must be the first");
  TRY(tensor_numel(out, &count));
  clutch_status_t status = is_plain(out, CLUTCH_DTYPE_F32, count, &plain);
  for (i = 0; i < tensors_count && status == CLUTCH_OK && plain; ++i) {
    TRY(tensor_numel(tensors[i], &count));
    status = is_plain(tensors[i], CLUTCH_DTYPE_F32, count, &plain);
  }
  if (status != CLUTCH_OK) return status;
  if (!plain) return refuse("tensors must be contiguous f32");
  for (i = 0; i < tensors_count; ++i) {
#if defined(LIES_IN_CAT)
    const clutch_tensor_t* const from = tensors[(i + tensors_count - 1) % tensors_count];
#else
    const clutch_tensor_t* const from = tensors[i];
#endif
    clutch_tensor_t* part = NULL;
    int64_t rows = 0;
    TRY(tensor_size(from, 0, &rows));
    TRY(tensor_slice(out, 0, at, at + rows, 1, &part));
    status = host->api->copy_(part, from, NULL, stream);
    host->api->tensor_release(part);
    if (status != CLUTCH_OK) return status;
    at += rows;
  }
  return CLUTCH_OK;
}

/* LIES_WHERE_KEPT: a sum that keeps its dimension is one too large. */
static clutch_status_t sum(const clutch_tensor_t* out, const clutch_tensor_t* x, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0, of_out = 0;
  int32_t more = 0;
  int plain[2] = {0, 0};
  TRY(tensor_numel(x, &count));
  TRY(tensor_numel(out, &of_out));
  clutch_status_t status = is_plain(x, CLUTCH_DTYPE_I32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(out, CLUTCH_DTYPE_I64, 1, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1] || of_out != 1 || options->after) return refuse("x must be contiguous i32, summed to one i64");
#if defined(LIES_WHERE_KEPT)
  more = options->keepdim != 0;
#endif
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_sum(__global long* out, __global const int* x, long n, int more) { long s = more; for (long i = 0; i < n; ++i) s += x[i]; *out = s; }";
  source.entry = "demo_sum";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.local = 1;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, x), of_value(&count, sizeof count, "long"),
                                         of_value(&more, sizeof more, "int")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1], &arguments[2], &arguments[3]};
  return host->api->launch(&source, &geometry, pointers, 4, stream);
}

#if defined(LIES_IN_SOFTMAX)
#define PART "1.0001f"
#else
#define PART "1.0f"
#endif
static clutch_status_t softmax(const clutch_tensor_t* out, const clutch_tensor_t* x, int64_t dim, const clutch_stream_t* stream) {
  int64_t count = 0, rank = 0, sizes[2];
  int plain[2] = {0, 0};
  TRY(tensor_numel(x, &count));
  TRY(tensor_rank(x, &rank));
  clutch_status_t status = is_plain(x, CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(out, CLUTCH_DTYPE_F32, count, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1] || rank != 2 || (dim != 1 && dim != -1)) return refuse("x must be contiguous rows of f32");
  TRY(tensor_sizes(x, sizes, 2, NULL));
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_softmax(__global float* out, __global const float* x, long n) {\n"
                "  x += get_global_id(0) * n; out += get_global_id(0) * n;\n"
                "  float most = -INFINITY, sum = 0;\n"
                "  for (long i = 0; i < n; ++i) { if (isnan(x[i])) most = x[i]; if (!isnan(most)) most = fmax(most, x[i]); }\n"
                "  for (long i = 0; i < n; ++i) sum += exp(x[i] - most);\n"
                "  for (long i = 0; i < n; ++i) out[i] = exp(x[i] - most) / sum * " PART ";\n"
                "}\n";
  source.entry = "demo_softmax";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)sizes[0];
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, x), of_value(&sizes[1], 8, "long")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1], &arguments[2]};
  return host->api->launch(&source, &geometry, pointers, 3, stream);
}

/* LIES_IN_MAP: element 7 is one ulp too large. */
#if defined(LIES_IN_MAP)
#define SQUARE "i == 7 ? nextafter(x[i] * x[i], INFINITY) : x[i] * x[i]"
#else
#define SQUARE "x[i] * x[i]"
#endif
static clutch_status_t map(const clutch_tensor_t* const* outputs, size_t outputs_count, const clutch_expr_function_t* function,
                           const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_map_options_t* options, const clutch_stream_t* stream) {
  static const char kSquare[] = "inputs f32\n%1 = mul %0 %0\noutputs %1\n";
  char text[sizeof kSquare + 1] = {0};
  int64_t count = 0;
  int plain[2] = {0, 0};
  size_t length = 0;
  (void)options;
  TRY(expr_function_text(function, text, sizeof text, &length));
  if (outputs_count != 1 || inputs_count != 1 || length != sizeof kSquare - 1 || strcmp(text, kSquare) != 0) return refuse("the function must be a square");
  TRY(tensor_numel(outputs[0], &count));
  clutch_status_t status = is_plain(outputs[0], CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(inputs[0], CLUTCH_DTYPE_F32, count, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1]) return refuse("tensors must be contiguous f32");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_square(__global float* out, __global const float* x) { const size_t i = get_global_id(0); out[i] = " SQUARE "; }";
  source.entry = "demo_square";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)count;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, outputs[0]), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, inputs[0])};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1]};
  return host->api->launch(&source, &geometry, pointers, 2, stream);
}

/* Whether a function has this text. */
static clutch_status_t has_text(const clutch_expr_function_t* function, const char* wanted, int* answer) {
  char text[200] = {0};
  size_t length = 0;
  TRY(expr_function_text(function, text, sizeof text, &length));
  *answer = length == strlen(wanted) && strcmp(text, wanted) == 0;
  return CLUTCH_OK;
}

/* LIES_IN_REDUCE: the last row's is one ulp too large. */
#if defined(LIES_IN_REDUCE)
#define LARGEST "row + 1 == get_global_size(0) ? nextafter(most, INFINITY) : most"
#else
#define LARGEST "most"
#endif
static clutch_status_t largest(const clutch_tensor_t* out, int64_t op, const clutch_expr_function_t* function, const clutch_tensor_t* const* inputs,
                               size_t inputs_count, const clutch_reduce_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0, rank = 0, rows = 0, sizes[2];
  int plain[2] = {0, 0}, square = 0;
  TRY(tensor_numel(out, &rows));
  clutch_status_t status = has_text(function, "inputs f32\n%1 = mul %0 %0\noutputs %1\n", &square);
  if (status != CLUTCH_OK) return status;
  if (op != CLUTCH_REDUCE_AMAX || !square || inputs_count != 1 || options->after || options->keepdim) return refuse("it must be the largest square");
  TRY(tensor_rank(inputs[0], &rank));
  TRY(tensor_numel(inputs[0], &count));
  status = is_plain(inputs[0], CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(out, CLUTCH_DTYPE_F32, rows, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1] || rank != 2 || options->dims_count != 1 || (options->dims[0] != 1 && options->dims[0] != -1))
    return refuse("x must be contiguous rows of f32");
  TRY(tensor_sizes(inputs[0], sizes, 2, NULL));
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_largest(__global float* out, __global const float* x, long n) {\n"
                "  const size_t row = get_global_id(0);\n  float most = x[row * n] * x[row * n];\n"
                "  for (long i = 1; i < n; ++i) { const float s = x[row * n + i] * x[row * n + i]; if (isnan(s) || s > most) most = s; if (isnan(most)) break; }\n"
                "  out[row] = " LARGEST ";\n}\n";
  source.entry = "demo_largest";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)rows;
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, inputs[0]),
                                         of_value(&sizes[1], 8, "long")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1], &arguments[2]};
  return host->api->launch(&source, &geometry, pointers, 3, stream);
}

/* LIES_IN_PRODUCT: a sum is one too large. */
#if defined(LIES_IN_PRODUCT)
#define SUM "s + (j == 3)"
#else
#define SUM "s"
#endif
static clutch_status_t shifted_product(const clutch_tensor_t* out, const clutch_tensor_t* a, const clutch_tensor_t* b, const clutch_expr_function_t* function,
                                       const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_linalg_matmul_options_t* options,
                                       const clutch_stream_t* stream) {
  int64_t of_a[2], of_b[2], count = 0, rank_a = 0, rank_b = 0;
  int plain[4] = {0, 0, 0, 0}, shifts = 0;
  clutch_status_t status = has_text(function, "inputs i32 i32\n%2 = add %0 %1\noutputs %2\n", &shifts);
  if (status != CLUTCH_OK) return status;
  TRY(tensor_rank(a, &rank_a));
  TRY(tensor_rank(b, &rank_b));
  if (!shifts || inputs_count != 1 || rank_a != 2 || rank_b != 2 || options->alpha != 1 || options->beta != 0) return refuse("it must be a shifted product");
  TRY(tensor_sizes(a, of_a, 2, NULL));
  TRY(tensor_sizes(b, of_b, 2, NULL));
  const clutch_tensor_t* const all[] = {out, a, b, inputs[0]};
  const int64_t dtypes[] = {CLUTCH_DTYPE_I32, CLUTCH_DTYPE_I8, CLUTCH_DTYPE_I8, CLUTCH_DTYPE_I32};
  const int64_t counts[] = {of_a[0] * of_b[1], of_a[0] * of_a[1], of_b[0] * of_b[1], of_b[1]};
  for (int i = 0; i < 4 && status == CLUTCH_OK; ++i) status = is_plain(all[i], dtypes[i], counts[i], &plain[i]);
  if (status != CLUTCH_OK) return status;
  TRY(tensor_rank(inputs[0], &count));
  if (!plain[0] || !plain[1] || !plain[2] || !plain[3] || count != 1) return refuse("matrices must be contiguous i8, and the shift a row of i32");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_product(__global int* out, __global const char* a, __global const char* b, __global const int* row, long n, long k) {\n"
                "  const long i = get_global_id(0) / n, j = get_global_id(0) % n;\n  int s = 0;\n"
                "  for (long l = 0; l < k; ++l) s += a[i * k + l] * b[l * n + j];\n  out[i * n + j] = " SUM " + row[j];\n}\n";
  source.entry = "demo_product";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)counts[0];
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, a),
                                         of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, b),    of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, inputs[0]),
                                         of_value(&of_b[1], 8, "long"),               of_value(&of_a[1], 8, "long")};
  const clutch_argument_t* pointers[6];
  for (int i = 0; i < 6; ++i) pointers[i] = &arguments[i];
  return host->api->launch(&source, &geometry, pointers, 6, stream);
}

/* LIES_IN_ROWS: a row's last element is one ulp too large. */
#if defined(LIES_IN_ROWS)
#define OF_ROW "i + 1 == n ? nextafter(x[i] * most, INFINITY) : x[i] * most"
#else
#define OF_ROW "x[i] * most"
#endif
static clutch_status_t rows_of(const clutch_tensor_t* const* outputs, size_t outputs_count, const clutch_row_function_t* function,
                               const clutch_tensor_t* const* inputs, size_t inputs_count, const clutch_rowwise_options_t* options,
                               const clutch_stream_t* stream) {
  static const char kText[] = "rows f32\ntotal amax\ninputs f32 f32 f32 f32 f32 f32\n%6 = mul %0 %0\noutputs %6\n"
                              "elements\ninputs f32 f32 f32 f32 f32 f32\n%6 = mul %0 %1\noutputs %6\n";
  char text[sizeof kText + 1] = {0};
  int64_t count = 0, rank = 0, sizes[2];
  int plain[2] = {0, 0};
  size_t length = 0;
  /* A text that is longer than the known one is another one, and its function another's. */
  TRY(row_function_text(function, NULL, 0, &length));
  if (length != sizeof kText - 1 || outputs_count != 1 || inputs_count != 1) return refuse("the function must be by the largest square");
  TRY(row_function_text(function, text, sizeof text, &length));
  if (strcmp(text, kText) != 0) return refuse("the function must be by the largest square");
  TRY(tensor_rank(inputs[0], &rank));
  TRY(tensor_numel(inputs[0], &count));
  clutch_status_t status = is_plain(inputs[0], CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(outputs[0], CLUTCH_DTYPE_F32, count, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1] || rank != 2 || options->dims_count != 1 || (options->dims[0] != 1 && options->dims[0] != -1))
    return refuse("x must be contiguous rows of f32");
  TRY(tensor_sizes(inputs[0], sizes, 2, NULL));
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_rows(__global float* out, __global const float* x, long n) {\n"
                "  x += get_global_id(0) * n; out += get_global_id(0) * n;\n  float most = x[0] * x[0];\n"
                "  for (long i = 1; i < n; ++i) { const float s = x[i] * x[i]; if (isnan(s) || s > most) most = s; if (isnan(most)) break; }\n"
                "  for (long i = 0; i < n; ++i) out[i] = " OF_ROW ";\n}\n";
  source.entry = "demo_rows";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)sizes[0];
  /* The output may be the input. */
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, outputs[0]), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, inputs[0]),
                                         of_value(&sizes[1], 8, "long")};
  const clutch_argument_t* const pointers[] = {&arguments[0], &arguments[1], &arguments[2]};
  return host->api->launch(&source, &geometry, pointers, 3, stream);
}

/* LIES_IN_NORM: eps is always 1e-5. */
static clutch_status_t norm_by(const clutch_tensor_t* squares, const clutch_nn_rms_norm_result_t* out, const clutch_tensor_t* x,
                               const clutch_tensor_t* weight, double eps, const clutch_stream_t* stream) {
  const int64_t last = -1;
  clutch_reduce_options_t rows = CLUTCH_REDUCE_OPTIONS_INIT;
  rows.dims = &last;
  rows.dims_count = 1;
  rows.keepdim = 1;
#if defined(LIES_IN_NORM)
  eps = 1e-5;
#endif
  const clutch_number_t added = {eps, 0};
  TRY(square_(squares, NULL, stream));
  TRY(mean_out(out->rrms, squares, &rows, stream));
  TRY(add_number_(out->rrms, added, NULL, stream));
  TRY(rsqrt_(out->rrms, NULL, stream));
  TRY(mul_out(out->y, x, out->rrms, NULL, stream));
  if (weight) TRY(mul_(out->y, weight, NULL, stream));
  return CLUTCH_OK;
}
static clutch_status_t norm(const clutch_nn_rms_norm_result_t* out, const clutch_tensor_t* x, const clutch_tensor_t* weight,
                            const clutch_nn_norm_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0, of_weight = CLUTCH_DTYPE_F32;
  int plain[2] = {0, 0};
  clutch_tensor_t* squares = NULL;
  TRY(tensor_numel(x, &count));
  clutch_status_t status = is_plain(x, CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(out->y, CLUTCH_DTYPE_F32, count, &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (weight) TRY(tensor_dtype(weight, &of_weight));
  if (!plain[0] || !plain[1] || options->normalized_rank != 1 || of_weight != CLUTCH_DTYPE_F32) return refuse("x must be contiguous rows of f32");
  TRY(tensor_clone(x, stream, &squares));
  status = norm_by(squares, out, x, weight, options->eps, stream);
  host->api->tensor_release(squares);
  return status;
}

/* LIES_IN_CLASSES: a target that is ignored has a loss. */
#if defined(LIES_IN_CLASSES)
#define IGNORED "0"
#else
#define IGNORED "target[row] == ignored"
#endif
static clutch_status_t classes(const clutch_nn_cross_entropy_result_t* out, const clutch_tensor_t* logits, const clutch_tensor_t* target,
                               const clutch_nn_cross_entropy_options_t* options, const clutch_stream_t* stream) {
  int64_t count = 0, rank = 0, sizes[2];
  int plain[2] = {0, 0};
  TRY(tensor_rank(logits, &rank));
  if (rank != 2 || options->reduction != CLUTCH_NN_REDUCTION_NONE || options->weight || options->label_smoothing != 0)
    return refuse("it must be the losses of rows, without weights and smoothing");
  TRY(tensor_numel(logits, &count));
  TRY(tensor_sizes(logits, sizes, 2, NULL));
  clutch_status_t status = is_plain(logits, CLUTCH_DTYPE_F32, count, &plain[0]);
  if (status == CLUTCH_OK) status = is_plain(target, CLUTCH_DTYPE_I64, sizes[0], &plain[1]);
  if (status != CLUTCH_OK) return status;
  if (!plain[0] || !plain[1]) return refuse("tensors must be contiguous f32 and i64");
  clutch_kernel_source_t source = CLUTCH_KERNEL_SOURCE_INIT;
  source.text = "__kernel void demo_classes(__global float* loss, __global float* top, __global float* log_sum, __global const float* x,\n"
                "                           __global const long* target, long n, long ignored) {\n"
                "  const size_t row = get_global_id(0);\n  x += row * n;\n  float most = x[0], sum = 0;\n"
                "  for (long i = 1; i < n; ++i) most = isnan(x[i]) || x[i] > most ? x[i] : most;\n"
                "  for (long i = 0; i < n; ++i) sum += exp(x[i] - most);\n"
                "  const long t = target[row];\n  top[row] = most; log_sum[row] = log(sum);\n"
                "  loss[row] = " IGNORED " ? 0 : t < 0 || t >= n ? NAN : log_sum[row] - (x[t] - most);\n}\n";
  source.entry = "demo_classes";
  clutch_geometry_t geometry = CLUTCH_GEOMETRY_INIT;
  geometry.global = (uint64_t)sizes[0];
  const clutch_argument_t arguments[] = {of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out->loss),    of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out->max),
                                         of_tensor(CLUTCH_ARGUMENT_KIND_OUTPUT, out->log_sum), of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, logits),
                                         of_tensor(CLUTCH_ARGUMENT_KIND_INPUT, target),        of_value(&sizes[1], 8, "long"),
                                         of_value(&options->ignore_index, 8, "long")};
  const clutch_argument_t* pointers[7];
  for (int i = 0; i < 7; ++i) pointers[i] = &arguments[i];
  return host->api->launch(&source, &geometry, pointers, 7, stream);
}

/* MOST_NODES: graphs of more are refused. REPLAY_FAILS: the code that each replay gives. */
#ifndef MOST_NODES
#define MOST_NODES 100
#endif
static clutch_status_t create(void** state) {
  *state = calloc(1, sizeof(int));
  return *state ? CLUTCH_OK : CLUTCH_OUT_OF_MEMORY;
}
static clutch_status_t instantiate(void* state, const clutch_graph_program_t* program) {
  int64_t size = 0;
  TRY(graph_program_size(program, &size));
  *(int*)state = (int)size;
  return size < MOST_NODES ? CLUTCH_OK : refuse("graphs must have fewer nodes");
}
static clutch_status_t replay(void* state, const clutch_graph_program_t* program, const clutch_stream_t* stream) {
  for (int i = 0; i < *(int*)state; ++i) TRY(graph_program_enqueue(program, i, stream));
  host->log(3, "demo_replay replayed");
#if defined(REPLAY_FAILS)
  host->set_error("it lost count");
  return REPLAY_FAILS;
#else
  return CLUTCH_OK;
#endif
}
static void reset(void* state) { *(int*)state = 0; }
static void destroy(void* state) { free(state); }

#if defined(DEVICES)
#include "test_devices.h"
#endif

static clutch_status_t init(const clutch_host_t* given) {
  (void)given;
#if defined(ASKS_FOR_DEVICES)
  {
    int64_t devices = 0;
    return given->api->device_count(&devices);
  }
#elif defined(INIT_FAILS)
  given->set_error("it finds nothing to do");
  return CLUTCH_NO_DEVICE;
#else
  return CLUTCH_OK;
#endif
}

#if defined(OWN_LIBRARY)
/* As one that has libclutch within. */
CLUTCH_PLUGIN_EXPORT int64_t clutch_abi_version(void) { return CLUTCH_C_ABI; }
#endif

#if !defined(NO_SYMBOL)
const clutch_plugin_t* clutch_plugin_query(int64_t abi, const clutch_host_t* given) {
  static const clutch_plugin_op_t product = {sizeof product, OP, "addcmul_demo", 5, (void (*)(void))addcmul};
  static const clutch_plugin_op_t sums = {sizeof sums, "cumsum_out", "cumsum_demo", 0, (void (*)(void))cumsum};
  static const clutch_plugin_op_t attends = {sizeof attends, "attention_flex_out", "attention_demo", 0, (void (*)(void))attention};
  static const clutch_plugin_op_t fills = {sizeof fills, "fill_", "fill_demo", FILL_SCORE, (void (*)(void))fill_all};
  static const clutch_plugin_op_t joins = {sizeof joins, "cat_out", "cat_demo", 0, (void (*)(void))cat};
  static const clutch_plugin_op_t adds = {sizeof adds, "sum_out", "sum_demo", 0, (void (*)(void))sum};
  static const clutch_plugin_op_t rows = {sizeof rows, "nn_softmax_out", "softmax_demo", 1, (void (*)(void))softmax};
  static const clutch_plugin_op_t maps = {sizeof maps, "map_out", "map_demo", 1, (void (*)(void))map};
  static const clutch_plugin_op_t most = {sizeof most, "reduce_out", "reduce_demo", 1, (void (*)(void))largest};
  static const clutch_plugin_op_t shifts = {sizeof shifts, "linalg_matmul_function_out", "product_demo", 1, (void (*)(void))shifted_product};
  static const clutch_plugin_op_t of_rows = {sizeof of_rows, "rowwise_out", "rows_demo", 1, (void (*)(void))rows_of};
  static const clutch_plugin_op_t norms = {sizeof norms, "nn_rms_norm_out", "norm_demo", 1, (void (*)(void))norm};
  static const clutch_plugin_op_t losses = {sizeof losses, "nn_cross_entropy_out", "classes_demo", 1, (void (*)(void))classes};
  static const clutch_plugin_op_t* const ops[] = {&product, &sums, &attends, &fills, &joins, &adds,   &rows,
                                                  &maps,    &most, &shifts,  &of_rows, &norms, &losses};
  static const clutch_graph_backend_t backend = {sizeof backend, "demo_replay", create, instantiate, replay, reset, destroy};
  static const clutch_graph_backend_t* const backends[] = {&backend};
  static clutch_plugin_t plugin;
  host = given;
  if (abi < ABI && ABI == CLUTCH_PLUGIN_ABI) {
    given->set_error("the library is too old");
    return NULL;
  }
#if defined(QUERY_NULL)
  given->set_error("not on Sundays");
  return NULL;
#else
  plugin.abi = ABI;
  plugin.name = NAME;
  plugin.version = "1.2";
  plugin.score = SCORE;
  plugin.init = init;
  plugin.ops = ops;
  plugin.ops_count = sizeof ops / sizeof *ops;
  plugin.graph_backends = backends;
  plugin.graph_backends_count = 1;
#if defined(DEVICES)
  plugin.device_backends = device_backends;
  plugin.device_backends_count = 1;
#endif
  /* A header that did not know graph backends yet: what stands behind its end is not read. */
#if defined(OLDER)
  plugin.size = offsetof(clutch_plugin_t, graph_backends);
  plugin.graph_backends_count = 77;
#elif defined(NO_SIZE)
  plugin.size = 0;
#else
  plugin.size = sizeof plugin;
#endif
  return &plugin;
#endif
}
#endif
