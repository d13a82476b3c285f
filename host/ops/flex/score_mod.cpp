// SPDX-License-Identifier: Apache-2.0
// What becomes of scores: traced functions, ready-made ones, and OpenCL C.
#include "ops/flex_plan.hpp"

#include <cmath>
#include <map>
#include <mutex>

namespace clutch::inline v0 {
namespace detail {

std::string print_opencl(const attention::ScoreMod::Text& text, DType number) {
  const bool wide = number == DType::f64;
  std::string params, names;
  for (std::size_t i = 0; i < text.params.size(); ++i) {
    params += fmt::format(", {} p{}", wide ? "double" : "float", i);
    names += fmt::format(", p{}", i);
  }
  std::string made =
      fmt::format("#define NUMBER {}\n#define INDEX VI\n#define TO_NUMBER(i) {}(i)\n", wide ? "VD" : "VF", wide ? "CLUTCH_I_TO_VD" : "CLUTCH_I_TO_VF");
  made += fmt::format(
      "#define CLUTCH_EXTRA_PARAMS {0}\n#define CLUTCH_EXTRA_KERNEL_PARAMS {0}\n#define CLUTCH_EXTRA_NAMES {1}\n#define CLUTCH_EXTRA_ARGUMENTS {1}\n", params,
      names);
  auto function = [&](std::string_view macro, std::string_view name, std::string_view more, std::string_view given, std::string_view expression) {
    made += fmt::format("static inline NUMBER {}(NUMBER score, INDEX b, INDEX h, INDEX q, INDEX kv{} CLUTCH_EXTRA_PARAMS) {{ return ({}); }}\n", name, more,
                        expression);
    made += fmt::format(
        "#define {0}(LOAD, POSITION, STORE) STORE(0, {2}, {1}(LOAD(1, {2}), LOAD(2, i32), LOAD(3, i32), LOAD(4, i32), LOAD(5, i32){3} CLUTCH_EXTRA_NAMES));\n",
        macro, name, clutch::name(number), given);
  };
  function("CLUTCH_SCORE", "clutch_score_text", "", "", text.score);
  if (!text.derivative.empty())
    function("CLUTCH_BACK", "clutch_back_text", ", NUMBER gradient", fmt::format(", LOAD(6, {})", clutch::name(number)), text.derivative);
  return made +
         "#define CLUTCH_BACK_EXTRA_PARAMS\n#define CLUTCH_BACK_EXTRA_KERNEL_PARAMS\n#define CLUTCH_BACK_EXTRA_NAMES\n#define CLUTCH_BACK_EXTRA_ARGUMENTS\n";
}

namespace {

void refuse(ErrorCode code, std::string_view why) { throw Error(code, "ScoreMod", why); }

/// One number for each text, that no traced function has.
std::uint64_t id_of(const std::string& text) {
  static std::mutex mutex;
  static std::map<std::string, std::uint64_t> ids;
  std::lock_guard lock(mutex);
  return ids.try_emplace(text, (std::uint64_t{1} << 63) + ids.size()).first->second;
}

}  // namespace
}  // namespace detail

namespace attention {

ScoreMod::ScoreMod(const OpenclScore& text) {
  if (text.score.empty()) detail::refuse(ErrorCode::invalid_argument, "a text without an expression");
  const std::string key = fmt::format("{}\n{}\n{}", text.params.size(), text.score, text.derivative);
  text_ = std::make_shared<const Text>(Text{.id = detail::id_of(key), .score = text.score, .derivative = text.derivative, .params = text.params});
}

ScoreMod::ScoreMod(const ExprFunction& f32, const ExprFunction& f64) : f32_(f32), f64_(f64) {
  for (const ExprFunction* f : {&f32, &f64}) {
    if (f->empty() || f->input_count() != 5 || f->output_count() != 1 || f->input_dtype(0) != (f == &f32 ? DType::f32 : DType::f64))
      detail::refuse(ErrorCode::invalid_argument, "a score mod takes a score and four indices and gives one number");
    for (int i = 1; i < 5; ++i)
      if (f->input_dtype(i) != DType::i32) detail::refuse(ErrorCode::invalid_argument, "a score mod's indices are i32");
    if (f->output_dtype(0) == DType::boolean) detail::refuse(ErrorCode::invalid_dtype, "a score mod gives booleans: make it a mask");
    if (detail::has_positions(*f)) detail::refuse(ErrorCode::invalid_argument, "positions are map's; a score mod has indices");
  }
}

Expr ScoreMod::operator()(const Score& score, const Index& b, const Index& h, const Index& q, const Index& kv) const {
  if (text_) detail::refuse(ErrorCode::not_supported, "OpenCL C cannot be part of another mod");
  if (empty()) return score;
  const Expr inputs[] = {score, b, h, q, kv};
  return detail::applied(function(score.dtype()), inputs)[0];
}

ScoreMod alibi(const Tensor& slopes) {
  Captured of = captured(slopes);
  return [&](Score s, Index, Index h, Index q, Index kv) { return s + of[h] * (kv - q); };
}
Tensor alibi_slopes(std::int64_t heads, const Device& device, const Stream& stream) {
  if (heads < 1) detail::refuse(ErrorCode::invalid_argument, fmt::format("slopes of {} heads", heads));
  std::vector<float> slopes;
  for (std::int64_t h = 0; h < heads; ++h) slopes.push_back(static_cast<float>(std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads))));
  return from_host(slopes, {heads}, device, stream);
}
ScoreMod softcap(double cap) {
  if (!(cap > 0)) detail::refuse(ErrorCode::invalid_argument, fmt::format("a cap of {}", cap));
  return [&](Score s, Index, Index, Index, Index) { return param(cap) * tanh(s * param(1 / cap)); };
}
ScoreMod relative_bias() {
  return [](Score s, Index, Index, Index q, Index kv) { return s + (q - kv); };
}
ScoreMod relative_bias(const Tensor& table) {
  if (table.rank() != 1 && table.rank() != 2) detail::refuse(ErrorCode::invalid_shape, fmt::format("a table of shape {}", to_string(table.sizes())));
  Captured of = captured(table);
  const std::int64_t middle = (table.size(-1) - 1) / 2;
  return [&, rank = table.rank()](Score s, Index, Index h, Index q, Index kv) {
    Expr at = q - kv + param(middle);
    return s + (rank == 1 ? of[at] : of[{h, at}]);
  };
}

}  // namespace attention
}  // namespace clutch::inline v0
