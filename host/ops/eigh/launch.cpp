// SPDX-License-Identifier: Apache-2.0
// eigh on the device: work-groups, size of scratch, and launches of each driver.
#include "eigh/args.h"

#include "encode/args.hpp"
#include "ops/eigh_plan.hpp"

#include <algorithm>

namespace clutch { inline namespace v0 { namespace detail {

using linalg::EighPhase;
using linalg::Uplo;

namespace {

/// Parameters of the layouts in kernels/eigh/args.h, with the values for which the kernel was built.
struct Sizes {
  clutch_i32 n, lanes, parts, vectors, items;
  clutch_i32 capacity;   ///< matrices of a full bundle (eigh_capacity())
  std::int64_t bundles;  ///< number of full bundles that hold the batch
  std::int64_t units;    ///< compute units of the device
  Sizes(const EighCall& call, const BuiltPlan& plan, const DeviceTraits& traits)
      : n(static_cast<clutch_i32>(call.n)),
        lanes(eigh_lanes(traits, call.a.dtype())),
        parts(is_complex(call.a.dtype()) ? 2 : 1),
        vectors(call.v.defined() ? 1 : 0),
        items(static_cast<clutch_i32>(plan.tuning.local)),
        capacity(eigh_capacity(lanes, items)),
        bundles(static_cast<std::int64_t>(eigh_bundles(static_cast<clutch_u64>(call.batch), capacity))),
        units(traits.compute_units) {}
  Geometry geometry(std::int64_t groups) const { return {.global = static_cast<std::uint64_t>(groups * items), .local = static_cast<std::uint64_t>(items)}; }
};

/// Work-groups of a driver, and the size of the scratch of all work-groups in real numbers.
struct Share {
  Geometry geometry;
  std::int64_t numbers = 0;
  std::int64_t bundle = 0;  ///< EighArgs::bundle
};

/// If there are many bundles, limits the number of work-items so that scratch has at most the bytes of the input. The number is a multiple of the number of
/// compute units, at least one for each.
Share share_of_lanes(const EighCall& call, const BuiltPlan& plan, const Sizes& s) {
  const auto bundles = static_cast<std::int64_t>(eigh_bundles(static_cast<clutch_u64>(call.batch), s.lanes));
  bool in_scratch = call.n > kEighPrivate && plan.entry != "eigh_closed";
  const auto together = static_cast<clutch_i32>(plan.tuning.tile);
  std::int64_t most = std::min(bundles, std::max(in_scratch ? bundles / (2 * together) / s.units * s.units : (bundles + together - 1) / together, s.units));
  if (!in_scratch) most = std::min<std::int64_t>(most, s.items == 1 ? 256 : 1 << 16);
  Share share{.geometry = item_geometry(static_cast<std::uint64_t>(most), plan.tuning.local)};
  if (in_scratch) {
    const std::int64_t vectors = eigh_item_size(s.n, s.lanes, s.parts, s.vectors, eigh_matrices(plan.entry, together), together);
    share.numbers = static_cast<std::int64_t>(share.geometry.global) * vectors * s.lanes;
  }
  return share;
}

/// A group for each `tile` of so many matrices, up to a bound.
Geometry geometry_of_items(std::int64_t matrices, const BuiltPlan& plan) {
  const std::uint64_t each = plan.tuning.tile;
  return tile_geometry((static_cast<std::uint64_t>(matrices) + each - 1) / each, plan.tuning.local);
}

/// Matrices that the kernels of eigh_qr_items take at a time, and their scratch: with an item for each, they fill a device.
struct ItemsChunk {
  std::int64_t matrices;
  EighItemsLayout layout;
};
ItemsChunk chunk_of_items(const EighCall& call, const Sizes& s, const DeviceTraits& traits) {
  const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(std::uint64_t{512} << 20, traits.global_bytes / 16));
  auto layout_of = [&](std::int64_t matrices) {
    return eigh_items_layout(matrices, eigh_items_cap(call.n), s.parts, s.vectors, eigh_real_of(call.a.dtype()) == DType::f64 ? 8 : 4);
  };
  const std::int64_t matrices = std::min(call.batch, std::max<std::int64_t>(1, most / layout_of(1).size / EIGH_ITEMS) * EIGH_ITEMS);
  return {matrices, layout_of(matrices)};
}

/// Scratch of eigh_device_wide. Each of its launches has its own number of work-groups.
Share share_of_device_wide(const EighCall& call, const Sizes& s) {
  return {.numbers = static_cast<std::int64_t>(
              eigh_device_wide_bundle(s.n, s.lanes, s.parts, s.vectors, s.items, static_cast<clutch_u64>(call.batch), static_cast<clutch_u64>(s.bundles)))};
}

/// Divides the batch among work-groups: a bundle has ceil(batch / groups) matrices, at most its capacity.
Share share_of_qr_groups(const EighCall& call, const Sizes& s) {
  const std::int64_t groups = std::min(call.batch, std::max(s.units, std::min(s.bundles / 2, 4 * s.units)));
  const std::int64_t bundle = std::min<std::int64_t>(s.capacity, (call.batch + groups - 1) / groups);
  return {s.geometry(groups), groups * eigh_qr_group_layout(s.n, s.lanes, s.parts, s.vectors, s.items, static_cast<clutch_i32>(bundle)).size, bundle};
}

Share share_of_jacobi_groups(const EighCall& call, const Sizes& s) {
  const std::int64_t groups = std::min(call.batch, std::max(s.units, std::min(call.batch / 4, 16 * s.units)));
  return {s.geometry(groups), groups * eigh_jacobi_layout(s.n, s.lanes, s.parts, s.vectors).size};
}

}  // namespace

void eigh_on_device(const EighCall& call, const EighKernels& kernels, const DeviceTraits& traits, const Stream& stream, const char* op) {
  const BuiltPlan& plan = *kernels.first;
  DType real = eigh_real_of(call.a.dtype());
  const Sizes sizes(call, plan, traits);
  const Share share = plan.entry == "eigh_qr_group"       ? share_of_qr_groups(call, sizes)
                      : plan.entry == "eigh_device_wide"  ? share_of_device_wide(call, sizes)
                      : plan.entry == "eigh_jacobi_group" ? share_of_jacobi_groups(call, sizes)
                      : plan.entry.ends_with("_items")    ? Share{.geometry = geometry_of_items(call.batch, plan)}
                                                          : share_of_lanes(call, plan, sizes);
  Encoder encoder(stream, op);
  const ItemsChunk chunk = chunk_of_items(call, sizes, traits);
  Tensor scratch = kernels.sweeps ? encoder.scratch({chunk.layout.size}, DType::u8) : encoder.scratch({std::max<std::int64_t>(share.numbers, 1)}, real);
  Tensor none = call.v.defined() ? call.v : encoder.scratch({1}, real);
  bool conjugate = call.options.uplo == Uplo::upper, transposed = call.transposed != conjugate;
  bool is_jacobi = plan.entry.starts_with("eigh_jacobi");
  int limit = call.options.max_sweeps > 0 ? call.options.max_sweeps : is_jacobi ? 30 : static_cast<int>(30 * call.n);
  // Counts the bytes twice: stores that go through the caches read each cache line before they write it.
  const bool streaming = worth_streaming(traits, 2 * (call.a.nbytes() + call.w.nbytes() + (call.v.defined() ? call.v.nbytes() : 0)));
  double tolerance = call.options.tolerance > 0 ? call.options.tolerance : real == DType::f64 ? 0x1p-52 : 0x1p-23;
  EighArgs args{.batch = static_cast<clutch_u64>(call.batch),
                .from = 0,
                .matrix_stride = static_cast<clutch_u64>(call.stride * sizes.parts),
                .n = sizes.n,
                .transposed = transposed,
                .conjugate = conjugate,
                .first_pair = static_cast<clutch_i32>(call.first),
                .pairs = static_cast<clutch_i32>(call.pairs),
                .positive = call.options.phase == EighPhase::positive,
                .streaming = streaming,
                .bundle = static_cast<clutch_i32>(share.bundle),
                .stage = 0,
                .step = 0};
  // The first launch states the operations of all, and the kernels of eigh_qr_items what all read and write of the caller's: how many of the rounds that are
  // launched find work is known on the device alone.
  double flops = static_cast<double>(call.batch) * eigh_flops(call.n, call.v.defined(), is_complex(call.a.dtype()));
  double bytes = static_cast<double>(call.batch) * sizes.parts * bits(real) / 8 * static_cast<double>(call.n * (call.n + sizes.vectors * call.pairs));
  auto dispatch = [&](const Geometry& geometry, const BuiltPlan& kernel) {
    if (kernels.sweeps) encoder.moves(std::exchange(bytes, 0));
    encoder.output(call.w, "w").output(none, "v").output(call.info, "info").output(call.sweeps, "sweeps").inout(scratch).input(call.a, "a");
    bind_args(encoder, args);
    if (real == DType::f64)
      encoder.value(tolerance, "tolerance");
    else
      encoder.value(static_cast<float>(tolerance), "tolerance");
    encoder.value(static_cast<std::int32_t>(limit), "limit").flops(std::exchange(flops, 0)).dispatch(kernel.kernel, geometry);
  };
  if (kernels.sweeps) {
    for (std::int64_t from = 0; from < call.batch; from += chunk.matrices) {
      const std::int64_t matrices = std::min(chunk.matrices, call.batch - from);
      args.from = static_cast<clutch_u64>(from), args.batch = static_cast<clutch_u64>(matrices);
      dispatch(geometry_of_items(matrices, plan), plan);
      const Aside others;  // the plan of the call is that of its first kernel
      for (const BuiltPlan* kernel : {kernels.sweeps, kernels.rotations}) dispatch(geometry_of_items(matrices, *kernel), *kernel);
    }
    return;
  }
  if (plan.entry != "eigh_device_wide") {
    dispatch(share.geometry, plan);
    return;
  }
  auto launch = [&](EighStage stage, std::int64_t step) {
    args.stage = stage, args.step = static_cast<clutch_i32>(step);
    const EighPanels panels = eigh_panels(args.stage, args.step, sizes.n, sizes.lanes, sizes.parts);
    const auto tasks = static_cast<std::int64_t>(eigh_tasks(args.stage, args.batch, panels.count, sizes.capacity));
    dispatch(sizes.geometry(std::min(tasks, 4 * sizes.units)), plan);
  };
  launch(EIGH_LOAD, 0);
  for (std::int64_t k = 0; k < call.n; ++k) {
    launch(EIGH_HEAD, k);
    if (k < call.n - 2) launch(EIGH_ROWS, k);
  }
  if (call.v.defined()) {
    launch(EIGH_FORM, 0);
    launch(EIGH_TRANSPOSE, 0);
  }
  for (std::int64_t round = 0; round * EIGH_ROUND < limit; ++round) {
    launch(EIGH_ITERATE, round);
    if (!call.v.defined()) break;
    launch(EIGH_APPLY, round);
  }
  launch(EIGH_STORE, 0);
}

}}}  // namespace clutch::v0::detail
