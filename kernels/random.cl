// SPDX-License-Identifier: Apache-2.0
// uniform_ and normal_: floating-point numbers from Philox 4x32-10 blocks; random_state sets the generator's seed and offset, or advances the offset.
// Ownership: a group owns tiles of CLUTCH_TILE elements, a multiple of a chunk; its items take WIDTH blocks of a chunk in turn.
// A chunk is RANDOM_CHUNK_BLOCKS blocks: word k of block j is element RANDOM_CHUNK_BLOCKS * k + j, so that vectors of any width store without shuffles.
// Needs: T_NAME, ACC (float or double), and what the included files need.
// Source: J. K. Salmon et al., SC 2011; include/clutch/ops/random.hpp has the mapping of words to elements.
#include "common/dtype.clh"
#include "common/elementwise.clh"
#include "common/launch.clh"
#include "common/math.clh"
#include "common/philox.clh"
#include "random/args.h"

#ifdef CLUTCH_ENTRY_random_state
// Sets seed and offset, or advances the offset.
static inline void random_state_body(__global ulong* state, ulong seed, ulong offset, uint set) {
  if (get_global_id(0) != 0) return;
  if (set) state[RANDOM_SEED] = seed;
  state[RANDOM_OFFSET] = set ? offset : state[RANDOM_OFFSET] + offset;
}

__kernel void random_state(CLUTCH_PREDICATE __global uchar* state, ulong state_offset, ulong seed, ulong offset, uint set) {
  CLUTCH_IF_PREDICATE
  random_state_body((__global ulong*)(state + state_offset), seed, offset, set);
}
#endif

#if defined(CLUTCH_ENTRY_random_uniform) || defined(CLUTCH_ENTRY_random_normal)
#if !defined(T_NAME) || !defined(ACC)
#error "T_NAME and ACC are not defined"
#endif

#ifdef T_IS_F64
#define R VD
#define CHUNK random_chunk(1)
#else
#define R VF
#define CHUNK random_chunk(0)
#endif
#define CHUNK_STEPS (RANDOM_CHUNK_BLOCKS / WIDTH)  // vectors of blocks of a chunk

// Block number `block` (lane j of a vector: block + j) of the stream of numbers that the seed selects.
static inline PhiloxBlocks philox(const PhiloxKeys* keys, ulong block) {
  VU low = (VU)(uint)block + lane_numbers();
  // Blocks of a vector share their high half: chunks begin at multiples of RANDOM_CHUNK_BLOCKS blocks behind any offset, so a carry is added.
  VU carry = low < (VU)(uint)block ? (VU)1u : (VU)0u;
  return philox_blocks(low, (VU)(uint)(block >> 32) + carry, (VU)0u, (VU)0u, keys);
}

// Stores the lanes of R from element i on, up to element n - 1.
static inline void store(__global uchar* out, ulong i, ulong n, R x) {
#if WIDTH == 1
  if (i < n) CLUTCH_CONCAT(store_, T_NAME)(out, i, x);
#else
  if (i + WIDTH <= n) {
#ifdef CLUTCH_HAS_WHOLE
    if (CLUTCH_WHOLE((ulong)out)) {
      CLUTCH_CONCAT(storea_, T_NAME)(out, i, x);
      return;
    }
#endif
    CLUTCH_CONCAT(storev_, T_NAME)(out, i, x);
    return;
  }
  ACC lanes[WIDTH];
  CLUTCH_CONCAT(vstore, WIDTH)(x, 0, lanes);
  for (uint j = 0; j < WIDTH && i + j < n; ++j) CLUTCH_CONCAT(store_, T_NAME)(out, i + j, lanes[j]);
#endif
}

#ifdef T_IS_F64
#if DWIDTH != WIDTH
#error "doubles need as many lanes as words"
#endif
static inline VUL join_words(VU low, VU high) { return (CLUTCH_U_TO_VUL(high) << 32) | CLUTCH_U_TO_VUL(low); }
static inline VD unit_of(VU low, VU high) { return CLUTCH_L_TO_VD(CLUTCH_AS_VL(join_words(low, high) >> 11)) * 0x1p-53; }
#define SCALE_ADD(z, scale, add) fma(z, (VD)(scale), (VD)(add))
#else
#if defined(T_IS_F16)
#define UNIT_SHIFT 21
#define UNIT 0x1p-11f
#elif defined(T_IS_BF16)
#define UNIT_SHIFT 24
#define UNIT 0x1p-8f
#else
#define UNIT_SHIFT 8
#define UNIT 0x1p-24f
#endif
#define SCALE_ADD(z, scale, add) fma_rn(z, (VF)(scale), (VF)(add))
#endif

// Words of a step, and the element of word 0 of its first lane.
typedef struct {
  PhiloxBlocks words;
  ulong first;
} Step;
static inline Step step_of(const PhiloxKeys* keys, ulong offset, ulong tile, ulong step) {
  ulong chunk = tile * (CLUTCH_TILE / CHUNK) + step / CHUNK_STEPS, j = step % CHUNK_STEPS * WIDTH;
  Step r;
  r.words = philox(keys, offset + RANDOM_CHUNK_BLOCKS * chunk + j);
  r.first = chunk * CHUNK + j;
  return r;
}

#define RANDOM_WALK(n)                                             \
  for (ulong tile = group; tile * CLUTCH_TILE < n; tile += groups) \
    for (ulong step = item; step < CLUTCH_TILE / CHUNK * CHUNK_STEPS && tile * CLUTCH_TILE + step / CHUNK_STEPS * CHUNK < n; step += items)

#endif

#ifdef CLUTCH_ENTRY_random_uniform
CLUTCH_INLINE void random_uniform_body(CLUTCH_ID_PARAMS, __global uchar* out, ulong n, ulong seed, ulong offset, ACC range, ACC low) {
  const PhiloxKeys keys = philox_keys(seed);
  RANDOM_WALK(n) {
    Step at = step_of(&keys, offset, tile, step);
    PhiloxBlocks w = at.words;
    ulong i = at.first;
    // Words that constants name stay in an item's registers.
#ifdef T_IS_F64
#pragma unroll
    for (int k = 0; k < 2; ++k) store(out, i + RANDOM_CHUNK_BLOCKS * k, n, SCALE_ADD(unit_of(w.w[2 * k], w.w[2 * k + 1]), range, low));
#else
#if WIDTH < 8
#pragma unroll
#endif
    for (int k = 0; k < 4; ++k) store(out, i + RANDOM_CHUNK_BLOCKS * k, n, SCALE_ADD(CLUTCH_U_TO_VF(w.w[k] >> UNIT_SHIFT) * UNIT, range, low));
#endif
  }
}

__kernel void random_uniform(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* state, ulong state_offset, ulong n, ulong seed,
                             uint stateful, ACC range, ACC low) {
  CLUTCH_IF_PREDICATE
  __global const ulong* s = (__global const ulong*)(state + state_offset);
  random_uniform_body(CLUTCH_IDS, out + out_offset, n, stateful ? s[RANDOM_SEED] : seed, stateful ? s[RANDOM_OFFSET] : 0, range, low);
}
#endif

#ifdef CLUTCH_ENTRY_random_normal
CLUTCH_INLINE void random_normal_body(CLUTCH_ID_PARAMS, __global uchar* out, ulong n, ulong seed, ulong offset, ACC stddev, ACC mean) {
  const PhiloxKeys keys = philox_keys(seed);
  RANDOM_WALK(n) {
    Step at = step_of(&keys, offset, tile, step);
    PhiloxBlocks w = at.words;
    ulong i = at.first;
#ifdef T_IS_F64
    VD c, s = sincospi_f64(CLUTCH_L_TO_VD(CLUTCH_AS_VL(join_words(w.w[2], w.w[3])) >> 11) * 0x1p-52, &c);
    VD r = sqrt(-2.0 * log_f64(unit_of(w.w[0], w.w[1]) + 0x1p-54));
    store(out, i, n, SCALE_ADD(r * c, stddev, mean));
    store(out, i + RANDOM_CHUNK_BLOCKS, n, SCALE_ADD(r * s, stddev, mean));
#else
#if WIDTH < 8
#pragma unroll
#endif
    for (int pair = 0; pair < 2; ++pair) {
      VF c, s = sincospi_f32(CLUTCH_I_TO_VF(CLUTCH_AS_VI(w.w[2 * pair + 1])) * 0x1p-31f, &c);
      VF r = sqrt_rn(-2.0f * log_f32(CLUTCH_U_TO_VF(w.w[2 * pair]) * 0x1p-32f + 0x1p-33f));
      store(out, i + RANDOM_CHUNK_BLOCKS * 2 * pair, n, SCALE_ADD(r * c, stddev, mean));
      store(out, i + RANDOM_CHUNK_BLOCKS * (2 * pair + 1), n, SCALE_ADD(r * s, stddev, mean));
    }
#endif
  }
}

__kernel void random_normal(CLUTCH_PREDICATE __global uchar* out, ulong out_offset, __global const uchar* state, ulong state_offset, ulong n, ulong seed,
                            uint stateful, ACC stddev, ACC mean) {
  CLUTCH_IF_PREDICATE
  __global const ulong* s = (__global const ulong*)(state + state_offset);
  random_normal_body(CLUTCH_IDS, out + out_offset, n, stateful ? s[RANDOM_SEED] : seed, stateful ? s[RANDOM_OFFSET] : 0, stddev, mean);
}
#endif
