// SPDX-License-Identifier: Apache-2.0
// What the allocator costs the host: a tensor of cached memory, made and dropped, with statistics on as they always are; memory that is used
// for the first time; and tensors that grow step by step.
#include "harness/rows.hpp"

#include <clutch/allocator.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace clutch::bench {

void register_allocator(Rows& rows);

namespace {

constexpr std::int64_t kKiB = 1 << 10;
constexpr int kGrowing = 1000;

Tensor bytes_of(const Device& device, std::int64_t bytes, const Stream& stream) { return empty({bytes}, {.dtype = DType::u8, .device = device}, stream); }

/// While it lives, the allocator has other settings.
class Configured {
 public:
  explicit Configured(const char* text) : former_(allocator_settings().last_allocator_settings) { set_allocator_settings(text); }
  ~Configured() { set_allocator_settings(former_); }
  Configured(const Configured&) = delete;
  Configured& operator=(const Configured&) = delete;

 private:
  std::string former_;
};

/// A tensor of cached memory, made and dropped, beside tensors that stay.
Work cached(const Device& device, std::int64_t bytes) {
  const Stream stream = current_stream(device);
  auto kept = std::make_shared<std::vector<Tensor>>();
  for (int i = 0; i < 100; ++i) kept->push_back(bytes_of(device, bytes, stream));
  for (std::size_t i = 0; i < kept->size(); i += 2) (*kept)[i] = {};  // so that there are free blocks to choose from
  Work work;
  work.run = [=](int reps) {
    for (int r = 0; r < reps; ++r) bytes_of(device, bytes, stream);
  };
  work.check = [=]() -> std::string {
    constexpr int kTimes = 1000;
    const auto before = memory_stats(device);
    const std::uint64_t address = memory_address(bytes_of(device, bytes, stream));
    work.run(kTimes - 2);
    if (memory_address(bytes_of(device, bytes, stream)) != address) return "not the same block is taken each time";
    const auto after = memory_stats(device);
    auto grew = [&](const char* key) { return after.at(key) - before.at(key); };
    if (grew("allocation.all.allocated") != kTimes || grew("allocation.all.freed") != kTimes) return "allocations are missing in the statistics";
    if (grew("requested_bytes.all.allocated") != static_cast<std::uint64_t>(kTimes * bytes)) return "bytes are missing in the statistics";
    if (grew("num_device_alloc") + grew("num_device_free") != 0) return "the driver was asked for memory";
    return after.at("active_bytes.all.current") == before.at("active_bytes.all.current") ? "" : "memory is still in use";
  };
  return work;
}

/// Counters of the pool in which tensors grew, each in place of the one before.
std::map<std::string, std::uint64_t> grow(const Device& device, const Stream& stream) {
  const MemPool pool;
  const PoolGuard guard(pool);
  Tensor last;
  for (int i = 1; i <= kGrowing; ++i) last = bytes_of(device, 2048 * kKiB + i * 4 * kKiB, stream);
  return memory_stats(pool.id(), device);
}

/// A tensor that grows by a page a step, as a cache of keys and values does. Peer: with segments of PyTorch's default sizes.
Work growing(const Device& device) {
  const Stream stream = current_stream(device);
  auto run_with = [=](const char* settings) {
    return [=](int reps) {
      const Configured configured(settings);
      for (int r = 0; r < reps; ++r) grow(device, stream);
    };
  };
  Work work;
  work.run = run_with("expandable_segments:True");
  work.peers.push_back({.name = "segments that do not grow", .run = run_with("expandable_segments:False")});
  work.check = [=]() -> std::string {
    const Configured configured("expandable_segments:True");
    const auto stats = grow(device, stream);
    if (stats.at("allocation.all.allocated") != kGrowing) return fmt::format("{} allocations, not {}", stats.at("allocation.all.allocated"), kGrowing);
    if (stats.at("num_device_alloc") != 1) return fmt::format("{} segments were made, not 1", stats.at("num_device_alloc"));
    return "";
  };
  return work;
}

/// The sum of tensors that have segments of their own, side by side. Peer: tensors that all begin with a page.
Work many_inputs(const Device& device, int inputs) {
  constexpr std::int64_t kFloats = 4 << 20;
  const Stream stream = current_stream(device);
  std::vector<Tensor> apart, alike;
  for (int i = 0; i <= inputs; ++i) {
    apart.push_back(full({kFloats}, 1, {.device = device}, stream));
    const Tensor whole = full({kFloats + 1024}, 1, {.device = device}, stream);
    const auto at = reinterpret_cast<std::uintptr_t>(HostMapping(whole, MapAccess::read, stream).bytes().data());
    const auto from = static_cast<std::int64_t>((4096 - at % 4096) % 4096 / sizeof(float));
    alike.push_back(whole.slice(0, from, from + kFloats));
  }
  const std::vector<DType> dtypes(static_cast<std::size_t>(inputs), DType::f32);
  Expr sum = detail::expr_input(0, DType::f32);
  for (int i = 1; i < inputs; ++i) sum = sum + detail::expr_input(i, DType::f32);
  const ExprFunction function(dtypes, std::span(&sum, 1));
  auto run_on = [=](const std::vector<Tensor>& tensors) {
    return [=](int reps) {
      for (int r = 0; r < reps; ++r) map_out(std::span(tensors).last(1), function, std::span(tensors).first(static_cast<std::size_t>(inputs)), {}, stream);
      stream.synchronize();
    };
  };
  Work work;
  work.run = run_on(apart);
  work.peers.push_back({.name = "tensors that begin with a page", .run = run_on(alike)});
  work.check = [=]() -> std::string {
    work.run(1);
    return apart.back().select(0, 7).item() == inputs ? "" : "the sum is wrong";
  };
  return work;
}

/// A tensor of memory that nobody has used yet, filled and given back. Peer: memory of malloc, filled by as many threads.
Work first_use(const Device& device, std::int64_t bytes) {
  const Stream stream = current_stream(device);
  const auto filled = [=] {
    const MemPool pool;
    const PoolGuard guard(pool);
    const Tensor x = bytes_of(device, bytes, stream);
    fill_(x, 1, {}, stream);
    return x.slice(0, bytes - 1, bytes).item();
  };
  Work work;
  work.run = [=](int reps) {
    for (int r = 0; r < reps; ++r) filled();
  };
  work.peers.push_back({.name = "malloc", .run = [=](int reps) {
                          const auto threads = static_cast<std::int64_t>(device.traits().compute_units);
                          for (int r = 0; r < reps; ++r) {
                            const std::unique_ptr<unsigned char[]> memory(new unsigned char[static_cast<std::size_t>(bytes)]);
                            std::vector<std::jthread> fill;
                            for (std::int64_t t = 0; t < threads; ++t)
                              fill.emplace_back([=, at = memory.get()] { std::fill(at + bytes * t / threads, at + bytes * (t + 1) / threads, 1); });
                            fill.clear();
                            if (memory[static_cast<std::size_t>(bytes - 1)] != 1) throw std::runtime_error("memory of malloc is not filled");
                          }
                        }});
  work.check = [=]() -> std::string { return filled() == 1 ? "" : "the last byte is wrong"; };
  return work;
}

/// What the device lacks for segments that grow in place.
std::string lacks_growth(const Device& device) {
  const Configured configured("expandable_segments:True");
  const MemPool pool;
  const PoolGuard guard(pool);
  const Tensor any = bytes_of(device, kKiB, current_stream(device));
  for (const MemorySegment& segment : memory_snapshot().segments)
    if (segment.device == device.index() && segment.pool == pool.id() && segment.is_expandable) return "";
  return "segments that grow in place";
}

}  // namespace

void register_allocator(Rows& rows) {
  for (auto [name, bytes] : {std::pair{"4KiB", 4 * kKiB}, std::pair{"4MiB", 4096 * kKiB}})
    rows.push_back({.name = fmt::format("allocator/cached/{}", name), .prepare = [bytes = bytes](const Device& device) { return cached(device, bytes); }});
  rows.push_back({.name = "allocator/first_use/64MiB", .prepare = [](const Device& device) { return first_use(device, 64 * kKiB * kKiB); }});
  for (const int inputs : {7, 11, 15})
    rows.push_back({.name = fmt::format("allocator/places_of_pages/{}", inputs),
                    .bytes = kStated,
                    .prepare = [inputs](const Device& device) { return many_inputs(device, inputs); },
                    .lacks = lacks_growth});
  rows.push_back({.name = fmt::format("allocator/growing/{}", kGrowing), .prepare = growing, .lacks = lacks_growth});
}

}  // namespace clutch::bench
