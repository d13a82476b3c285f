// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/eigh/launch.cpp and the kernels of eigh: arguments, the layout of scratch memory, and the stages of eigh_device_wide.
// Sizes, offsets and strides are in real numbers (float or double; an integer takes as much) unless a comment names another unit.
// Parameters of the functions, and the define that a built kernel has for them:
//   n        rows and columns of a matrix
//   lanes    SIMD lanes (LANES)
//   parts    real numbers of an element: 1, or 2 if matrices are complex (CLUTCH_PARTS)
//   vectors  1 if eigenvectors are computed, else 0 (CLUTCH_VECTORS)
//   items    work-items of a work-group
#ifndef CLUTCH_EIGH_ARGS_H
#define CLUTCH_EIGH_ARGS_H

#include "common/shared.h"

#define EIGH_MAX_ITEMS 256   // most work-items of a work-group; a macro since kernels declare arrays of it
#define EIGH_ITEMS 64        // work-items of a work-group of eigh_jacobi_items and of the kernels of eigh_qr_items
#define EIGH_STAGE_BYTES 64  // bytes of a matrix that they load or store at a time, through local memory

CLUTCH_SHARED_BEGIN

// Stages of eigh_device_wide, each a launch. HEAD and ROWS run once for each row, ITERATE and APPLY once for each round.
enum EighStage {
  EIGH_LOAD,       // loads and scales matrices
  EIGH_HEAD,       // updates row `step` and makes its reflection
  EIGH_ROWS,       // updates the rows below and multiplies them by the reflection's vector
  EIGH_FORM,       // forms Q from the reflections
  EIGH_TRANSPOSE,  // transposes Q
  EIGH_ITERATE,    // runs a round of QR sweeps on the tridiagonal matrices and records their rotations
  EIGH_APPLY,      // applies the recorded rotations to the vectors
  EIGH_STORE       // sorts and stores eigenpairs
};

enum {
  EIGH_RECORDED = 8,      // sweeps whose rotations are recorded before they are applied, so that eigenvectors stay in a core's cache
  EIGH_ROUND = 256,       // sweeps of a round of eigh_device_wide
  EIGH_ROWS_PANEL = 8,    // vectors of a row in a task of EIGH_ROWS
  EIGH_VECTORS_PANEL = 4  // vectors of a row in a task of EIGH_FORM or EIGH_APPLY
};

// Arguments of each kernel of eigh. `tolerance` and `limit` are arguments of their own, because Graph::update names them.
typedef struct EighArgs {
  clutch_u64 batch;          // number of matrices
  clutch_u64 from;           // kernels of eigh_qr_items: the first matrix of this launch; others: 0
  clutch_u64 matrix_stride;  // from an input matrix to the next
  clutch_i32 n;              // rows and columns of a matrix
  clutch_i32 transposed;     // 1: element (i, j), i >= j, is read at j * n + i, else at i * n + j
  clutch_i32 conjugate;      // 1: imaginary parts are negated when they are read
  clutch_i32 first_pair;     // index of the first eigenpair that is stored, in ascending order
  clutch_i32 pairs;          // number of eigenpairs that are stored for each matrix
  clutch_i32 positive;       // 1: the largest component of each eigenvector is made real and positive
  clutch_i32 streaming;      // 1: stores of packed results bypass caches
  clutch_i32 bundle;         // eigh_qr_group: matrices whose tridiagonal forms a work-group iterates together; others: 0
  clutch_i32 stage;          // eigh_device_wide: EighStage; others: 0
  clutch_i32 step;           // eigh_device_wide: row, or round, of the stage; others: 0
} EighArgs;

// x rounded up to a multiple of unit.
CLUTCH_SHARED_FN clutch_i32 eigh_round_up(clutch_i32 x, clutch_i32 unit) { return (x + unit - 1) / unit * unit; }

// Drivers of lanes whose matrices are in scratch (eigh/bundle.clh) -----------------------------------------------------------------------------------------

// Elements from a row of bundled matrices to the next. A stride near a multiple of 4 KB would make loads of a row wait for stores of another.
CLUTCH_SHARED_FN clutch_i32 eigh_bundle_row_stride(clutch_i32 n, clutch_i32 parts) { return (n * parts + 3) % 64 < 6 ? n + 6 / parts : n; }
// Vectors of `lanes` numbers from a bundle's matrices, or their eigenvectors, to the next bundle's.
CLUTCH_SHARED_FN clutch_i32 eigh_bundle_stride(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  return eigh_round_up(n * (eigh_bundle_row_stride(n, parts) * parts), lanes);
}
// Scratch of a work-item, in vectors of `lanes` numbers: the matrices of `matrices` bundles and the eigenvectors of `bundles` bundles.
CLUTCH_SHARED_FN clutch_i64 eigh_item_size(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts, clutch_i32 vectors, clutch_i32 matrices, clutch_i32 bundles) {
  return (clutch_i64)(matrices + vectors * bundles) * eigh_bundle_stride(n, lanes, parts);
}

// A matrix by rows (eigh/group.clh): real parts of a row, padded to whole vectors, then imaginary parts ------------------------------------------------------

// Vectors of the real parts of a row.
CLUTCH_SHARED_FN clutch_i32 eigh_row_vectors(clutch_i32 n, clutch_i32 lanes) { return (n + lanes - 1) / lanes; }
// From a row to the next: an odd number of vectors, so that elements of a column fall into different sets of a cache.
CLUTCH_SHARED_FN clutch_i32 eigh_row_stride(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) { return (parts * eigh_row_vectors(n, lanes) | 1) * lanes; }
CLUTCH_SHARED_FN clutch_i64 eigh_matrix_size(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  return (clutch_i64)eigh_round_up(n, lanes) * eigh_row_stride(n, lanes, parts);
}
// Work memory of a reduction, in rows: u, p, u of the step before, p of the step before, the reflections' factors and, if matrices are complex, the phases.
CLUTCH_SHARED_FN clutch_i32 eigh_factor_offset(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) { return 4 * eigh_row_stride(n, lanes, parts); }
CLUTCH_SHARED_FN clutch_i32 eigh_work_size(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  return eigh_factor_offset(n, lanes, parts) + parts * eigh_row_stride(n, lanes, parts);
}

// Tridiagonal matrices of a bundle (eigh/qr_group.clh) -----------------------------------------------------------------------------------------------------

// Matrices of a full bundle: one in each SIMD lane of each work-item.
CLUTCH_SHARED_FN clutch_i32 eigh_capacity(clutch_i32 lanes, clutch_i32 items) { return lanes * items; }
CLUTCH_SHARED_FN clutch_u64 eigh_bundles(clutch_u64 batch, clutch_i32 capacity) { return (batch + (clutch_u64)capacity - 1) / (clutch_u64)capacity; }
// Tangents, or sines, of the rotations of a recorded sweep: [k / lanes][matrix][k % lanes].
CLUTCH_SHARED_FN clutch_i32 eigh_rotations_size(clutch_i32 n, clutch_i32 lanes, clutch_i32 capacity) { return eigh_round_up(n, lanes) * capacity; }
// Index of rotation k of the first matrix in them; matrix l has it l * lanes numbers further.
CLUTCH_SHARED_FN clutch_i32 eigh_rotation_index(clutch_i32 k, clutch_i32 lanes, clutch_i32 capacity) { return k / lanes * lanes * capacity + k % lanes; }

typedef struct EighBundleLayout {
  clutch_i64 d, e;                           // diagonals and off-diagonals: [row][matrix]
  clutch_i64 tolerance, unscale, bad, used;  // [matrix]
  clutch_i64 active;                         // [recorded sweep][matrix]: not 0 if the matrix has rotations in it
  clutch_i64 tops;                           // [recorded sweep][work-item]: number of its rotations
  clutch_i64 tangents, sines;                // [recorded sweep], then by eigh_rotation_index()
  clutch_i64 size;
} EighBundleLayout;
CLUTCH_SHARED_FN EighBundleLayout eigh_bundle_layout(clutch_i32 n, clutch_i32 lanes, clutch_i32 vectors, clutch_i32 items) {
  const clutch_i64 capacity = eigh_capacity(lanes, items), rotations = eigh_rotations_size(n, lanes, eigh_capacity(lanes, items));
  EighBundleLayout at;
  at.d = 0, at.e = at.d + eigh_round_up(n, lanes) * capacity;
  at.tolerance = at.e + eigh_round_up(n, lanes) * capacity, at.unscale = at.tolerance + capacity, at.bad = at.unscale + capacity;
  at.used = at.bad + capacity;
  at.active = at.used + capacity, at.tops = at.active + EIGH_RECORDED * capacity;
  at.tangents = at.tops + EIGH_RECORDED * capacity, at.sines = at.tangents + EIGH_RECORDED * rotations;
  at.size = vectors ? at.sines + EIGH_RECORDED * rotations : at.active;
  return at;
}

// Scratch of a work-group of eigh_qr_group ------------------------------------------------------------------------------------------------------------------

typedef struct EighQrGroupLayout {
  clutch_i64 a;             // the matrix that is reduced
  clutch_i64 q;             // its Q, if eigenvectors are computed
  clutch_i64 vectors;       // eigenvectors of `bundle` matrices
  clutch_i64 rows, factor;  // work memory of the reduction
  clutch_i64 bundle;        // EighBundleLayout
  clutch_i64 size;
} EighQrGroupLayout;
CLUTCH_SHARED_FN EighQrGroupLayout eigh_qr_group_layout(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts, clutch_i32 vectors, clutch_i32 items,
                                                        clutch_i32 bundle) {
  const clutch_i64 matrix = eigh_matrix_size(n, lanes, parts);
  EighQrGroupLayout at;
  at.a = 0, at.q = at.a + matrix, at.vectors = at.q + vectors * matrix;
  at.rows = at.vectors + vectors * bundle * matrix, at.factor = at.rows + eigh_factor_offset(n, lanes, parts);
  at.bundle = at.rows + eigh_work_size(n, lanes, parts);
  at.size = at.bundle + eigh_bundle_layout(n, lanes, vectors, items).size;
  return at;
}

// Scratch of eigh_device_wide: all matrices, then all bundles ----------------------------------------------------------------------------------------------

typedef struct EighDeviceWideLayout {
  clutch_i64 a;                // the matrix, later its eigenvectors
  clutch_i64 q;                // Q, if eigenvectors are computed
  clutch_i64 rows, factor;     // work memory of the reduction
  clutch_i64 tangents, sines;  // rotations of a round: [sweep][k]
  clutch_i64 tops;             // [sweep]: number of its rotations; 32-bit integers
  clutch_i64 count;            // number of sweeps of the round; a 32-bit integer
  clutch_i64 size;
} EighDeviceWideLayout;
CLUTCH_SHARED_FN EighDeviceWideLayout eigh_device_wide_layout(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts, clutch_i32 vectors) {
  const clutch_i64 matrix = eigh_matrix_size(n, lanes, parts), rotations = (clutch_i64)EIGH_ROUND * eigh_round_up(n, lanes);
  EighDeviceWideLayout at;
  at.a = 0, at.q = at.a + matrix, at.rows = at.q + vectors * matrix, at.factor = at.rows + eigh_factor_offset(n, lanes, parts);
  at.tangents = at.rows + eigh_work_size(n, lanes, parts), at.sines = at.tangents + rotations;
  at.tops = at.sines + rotations, at.count = at.tops + EIGH_ROUND;
  at.size = vectors ? at.count + lanes : at.tangents;
  return at;
}
// Offset of bundle `bundle`; of one past the last bundle: the size of all scratch.
CLUTCH_SHARED_FN clutch_u64 eigh_device_wide_bundle(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts, clutch_i32 vectors, clutch_i32 items, clutch_u64 batch,
                                                    clutch_u64 bundle) {
  return batch * (clutch_u64)eigh_device_wide_layout(n, lanes, parts, vectors).size + bundle * (clutch_u64)eigh_bundle_layout(n, lanes, vectors, items).size;
}

// The vectors of a row that a stage computes, and how tasks share them.
typedef struct EighPanels {
  clutch_i32 begin, end;  // vectors
  clutch_i32 width;       // vectors of a task; the last task may have fewer
  clutch_i32 count;       // tasks of a matrix
} EighPanels;
CLUTCH_SHARED_FN EighPanels eigh_panels(clutch_i32 stage, clutch_i32 step, clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  EighPanels panels;
  panels.begin = stage == EIGH_ROWS ? (step + 1) / lanes : 0;
  panels.end = stage == EIGH_APPLY ? parts * eigh_row_vectors(n, lanes) : eigh_row_vectors(n, lanes);
  panels.width = stage == EIGH_ROWS ? EIGH_ROWS_PANEL : EIGH_VECTORS_PANEL;
  panels.count = stage == EIGH_ROWS || stage == EIGH_FORM || stage == EIGH_APPLY ? (panels.end - panels.begin + panels.width - 1) / panels.width : 1;
  return panels;
}
// Tasks of a stage: bundles for EIGH_ITERATE and EIGH_STORE, else panels of all matrices.
CLUTCH_SHARED_FN clutch_u64 eigh_tasks(clutch_i32 stage, clutch_u64 batch, clutch_i32 panels, clutch_i32 capacity) {
  return stage == EIGH_ITERATE || stage == EIGH_STORE ? eigh_bundles(batch, capacity) : batch * (clutch_u64)panels;
}

// Scratch of a work-group of eigh_jacobi_group -------------------------------------------------------------------------------------------------------------

// Pairs of positions that a round rotates at once: tops 0 to pairs - 1 and bottoms, the last one without a partner where n is odd.
CLUTCH_SHARED_FN clutch_i32 eigh_pairs(clutch_i32 n) { return (n + 1) / 2; }
// Columns of the tops, or of the bottoms, in a row: at least two more than pairs.
CLUTCH_SHARED_FN clutch_i32 eigh_half_length(clutch_i32 n, clutch_i32 lanes) { return ((eigh_pairs(n) + 1) / lanes + 1) * lanes; }
// From a row to the next: an odd number of vectors.
CLUTCH_SHARED_FN clutch_i32 eigh_halves_stride(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) { return 2 * parts * eigh_half_length(n, lanes) + lanes; }
CLUTCH_SHARED_FN clutch_i32 eigh_halves_size(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  return 2 * eigh_pairs(n) * eigh_halves_stride(n, lanes, parts);
}

// Arrays of a round's rotations, an element for each pair: off-diagonal elements, cosines, sines, and 1 if the pair is rotated, else 0. Imaginary parts of
// `off` and `s` follow their real parts.
typedef struct EighAnglesLayout {
  clutch_i32 off, c, s, on, size;
} EighAnglesLayout;
CLUTCH_SHARED_FN EighAnglesLayout eigh_angles_layout(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts) {
  const clutch_i32 width = eigh_half_length(n, lanes);
  EighAnglesLayout at;
  at.off = 0, at.c = at.off + parts * width, at.s = at.c + width, at.on = at.s + parts * width, at.size = at.on + width;
  return at;
}

typedef struct EighJacobiLayout {
  clutch_i64 a;          // two copies of the matrix without its diagonal
  clutch_i64 diagonals;  // a row for each of the two copies
  clutch_i64 angles;     // EighAnglesLayout
  clutch_i64 d, rank;    // eigenvalues and their indices in ascending order
  clutch_i64 row_of;     // for each of the two copies: the row of v of each position; 32-bit integers
  clutch_i64 v;          // eigenvectors, if they are computed: n + 1 rows
  clutch_i64 size;
} EighJacobiLayout;
CLUTCH_SHARED_FN EighJacobiLayout eigh_jacobi_layout(clutch_i32 n, clutch_i32 lanes, clutch_i32 parts, clutch_i32 vectors) {
  const clutch_i64 row = eigh_row_stride(n, lanes, parts);
  EighJacobiLayout at;
  at.a = 0, at.diagonals = at.a + 2 * (clutch_i64)eigh_halves_size(n, lanes, parts), at.angles = at.diagonals + 2 * eigh_halves_stride(n, lanes, parts);
  at.d = at.angles + eigh_angles_layout(n, lanes, parts).size, at.rank = at.d + row;
  at.row_of = at.rank + row, at.v = at.row_of + 2 * row + 2 * lanes;
  at.size = at.v + vectors * (n + 1) * row;
  return at;
}

// Kernels of eigh_qr_items (eigh/qr_items.clh, eigh/qr_sweeps.clh) -------------------------------------------------------------------------------------------

// What they hand over, in bytes from the start of scratch, for `matrices` matrices; cap: rows that a matrix has at most, a multiple of 4; real: bytes of a real
// number.
typedef struct EighItemsLayout {
  clutch_i64 q;            // Q: quads of columns, of each quad all rows
  clutch_i64 tridiagonal;  // EIGH_TRIDIAGONAL(cap) numbers of each matrix: d, e, and EighItemsNumber past them
  clutch_i64 rotations;    // EIGH_BLOCKS(cap) + 1 blocks of each matrix: tangents and sines of four rotations
  clutch_i64 spans;        // EIGH_SPANS(cap) 16-bit integers of each matrix: the first block of a sweep, and 256 times the end of its blocks
  clutch_i64 states;       // EIGH_STATES 32-bit integers of each matrix: EighItemsState
  clutch_i64 size;
} EighItemsLayout;
// Numbers behind d and e, and integers, of a matrix.
enum EighItemsNumber { EIGH_UNSCALE, EIGH_TOLERANCE };
enum EighItemsState {
  EIGH_BAD,     // NaN or Inf is in it
  EIGH_USED,    // sweeps so far
  EIGH_FIRST,   // where the next sweep's block of the tridiagonal matrix begins at the earliest
  EIGH_TOP,     // its last row
  EIGH_SWEEPS,  // recorded sweeps
  EIGH_LEFT     // 1: the record was full before the matrix had converged
};
#define EIGH_STATES 8
#define EIGH_TRIDIAGONAL(cap) (2 * (cap) + 4)
// Matrices of random numbers need three quarters of the blocks and of the sweeps.
#define EIGH_BLOCKS(cap) ((cap) / 4 * ((cap) / 4) * 6 + 16)
#define EIGH_SPANS(cap) (3 * (cap))
CLUTCH_SHARED_FN EighItemsLayout eigh_items_layout(clutch_i64 matrices, clutch_i32 cap, clutch_i32 parts, clutch_i32 vectors, clutch_i32 real) {
  EighItemsLayout at;
  at.q = 0, at.tridiagonal = at.q + vectors * matrices * cap * cap * parts * real;
  at.rotations = at.tridiagonal + matrices * EIGH_TRIDIAGONAL(cap) * real;
  at.spans = at.rotations + vectors * matrices * (EIGH_BLOCKS(cap) + 1) * 8 * real;
  at.states = at.spans + vectors * (matrices * EIGH_SPANS(cap) * 2 + 15) / 16 * 16;
  at.size = at.states + matrices * EIGH_STATES * 4;
  return at;
}

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::EighArgs) == 64);
#endif

#endif
