// SPDX-License-Identifier: Apache-2.0
#include "encode/matrix_instructions.hpp"

#include <clutch/kernel.hpp>

#include "program/disk_cache.hpp"
#include "runtime/quirks.hpp"
#include "runtime/recorder.hpp"
#include "runtime/settings.hpp"
#include "runtime/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

/// Layouts whose proofs have run on a device that has them: the suite with CLUTCH_MATRIX_INSTRUCTIONS=on.
constexpr std::array<MatrixLayout, 0> kProved{};

std::atomic<MatrixLayout> g_stand_in{MatrixLayout::none};

/// 89 of compute capability 8.9; 0 if the device does not tell.
cl_uint compute_capability(const DeviceRecord& d) {
  constexpr cl_device_info kMajor = 0x4000, kMinor = 0x4001;  // CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, _MINOR_NV
  cl_uint major = 0, minor = 0;
  if (clGetDeviceInfo(d.id, kMajor, sizeof major, &major, nullptr) != CL_SUCCESS) return 0;
  return clGetDeviceInfo(d.id, kMinor, sizeof minor, &minor, nullptr) == CL_SUCCESS ? 10 * major + minor : 10 * major;
}

/// What a device says that it has. Drivers tell it by an extension, by a capability, or by the name of the instruction set alone.
MatrixLayout claimed_layout(const DeviceRecord& d) {
  const std::string& device = d.facts.name;
  if (d.has_extension("cl_intel_subgroup_matrix_multiply_accumulate")) {
    const int least = claimed_traits(d).least_sub_group;
    return least == 8 ? MatrixLayout::dpas_8 : least == 16 ? MatrixLayout::dpas_16 : MatrixLayout::none;
  }
  if (d.has_extension("cl_nv_device_attribute_query")) {
    return compute_capability(d) >= 80 ? MatrixLayout::mma : MatrixLayout::none;
  }
  if (device.starts_with("gfx90a") || device.starts_with("gfx94") || device.starts_with("gfx95")) return MatrixLayout::mfma;
  if (device.starts_with("gfx11")) return MatrixLayout::wmma;
  if (device.starts_with("gfx12")) return MatrixLayout::wmma_halves;
  return MatrixLayout::none;
}

/// True if a device with this layout says that it multiplies such numbers. Older and newer instruction sets of one layout lack some.
bool claims(const DeviceRecord& d, MatrixLayout layout, const MatrixNumbers& numbers) {
  if (!multiplies(layout, numbers)) return false;
  const bool first = d.facts.name.starts_with("gfx90a"), later = d.facts.name.starts_with("gfx95");
  if (numbers.sparse && first) return false;
  if (numbers.kind == MATMUL_NUMBERS_TF32) return !first && !later;
  if (numbers.kind == MATMUL_NUMBERS_F8 && layout == MatrixLayout::mma) return compute_capability(d) >= 89;
  // Later instruction sets of the layout have other f8.
  if (numbers.kind == MATMUL_NUMBERS_F8 && layout == MatrixLayout::mfma) return !first && !later;
  return numbers.kind != MATMUL_NUMBERS_BYTES || !first;
}

int numbers_of_word(const MatrixNumbers& n) {
  return n.kind == MATMUL_NUMBERS_BYTES || n.kind == MATMUL_NUMBERS_F8 ? 4 : n.kind == MATMUL_NUMBERS_TF32 ? 1 : 2;
}

/// How an operand's numbers are made of bits.
struct NumberBits {
  int kind = 0;
  bool is_unsigned = false;  ///< bytes
  int exponent = 0, fraction = 0, bias = 0;
  bool halved = false, has_infinity = true;  ///< f8: MATMUL_HALVED_F8
};
NumberBits number_bits(MatrixLayout layout, const MatrixNumbers& n, bool of_a) {
  NumberBits bits{.kind = n.kind, .is_unsigned = of_a ? n.a_unsigned : n.b_unsigned};
  const bool e5m2 = of_a ? n.a_e5m2 : n.b_e5m2;
  switch (n.kind) {
    case MATMUL_NUMBERS_F16: bits.exponent = 5, bits.fraction = 10; break;
    case MATMUL_NUMBERS_BF16: bits.exponent = 8, bits.fraction = 7; break;
    case MATMUL_NUMBERS_TF32: bits.exponent = 8, bits.fraction = 10; break;
    case MATMUL_NUMBERS_F8: bits.exponent = e5m2 ? 5 : 4, bits.fraction = e5m2 ? 2 : 3, bits.has_infinity = e5m2; break;
    default: return bits;
  }
  bits.halved = n.kind == MATMUL_NUMBERS_F8 && MATMUL_HALVED_F8(static_cast<int>(layout));
  bits.bias = (1 << (bits.exponent - 1)) - 1 + (bits.halved ? 1 : 0);
  return bits;
}

double f8_value(std::uint32_t byte, const NumberBits& of) {
  const std::uint32_t size_bits = byte & 127, last = (2u << of.exponent) - 2, exponent = size_bits >> of.fraction,
                      fraction = size_bits & ((1u << of.fraction) - 1);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  if (of.halved ? byte == 128 : of.has_infinity ? exponent == last / 2 && fraction != 0 : size_bits == 127) return kNaN;
  const int scale = std::max(static_cast<int>(exponent), 1) - of.bias - of.fraction;
  const double size = !of.halved && of.has_infinity && exponent == last / 2 ? kInfinity : std::ldexp(fraction + (exponent > 0 ? 1u << of.fraction : 0u), scale);
  return byte >> 7 ? -size : size;
}

/// The value of number e of a word.
double value_in(std::uint32_t word, int e, const NumberBits& of) {
  switch (of.kind) {
    case MATMUL_NUMBERS_BYTES: {
      const auto byte = static_cast<std::uint8_t>(word >> 8 * e);
      return of.is_unsigned ? byte : static_cast<std::int8_t>(byte);
    }
    case MATMUL_NUMBERS_TF32: return std::bit_cast<float>(word);
    case MATMUL_NUMBERS_BF16: return std::bit_cast<float>(word >> 16 * e << 16);
    case MATMUL_NUMBERS_F8: return f8_value(word >> 8 * e & 255, of);
    default: {
      const std::uint32_t bits = word >> 16 * e & 0xffff, exponent = bits >> 10 & 31, fraction = bits & 1023;
      const double size = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity())
                          : exponent == 0 ? std::ldexp(fraction, -24)
                                          : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
      return bits >> 15 ? -size : size;
    }
  }
}

/// Words of an operand of the self-test, of which each trial looks for something else.
enum class Trial : std::uint8_t { whole_numbers, any, a_subnormal, b_subnormal, infinite };
constexpr std::array kTrials{Trial::whole_numbers, Trial::any, Trial::a_subnormal, Trial::b_subnormal, Trial::infinite};
/// Times that the product of a trial's operands is added: chains of many instructions.
constexpr std::uint32_t kTimes = 16;
/// What sums of bytes begin with, so that they pass 2^31.
constexpr std::uint32_t kBegin = 0x7fffff00;

std::uint32_t trial_word(Trial trial, const NumberBits& of, int count, std::mt19937& random, bool first) {
  std::uint32_t word = 0;
  const int bits = 32 / count;
  for (int e = 0; e < count; ++e) {
    std::uint32_t number = 0;
    const auto any = static_cast<std::uint32_t>(random());
    if (of.kind == MATMUL_NUMBERS_BYTES) {
      number = any & 255;
    } else {
      const auto unit = static_cast<std::uint32_t>(of.bias), last = (1u << of.exponent) - 1;
      const std::uint32_t fractions = (1u << of.fraction) - 1;
      std::uint32_t exponent = unit, fraction = any >> 8 & fractions;
      if (trial == Trial::whole_numbers) {
        // 1, 1.25, ... 7; of f8, whose sums may keep few bits, 1 and 2.
        exponent += any % (of.kind == MATMUL_NUMBERS_F8 ? 2 : 3);
        fraction = of.kind == MATMUL_NUMBERS_F8 ? 0 : fraction & 3u << (of.fraction - 2);
      }
      if (trial == Trial::any || trial == Trial::infinite) exponent = unit + any % 11 - 5;
      // Subnormal numbers of one operand times large ones of the other.
      if (trial == Trial::a_subnormal || trial == Trial::b_subnormal) exponent = first == (trial == Trial::a_subnormal) ? 0u : std::min(2 * unit, last - 1);
      if (trial == Trial::infinite && any % 97 == 0) {
        exponent = last;
        fraction = of.has_infinity ? any % 2 << (of.fraction - 1) : fractions;
      }
      number = any >> 31 << (of.exponent + of.fraction) | exponent << of.fraction | fraction;
      if (of.halved && trial == Trial::infinite && any % 97 == 0) number = 128;
      if (of.kind == MATMUL_NUMBERS_TF32) number <<= 13;
    }
    word |= number << (e * bits) % 32;
  }
  return word;
}

/// Makes a line of a 2:4 matrix of a line of numbers: half of the words remain, and behind them lie the places of their numbers, four bits a quad.
void make_sparse(std::span<std::uint32_t> line, const MatrixNumbers& n, std::mt19937& random) {
  constexpr std::array<std::uint32_t, 6> kPlaces{0x4, 0x8, 0xc, 0x9, 0xd, 0xe};  // the second behind the first
  const int words = numbers_of_word(n) / 2;
  for (int w = MATMUL_SPARSE_PLACES; w < MATMUL_LINE_WORDS; ++w) {
    std::uint32_t word = 0;
    for (int bit = 0; bit < 32; bit += 4) word |= kPlaces[random() % kPlaces.size()] << bit;
    line[static_cast<std::size_t>(w)] = w < MATMUL_SPARSE_PLACES + words ? word : 0;
  }
}

std::span<const std::uint32_t> line_of(const std::vector<std::uint32_t>& words, int line) {
  return std::span(words).subspan(static_cast<std::size_t>(line) * MATMUL_LINE_WORDS, MATMUL_LINE_WORDS);
}

/// Number `at` of a line of 2:4 numbers, and where along k it is.
std::pair<double, int> sparse_number(std::span<const std::uint32_t> line, int at, const NumberBits& of, int count) {
  const std::uint32_t places = line[static_cast<std::size_t>(MATMUL_SPARSE_PLACES + at / 16)];
  return {value_in(line[static_cast<std::size_t>(at / count)], at % count, of), at / 2 * 4 + static_cast<int>(places >> at % 16 * 2 & 3)};
}

bool try_out(Runtime& runtime, MatrixLayout layout, const MatrixNumbers& numbers) {
  RecordingExempt exempt;
  const Digest key =
      sha256(fmt::format("matrix instructions 4|{}|{}|{}|{}|{}{}{}", name(layout), numbers.kind, numbers.a_unsigned || numbers.a_e5m2,
                         numbers.b_unsigned || numbers.b_e5m2, device_key(runtime), numbers.sparse ? "|sparse" : "", numbers.exchange ? "|exchange" : ""));
  constexpr std::string_view kKind = ".matrix";
  const std::string& mode = the_settings().self_test.value;
  if (mode == "off") return true;
  if (mode != "fresh")
    if (std::optional<std::string> kept = kept_result(key, kKind)) return *kept == "yes";
  bool works = false;
  std::string reason = "results are not as they must be";
  try {
    works = numbers.exchange ? lanes_exchange(runtime, {.layout = layout}, numbers) : matrix_instructions_work(runtime, {.layout = layout}, numbers);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::build_failure) throw;  // others may be temporary
    reason = e.what();
  }
  if (!works)
    log_line(LogLevel::warn, fmt::format("device {}: matrix instructions ({}{}{}) are not used: {}", runtime.device().index, name(layout),
                                         numbers.sparse ? ", sparse" : "", numbers.exchange ? ", exchange" : "", reason));
  keep_result(key, kKind, works ? "yes" : "no");
  return works;
}

}  // namespace

std::string_view name(MatrixLayout layout) {
  constexpr std::array<std::string_view, kMatrixLayouts + 1> kNames{"none", "mma", "mfma", "wmma", "wmma_halves", "dpas_8", "dpas_16"};
  return kNames.at(static_cast<std::size_t>(layout));
}

bool multiplies(MatrixLayout layout, const MatrixNumbers& numbers) {
  if (layout == MatrixLayout::none || numbers.kind == 0) return false;
  const bool takes_sparse = layout == MatrixLayout::mma || layout == MatrixLayout::mfma || layout == MatrixLayout::wmma_halves;
  if (numbers.sparse && (!takes_sparse || numbers.kind == MATMUL_NUMBERS_TF32)) return false;
  if (numbers.kind == MATMUL_NUMBERS_TF32) return layout == MatrixLayout::mma || layout == MatrixLayout::mfma;
  // f8e5m2 has infinities, which an instruction for the halved kind has not.
  if (numbers.kind == MATMUL_NUMBERS_F8)
    return !numbers.sparse &&
           (layout == MatrixLayout::mma || layout == MatrixLayout::wmma_halves || (layout == MatrixLayout::mfma && !numbers.a_e5m2 && !numbers.b_e5m2));
  if (numbers.kind == MATMUL_NUMBERS_BYTES && layout == MatrixLayout::mfma) return !numbers.a_unsigned && !numbers.b_unsigned;
  return true;
}

MatrixInstructions matrix_instructions(Runtime& runtime, const MatrixNumbers& numbers, bool asked) {
  if (const MatrixLayout stand_in = g_stand_in.load(std::memory_order_relaxed); stand_in != MatrixLayout::none)
    return multiplies(stand_in, numbers) ? MatrixInstructions{.layout = stand_in, .stand_in = true} : MatrixInstructions{};
  const std::string& wanted = the_settings().matrix_instructions.value;
  if (!asked && wanted == "auto" && kProved.empty()) return {};
  const MatrixLayout layout = wanted == "off" ? MatrixLayout::none : claimed_layout(runtime.device());
  if (!claims(runtime.device(), layout, numbers)) return {};
  if (!asked && wanted == "auto" && std::find(kProved.begin(), kProved.end(), layout) == kProved.end()) return {};
  if (numbers.exchange) {
    MatrixNumbers products = numbers;
    products.exchange = false;
    if (matrix_instructions(runtime, products, asked).layout == MatrixLayout::none) return {};
  }
  const bool a_other = numbers.a_unsigned || numbers.a_e5m2, b_other = numbers.b_unsigned || numbers.b_e5m2;
  const int which = numbers.exchange * 48 + numbers.sparse * 24 + numbers.kind * 4 + a_other * 2 + b_other;
  const bool works = runtime.matrix_instructions(static_cast<std::size_t>(which), [&] { return try_out(runtime, layout, numbers); });
  return works ? MatrixInstructions{.layout = layout} : MatrixInstructions{};
}

MatrixStandIn::MatrixStandIn(MatrixLayout layout) { g_stand_in = layout; }
MatrixStandIn::~MatrixStandIn() { g_stand_in = MatrixLayout::none; }

bool matrix_instructions_work(Runtime& runtime, MatrixInstructions instructions, const MatrixNumbers& n) {
  const int layout = static_cast<int>(instructions.layout), rows = MATMUL_FRAGMENT_ROWS(layout), columns = MATMUL_FRAGMENT_COLUMNS(layout);
  const int count = numbers_of_word(n), trials = static_cast<int>(kTrials.size());
  const NumberBits of_left = number_bits(instructions.layout, n, true), of_right = number_bits(instructions.layout, n, false);
  Stream stream(runtime.default_stream());
  std::mt19937 random(20261127);
  std::vector<std::uint32_t> a, b;
  for (const Trial trial : kTrials) {
    for (int i = 0; i < rows * MATMUL_LINE_WORDS; ++i) a.push_back(trial_word(trial, of_left, count, random, true));
    for (int i = 0; i < columns * MATMUL_LINE_WORDS; ++i) b.push_back(trial_word(trial, of_right, count, random, false));
  }
  for (std::size_t line = 0; n.sparse && line < a.size(); line += MATMUL_LINE_WORDS) make_sparse(std::span(a).subspan(line, MATMUL_LINE_WORDS), n, random);
  const Device device(&runtime.device());
  auto on_device = [&](const std::vector<std::uint32_t>& words) {
    return from_bytes(words.data(), words.size() * 4, {static_cast<std::int64_t>(words.size())}, {.dtype = DType::i32, .device = device}, stream);
  };
  const Tensor of_a = on_device(a), of_b = on_device(b), out = empty({trials, rows, columns}, {.dtype = DType::i32, .device = device}, stream);
  Defines defines;
  defines.set("CLUTCH_LAYOUT", layout).set("CLUTCH_NUMBERS", n.kind).set("CLUTCH_STAND_IN", instructions.stand_in);
  if (n.kind == MATMUL_NUMBERS_F8) defines.set("CLUTCH_A_E5M2", n.a_e5m2).set("CLUTCH_B_E5M2", n.b_e5m2);
  defines.set("CLUTCH_A_UNSIGNED", n.a_unsigned).set("CLUTCH_B_UNSIGNED", n.b_unsigned).set("CLUTCH_SPARSE_INSTRUCTION", n.sparse);
  Kernel& kernel = runtime.programs().find("self_test", "self_test_matrix", defines);
  const auto lanes = static_cast<std::uint64_t>(MATMUL_SUB_GROUP(layout));
  {
    Encoder encoder(stream, "self_test");
    encoder.output(out)
        .input(of_a)
        .input(of_b)
        .value(kTimes)
        .value(n.kind == MATMUL_NUMBERS_BYTES ? kBegin : 0u)
        .dispatch(KernelHandle(&kernel), {.global = lanes * kTrials.size(), .local = lanes});
  }
  const std::vector<std::int32_t> got = out.to_host<std::int32_t>(stream);
  for (int t = 0; t < trials; ++t) {
    // Subnormal numbers of tf32 may count as zeros.
    const Trial trial = kTrials[static_cast<std::size_t>(t)];
    if (n.kind == MATMUL_NUMBERS_TF32 && (trial == Trial::a_subnormal || trial == Trial::b_subnormal)) continue;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        double want = 0, size = 0;
        std::uint32_t modulo = kBegin;
        const auto line_a = line_of(a, t * rows + i), line_b = line_of(b, t * columns + j);
        const int cell = (t * rows + i) * columns + j;
        for (int e = 0; e < count * MATMUL_LINE_WORDS / (n.sparse ? 2 : 1); ++e) {
          const auto [x, k] =
              n.sparse ? sparse_number(line_a, e, of_left, count) : std::pair(value_in(line_a[static_cast<std::size_t>(e / count)], e % count, of_left), e);
          const double y = value_in(line_b[static_cast<std::size_t>(k / count)], k % count, of_right);
          want += kTimes * (x * y), size += kTimes * std::fabs(x * y);
          if (n.kind == MATMUL_NUMBERS_BYTES) modulo += static_cast<std::uint32_t>(static_cast<std::int32_t>(x * y)) * kTimes;
        }
        const std::int32_t bits = got[static_cast<std::size_t>(cell)];
        if (n.kind == MATMUL_NUMBERS_BYTES) {
          if (static_cast<std::uint32_t>(bits) != modulo) return false;
          continue;
        }
        // As include/clutch/ops/matmul.hpp says.
        const int summed = static_cast<int>(kTimes) * count * MATMUL_LINE_WORDS;
        const double of_sums = n.kind == MATMUL_NUMBERS_F8 ? (summed / 16.0 + 4) * 0x1p-13 : 2.0 * (summed + 16) * 0x1p-23;
        const double is = std::bit_cast<float>(bits), bound = trial == Trial::whole_numbers ? 0 : of_sums * size;
        if (std::isnan(want) ? !std::isnan(is) : std::isinf(want) ? is != want : !(std::fabs(is - want) <= bound)) return false;
      }
  }
  return true;
}

}}}  // namespace clutch::v0::detail
