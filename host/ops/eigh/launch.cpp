// SPDX-License-Identifier: Apache-2.0
// eigh on the device: how many work-groups a driver has, what scratch they take, and its launches.
#include "ops/eigh_plan.hpp"

#include <algorithm>

namespace clutch::inline v0::detail {

using linalg::EighPhase;
using linalg::Uplo;

namespace {

/// Work-groups of a driver and the scratch that each of them takes, in numbers.
struct Share {
  Geometry geometry;
  std::int64_t numbers = 0;
};

std::int64_t rounded_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

/// Scratch stays below the input where there are many bundles; an item at least for each core.
Share share_of_lanes(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits, std::int64_t lanes, std::int64_t parts) {
  auto bundles = static_cast<std::uint64_t>((call.batch + lanes - 1) / lanes);
  bool in_scratch = call.n > kEighPrivate && plan.entry != "eigh_closed";
  std::uint64_t most = in_scratch ? std::min<std::uint64_t>(bundles, std::max<std::uint64_t>(bundles / 2, static_cast<std::uint64_t>(traits.compute_units)))
                                  : std::min<std::uint64_t>(bundles, plan.tuning.local == 1 ? 256 : 1u << 16);
  Share share{.geometry = item_geometry(most, plan.tuning.local)};
  std::int64_t matrices = call.v.defined() ? 2 : 1;
  if (in_scratch) share.numbers = static_cast<std::int64_t>(share.geometry.global) * matrices * lanes * rounded_up(call.n * call.n * parts, lanes);
  return share;
}

/// As eigh_blocked lays it out: see kernels/eigh/blocked.clh.
constexpr std::int64_t kRecorded = 8, kRound = 256, kPanel = 8, kTurnedPanel = 4;
enum class Stage : std::int32_t { load, head, rows, form, turn, iterate, apply, store };

Share share_of_blocked(const EighCall& call, const BuiltPlan& plan, std::int64_t lanes) {
  std::int64_t room = lanes * static_cast<std::int64_t>(plan.tuning.local), bundles = (call.batch + room - 1) / room;
  std::int64_t padded = rounded_up(call.n, lanes), row = (padded / lanes | 1) * lanes, vectors = call.v.defined() ? 1 : 0;
  std::int64_t of_matrix = (1 + vectors) * padded * row + 5 * row + vectors * (2 * kRound * padded + kRound + lanes);
  std::int64_t of_bundle = (2 * padded + 4 + vectors * kRecorded * 2 * (padded + 1)) * room;
  return {{.local = plan.tuning.local}, call.batch * of_matrix + bundles * of_bundle};
}

/// As eigh_qr_group lays it out.
Share share_of_qr_groups(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits, std::int64_t lanes) {
  auto local = static_cast<std::int64_t>(plan.tuning.local);
  std::int64_t room = lanes * local, bundles = (call.batch + room - 1) / room;
  std::int64_t groups = std::min(call.batch, std::max<std::int64_t>(traits.compute_units, std::min<std::int64_t>(bundles / 2, 4 * traits.compute_units)));
  std::int64_t bundle = std::min(room, (call.batch + groups - 1) / groups), padded = rounded_up(call.n, lanes), row = (padded / lanes | 1) * lanes;
  std::int64_t vectors = call.v.defined() ? 1 : 0;
  std::int64_t numbers = (vectors ? bundle + 2 : 1) * padded * row + 5 * row + (2 * padded * (vectors * kRecorded + 1) + 2 * kRecorded + 3) * room;
  return {{.global = plan.tuning.local * static_cast<std::uint64_t>(groups), .local = plan.tuning.local}, groups * numbers};
}

/// As eigh_jacobi_group lays it out.
Share share_of_jacobi_groups(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits, std::int64_t lanes, std::int64_t parts) {
  std::int64_t pairs = (call.n + 1) / 2, half = ((pairs + 1) / lanes + 1) * lanes, turned = 2 * parts * half + lanes;
  std::int64_t row = (rounded_up(call.n, lanes) / lanes | 1) * lanes, vectors = call.v.defined() ? 1 : 0;
  std::int64_t numbers = (4 * pairs + 2) * turned + 2 * (1 + parts) * half + 4 * row + 2 * lanes + vectors * (call.n + 1) * parts * row;
  std::int64_t groups = std::min(call.batch, std::max<std::int64_t>(traits.compute_units, std::min<std::int64_t>(call.batch / 4, 16 * traits.compute_units)));
  return {{.global = plan.tuning.local * static_cast<std::uint64_t>(groups), .local = plan.tuning.local}, groups * numbers};
}

}  // namespace

void eigh_on_device(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits, const Stream& stream, const char* op) {
  DType real = eigh_real_of(call.a.dtype());
  std::int64_t parts = is_complex(call.a.dtype()) ? 2 : 1, lanes = eigh_lanes(traits, call.a.dtype());
  Share share = plan.entry == "eigh_qr_group"       ? share_of_qr_groups(call, plan, traits, lanes)
                : plan.entry == "eigh_blocked"      ? share_of_blocked(call, plan, lanes)
                : plan.entry == "eigh_jacobi_group" ? share_of_jacobi_groups(call, plan, traits, lanes, parts)
                                                    : share_of_lanes(call, plan, traits, lanes, parts);
  Encoder encoder(stream, op);
  Tensor scratch = encoder.scratch({std::max<std::int64_t>(share.numbers, 1)}, real);
  Tensor none = call.v.defined() ? call.v : encoder.scratch({1}, real);
  bool conjugate = call.options.uplo == Uplo::upper, transposed = call.transposed != conjugate;
  bool is_jacobi = plan.entry.starts_with("eigh_jacobi");
  int limit = call.options.max_sweeps > 0 ? call.options.max_sweeps : is_jacobi ? 30 : static_cast<int>(30 * call.n);
  double tolerance = call.options.tolerance > 0 ? call.options.tolerance : real == DType::f64 ? 0x1p-52 : 0x1p-23;
  auto bind = [&] {
    encoder.output(call.w, "w").output(none, "v").output(call.info, "info").output(call.sweeps, "sweeps").input(call.a, "a").inout(scratch);
    encoder.value(static_cast<std::int32_t>(call.n)).value(static_cast<std::uint64_t>(call.batch)).value(static_cast<std::uint64_t>(call.apart * parts));
    encoder.value(static_cast<std::int32_t>(transposed)).value(static_cast<std::int32_t>(conjugate));
    encoder.value(static_cast<std::int32_t>(call.first)).value(static_cast<std::int32_t>(call.pairs));
    encoder.value(static_cast<std::int32_t>(call.options.phase == EighPhase::positive));
    if (real == DType::f64)
      encoder.value(tolerance, "tolerance");
    else
      encoder.value(static_cast<float>(tolerance), "tolerance");
    encoder.value(static_cast<std::int32_t>(limit), "limit");
  };
  if (plan.entry != "eigh_blocked") {
    bind();
    encoder.dispatch(plan.kernel, share.geometry);
    return;
  }
  auto launch = [&](Stage stage, std::int64_t step, std::int64_t jobs) {
    bind();
    encoder.value(static_cast<std::int32_t>(stage)).value(static_cast<std::int32_t>(step));
    Geometry geometry = share.geometry;
    geometry.global = geometry.local * static_cast<std::uint64_t>(std::min<std::int64_t>(jobs, 4 * std::max(traits.compute_units, 1)));
    encoder.dispatch(plan.kernel, geometry);
  };
  std::int64_t room = lanes * static_cast<std::int64_t>(plan.tuning.local), bundles = (call.batch + room - 1) / room, chunks = (call.n + lanes - 1) / lanes;
  std::int64_t turned = call.batch * ((chunks + kTurnedPanel - 1) / kTurnedPanel);
  launch(Stage::load, 0, call.batch);
  for (std::int64_t k = 0; k < call.n; ++k) {
    launch(Stage::head, k, call.batch);
    if (k < call.n - 2) launch(Stage::rows, k, call.batch * ((chunks - (k + 1) / lanes + kPanel - 1) / kPanel));
  }
  if (call.v.defined()) {
    launch(Stage::form, 0, turned);
    launch(Stage::turn, 0, call.batch);
  }
  for (std::int64_t round = 0; round * kRound < limit; ++round) {
    launch(Stage::iterate, round, bundles);
    if (!call.v.defined()) break;
    launch(Stage::apply, round, turned);
  }
  launch(Stage::store, 0, bundles);
}

}  // namespace clutch::inline v0::detail
