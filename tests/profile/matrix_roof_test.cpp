// SPDX-License-Identifier: Apache-2.0
// Kernels by matrix instructions stand against the limits of these. On devices without them plain code stands in, whose speed is then the limit.
#include <clutch/profiler.hpp>

#include "encode/matrix_speed.hpp"
#include "profile/profile.hpp"
#include "support/fixture.hpp"
#include "support/matrix_layouts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <sstream>

#include <unistd.h>

namespace clutch::testing { namespace {

using namespace profiler;
using detail::MatrixStandIn;
using linalg::Numerics;

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

/// The kernel of that name; its name is empty if it is missing.
FunctionEvent kernel_of(const std::vector<FunctionEvent>& events, std::string_view name) {
  for (const FunctionEvent& e : events)
    if (e.activity_type == "kernel" && e.name == name) return e;
  return {};
}

TEST(MatrixRoofs, PlansTellWhatInstructionsMultiply) {
  for (const auto& [plan, numbers] : {std::pair{"matmul_matrix A_NAME=f16 LAYOUT=1 NUMBERS=1 STAND_IN=0", "f16"},
                                      {"flex_matrix_dkv LAYOUT=2 NUMBERS=2 STAND_IN=0", "bf16"},
                                      {"matmul_matrix LAYOUT=2 NUMBERS=3 # a note", "tf32"},
                                      {"matmul_matrix NUMBERS=4", "i8"},
                                      {"matmul_matrix NUMBERS=5 STAND_IN=0", "f8"},
                                      {"matmul_sparse_matrix NUMBERS=1 SPARSE_INSTRUCTION=1", "2:4 f16"},
                                      {"matmul_sparse_matrix NUMBERS=2 SPARSE_INSTRUCTION=0", "bf16"},
                                      {"matmul_sparse_matrix NUMBERS=4 SPARSE_INSTRUCTION=1", "2:4 i8"},
                                      {"matmul_sparse_matrix NUMBERS=3 SPARSE_INSTRUCTION=1", ""},
                                      {"matmul_matrix NUMBERS=9", ""},
                                      {"matmul_matrix NUMBERS=", ""},
                                      {"matmul_matrix", ""},
                                      {"matmul_tiles NUMBERS=1", ""},
                                      {"", ""}})
    EXPECT_EQ(detail::matrix_numbers_of(plan), numbers) << plan;
}

TEST(MatrixRoofs, FilesKeepThem) {
  const DeviceRoof roof = detail::roof_of_file(
      R"({"peak_flops":{"f32":1e12,"f64":5e11,"f16":2e12,"matrix f16":4e13,"matrix 2:4 i8":9e13,"matrix bf16":"much","matrix tf32":-1},"bandwidth":{"triad/4096":2e11}})");
  EXPECT_EQ(roof.flops, 1e12);
  EXPECT_EQ(roof.flops64, 5e11);
  EXPECT_EQ(roof.bytes, 2e11);
  EXPECT_EQ(roof.matrix, (std::vector<std::pair<std::string, double>>{{"2:4 i8", 9e13}, {"f16", 4e13}})) << "numbers above zero alone";
  EXPECT_TRUE(detail::roof_of_file("no roofline").matrix.empty());
}

/// What the plot of a page names limits of: those that are close in one text.
std::set<std::string, std::less<>> names_of_limits(const std::string& page) {
  std::set<std::string, std::less<>> names;
  constexpr std::string_view kBegin = ">matrix ";
  for (std::size_t at = page.find(kBegin); at != std::string::npos; at = page.find(kBegin, at)) {
    at += kBegin.size();
    const std::size_t end = page.find("</text>", at);
    while (at < end) {
      const std::size_t comma = std::min(page.find(", ", at), end);
      names.insert(page.substr(at, comma - at));
      at = comma + 2;
    }
  }
  return names;
}

TEST(MatrixRoofs, EventsStandAgainstTheirOwn) {
  const Device& device = test_devices().front();
  if (!can_run(device)) return;
  for (const MatrixLayout layout : {MatrixLayout::mma, MatrixLayout::wmma_halves, MatrixLayout::dpas_16}) {
    if (level() == "smoke" && layout != MatrixLayout::mma) continue;  // each has programs of its own
    SCOPED_TRACE(detail::name(layout));
    const MatrixStandIn stand_in(layout);
    const std::vector<std::pair<std::string, double>> speeds = detail::matrix_speeds(device);
    std::vector<std::string> names;
    for (const auto& [name, flops] : speeds) {
      names.push_back(name);
      EXPECT_GT(flops, 1e5) << name;
      EXPECT_LT(flops, 1e13) << name << ": plain code is no faster than that";
    }
    EXPECT_EQ(names, layout == MatrixLayout::mma           ? (std::vector<std::string>{"f16", "bf16", "tf32", "i8", "f8", "2:4 f16", "2:4 bf16", "2:4 i8"})
                     : layout == MatrixLayout::wmma_halves ? (std::vector<std::string>{"f16", "bf16", "i8", "f8", "2:4 f16", "2:4 bf16", "2:4 i8"})
                                                           : (std::vector<std::string>{"f16", "bf16", "i8"}));
    // So that the limits of compute bind.
    const DeviceRoof all{.flops = 1e9, .bytes = 1e16, .matrix = speeds};
    constexpr std::int64_t kSize = 64;
    const auto flops_of = [](std::int64_t k) { return 2.0 * kSize * kSize * static_cast<double>(k); };
    struct Call {
      std::string name, kernel;
      double flops;
      std::function<void()> run;
    };
    std::vector<Call> calls;
    auto product = [&](const char* numbers, DType dtype, Numerics numerics) {
      const Tensor a = whole_numbers({kSize, kSize}, dtype, device, 1), b = whole_numbers({kSize, kSize}, dtype, device, 2);
      calls.push_back({numbers, "matmul_matrix", flops_of(kSize), [=] { linalg::matmul(a, b, {.implementation = "matmul_matrix", .numerics = numerics}); }});
    };
    product("f16", DType::f16, Numerics::blocks);
    product("bf16", DType::bf16, Numerics::blocks);
    product("tf32", DType::f32, Numerics::tf32);
    product("i8", DType::i8, Numerics::blocks);
    product("f8", DType::f8e4m3fn, Numerics::f8);
    const Tensor pruned = sparse::prune_2_4(whole_numbers({kSize, kSize}, DType::f16, device, 3)), dense = whole_numbers({kSize, kSize}, DType::f16, device, 4);
    const auto compressed = std::make_shared<sparse::SemiStructured>(sparse::compress(pruned));
    calls.push_back({"2:4 f16", "matmul_sparse_matrix", flops_of(kSize / 2),
                     [=] { sparse::matmul(*compressed, dense, {.implementation = "matmul_sparse_matrix", .numerics = Numerics::blocks}); }});
    const Tensor q = whole_numbers({1, 2, kSize, 32}, DType::bf16, device, 5);
    calls.push_back(
        {"bf16", "flex_matrix", 2 * flops_of(32 + 32), [=] { attention::flex(q, q, q, {.implementation = "flex_matrix", .numerics = Numerics::blocks}); }});
    for (const Call& call : calls) {
      if (std::find(names.begin(), names.end(), call.name) == names.end()) continue;
      SCOPED_TRACE(call.kernel + " of " + call.name);
      call.run();
      for (const bool known : {true, false}) {
        Profiler profiler({.roof = known ? all : DeviceRoof{.flops = 1e9, .bytes = 1e16}});
        profiler.start();
        call.run();
        const Tensor plain = full({kSize, kSize}, 1, {.device = device});
        linalg::matmul(plain, plain, {.implementation = "matmul_items"});
        profiler.stop();
        const FunctionEvent e = kernel_of(profiler.events(), call.kernel), other = kernel_of(profiler.events(), "matmul_items");
        ASSERT_EQ(e.name, call.kernel);
        EXPECT_EQ(e.flops, call.flops);
        EXPECT_EQ(e.roof.matrix, call.name);
        EXPECT_NEAR(e.roof.gflops, call.flops / e.time_us() * 1e-3, 1e-6 * e.roof.gflops);
        const double limit = std::find_if(speeds.begin(), speeds.end(), [&](const auto& row) { return row.first == call.name; })->second;
        EXPECT_EQ(e.roof.binding, known ? "compute" : "");
        EXPECT_NEAR(e.roof.roof_us, known ? call.flops / limit * 1e6 : 0, 1e-6 * call.flops / limit * 1e6);
        EXPECT_NEAR(e.roof.roof_pct, known ? 100 * e.roof.roof_us / e.time_us() : 0, 1e-6 * e.roof.roof_pct);
        EXPECT_EQ(other.roof.matrix, "");
        EXPECT_NEAR(other.roof.roof_us, flops_of(kSize) / 1e9 * 1e6, 1e-3) << "other kernels stand against the limit of f32";
        for (const KeyAverage& a : profiler.key_averages())
          if (a.key == call.kernel) {
            EXPECT_EQ(a.roof.matrix, call.name);
            EXPECT_EQ(a.roof.roof_pct > 0, known);
          }
        const std::string table = profiler.table();
        EXPECT_NE(table.find(fmt::format("Matrix instructions: {} multiplies {}, {}", call.kernel, call.name, known ? "roof " : "whose roof is not known")),
                  std::string::npos)
            << table;
        const std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("clutch_matrix_roof_{}", ::getpid());
        std::filesystem::create_directories(folder);
        profiler.export_chrome_trace((folder / "trace.json").string());
        profiler.export_html((folder / "page.html").string());
        const nlohmann::json trace = nlohmann::json::parse(contents(folder / "trace.json"));
        const std::string page = contents(folder / "page.html");
        std::filesystem::remove_all(folder);
        int found = 0;
        for (const auto& event : trace.at("traceEvents"))
          if (event.value("cat", "") == "kernel" && event.at("name") == call.kernel) {
            ++found;
            EXPECT_EQ(event.at("args").at("matrix instructions"), call.name);
            EXPECT_EQ(event.at("args").at("roof"), known ? "compute" : "not known");
            EXPECT_EQ(event.at("args").contains("roof %"), known);
          } else if (event.contains("args")) {
            EXPECT_FALSE(event.at("args").contains("matrix instructions")) << event;
          }
        EXPECT_EQ(found, 1);
        EXPECT_EQ(trace.at("deviceProperties").at(0).contains(fmt::format("roof GFLOP/s of matrix instructions of {}", call.name)), known);
        EXPECT_NE(page.find(fmt::format("{} (matrix {})", known ? "compute" : "not known", call.name)), std::string::npos);
        EXPECT_EQ(names_of_limits(page).contains(call.name), known);
      }
    }
  }
}

}}  // namespace clutch::testing
