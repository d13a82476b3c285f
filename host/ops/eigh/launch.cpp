// SPDX-License-Identifier: Apache-2.0
// eigh on the device: how many work-groups a driver has, what scratch they take, and its launches.
#include "ops/eigh_plan.hpp"

#include <algorithm>

namespace clutch::inline v0::detail {

using linalg::EighPhase;
using linalg::Uplo;

namespace {

/// Work-groups of a driver, and the scratch of all of them in numbers.
struct Share {
  Geometry geometry;
  std::int64_t numbers = 0;
};

std::int64_t rounded_up(std::int64_t x, std::int64_t unit) { return (x + unit - 1) / unit * unit; }

constexpr std::int64_t kRecorded = 8, kRound = 256, kPanel = 8, kTurnedPanel = 4;  // of kernels/eigh/qr_group.clh and blocked.clh
enum class Stage : std::int32_t { load, head, rows, form, turn, iterate, apply, store };

/// Sizes that the kernels know by the same names.
struct Sizes {
  std::int64_t lanes, parts, vectors, units, local;
  std::int64_t room, bundles;     ///< matrices of a full bundle, and bundles
  std::int64_t chunks, padded;    ///< vectors of a row, and numbers
  std::int64_t row, matrix_size;  ///< numbers from a row to the next, and of a matrix
  Sizes(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits)
      : lanes(eigh_lanes(traits, call.a.dtype())),
        parts(is_complex(call.a.dtype()) ? 2 : 1),
        vectors(call.v.defined() ? 1 : 0),
        units(traits.compute_units),
        local(static_cast<std::int64_t>(plan.tuning.local)),
        room(lanes * local),
        bundles((call.batch + room - 1) / room),
        chunks((call.n + lanes - 1) / lanes),
        padded(chunks * lanes),
        row((parts * chunks | 1) * lanes),
        matrix_size(padded * row) {}
  std::int64_t work_numbers() const { return (4 + parts) * row; }
  std::int64_t bundle_numbers() const { return (2 * padded + 4 + vectors * kRecorded * 2 * (padded + 1)) * room; }
  Share share(std::int64_t groups, std::int64_t numbers_each) const {
    return {{.global = static_cast<std::uint64_t>(groups * local), .local = static_cast<std::uint64_t>(local)}, groups * numbers_each};
  }
};

/// Scratch stays below the input where there are many bundles; as many items for each core, one at least.
Share share_of_lanes(const EighCall& call, const BuiltPlan& plan, const Sizes& s) {
  std::int64_t bundles = (call.batch + s.lanes - 1) / s.lanes;
  bool in_scratch = call.n > kEighPrivate && plan.entry != "eigh_closed";
  const auto together = static_cast<std::int64_t>(plan.tuning.tile);
  std::int64_t most = std::min(bundles, std::max(in_scratch ? bundles / (2 * together) / s.units * s.units : (bundles + together - 1) / together, s.units));
  if (!in_scratch) most = std::min<std::int64_t>(most, s.local == 1 ? 256 : 1 << 16);
  Share share{.geometry = item_geometry(static_cast<std::uint64_t>(most), plan.tuning.local)};
  if (in_scratch) {
    // As kernels/eigh/bundle.clh lays it out; qr_lanes needs the matrices of one bundle only.
    const std::int64_t row = call.n + ((call.n * s.parts + 3) % 64 < 6 ? 6 / s.parts : 0), bundle = s.lanes * rounded_up(call.n * row * s.parts, s.lanes);
    const std::int64_t matrices = plan.entry == "eigh_qr_lanes" ? 1 : together;
    share.numbers = static_cast<std::int64_t>(share.geometry.global) * (matrices + s.vectors * together) * bundle;
  }
  return share;
}

/// As eigh_blocked lays it out; each of its launches has work-groups of its own.
Share share_of_blocked(const EighCall& call, const Sizes& s) {
  std::int64_t of_matrix = (1 + s.vectors) * s.matrix_size + s.work_numbers() + s.vectors * (2 * kRound * s.padded + kRound + s.lanes);
  return {{}, call.batch * of_matrix + s.bundles * s.bundle_numbers()};
}

/// As eigh_qr_group lays it out.
Share share_of_qr_groups(const EighCall& call, const Sizes& s) {
  std::int64_t groups = std::min(call.batch, std::max(s.units, std::min(s.bundles / 2, 4 * s.units)));
  std::int64_t bundle = std::min(s.room, (call.batch + groups - 1) / groups);
  return s.share(groups, (s.vectors ? bundle + 2 : 1) * s.matrix_size + s.work_numbers() + s.bundle_numbers());
}

/// As eigh_jacobi_group lays it out.
Share share_of_jacobi_groups(const EighCall& call, const Sizes& s) {
  std::int64_t pairs = (call.n + 1) / 2, half = ((pairs + 1) / s.lanes + 1) * s.lanes, turned = 2 * s.parts * half + s.lanes;
  std::int64_t groups = std::min(call.batch, std::max(s.units, std::min(call.batch / 4, 16 * s.units)));
  return s.share(groups, (4 * pairs + 2) * turned + 2 * (1 + s.parts) * half + 4 * s.row + 2 * s.lanes + s.vectors * (call.n + 1) * s.row);
}

}  // namespace

void eigh_on_device(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits, const Stream& stream, const char* op) {
  DType real = eigh_real_of(call.a.dtype());
  const Sizes sizes(call, plan, traits);
  Share share = plan.entry == "eigh_qr_group"       ? share_of_qr_groups(call, sizes)
                : plan.entry == "eigh_blocked"      ? share_of_blocked(call, sizes)
                : plan.entry == "eigh_jacobi_group" ? share_of_jacobi_groups(call, sizes)
                                                    : share_of_lanes(call, plan, sizes);
  Encoder encoder(stream, op);
  Tensor scratch = encoder.scratch({std::max<std::int64_t>(share.numbers, 1)}, real);
  Tensor none = call.v.defined() ? call.v : encoder.scratch({1}, real);
  bool conjugate = call.options.uplo == Uplo::upper, transposed = call.transposed != conjugate;
  bool is_jacobi = plan.entry.starts_with("eigh_jacobi");
  int limit = call.options.max_sweeps > 0 ? call.options.max_sweeps : is_jacobi ? 30 : static_cast<int>(30 * call.n);
  // Half a cache: what is written is read before, if it is not passed by.
  const bool streaming = worth_streaming(traits, 2 * (call.a.nbytes() + call.w.nbytes() + (call.v.defined() ? call.v.nbytes() : 0)));
  double tolerance = call.options.tolerance > 0 ? call.options.tolerance : real == DType::f64 ? 0x1p-52 : 0x1p-23;
  auto bind = [&] {
    encoder.output(call.w, "w").output(none, "v").output(call.info, "info").output(call.sweeps, "sweeps").input(call.a, "a").inout(scratch);
    encoder.value(static_cast<std::int32_t>(call.n)).value(static_cast<std::uint64_t>(call.batch)).value(static_cast<std::uint64_t>(call.apart * sizes.parts));
    encoder.value(static_cast<std::int32_t>(transposed)).value(static_cast<std::int32_t>(conjugate));
    encoder.value(static_cast<std::int32_t>(call.first)).value(static_cast<std::int32_t>(call.pairs));
    encoder.value(static_cast<std::int32_t>(call.options.phase == EighPhase::positive));
    if (real == DType::f64)
      encoder.value(tolerance, "tolerance");
    else
      encoder.value(static_cast<float>(tolerance), "tolerance");
    encoder.value(static_cast<std::int32_t>(limit), "limit").value(static_cast<std::uint32_t>(streaming));
  };
  if (plan.entry != "eigh_blocked") {
    bind();
    encoder.dispatch(plan.kernel, share.geometry);
    return;
  }
  auto launch = [&](Stage stage, std::int64_t step, std::int64_t jobs) {
    bind();
    encoder.value(static_cast<std::int32_t>(stage)).value(static_cast<std::int32_t>(step));
    encoder.dispatch(plan.kernel, sizes.share(std::min(jobs, 4 * sizes.units), 0).geometry);
  };
  auto panels = [&](std::int64_t all, std::int64_t begin, std::int64_t width) { return call.batch * ((all - begin + width - 1) / width); };
  launch(Stage::load, 0, call.batch);
  for (std::int64_t k = 0; k < call.n; ++k) {
    launch(Stage::head, k, call.batch);
    if (k < call.n - 2) launch(Stage::rows, k, panels(sizes.chunks, (k + 1) / sizes.lanes, kPanel));
  }
  if (call.v.defined()) {
    launch(Stage::form, 0, panels(sizes.chunks, 0, kTurnedPanel));
    launch(Stage::turn, 0, call.batch);
  }
  for (std::int64_t round = 0; round * kRound < limit; ++round) {
    launch(Stage::iterate, round, sizes.bundles);
    if (!call.v.defined()) break;
    launch(Stage::apply, round, panels(sizes.parts * sizes.chunks, 0, kTurnedPanel));
  }
  launch(Stage::store, 0, sizes.bundles);
}

}  // namespace clutch::inline v0::detail
