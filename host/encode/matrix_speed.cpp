// SPDX-License-Identifier: Apache-2.0
#include "encode/matrix_speed.hpp"

#include <clutch/error.hpp>
#include <clutch/kernel.hpp>

#include "encode/matrix_instructions.hpp"
#include "program/program.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"
#include "self_test/args.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

struct NumbersName {
  int kind;
  bool sparse;
  std::string_view name;
};
constexpr std::array kNames{
    NumbersName{MATMUL_NUMBERS_F16, false, "f16"},      NumbersName{MATMUL_NUMBERS_BF16, false, "bf16"},   NumbersName{MATMUL_NUMBERS_TF32, false, "tf32"},
    NumbersName{MATMUL_NUMBERS_BYTES, false, "i8"},     NumbersName{MATMUL_NUMBERS_F8, false, "f8"},       NumbersName{MATMUL_NUMBERS_F16, true, "2:4 f16"},
    NumbersName{MATMUL_NUMBERS_BF16, true, "2:4 bf16"}, NumbersName{MATMUL_NUMBERS_BYTES, true, "2:4 i8"},
};

int numbers_of_word(int kind) { return kind == MATMUL_NUMBERS_BYTES || kind == MATMUL_NUMBERS_F8 ? 4 : kind == MATMUL_NUMBERS_TF32 ? 1 : 2; }

/// Best of some launches, which get longer until one takes a while.
double measure(Runtime& runtime, MatrixInstructions instructions, const NumbersName& of) {
  const int layout = static_cast<int>(instructions.layout);
  Stream stream(runtime.default_stream());
  Defines defines;
  defines.set("CLUTCH_LAYOUT", layout).set("CLUTCH_NUMBERS", of.kind).set("CLUTCH_STAND_IN", instructions.stand_in);
  if (of.kind == MATMUL_NUMBERS_F8) defines.set("CLUTCH_A_E5M2", false).set("CLUTCH_B_E5M2", false);
  defines.set("CLUTCH_A_UNSIGNED", false).set("CLUTCH_B_UNSIGNED", false).set("CLUTCH_SPARSE_INSTRUCTION", of.sparse);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_matrix_speed", defines);
  const auto lanes = static_cast<std::uint64_t>(MATMUL_SUB_GROUP(layout));
  // Sub-groups of the device's that run side by side, and some more.
  const std::uint64_t groups = static_cast<std::uint64_t>(runtime.traits().compute_units) * (instructions.stand_in ? 1 : 64);
  const Tensor out = empty({static_cast<std::int64_t>(groups * lanes)}, {.dtype = DType::i32, .device = Device(&runtime.device())}, stream);
  const double of_line =
      2.0 * MATMUL_FRAGMENT_ROWS(layout) * MATMUL_FRAGMENT_COLUMNS(layout) * numbers_of_word(of.kind) * MATMUL_LINE_WORDS / (of.sparse ? 2 : 1);
  double best = 0;
  std::uint32_t times = instructions.stand_in ? 4 : 256;
  for (int i = 0; i < 12; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    {
      Encoder encoder(stream, "self_test");
      encoder.output(out).value(times).dispatch(KernelHandle(&kernel), {.global = groups * lanes, .local = lanes});
    }
    stream.synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, of_line * CLUTCH_SELF_TEST_CHAINS * times * static_cast<double>(groups) / seconds);
    if (seconds < 5e-3 && times < (1u << 20)) times *= 4;
  }
  return best;
}

}  // namespace

std::string_view matrix_numbers_of(std::string_view plan) {
  // Plans print their defines: KernelPlan::to_string().
  constexpr std::string_view kKind = " NUMBERS=";
  const auto at = plan.find(kKind);
  const std::string_view entry = plan.substr(0, plan.find(' '));
  if (at == std::string_view::npos || entry.find("_matrix") == std::string_view::npos || at + kKind.size() >= plan.size()) return {};
  const int kind = plan[at + kKind.size()] - '0';
  const bool sparse = plan.find(" SPARSE_INSTRUCTION=1") != std::string_view::npos;
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const NumbersName& row) { return row.kind == kind && row.sparse == sparse; });
  return found == kNames.end() ? std::string_view() : found->name;
}

std::vector<std::pair<std::string, double>> matrix_speeds(const Device& device) {
  Runtime& runtime = runtime_for(device);
  std::vector<std::pair<std::string, double>> speeds;
  for (const NumbersName& row : kNames) {
    const MatrixInstructions found = matrix_instructions(runtime, {.kind = row.kind, .sparse = row.sparse}, true);
    if (found.layout == MatrixLayout::none) continue;
    try {
      speeds.emplace_back(row.name, measure(runtime, found, row));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::build_failure) throw;  // others may be temporary
      log_line(LogLevel::warn, fmt::format("device {}: the speed of matrix instructions of {} is not known: {}", runtime.device().index, row.name, e.what()));
    }
  }
  return speeds;
}

}}}  // namespace clutch::v0::detail
