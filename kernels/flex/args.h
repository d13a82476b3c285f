// SPDX-License-Identifier: Apache-2.0
// Shared by host/ops/flex/ and the kernels of flex: arguments, the layout of partial results, and how much local memory tiles take.
// Words:
//   rows     what a tile of the launch is cut from: queries, or keys in kernels that go by keys; columns are the others
//   line     a query of a head: index into lse, row maxima and row sums
//   part     a line of one of the parts of the keys that are computed one by one and combined afterwards
// Strides count elements of a tensor, numbers of the compute type, or lines.
#ifndef CLUTCH_FLEX_ARGS_H
#define CLUTCH_FLEX_ARGS_H

#include "common/shared.h"

#include "matmul/args.h"

// Numbers of local memory of flex_tiles*. These are macros because kernels declare arrays of these sizes.
//   most    the most elements of a row (DMAX)
//   shares  parts into which work-items share the columns of the second product
// A line of so many numbers in a chunk: lines begin in different banks.
#define FLEX_LINE(numbers) ((numbers) + 4)
// block_k elements of each row of a tile and of each of its columns; a number of each row by its work-items; rows of `most` elements that p is multiplied by.
#define FLEX_CHUNK_NUMBERS(block_m, block_n, block_k) ((block_k)*FLEX_LINE((block_m) + (block_n)))
#define FLEX_PARTIAL_NUMBERS(block_m, threads_n) ((threads_n)*FLEX_LINE(block_m))
#define FLEX_ROWS_NUMBERS(block_k, shares, most) ((block_k) * (shares) * (most))
// Two chunks and numbers of rows by work-item; then p of two columns of each item and two times rows; at the end sums of other shares.
#define FLEX_MOST(a, b) ((a) > (b) ? (a) : (b))
#define FLEX_TILE_NUMBERS(block_m, block_n, block_k, threads_m, threads_n, shares, most)                  \
  FLEX_MOST(2 * FLEX_CHUNK_NUMBERS(block_m, block_n, block_k) + FLEX_PARTIAL_NUMBERS(block_m, threads_n), \
            FLEX_MOST(2 * (FLEX_PARTIAL_NUMBERS(block_m, threads_n) + FLEX_ROWS_NUMBERS(block_k, shares, most)), ((shares)-1) * 4 * (threads_m) * (most)))
// Three numbers of each row of a tile.
#define FLEX_STATE_NUMBERS(block_m) (3 * (block_m))

// flex_matrix. Elements of rows come in multiples of FLEX_MATRIX_ELEMENTS, zeros behind those that exist.
#define FLEX_MATRIX_ELEMENTS 32
#define FLEX_RESULT_PAD 4  // numbers behind each row of results in local memory
// Words of four bytes of local memory: the queries of a tile, `keys` keys and their values, `of_word` numbers in a word; at the end `rows` rows of results.
#define FLEX_MATRIX_OPERANDS(queries, keys, e, ev, of_word) (((queries) * (e) + (keys) * (e) + (keys) * (ev)) / (of_word))
#define FLEX_MATRIX_WORDS(queries, keys, e, ev, of_word, rows) FLEX_MOST(FLEX_MATRIX_OPERANDS(queries, keys, e, ev, of_word), (rows) * ((ev) + FLEX_RESULT_PAD))
// flex_matrix_dq, flex_matrix_dkv: two operands of `rows` rows; `steps` times an operand of the others, of their rows or of their elements, which may not fill
// their lines; four numbers of each of `states` rows or others.
#define FLEX_MATRIX_STEP_WORDS(others, e, ev, of_word) FLEX_MOST((others) * (e) / (of_word), (ev)*MATMUL_LINE_WORDS)
#define FLEX_MATRIX_BACK_OPERANDS(rows, others, e, ev, of_word, steps, states) \
  (2 * (rows) * (e) / (of_word) + (steps)*FLEX_MATRIX_STEP_WORDS(others, e, ev, of_word) + 4 * (states))
#define FLEX_MATRIX_BACK_WORDS(rows, others, e, ev, of_word, steps, states, result_rows) \
  FLEX_MOST(FLEX_MATRIX_BACK_OPERANDS(rows, others, e, ev, of_word, steps, states), (result_rows) * ((ev) + FLEX_RESULT_PAD))

CLUTCH_SHARED_BEGIN

// Arguments of all kernels of attention. `scale` is an argument of its own, since it has a name.
typedef struct FlexArgs {
  clutch_u64 tasks;  // what work-items, or work-groups of flex_tiles*, take one after another; each kernel says what a task is

  // Tensors: (batch, heads, rows, elements)
  clutch_i64 q_stride[4];    // strides of q
  clutch_i64 k_stride[4];    // strides of k
  clutch_i64 v_stride[4];    // strides of v
  clutch_i64 out_stride[4];  // strides of the result, in backward of the result's gradient
  clutch_i64 batch;          // number of batches, or of sequences
  clutch_i64 heads;          // heads of queries
  clutch_i64 gqa_factor;     // heads of queries that share a head of keys
  clutch_i64 q_len;          // queries of a head; of sequences of several lengths: of the longest
  clutch_i64 kv_len;         // keys of a head; likewise
  clutch_i64 e;              // elements of a query and of a key
  clutch_i64 ev;             // elements of a value and of a result
  clutch_i64 q_rows;         // rows of q in a batch: q_len, or what all packed sequences take
  clutch_i64 kv_rows;        // rows of k in a batch: kv_len, or what all packed sequences or all pages take

  // Tiles, and the blocks that a tile visits
  clutch_i64 tiles;              // tiles of a head
  clutch_i64 tile_rows;          // rows of a tile
  clutch_i64 block_tiles;        // tiles of a row of blocks
  clutch_i64 block_rows;         // rows of a block
  clutch_i64 block_columns;      // columns of a block
  clutch_i64 columns;            // blocks in a row of blocks
  clutch_i64 list_batch_stride;  // lists of visited blocks: rows of blocks from a batch to the next, 0 if all batches share lists
  clutch_i64 list_head_stride;   // the same of heads

  // Partial results
  clutch_i64 splits;        // flex_split, flex_tiles_split, flex_combine: parts of the keys
  clutch_i64 split_blocks;  // blocks of a part
  clutch_i64 chunks;        // flex_lanes_backward: work-items that share the tiles of a head, each with sums of its own for q's gradient
  clutch_i64 part_stride;   // numbers from a line of partial results to the next

  // Pages of keys
  clutch_i64 page_size;    // keys of a page, 0 without pages
  clutch_i64 page_stride;  // pages of a sequence: from a row of the page table to the next

  clutch_u32 dropout_below;  // a weight is dropped if its random word is less
  clutch_i32 listed;         // 1: lists say which blocks are visited; 0: all are, and all are whole
  clutch_i32 mask_all;       // 1: the mask is looked at in all blocks; 0: in those that the lists have as partial
  clutch_i32 wants_lse;      // 1: lse is stored
  clutch_i32 wants_max;      // 1: row maxima are stored; of row sums for backward: they are given
  clutch_i32 shared_kv;      // 1: all batches read the keys and values of the only one
  clutch_i32 packed_q;       // 1: sequences' queries follow one another in one batch, from q_starts[b] on
  clutch_i32 packed_kv;      // 1: the same of keys, from kv_starts[b] on
  clutch_i32 used;           // 1: kv_used[b] is the number of keys that sequence b has
  clutch_i32 unused;         // 0, which compilers of kernels do not know
} FlexArgs;

// Arguments of flex_dropout.
typedef struct FlexDropoutArgs {
  clutch_u64 tasks;          // batches * heads * queries * flex_quads(kv_len)
  clutch_i64 first;          // first query
  clutch_i64 count;          // queries of a head whose factors are made
  clutch_i64 q_len;          // queries of a head
  clutch_i64 kv_len;         // keys of a head
  clutch_u32 dropout_below;  // as FlexArgs has it
  clutch_i32 unused;         // 0
} FlexDropoutArgs;

// Arguments of flex_assign. Keys and values: (sequences, heads, length, elements); the cache: (heads, cache_rows, elements).
typedef struct FlexAssignArgs {
  clutch_u64 tasks;        // sequences given * heads * length
  clutch_i64 k_stride[4];  // strides of k
  clutch_i64 v_stride[4];  // strides of v
  clutch_i64 length;       // rows of a given sequence
  clutch_i64 heads;        // heads of keys
  clutch_i64 e;            // elements of a key
  clutch_i64 ev;           // elements of a value
  clutch_i64 sequences;    // sequences of the cache: rows of the page table
  clutch_i64 page_stride;  // pages of a sequence: from a row of the page table to the next
  clutch_i64 page_size;    // rows of a page
  clutch_i64 cache_rows;   // rows of a head of the cache
} FlexAssignArgs;

CLUTCH_SHARED_FN clutch_i64 flex_parts(clutch_i64 size, clutch_i64 part) { return (size + part - 1) / part; }

// Lines: [batch][head][row]; of packed queries [head][row], of all sequences.
CLUTCH_SHARED_FN clutch_i64 flex_lines(clutch_i32 packed_q, clutch_i64 batch, clutch_i64 heads, clutch_i64 q_rows) {
  return (packed_q ? 1 : batch) * heads * q_rows;
}
// The first line of a sequence's head; its query `q_at` is the first one.
CLUTCH_SHARED_FN clutch_i64 flex_line(clutch_i32 packed_q, clutch_i64 heads, clutch_i64 q_rows, clutch_i64 b, clutch_i64 h, clutch_i64 q_at) {
  return (packed_q ? h : b * heads + h) * q_rows + q_at;
}

// Index of a part. Layout: weighted sums of values [split][line][part_stride]; row_max and row_sum [split][line][2].
CLUTCH_SHARED_FN clutch_i64 flex_part(clutch_i64 split, clutch_i64 lines, clutch_i64 line) { return split * lines + line; }

// flex_combine: pieces of `chunk` elements of a line, each of which is a task of its own.
CLUTCH_SHARED_FN clutch_i64 flex_pieces(clutch_i64 ev, clutch_i64 chunk) { return ev > 0 ? flex_parts(ev, chunk) : 1; }

// flex_split: the rows of queries that read a head of keys, [one of gqa_factor heads][query], are cut into slices of `rows`.
CLUTCH_SHARED_FN clutch_i64 flex_slices(clutch_i64 gqa_factor, clutch_i64 q_len, clutch_i64 rows) { return flex_parts(gqa_factor * q_len, rows); }
// flex_tiles_split: a slice has queries of one head, or, by heads, the only query of several of the gqa_factor heads. Slices of each of flex_readers().
CLUTCH_SHARED_FN clutch_i32 flex_by_heads(clutch_i64 q_len) { return q_len == 1; }
CLUTCH_SHARED_FN clutch_i64 flex_tile_slices(clutch_i64 gqa_factor, clutch_i64 q_len, clutch_i64 rows) {
  return flex_parts(flex_by_heads(q_len) ? gqa_factor : q_len, rows);
}
CLUTCH_SHARED_FN clutch_i64 flex_readers(clutch_i64 gqa_factor, clutch_i64 q_len) { return flex_by_heads(q_len) ? 1 : gqa_factor; }

// Dropout: Philox blocks of a query, each with the words of four keys; and the first of query q of head h of batch b, without the generator's offset.
CLUTCH_SHARED_FN clutch_i64 flex_quads(clutch_i64 kv_len) { return flex_parts(kv_len, 4); }
CLUTCH_SHARED_FN clutch_i64 flex_quad(clutch_i64 b, clutch_i64 h, clutch_i64 q, clutch_i64 heads, clutch_i64 q_len, clutch_i64 quads) {
  return ((b * heads + h) * q_len + q) * quads;
}

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
static_assert(sizeof(clutch::detail::FlexArgs) == 360 && sizeof(clutch::detail::FlexDropoutArgs) == 48);
static_assert(sizeof(clutch::detail::FlexAssignArgs) == 136);
#endif

#endif
