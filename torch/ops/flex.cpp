// SPDX-License-Identifier: Apache-2.0
// torch.nn.attention.flex_attention on attention::flex. A score or mask mod comes as the text of its graph, a line a node:
//   add v0 f0.5        (v: a value by number, inputs first; f and i: numbers; c: a whole number that is part of the kernel; b: a captured tensor)
// and is interpreted once, inside of clutch's own tracing lambda.
#include "ops/traced.hpp"

#include <ATen/ATen.h>
#include <torch/library.h>
#include <clutch/attention.hpp>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <unordered_map>

namespace torch_clutch {
namespace {

using clutch::attention::FlexOptions;
using Arguments = std::vector<Expr>;
using Operation = std::function<Expr(const Arguments&)>;

template <auto kFunction>
Operation one() {
  return [](const Arguments& x) { return kFunction(x.at(0)); };
}
bool any_floating(const Arguments& x) {
  return std::any_of(x.begin(), x.end(), [](const Expr& argument) { return clutch::is_floating(argument.dtype()); });
}

// Python's quotient and remainder of floats. A quotient that was rounded up to a whole number is one too large: then what remains has the wrong sign.
struct Quotient {
  Expr whole, rest;
};
Quotient floor_quotient(const Expr& dividend, const Expr& divisor) {
  const Expr a = floating(dividend), b = floating(divisor);
  const Expr whole = clutch::floor(a / b), rest = clutch::fma(-whole, b, a);
  const Expr too_large = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
  return {clutch::select(too_large, whole - 1.0, whole), clutch::select(too_large, rest + b, rest)};
}
// The same towards 0, with the dividend's sign.
Expr trunc_remainder(const Expr& dividend, const Expr& divisor) {
  const Expr a = floating(dividend), b = floating(divisor), step = clutch::abs(b);
  const Expr rest = clutch::fma(-clutch::trunc(a / b), b, a);
  const Expr back = clutch::select(a < 0.0, rest - step, rest + step);
  return clutch::select((rest != 0.0) & ((rest < 0.0) ^ (a < 0.0)), back, rest);
}

// The first argument's value; its derivatives are given: by the third argument the second one, by the fifth the fourth, and so on.
Expr with_derivatives(const Arguments& x) {
  clutch::OpenclText text{.value = "x0", .derivatives = {""}};
  for (std::size_t i = 1; i + 1 < x.size(); i += 2) {
    text.derivatives.emplace_back();
    text.derivatives.push_back(c10::str("x", i));
  }
  const Expr value = floating(x.at(0));
  switch (x.size()) {
    case 3: return clutch::opencl(value.dtype(), text, {value, x[1], x[2]});
    case 5: return clutch::opencl(value.dtype(), text, {value, x[1], x[2], x[3], x[4]});
    default: refuse("a function of ", x.size() / 2, " values with derivatives of its own");
  }
}
// OpenCL's function of one argument with its derivative.
Operation function(const char* text, const char* derivative) {
  return [=](const Arguments& x) {
    const Expr argument = floating(x.at(0));
    return clutch::opencl(argument.dtype(), {.value = text, .derivatives = {derivative}}, {argument});
  };
}

Expr logical(const Expr& x) { return x.dtype() == clutch::DType::boolean ? x : x != 0; }

const std::unordered_map<std::string, Operation>& operations() {
  using A = const Arguments&;
  static const auto* all = new std::unordered_map<std::string, Operation>{
      {"add", [](A x) { return x.at(0) + x.at(1); }},
      {"sub", [](A x) { return x.at(0) - x.at(1); }},
      {"rsub", [](A x) { return x.at(1) - x.at(0); }},
      {"mul", [](A x) { return x.at(0) * x.at(1); }},
      {"div", [](A x) { return floating(x.at(0)) / x.at(1); }},
      {"floor_divide", [](A x) { return any_floating(x) ? floor_quotient(x.at(0), x.at(1)).whole : clutch::floor_div(x.at(0), x.at(1)); }},
      {"trunc_divide", [](A x) { return any_floating(x) ? clutch::trunc(floating(x.at(0)) / x.at(1)) : clutch::trunc_div(x.at(0), x.at(1)); }},
      {"remainder", [](A x) { return any_floating(x) ? floor_quotient(x.at(0), x.at(1)).rest : clutch::floor_mod(x.at(0), x.at(1)); }},
      {"fmod", [](A x) { return any_floating(x) ? trunc_remainder(x.at(0), x.at(1)) : clutch::trunc_mod(x.at(0), x.at(1)); }},
      {"pow", [](A x) { return clutch::pow(x.at(0), x.at(1)); }},
      {"minimum", [](A x) { return clutch::min(x.at(0), x.at(1)); }},
      {"maximum", [](A x) { return clutch::max(x.at(0), x.at(1)); }},
      {"clamp", [](A x) { return clutch::clamp(x.at(0), x.at(1), x.at(2)); }},
      {"neg", [](A x) { return -x.at(0); }},
      {"square", [](A x) { return x.at(0) * x.at(0); }},
      {"abs", one<static_cast<Expr (*)(const Expr&)>(&clutch::abs)>()},
      {"exp", one<static_cast<Expr (*)(const Expr&)>(&clutch::exp)>()},
      {"exp2", one<static_cast<Expr (*)(const Expr&)>(&clutch::exp2)>()},
      {"expm1", one<static_cast<Expr (*)(const Expr&)>(&clutch::expm1)>()},
      {"log", one<static_cast<Expr (*)(const Expr&)>(&clutch::log)>()},
      {"log2", one<static_cast<Expr (*)(const Expr&)>(&clutch::log2)>()},
      {"log10", [](A x) { return clutch::log(floating(x.at(0))) * 0.43429448190325182765; }},
      {"log1p", one<static_cast<Expr (*)(const Expr&)>(&clutch::log1p)>()},
      {"sqrt", one<static_cast<Expr (*)(const Expr&)>(&clutch::sqrt)>()},
      {"rsqrt", one<static_cast<Expr (*)(const Expr&)>(&clutch::rsqrt)>()},
      {"sin", one<static_cast<Expr (*)(const Expr&)>(&clutch::sin)>()},
      {"cos", one<static_cast<Expr (*)(const Expr&)>(&clutch::cos)>()},
      {"tan", function("tan(x0)", "1 + tan(x0) * tan(x0)")},
      {"atan", function("atan(x0)", "1 / (1 + x0 * x0)")},
      {"sinh", function("sinh(x0)", "cosh(x0)")},
      {"cosh", function("cosh(x0)", "sinh(x0)")},
      {"tanh", one<static_cast<Expr (*)(const Expr&)>(&clutch::tanh)>()},
      {"sigmoid", one<static_cast<Expr (*)(const Expr&)>(&clutch::sigmoid)>()},
      {"erf", one<static_cast<Expr (*)(const Expr&)>(&clutch::erf)>()},
      {"relu", one<static_cast<Expr (*)(const Expr&)>(&clutch::relu)>()},
      {"sign", one<static_cast<Expr (*)(const Expr&)>(&clutch::sign)>()},
      {"silu", one<static_cast<Expr (*)(const Expr&)>(&clutch::silu)>()},
      {"softplus", one<static_cast<Expr (*)(const Expr&)>(&clutch::softplus)>()},
      {"gelu", [](A x) { return clutch::gelu(x.at(0)); }},
      {"gelu_tanh", [](A x) { return clutch::gelu(x.at(0), clutch::GeluForm::tanh); }},
      {"leaky_relu", [](A x) { return clutch::leaky_relu(x.at(0), x.at(1)); }},
      {"reciprocal", [](A x) { return clutch::reciprocal(floating(x.at(0))); }},
      {"floor", one<static_cast<Expr (*)(const Expr&)>(&clutch::floor)>()},
      {"ceil", one<static_cast<Expr (*)(const Expr&)>(&clutch::ceil)>()},
      {"trunc", one<static_cast<Expr (*)(const Expr&)>(&clutch::trunc)>()},
      {"round", one<static_cast<Expr (*)(const Expr&)>(&clutch::round)>()},
      {"isnan", [](A x) { return clutch::isnan(floating(x.at(0))); }},
      {"isinf", [](A x) { return clutch::isinf(floating(x.at(0))); }},
      {"isfinite", [](A x) { return clutch::isfinite(floating(x.at(0))); }},
      {"eq", [](A x) { return x.at(0) == x.at(1); }},
      {"ne", [](A x) { return x.at(0) != x.at(1); }},
      {"lt", [](A x) { return x.at(0) < x.at(1); }},
      {"le", [](A x) { return x.at(0) <= x.at(1); }},
      {"gt", [](A x) { return x.at(0) > x.at(1); }},
      {"ge", [](A x) { return x.at(0) >= x.at(1); }},
      {"bitwise_and", [](A x) { return x.at(0) & x.at(1); }},
      {"bitwise_or", [](A x) { return x.at(0) | x.at(1); }},
      {"bitwise_xor", [](A x) { return x.at(0) ^ x.at(1); }},
      {"bitwise_not", [](A x) { return ~x.at(0); }},
      {"bitwise_left_shift", [](A x) { return x.at(0) << x.at(1); }},
      {"bitwise_right_shift", [](A x) { return x.at(0) >> x.at(1); }},
      {"logical_and", [](A x) { return logical(x.at(0)) & logical(x.at(1)); }},
      {"logical_or", [](A x) { return logical(x.at(0)) | logical(x.at(1)); }},
      {"logical_xor", [](A x) { return logical(x.at(0)) ^ logical(x.at(1)); }},
      {"logical_not", [](A x) { return !logical(x.at(0)); }},
      {"where", [](A x) { return clutch::select(x.at(0), x.at(1), x.at(2)); }},
      {"to_float", [](A x) { return floating(x.at(0)); }},
      {"to_int", [](A x) { return clutch::cast(x.at(0), clutch::DType::i64); }},
      {"to_bool", [](A x) { return logical(x.at(0)); }},
      {"to_f16", [](A x) { return clutch::cast(x.at(0), clutch::DType::f16); }},
      {"to_bf16", [](A x) { return clutch::cast(x.at(0), clutch::DType::bf16); }},
      {"to_i8", [](A x) { return clutch::cast(x.at(0), clutch::DType::i8); }},
      {"to_u8", [](A x) { return clutch::cast(x.at(0), clutch::DType::u8); }},
      {"to_i16", [](A x) { return clutch::cast(x.at(0), clutch::DType::i16); }},
      {"copy", [](A x) { return x.at(0); }},
      {"detach", [](A x) { return clutch::is_floating(x.at(0).dtype()) ? clutch::opencl(x[0].dtype(), {.value = "x0", .derivatives = {""}}, {x[0]}) : x[0]; }},
      {"with_derivatives", &with_derivatives},
  };
  return *all;
}

Expr number(const std::string& text, bool whole) {
  if (!whole) return clutch::param(std::stod(text));
  const std::int64_t value = std::stoll(text);
  return value == 0 || value == 1 ? Expr(value) : clutch::param(value);
}

// The last value of a mod, given its inputs.
Expr interpret(const std::string& program, const std::vector<clutch::Tensor>& buffers, Arguments values) {
  std::istringstream lines(program);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string op;
    words >> op;
    Arguments arguments;
    const clutch::Tensor* indexed = nullptr;
    for (std::string word; words >> word;) {
      const std::string rest = word.substr(1);
      switch (word[0]) {
        case 'v': arguments.push_back(values.at(std::stoul(rest))); break;
        case 'f': arguments.push_back(number(rest, false)); break;
        case 'i': arguments.push_back(number(rest, true)); break;
        case 'c': arguments.emplace_back(std::int64_t{std::stoll(rest)}); break;
        default: {
          const clutch::Tensor& buffer = buffers.at(std::stoul(rest));
          if (op == "index" && indexed == nullptr)
            indexed = &buffer;
          else if (buffer.numel() == 1)
            arguments.push_back(clutch::captured(buffer.reshape({1}))[Expr(0)]);
          else
            refuse("a tensor in a mod that is not indexed");
        }
      }
    }
    if (op == "true" || op == "false") {
      values.emplace_back(op == "true");
    } else if (op == "index") {
      if (indexed == nullptr) refuse("an index into a value of a mod");
      values.push_back(clutch::captured(*indexed).at(arguments));
    } else {
      auto found = operations().find(op);
      if (found == operations().end()) refuse("the op ", op, " in a mod");
      values.push_back(found->second(arguments));
    }
  }
  return values.back();
}

// A mod's text with what it captures.
struct Mod {
  std::string program;
  std::vector<clutch::Tensor> buffers;
};

// Whether a mod reads this buffer as `captured`; one number is read as a tensor of rank 1.
bool is_read_of(const clutch::Tensor& captured, const clutch::Tensor& buffer) {
  if (!captured.shares_storage(buffer) || captured.byte_offset() != buffer.byte_offset() || captured.dtype() != buffer.dtype()) return false;
  return buffer.numel() == 1 ? captured.numel() == 1 : captured.sizes() == buffer.sizes() && captured.strides() == buffer.strides();
}

// Blocks of a mask: counts and indices of partial blocks, then of full ones or nothing; lengths and block sizes.
FlexOptions options_of(const at::Tensor& q, const at::Tensor& k, const Mod& score, const Mod& mask, at::TensorList blocks, at::IntArrayRef sizes,
                       double scale) {
  FlexOptions options{.scale = scale, .enable_gqa = q.size(1) != k.size(1), .return_lse = true, .return_max_scores = true};
  if (!score.program.empty())
    options.score_mod = [&](Expr s, Expr b, Expr h, Expr i, Expr j) { return interpret(score.program, score.buffers, {s, b, h, i, j}); };
  clutch::attention::MaskMod mod;
  if (!mask.program.empty()) mod = [&](Expr b, Expr h, Expr i, Expr j) { return interpret(mask.program, mask.buffers, {b, h, i, j}); };
  if (blocks.empty()) {
    options.mask_mod = mod;
    return options;
  }
  const bool has_full = blocks.size() == 4;
  options.block_mask = clutch::attention::block_mask_from_lists(wrap(blocks[0]), wrap(blocks[1]), has_full ? wrap(blocks[2]) : clutch::Tensor(),
                                                                has_full ? wrap(blocks[3]) : clutch::Tensor(), mod,
                                                                {.batch = blocks[0].size(0),
                                                                 .heads = blocks[0].size(1),
                                                                 .q_len = sizes[0],
                                                                 .kv_len = sizes[1],
                                                                 .block = {.q = sizes[2], .kv = sizes[3]},
                                                                 .device = device(q.device().index())});
  return options;
}

// An empty tensor whose dimensions lie in memory in the order of those of `like`, the last one innermost: what PyTorch's operator says of its results, so that
// what is a view when compiled is one here.
at::Tensor in_order_of(const at::Tensor& like, c10::IntArrayRef sizes) {
  std::vector<std::int64_t> order{3, 2, 1, 0}, strides(4);
  std::stable_sort(order.begin() + 1, order.end(), [&](std::int64_t a, std::int64_t b) { return like.stride(a) < like.stride(b); });
  std::int64_t stride = 1;
  for (const std::int64_t d : order) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
  return at::empty_strided(sizes, strides, like.options());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> flex(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const std::string& score,
                                                    at::TensorList score_buffers, const std::string& mask, at::TensorList mask_buffers, at::TensorList blocks,
                                                    at::IntArrayRef sizes, double scale) {
  const CurrentDevice current(q.device().index());
  return translated([&] {
    const Mod s{score, wrap(score_buffers)}, m{mask, wrap(mask_buffers)};
    const at::Tensor out = in_order_of(q, {q.size(0), q.size(1), q.size(2), v.size(3)});
    const auto sums = q.options().dtype(q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    const at::Tensor lse = at::empty({q.size(0), q.size(1), q.size(2)}, sums), largest = at::empty_like(lse);
    clutch::attention::flex_out({.out = wrap(out), .lse = wrap(lse), .max_scores = wrap(largest)}, wrap(q), wrap(k), wrap(v),
                                options_of(q, k, s, m, blocks, sizes, scale));
    return std::tuple(out, lse, largest);
  });
}

// The last list: the gradient of each buffer of the score mod, undefined where it has none.
std::tuple<at::Tensor, at::Tensor, at::Tensor, c10::List<std::optional<at::Tensor>>> flex_backward(
    const at::Tensor& grad, const std::optional<at::Tensor>& grad_lse, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
    const at::Tensor& lse, const std::string& score, at::TensorList score_buffers, const std::string& mask, at::TensorList mask_buffers, at::TensorList blocks,
    at::IntArrayRef sizes, double scale) {
  const CurrentDevice current(q.device().index());
  return translated([&] {
    const Mod s{score, wrap(score_buffers)}, m{mask, wrap(mask_buffers)};
    const FlexOptions options = options_of(q, k, s, m, blocks, sizes, scale);
    const clutch::ExprFunction& traced_score = options.score_mod.function(q.scalar_type() == at::kDouble ? clutch::DType::f64 : clutch::DType::f32);
    std::vector<std::size_t> order;  // of each gradient which buffer it is of
    if (!options.score_mod.empty())
      for (int i = 0; i < traced_score.captured_count(); ++i) {
        const clutch::Tensor& captured = traced_score.captured_tensor(i);
        if (!clutch::is_floating(captured.dtype())) continue;
        for (std::size_t b = 0; b < s.buffers.size(); ++b)
          if (is_read_of(captured, s.buffers[b])) {
            order.push_back(b);
            break;
          }
      }
    const clutch::attention::FlexBackwardOptions backward{.grad_lse = wrap(grad_lse), .captured_gradients = !order.empty()};
    const at::Tensor of_q = in_order_of(q, q.sizes()), of_k = in_order_of(k, k.sizes()), of_v = in_order_of(v, v.sizes());
    clutch::attention::FlexGradients grads{.q = wrap(of_q), .k = wrap(of_k), .v = wrap(of_v)};
    c10::List<std::optional<at::Tensor>> captured;
    for (std::size_t b = 0; b < s.buffers.size(); ++b) captured.push_back(std::nullopt);
    for (const std::size_t b : order) {
      const at::Tensor made = at::empty(score_buffers[b].sizes(), score_buffers[b].options());
      grads.captured.push_back(made.numel() == 1 ? wrap(made).reshape({1}) : wrap(made));
      captured[b] = made;
    }
    clutch::attention::flex_backward_out(grads, wrap(grad), wrap(q), wrap(k), wrap(v), {.out = wrap(out), .lse = wrap(lse), .max_scores = {}}, options,
                                         backward);
    return std::tuple(of_q, of_k, of_v, captured);
  });
}

// Why clutch cannot trace a mod, or for a backward call derive it; empty where it can.
std::string refusal(const std::string& program, at::TensorList buffers, bool is_score, bool backward) {
  try {
    const Mod mod{program, wrap(buffers)};
    if (is_score) {
      const clutch::attention::ScoreMod score = [&](Expr s, Expr b, Expr h, Expr i, Expr j) { return interpret(mod.program, mod.buffers, {s, b, h, i, j}); };
      if (backward) score.function(clutch::DType::f32).backward();
    } else {
      const clutch::attention::MaskMod mask = [&](Expr b, Expr h, Expr i, Expr j) { return interpret(mod.program, mod.buffers, {b, h, i, j}); };
    }
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::vector<std::string> known_operations() {
  std::vector<std::string> names{"index", "true", "false"};
  for (const auto& [name, operation] : operations()) names.push_back(name);
  return names;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(clutch, library) {
  library.def("flex_operations() -> str[]", &known_operations);
  library.def("flex_refusal(str program, Tensor[] buffers, bool is_score, bool backward) -> str", &refusal);
  library.def(
      "flex(Tensor q, Tensor k, Tensor v, str score, Tensor[] score_buffers, str mask, Tensor[] mask_buffers, Tensor[] blocks, int[] sizes, float scale) "
      "-> (Tensor, Tensor, Tensor)",
      &flex);
  library.def(
      "flex_backward(Tensor grad, Tensor? grad_lse, Tensor q, Tensor k, Tensor v, Tensor out, Tensor lse, str score, Tensor[] score_buffers, str mask, "
      "Tensor[] mask_buffers, Tensor[] blocks, int[] sizes, float scale) -> (Tensor, Tensor, Tensor, Tensor?[])",
      &flex_backward);
}

}  // namespace torch_clutch
