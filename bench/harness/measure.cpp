// SPDX-License-Identifier: Apache-2.0
#include "harness/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace clutch::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void(int)>& run, int reps) {
  auto begin = Clock::now();
  run(reps);
  return std::chrono::duration<double>(Clock::now() - begin).count() / reps;
}

double seconds_of(const Peer& peer, int reps) { return peer.timed ? peer.timed(reps) / reps : seconds_of(peer.run, reps); }

/// Calls per sample so that one sample takes about 2 ms and timer and finish weigh little.
template <class Run>
int calibrate(const Run& run) {
  constexpr double kSample = 2e-3;
  seconds_of(run, 1);
  int reps = 1;
  for (;;) {
    double t = seconds_of(run, reps) * reps;
    if (t > kSample / 2 || reps >= 1 << 16) return std::clamp(static_cast<int>(reps * kSample / std::max(t, 1e-9)), 1, 1 << 16);
    reps *= 4;
  }
}

/// Lets threads of the other half go to sleep.
void pause() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

/// Relative standard error of the median that these samples suggest.
double settled(const std::vector<double>& v) { return v.size() < 5 ? 1 : 1.2533 * summarize(v).noise_pct / 100 / std::sqrt(static_cast<double>(v.size())); }

/// Writes more than the last-level cache holds.
class CacheFlusher {
 public:
  explicit CacheFlusher(const Device& device) {
    auto bytes = std::max<std::uint64_t>(device.traits().cache_bytes * 2, 64ull << 20);
    bytes = std::min(bytes, device.traits().max_alloc_bytes / 4);
    junk_ = empty({static_cast<std::int64_t>(bytes / 4)}, {.dtype = DType::f32, .device = device});
  }
  void operator()() {
    fill_(junk_, 1.0 + (++round_ % 7));
    synchronize(junk_.device());
  }

 private:
  Tensor junk_;
  int round_ = 0;
};

PeerTiming measure_pairs(const Work& work, const Peer& peer, const MeasureOptions& options, int our_reps, std::vector<double>& ours_all) {
  std::vector<double> ours, theirs, ratios;
  auto begin = Clock::now();
  double once = seconds_of(peer, 1);
  int reps = once > 2e-3 ? 1 : calibrate(peer);
  double our_once = seconds_of(work.run, our_reps);
  bool hopeless = once > 10 * our_once;  // three pairs and at most 10 s then
  if (options.brief && hopeless && once > options.seconds) return {peer.name, summarize({once}), once / our_once};
  double budget = hopeless ? std::min(options.seconds, 10.0) : options.seconds;
  int least = hopeless || options.brief ? 3 : 5;
  for (int pair = 0;; ++pair) {
    double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (options.pairs > 0 ? pair >= options.pairs : pair >= least && (hopeless || elapsed > budget || settled(ratios) < 0.01)) break;
    double a = 0, b = 0;
    auto half_ours = [&] { a += seconds_of(work.run, our_reps) / 2, pause(); };
    auto half_theirs = [&] { b += seconds_of(peer, reps) / 2, pause(); };
    if (pair % 2 == 0)
      half_ours(), half_theirs(), half_theirs(), half_ours();
    else
      half_theirs(), half_ours(), half_ours(), half_theirs();
    ours.push_back(a);
    theirs.push_back(b);
    ratios.push_back(b / a);
  }
  ours_all.insert(ours_all.end(), ours.begin(), ours.end());
  return {peer.name, summarize(theirs), median(ratios)};
}

}  // namespace

std::optional<double> device_clock_ratio(const Work& work, const Device& device) {
  if (!work.run || !device.traits().device_timer) return std::nullopt;
  Stream stream = current_stream(device);
  int reps = calibrate(work.run);
  std::vector<double> ratios;
  for (int i = 0; i < 5; ++i) {
    Event begin, end;
    stream.synchronize();
    auto start = Clock::now();
    begin.record(stream);
    work.run(reps);
    end.record(stream);
    end.wait();
    double host = std::chrono::duration<double>(Clock::now() - start).count();
    if (host < 0.5e-3) return std::nullopt;  // markers and the wait would weigh
    ratios.push_back(elapsed_ms(begin, end) * 1e-3 / host);
  }
  return median(ratios);
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
  std::nth_element(v.begin(), middle, v.end());
  if (v.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(v.begin(), middle)) / 2;
}

Timing summarize(const std::vector<double>& seconds) {
  Timing t;
  t.median = median(seconds);
  t.samples = static_cast<int>(seconds.size());
  std::vector<double> deviation;
  for (double s : seconds) deviation.push_back(std::fabs(s - t.median));
  t.noise_pct = t.median > 0 ? 148.26 * median(deviation) / t.median : 0;
  return t;
}

Measured measure(const Work& work, const Device& device, const MeasureOptions& options) {
  Measured result;
  if (work.measure) {
    std::vector<double> samples;
    auto begin = Clock::now();
    int most = options.pairs > 0 ? options.pairs : 21;
    while (static_cast<int>(samples.size()) < std::min(most, 5) ||
           (static_cast<int>(samples.size()) < most && std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds))
      samples.push_back(work.measure());
    result.hot = summarize(samples);
    return result;
  }
  int reps = calibrate(work.run);
  std::vector<double> ours;
  MeasureOptions share = options;
  share.seconds = options.seconds / static_cast<double>(std::max<std::size_t>(work.peers.size(), 1));
  for (const Peer& peer : work.peers) result.peers.push_back(measure_pairs(work, peer, share, reps, ours));
  auto begin = Clock::now();
  while (work.peers.empty() && (ours.size() < 5 || (settled(ours) > 0.01 && std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds)))
    ours.push_back(seconds_of(work.run, reps));
  result.hot = summarize(ours);
  if (options.cold) {
    CacheFlusher flush(device);
    std::vector<double> cold;
    for (int i = 0; i < 7; ++i) {
      flush();
      cold.push_back(seconds_of(work.run, 1));
    }
    result.cold = summarize(cold);
  }
  return result;
}

}  // namespace clutch::bench
