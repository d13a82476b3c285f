// SPDX-License-Identifier: Apache-2.0
#include <clutch/ops/copy.hpp>
#include <clutch/ops/eigh.hpp>
#include <clutch/ops/fill.hpp>

#include "eigh/args.h"
#include "encode/plugin_ops.hpp"
#include "ops/eigh_plan.hpp"
#include "runtime/op_name.hpp"
#include "runtime/quirks.hpp"
#include "runtime/storage.hpp"

#include <array>
#include <limits>

namespace clutch { inline namespace v0 {

using linalg::EighDriver;
using linalg::EighOptions;
using linalg::EighPhase;
using linalg::Uplo;

namespace linalg {

std::string_view name(EighDriver driver) noexcept {
  switch (driver) {
    case EighDriver::automatic: return "automatic";
    case EighDriver::closed: return "closed";
    case EighDriver::jacobi_lanes: return "jacobi_lanes";
    case EighDriver::jacobi_group: return "jacobi_group";
    case EighDriver::qr_lanes: return "qr_lanes";
    case EighDriver::qr_group: return "qr_group";
    case EighDriver::device_wide: return "device_wide";
    case EighDriver::jacobi_items: return "jacobi_items";
    case EighDriver::qr_items: return "qr_items";
    case EighDriver::host: return "host";
  }
  return "?";
}

}  // namespace linalg

namespace detail {
namespace {

// validate ----------------------------------------------------------------------------------------------------------

struct Checked {
  Runtime* runtime;
  std::int64_t n, batch, first, pairs;
  Dims outer;     ///< of the batch
  DType compute;  ///< dtype of a and v in the kernels
};

Dims with(Dims sizes, std::initializer_list<std::int64_t> more) {
  std::vector<std::int64_t> all(sizes.begin(), sizes.end());
  all.insert(all.end(), more);
  return Dims(std::span<const std::int64_t>(all));
}

Checked validate(const Tensor& a, const EighOptions& options, const char* op) {
  const Tensor* tensors[] = {&a};
  Checked c{};
  c.runtime = &common_runtime(tensors, op);
  if (a.rank() < 2) throw Error(ErrorCode::invalid_shape, op, fmt::format("a must have at least 2 dimensions, got {}", to_string(a.sizes())));
  c.n = a.sizes()[a.rank() - 1];
  if (a.sizes()[a.rank() - 2] != c.n)
    throw Error(ErrorCode::invalid_shape, op, fmt::format("a must be square in its last two dims, got {}", to_string(a.sizes())));
  c.outer = Dims(std::span(a.sizes().begin(), static_cast<std::size_t>(a.rank() - 2)));
  c.batch = numel(c.outer);
  switch (a.dtype()) {
    case DType::f16:
    case DType::bf16: c.compute = DType::f32; break;
    case DType::f32:
    case DType::f64:
    case DType::c64:
    case DType::c128: c.compute = a.dtype(); break;
    default: throw Error(ErrorCode::invalid_dtype, op, fmt::format("a must be f32, f64, c64, c128, f16 or bf16, got {}", name(a.dtype())));
  }
  c.first = options.first;
  c.pairs = options.count < 0 ? c.n - c.first : options.count;
  if (c.first < 0 || c.pairs < 0 || c.first + c.pairs > c.n)
    throw Error(ErrorCode::invalid_argument, op, fmt::format("the eigenpairs must be in [0, {}), got {} to {}", c.n, c.first, c.first + c.pairs));
  if (!(options.tolerance >= 0) || options.max_sweeps < 0)
    throw Error(ErrorCode::invalid_argument, op,
                fmt::format("tolerance and max_sweeps must be at least 0, got {} and {}", options.tolerance, options.max_sweeps));
  return c;
}

// select ------------------------------------------------------------------------------------------------------------

constexpr std::string_view kOnlyJacobi = "accuracy must be norm, since relative is Jacobi's alone, got relative";

std::string computes(const DeviceTraits& traits, const EighProblem& p) { return refuses_fp64(traits, eigh_real_of(p.dtype) == DType::f64); }

/// What was given in place of an n that must be another: problems know its size class alone.
std::string got_n(const EighProblem& p) { return fmt::format("got one of the class up to {}", p.n); }

/// Refuses n that is too large for the driver or the device's loops. Iterations of the innermost loop: n^3 / 2 for a sweep of Jacobi, n^3 / 5 for all of QR.
std::string fits(const DeviceTraits& traits, const EighProblem& p, int most, int most_of_short_loops) {
  if (p.n > most) return fmt::format("n must be at most {}, {}", most, got_n(p));
  if (p.n > most_of_short_loops && !refuses_long_loops(traits).empty()) return refuses_long_loops(traits);
  return computes(traits, p);
}
std::string fits_jacobi(const DeviceTraits& traits, const EighProblem& p) { return fits(traits, p, kEighMost, 16); }
std::string fits_jacobi_group(const DeviceTraits& traits, const EighProblem& p) { return fits(traits, p, kEighMostOfGroup, 16); }
std::string fits_qr(const DeviceTraits& traits, const EighProblem& p) {
  return p.relative ? std::string(kOnlyJacobi) : fits(traits, p, kEighMost, kEighPrivate);
}
std::string fits_closed(const DeviceTraits& traits, const EighProblem& p) {
  if (p.n > 2) return "n must be at most 2, " + got_n(p);
  return p.relative && p.n == 2 ? std::string(kOnlyJacobi) : computes(traits, p);
}

std::string fits_qr_group(const DeviceTraits& traits, const EighProblem& p) {
  if (p.relative) return std::string(kOnlyJacobi);
  return fits(traits, p, std::numeric_limits<std::uint16_t>::max(), kEighPrivate);
}

/// Registers of 32 bits that an element takes.
int registers(DType dtype) { return (eigh_real_of(dtype) == DType::f64 ? 2 : 1) * (is_complex(dtype) ? 2 : 1); }
/// Registers of an item for its part of a matrix, and as many for its part of the eigenvectors: both fit the 255 that a work-item has at most.
constexpr int kRegistersOfMatrix = 64;
int most_of_jacobi_items(DType dtype) {
  int n = 1;
  while ((n + 1) * (n + 1) * registers(dtype) <= kRegistersOfMatrix) ++n;
  return n;
}
int most_of_qr_items(DType dtype) { return kRegistersOfMatrix / registers(dtype); }

std::string fits_jacobi_items(const DeviceTraits& traits, const EighProblem& p) {
  if (const int most = most_of_jacobi_items(p.dtype); p.n < 2 || p.n > most) return fmt::format("n must be 2 to {}, {}", most, got_n(p));
  if (std::string why = refuses_group_items(traits, EIGH_ITEMS); !why.empty()) return why;
  if (std::string why = refuses_local_bytes(traits, EIGH_ITEMS * (EIGH_STAGE_BYTES + sizeof(double))); !why.empty()) return why;
  return fits_jacobi(traits, p);
}
std::string fits_qr_items(const DeviceTraits& traits, const EighProblem& p) {
  if (p.relative) return std::string(kOnlyJacobi);
  if (const int most = most_of_qr_items(p.dtype); p.n > most) return fmt::format("n must be at most {}, {}", most, got_n(p));
  if (std::string why = refuses_group_items(traits, EIGH_ITEMS); !why.empty()) return why;
  // Teams of a group have 22 KB at most, those of c128 and n up to 8; the items of eigh_qr_sweeps have a tridiagonal matrix each.
  constexpr std::uint64_t kTeamsBytes = 24576;
  const std::uint64_t numbers = 2 * EIGH_ITEMS * static_cast<std::uint64_t>(eigh_items_cap(p.n)), bytes = eigh_real_of(p.dtype) == DType::f64 ? 8 : 4;
  if (std::string why = refuses_local_bytes(traits, std::max(kTeamsBytes, numbers * bytes)); !why.empty()) return why;
  return fits(traits, p, kRegistersOfMatrix, kEighPrivate);
}

std::string hosts(const DeviceTraits& traits, const EighProblem& p) {
  if (p.relative) return std::string(kOnlyJacobi);
  std::string why = computes(traits, p);
  return why.empty() ? eigh_host_refuses(traits) : why;
}

constexpr std::string_view kHostEntry = "eigh_host";  // names a host function, not a kernel
constexpr std::string_view kItemsEntry = "eigh_qr_items", kSweepsEntry = "eigh_qr_sweeps", kRotationsEntry = "eigh_qr_rotations";  // kernels of one driver

/// Largest sizes at which our own kernels are faster than LAPACK on all cores of a CPU; measured by `clutch-bench --filter ^eigh` on wide vectors, with
/// OpenBLAS's AVX-512 kernels. The size of the batch must not matter, because a matrix has the same bits in any batch.
constexpr int kOwnTo = 640, kOwnDoubleTo = 384;
int own_to(DType dtype) { return eigh_real_of(dtype) == DType::f64 ? kOwnDoubleTo : kOwnTo; }

/// Sizes from which one matrix at a time is faster than bundles in lanes for all batch sizes, because eigenvectors of a bundle no longer fit a core's own
/// caches. With one lane, groups are faster from a smaller size on; with too few matrices to fill the lanes, from kEighPrivate + 1 on.
constexpr int kGroupFrom = 129, kGroupOfItemsFrom = 49;
int group_from(const DeviceTraits& traits, const EighProblem& p) {
  if (eigh_lanes(traits, p.dtype) == 1) return kGroupOfItemsFrom;
  return p.batch == EighBatch::many ? kGroupFrom : kEighPrivate + 1;
}

/// Largest size at which Jacobi with a matrix in each lane or work-item is faster than with one matrix at a time.
int relative_in_lanes(const DeviceTraits& traits, DType dtype) { return eigh_lanes(traits, dtype) > 1 ? kEighMost : 16; }

/// Largest size for which programs are built with the size as a constant.
constexpr int kKnownTo = 6;

/// Size from which one matrix is enough work for the whole device.
constexpr int kDeviceWideFrom = 641;

constexpr std::array<Implementation<EighProblem>, 10> kImplementations{{
    {"eigh_closed", fits_closed},
    {"eigh_jacobi_items", of_groups<fits_jacobi_items, EighProblem>},
    {"eigh_qr_items", of_groups<fits_qr_items, EighProblem>},
    {"eigh_jacobi_lanes",
     [](const DeviceTraits& t, const EighProblem& p) {
       if (const int most = p.relative ? relative_in_lanes(t, p.dtype) : 4; p.n > most)
         return fmt::format("n must be at most {}, past which {} is faster, {}", most, p.relative ? "a matrix at a time" : "iterative QR", got_n(p));
       return fits_jacobi(t, p);
     }},
    {"eigh_jacobi_group",
     [](const DeviceTraits& t, const EighProblem& p) {
       return p.relative ? fits_jacobi_group(t, p) : std::string("accuracy must be relative, since iterative QR is faster, got norm");
     }},
    {kHostEntry,
     [](const DeviceTraits& t, const EighProblem& p) {
       if (eigh_lanes(t, p.dtype) == 1) return std::string(kNeedsVectors);
       return p.n <= own_to(p.dtype) ? fmt::format("n must be past {}, to which the device's own kernels are faster, {}", own_to(p.dtype), got_n(p))
                                     : hosts(t, p);
     }},
    {"eigh_device_wide",
     [](const DeviceTraits& t, const EighProblem& p) {
       if (p.batch != EighBatch::alone) return std::string("the matrix must be alone, since one for each core is faster, got a batch");
       return p.n < kDeviceWideFrom ? fmt::format("n must be at least {}, {}", kDeviceWideFrom, got_n(p)) : fits_qr_group(t, p);
     }},
    {"eigh_qr_group",
     [](const DeviceTraits& t, const EighProblem& p) {
       const int least = group_from(t, p);
       return p.n < least ? fmt::format("n must be at least {}, below which bundles in lanes are faster, {}", least, got_n(p)) : fits_qr_group(t, p);
     }},
    {"eigh_qr_lanes", fits_qr},
    {kHostEntry, hosts},
}};

/// Conditions for drivers that the caller forces.
constexpr std::array<Implementation<EighProblem>, 9> kForced{{
    {"eigh_closed", fits_closed},
    {"eigh_jacobi_items", fits_jacobi_items},
    {"eigh_qr_items", fits_qr_items},
    {"eigh_jacobi_lanes", fits_jacobi},
    {"eigh_jacobi_group", fits_jacobi_group},
    {"eigh_qr_lanes", fits_qr},
    {"eigh_qr_group", fits_qr_group},
    {"eigh_device_wide", fits_qr_group},
    {kHostEntry, hosts},
}};

}  // namespace

void check_eigh_tensor(const Tensor& t, std::string_view what, const Dims& sizes, DType dtype, const char* op) {
  if (!(t.sizes() == sizes))
    throw Error(ErrorCode::invalid_shape, op, fmt::format("{} must have the shape {}, got {}", what, to_string(sizes), to_string(t.sizes())));
  if (t.dtype() != dtype) throw Error(ErrorCode::invalid_dtype, op, fmt::format("{} must be {}, got {}", what, name(dtype), name(t.dtype())));
}

int eigh_items_cap(std::int64_t n) {
  int cap = 8;
  while (cap < n) cap *= 2;
  return cap;
}

int eigh_lanes(const DeviceTraits& traits, DType dtype) {
  if (row_tuning(traits).local != 1) return 1;
  return std::max(1, eigh_real_of(dtype) == DType::f64 ? traits.native_width_f64 : traits.native_width_f32);
}

EighBatch eigh_batch(const DeviceTraits& traits, DType dtype, std::int64_t batch) {
  if (batch == 1) return EighBatch::alone;
  return 4 * batch <= eigh_lanes(traits, dtype) * std::int64_t{traits.compute_units} ? EighBatch::few : EighBatch::many;
}

std::uint16_t eigh_size_class(std::int64_t n) {
  if (n <= most_of_jacobi_items(DType::f32)) return static_cast<std::uint16_t>(n);
  for (int most : {16, kEighPrivate, kGroupOfItemsFrom - 1, kRegistersOfMatrix, kGroupFrom - 1, kEighMost, kDeviceWideFrom - 1, kOwnDoubleTo, kOwnTo})
    if (n <= most) return static_cast<std::uint16_t>(most);
  return std::numeric_limits<std::uint16_t>::max();
}

KernelPlan select(const DeviceTraits& traits, const EighProblem& p, std::string_view forced) {
  const char* op = p.vectors ? "eigh" : "eigvalsh";
  auto list = forced.empty() ? std::span<const Implementation<EighProblem>>(kImplementations) : std::span<const Implementation<EighProblem>>(kForced);
  KernelPlan plan{.stem = "eigh", .entry = choose<EighProblem>(list, traits, p, forced, op).name, .tuning = row_tuning(traits)};
  if (plan.entry == kHostEntry) {
    plan.note = fmt::format("LAPACKE's {} on mapped memory", is_complex(p.dtype) ? "heevd" : "syevd");
    return plan;
  }
  bool is_group = plan.entry.ends_with("_group") || plan.entry == "eigh_device_wide", by_items = plan.entry.ends_with("_items");
  bool in_scratch = !is_group && !by_items && p.n > kEighPrivate;
  if (by_items) plan.tuning.set_items(EIGH_ITEMS);
  // Small sizes are constants of their programs, so that all loops are unrolled.
  int known = plan.entry == "eigh_closed" || plan.entry == "eigh_jacobi_items" || (plan.entry == "eigh_jacobi_lanes" && (p.n == 3 || p.n == 4)) ||
                      (plan.entry == "eigh_qr_lanes" && p.n <= kKnownTo)
                  ? p.n
                  : 0;
  // An item interleaves two bundles if each rotation depends on the one before and both bundles fit a core's innermost caches.
  const int lanes = by_items ? 1 : eigh_lanes(traits, p.dtype);
  const bool two = lanes > 1 && (plan.entry == "eigh_qr_lanes" || (plan.entry == "eigh_jacobi_lanes" && p.n == 3 && !is_complex(p.dtype)));
  plan.tuning.tile = two ? 2 : 1;
  plan.options = "-cl-denorms-are-zero";
  plan.defines.set_type("T", eigh_real_of(p.dtype))
      .set("LANES", lanes)
      .set("CLUTCH_BUNDLES", two ? 2 : 1)
      .set("CLUTCH_MATRICES", eigh_matrices(plan.entry, two ? 2 : 1))
      .set("CLUTCH_COMPLEX", is_complex(p.dtype))
      .set("CLUTCH_VECTORS", p.vectors)
      .set("CLUTCH_N", known)
      .set("CLUTCH_N_MAX", is_group     ? 1
                           : known      ? known
                           : in_scratch ? kEighMost
                                        : kEighPrivate);
  if (plan.entry == "eigh_qr_items") {
    // Two rows an item where registers allow: what is loaded serves both. A larger class than the size's own wastes less than another program.
    const int cap = eigh_items_cap(p.n), rows = 2 * cap * registers(p.dtype) <= kRegistersOfMatrix ? 2 : 1;
    plan.defines.set("CLUTCH_TEAM", cap / rows).set("CLUTCH_ROWS", rows);
    plan.tuning.tile = p.part == EighPart::sweeps ? EIGH_ITEMS : EIGH_ITEMS / (cap / rows);  // matrices of a group
    if (p.part != EighPart::first) plan.entry = p.part == EighPart::sweeps ? kSweepsEntry : kRotationsEntry;
    if (p.part != EighPart::sweeps) plan.keeps = KernelPlan::Keeps::most;
  }
  if (plan.entry == "eigh_jacobi_items") plan.tuning.tile = EIGH_ITEMS;
  if (plan.entry == "eigh_device_wide") plan.keeps = KernelPlan::Keeps::some;
  if (is_group && plan.tuning.local > 1) plan.defines.set("CLUTCH_GROUPED", 1);
  if (p.relative && plan.entry != "eigh_closed") plan.defines.set("CLUTCH_RELATIVE", 1);
  if (in_scratch) plan.defines.set("CLUTCH_IN_SCRATCH", 1);
  return plan;
}

namespace {

// encode ------------------------------------------------------------------------------------------------------------

/// Uses the input itself if its matrices are contiguous (or transposed) with one stride between them, else a copy.
void take_matrices(EighCall& call, const Tensor& a, DType compute, const Stream& stream) {
  call.a = a.dtype() == compute ? a : cast(a, compute, {}, stream);
  auto fits = [&] {
    const Dims& sizes = call.a.sizes();
    const Dims& strides = call.a.strides();
    int rank = call.a.rank();
    std::int64_t n = call.n, rows = strides[rank - 2], columns = strides[rank - 1];
    if (n > 1 && !(rows == n && columns == 1) && !(rows == 1 && columns == n)) return false;
    call.transposed = n > 1 && rows == 1;
    call.stride = n * n;
    std::int64_t next = 0;  // stride that the next outer dimension must have
    for (int d = rank - 3; d >= 0; --d) {
      if (sizes[d] == 1) continue;
      if (next == 0)
        call.stride = strides[d];
      else if (strides[d] != next)
        return false;
      next = strides[d] * sizes[d];
    }
    return call.stride >= n * n;  // kernels load whole vectors, some of which extend past the end of a matrix
  };
  if (fits()) return;
  call.a = call.a.clone(stream);
  fits();
}

/// Tensors that the drivers write: the caller's if their layout and dtype fit, else new ones that are copied to the caller's at the end.
class Results {
 public:
  Tensor place(const Tensor& wanted, const Tensor& as_written, DType dtype, const Stream& stream) {
    if (as_written.is_contiguous() && as_written.dtype() == dtype) return as_written;
    Tensor made = empty(as_written.sizes(), {.dtype = dtype, .device = stream.device()}, stream);
    copies_.emplace_back(wanted, made);
    return made;
  }
  /// A tensor for v. The drivers write its columns one after another.
  Tensor place_columns(const Tensor& v, DType dtype, const Stream& stream) {
    Tensor made = place(v, v.mT(), dtype, stream);
    if (!copies_.empty() && copies_.back().second.storage() == made.storage()) copies_.back().second = made.mT();
    return made;
  }
  void copy_back(const Stream& stream) const {
    for (const auto& [to, from] : copies_) copy_(to, from, {}, stream);
  }

 private:
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

void run(const Tensor& w, const Tensor& v, const Tensor& info, const Tensor& sweeps, const Tensor& a, const Checked& c, const EighOptions& options,
         const Stream& stream, const char* op) {
  if (c.batch == 0) return;
  if (c.n == 0) {
    fill_(info, 0, {}, stream);
    fill_(sweeps, 0, {}, stream);
    return;
  }
  std::string forced = options.driver == EighDriver::automatic ? "" : fmt::format("eigh_{}", linalg::name(options.driver));
  EighProblem problem{c.compute, v.defined(), eigh_size_class(c.n), options.accuracy == linalg::EighAccuracy::relative,
                      eigh_batch(c.runtime->traits(), c.compute, c.batch)};
  Runtime& runtime = *c.runtime;
  auto part = [&](EighPart which) -> const BuiltPlan& {
    EighProblem one = problem;
    one.part = which;
    return plan_for(runtime, op, one, kItemsEntry);
  };
  const BuiltPlan& plan = runtime.plans().find<BuiltPlan>(op, problem, forced, [&] {
    KernelPlan selected = select(runtime.traits(), problem, forced);
    if (selected.entry.ends_with("_items")) {
      // A driver may allow fewer items in a group of these kernels than in others.
      const KernelPlan other = select(runtime.traits(), problem, problem.relative ? "eigh_jacobi_lanes" : "eigh_qr_lanes");
      if (selected.entry == kItemsEntry)
        for (EighPart which : {EighPart::sweeps, EighPart::rotations}) {
          const std::uint64_t allowed = part(which).tuning.local;
          if (allowed >= EIGH_ITEMS) continue;
          if (forced.empty()) return build_plan(runtime, other);
          refuse_group_items(selected.stem, part(which).entry, EIGH_ITEMS, allowed);
        }
      return build_groups(runtime, selected, other, EIGH_ITEMS, !forced.empty());
    }
    if (selected.entry != kHostEntry) return build_plan(runtime, selected);
    BuiltPlan on_host;
    on_host.text = Interned(selected.to_string());
    on_host.entry = kHostEntry;
    return on_host;
  });
  EighCall call{.n = c.n, .batch = c.batch, .first = c.first, .pairs = c.pairs, .options = options};
  Results results;
  DType real = eigh_real_of(c.compute);
  call.w = results.place(w, w, real, stream);
  if (v.defined()) call.v = results.place_columns(v, c.compute, stream);
  call.info = results.place(info, info, DType::i32, stream);
  call.sweeps = results.place(sweeps, sweeps, DType::i32, stream);
  take_matrices(call, a, c.compute, stream);
  if (plan.entry == kHostEntry)
    eigh_on_host(call, plan.text.str(), stream, op);
  else
    eigh_on_device(call, plan.entry == kItemsEntry ? EighKernels{&plan, &part(EighPart::sweeps), &part(EighPart::rotations)} : EighKernels{&plan},
                   runtime.traits(), stream, op);
  const Aside copies;
  results.copy_back(stream);
}

/// Dims of w, v and info for matrices of a's batch.
struct Shapes {
  Dims w, v, info;
  explicit Shapes(const Checked& c) : w(with(c.outer, {c.pairs})), v(with(c.outer, {c.n, c.pairs})), info(c.outer) {}
};

/// Eigenpairs, or eigenvalues where v is null, by a plugin. False if none takes them.
bool solved_by_plugin(const Tensor& w, const Tensor* v, const linalg::EighStatus& status, const Tensor& a, const Checked& c, const EighOptions& options,
                      const Stream& stream) {
  if (c.batch == 0 || c.n == 0 || c.pairs == 0 || options.driver != EighDriver::automatic) return false;
  if (!v) return by_plugin("linalg::eigvalsh", {}, {&w, &status, &a, &options, &stream}, stream);
  return by_plugin("linalg::eigh", {}, {&w, v, &status, &a, &options, &stream}, stream);
}

linalg::EighResult solve(const Tensor& a, bool vectors, const EighOptions& options, const Stream& given, const char* op) {
  Checked c = validate(a, options, op);
  Stream stream = resolve_stream(given, *c.runtime, op);
  Shapes shapes(c);
  auto made = [&](const Dims& sizes, DType dtype) { return empty(sizes, {.dtype = dtype, .device = stream.device()}, stream); };
  linalg::EighResult result;
  result.w = made(shapes.w, eigh_real_of(a.dtype()));
  if (vectors) result.v = made(with(c.outer, {c.pairs, c.n}), a.dtype()).mT();
  result.status = {made(shapes.info, DType::i32), made(shapes.info, DType::i32)};
  if (solved_by_plugin(result.w, vectors ? &result.v : nullptr, result.status, a, c, options, stream)) return result;
  run(result.w, result.v, result.status.info, result.status.sweeps, a, c, options, stream, op);
  return result;
}

void solve_into(const Tensor& w, const Tensor* v, const linalg::EighStatus& status, const Tensor& a, const EighOptions& options, const Stream& given,
                const char* op) {
  const auto& [info, sweeps] = status;
  Checked c = validate(a, options, op);
  std::vector<std::pair<std::string_view, const Tensor*>> results{{"w", &w}, {"info", &info}, {"sweeps", &sweeps}};
  if (v) results.emplace_back("v", v);
  std::vector<const Tensor*> all{&a};
  for (const auto& row : results) all.push_back(row.second);
  common_runtime(all, op);
  Shapes shapes(c);
  check_eigh_tensor(w, "w", shapes.w, eigh_real_of(a.dtype()), op);
  check_eigh_tensor(info, "info", shapes.info, DType::i32, op);
  check_eigh_tensor(sweeps, "sweeps", shapes.info, DType::i32, op);
  if (v) check_eigh_tensor(*v, "v", shapes.v, a.dtype(), op);
  for (std::size_t i = 0; i < results.size(); ++i) {
    check_no_self_overlap(*results[i].second, op);
    check_apart(*results[i].second, a, op);
    for (std::size_t j = 0; j < i; ++j) check_apart(*results[i].second, *results[j].second, op);
  }
  const Stream stream = resolve_stream(given, *c.runtime, op);
  if (solved_by_plugin(w, v, status, a, c, options, stream)) return;
  run(w, v ? *v : Tensor(), info, sweeps, a, c, options, stream, op);
}

}  // namespace
}  // namespace detail

namespace linalg {

EighResult eigh(const Tensor& a, const EighOptions& options, const Stream& stream) {
  detail::OpName named("linalg::eigh");
  return detail::solve(a, true, options, stream, "eigh");
}

void eigh_out(const Tensor& w, const Tensor& v, const EighStatus& status, const Tensor& a, const EighOptions& options, const Stream& stream) {
  detail::OpName named("linalg::eigh_out");
  detail::solve_into(w, &v, status, a, options, stream, "eigh_out");
}

EigvalshResult eigvalsh(const Tensor& a, const EighOptions& options, const Stream& stream) {
  detail::OpName named("linalg::eigvalsh");
  EighResult result = detail::solve(a, false, options, stream, "eigvalsh");
  return {result.w, result.status};
}

void eigvalsh_out(const Tensor& w, const EighStatus& status, const Tensor& a, const EighOptions& options, const Stream& stream) {
  detail::OpName named("linalg::eigvalsh_out");
  detail::solve_into(w, nullptr, status, a, options, stream, "eigvalsh_out");
}

void require_converged(const EighStatus& status, const Stream& stream) {
  detail::OpName named("linalg::require_converged");
  std::vector<std::int32_t> codes = status.info.reshape({-1}).to_host<std::int32_t>(stream);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) continue;
    throw Error(ErrorCode::not_converged, "require_converged",
                codes[i] < 0 ? fmt::format("matrix {} of the batch has NaN or Inf in the triangle that is read", i)
                             : fmt::format("matrix {} of the batch did not converge: {} off-diagonal elements are above the tolerance", i, codes[i]));
  }
}

}  // namespace linalg
}}  // namespace clutch::v0
