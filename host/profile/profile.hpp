// SPDX-License-Identifier: Apache-2.0
// A trace that has ended, and what is read from it.
#pragma once
#include <clutch/profiler.hpp>

#include "runtime/profile_log.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

struct ProfiledDevice {
  std::string name;
  std::uint64_t global_bytes = 0;
  int compute_units = 0;
  std::uint64_t max_work_group = 0;
  profiler::DeviceRoof roof;
};

/// A range on a stream: from its first command to its last one.
struct DeviceRange {
  std::uint32_t range = 0;  ///< index of the range's record
  std::uint16_t device = 0;
  std::uint64_t stream = 0, begin = 0, end = 0;
};

struct Profile {
  std::unique_ptr<ProfileLog> log;
  std::vector<std::uint32_t> order;                         ///< indices of records by begin, outer scopes first
  std::unordered_map<std::uint64_t, std::uint32_t> scopes;  ///< records of ops and ranges by id
  std::map<int, ProfiledDevice> devices;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< values are JSON
  double command_cost_ns = 0;

  const ProfileRecord& record(std::uint32_t i) const { return log->at(i); }
  /// The scope around a record; null if there is none, or if it was dropped.
  const ProfileRecord* parent_of(const ProfileRecord& r) const;
  /// What ranges say of a record; null: nothing.
  const ProfiledFacts* facts_of(const ProfileRecord& r) const;
  std::uint64_t since_start(std::uint64_t host) const { return host > log->start ? host - log->start : 0; }
  profiler::RoofPoint roof_of(const ProfileRecord& r) const;
  profiler::ProfileTotals totals() const;
};

/// Members of the heads of all traces, by key. Values are JSON.
struct TraceMembers {
  std::mutex mutex;
  std::map<std::string, std::string> of;
};
TraceMembers& trace_members();

/// Finishes a log that has ended, and orders its records. `roof`: of all devices; zeros: the kept one of each.
std::shared_ptr<Profile> make_profile(std::unique_ptr<ProfileLog> log, const profiler::DeviceRoof& roof);

/// The place on a roof of a command of so many flops, of f32 or f64, and bytes. `matrix`: what its matrix instructions multiply, whose limit then counts; it
/// must live as long as the process.
profiler::RoofPoint roof_point(const profiler::DeviceRoof& roof, double flops, bool is_f64, double bytes, double seconds, std::string_view matrix = {});
/// The limits in the text of a roofline file; zeros if it is none.
profiler::DeviceRoof roof_of_file(std::string_view text);
/// The limit of matrix instructions, FLOP/s; 0: not known.
double matrix_limit(const profiler::DeviceRoof& roof, std::string_view matrix);
/// True of a command whose times are known.
inline bool is_timed(const ProfileRecord& r) { return is_command(r.kind) && r.finished; }
/// Kernels and copies: what a device is busy with.
inline bool is_work(const ProfileRecord& r) { return is_timed(r) && r.kind != RecordKind::wait; }
/// Name of a record in traces.
std::string_view trace_name(const ProfileRecord& r);
/// Its category there, which is PyTorch's name of the activity.
std::string_view category(const ProfileRecord& r);
std::uint64_t graph_node_id(const ProfileRecord& r);
/// Key-values of the annotations of the node that a command replays; inner ones win.
std::vector<std::pair<std::string, std::string>> node_labels(const Profile& profile, const ProfileRecord& r);
std::vector<DeviceRange> device_ranges(const Profile& profile);

std::vector<profiler::FunctionEvent> profile_events(const Profile& profile);
std::vector<profiler::KeyAverage> profile_averages(const Profile& profile, const profiler::KeyAverageOptions& options);
std::string profile_table(const Profile& profile, const profiler::TableOptions& options);
std::vector<profiler::IdleGap> profile_gaps(const Profile& profile, double least_us);

void write_trace(const Profile& profile, const std::string& path, const profiler::TraceOptions& options);
void write_html(const Profile& profile, const std::string& path);
void write_annotations(const Profile& profile, const std::string& path);

}}}  // namespace clutch::v0::detail
