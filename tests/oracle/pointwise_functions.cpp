// SPDX-License-Identifier: Apache-2.0
// Functions of elements: addcdiv and addcmul, the named ones, and lambdas with their derivatives. Each has three forms: a new tensor, into `out`, in place.
#include "server.hpp"

namespace clutch::oracle {

namespace {

MapOptions map_options(const Call& c) { return {.dtype = c.dtypes("dtype"), .implementation = {}}; }

bool into_out(const Call& c) { return c.text("form") == "out"; }
bool in_place(const Call& c) { return c.text("form") == "in_place"; }

void add_addc(Functions& table) {
  const auto options = [](const Call& c) {
    return AddcOptions{
        .value = c.number("value", 1),
        .order = c.choice<AddcOrder>(
            "order", {{"fma_of_quotient", AddcOrder::fma_of_quotient}, {"product_first", AddcOrder::product_first}, {"unfused", AddcOrder::unfused}}),
        .implementation = {}};
  };
  table["addcdiv"] = [options](Call& c) {
    if (into_out(c))
      addcdiv_out(c["out"], c["input"], c["t1"], c["t2"], options(c));
    else if (in_place(c))
      addcdiv_(c["input"], c["t1"], c["t2"], options(c));
    else
      c.give(addcdiv(c["input"], c["t1"], c["t2"], options(c)));
  };
  table["addcmul"] = [options](Call& c) {
    if (into_out(c))
      addcmul_out(c["out"], c["input"], c["t1"], c["t2"], options(c));
    else if (in_place(c))
      addcmul_(c["input"], c["t1"], c["t2"], options(c));
    else
      c.give(addcmul(c["input"], c["t1"], c["t2"], options(c)));
  };
}

void add_named(Functions& table) {
#define ONE(name)                                   \
  table[#name] = [](Call& c) {                      \
    if (into_out(c))                                \
      name##_out(c["out"], c["x"], map_options(c)); \
    else if (in_place(c))                           \
      name##_(c["x"], map_options(c));              \
    else                                            \
      c.give(name(c["x"], map_options(c)));         \
  }
  ONE(neg);
  ONE(abs);
  ONE(sign);
  ONE(square);
  ONE(reciprocal);
  ONE(sqrt);
  ONE(rsqrt);
  ONE(exp);
  ONE(exp2);
  ONE(expm1);
  ONE(log);
  ONE(log2);
  ONE(log1p);
  ONE(tanh);
  ONE(sigmoid);
  ONE(erf);
  ONE(sin);
  ONE(cos);
  ONE(floor);
  ONE(ceil);
  ONE(trunc);
  ONE(round);
  ONE(relu);
  ONE(silu);
  ONE(softplus);
  ONE(bitwise_not);
  ONE(logical_not);
  ONE(isnan);
  ONE(isinf);
  ONE(isfinite);
#undef ONE
  // The second operand is a tensor, or a number of the request.
#define TWO(name)                                           \
  table[#name] = [](Call& c) {                              \
    const bool number = !c.optional("b").defined();         \
    if (into_out(c))                                        \
      name##_out(c["out"], c["a"], c["b"], map_options(c)); \
    else if (in_place(c) && number)                         \
      name##_(c["a"], c.scalar("b"), map_options(c));       \
    else if (in_place(c))                                   \
      name##_(c["a"], c["b"], map_options(c));              \
    else if (number)                                        \
      c.give(name(c["a"], c.scalar("b"), map_options(c)));  \
    else                                                    \
      c.give(name(c["a"], c["b"], map_options(c)));         \
  }
  TWO(add);
  TWO(sub);
  TWO(mul);
  TWO(div);
  TWO(floor_divide);
  TWO(trunc_divide);
  TWO(remainder);
  TWO(fmod);
  TWO(pow);
  TWO(minimum);
  TWO(maximum);
  TWO(eq);
  TWO(ne);
  TWO(lt);
  TWO(le);
  TWO(gt);
  TWO(ge);
  TWO(bitwise_and);
  TWO(bitwise_or);
  TWO(bitwise_xor);
  TWO(logical_and);
  TWO(logical_or);
  TWO(logical_xor);
#undef TWO
  table["add_scaled"] = [](Call& c) {
    if (in_place(c))
      add_scaled_(c["a"], c["b"], c.scalar("alpha"), map_options(c));
    else
      c.give(add_scaled(c["a"], c["b"], c.scalar("alpha"), map_options(c)));
  };
  table["gelu"] = [](Call& c) { c.give(gelu(c["x"], c.choice<GeluForm>("approximate", {{"erf", GeluForm::erf}, {"tanh", GeluForm::tanh}}), map_options(c))); };
  table["leaky_relu"] = [](Call& c) { c.give(leaky_relu(c["x"], c.scalar("slope"), map_options(c))); };
  table["clamp"] = [](Call& c) {
    if (c.optional("low").defined())
      c.give(clamp(c["x"], c["low"], c["high"], map_options(c)));
    else
      c.give(clamp(c["x"], c.scalar("low"), c.scalar("high"), map_options(c)));
  };
  table["where"] = [](Call& c) { c.give(where(c["condition"], c["a"], c["b"], map_options(c))); };
  table["lerp"] = [](Call& c) {
    if (c.optional("weight").defined())
      c.give(lerp(c["start"], c["end"], c["weight"], map_options(c)));
    else
      c.give(lerp(c["start"], c["end"], c.scalar("weight"), map_options(c)));
  };
}

/// Operators of tensors and of traced values, each overload by the kinds of its operands: run.py demands one function for each that the headers declare.
void add_operators(Functions& table) {
  table["- tensor"] = [](Call& c) { c.give(-c["a"]); };
#define TENSOR(symbol)                                                                       \
  table["tensor " #symbol " tensor"] = [](Call& c) { c.give(c["a"] symbol c["b"]); };        \
  table["tensor " #symbol " number"] = [](Call& c) { c.give(c["a"] symbol c.scalar("b")); }; \
  table["number " #symbol " tensor"] = [](Call& c) { c.give(c.scalar("a") symbol c["b"]); }; \
  table["tensor " #symbol "= tensor"] = [](Call& c) {                                        \
    Tensor a = c["a"];                                                                       \
    c.say("itself", &(a symbol## = c["b"]) == &a);                                           \
  };                                                                                         \
  table["tensor " #symbol "= number"] = [](Call& c) {                                        \
    Tensor a = c["a"];                                                                       \
    c.say("itself", &(a symbol## = c.scalar("b")) == &a);                                    \
  }
  TENSOR(+);
  TENSOR(-);
  TENSOR(*);
  TENSOR(/);
#undef TENSOR
#define UNARY(symbol) table[#symbol " expression"] = [](Call& c) { c.give(map([](Expr x) { return symbol x; }, c["a"])); }
  UNARY(-);
  UNARY(~);
  UNARY(!);
#undef UNARY
#define BINARY(symbol) table["expression " #symbol " expression"] = [](Call& c) { c.give(map([](Expr x, Expr y) { return x symbol y; }, c["a"], c["b"])); }
  BINARY(+);
  BINARY(-);
  BINARY(*);
  BINARY(/);
  BINARY(<);
  BINARY(<=);
  BINARY(==);
  BINARY(!=);
  BINARY(>);
  BINARY(>=);
  BINARY(&);
  BINARY(|);
  BINARY(^);
  BINARY(<<);
  BINARY(>>);
  BINARY(+=);
  BINARY(-=);
  BINARY(*=);
  BINARY(/=);
#undef BINARY
}

/// Lambdas of x and y, by name, each made for the inputs' traced dtypes.
ExprFunction lambda(const Call& c, std::span<const Tensor> inputs) {
  const std::string which = c.text("lambda");
  const auto of_two = [&](auto&& f) { return clutch::detail::trace_over<2>(f, inputs, "map"); };
  const auto of_one = [&](auto&& f) { return clutch::detail::trace_over<1>(f, inputs, "map"); };
  if (which == "chain") return of_two([](Expr x, Expr y) { return (x * y + 0.5) * x - y / (square(x) + 1.0); });
  if (which == "chain_of_elementary") return of_two([](Expr x, Expr y) { return exp(-square(x)) * sin(y) + log1p(abs(x)) * tanh(y) - sigmoid(x + y); });
  if (which == "two_results") return of_two([](Expr x, Expr y) { return std::array<Expr, 2>{fma(x, y, 1.0), max(x, y) - min(x, y)}; });
  if (which == "activations") return of_two([](Expr x, Expr y) { return silu(x) + gelu(y) * softplus(x) - leaky_relu(y) + gelu(x, GeluForm::tanh); });
  if (which == "select") return of_two([](Expr x, Expr y) { return select((x > y) & !isnan(x), x, y * 2.0); });
  if (which == "kinks") return of_two([](Expr x, Expr y) { return relu(x) + abs(y) + max(x, y) + clamp(x, -1.0, 1.0) + min(x, 0.25) * sqrt(abs(y) + 1.0); });
  if (which == "powers") return of_two([](Expr x, Expr y) { return pow(abs(x) + 0.5, y) + rsqrt(square(x) + 1.0) + exp2(y) + log2(abs(y) + 1.0) + erf(x); });
  if (which == "lerp") return of_two([](Expr x, Expr y) { return lerp(x, y, 0.25) + lerp(x, y, 0.75) + reciprocal(abs(x) + 1.0) + expm1(y) + cos(x); });
  if (which == "param") return of_two([&](Expr x, Expr y) { return x * param(c.number("p", 1)) + y * param(c.number("q", 1)); });
  if (which == "positions") return of_one([](Expr x) { return x + position(-1) * 2 - position(0); });
  if (which == "cast_f16") return of_one([](Expr x) { return cast(cast(x, DType::f16) * 3.0, DType::f32); });
  if (which == "cast_i8") return of_one([](Expr x) { return cast(x, DType::i8) + 1; });
  if (which == "integers")
    return of_two([](Expr x, Expr y) { return std::array<Expr, 4>{floor_div(x, y), trunc_div(x, y), floor_mod(x, y), trunc_mod(x, y)}; });
  if (which == "bits") return of_two([](Expr x, Expr y) { return ((x << y) ^ (x >> y)) + (~x & y); });
  if (which == "opencl") return of_two([](Expr x, Expr y) { return opencl(x.dtype(), {.value = "x0 * x1 + x0", .derivatives = {"x1 + 1", "x0"}}, {x, y}); });
  // Rows of a captured table by computed places, and by positions.
  if (which == "captured")
    return of_two([&](Expr x, Expr row) {
      const Captured t = captured(c["table"]);
      return x * t[{row, position(-1)}] + t[{row, 0}];
    });
  if (which == "captured_positions")
    return of_one([&](Expr x) {
      const Captured t = captured(c["table"]);
      return x * t[{position(-2), position(-1)}] + t[{position(-1), position(-2)}];
    });
  if (which == "captured_reversed")
    return of_one([&](Expr x) {
      const Captured t = captured(c["table"]);
      return x * t[{c.integer("rows", 1) - 1 - position(-2), position(-1)}] + t[{position(-2) - position(-1), position(-1)}];
    });
  throw std::runtime_error("no lambda is called " + which);
}

/// That the text of a function is read back to the same.
void check_text(const ExprFunction& f) {
  if (ExprFunction::parse(f.text()).text() != f.text()) throw std::runtime_error("parse(text()) has another text");
}

void add_lambdas(Functions& table) {
  table["map"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs");
    const ExprFunction f = lambda(c, inputs);
    check_text(f);
    c.say("dtype", word(map_dtype(f, 0, inputs)));
    c.give(map(f, inputs, map_options(c)));
  };
  table["map_out"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs"), outputs = c.list("outputs");
    map_out(outputs, lambda(c, inputs), inputs, map_options(c));
  };
  // Lists of as many tensors, x.* and y.*; with "out" into x.*.
  table["foreach_map"] = [](Call& c) {
    const std::vector<Tensor> x = c.list("x"), y = c.list("y");
    const std::vector<Tensor> first{x.at(0), y.at(0)};
    const ExprFunction f = lambda(c, first);
    const std::span<const Tensor> inputs[] = {x, y};
    if (c.flag("out")) {
      foreach_map_out(std::span(inputs).first(1), f, inputs);
      return;
    }
    for (const std::vector<Tensor>& list : foreach_map(f, inputs)) c.give(list);
  };
  table["map_backward"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs"), grads = c.list("grads");
    c.give(map_backward(grads, lambda(c, inputs), inputs));
  };
  table["captured_backward"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs"), grads = c.list("grads");
    c.give(captured_backward(grads, lambda(c, inputs), inputs));
  };
  // The host's evaluator beside the kernel, element by element, of contiguous f32, f64, i32 or i64.
  table["evaluate"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs");
    const ExprFunction f = lambda(c, inputs);
    c.give(map(f, inputs));
    std::vector<std::vector<double>> numbers;
    for (const Tensor& x : inputs) numbers.push_back(x.to(DType::f64).to_host<double>());
    std::vector<double> results;
    for (std::size_t i = 0; i < numbers[0].size(); ++i) {
      std::vector<ExprValue> values;
      for (std::size_t k = 0; k < inputs.size(); ++k) values.push_back(ExprValue::of(f.input_dtype(static_cast<int>(k)), numbers[k][i]));
      results.push_back(f.evaluate(values)[0].number());
    }
    c.give(from_host(results, inputs[0].sizes()));
  };
}

}  // namespace

void add_pointwise_functions(Functions& table) {
  add_addc(table);
  add_named(table);
  add_operators(table);
  add_lambdas(table);
}

}  // namespace clutch::oracle
