// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of sparse24.cl and the layout of what they write: canonical values and metadata, and the packings that the products of matmul.cl
// read. Strides count elements.
//
// A quad (`groups` in names) is four numbers along k, at most two of them not zero. Quad g of a row, g = k / 4:
//   values     two numbers, values[row][2 g] and values[row][2 g + 1]
//   metadata   four bits: bits 0-1 the place (0 to 3) of the first number in the quad, bits 2-3 that of the second. An even quad has the low half of its
//              byte, an odd one the high half:
//
//              bit    7   6     5   4     3   2     1   0
//                   second    first     second    first
//                   quad 2 i + 1        quad 2 i
#ifndef CLUTCH_SPARSE24_ARGS_H
#define CLUTCH_SPARSE24_ARGS_H
#include "common/shared.h"

// CLUTCH_RULE, which numbers pruning keeps (sparse::PruneRule). These are macros because kernels get them as defines.
#define SPARSE24_GROUPS 0      // the two of largest magnitude of each quad
#define SPARSE24_VALUES 1      // of each 4 x 4 tile two in each row and column, the largest values first
#define SPARSE24_MAGNITUDES 2  // the same, the largest magnitudes first
#define SPARSE24_CAUSAL 3      // the same row by row, one number in each of the first two rows

#define SPARSE24_PACK_BLOCKS 16  // blocks along k that a work-item of sparse24_pack takes, whose parts of a row are neighbours in memory

// The packing for dot products: a block is 32 elements along k, eight quads.
#define SPARSE24_DOT_K 32      // elements of a block
#define SPARSE24_DOT_STEPS 4   // words of numbers of a block's row; four numbers each, of eight elements along k
#define SPARSE24_STEP_WORDS 2  // words of a column of the dense operand that a step meets, four bytes each

CLUTCH_SHARED_BEGIN

// sparse24_groups, sparse24_tiles and sparse24_compress.
typedef struct {
  clutch_u64 m;       // rows
  clutch_u64 k;       // columns
  clutch_i64 w_row;   // stride of w from a row to the next
  clutch_i64 w_k;     // stride of w along a row
  clutch_u32 flag;    // sparse24_groups: 1 where stores bypass the caches; compress: 1 where a quad with more than two numbers is reported; tiles: 0
  clutch_u32 unused;  // 0
} Sparse24Args;

// sparse24_decompress, sparse24_pack and sparse24_pack_words.
typedef struct {
  clutch_u64 m;             // rows
  clutch_u64 k;             // columns
  clutch_u64 block_groups;  // quads of a block along k (sparse24_pack; else 0)
} Sparse24PackArgs;

// sparse24_cutlass.
typedef struct {
  clutch_u64 m;              // rows
  clutch_u64 columns;        // words of a row
  clutch_u64 rows_of_group;  // rows that CUTLASS's order shuffles together: 32 of two-byte words, 16 of four-byte ones
  clutch_u32 back;           // 1: from CUTLASS's order
  clutch_u32 unused;         // 0
} Sparse24CutlassArgs;

CLUTCH_SHARED_FN clutch_u64 sparse24_parts(clutch_u64 size, clutch_u64 part) { return (size + part - 1) / part; }

// Quads of a row of k numbers, and bytes of their metadata.
CLUTCH_SHARED_FN clutch_u64 sparse24_row_groups(clutch_u64 k) { return (k + 3) / 4; }
CLUTCH_SHARED_FN clutch_u64 sparse24_row_metadata(clutch_u64 row_groups) { return (row_groups + 1) / 2; }

// sparse24_pack: index of the first packed quad of a block and a tile. Layout: [block along k][tile of rows][quad of the block].
CLUTCH_SHARED_FN clutch_u64 sparse24_packed_group(clutch_u64 block, clutch_u64 tile, clutch_u64 tiles, clutch_u64 block_groups) {
  return (block * tiles + tile) * block_groups;
}
// Where the numbers and the words of places of a packed quad begin: [first, second][row] numbers; [row] words of places, or with CLUTCH_PACKS_CODES two words.
CLUTCH_SHARED_FN clutch_u64 sparse24_packed_numbers(clutch_u64 group, clutch_u64 rows) { return group * 2 * rows; }
CLUTCH_SHARED_FN clutch_u64 sparse24_packed_places(clutch_u64 group, clutch_u64 rows, clutch_u64 codes) { return group * (codes ? 2 : rows); }

// sparse24_pack_words: a tile of `rows` rows is [row] sums, then [block][places, 4 words of numbers][row]. Blocks of a row, words of a block, of a tile.
CLUTCH_SHARED_FN clutch_u64 sparse24_dot_blocks(clutch_u64 k) { return (k + SPARSE24_DOT_K - 1) / SPARSE24_DOT_K; }
CLUTCH_SHARED_FN clutch_u64 sparse24_dot_block_words(clutch_u64 rows) { return (1 + SPARSE24_DOT_STEPS) * rows; }
// Where block `block` of a tile begins, in words.
CLUTCH_SHARED_FN clutch_u64 sparse24_dot_block_at(clutch_u64 block, clutch_u64 rows) { return rows + block * sparse24_dot_block_words(rows); }
CLUTCH_SHARED_FN clutch_u64 sparse24_dot_words(clutch_u64 blocks, clutch_u64 rows) { return sparse24_dot_block_at(blocks, rows); }
// Words of a column of the dense operand.
CLUTCH_SHARED_FN clutch_u64 sparse24_column_words(clutch_u64 blocks) { return blocks * SPARSE24_DOT_STEPS * SPARSE24_STEP_WORDS; }

CLUTCH_SHARED_END

#ifndef __OPENCL_VERSION__
CLUTCH_SHARED_BEGIN
static_assert(sizeof(Sparse24Args) == 40 && sizeof(Sparse24PackArgs) == 24 && sizeof(Sparse24CutlassArgs) == 32);
CLUTCH_SHARED_END
#endif

#endif
