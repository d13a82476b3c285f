// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <clutch/clutch.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace clutch::bench {

/// Something whose time is compared with ours: `run(reps)` does the same work that many times and returns when it is done.
struct Peer {
  std::string name;  ///< with version and threads where it has such
  std::function<void(int)> run = {};
  std::function<double(int)> timed = {};  ///< instead of run: seconds that so many repetitions took, by the peer's own clock
  bool rival = true;                      ///< else a limit, or other calls of ours: bandwidth, parts of the work
};

/// Work of a row, ready on one device.
struct Work {
  std::function<void(int)> run;  ///< enqueues `reps` calls, then waits once
  std::vector<Peer> peers = {};
  std::function<std::string()> check = {};  ///< after one run: empty if the result is right, else what is wrong
  std::function<double()> measure = {};     ///< instead of run: seconds of one sample, for rows that are no loop
};

/// A row's bytes are those that the plans of one call state (clutch::Cost).
constexpr double kStated = -1;

/// One line of the table.
struct Row {
  std::string name;        ///< "addcdiv/f32/16777216"
  double flops = 0;        ///< really performed by one call; 0: what its plans state (clutch::Cost), which is 0 where that has no meaning
  double dense_flops = 0;  ///< where the call leaves some out: of doing everything
  double visited = 1;      ///< share of what the plans state that the call performs: of the blocks that a mask leaves
  double bytes = 0;        ///< each operand counted once, or kStated; 0: no meaning
  bool reads_only = false;
  bool in_default = true;  ///< else only with --sweep or by name
  bool in_quick = false;
  std::function<Work(const Device&)> prepare;
  std::function<std::string(const Device&)> lacks = {};  ///< what the device lacks for the row, which is left out then
};
using Rows = std::vector<Row>;

/// Filled by the build from the list of ops.
void register_all(Rows& rows);

/// Seconds of one call: median over samples, and the spread around it.
struct Timing {
  double median = 0;
  double noise_pct = 0;  ///< 1.4826 * median absolute deviation / median
  int samples = 0;
};
struct PeerTiming {
  std::string name;
  Timing timing;
  double ratio = 0;  ///< median over pairs of peer time / our time
};
struct Measured {
  Timing hot;
  std::optional<Timing> cold;
  std::vector<PeerTiming> peers;
};

struct MeasureOptions {
  double seconds = 1.0;  ///< budget of one row
  int pairs = 0;         ///< fixed number of pairs; 0: until the noise settles
  bool cold = true;
  bool brief = false;  ///< the budget holds however slow a peer is: one that takes all of it in one call is called once
};

/// Measures ours and every peer in the order A B B A, with pauses between halves.
Measured measure(const Work& work, const Device& device, const MeasureOptions& options);

/// Time of a batch of a millisecond or more by events around it, over the host's clock; nothing without a usable timer.
std::optional<double> device_clock_ratio(const Work& work, const Device& device);

/// Median; 0 for none.
double median(std::vector<double> values);
Timing summarize(const std::vector<double>& seconds);

/// Measured peaks of the device; kept beside the program cache per device and driver.
struct Roofline {
  std::string date;
  std::map<std::string, double> peak_flops;  ///< by dtype name: "f32", FLOP/s
  double launch_us = 0;                      ///< per launch, many before one finish
  double launch_finish_us = 0;
  double host_to_device = 0, device_to_host = 0;  ///< bytes per second
  std::map<std::string, double> bandwidth;        ///< "triad/65536": bytes per second of that kernel at that working set
  std::map<std::string, double> host;             ///< the cross-check on CPU devices: "triad", "fma_f32"
  std::vector<std::string> suspect;               ///< what stayed below 0.9 of the host's loops after a second measurement
  bool dirty = false;
};

class RooflineMeter {
 public:
  RooflineMeter(const Device& device, bool fresh);
  const Roofline& all() const { return roofline_; }
  /// Bytes per second of "read", "copy" or "triad" where the operands together take `bytes`; measured at first use.
  double bandwidth(const std::string& kind, double bytes, bool again = false);
  double peak(const std::string& dtype) const;
  /// Keeps what was measured for later processes.
  void save();

 private:
  void measure_fixed();
  void measure_matrix();
  Device device_;
  std::string file_;
  Roofline roofline_;
};

/// A kernel of the roofline ("read", "copy" or "triad") on operands of `bytes` together, as peer of memory-bound rows.
Peer bandwidth_peer(const Device& device, const std::string& kind, double bytes);
inline Peer triad_peer(const Device& device, double bytes) { return bandwidth_peer(device, "triad", bytes); }

/// The host's own limits with all its cores: bytes per second of a triad loop, FLOP/s of FMA chains.
double host_triad(double bytes);
double host_fma_f32();
double host_fma_f64();

struct Result {
  Row row;
  std::string device;
  std::string plan;
  Measured measured;
  double gflops = 0, gbps = 0;
  std::optional<double> roofline_pct;
  bool checked = false;
  bool suspect = false;
  std::vector<std::string> doubts;           ///< why it is suspect
  std::optional<double> device_clock_ratio;  ///< time of a batch by device events over the host's clock
  std::string error;
  const PeerTiming* fastest_peer() const;  ///< null without peers
};

struct Context {
  std::string device, driver, platform, git_hash, date;
};

/// What random shapes of an op on a device gave.
struct Summary {
  std::string op, device;
  int shapes = 0, failed = 0, without_peer = 0;
  double worst = 0, low = 0, median = 0;  ///< of the ratios to the fastest peers: the least, that of the lowest twentieth, the median
  std::vector<std::pair<double, std::string>> worst_shapes;
};
struct Summaries {
  std::uint64_t seed = 0;
  int count = 0;  ///< random shapes of each op; 0: shapes by their texts
  std::vector<Summary> ops;
};

void print_header(const Context& context, const Roofline& roofline);
void print_result(const Result& result);
void write_json(const std::string& path, const std::vector<Context>& contexts, const std::vector<Roofline>& rooflines, const std::vector<Result>& results,
                const Summaries& summaries = {});
/// One self-contained page: roofline plot, bars beside peers, worst and best ratios.
/// The bars of all rows with peers on one device, as a picture (SVG) that stands alone. Errors: io; invalid_argument if no row has a peer.
void write_picture(const std::string& path, const Context& context, const std::vector<Result>& results);
void write_html(const std::string& path, const std::vector<Context>& contexts, const std::vector<Roofline>& rooflines, const std::vector<Result>& results);
/// Prints rows of both; returns how many are significantly slower than in the old file.
int compare_with(const std::string& old_path, const std::vector<Result>& results);

/// Entry of the child process of the startup rows: prints milliseconds.
int startup_probe(const std::string& selector);

}  // namespace clutch::bench
