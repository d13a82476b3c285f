// SPDX-License-Identifier: Apache-2.0
// Kernels that are bad on purpose, each beside a good twin, through the whole way: Oclgrind, its plugin and the file that this writes. tests/gpu/count/run sets
// these up.
#include "gpu/count/model.hpp"
#include "support/fixture.hpp"

#include <gtest/gtest-spi.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

namespace clutch::testing { namespace {

using gpu_count::Counts;

/// What the plugin wrote of the launches with a label, summed; one launch here.
std::array<Counts, 2> read_counts(const std::string& label) {
  const char* path = std::getenv("GPU_COUNT_FILE");
  std::ifstream file(path ? path : "");
  EXPECT_TRUE(file) << "GPU_COUNT_FILE must name the plugin's file: run this by tests/gpu/count/run";
  std::array<Counts, 2> both;
  int lines = 0;
  std::string errors;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string field;
    std::getline(fields, field, '\t');
    if (field != label) continue;
    for (int skipped = 0; skipped < 3; ++skipped) std::getline(fields, field, '\t');  // kernel and sizes
    if (line.find("\terror: ") != std::string::npos) {
      errors += line + "\n";
      ++lines;
      continue;
    }
    Counts counts;
    Counts::each(counts, [&](const char* name, std::uint64_t& number) {
      fields >> field;
      EXPECT_EQ(field.substr(0, field.find('=')), name);
      number = std::strtoull(field.c_str() + field.find('=') + 1, nullptr, 10);
    });
    both[counts.width == 64] = counts;
    ++lines;
  }
  EXPECT_EQ(errors, "");
  EXPECT_EQ(lines, 2) << "one launch is labelled " << label;
  return both;
}

/// Launches a kernel `k` of `out`, `in` and the text's own; both tensors are zeros.
std::array<Counts, 2> count(const std::string& body, Geometry geometry, const std::string& before = "") {
  const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  static std::map<std::string, int> of_test;
  const std::string label = "pair/" + test + "/" + std::to_string(of_test[test]++);  // rank.py reads it: 0 is the good one, 1 the bad one
  const Device& device = test_devices().front();
  const Tensor out = zeros({1 << 14}, {.device = device}), in = zeros({1 << 14}, {.device = device});
  synchronize(device);
  const std::string text = before +
                           "__kernel void k(__global uchar* out_base, ulong out_offset, __global const uchar* in_base, ulong in_offset) {\n"
                           "  __global float* out = (__global float*)(out_base + out_offset);\n"
                           "  __global const float* in = (__global const float*)(in_base + in_offset);\n"
                           "  const int item = get_local_id(0), i = get_global_id(0);\n" +
                           body + "\n}\n";
  setenv("GPU_COUNT_LABEL", label.c_str(), 1);
  launch({.text = text, .entry = "k", .addressing = Addressing::base_and_offset}, geometry, {output(out), input(in)});
  synchronize(device);
  unsetenv("GPU_COUNT_LABEL");
  return read_counts(label);
}
constexpr Geometry kTwoGroups{.global = 128, .local = 64};
constexpr Geometry kOneGroup{.global = 64, .local = 64};

double busy(const Counts& c) { return static_cast<double>(c.busy) / static_cast<double>(c.issued() * c.width); }

TEST(CountPairs, RowsAndColumns) {
  const auto good = count("out[i] = in[i];", kTwoGroups), bad = count("out[i] = in[32 * i];", kTwoGroups);
  for (const Counts& c : good) {
    EXPECT_EQ(c.items, 128u);
    EXPECT_EQ(c.groups, 2u);
    EXPECT_EQ(c.load_pieces, 128 / c.width);
    EXPECT_EQ(c.load_sectors, 16u);
    EXPECT_EQ(c.load_ideal, 16u);
    EXPECT_EQ(c.store_sectors, 16u);
    EXPECT_EQ(c.store_ideal, 16u);
    EXPECT_EQ(c.scratch_pieces, 0u);
    EXPECT_EQ(busy(c), 1.0);
  }
  for (const Counts& c : bad) {
    EXPECT_EQ(c.load_sectors, 128u);
    EXPECT_EQ(c.load_lines, 128u);
    EXPECT_EQ(c.load_ideal, 16u);
    EXPECT_EQ(c.store_sectors, 16u);
  }
}

TEST(CountPairs, FirstElementBesideASector) {
  const auto good = count("out[i] = in[i];", kTwoGroups), bad = count("out[i] = in[i + 1];", kTwoGroups);
  EXPECT_EQ(good[0].load_sectors, 4u * 4);
  EXPECT_EQ(bad[0].load_sectors, 4u * 5);
  EXPECT_EQ(bad[1].load_sectors, 2u * 9);
  EXPECT_EQ(bad[0].load_ideal, 4u * 4);
}

TEST(CountPairs, ArraysOfStructures) {
  const auto good = count("out[i] = in[i] + in[4096 + i];", kTwoGroups), bad = count("out[i] = in[4 * i] + in[4 * i + 2];", kTwoGroups);
  EXPECT_EQ(good[0].load_sectors, 2u * 16);
  EXPECT_EQ(bad[0].load_sectors, 2u * 64);
  EXPECT_EQ(bad[0].load_touched, 64u);
}

TEST(CountPairs, BytesOneByOne) {
  const auto good = count("out[i] = ((__global const uint*)in)[i];", kTwoGroups);
  const auto bad = count("__global const uchar* b = (__global const uchar*)in + 4 * i; out[i] = b[0] + b[1] * 3 + b[2] * 5 + b[3] * 7;", kTwoGroups);
  EXPECT_EQ(good[0].load_pieces, 4u);
  EXPECT_EQ(bad[0].load_pieces, 16u);
  EXPECT_EQ(good[0].load_bytes, bad[0].load_bytes);
}

TEST(CountPairs, VectorsAreReadAtOnce) {
  const auto good = count("vstore4(vload4(i, in), i, out);", kTwoGroups);
  const auto bad = count("for (int k = 0; k < 4; ++k) out[4 * i + k] = in[4 * i + k];", kTwoGroups);
  EXPECT_EQ(good[0].load_pieces, 4u);
  EXPECT_EQ(good[0].load_sectors, 64u);
  EXPECT_EQ(good[0].load_ideal, 64u);
  EXPECT_EQ(bad[0].load_pieces, 16u);
  EXPECT_EQ(bad[0].load_sectors, 4u * 64);
  EXPECT_EQ(good[0].store_touched, bad[0].store_touched);
}

/// The simulator's compiler loads elements that are used one by one each for itself, and the simulator stores them so.
TEST(CountPairs, VectorsThatAreTakenApart) {
  const auto good = count("const float4 v = ((__global const float4*)in)[i]; out[i] = v.x + v.y * 2 + v.z * 3 + v.w * 4;", kTwoGroups);
  const auto bad = count("out[i] = in[4 * i] + in[4 * i + 1] * 2 + in[4 * i + 2] * 3 + in[4 * i + 3] * 4;", kTwoGroups);
  EXPECT_EQ(good[0].load_pieces, 4u);
  EXPECT_EQ(good[0].load_sectors, 64u);
  EXPECT_EQ(bad[0].load_pieces, 16u);
  EXPECT_EQ(bad[0].load_sectors, 4u * 64);
  EXPECT_EQ(good[0].load_bytes, bad[0].load_bytes);
  const auto stores = count("const float x = in[i]; ((__global float4*)out)[i] = (float4)(x, x + 1, x * 2, x * x);", kTwoGroups);
  EXPECT_EQ(stores[0].store_pieces, 4u);
  EXPECT_EQ(stores[0].store_sectors, 64u);
  EXPECT_EQ(stores[0].store_bytes, 128u * 16);
}

TEST(CountPairs, ColumnsOfLocalMemory) {
  const std::string body = "__local float t[64 * 33]; t[item * STRIDE] = in[i]; barrier(CLK_LOCAL_MEM_FENCE); out[i] = t[(63 - item) * STRIDE];";
  const auto good = count(body, kTwoGroups, "#define STRIDE 33\n"), bad = count(body, kTwoGroups, "#define STRIDE 32\n");
  for (const auto& both : {good, bad}) {
    EXPECT_EQ(both[0].local_pieces, 8u);
    EXPECT_EQ(both[0].local_ideal, 8u);
    EXPECT_EQ(both[1].local_pieces, 4u);
    EXPECT_EQ(both[1].local_ideal, 8u);
    EXPECT_EQ(both[0].barriers, 2u);
  }
  EXPECT_EQ(good[0].local_passes, 8u);
  EXPECT_EQ(good[1].local_passes, 8u);
  EXPECT_EQ(bad[0].local_passes, 8u * 32);
  EXPECT_EQ(bad[1].local_passes, 8u * 32);
}

TEST(CountPairs, VectorsOfLocalMemory) {
  const std::string body = "__local float4 t[128]; t[item * STEP] = vload4(i, in); barrier(CLK_LOCAL_MEM_FENCE); vstore4(t[(63 - item) * STEP], i, out);";
  const auto good = count(body, kOneGroup, "#define STEP 1\n"), bad = count(body, kOneGroup, "#define STEP 2\n");
  EXPECT_EQ(good[0].local_ideal, 2u * 8);
  EXPECT_EQ(good[0].local_passes, 2u * 8);
  EXPECT_EQ(bad[0].local_passes, 2u * 16);
}

TEST(CountPairs, OneWordForAll) {
  const std::string body = "__local float t[64]; t[item] = in[i]; barrier(CLK_LOCAL_MEM_FENCE); out[i] = t[AT];";
  const auto good = count(body, kOneGroup, "#define AT (i & 32)\n"), bad = count(body, kOneGroup, "#define AT (item * 2 & 63)\n");
  EXPECT_EQ(good[0].local_passes, 2u + 2);
  EXPECT_EQ(bad[0].local_passes, 2u + 4);
}

TEST(CountPairs, BranchesWithinASubGroup) {
  const std::string body =
      "float x = in[i]; if (WHICH) { for (int k = 0; k < 200; ++k) x = x * x + 1; } else { for (int k = 0; k < 200; ++k) x = fma(x, 3.0f, -x * x); } out[i] = "
      "x;";
  const auto good = count(body, kOneGroup, "#define WHICH (item / 32)\n"), bad = count(body, kOneGroup, "#define WHICH (item % 2)\n");
  EXPECT_GT(busy(good[0]), 0.99);
  EXPECT_LT(busy(bad[0]), 0.52);
  EXPECT_GT(busy(bad[0]), 0.49);
  EXPECT_LT(busy(good[1]), 0.52);  // a sub-group of 64 has both halves
}

TEST(CountPairs, LoopsThatEndAtDifferentTurns) {
  const std::string body = "float x = 0; for (int k = 0; k < TURNS; ++k) x += in[64 * k + item]; out[i] = x;";
  const auto good = count(body, kOneGroup, "#define TURNS (16 + (i >> 20))\n"), bad = count(body, kOneGroup, "#define TURNS (item % 32)\n");
  EXPECT_EQ(good[0].load_pieces, 2u * 16);
  EXPECT_EQ(good[0].load_sectors, 2u * 16 * 4);
  EXPECT_EQ(bad[0].load_pieces, 2u * 31);
  EXPECT_EQ(bad[0].load_bytes, 4u * 2 * 31 * 32 / 2);
  EXPECT_EQ(busy(good[0]), 1.0);
  EXPECT_LT(busy(bad[0]), 0.6);
}

TEST(CountPairs, GroupsThatFillHalfASubGroup) {
  const auto good = count("out[i] = in[i];", {.global = 128, .local = 64}), bad = count("out[i] = in[i];", {.global = 128, .local = 32});
  EXPECT_EQ(busy(good[1]), 1.0);
  EXPECT_EQ(busy(bad[1]), 0.5);
  EXPECT_EQ(busy(bad[0]), 1.0);
  EXPECT_EQ(bad[1].sub_groups, 4u);
  EXPECT_EQ(good[1].sub_groups, 2u);
}

TEST(CountPairs, ArraysThatStayInMemory) {
  const std::string fill = "float a[8]; for (int k = 0; k < 8; ++k) a[k] = in[64 * k + item];";
  const auto good = count(fill + "float x = 0; for (int k = 0; k < 8; ++k) x = fma(x, 2.0f, a[k]); out[i] = x;", kOneGroup);
  const auto bad = count(fill + "out[i] = a[(int)in[4096 + i] & 7];", kOneGroup);
  EXPECT_EQ(good[0].scratch_bytes, 0u);
  EXPECT_EQ(bad[0].scratch_bytes, 64u * 4 * 9);  // 8 written, one read
  EXPECT_EQ(bad[0].scratch_pieces, 2u * 9);
  EXPECT_EQ(good[0].load_bytes, 64u * 4 * 8);
  // Its elements are named by constants, but it is handed to a function and its loops are many.
  const std::string turn =
      "void turn(float* a) {\n#pragma unroll\nfor (int i = 0; i < 8; ++i)\n#pragma unroll\nfor (int k = 0; k < 8; ++k) a[k] = fma(a[k], a[(k + i) % 8], "
      "1.0f);\n}\n";
  const auto unrolled = count(fill + "turn(a); float x = 0; for (int k = 0; k < 8; ++k) x = fma(x, 2.0f, a[k]); out[i] = x;", kOneGroup, turn);
  EXPECT_EQ(unrolled[0].scratch_pieces, 0u);
}

TEST(CountPairs, FewGroupsForManyRows) {
  const std::string body = "for (int row = i; row < 2048; row += get_global_size(0)) out[row] = in[row] * 2;";
  const auto good = count(body, {.global = 2048, .local = 64}), bad = count(body, kOneGroup);
  EXPECT_EQ(good[0].sub_groups, 64u);
  EXPECT_EQ(bad[0].sub_groups, 2u);
  EXPECT_EQ(good[0].load_pieces, bad[0].load_pieces);
  EXPECT_GT(bad[0].longest, 10 * good[0].longest);
}

TEST(CountPairs, AtomicsAtOneAddress) {
  const std::string body = "atomic_add((volatile __global int*)out + AT, 1);";
  const auto good = count(body, kTwoGroups, "#define AT i\n"), bad = count(body, kTwoGroups, "#define AT 0\n");
  EXPECT_EQ(good[0].atomics, 128u);
  EXPECT_EQ(good[0].atomic_passes, 4u);
  EXPECT_EQ(bad[0].atomics, 128u);
  EXPECT_EQ(bad[0].atomic_passes, 128u);
  EXPECT_EQ(bad[0].store_sectors, 0u);
}

TEST(CountPairs, BarriersInALoop) {
  const std::string body = "__local float t[64]; float x = 0; for (int k = 0; k < 8; ++k) { t[item] = in[i + k]; BARRIER x += t[item]; BARRIER } out[i] = x;";
  const auto good = count("float x = 0; for (int k = 0; k < 8; ++k) x += in[i + k]; out[i] = x;", kTwoGroups);
  const auto bad = count(body, kTwoGroups, "#define BARRIER barrier(CLK_LOCAL_MEM_FENCE);\n");
  EXPECT_EQ(good[0].barriers, 0u);
  EXPECT_EQ(bad[0].barriers, 2u * 16);
  EXPECT_EQ(bad[1].barriers, 2u * 16);
}

TEST(CountPairs, TablesOfConstants) {
  const std::string table = "__constant float table[64] = {1, 2, 3, 4, 5, 6, 7, 8};\n";
  const auto good = count("out[i] = table[(int)in[i / 64] & 63];", kOneGroup, table), bad = count("out[i] = table[i & 63];", kOneGroup, table);
  EXPECT_EQ(good[0].constant_pieces, 2u);
  EXPECT_EQ(good[0].constant_passes, 2u);
  EXPECT_EQ(bad[0].constant_passes, 64u);
}

/// Items count by x first.
TEST(CountPairs, GroupsOfTwoDimensions) {
  const Geometry square{.global = 16, .local = 16, .global_y = 8, .local_y = 8};
  const auto good = count("out[item + 16 * get_local_id(1)] = in[item + 16 * get_local_id(1)];", square);
  const auto bad = count("out[8 * item + get_local_id(1)] = in[8 * item + get_local_id(1)];", square);
  EXPECT_EQ(good[0].load_sectors, 16u);
  EXPECT_EQ(bad[0].load_sectors, 4u * 16);
  EXPECT_EQ(bad[0].load_touched, 16u);
}

/// What NVIDIA's profiler counted of the same kernel on a GPU: 8 sectors a request of loads, all of whose bytes are used, and 32 of stores, of which a quarter
/// is. (github.com/eduardo4jesus/cuda-training-series, exercises/hw8/task1/task1b.profile: 4096 x 4096 doubles; its groups read in rows and write in columns.)
TEST(CountPairs, AsAProfilerCountsOnHardware) {
  const std::string text = "const int row = get_global_id(1); ((__global double*)out)[64 * i + row] = ((__global const double*)in)[64 * row + i];";
  const Counts c = count(text, {.global = 64, .local = 32, .global_y = 64, .local_y = 32})[0];
  EXPECT_EQ(c.load_pieces, 64u * 64 / 32);
  EXPECT_EQ(c.load_sectors, 8 * c.load_pieces);
  EXPECT_EQ(c.load_ideal, c.load_sectors);
  EXPECT_EQ(c.store_pieces, c.load_pieces);
  EXPECT_EQ(c.store_sectors, 32 * c.store_pieces);
  EXPECT_EQ(4 * c.store_ideal, c.store_sectors);
}

/// A launch that Oclgrind objects to has no counts.
TEST(CountPairs, LaunchesWithFindingsAreSaid) { EXPECT_NONFATAL_FAILURE(count("out[(1 << 28) + i] = in[i];", kOneGroup), "error: Invalid write"); }

/// What instructions weigh, on a kernel whose instructions are known: x is x * y + 1 by fma, 64 times in a chain.
TEST(CountPairs, PipesOfInstructions) {
  const std::string body = "float x = in[i], y = in[i + 64]; for (int k = 0; k < 64; ++k) x = fma(x, y, 1.0f); out[i] = x;";
  const auto floats = count(body, kOneGroup);
  EXPECT_EQ(floats[0].issues[static_cast<std::size_t>(gpu_count::Pipe::f32)], 2u * 64);
  EXPECT_EQ(floats[0].issues[static_cast<std::size_t>(gpu_count::Pipe::memory)], 2u * 3);
  const auto vectors = count("float4 x = vload4(i, in); for (int k = 0; k < 16; ++k) x = fma(x, x, x); vstore4(x, i, out);", kOneGroup);
  EXPECT_EQ(vectors[0].issues[static_cast<std::size_t>(gpu_count::Pipe::f32)], 2u * 64);
  // Arithmetic changes and takes away signs of what it reads; what is stored has an instruction of its own.
  const auto signs = count("float x = in[i]; for (int k = 0; k < 64; ++k) x = fma(-x, fabs(x), 1.0f); out[i] = x;", kOneGroup);
  EXPECT_EQ(signs[0].issues[static_cast<std::size_t>(gpu_count::Pipe::f32)], 2u * 64);
  for (const char* sign : {"out[i] = -in[i];", "out[i] = fabs(in[i]);"})
    EXPECT_EQ(count(sign, kOneGroup)[0].issues[static_cast<std::size_t>(gpu_count::Pipe::f32)], 2u) << sign;
  const auto roots = count("out[i] = sqrt(in[i]) / in[i + 64];", kOneGroup);
  EXPECT_EQ(roots[0].issues[static_cast<std::size_t>(gpu_count::Pipe::special)], 2u * 2);
}

}}  // namespace clutch::testing
