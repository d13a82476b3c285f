// SPDX-License-Identifier: Apache-2.0
// flex: attention by online softmax over blocks of keys (flex/softmax.clh); scores are modified and masked by printed functions where they are made.
//
//   out = softmax(score_mod(q k^T scale), where the mask allows) v
//
//   entry                 work-item or -group takes            SIMD lanes have    devices                              file
//   flex_lanes            a tile of queries                    queries            a work-group is a thread             flex/forward.clh
//   flex_split            few queries, a part of the keys      keys               the same                             flex/split.clh
//   flex_tiles            a tile of queries, in local memory   one number         work-groups of many work-items       flex/tiles_forward.clh
//   flex_tiles_split      the same, of a part of the keys      one number         the same                             flex/tiles_forward.clh
//   flex_matrix           the same, by matrix instructions     one number         such as have them                    flex/matrix.clh
//   flex_items            a query                              one number         any: the reference                   flex/items.clh
//   flex_combine          a line: results of parts become one                                                          flex/combine.clh
//   flex_lanes_backward   tiles of keys: dq, dk, dv            keys               a work-group is a thread             flex/backward.clh
//   flex_tiles_dq, _dkv   a tile of queries, of keys           one number         work-groups of many work-items       flex/tiles_backward.clh
//   flex_matrix_dq, _dkv  the same, by matrix instructions     one number         such as have them                    flex/matrix_backward.clh
//   flex_items_dq, _dkv   a query, a key                       one number         any                                  flex/items.clh
//   flex_dropout          factors of dropout                                                                           flex/dropout.clh
//   flex_assign           rows of a paged cache                                                                        flex/assign.clh
//
// Concepts: flex/args.h (arguments, partial results), types (numbers), softmax, mods (printed functions, the mask), varlen (sequences, pages), visits (tiles
// and the blocks that they visit), tensors (parameters).
// Needs: what common/expr.clh needs; what an entry's file needs;
//   S_NAME                dtype of the tensors
//   A_IS_F32 or A_IS_F64  of scores
//   CLUTCH_HAS_SCORE, CLUTCH_HAS_MASK, CLUTCH_DROPOUT, CLUTCH_RAGGED, CLUTCH_SKIP_MASKED, CLUTCH_KEYS_ALONG, CLUTCH_BACKWARD: 0 or 1
//   for flex_matrix* what flex/matrix_tiles.clh needs
//   CLUTCH_SUMS_ONLY      1: flex_lanes, flex_tiles, flex_matrix and flex_items make row sums for the backward pass
#include "common/expr.clh"
#include "common/launch.clh"
#include "common/quads.clh"

#include "expression.clh"
#include "flex/args.h"
#include "flex/mods.clh"
#include "flex/softmax.clh"
#include "flex/tensors.clh"
#include "flex/types.clh"
#include "flex/varlen.clh"
#include "flex/visits.clh"

#if defined(CLUTCH_ENTRY_flex_lanes) || defined(CLUTCH_ENTRY_flex_lanes_backward) || defined(CLUTCH_ENTRY_flex_split)
#include "flex/lanes.clh"
#endif
#if defined(CLUTCH_ENTRY_flex_lanes) || defined(CLUTCH_ENTRY_flex_lanes_backward)
#define CLUTCH_NV 1
#include "flex/tile.inc"
#undef CLUTCH_NV
#define CLUTCH_NV 2
#include "flex/tile.inc"
#undef CLUTCH_NV
#if CLUTCH_VECTORS > 2
#define CLUTCH_NV 3
#include "flex/tile.inc"
#undef CLUTCH_NV
#endif
#endif

#ifdef CLUTCH_ENTRY_flex_lanes
#include "flex/forward.clh"
__kernel void flex_lanes(CLUTCH_PREDICATE CLUTCH_FLEX_FORWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Forward tensors = CLUTCH_FLEX_FORWARD;
  flex_lanes_body(CLUTCH_IDS, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_flex_split
#include "flex/split.clh"
__kernel void flex_split(CLUTCH_PREDICATE CLUTCH_FLEX_SPLIT_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Split tensors = CLUTCH_FLEX_SPLIT;
  flex_split_body(CLUTCH_IDS, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_flex_combine
#include "flex/combine.clh"
__kernel void flex_combine(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(out), CLUTCH_FLEX_OUT(lse), CLUTCH_FLEX_OUT(row_max), CLUTCH_FLEX_IN(parts), CLUTCH_FLEX_IN(sums),
                           CLUTCH_ARGS(FlexArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(FlexArgs, args)
  flex_combine_body(CLUTCH_IDS, out + out_offset, CLUTCH_FLEX_AT(T, lse), CLUTCH_FLEX_AT(T, row_max), CLUTCH_FLEX_AT(const T, parts),
                    CLUTCH_FLEX_AT(const T, sums), args);
}
#endif

#ifdef CLUTCH_ENTRY_flex_lanes_backward
#include "flex/backward.clh"
__kernel void flex_lanes_backward(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dq), CLUTCH_FLEX_OUT(dk), CLUTCH_FLEX_OUT(dv), CLUTCH_FLEX_BACKWARD_PARAMS,
                                  CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  flex_lanes_backward_body(CLUTCH_IDS, CLUTCH_FLEX_AT(T, dq), dk + dk_offset, dv + dv_offset, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_flex_tiles) || defined(CLUTCH_ENTRY_flex_tiles_split) || defined(CLUTCH_ENTRY_flex_tiles_dq) || defined(CLUTCH_ENTRY_flex_tiles_dkv)
#include "flex/tiles.clh"
#endif
#if defined(CLUTCH_ENTRY_flex_tiles) || defined(CLUTCH_ENTRY_flex_tiles_split)
#include "flex/tiles_forward.clh"
#endif
#ifdef CLUTCH_ENTRY_flex_tiles
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_tiles(CLUTCH_PREDICATE CLUTCH_FLEX_FORWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Forward tensors = CLUTCH_FLEX_FORWARD;
  __local T work[WORK_SIZE] CLUTCH_FOR_QUADS, state[FLEX_STATE_NUMBERS(BLOCK_M)] CLUTCH_FOR_QUADS;
  flex_tiles_body(work, state, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_flex_tiles_split
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_tiles_split(CLUTCH_PREDICATE CLUTCH_FLEX_SPLIT_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Split tensors = CLUTCH_FLEX_SPLIT;
  __local T work[WORK_SIZE] CLUTCH_FOR_QUADS, state[FLEX_STATE_NUMBERS(BLOCK_M)] CLUTCH_FOR_QUADS;
  flex_tiles_split_body(work, state, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_flex_matrix) || defined(CLUTCH_ENTRY_flex_matrix_dq) || defined(CLUTCH_ENTRY_flex_matrix_dkv)
#include "flex/matrix_tiles.clh"
#endif
#ifdef CLUTCH_ENTRY_flex_matrix
#include "flex/matrix.clh"
__kernel CLUTCH_LANES_OF_SUB_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_matrix(CLUTCH_PREDICATE CLUTCH_FLEX_FORWARD_PARAMS,
                                                                                                       CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Forward tensors = CLUTCH_FLEX_FORWARD;
  FLEX_MATRIX_LOCAL_MEMORY(FLEX_MATRIX_WORDS(BLOCK_M, BLOCK_N, KEY_SIZE, VALUE_SIZE, OF_WORD, RESULT_ROWS))
  flex_matrix_body(lines, model, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_flex_matrix_dq) || defined(CLUTCH_ENTRY_flex_matrix_dkv)
#include "flex/matrix_backward.clh"
#endif
#ifdef CLUTCH_ENTRY_flex_matrix_dq
__kernel CLUTCH_LANES_OF_SUB_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_matrix_dq(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dq),
                                                                                                          CLUTCH_FLEX_BACKWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  FLEX_MATRIX_LOCAL_MEMORY(FLEX_MATRIX_BACK_SIZE)
  flex_matrix_gradients(lines, model, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), dq + dq_offset, 0, &tensors, &lists, args,
                        scale CLUTCH_MOD_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_flex_matrix_dkv
__kernel CLUTCH_LANES_OF_SUB_GROUP __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_matrix_dkv(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dk),
                                                                                                           CLUTCH_FLEX_OUT(dv), CLUTCH_FLEX_BACKWARD_PARAMS,
                                                                                                           CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  FLEX_MATRIX_LOCAL_MEMORY(FLEX_MATRIX_BACK_SIZE)
  flex_matrix_gradients(lines, model, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), dk + dk_offset, dv + dv_offset, &tensors, &lists, args,
                        scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_flex_tiles_dq) || defined(CLUTCH_ENTRY_flex_tiles_dkv)
#include "flex/tiles_backward.clh"
#endif
#ifdef CLUTCH_ENTRY_flex_tiles_dq
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_tiles_dq(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dq), CLUTCH_FLEX_BACKWARD_PARAMS,
                                                                               CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  __local T work[WORK_SIZE] CLUTCH_FOR_QUADS, state[FLEX_STATE_NUMBERS(BLOCK_M)] CLUTCH_FOR_QUADS;
  flex_tiles_dq_body(work, state, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), dq + dq_offset, &tensors, &lists, args,
                     scale CLUTCH_MOD_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_flex_tiles_dkv
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1))) void flex_tiles_dkv(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dk), CLUTCH_FLEX_OUT(dv),
                                                                                CLUTCH_FLEX_BACKWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  __local T work[WORK_SIZE] CLUTCH_FOR_QUADS;
  flex_tiles_dkv_body(work, get_group_id(0), get_num_groups(0), (uint)get_local_id(0), dk + dk_offset, dv + dv_offset, &tensors, &lists, args,
                      scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#if defined(CLUTCH_ENTRY_flex_items) || defined(CLUTCH_ENTRY_flex_items_dq) || defined(CLUTCH_ENTRY_flex_items_dkv)
#include "flex/items.clh"
#endif
#ifdef CLUTCH_ENTRY_flex_items
__kernel void flex_items(CLUTCH_PREDICATE CLUTCH_FLEX_FORWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Forward tensors = CLUTCH_FLEX_FORWARD;
  flex_items_body(CLUTCH_IDS, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_flex_items_dq
__kernel void flex_items_dq(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dq), CLUTCH_FLEX_BACKWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  flex_items_dq_body(CLUTCH_IDS, dq + dq_offset, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif
#ifdef CLUTCH_ENTRY_flex_items_dkv
__kernel void flex_items_dkv(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(dk), CLUTCH_FLEX_OUT(dv), CLUTCH_FLEX_BACKWARD_PARAMS, CLUTCH_FLEX_PARAMS) {
  CLUTCH_FLEX_TAKE_PARAMS
  const Backward tensors = CLUTCH_FLEX_BACKWARD;
  flex_items_dkv_body(CLUTCH_IDS, dk + dk_offset, dv + dv_offset, &tensors, &lists, args, scale CLUTCH_MOD_ARGUMENTS);
}
#endif

#ifdef CLUTCH_ENTRY_flex_dropout
__kernel void flex_dropout(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(factors), CLUTCH_FLEX_IN(random_state), CLUTCH_ARGS(FlexDropoutArgs, args), T kept) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(FlexDropoutArgs, args)
  flex_dropout_body(CLUTCH_IDS, CLUTCH_FLEX_AT(T, factors), CLUTCH_FLEX_AT(const ulong, random_state), args, kept);
}
#endif

#ifdef CLUTCH_ENTRY_flex_assign
#include "flex/assign.clh"
__kernel void flex_assign(CLUTCH_PREDICATE CLUTCH_FLEX_OUT(keys), CLUTCH_FLEX_OUT(values), CLUTCH_FLEX_IN(sequences), CLUTCH_FLEX_IN(positions),
                          CLUTCH_FLEX_IN(pages), CLUTCH_FLEX_IN(k), CLUTCH_FLEX_IN(v), CLUTCH_ARGS(FlexAssignArgs, args)) {
  CLUTCH_IF_PREDICATE
  CLUTCH_TAKE_ARGS(FlexAssignArgs, args)
  flex_assign_body(CLUTCH_IDS, keys + keys_offset, values + values_offset, CLUTCH_FLEX_AT(const int, sequences), CLUTCH_FLEX_AT(const int, positions),
                   CLUTCH_FLEX_AT(const int, pages), k + k_offset, v + v_offset, args);
}
#endif
