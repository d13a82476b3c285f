// SPDX-License-Identifier: Apache-2.0
#include "runtime/self_test.hpp"

#include <clutch/kernel.hpp>

#include "encode/probe.hpp"
#include "program/disk_cache.hpp"
#include "runtime/quirks.hpp"
#include "runtime/recorder.hpp"
#include "runtime/runtime.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "self_test/args.h"
#include "support/fma.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

namespace {

/// Iterations of the loop that shows whether the device ends loops early: more than kLoopLimit.
constexpr std::uint32_t kIterations = 70000;

struct Results {
  std::uint8_t fma = 0, divide = 0, sqrt = 0, denormals = 0, timer = 0, args = 0;
  std::uint32_t iterations = kIterations;  ///< number of kIterations that ran
};

struct Triple {
  float a, b, c;
};

/// Inputs that expose wrong rounding: ties and near-ties of fma, division and sqrt, and subnormal results.
std::vector<Triple> crafted_inputs() {
  std::vector<Triple> inputs;
  auto f = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  const float ulp = 0x1p-23f;
  inputs.push_back({1 + ulp, 1 + ulp, -1 - 2 * ulp});  // fma gives 2^-46, two roundings give 0
  inputs.push_back({1 + ulp, 1 - ulp, -1});            // fma gives -2^-46
  inputs.push_back({0x1.fffffep+60f, 0x1.fffffep+60f, 1});
  inputs.push_back({1, 3, 1});
  inputs.push_back({0x1p-126f, 3, 0});  // subnormal quotient
  inputs.push_back({0x1.8p-126f, 2, 0});
  inputs.push_back({0x1.000002p-126f, 2, 0});  // the quotient is a tie between subnormals
  inputs.push_back({0x1.000006p-126f, 2, 0});
  inputs.push_back({f(0x00000003), 2, 0});  // subnormal operand
  std::uint64_t state = 0x9E3779B97F4A7C15ull;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<std::uint32_t>(state >> 32);
  };
  for (int i = 0; i < 4000; ++i) {
    float a = f((next() & 0x007FFFFF) | ((97 + next() % 60) << 23));
    float b = f((next() & 0x007FFFFF) | ((97 + next() % 60) << 23));
    float c = -a * b;
    if (i % 3 == 0) c = f(next() & 0x3FFFFFFF);
    if (i % 4 == 1) a = b * f((next() & 0x00FFF000) | 0x3F800000);  // quotients with few bits: near-ties
    inputs.push_back({a, b, c});
  }
  return inputs;
}

/// Number of iterations of the kernel's loop that give `number`; kIterations if fewer do not.
std::uint32_t iterations_of(std::uint32_t number) {
  std::uint32_t x = 0, i = 0;
  for (; i < kIterations && x != number; ++i) x = x * 1664525u + 1013904223u;
  return i;
}

bool same(float got, float want) { return std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(want); }
bool is_normal_range(const Triple& t, float result) {
  auto fine = [](float x) { return x == 0 || std::fabs(x) >= 0x1p-126f; };
  return fine(t.a) && fine(t.b) && fine(t.c) && fine(result);
}

/// True if a kernel reads the members of a by-value struct as the host wrote them.
bool args_arrive(Runtime& runtime, const Stream& stream) {
  constexpr SelfTestArgs kArgs{.small = 0x81828384u,
                               .wide = -0x7102030405060708,
                               .real = -4099,
                               .list = {11, 0xF2F3F4F5u, 13},
                               .wides = {0x8182838485868788u, 15},
                               .last = -16,
                               .end = 0x91929394u};
  const Tensor out = empty({CLUTCH_SELF_TEST_WORDS}, {.dtype = DType::i64, .device = stream.device()}, stream);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_args", {});
  Encoder encoder(stream, "self_test");
  encoder.output(out).value(kArgs).dispatch(KernelHandle(&kernel), {.global = 1, .local = 1});
  const std::vector<std::int64_t> words = out.to_host<std::int64_t>(stream);
  for (int i = 0; i < CLUTCH_SELF_TEST_WORDS; ++i)
    if (static_cast<std::uint64_t>(words[static_cast<std::size_t>(i)]) != self_test_word(kArgs, i)) return false;
  return true;
}

Results measure(const DeviceRecord& record) {
  Runtime& runtime = runtime_of(record);
  Stream stream(runtime.default_stream());
  Device device(&record);
  std::vector<Triple> inputs = crafted_inputs();
  auto n = static_cast<std::int64_t>(inputs.size());
  std::vector<float> flat;
  for (const Triple& t : inputs) flat.insert(flat.end(), {t.a, t.b, t.c});
  Tensor in = from_host(flat, {n, 3}, device, stream);
  Tensor out = empty({n, 4}, {.dtype = DType::f32, .device = device}, stream);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_rounding", {});
  auto launch = [&](const Tensor& to, std::uint32_t count, std::uint32_t iterations, std::uint64_t items) {
    Encoder encoder(stream, "self_test");
    encoder.output(to).input(in).value(count).value(iterations).dispatch(KernelHandle(&kernel), {.global = items, .local = 1});
  };
  Tensor number = empty({1}, {.dtype = DType::i32, .device = device}, stream);
  launch(number, 0, kIterations, 1);
  launch(out, static_cast<std::uint32_t>(n), 0, 64);
  std::vector<float> got = out.to_host<float>(stream);
  Results r{1, 1, 1, 1, 1, args_arrive(runtime, stream)};
  r.iterations = iterations_of(static_cast<std::uint32_t>(number.to_host<std::int32_t>(stream)[0]));
  bool denormals = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Triple& t = inputs[i];
    float quotient = t.a / t.b, product = t.a * t.b;
    if (std::fpclassify(product) == FP_SUBNORMAL || std::fpclassify(t.a) == FP_SUBNORMAL) denormals = denormals && same(got[4 * i + 3], product);
    if (std::fpclassify(quotient) == FP_SUBNORMAL) denormals = denormals && got[4 * i + 1] != 0;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Triple& t = inputs[i];
    float sum = fma(t.a, t.b, t.c), quotient = t.a / t.b, root = std::sqrt(std::fabs(t.a));
    if (denormals || is_normal_range(t, sum)) r.fma &= same(got[4 * i], sum);
    if (denormals || is_normal_range(t, quotient)) r.divide &= same(got[4 * i + 1], quotient);
    if (denormals || is_normal_range(t, root)) r.sqrt &= same(got[4 * i + 2], root);
  }
  r.denormals = denormals;

  // The timer: a launch between two markers, measured as elapsed_ms() does, must take a positive time, at most 1.5 times the host's.
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now();
  ClEvent before = stream.impl()->mark("self_test");
  {
    KernelLease lease(kernel);
    cl_mem mem[2] = {out.storage()->mem(), in.storage()->mem()};
    cl_ulong offset[2] = {out.storage()->offset(), in.storage()->offset()};
    auto count = static_cast<cl_uint>(n), iterations = cl_uint{0};
    clSetKernelArg(lease.get(), 0, sizeof mem[0], &mem[0]);
    clSetKernelArg(lease.get(), 1, sizeof offset[0], &offset[0]);
    clSetKernelArg(lease.get(), 2, sizeof mem[1], &mem[1]);
    clSetKernelArg(lease.get(), 3, sizeof offset[1], &offset[1]);
    clSetKernelArg(lease.get(), 4, sizeof count, &count);
    clSetKernelArg(lease.get(), 5, sizeof iterations, &iterations);
    std::size_t global = 64, local = 1;
    check_cl(clEnqueueNDRangeKernel(stream.impl()->queue(), lease.get(), 1, nullptr, &global, &local, 0, nullptr, nullptr), "self_test",
             "clEnqueueNDRangeKernel");
  }
  ClEvent after = stream.impl()->mark("self_test");
  stream.synchronize();
  double host_ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  cl_ulong start = 0, end = 0;
  auto read = [](const ClEvent& event, cl_ulong& time) {
    return event && clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr) == CL_SUCCESS;
  };
  r.timer = read(before, start) && read(after, end) && end > start && static_cast<double>(end - start) <= host_ns * 1.5;
  return r;
}

void apply(const Results& r, const DeviceRecord& record, DeviceTraits& t) {
  t.fma_exact = r.fma;
  t.divide_exact = r.divide;
  t.sqrt_exact = r.sqrt;
  t.denormals = r.denormals;
  t.device_timer = r.timer;
  t.args_by_value = r.args;
  if (!r.args) log_line(LogLevel::info, fmt::format("device {} lays structs by value out differently: kernels take them in memory", record.index));
  t.quirks = r.iterations < kIterations ? t.quirks | kQuirkLoopsEndEarly : t.quirks & ~std::uint32_t{kQuirkLoopsEndEarly};
  if (r.iterations + 1 < kLoopLimit)  // +1: the kernel leaves another loop first, which counts as one iteration
    log_line(LogLevel::error, fmt::format("device {} ends loops after {} iterations: results of longer ones are wrong", record.index, r.iterations));
}

}  // namespace

void make_self_test_programs(const Device& device) {
  const RecordingExempt exempt;
  Runtime& runtime = runtime_for(device);
  for (const char* entry : {"self_test_rounding", "self_test_args"}) runtime.programs().find("self_test", entry, {});
}

void run_self_tests(const DeviceRecord& record, DeviceTraits& traits) {
  const std::string& mode = the_settings().self_test.value;
  if (mode == "off") return;
  try {
    RecordingExempt exempt;
    Runtime& runtime = runtime_of(record);
    std::string identity = "self-test 4|" + device_key(runtime);
    Digest key = sha256(identity);
    constexpr std::string_view kKind = ".self_test";
    Results results;
    std::optional<std::string> kept = mode == "fresh" ? std::nullopt : kept_result(key, kKind);
    if (kept && kept->size() == sizeof results) {
      std::memcpy(&results, kept->data(), sizeof results);
    } else {
      results = measure(record);
      keep_result(key, kKind, std::string_view(reinterpret_cast<const char*>(&results), sizeof results));
    }
    apply(results, record, traits);
  } catch (const Error& e) {
    // Other failures may be temporary, so a later call tests again. A test that cannot be built proves nothing, so the traits become false and kernels emulate.
    if (e.code() != ErrorCode::build_failure) throw;
    traits.fma_exact = traits.divide_exact = traits.sqrt_exact = traits.device_timer = traits.args_by_value = false;
    log_line(LogLevel::warn, fmt::format("device {} cannot build the self-test, so its rounding is emulated: {}", record.index, e.what()));
  }
}

}}}  // namespace clutch::v0::detail
