// SPDX-License-Identifier: Apache-2.0
// Well-known kernels (public.cl) at small sizes on the simulator, for scripts/gpu-cost --published; their results are checked. Labels: "public", name, work,
// and what the published shape has: groups, work, flops, bytes. With PUBLISHED_PROGRAMS, the name of a folder, each kernel's text is written there instead, for
// compilers of GPUs: <name>.cl, whose first line says entry and items of a group.
#include "support/fixture.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

namespace clutch::testing { namespace {

std::string text_of_kernels() {
  std::ifstream file(CLUTCH_SOURCE "/tests/gpu/count/public.cl");
  EXPECT_TRUE(file);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Device& device() { return test_devices().front(); }

struct Public {
  std::string name, entry, defines;
  std::uint64_t items = 0;  // of a group
};

/// Counts a launch, or writes its program.
class PublicRun {
 public:
  explicit PublicRun(Public kernel) : kernel_(std::move(kernel)) {}
  bool writes_programs() {
    const char* folder = std::getenv("PUBLISHED_PROGRAMS");
    if (!folder) return false;
    std::ofstream(fmt::format("{}/{}.cl", folder, kernel_.name)) << "// " << kernel_.entry << ' ' << kernel_.items << '\n'
                                                                 << kernel_.defines << text_of_kernels();
    return true;
  }
  void count(Geometry geometry, const std::string& label, std::initializer_list<Argument> arguments) {
    synchronize(device());  // what makes the operands has no label
    setenv("GPU_COUNT_LABEL", label.c_str(), 1);
    launch({.text = kernel_.defines + text_of_kernels(), .entry = kernel_.entry.c_str(), .addressing = Addressing::base_and_offset}, geometry, arguments);
    synchronize(device());
    unsetenv("GPU_COUNT_LABEL");
  }
  std::string label(double work, double groups, double all_work, double flops, double bytes) const {
    return fmt::format("public/{}/{}/{}/{}/{}/{}", kernel_.name, work, groups, all_work, flops, bytes);
  }

 private:
  Public kernel_;
};

std::vector<float> small_numbers(std::int64_t count) {
  std::vector<float> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 20 & 7) - 3);
  return v;
}

void transpose(const std::string& name, const std::string& entry, const std::string& defines, int tile, std::uint64_t across, std::uint64_t down) {
  PublicRun run({name, entry, defines, across * down});
  if (run.writes_programs()) return;
  constexpr double kSize = 32768;
  for (const int n : {128, 256}) {
    const std::vector<float> values = small_numbers(std::int64_t{n} * n);
    const Tensor in = from_host(values, {n, n}, device()), out = zeros({n, n}, {.device = device()});
    const auto tiles = static_cast<std::uint64_t>(n / tile);
    run.count({.global = tiles * across, .local = across, .global_y = tiles * down, .local_y = down},
              run.label(static_cast<double>(n) * n, kSize / tile * kSize / tile, kSize * kSize, 0, 8 * kSize * kSize), {output(out), input(in), value(n)});
    EXPECT_EQ(out.to_host<float>(), in.mT().contiguous().to_host<float>()) << name;
  }
}

TEST(CountPublic, Transposes) {
  auto tiles = [](int rows, int pad) { return fmt::format("#define PUBLIC_TRANSPOSE_TILED\n#define TILE 32\n#define ROWS {}\n#define PAD {}\n", rows, pad); };
  transpose("transpose, naive", "transpose_naive", "#define PUBLIC_TRANSPOSE_NAIVE\n", 32, 32, 32);
  transpose("transpose, tiles", "transpose_tiled", tiles(32, 0), 32, 32, 32);
  transpose("transpose, padded tiles", "transpose_tiled", tiles(32, 1), 32, 32, 32);
  transpose("transpose, 2 rows an item", "transpose_tiled", tiles(16, 1), 32, 32, 16);
  transpose("transpose, 4 rows an item", "transpose_tiled", tiles(8, 1), 32, 32, 8);
  transpose("transpose, quads", "transpose_quads", "#define PUBLIC_TRANSPOSE_QUADS\n#define TILE 64\n#define ROWS 8\n", 64, 16, 8);
}

TEST(CountPublic, Sums) {
  constexpr std::uint64_t kGroup = 512;
  constexpr double kSize = 1 << 30, kGroups = 1024;
  for (const auto& [name, width] : {std::pair{"sum", 1}, {"sum, pairs", 2}, {"sum, quads", 4}}) {
    PublicRun run({name, "sum_groups", fmt::format("#define PUBLIC_SUM\n#define VEC {}\n#define GROUP {}\n", width, kGroup), kGroup});
    if (run.writes_programs()) continue;
    for (const int each : {16, 32}) {
      constexpr int kFew = 2;
      const int n = kFew * static_cast<int>(kGroup) * each;
      std::vector<std::int32_t> values(static_cast<std::size_t>(n));
      std::iota(values.begin(), values.end(), -7);
      const Tensor in = from_host(values, {n}, device()), out = zeros({kFew}, {.dtype = DType::i32, .device = device()});
      run.count({.global = kFew * kGroup, .local = kGroup}, run.label(n, kGroups, kSize, 0, 4 * kSize), {output(out), input(in), value(n)});
      const auto sums = out.to_host<std::int32_t>();
      EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0), std::accumulate(values.begin(), values.end(), 0)) << name;
    }
  }
}

/// Products of 4096 x 4096. At the small sizes one group computes its tile, and k grows.
void matmul(const std::string& name, const std::string& entry, const std::string& defines, int bm, int bn, std::uint64_t items) {
  PublicRun run({name, entry, defines, items});
  if (run.writes_programs()) return;
  constexpr double kSize = 4096;
  const int n = std::max({bm, bn, 64});
  for (const int k : {32, 64}) {
    const std::vector<float> values = small_numbers(std::int64_t{2} * n * k);
    const Tensor in = from_host(values, {2 * n * k}, device()), out = zeros({n, n}, {.device = device()});
    const auto groups_y = static_cast<std::uint64_t>(n / bm), groups_x = static_cast<std::uint64_t>(n / bn);
    run.count({.global = groups_x * items, .local = items, .global_y = groups_y, .local_y = 1},
              run.label(static_cast<double>(n) * n * k, kSize / bm * kSize / bn, kSize * kSize * kSize, 2 * kSize * kSize * kSize, 12 * kSize * kSize),
              {output(out), input(in), value(n), value(k)});
    const Tensor a = in.slice(0, 0, n * k).reshape({n, k}), b = in.slice(0, n * k, 2 * n * k).reshape({k, n});
    // Small integers: the sums are exact in any order.
    EXPECT_EQ(out.to_host<float>(), linalg::matmul(a, b).to_host<float>()) << name;
  }
}

TEST(CountPublic, Products) {
  auto tiles = [](const char* which, int bm, int bn, int bk, int tm, int tn) {
    return fmt::format("#define {}\n#define BM {}\n#define BN {}\n#define BK {}\n#define TM {}\n#define TN {}\n", which, bm, bn, bk, tm, tn);
  };
  matmul("matmul, items down rows", "matmul_items", "#define PUBLIC_MATMUL_ITEMS\n#define ALONG_ROWS 0\n", 32, 32, 1024);
  matmul("matmul, items along rows", "matmul_items", "#define PUBLIC_MATMUL_ITEMS\n#define ALONG_ROWS 1\n", 32, 32, 1024);
  matmul("matmul, blocks", "matmul_blocks", "#define PUBLIC_MATMUL_BLOCKS\n", 32, 32, 1024);
  matmul("matmul, columns of 8", "matmul_columns", tiles("PUBLIC_MATMUL_COLUMNS", 64, 64, 8, 8, 1), 64, 64, 512);
  matmul("matmul, tiles of 8 x 8", "matmul_tiles", tiles("PUBLIC_MATMUL_TILES", 128, 128, 8, 8, 8), 128, 128, 256);
  matmul("matmul, tiles of quads", "matmul_quads", tiles("PUBLIC_MATMUL_QUADS", 128, 128, 8, 8, 8), 128, 128, 256);
  matmul("matmul, waves", "matmul_waves", tiles("PUBLIC_MATMUL_WAVES", 128, 128, 8, 4, 4), 128, 128, 256);
}

}}  // namespace clutch::testing
