// SPDX-License-Identifier: Apache-2.0
// eigh: eigenvalues and eigenvectors of a batch of symmetric or Hermitian matrices.
//   eigh_closed        n = 1 and 2, by formula
//   eigh_jacobi_lanes  cyclic Jacobi, a matrix in each SIMD lane (eigh/jacobi.clh)
//   eigh_jacobi_group  Jacobi, a matrix for each work-group (eigh/jacobi_group.clh)
//   eigh_qr_lanes      Householder reduction and implicit QR, a matrix in each SIMD lane (eigh/tridiagonal.clh, eigh/qr_lanes.clh)
//   eigh_jacobi_items  cyclic Jacobi, a matrix in the registers of each work-item (eigh/items.clh)
//   eigh_qr_items      Householder reduction, a matrix in the registers of a team of work-items (eigh/qr_items.clh)
//   eigh_qr_sweeps     then its implicit QR iteration, a matrix for each work-item (eigh/qr_sweeps.clh)
//   eigh_qr_rotations  then the iteration's rotations of the eigenvectors, by a team again, and its results (eigh/qr_rotations.clh)
//   eigh_qr_group      the same; a work-group reduces matrices one after another (eigh/qr_group.clh)
//   eigh_device_wide   the stages of eigh_qr_group as launches, each shared by all work-groups (eigh/device_wide.clh). Same bits as eigh_qr_group; these are
//                      eigh_qr_lanes' bits where that has LANES > 1 and n > LANES.
// Ownership, drivers of lanes: a work-item owns bundles of LANES matrices, one in each lane of its vectors. Matrices are in private memory if
// n <= CLUTCH_N_MAX, else (CLUTCH_IN_SCRATCH) in the work-item's part of global scratch: matrices of a bundle and, with CLUTCH_VECTORS, their eigenvectors.
// Drivers of items: work-groups have EIGH_ITEMS items, LANES is 1. Matrices and eigenvectors are in registers; local memory has what items hand over.
// Drivers of groups: a work-group owns the matrices that it takes one after another, in its part of global scratch; eigh_qr_group has the eigenvectors of a
// bundle there, too. Local memory of the other drivers of groups: one T for each work-item.
// Scaling: a matrix is multiplied by a power of two that takes its largest element to [1, 2), or with CLUTCH_RELATIVE near 2^CLUTCH_UP. Devices may flush
// subnormal numbers to zero; those of small matrices keep their values. A matrix with NaN or Inf is computed as zeros and its results are NaN.
// Needs:
//   T, LANES
//   CLUTCH_BUNDLES   bundles that a work-item of a driver of lanes computes at a time: their rotations take turns, since each waits for the one before
//   CLUTCH_MATRICES  bundles whose matrices are kept at a time
//   CLUTCH_COMPLEX   1: elements are pairs; else 0
//   CLUTCH_VECTORS   0: eigenvalues alone; else 1
//   CLUTCH_N         the size if it is known, else 0
//   CLUTCH_N_MAX     the largest size in private memory
// May have:
//   CLUTCH_RELATIVE    Jacobi compares an element with its own diagonal elements
//   CLUTCH_GROUPED     work-groups have several work-items
//   CLUTCH_IN_SCRATCH  matrices are in global scratch
//   CLUTCH_TEAM, CLUTCH_ROWS   eigh_qr_items, eigh_qr_sweeps, eigh_qr_rotations: work-items of a team, and rows that each has
#if !defined(T) || !defined(LANES) || !defined(CLUTCH_BUNDLES) || !defined(CLUTCH_MATRICES) || !defined(CLUTCH_COMPLEX) || !defined(CLUTCH_VECTORS) || \
    !defined(CLUTCH_N_MAX) || !defined(CLUTCH_N)
#error "T, LANES, CLUTCH_BUNDLES, CLUTCH_MATRICES, CLUTCH_COMPLEX, CLUTCH_VECTORS, CLUTCH_N_MAX and CLUTCH_N are not defined"
#endif
#define CLUTCH_PARTS (1 + CLUTCH_COMPLEX)
#if CLUTCH_N
#define CLUTCH_N_UNROLL
#else
#define CLUTCH_N_UNROLL 1
#endif
// For large functions: compiled once, not at each call, where vectors are too many for registers anyway.
#if LANES > 1 && !CLUTCH_N
#define CLUTCH_LANES_APART CLUTCH_APART
#else
#define CLUTCH_LANES_APART static inline
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_group) || defined(CLUTCH_ENTRY_eigh_jacobi_group) || defined(CLUTCH_ENTRY_eigh_device_wide)
#define IN_GROUP 1
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_items) || defined(CLUTCH_ENTRY_eigh_qr_sweeps) || defined(CLUTCH_ENTRY_eigh_qr_rotations)
#define BY_TEAMS 1
#endif
#if defined(CLUTCH_ENTRY_eigh_jacobi_items) || defined(BY_TEAMS)
#define CLUTCH_BY_ITEMS 1
#endif
#if defined(CLUTCH_IN_SCRATCH) || defined(IN_GROUP)
#define CLUTCH_MEM __global
#else
#define CLUTCH_MEM __private
#endif
#include "eigh/lanes.clh"
#include "eigh/reflection.clh"
#include "eigh/rotation.clh"
#ifdef IN_GROUP
#define CLUTCH_QR_MEM __global
#define CLUTCH_QR_STRIDE item_count()
#include "eigh/group.clh"
#elif defined(BY_TEAMS)
#define CLUTCH_QR_MEM __local
#define CLUTCH_QR_STRIDE 1
#else
#define CLUTCH_QR_MEM __private
#define CLUTCH_QR_STRIDE 1
#endif
#include "eigh/qr.clh"
#if !defined(IN_GROUP) && !defined(BY_TEAMS)
#include "eigh/bundle.clh"
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_group) || defined(CLUTCH_ENTRY_eigh_device_wide)
#include "eigh/qr_group.clh"
#endif
#ifdef BY_TEAMS
#include "eigh/item_rows.clh"
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_sweeps) || defined(CLUTCH_ENTRY_eigh_qr_rotations)
#include "eigh/qr_sweeps.clh"
#endif

#define EIGH_PARAMS                                                                                                                                       \
  CLUTCH_PREDICATE __global uchar *w_base, ulong w_offset, __global uchar *v_base, ulong v_offset, __global uchar *info_base, ulong info_offset,          \
      __global uchar *sweeps_base, ulong sweeps_offset, __global uchar *scratch_base, ulong scratch_offset, __global const uchar *a_base, ulong a_offset, \
      CLUTCH_ARGS(EighArgs, args), T tolerance_given, int limit
// Local names of the parameters.
#define EIGH_TAKE_PARAMS                                                                                                                                      \
  CLUTCH_IF_PREDICATE                                                                                                                                         \
  CLUTCH_TAKE_ARGS(EighArgs, args)                                                                                                                            \
  const ulong batch = args.batch, matrix_stride = args.matrix_stride;                                                                                         \
  const int n = CLUTCH_N ? CLUTCH_N : args.n, transposed = args.transposed, conjugate = args.conjugate, positive = args.positive, streaming = args.streaming; \
  const int first_pair = args.first_pair, pairs = args.pairs;                                                                                                 \
  __global T* w = (__global T*)(w_base + w_offset);                                                                                                           \
  __global T* v_out = (__global T*)(v_base + v_offset);                                                                                                       \
  __global int* info = (__global int*)(info_base + info_offset);                                                                                              \
  __global int* sweeps_out = (__global int*)(sweeps_base + sweeps_offset);                                                                                    \
  __global const T* given = (__global const T*)(a_base + a_offset);

#if defined(CLUTCH_ENTRY_eigh_jacobi_lanes) || defined(CLUTCH_ENTRY_eigh_jacobi_items)
#include "eigh/jacobi.clh"
#endif

#ifdef CLUTCH_ENTRY_eigh_jacobi_lanes
__kernel void eigh_jacobi_lanes(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  CLUTCH_MATRIX_STRIDES
  CLUTCH_MATRIX_MEMORY
  CLUTCH_EACH_BUNDLE {
    JacobiState at[CLUTCH_BUNDLES];
    R unscale_of[CLUTCH_BUNDLES];
    M bad_of[CLUTCH_BUNDLES];
#pragma unroll
    for (int b = 0; b < CLUTCH_BUNDLES; ++b) {
      CLUTCH_LOAD_BUNDLE(b)
#if CLUTCH_VECTORS
#pragma unroll CLUTCH_N_UNROLL
      for (int i = 0; i < n * v_stride(n); ++i) v[i] = i % (v_stride(n) + CLUTCH_PARTS) == 0;
#endif
#ifdef CLUTCH_RELATIVE
      tolerance = tolerance_given;
#endif
      at[b].tolerance = tolerance, unscale_of[b] = unscale, bad_of[b] = bad;
    }
    iterate_jacobi(matrices, ri, rj, n, vectors, CLUTCH_BUNDLE_STRIDE, at, limit);
#pragma unroll
    for (int b = 0; b < CLUTCH_BUNDLES; ++b) {
      CLUTCH_LOCATE_BUNDLE(b)
      R d[CLUTCH_N_MAX];
#pragma unroll CLUTCH_N_UNROLL
      for (int i = 0; i < n; ++i) d[i] = CLUTCH_RE(i, i);
      store_results(w, v_out, info, sweeps_out, first, count, n, first_pair, pairs, positive, streaming, d, v, (CLUTCH_MEM T*)a, unscale_of[b], bad_of[b],
                    at[b].left & 1, at[b].used);
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_jacobi_items
#include "eigh/items.clh"
__kernel __attribute__((reqd_work_group_size(EIGH_ITEMS, 1, 1))) void eigh_jacobi_items(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  CLUTCH_MATRIX_STRIDES
  __local T stage[STAGE_NUMBERS];
  for (ulong first = get_group_id(0) * EIGH_ITEMS; first < batch; first += get_num_groups(0) * EIGH_ITEMS) {
    // The item's number, which depends on `first` for all that a compiler knows: what it computes of it would otherwise be kept in registers.
    const int item = (int)get_local_id(0) + (int)(first >> 63);
    const int count = (int)min((ulong)EIGH_ITEMS, batch - first);
    T a[CLUTCH_N * CLUTCH_N * CLUTCH_PARTS], d[CLUTCH_N];
#if CLUTCH_VECTORS
    T v[CLUTCH_N * CLUTCH_N * CLUTCH_PARTS];
#else
    T* const v = a;
#endif
    load_staged(a, given + first * matrix_stride, matrix_stride, count, item, stage);
    CLUTCH_COPY_TRIANGLE(a)
    T scale, unscale;
    const M bad = find_scale(a, ri, rj, CLUTCH_N, &scale, &unscale);
    JacobiState at = {.tolerance = tolerance_given * apply_scale(a, ri, rj, CLUTCH_N, scale, bad, conjugate), .left = 0, .used = 0};
#ifdef CLUTCH_RELATIVE
    at.tolerance = tolerance_given;
#endif
#if CLUTCH_VECTORS
#pragma unroll
    for (int i = 0; i < CLUTCH_N * CLUTCH_N * CLUTCH_PARTS; ++i) v[i] = i % ((CLUTCH_N + 1) * CLUTCH_PARTS) == 0;
#endif
    iterate_jacobi(a, ri, rj, CLUTCH_N, v, 0, &at, limit);
#pragma unroll
    for (int i = 0; i < CLUTCH_N; ++i) d[i] = CLUTCH_RE(i, i);
    sort_pairs(d, v);
#pragma unroll
    for (int i = 0; i < CLUTCH_N; ++i) d[i] = bad ? (T)NAN : unscaled(d[i], unscale);
    store_staged(w + first * pairs, d, first_pair, first_pair + pairs, count, CLUTCH_N, item, stage);
#if CLUTCH_VECTORS
    if (positive) make_positive(v, CLUTCH_N);
#pragma unroll
    for (int i = 0; i < CLUTCH_N * CLUTCH_N * CLUTCH_PARTS; ++i) v[i] = bad ? (T)NAN : v[i] + (T)0;
    const int row = CLUTCH_N * CLUTCH_PARTS;
    store_staged(v_out + first * pairs * row, v, first_pair * row, (first_pair + pairs) * row, count, CLUTCH_N * row, item, stage);
#endif
    if (item < count) info[first + item] = bad ? -1 : (int)(at.left & 1), sweeps_out[first + item] = (int)at.used;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_items
#include "eigh/qr_items.clh"
__kernel __attribute__((reqd_work_group_size(EIGH_ITEMS, 1, 1))) void eigh_qr_items(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  const EighItemsLayout layout = ITEMS_LAYOUT;
  TAKE_TEAM(QrTeam)
  for (ulong first = get_group_id(0) * TEAMS; first < batch; first += get_num_groups(0) * TEAMS) {
    const ulong m = min(first + own, batch - 1);  // teams past the last matrix compute it, too
    TEAM_BARRIER;
    const int item = OWN_ID, stored = first + own < batch;
    T unscale;
    int bad;
    {
      Rows a;
      load_rows(&a, given + (args.from + m) * matrix_stride, item, n, transposed, conjugate);
      bad = scale_rows(team, &a, item, &unscale);
      TEAM_BARRIER;
      reduce_rows_in_registers(team, &a, item, n);
      TEAM_BARRIER;
    }
    const T tolerance = tolerance_given * norm_of((__local const T*)team->d, (__local const T*)team->e, n);
    if (stored) store_tridiagonal(team, TRIDIAGONAL_OF(m), item, n, tolerance, unscale);
    if (stored && item == 0) STATES_OF(m)[EIGH_BAD] = bad;
#if CLUTCH_VECTORS
    Rows v;
    form_rows_of_q(team, &v, item, n);
    if (stored) store_q(Q_OF(m), &v, item);
#endif
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_sweeps
__kernel __attribute__((reqd_work_group_size(EIGH_ITEMS, 1, 1))) void eigh_qr_sweeps(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  const EighItemsLayout layout = ITEMS_LAYOUT;
  __local T numbers[2 * CLUTCH_CAP * EIGH_ITEMS];
  __local T *d = numbers + get_local_id(0), *e = d + CLUTCH_CAP * EIGH_ITEMS;
  for (ulong m = get_global_id(0); m < batch; m += get_global_size(0)) {
    __global T4* from = TRIDIAGONAL_OF(m);
    load_column(d, from, EIGH_ITEMS), load_column(e, from + QUADS, EIGH_ITEMS);
    const T tolerance = ((__global const T*)(from + 2 * QUADS))[EIGH_TOLERANCE];
    QrWalk at = {.first = n, .top = n - 1, .used = 0};
    record_sweeps(&at, d, e, EIGH_ITEMS, tolerance, limit, ROTATIONS_OF(m), SPANS_OF(m));
    store_column(from, d, EIGH_ITEMS), store_column(from + QUADS, e, EIGH_ITEMS);
    __global int* state = STATES_OF(m);
    state[EIGH_USED] = at.used, state[EIGH_FIRST] = at.first, state[EIGH_TOP] = at.top, state[EIGH_SWEEPS] = at.sweeps, state[EIGH_LEFT] = at.left;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_rotations
#include "eigh/qr_rotations.clh"
__kernel __attribute__((reqd_work_group_size(EIGH_ITEMS, 1, 1))) void eigh_qr_rotations(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  const EighItemsLayout layout = ITEMS_LAYOUT;
  TAKE_TEAM(RotatingTeam)
  for (ulong group_first = get_group_id(0) * TEAMS; group_first < batch; group_first += get_num_groups(0) * TEAMS) {
    const int stored = group_first + own < batch;
    const ulong m = min(group_first + own, batch - 1), to = args.from + m;  // teams past the last matrix have its numbers, and neither rotate nor store
    TEAM_BARRIER;
    const int item = OWN_ID;
    __global const T* numbers = (__global const T*)TRIDIAGONAL_OF(m);
    EACH_ROW team->d[ROW_OF(r)] = numbers[ROW_OF(r)], team->e[ROW_OF(r)] = numbers[CLUTCH_CAP + ROW_OF(r)];
    const T unscale = numbers[2 * CLUTCH_CAP + EIGH_UNSCALE];
    __global const int* state = STATES_OF(m);
    const int bad = state[EIGH_BAD];
    if (item == 0) team->used = state[EIGH_USED];
#if CLUTCH_VECTORS
    Rows v;
    load_q(&v, Q_OF(m), item);
    const QrWalk at = {.first = state[EIGH_FIRST],
                       .top = state[EIGH_TOP],
                       .used = state[EIGH_USED],
                       .sweeps = stored ? state[EIGH_SWEEPS] : 0,
                       .left = stored && state[EIGH_LEFT]};
    rotate_rows(teams, own, &v, item, at, numbers[2 * CLUTCH_CAP + EIGH_TOLERANCE], limit, ROTATIONS_OF(m), SPANS_OF(m));
#endif
    TEAM_BARRIER;
    const int remain = (int)count_left(team->e, n);
    for (int j = item; j < n; j += CLUTCH_TEAM) {
      const T x = team->d[j];
      int rank = -first_pair;
      for (int i = 0; i < n; ++i) rank += team->d[i] < x || (team->d[i] == x && i < j);
      team->rank[j] = rank;
      if (stored && rank >= 0 && rank < pairs) w[to * pairs + rank] = bad ? (T)NAN : unscaled(x, unscale);
    }
    if (stored && item == 0) info[to] = bad ? -1 : remain, sweeps_out[to] = team->used;
#if CLUTCH_VECTORS
    if (positive) make_columns_positive(team, &v, item, n);
    TEAM_BARRIER;
    EACH(j, CLUTCH_CAP) {
      const int rank = j < n ? team->rank[j] : -1;
      if (stored && rank >= 0 && rank < pairs) {
        __global T* column = v_out + (to * pairs + rank) * n * CLUTCH_PARTS;
        EACH_ROW if (ROW_OF(r) < n) EACH_PART column[ROW_OF(r) * CLUTCH_PARTS + part] = bad ? (T)NAN : v.x[r][part * CLUTCH_CAP + j] + (T)0;
      }
    }
#endif
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_lanes
#include "eigh/qr_lanes.clh"
#include "eigh/tridiagonal.clh"
__kernel void eigh_qr_lanes(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  CLUTCH_MATRIX_STRIDES
  CLUTCH_MATRIX_MEMORY
  CLUTCH_EACH_BUNDLE {
    R d[CLUTCH_BUNDLES * CLUTCH_N_MAX], e[CLUTCH_BUNDLES * CLUTCH_N_MAX], tolerance_of[CLUTCH_BUNDLES], unscale_of[CLUTCH_BUNDLES];
    M bad_of[CLUTCH_BUNDLES];
    QrState at[CLUTCH_BUNDLES];
    const int left = CLUTCH_BUNDLES_LEFT;
    for (int b = 0; b < left; ++b) {
      CLUTCH_LOAD_BUNDLE(b)
      R factor[CLUTCH_N_MAX], phase[CLUTCH_COMPLEX ? 2 * CLUTCH_N_MAX : 1];
      tridiagonalize(a, ri, rj, n, d + b * CLUTCH_N_MAX, e + b * CLUTCH_N_MAX, factor, phase);
#if CLUTCH_VECTORS
      form_q(v, a, ri, rj, n, factor, phase);
#endif
      tolerance_of[b] = tolerance_given * norm_of(d + b * CLUTCH_N_MAX, e + b * CLUTCH_N_MAX, n), unscale_of[b] = unscale, bad_of[b] = bad;
    }
    for (int b = left; b < CLUTCH_BUNDLES; ++b) {
      for (int i = 0; i < n; ++i) d[b * CLUTCH_N_MAX + i] = 0, e[b * CLUTCH_N_MAX + i] = 0;
      tolerance_of[b] = 0;
      at[b] = (QrState){.low = 0, .last = 0, .off = 0, .used = 0};
    }
    iterate_qr(d, e, n, vectors, CLUTCH_BUNDLE_STRIDE, left, tolerance_of, limit, at);
    for (int b = 0; b < left; ++b) {
      CLUTCH_LOCATE_BUNDLE(b)
      store_results(w, v_out, info, sweeps_out, first, count, n, first_pair, pairs, positive, streaming, d + b * CLUTCH_N_MAX, v, (CLUTCH_MEM T*)a,
                    unscale_of[b], bad_of[b], count_left(e + b * CLUTCH_N_MAX, n), at[b].used);
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_group
__kernel void eigh_qr_group(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  __local T local_scratch[CLUTCH_MAX_ITEMS];
  const int bundle = args.bundle;
  const EighQrGroupLayout at = eigh_qr_group_layout(n, LANES, CLUTCH_PARTS, CLUTCH_VECTORS, item_count(), bundle);
  __global T* scratch = (__global T*)(scratch_base + scratch_offset) + get_group_id(0) * at.size;
  __global T *a = scratch + at.a, *q = scratch + at.q, *vectors = scratch + at.vectors, *rows = scratch + at.rows, *factor = scratch + at.factor;
  const QrBundle b = bundle_at(scratch + at.bundle, n);
  for (ulong first = get_group_id(0) * bundle; first < batch; first += get_num_groups(0) * bundle) {
    const int count = (int)min((ulong)bundle, batch - first);
    clear_lanes(&b, n, 0, bundle_capacity());
    CLUTCH_SYNC;
    for (int l = 0; l < count; ++l) {
      begin_matrix(&b, a, rows, given + (first + l) * matrix_stride, n, transposed, conjugate, tolerance_given, l, local_scratch);
      for (int k = 0; k < n - 2; ++k) {
        reduce_head(a, n, k, b.d + l, b.e + l, bundle_capacity(), factor, rows, local_scratch);
        reduce_rows(a, n, k, factor, rows, (k + 1) / LANES, row_vectors(n));
        reduce_tail(n, k, factor, rows, local_scratch);
      }
      for (int k = max(n - 2, 0); k < n; ++k) reduce_end(a, n, k, b.d + l, b.e + l, bundle_capacity(), factor, rows);
      CLUTCH_SYNC;
#if CLUTCH_VECTORS
      form_q_rows(q, a, n, factor, 0, row_vectors(n));
      transpose_matrix(vectors + l * matrix_size(n), q, n);
#endif
    }
    M remain, used;
    iterate_bundle(&b, n, vectors, count, limit, &remain, &used, local_scratch);
    for (int l = 0; l < count; ++l) {
      store_matrix_results(w, v_out, info, sweeps_out, first + l, &b, vectors + l * matrix_size(n), n, first_pair, pairs, positive, l, &remain, &used);
    }
    CLUTCH_SYNC;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_device_wide
#include "eigh/device_wide.clh"
__kernel void eigh_device_wide(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  __local T local_scratch[CLUTCH_MAX_ITEMS];
  __global T* scratch = (__global T*)(scratch_base + scratch_offset);
  const int stage = args.stage, step = args.step;
  const EighPanels panels = eigh_panels(stage, step, n, LANES, CLUTCH_PARTS);
  const ulong tasks = eigh_tasks(stage, batch, panels.count, bundle_capacity());
  for (ulong task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
    CLUTCH_SYNC;
    if (stage == EIGH_ITERATE || stage == EIGH_STORE) {
      const ulong first = task * bundle_capacity();
      const int count = (int)min((ulong)bundle_capacity(), batch - first);
      const QrBundle b = bundle_at(device_wide_bundle(scratch, n, batch, task), n);
      if (stage == EIGH_ITERATE) {
        iterate_round(&b, scratch, n, first, count, min(CLUTCH_VECTORS ? (int)EIGH_ROUND : limit, limit - step * EIGH_ROUND), step == 0);
      } else {
        CLUTCH_QR_MEM R *d = (CLUTCH_QR_MEM R*)b.d + item_id(), *e = (CLUTCH_QR_MEM R*)b.e + item_id();
        M remain = count_left(e, n), used = ((__global const M*)b.used)[item_id()];
        rank_values(d, (CLUTCH_QR_MEM M*)e, n);
        CLUTCH_SYNC;
        for (int l = 0; l < count; ++l)
          store_matrix_results(w, v_out, info, sweeps_out, first + l, &b, device_wide_matrix(scratch, n, first + l).a, n, first_pair, pairs, positive, l,
                               &remain, &used);
      }
    } else {
      const ulong m = task / panels.count;
      const int l = (int)(m % bundle_capacity()), from = panels.begin + (int)(task % panels.count) * panels.width, to = min(from + panels.width, panels.end);
      const DeviceWideMatrix x = device_wide_matrix(scratch, n, m);
      const QrBundle b = bundle_at(device_wide_bundle(scratch, n, batch, m / bundle_capacity()), n);
      if (stage == EIGH_LOAD) {
        clear_lanes(&b, n, l, m + 1 == batch ? bundle_capacity() : l + 1);
        begin_matrix(&b, x.a, x.rows, given + m * matrix_stride, n, transposed, conjugate, tolerance_given, l, local_scratch);
      }
      if (stage == EIGH_HEAD) {
        if (step > 0 && step - 1 < n - 2) reduce_tail(n, step - 1, x.factor, x.rows, local_scratch);
        if (step < n - 2)
          reduce_head(x.a, n, step, b.d + l, b.e + l, bundle_capacity(), x.factor, x.rows, local_scratch);
        else
          reduce_end(x.a, n, step, b.d + l, b.e + l, bundle_capacity(), x.factor, x.rows);
      }
      if (stage == EIGH_ROWS) reduce_rows(x.a, n, step, x.factor, x.rows, from, to);
#if CLUTCH_VECTORS
      if (stage == EIGH_FORM) form_q_rows(x.q, x.a, n, x.factor, from, to);
      if (stage == EIGH_TRANSPOSE) transpose_matrix(x.a, x.q, n);
      if (stage == EIGH_APPLY) apply_round(&x, n, from, to);
#endif
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_jacobi_group
#include "eigh/jacobi_group.clh"
__kernel void eigh_jacobi_group(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  __local T local_scratch[CLUTCH_MAX_ITEMS];
  const int pair_count = eigh_pairs(n);
  const EighJacobiLayout at = eigh_jacobi_layout(n, LANES, CLUTCH_PARTS, CLUTCH_VECTORS);
  __global T* scratch = (__global T*)(scratch_base + scratch_offset) + get_group_id(0) * at.size;
  __global T *a = scratch + at.a, *diagonals = scratch + at.diagonals, *angles = scratch + at.angles, *d = scratch + at.d, *v = scratch + at.v;
  __global BITS* rank = (__global BITS*)(scratch + at.rank);
  __global int* row_of = (__global int*)(scratch + at.row_of);
  for (ulong m = get_group_id(0); m < batch; m += get_num_groups(0)) {
    T unscale;
    int bad, used = 0, now = 0;
    T norm = load_halves(a, diagonals, given + m * matrix_stride, n, transposed, conjugate, &unscale, &bad, local_scratch);
#ifdef CLUTCH_RELATIVE
    T tolerance = tolerance_given;
#else
    T tolerance = tolerance_given * norm;
#endif
    for (int i = item_id(); i < 2 * pair_count; i += item_count()) {
      row_of[i] = i;
#if CLUTCH_VECTORS
      for (int j = 0; j < row_stride(n); ++j) v[i * row_stride(n) + j] = i == j && i < n;
#endif
    }
    int left = any_above(a, diagonals, n, tolerance, local_scratch);
    for (; left && used < limit; ++used) {
      for (int round = 0; round < 2 * pair_count - 1; ++round, now ^= 1) {
        __global const T *from = a + now * halves_size(n), *diagonal = diagonals + now * halves_stride(n);
        __global T *to = a + (now ^ 1) * halves_size(n), *next_diagonal = diagonals + (now ^ 1) * halves_stride(n);
        __global int *rows = row_of + now * 2 * pair_count, *next_rows = row_of + (now ^ 1) * 2 * pair_count;
        find_angles(from, diagonal, next_diagonal, angles, n, tolerance);
        for (int t = item_id(); t < pair_count; t += item_count()) {
          rotate_rows(to, from, angles, t, n);
#if CLUTCH_VECTORS
          rotate_vectors(v, rows, angles, t, n);
#endif
          next_rows[next_of_top(t, pair_count)] = rows[t], next_rows[next_of_bottom(t, pair_count)] = rows[pair_count + t];
        }
        CLUTCH_SYNC;
      }
      left = any_above(a + now * halves_size(n), diagonals + now * halves_stride(n), n, tolerance, local_scratch);
    }
    // After a whole sweep each row and column has its first position again.
    for (int i = item_id(); i < n; i += item_count()) d[i] = diagonals[now * halves_stride(n) + column_of(i, n)];
    CLUTCH_SYNC;
    for (int i = item_id(); i < n; i += item_count()) {
      int before = 0;
      for (int j = 0; j < n; ++j) before += d[j] < d[i] || (d[j] == d[i] && j < i);
      rank[i] = before;
    }
    store_pairs(w + m * pairs, v_out + m * pairs * n * CLUTCH_PARTS, v, n, first_pair, pairs, positive, d, rank, 1, unscale, bad);
    if (item_id() == 0) info[m] = bad ? -1 : left, sweeps_out[m] = used;
    CLUTCH_SYNC;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_closed
__kernel void eigh_closed(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  CLUTCH_MATRIX_STRIDES
  CLUTCH_EACH_BUNDLE {
    const ulong first = bundle * LANES;
    const int count = (int)min((ulong)LANES, batch - first);
    R a[CLUTCH_N * CLUTCH_N * CLUTCH_PARTS];
    CLUTCH_LOAD_PACKED(a, (given + first * matrix_stride), matrix_stride, CLUTCH_N * CLUTCH_N * CLUTCH_PARTS)
    CLUTCH_COPY_TRIANGLE(a)
#if CLUTCH_N == 1
    // The element itself; zeros lose their sign.
    R most;
    M bad = find_most(a, ri, rj, CLUTCH_N, &most);
    R w_both[1] = {CLUTCH_SELECT(bad, (R)NAN, CLUTCH_SELECT(CLUTCH_MASK_OF((CLUTCH_AS_M(CLUTCH_RE(0, 0)) & ~(M)CLUTCH_SIGN_BIT) == 0), (R)0, CLUTCH_RE(0, 0)))};
#if CLUTCH_VECTORS
    R v[CLUTCH_PARTS];
    v[0] = CLUTCH_SELECT(bad, (R)NAN, (R)1);
#if CLUTCH_COMPLEX
    v[1] = CLUTCH_SELECT(bad, (R)NAN, (R)0);
#endif
#endif
#else
    R scale, unscale;
    M bad = find_scale(a, ri, rj, CLUTCH_N, &scale, &unscale);
    R low = CLUTCH_SELECT(bad, (R)NAN, CLUTCH_RE(0, 0));
    R app = low * scale, aqq = CLUTCH_RE(1, 1) * scale, br = CLUTCH_RE(1, 0) * scale, h = aqq - app;
#if CLUTCH_COMPLEX
    R bi = CLUTCH_IM(1, 0) * scale * (conjugate ? (R)-1 : (R)1), size2 = fma(br, br, bi * bi);
#else
    R size2 = br * br;
#endif
    // A rotation as in eigh_jacobi_lanes. The eigenvalues are (app + aqq) / 2 -+ distance, distance = sqrt((aqq - app)^2 + 4 |b|^2) / 2.
    R square = fma(h, h, CLUTCH_REAL(4.0) * size2), y = rsqrt_of(square);
    R cos2 = fma(CLUTCH_REAL(0.5) * fabs(h), y, (R)CLUTCH_REAL(0.5)), z = rsqrt_of(cos2);
    M rotated = CLUTCH_MASK_OF(size2 > CLUTCH_TINY), swapped = CLUTCH_MASK_OF(h < 0);
    R c = CLUTCH_SELECT(rotated, cos2 * z, (R)1), t = CLUTCH_SELECT(rotated, CLUTCH_SELECT(swapped, -y, y) * z, (R)0);
    R middle = CLUTCH_REAL(0.5) * (app + aqq), distance = CLUTCH_REAL(0.5) * CLUTCH_SELECT(rotated, square * y, fabs(h));
    R w_both[2] = {CLUTCH_SELECT(bad, (R)NAN, unscaled(middle - distance, unscale)), CLUTCH_SELECT(bad, (R)NAN, unscaled(middle + distance, unscale))};
#if CLUTCH_VECTORS
    // Rows p = (c, -s) and q = (conj s, c). The lower eigenvalue's eigenvector is q if h is negative, else p.
    R v[4 * CLUTCH_PARTS];
    R sr = t * br;
    v[0] = CLUTCH_SELECT(swapped, sr, c), v[CLUTCH_PARTS] = CLUTCH_SELECT(swapped, c, -sr);
    v[2 * CLUTCH_PARTS] = CLUTCH_SELECT(swapped, c, sr), v[3 * CLUTCH_PARTS] = CLUTCH_SELECT(swapped, -sr, c);
#if CLUTCH_COMPLEX
    R si = t * bi;
    v[1] = CLUTCH_SELECT(swapped, -si, (R)0), v[3] = CLUTCH_SELECT(swapped, (R)0, -si);
    v[5] = CLUTCH_SELECT(swapped, (R)0, -si), v[7] = CLUTCH_SELECT(swapped, -si, (R)0);
#endif
    if (positive) make_positive(v, 2);
#pragma unroll
    for (int i = 0; i < 4 * CLUTCH_PARTS; ++i) v[i] = CLUTCH_SELECT(bad, (R)NAN, v[i] + (R)0);
#endif
#endif
    __global T* w_to = w + first * pairs;
    if (pairs == CLUTCH_N) {
      CLUTCH_STORE_PACKED(w_to, w_both, CLUTCH_N)
    } else {
      R one[1] = {first_pair == 0 ? w_both[0] : w_both[CLUTCH_N - 1]};
      CLUTCH_STORE_PACKED(w_to, one, 1)
    }
#if CLUTCH_VECTORS
    __global T* v_to = v_out + first * pairs * CLUTCH_N * CLUTCH_PARTS;
    if (pairs == CLUTCH_N) {
      CLUTCH_STORE_PACKED(v_to, v, CLUTCH_N * CLUTCH_N * CLUTCH_PARTS)
    } else {
#if CLUTCH_N == 2
      R half_of[2 * CLUTCH_PARTS];
#pragma unroll
      for (int i = 0; i < 2 * CLUTCH_PARTS; ++i) half_of[i] = first_pair == 0 ? v[i] : v[i + 2 * CLUTCH_PARTS];
      CLUTCH_STORE_PACKED(v_to, half_of, 2 * CLUTCH_PARTS)
#endif
    }
#endif
    store_counts(info + first, bad, count), store_counts(sweeps_out + first, (M)0, count);
  }
}
#endif
