// SPDX-License-Identifier: Apache-2.0
// eigh: eigenvalues and eigenvectors of a batch of symmetric or Hermitian matrices.
// eigh_closed: n = 1 and 2 by formula. eigh_jacobi_lanes: cyclic Jacobi. eigh_qr_lanes: Householder tridiagonalisation and implicit QR.
// eigh_qr_group: the same, matrices reduced one after another. eigh_jacobi_group: Jacobi, a matrix at a time.
// eigh_device_wide: qr_group's stages, one a launch, each shared by all work-groups. It has qr_group's bits, which past n = LANES are qr_lanes' where
// LANES is not 1.
// Ownership: in a driver of lanes an item takes a bundle of LANES matrices at a time, one in each lane of its vectors (one matrix where LANES is
// 1). Matrices live in private memory up to N_MAX or, with IN_SCRATCH, in an item's part of global scratch: a bundle's matrices and, with
// VECTORS, their vectors. In a driver of groups a work-group takes a matrix at a time, in its part of scratch; eigh_qr_group keeps a bundle's
// vectors there, too.
// Each matrix is scaled by a power of two, so that its largest element is in [1, 2), or large, with RELATIVE; devices may count subnormal numbers as
// zero, but those of small matrices are read and written as what they are. One with NaN or Inf computes with zeros and ends as NaN.
// Needs: T, LANES, BUNDLES (that an item of a driver of lanes takes at a time: their rotations take turns, each of which waits for the one before), COMPLEX
// (0 or 1: elements are pairs), VECTORS (0: eigenvalues alone), N_MAX, N (the size, if it is known; else 0).
// May have: RELATIVE (Jacobi's tolerance is that of an element against its own diagonal ones), GROUPED (work-groups have several items).
#if !defined(T) || !defined(LANES) || !defined(BUNDLES) || !defined(MATRICES) || !defined(COMPLEX) || !defined(VECTORS) || !defined(N_MAX) || !defined(N)
#error "T, LANES, BUNDLES, MATRICES, COMPLEX, VECTORS, N_MAX and N are not defined"
#endif
#define PARTS (1 + COMPLEX)
#if N
#define N_UNROLL
#else
#define N_UNROLL 1
#endif
// Large functions, which a kernel's copies share, where private memory is memory anyway.
#if LANES > 1 && !N
#define LANES_APART CLUTCH_APART
#else
#define LANES_APART static inline
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_group) || defined(CLUTCH_ENTRY_eigh_jacobi_group) || defined(CLUTCH_ENTRY_eigh_device_wide)
#define IN_GROUP 1
#endif
#if defined(IN_SCRATCH) || defined(IN_GROUP)
#define MEM __global
#else
#define MEM __private
#endif
#include "eigh/lanes.clh"
#include "eigh/reflection.clh"
#include "eigh/rotation.clh"
#ifdef IN_GROUP
#define QR_MEM __global
#define STEP ITEMS
#include "eigh/group.clh"
#else
#define QR_MEM __private
#define STEP 1
#endif
#include "eigh/qr.clh"
#ifndef IN_GROUP
#include "eigh/bundle.clh"
#endif
#if defined(CLUTCH_ENTRY_eigh_qr_group) || defined(CLUTCH_ENTRY_eigh_device_wide)
#include "eigh/qr_group.clh"
#endif

#define EIGH_PARAMS                                                                                                                                       \
  CLUTCH_PREDICATE __global uchar *w_base, ulong w_offset, __global uchar *v_base, ulong v_offset, __global uchar *info_base, ulong info_offset,          \
      __global uchar *sweeps_base, ulong sweeps_offset, __global const uchar *a_base, ulong a_offset, __global uchar *scratch_base, ulong scratch_offset, \
      CLUTCH_ARGS(EighArgs, args), T tolerance_given, int limit
// The parameters as entries use them.
#define EIGH_TAKE_PARAMS                                                                                                                        \
  CLUTCH_IF_PREDICATE                                                                                                                           \
  CLUTCH_TAKE_ARGS(EighArgs, args)                                                                                                              \
  const ulong batch = args.batch, matrix_stride = args.matrix_stride;                                                                           \
  const int n = N ? N : args.n, transposed = args.transposed, conjugate = args.conjugate, positive = args.positive, streaming = args.streaming; \
  const int first_pair = args.first_pair, pairs = args.pairs;                                                                                   \
  __global T* w = (__global T*)(w_base + w_offset);                                                                                             \
  __global T* v_out = (__global T*)(v_base + v_offset);                                                                                         \
  __global int* info = (__global int*)(info_base + info_offset);                                                                                \
  __global int* sweeps_out = (__global int*)(sweeps_base + sweeps_offset);                                                                      \
  __global const T* given = (__global const T*)(a_base + a_offset);

#ifdef CLUTCH_ENTRY_eigh_jacobi_lanes
#include "eigh/jacobi.clh"
__kernel void eigh_jacobi_lanes(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  STRIDES_OF_MATRICES
  MATRIX_MEMORY
  EACH_BUNDLE {
    JacobiState at[BUNDLES];
    R unscale_of[BUNDLES];
    M bad_of[BUNDLES];
#pragma unroll
    for (int b = 0; b < BUNDLES; ++b) {
      BUNDLE(b)
#if VECTORS
#pragma unroll N_UNROLL
      for (int i = 0; i < n * V_ROW(n); ++i) v[i] = i % (V_ROW(n) + PARTS) == 0;
#endif
#ifdef RELATIVE
      tolerance = tolerance_given;
#endif
      at[b].tolerance = tolerance, unscale_of[b] = unscale, bad_of[b] = bad;
    }
    iterate_jacobi(matrices, ri, rj, n, vectors, BUNDLE_STRIDE, at, limit);
#pragma unroll
    for (int b = 0; b < BUNDLES; ++b) {
      PLACE(b)
      R d[N_MAX];
#pragma unroll N_UNROLL
      for (int i = 0; i < n; ++i) d[i] = RE(i, i);
      store_results(w, v_out, info, sweeps_out, first, count, n, first_pair, pairs, positive, streaming, d, v, (MEM T*)a, unscale_of[b], bad_of[b],
                    at[b].left & 1, at[b].used);
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_lanes
#include "eigh/qr_lanes.clh"
#include "eigh/tridiagonal.clh"
__kernel void eigh_qr_lanes(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  STRIDES_OF_MATRICES
  MATRIX_MEMORY
  EACH_BUNDLE {
    R d[BUNDLES * N_MAX], e[BUNDLES * N_MAX], tolerance_of[BUNDLES], unscale_of[BUNDLES];
    M bad_of[BUNDLES];
    QrState at[BUNDLES];
    const int there = BUNDLES_THERE;
    for (int b = 0; b < there; ++b) {
      BUNDLE(b)
      R factor[N_MAX], phase[COMPLEX ? 2 * N_MAX : 1];
      tridiagonalize(a, ri, rj, n, d + b * N_MAX, e + b * N_MAX, factor, phase);
#if VECTORS
      form_q(v, a, ri, rj, n, factor, phase);
#endif
      tolerance_of[b] = tolerance_given * norm_of(d + b * N_MAX, e + b * N_MAX, n), unscale_of[b] = unscale, bad_of[b] = bad;
    }
    for (int b = there; b < BUNDLES; ++b) {
      for (int i = 0; i < n; ++i) d[b * N_MAX + i] = 0, e[b * N_MAX + i] = 0;
      tolerance_of[b] = 0;
      at[b] = (QrState){.low = 0, .last = 0, .off = 0, .used = 0};
    }
    iterate_qr(d, e, n, vectors, BUNDLE_STRIDE, there, tolerance_of, limit, at);
    for (int b = 0; b < there; ++b) {
      PLACE(b)
      store_results(w, v_out, info, sweeps_out, first, count, n, first_pair, pairs, positive, streaming, d + b * N_MAX, v, (MEM T*)a, unscale_of[b], bad_of[b],
                    count_left(e + b * N_MAX, n), at[b].used);
    }
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_qr_group
__kernel void eigh_qr_group(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  __local T room[MOST_ITEMS];
  const int bundle = args.bundle;
  const EighQrGroupLayout at = eigh_qr_group_layout(n, LANES, PARTS, VECTORS, ITEMS, bundle);
  __global T* scratch = (__global T*)(scratch_base + scratch_offset) + get_group_id(0) * at.size;
  __global T *a = scratch + at.a, *q = scratch + at.q, *vectors = scratch + at.vectors, *rows = scratch + at.rows, *factor = scratch + at.factor;
  const QrBundle b = bundle_at(scratch + at.bundle, n);
  for (ulong first = get_group_id(0) * bundle; first < batch; first += get_num_groups(0) * bundle) {
    const int count = (int)min((ulong)bundle, batch - first);
    clear_lanes(&b, n, 0, BUNDLE_ROOM);
    SYNC;
    for (int l = 0; l < count; ++l) {
      begin_matrix(&b, a, rows, given + (first + l) * matrix_stride, n, transposed, conjugate, tolerance_given, l, room);
      for (int k = 0; k < n - 2; ++k) {
        reduce_head(a, n, k, b.d + l, b.e + l, BUNDLE_ROOM, factor, rows, room);
        reduce_rows(a, n, k, factor, rows, (k + 1) / LANES, CHUNKS(n));
        reduce_tail(n, k, factor, rows, room);
      }
      for (int k = max(n - 2, 0); k < n; ++k) reduce_end(a, n, k, b.d + l, b.e + l, BUNDLE_ROOM, factor, rows);
      SYNC;
#if VECTORS
      form_q_rows(q, a, n, factor, 0, CHUNKS(n));
      transpose_matrix(vectors + l * MATRIX_SIZE(n), q, n);
#endif
    }
    M remain, used;
    iterate_bundle(&b, n, vectors, count, limit, &remain, &used, room);
    for (int l = 0; l < count; ++l) {
      store_of_bundle(w, v_out, info, sweeps_out, first + l, &b, vectors + l * MATRIX_SIZE(n), n, first_pair, pairs, positive, l, &remain, &used);
    }
    SYNC;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_device_wide
#include "eigh/device_wide.clh"
__kernel void eigh_device_wide(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  __local T room[MOST_ITEMS];
  __global T* scratch = (__global T*)(scratch_base + scratch_offset);
  const int stage = args.stage, step = args.step;
  const EighPanels panels = eigh_panels(stage, step, n, LANES, PARTS);
  const ulong tasks = eigh_tasks(stage, batch, panels.count, BUNDLE_ROOM);
  for (ulong task = get_group_id(0); task < tasks; task += get_num_groups(0)) {
    SYNC;
    if (stage == EIGH_ITERATE || stage == EIGH_STORE) {
      const ulong first = task * BUNDLE_ROOM;
      const int count = (int)min((ulong)BUNDLE_ROOM, batch - first);
      const QrBundle b = bundle_at(device_wide_bundle(scratch, n, batch, task), n);
      if (stage == EIGH_ITERATE) {
        iterate_round(&b, scratch, n, first, count, min(VECTORS ? (int)EIGH_ROUND : limit, limit - step * EIGH_ROUND), step == 0);
      } else {
        QR_MEM R *d = (QR_MEM R*)b.d + LID, *e = (QR_MEM R*)b.e + LID;
        M remain = count_left(e, n), used = ((__global const M*)b.used)[LID];
        rank_values(d, (QR_MEM M*)e, n);
        SYNC;
        for (int l = 0; l < count; ++l)
          store_of_bundle(w, v_out, info, sweeps_out, first + l, &b, device_wide_matrix(scratch, n, first + l).a, n, first_pair, pairs, positive, l, &remain,
                          &used);
      }
    } else {
      const ulong m = task / panels.count;
      const int l = (int)(m % BUNDLE_ROOM), from = panels.begin + (int)(task % panels.count) * panels.width, to = min(from + panels.width, panels.end);
      const DeviceWideMatrix x = device_wide_matrix(scratch, n, m);
      const QrBundle b = bundle_at(device_wide_bundle(scratch, n, batch, m / BUNDLE_ROOM), n);
      if (stage == EIGH_LOAD) {
        clear_lanes(&b, n, l, m + 1 == batch ? BUNDLE_ROOM : l + 1);
        begin_matrix(&b, x.a, x.rows, given + m * matrix_stride, n, transposed, conjugate, tolerance_given, l, room);
      }
      if (stage == EIGH_HEAD) {
        if (step > 0 && step - 1 < n - 2) reduce_tail(n, step - 1, x.factor, x.rows, room);
        if (step < n - 2)
          reduce_head(x.a, n, step, b.d + l, b.e + l, BUNDLE_ROOM, x.factor, x.rows, room);
        else
          reduce_end(x.a, n, step, b.d + l, b.e + l, BUNDLE_ROOM, x.factor, x.rows);
      }
      if (stage == EIGH_ROWS) reduce_rows(x.a, n, step, x.factor, x.rows, from, to);
#if VECTORS
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
  __local T room[MOST_ITEMS];
  const int pairs_of = PAIRS(n);
  const EighJacobiLayout at = eigh_jacobi_layout(n, LANES, PARTS, VECTORS);
  __global T* scratch = (__global T*)(scratch_base + scratch_offset) + get_group_id(0) * at.size;
  __global T *a = scratch + at.a, *diagonals = scratch + at.diagonals, *angles = scratch + at.angles, *d = scratch + at.d, *v = scratch + at.v;
  __global BITS* rank = (__global BITS*)(scratch + at.rank);
  __global int* row_of = (__global int*)(scratch + at.row_of);
  for (ulong m = get_group_id(0); m < batch; m += get_num_groups(0)) {
    T unscale;
    int bad, used = 0, now = 0;
    T norm = load_halves(a, diagonals, given + m * matrix_stride, n, transposed, conjugate, &unscale, &bad, room);
#ifdef RELATIVE
    T tolerance = tolerance_given;
#else
    T tolerance = tolerance_given * norm;
#endif
    for (int i = LID; i < 2 * pairs_of; i += ITEMS) {
      row_of[i] = i;
#if VECTORS
      for (int j = 0; j < ROW(n); ++j) v[i * ROW(n) + j] = i == j && i < n;
#endif
    }
    int left = any_above(a, diagonals, n, tolerance, room);
    for (; left && used < limit; ++used) {
      for (int round = 0; round < 2 * pairs_of - 1; ++round, now ^= 1) {
        __global const T *from = a + now * HALVES_SIZE(n), *diagonal = diagonals + now * HALVES_ROW(n);
        __global T *to = a + (now ^ 1) * HALVES_SIZE(n), *next_diagonal = diagonals + (now ^ 1) * HALVES_ROW(n);
        __global int *rows = row_of + now * 2 * pairs_of, *next_rows = row_of + (now ^ 1) * 2 * pairs_of;
        find_angles(from, diagonal, next_diagonal, angles, n, tolerance);
        for (int t = LID; t < pairs_of; t += ITEMS) {
          turn_rows(to, from, angles, t, n);
#if VECTORS
          turn_vectors(v, rows, angles, t, n);
#endif
          next_rows[after_top(t, pairs_of)] = rows[t], next_rows[after_bottom(t, pairs_of)] = rows[pairs_of + t];
        }
        SYNC;
      }
      left = any_above(a + now * HALVES_SIZE(n), diagonals + now * HALVES_ROW(n), n, tolerance, room);
    }
    // After whole sweeps all are where they began.
    for (int i = LID; i < n; i += ITEMS) d[i] = diagonals[now * HALVES_ROW(n) + COLUMN(i)];
    SYNC;
    for (int i = LID; i < n; i += ITEMS) {
      int before = 0;
      for (int j = 0; j < n; ++j) before += d[j] < d[i] || (d[j] == d[i] && j < i);
      rank[i] = before;
    }
    store_pairs(w + m * pairs, v_out + m * pairs * n * PARTS, v, n, first_pair, pairs, positive, d, rank, 1, unscale, bad);
    if (LID == 0) info[m] = bad ? -1 : left, sweeps_out[m] = used;
    SYNC;
  }
}
#endif

#ifdef CLUTCH_ENTRY_eigh_closed
__kernel void eigh_closed(EIGH_PARAMS) {
  EIGH_TAKE_PARAMS
  STRIDES_OF_MATRICES
  EACH_BUNDLE {
    const ulong first = bundle * LANES;
    const int count = (int)min((ulong)LANES, batch - first);
    R a[N * N * PARTS];
    TAKE(a, (given + first * matrix_stride), matrix_stride, N * N * PARTS)
    TURN(a)
#if N == 1
    // Itself; zeros lose their sign.
    R most;
    M bad = find_most(a, ri, rj, N, &most);
    R w_both[1] = {SELECT(bad, (R)NAN, SELECT(MASK((AS_M(RE(0, 0)) & ~(M)SIGN_BIT) == 0), (R)0, RE(0, 0)))};
#if VECTORS
    R v[PARTS];
    v[0] = SELECT(bad, (R)NAN, (R)1);
#if COMPLEX
    v[1] = SELECT(bad, (R)NAN, (R)0);
#endif
#endif
#else
    R scale, unscale;
    M bad = find_scale(a, ri, rj, N, &scale, &unscale);
    R low = SELECT(bad, (R)NAN, RE(0, 0));
    R app = low * scale, aqq = RE(1, 1) * scale, br = RE(1, 0) * scale, h = aqq - app;
#if COMPLEX
    R bi = IM(1, 0) * scale * (conjugate ? (R)-1 : (R)1), size2 = fma(br, br, bi * bi);
#else
    R size2 = br * br;
#endif
    // As a rotation of eigh_jacobi_lanes; the eigenvalues are the mean and half the distance from it.
    R square = fma(h, h, REAL(4.0) * size2), y = rsqrt_of(square);
    R cos2 = fma(REAL(0.5) * fabs(h), y, (R)REAL(0.5)), z = rsqrt_of(cos2);
    M on = MASK(size2 > TINY), turned = MASK(h < 0);
    R c = SELECT(on, cos2 * z, (R)1), t = SELECT(on, SELECT(turned, -y, y) * z, (R)0);
    R middle = REAL(0.5) * (app + aqq), distance = REAL(0.5) * SELECT(on, square * y, fabs(h));
    R w_both[2] = {SELECT(bad, (R)NAN, unscaled(middle - distance, unscale)), SELECT(bad, (R)NAN, unscaled(middle + distance, unscale))};
#if VECTORS
    // Rows p = (c, -s) and q = (conj s, c); the lower eigenvalue's is q where h is negative.
    R v[4 * PARTS];
    R sr = t * br;
    v[0] = SELECT(turned, sr, c), v[PARTS] = SELECT(turned, c, -sr);
    v[2 * PARTS] = SELECT(turned, c, sr), v[3 * PARTS] = SELECT(turned, -sr, c);
#if COMPLEX
    R si = t * bi;
    v[1] = SELECT(turned, -si, (R)0), v[3] = SELECT(turned, (R)0, -si);
    v[5] = SELECT(turned, (R)0, -si), v[7] = SELECT(turned, -si, (R)0);
#endif
    if (positive) make_positive(v, 2);
#pragma unroll
    for (int i = 0; i < 4 * PARTS; ++i) v[i] = SELECT(bad, (R)NAN, v[i] + (R)0);
#endif
#endif
    __global T* w_to = w + first * pairs;
    if (pairs == N) {
      PUT(w_to, w_both, N)
    } else {
      R one[1] = {first_pair == 0 ? w_both[0] : w_both[N - 1]};
      PUT(w_to, one, 1)
    }
#if VECTORS
    __global T* v_to = v_out + first * pairs * N * PARTS;
    if (pairs == N) {
      PUT(v_to, v, N * N * PARTS)
    } else {
#if N == 2
      R half_of[2 * PARTS];
#pragma unroll
      for (int i = 0; i < 2 * PARTS; ++i) half_of[i] = first_pair == 0 ? v[i] : v[i + 2 * PARTS];
      PUT(v_to, half_of, 2 * PARTS)
#endif
    }
#endif
    store_counts(info + first, bad, count), store_counts(sweeps_out + first, (M)0, count);
  }
}
#endif
