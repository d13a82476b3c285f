// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of matmul.cl, the layout of packed matrices and of local memory. host/ops/matmul/launch.cpp fills the structs. All strides count
// elements of the tensor, those of packed matrices numbers of the compute type or words.
#ifndef CLUTCH_MATMUL_ARGS_H
#define CLUTCH_MATMUL_ARGS_H
#include "common/shared.h"

// CLUTCH_B_AT, how matmul_panels reads b. These are macros because the kernels' preprocessor compares them.
#define MATMUL_B_PACKED 0  // from panels, which matmul_pack or matmul_dot_pack wrote
#define MATMUL_B_DIRECT 1  // from the tensor itself
#define MATMUL_B_INSIDE 2  // from a block that the work-item packs into its private memory
#define MATMUL_B_ACROSS 3  // from the tensor itself, whose elements along k are neighbours: a vector along k of each of LANES columns, transposed in registers

// CLUTCH_DOT, whether operands are words of four bytes, whose products are summed; 0 where they are numbers
#define MATMUL_DOT_NOT 0
#define MATMUL_DOT_INSTRUCTION 1  // by one instruction
#define MATMUL_DOT_PLAIN 2        // by plain code

#define MATMUL_LANE_NUMBERS 256  // most numbers of a matrix of matmul_lanes
#define MATMUL_FEW 8             // rows, or columns, of matmul_few, of each of which an item has a result
#define MATMUL_FEW_EACH 4        // most results of an item, and so MATMUL_FEW * MATMUL_FEW_EACH rows, or columns, at most
#define MATMUL_FEW_LINES 32      // columns, or rows, that a work-group of it takes at a time
#define MATMUL_FEW_DEPTH 128     // elements along k of its blocks in local memory
#define MATMUL_WORD_BYTES 4      // bytes along k in a word, the operand of a dot product

// matmul_matrix. CLUTCH_LAYOUT: how the lanes of a sub-group hold the operands of a matrix instruction (matmul/fragments.clh); CLUTCH_NUMBERS: what it
// multiplies.
#define MATMUL_LAYOUT_MMA 1
#define MATMUL_LAYOUT_MFMA 2
#define MATMUL_LAYOUT_WMMA 3
#define MATMUL_LAYOUT_WMMA_HALVES 4
#define MATMUL_LAYOUT_DPAS_8 5
#define MATMUL_LAYOUT_DPAS_16 6
#define MATMUL_NUMBERS_F16 1
#define MATMUL_NUMBERS_BF16 2
#define MATMUL_NUMBERS_TF32 3  // f32 rounded to 11 significant bits
#define MATMUL_NUMBERS_BYTES 4
#define MATMUL_NUMBERS_F8 5  // f8e4m3fn and f8e5m2, each operand one of them
// Whether the instruction's f8 is not f8e4m3fn: its exponents are one less, so that the same bits have half the value, and the bits of a negative zero are its
// only NaN.
#define MATMUL_HALVED_F8(layout) ((layout) == MATMUL_LAYOUT_MFMA)
// Lanes of a sub-group; rows and columns of an instruction's result.
#define MATMUL_SUB_GROUP(layout) ((layout) == MATMUL_LAYOUT_MFMA ? 64 : (layout) == MATMUL_LAYOUT_DPAS_8 ? 8 : (layout) == MATMUL_LAYOUT_DPAS_16 ? 16 : 32)
#define MATMUL_FRAGMENT_ROWS(layout) ((layout) >= MATMUL_LAYOUT_DPAS_8 ? 8 : 16)
#define MATMUL_FRAGMENT_COLUMNS(layout) ((layout) == MATMUL_LAYOUT_MMA || (layout) == MATMUL_LAYOUT_DPAS_8 ? 8 : 16)
#define MATMUL_LINE_WORDS 16    // words of four bytes, along k, of a line in local memory
#define MATMUL_SPARSE_PLACES 8  // word of a line of a 2:4 matrix behind its numbers, two a quad; places from there on, four bits a quad
#define MATMUL_RESULT_ROWS 32   // rows of a tile that pass through local memory at a time on their way to the result
#define MATMUL_RESULT_PAD 4     // numbers behind each of them
#define MATMUL_MODEL_WORDS 16   // most words that an item gives to the model of an instruction

CLUTCH_SHARED_BEGIN

// Arguments of every product. For complex matrices n counts real columns, two of each; k counts two of each element, but one in matmul_items.
typedef struct {
  clutch_u64 m;        // rows of the result
  clutch_u64 n;        // columns of the result
  clutch_u64 k;        // elements along k; words of four bytes where matmul_panels reads words (CLUTCH_DOT)
  clutch_u64 batch;    // matrices
  clutch_i64 a_row;    // stride of a from a row to the next
  clutch_i64 a_k;      // stride of a along k
  clutch_i64 a_batch;  // stride of a from a matrix to the next
  clutch_i64 b_k;      // stride of b along k; of panels the columns of one
  clutch_i64 b_n;      // stride of b from a column to the next; of panels 1
  clutch_i64 b_batch;  // stride of b from a matrix to the next, 0 where all share one
  clutch_i32 shift;    // -128 where 128 was added to the signed bytes of the other operand, else 0; shift times a row's or column's sum is added to its sums
  clutch_u32 flat;     // 1: the columns of the result have stride 1, and those of the epilogue's tensors 1 or 0
} MatmulArgs;

// More arguments of the kernels with register tiles.
typedef struct {
  clutch_i64 b_panel;          // stride of b from a panel to the next
  clutch_u64 b_rows;           // rows of b before they were joined in words: those that exist
  clutch_u64 block_k;          // elements (or words) along k that are multiplied before the next tile's turn
  clutch_u64 rows_per_item;    // rows of the result that a work-item computes, a multiple of CLUTCH_ROWS
  clutch_u64 panels_per_item;  // panels of columns that a work-item computes
} MatmulPanelsArgs;

// matmul_pack and matmul_dot_pack.
typedef struct {
  clutch_u64 k;        // rows of b; of complex matrices twice as many
  clutch_u64 n;        // columns of b; of complex matrices twice as many
  clutch_i64 b_k;      // stride of b along k
  clutch_i64 b_n;      // stride of b from a column to the next
  clutch_i64 b_batch;  // stride of b from a matrix to the next
  clutch_u64 batch;    // matrices
} MatmulPackArgs;

// matmul_dot_rows.
typedef struct {
  clutch_u64 m;             // rows
  clutch_u64 k;             // bytes of a row
  clutch_i64 a_row;         // stride of a from a row to the next
  clutch_i64 a_k;           // stride of a along k
  clutch_i64 a_batch;       // stride of a from a matrix to the next
  clutch_u64 batch;         // matrices
  clutch_u64 row_words;     // words that are written of a row, those past its end as zeros
  clutch_u64 rows_abreast;  // rows whose words alternate, two of each in turn
  clutch_u32 flip;          // 0x80808080 adds 128 to each signed byte of a row, 0 leaves unsigned ones
  clutch_u32 unused;        // 0
} MatmulDotRowsArgs;

// matmul_lanes.
typedef struct {
  clutch_u64 m, n, k;                    // sizes of a matrix product
  clutch_u64 batch;                      // matrices
  clutch_u64 a_batch, b_batch, c_batch;  // strides from a matrix to the next
} MatmulLanesArgs;

// Parts of `part` elements that cover `size`.
CLUTCH_SHARED_FN clutch_u64 matmul_parts(clutch_u64 size, clutch_u64 part) { return (size + part - 1) / part; }

// Words of a row of k bytes.
CLUTCH_SHARED_FN clutch_u64 matmul_words(clutch_u64 k) { return (k + MATMUL_WORD_BYTES - 1) / MATMUL_WORD_BYTES; }

// Numbers of a panel of `rows` rows and `width` columns: [row][column], behind `sums` rows (1 for panels of words) of the columns' sums.
CLUTCH_SHARED_FN clutch_u64 matmul_panel_numbers(clutch_u64 rows, clutch_u64 sums, clutch_u64 width) { return (rows + sums) * width; }

// Where row `row` of a panel begins, in numbers. Packed matrices: [matrix][panel][row][column].
CLUTCH_SHARED_FN clutch_u64 matmul_panel_at(clutch_u64 matrix, clutch_u64 panels, clutch_u64 panel, clutch_u64 rows, clutch_u64 sums, clutch_u64 row,
                                            clutch_u64 width) {
  return (matrix * panels + panel) * matmul_panel_numbers(rows, sums, width) + (sums + row) * width;
}

// Rows as words, `abreast` of them in a bundle: [bundle][word / 2][row of the bundle][word % 2]. Words of a bundle, and where a word of its row 0 is.
CLUTCH_SHARED_FN clutch_u64 matmul_bundle_words(clutch_u64 row_words, clutch_u64 abreast) { return abreast * row_words; }
CLUTCH_SHARED_FN clutch_u64 matmul_word_at(clutch_u64 word, clutch_u64 abreast) { return word / 2 * 2 * abreast + word % 2; }

// Numbers of local memory that one operand of matmul_tiles takes, `tile` rows (or columns) and `depth` steps along k at a time: two blocks of [k][row], each
// step with a pad.
CLUTCH_SHARED_FN clutch_u64 matmul_tile_numbers(clutch_u64 tile, clutch_u64 depth, clutch_u64 pad) { return 2 * depth * (tile + pad); }

// Numbers of local memory of matmul_few, where an item has `each` results.
CLUTCH_SHARED_FN clutch_u64 matmul_few_numbers(clutch_u64 each) { return (MATMUL_FEW_LINES + each * MATMUL_FEW) * MATMUL_FEW_DEPTH; }

// Bytes of local memory of matmul_matrix, where a tile has `lines` rows and columns together; `modelled`: items that have the model of an instruction in its
// place.
CLUTCH_SHARED_FN clutch_u64 matmul_matrix_bytes(clutch_u64 lines, clutch_u64 modelled) {
  return 4 * (2 * lines * MATMUL_LINE_WORDS + modelled * MATMUL_MODEL_WORDS);
}

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
CLUTCH_SHARED_BEGIN
static_assert(sizeof(MatmulArgs) == 88 && sizeof(MatmulPanelsArgs) == 40 && sizeof(MatmulPackArgs) == 48 && sizeof(MatmulDotRowsArgs) == 72 &&
              sizeof(MatmulLanesArgs) == 56);
CLUTCH_SHARED_END
#endif

#endif
