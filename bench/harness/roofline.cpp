// SPDX-License-Identifier: Apache-2.0
#include "encode/matrix_speed.hpp"
#include "harness/bench.hpp"
#include "harness/json_input.hpp"
#include "profile/roof_file.hpp"
#include "support/private_folder.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <span>
#include <thread>

namespace clutch::bench {

namespace {

// Bandwidth kernels repeat inside the launch, so that small working sets show the caches' speed and not the launch. V is a vector of 16 (one item per group) or
// 4 floats. With SHIFTS each pass takes a group to another part: a GPU's first-level caches, which an op's launch finds empty, would else serve all passes but
// the first.
constexpr std::string_view kText = R"CL(
#pragma OPENCL FP_CONTRACT OFF
#if defined(__has_builtin)
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(v, p) __builtin_nontemporal_store(v, p)
#endif
#endif
#if defined(STREAM) && STREAMING
#define STORE(v, p) STREAM(v, p)
#else
#define STORE(v, p) *(p) = (v)
#endif
#define BEGIN ulong group = get_group_id(0), groups = get_num_groups(0), lane = get_local_id(0), lanes = get_local_size(0);
#define PASS(r) ulong part = SHIFTS ? (group + (r) * (groups / 2 + 1)) % groups : group, first = n * part / groups, last = n * (part + 1) / groups;
__kernel void roof_read(__global uchar* a_, ulong ao, __global const uchar* b_, ulong bo, __global const uchar* c_, ulong co, ulong n, uint reps, float s) {
  __global const V* b = (__global const V*)(b_ + bo);
  BEGIN
  V x0 = 0, x1 = 0, x2 = 0, x3 = 0;
  for (uint r = 0; r < reps; ++r) {
    PASS(r)
    ulong i = first + lane;
    for (; i + 3 * lanes < last; i += 4 * lanes) { x0 += b[i]; x1 += b[i + lanes]; x2 += b[i + 2 * lanes]; x3 += b[i + 3 * lanes]; }
    for (; i < last; i += lanes) x0 += b[i];
    x0 *= s;
  }
  ((__global V*)(a_ + ao))[group * lanes + lane] = x0 + x1 + x2 + x3;
}
__kernel void roof_copy(__global uchar* a_, ulong ao, __global const uchar* b_, ulong bo, __global const uchar* c_, ulong co, ulong n, uint reps, float s) {
  __global V* a = (__global V*)(a_ + ao);
  __global const V* b = (__global const V*)(b_ + bo);
  BEGIN
  for (uint r = 0; r < reps; ++r) {
    PASS(r)
    for (ulong i = first + lane; i < last; i += lanes) STORE(b[i], a + i);
  }
}
__kernel void roof_triad(__global uchar* a_, ulong ao, __global const uchar* b_, ulong bo, __global const uchar* c_, ulong co, ulong n, uint reps, float s) {
  __global V* a = (__global V*)(a_ + ao);
  __global const V* b = (__global const V*)(b_ + bo);
  __global const V* c = (__global const V*)(c_ + co);
  BEGIN
  for (uint r = 0; r < reps; ++r) {
    PASS(r)
    for (ulong i = first + lane; i < last; i += lanes) STORE(b[i] + s * c[i], a + i);
    s += 1.0f;
  }
}
__kernel void roof_empty(__global uchar* a_, ulong ao) {}
)CL";

constexpr std::string_view kFmaText = R"CL(
#ifdef FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
__kernel void roof_fma(__global uchar* out, ulong offset, uint steps, float s) {
  V a = (V)((E)s), b = (V)((E)0.001f);
  V x0 = (V)((E)0), x1 = (V)((E)1), x2 = (V)((E)2), x3 = (V)((E)3), x4 = (V)((E)4), x5 = (V)((E)5);
  V x6 = (V)((E)6), x7 = (V)((E)7), x8 = (V)((E)8), x9 = (V)((E)9), xa = (V)((E)10), xb = (V)((E)11);
  for (uint i = 0; i < steps; ++i) {
    x0 = fma(x0, a, b); x1 = fma(x1, a, b); x2 = fma(x2, a, b); x3 = fma(x3, a, b); x4 = fma(x4, a, b); x5 = fma(x5, a, b);
    x6 = fma(x6, a, b); x7 = fma(x7, a, b); x8 = fma(x8, a, b); x9 = fma(x9, a, b); xa = fma(xa, a, b); xb = fma(xb, a, b);
  }
  ((__global V*)(out + offset))[get_global_id(0)] = x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + xa + xb;
}
)CL";

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Shape {
  std::string vector;
  int lanes;            // floats of V
  std::uint64_t local;  // items of a group
};
Shape shape_of(const Device& device) {
  const DeviceTraits& t = device.traits();
  if (t.type == DeviceType::cpu && t.native_width_f32 >= 4)
    return {fmt::format("float{}", std::min(t.native_width_f32, 16)), std::min(t.native_width_f32, 16), 1};
  return {"float4", 4, std::min<std::uint64_t>(t.max_work_group, 256)};
}

/// One bandwidth kernel over operands that take `bytes` together, repeated inside the launch until it takes a while.
class BandwidthKernel {
 public:
  BandwidthKernel(const Device& device, const std::string& kind, double bytes, bool streaming) : stream_(current_stream(device)) {
    Shape shape = shape_of(device);
    std::string entry = "roof_" + kind;
    Defines defines;
    defines.set_text("V", shape.vector).set("STREAMING", streaming).set("SHIFTS", shape.local > 1);
    kernel_ = prepare({.text = kText, .entry = entry, .defines = defines, .file = "roofline", .addressing = Addressing::base_and_offset}, stream_);
    shape.local = std::min(shape.local, kernel_.max_work_group());
    int operands = kind == "read" ? 1 : kind == "copy" ? 2 : 3;
    auto vector_bytes = static_cast<double>(4 * shape.lanes);
    n_ = std::max<std::uint64_t>(static_cast<std::uint64_t>(bytes / operands / vector_bytes), shape.local);
    moved_ = static_cast<double>(n_) * vector_bytes * operands;
    auto elements = static_cast<std::int64_t>(n_) * shape.lanes;
    auto units = static_cast<std::uint64_t>(device.traits().compute_units);
    std::uint64_t groups = std::clamp<std::uint64_t>(n_ / shape.local / 16, 1, units * (shape.local == 1 ? (bytes > 1e6 ? 16 : 1) : 32));
    geometry_ = {.global = groups * shape.local, .local = shape.local};
    auto sums = static_cast<std::int64_t>(groups * shape.local) * shape.lanes;
    a_ = full({kind == "read" ? sums : elements}, 0, {.device = device});
    b_ = full({elements}, 1, {.device = device});
    c_ = kind == "triad" ? full({elements}, 2, {.device = device}) : b_;
    constexpr double kLaunch = 1e-3;  // long against a launch
    run(1, 1);
    auto begin = Clock::now();
    run(1, 4);
    inner_ = static_cast<std::uint32_t>(std::clamp(4 * kLaunch / std::max(since(begin), 1e-7), 1.0, 1e6));
  }
  /// Passes over the operands: `launches` times `inner` ones.
  void run(int launches, std::uint32_t inner) {
    for (int i = 0; i < launches; ++i) {
      Encoder encoder(stream_, "roofline");
      encoder.output(a_).input(b_).input(c_).value(n_).value(inner).value(0.5f);
      encoder.dispatch(kernel_, geometry_);
    }
    stream_.synchronize();
  }
  /// Best bytes per second of a few launches.
  double measure() {
    double best = 0;
    auto begin = Clock::now();
    for (int i = 0; i < 40 && (i < 5 || since(begin) < 0.15); ++i) {
      auto start = Clock::now();
      run(1, inner_);
      best = std::max(best, moved_ * inner_ / since(start));
    }
    return best;
  }

 private:
  Stream stream_;
  std::uint64_t n_ = 0;
  std::uint32_t inner_ = 1;
  double moved_ = 0;
  Geometry geometry_;
  Tensor a_, b_, c_;
  KernelHandle kernel_;
};

double measure_bandwidth(const Device& device, const std::string& kind, double bytes) {
  double best = BandwidthKernel(device, kind, bytes, false).measure();
  if (kind != "read" && bytes > static_cast<double>(device.traits().cache_bytes) / 4)
    best = std::max(best, BandwidthKernel(device, kind, bytes, true).measure());
  empty_cache(device);
  return best;
}

double measure_fma(const Device& device, const std::string& dtype) {
  const DeviceTraits& t = device.traits();
  Shape shape = shape_of(device);
  int lanes = dtype == "f64" ? std::max(shape.lanes / 2, 2) : shape.lanes;
  std::string element = dtype == "f64" ? "double" : dtype == "f16" ? "half" : "float";
  Defines defines;
  defines.set_text("V", fmt::format("{}{}", element, lanes)).set_text("E", element);
  if (dtype == "f64") defines.set("FP64", 1);
  if (dtype == "f16") defines.set("FP16", 1);
  Stream stream = current_stream(device);
  KernelHandle kernel =
      prepare({.text = kFmaText, .entry = "roof_fma", .defines = defines, .file = "roofline", .addressing = Addressing::base_and_offset}, stream);
  shape.local = std::min(shape.local, kernel.max_work_group());
  std::uint64_t items = static_cast<std::uint64_t>(t.compute_units) * (shape.local == 1 ? 8 : 64 * shape.local);
  Tensor out = empty({static_cast<std::int64_t>(items) * lanes}, {.dtype = DType::f64, .device = device}, stream);
  double best = 0;
  std::uint32_t steps = 1024;
  for (int i = 0; i < 12; ++i) {
    auto start = Clock::now();
    Encoder encoder(stream, "roofline");
    encoder.output(out).value(steps).value(0.999f);
    encoder.dispatch(kernel, {.global = items, .local = shape.local});
    stream.synchronize();
    double t0 = since(start);
    best = std::max(best, 2.0 * 12 * lanes * steps * static_cast<double>(items) / t0);
    if (t0 < 5e-3 && steps < (1u << 22)) steps *= 4;
  }
  return best;
}

bool cache_is_written() {
  for (const SettingInfo& setting : settings())
    if (setting.name == "CLUTCH_CACHE") return setting.value == "on";
  return false;
}

/// Working sets are measured at powers of two: between them bandwidth changes little.
std::uint64_t bucket(double bytes) { return std::uint64_t{1} << std::lround(std::log2(std::max(bytes, 4096.0))); }

}  // namespace

RooflineMeter::RooflineMeter(const Device& device, bool fresh)
    : device_(device), file_(cache_directory().empty() ? std::string() : detail::roofline_file(device)) {
  if (!fresh && !file_.empty()) {
    const detail::PrivateFolder folder(cache_directory(), detail::kDeviceFolder);
    const detail::PrivateBytes read = folder.read(file_);
    for (const std::string& refusal : {folder.refusal(), read.refusal})
      if (!refusal.empty()) fmt::print(stderr, "clutch-bench: {}\n", refusal);
    try {
      if (read.bytes) roofline_ = parse_roofline(*read.bytes);
    } catch (const Error&) {
      roofline_ = {};  // not ours or half a file: measured again
    }
  }
  if (roofline_.date.empty()) {
    measure_fixed();
    return;
  }
  // A device whose matrix instructions are new to the library, or to the settings.
  const auto of_matrix = [](const auto& peak) { return std::string_view(peak.first).starts_with(detail::kMatrixPeak); };
  if (std::none_of(roofline_.peak_flops.begin(), roofline_.peak_flops.end(), of_matrix)) measure_matrix();
}

void RooflineMeter::measure_matrix() {
  for (const auto& [numbers, flops] : detail::matrix_speeds(device_)) {
    roofline_.peak_flops[std::string(detail::kMatrixPeak) + numbers] = flops;
    roofline_.dirty = true;
  }
}

void RooflineMeter::measure_fixed() {
  Roofline& r = roofline_;
  r.dirty = true;
  std::time_t now = std::time(nullptr);
  r.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  const DeviceTraits& t = device_.traits();
  r.peak_flops["f32"] = measure_fma(device_, "f32");
  if (t.fp64) r.peak_flops["f64"] = measure_fma(device_, "f64");
  if (t.fp16) r.peak_flops["f16"] = measure_fma(device_, "f16");
  measure_matrix();
  Stream stream = current_stream(device_);
  Tensor out = empty({16}, {.device = device_}, stream);
  Defines defines;
  defines.set_text("V", "float4").set("STREAMING", 0).set("SHIFTS", 0);
  KernelHandle kernel =
      prepare({.text = kText, .entry = "roof_empty", .defines = defines, .file = "roofline", .addressing = Addressing::base_and_offset}, stream);
  auto launch = [&] {
    Encoder encoder(stream, "roofline");
    encoder.output(out);
    encoder.dispatch(kernel, {.global = 1, .local = 1});
  };
  launch();
  stream.synchronize();
  std::vector<double> async, finish;
  for (int i = 0; i < 9; ++i) {
    auto begin = Clock::now();
    for (int k = 0; k < 1000; ++k) launch();
    stream.synchronize();
    async.push_back(since(begin) * 1e3);
    begin = Clock::now();
    for (int k = 0; k < 50; ++k) launch(), stream.synchronize();
    finish.push_back(since(begin) / 50 * 1e6);
  }
  r.launch_us = median(async);
  r.launch_finish_us = median(finish);
  std::vector<float> host(8 << 20, 1.0f);
  std::vector<double> up, down;
  for (int i = 0; i < 5; ++i) {
    auto begin = Clock::now();
    Tensor there = from_host(host, {8 << 20}, device_, stream);
    stream.synchronize();
    up.push_back(static_cast<double>(host.size() * 4) / since(begin));
    begin = Clock::now();
    host = there.to_host<float>(stream);
    down.push_back(static_cast<double>(host.size() * 4) / since(begin));
  }
  r.host_to_device = median(up);
  r.device_to_host = median(down);
  // One core of many, as some drivers offer, cannot be held against all.
  if (t.type != DeviceType::cpu || t.simulator || t.compute_units < static_cast<int>(std::thread::hardware_concurrency())) return;
  // A CPU device that has all cores must reach what plain loops of the host reach.
  auto check = [&](const std::string& name, double of_host, double mine, const std::function<double()>& again) {
    r.host[name] = of_host;
    if (mine < 0.9 * of_host) mine = std::max(mine, again());
    if (mine < 0.9 * of_host) r.suspect.push_back(fmt::format("{} reaches {:.2f} of the host's loop", name, mine / of_host));
  };
  constexpr double kBig = 256e6;
  check("triad", host_triad(kBig), bandwidth("triad", kBig), [&] { return bandwidth("triad", kBig, true); });
  check("fma_f32", host_fma_f32(), r.peak_flops["f32"], [&] { return r.peak_flops["f32"] = std::max(r.peak_flops["f32"], measure_fma(device_, "f32")); });
  if (t.fp64)
    check("fma_f64", host_fma_f64(), r.peak_flops["f64"], [&] { return r.peak_flops["f64"] = std::max(r.peak_flops["f64"], measure_fma(device_, "f64")); });
}

double RooflineMeter::bandwidth(const std::string& kind, double bytes, bool again) {
  std::uint64_t size = bucket(bytes);
  double& known = roofline_.bandwidth[fmt::format("{}/{}", kind, size)];
  if (known == 0 || again) {
    known = std::max(known, measure_bandwidth(device_, kind, static_cast<double>(size)));
    roofline_.dirty = true;
  }
  return known;
}

double RooflineMeter::peak(const std::string& dtype) const {
  auto found = roofline_.peak_flops.find(dtype);
  return found == roofline_.peak_flops.end() ? 0 : found->second;
}

void RooflineMeter::save() {
  if (!roofline_.dirty || file_.empty() || !cache_is_written()) return;
  const std::string text = to_json(roofline_).dump(1) + '\n';
  const std::string_view part = text;
  detail::PrivateFolder(cache_directory(), detail::kDeviceFolder, true).write(file_, std::span(&part, 1));
  roofline_.dirty = false;
}

Peer bandwidth_peer(const Device& device, const std::string& kind, double bytes) {
  bool streaming = bytes > static_cast<double>(device.traits().cache_bytes);
  auto kernel = std::make_shared<BandwidthKernel>(device, kind, bytes, streaming);
  return {.name = kind, .run = [kernel](int reps) { kernel->run(reps, 1); }, .rival = false};
}

}  // namespace clutch::bench
