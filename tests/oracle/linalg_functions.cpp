// SPDX-License-Identifier: Apache-2.0
// Eigenvalues, products of matrices, 2:4 matrices.
#include "server.hpp"

namespace clutch::oracle {

namespace {

using linalg::EighDriver, linalg::MatmulOptions;

linalg::EighOptions eigh_options(const Call& c) {
  linalg::EighOptions options;
  options.uplo = c.text("uplo") == "upper" ? linalg::Uplo::upper : linalg::Uplo::lower;
  for (EighDriver driver : {EighDriver::automatic, EighDriver::closed, EighDriver::jacobi_lanes, EighDriver::jacobi_group, EighDriver::qr_lanes,
                            EighDriver::qr_group, EighDriver::device_wide, EighDriver::jacobi_items, EighDriver::qr_items, EighDriver::host})
    if (c.text("driver") == linalg::name(driver)) options.driver = driver;
  options.phase = c.text("phase") == "positive" ? linalg::EighPhase::positive : linalg::EighPhase::free;
  options.accuracy = c.text("accuracy") == "relative" ? linalg::EighAccuracy::relative : linalg::EighAccuracy::norm;
  options.first = c.integer("first", 0);
  options.count = c.integer("count", -1);
  return options;
}

void add_eigh(Functions& table) {
  table["eigh"] = [](Call& c) {
    if (c.has("w")) return linalg::eigh_out(c["w"], c["v"], {c["info"], c["sweeps"]}, c["a"], eigh_options(c));
    const linalg::EighResult r = linalg::eigh(c["a"], eigh_options(c));
    c.give(std::vector{r.w, r.v, r.status.info, r.status.sweeps});
  };
  table["eigvalsh"] = [](Call& c) {
    if (c.has("w")) return linalg::eigvalsh_out(c["w"], {c["info"], c["sweeps"]}, c["a"], eigh_options(c));
    const linalg::EigvalshResult r = linalg::eigvalsh(c["a"], eigh_options(c));
    c.give(std::vector{r.w, r.status.info, r.status.sweeps});
  };
  table["eigh_backward"] = [](Call& c) {
    const linalg::EighGradient g = linalg::eigh_backward(c.optional("grad_w"), c.optional("grad_v"), c["w"], c["v"], {.broadening = c.number("broadening", 0)});
    c.give(std::vector{g.grad_a, g.gauge});
  };
  table["require_gauge"] = [](Call& c) { linalg::require_gauge(c["gauge"], c.number("tolerance", 1e-2)); };
  table["require_converged"] = [](Call& c) { linalg::require_converged({c["info"], {}}); };
}

MatmulOptions matmul_options(const Call& c) {
  return {.alpha = c.number("alpha", 1), .beta = c.number("beta", 0), .dtype = c.dtypes("dtype"), .implementation = {}};
}

nn::Activation activation(const Call& c) {
  return c.choice<nn::Activation>("activation", {{"none", nn::Activation::none},
                                                 {"relu", nn::Activation::relu},
                                                 {"gelu", nn::Activation::gelu},
                                                 {"gelu_tanh", nn::Activation::gelu_tanh},
                                                 {"silu", nn::Activation::silu}});
}

/// Epilogues by name; the product comes first.
ExprFunction epilogue(const Call& c, DType product, std::span<const Tensor> inputs) {
  const std::vector<DType> traced = traced_dtypes(inputs);
  const std::string which = c.text("epilogue");
  if (which == "bias_relu") return trace<2>([](Expr p, Expr b) { return relu(p + b); }, {product, traced[0]});
  if (which == "residual") return trace<3>([](Expr p, Expr b, Expr r) { return (p + b) * 0.125 + r; }, {product, traced[0], traced[1]});
  if (which == "positions") return trace<1>([](Expr p) { return p + position(-1) - position(-2); }, {product});
  if (which == "causal") return trace<1>([](Expr p) { return select(position(-2) >= position(-1), p, 0.0); }, {product});
  throw std::runtime_error("no epilogue is called " + which);
}

void add_products(Functions& table) {
  table["matmul"] = [](Call& c) {
    const Tensor& a = c["a"];
    const Tensor& b = c["b"];
    // Packed: the matrix outlives the operand that names it.
    const linalg::PackedMatrix packed = c.flag("packed") ? linalg::PackedMatrix(b) : linalg::PackedMatrix();
    const linalg::MatrixOperand operand = c.flag("packed") ? linalg::MatrixOperand(packed) : linalg::MatrixOperand(b);
    const std::vector<Tensor> inputs = c.list("inputs");
    if (c.has("epilogue")) {
      const ExprFunction f = epilogue(c, linalg::product_dtype(a.dtype(), b.dtype()), inputs);
      if (c.has("out"))
        linalg::matmul_out(c["out"], a, operand, f, inputs, matmul_options(c));
      else
        c.give(linalg::matmul(a, operand, f, inputs, matmul_options(c)));
    } else if (c.has("out")) {
      linalg::matmul_out(c["out"], a, operand, matmul_options(c));
    } else {
      c.give(linalg::matmul(a, operand, matmul_options(c)));
    }
  };
  table["matmul_backward"] = [](Call& c) {
    const std::vector<Tensor> inputs = c.list("inputs");
    const linalg::MatmulGradients g =
        c.has("epilogue")
            ? linalg::matmul_backward(c["grad"], c["a"], c["b"], epilogue(c, linalg::product_dtype(c["a"].dtype(), c["b"].dtype()), inputs), inputs)
            : linalg::matmul_backward(c["grad"], c["a"], c["b"]);
    c.give(std::vector{g.a, g.b});
    c.give(g.inputs);
  };
  table["linear"] = [](Call& c) {
    const linalg::LinearOptions options{.activation = activation(c), .dtype = c.dtypes("dtype")};
    if (c.flag("packed"))
      c.give(linalg::linear(c["x"], linalg::PackedMatrix(c["weight"].mT()), c.optional("bias"), options));
    else
      c.give(linalg::linear(c["x"], c["weight"], c.optional("bias"), options));
  };
  table["linear_backward"] = [](Call& c) {
    const linalg::LinearGradients g =
        linalg::linear_backward(c["grad"], c["x"], c["weight"], c.optional("bias"), {.activation = activation(c), .dtype = c.dtypes("dtype")});
    c.give(std::vector{g.x, g.weight, g.bias});
  };
  table["scaled_matmul"] = [](Call& c) {
    const linalg::ScaledMatmulOptions options{.bias = c.optional("bias"), .dtype = c.dtypes("dtype")};
    if (c.flag("packed"))
      c.give(linalg::scaled_matmul(c["a"], linalg::PackedMatrix(c["b"]), c["scale_a"], c["scale_b"], options));
    else
      c.give(linalg::scaled_matmul(c["a"], c["b"], c["scale_a"], c["scale_b"], options));
  };
  table["quantized_matmul"] = [](Call& c) {
    c.give(linalg::quantized_matmul(
        c["a"], {.scale = c.optional("scale_a"), .zero_point = c.optional("zero_a")}, c["b"],
        {.scale = c.optional("scale_b"), .zero_point = c.optional("zero_b")},
        {.bias = c.optional("bias"), .dtype = c.dtypes("dtype"), .result = {.scale = c.optional("scale_result"), .zero_point = c.optional("zero_result")}}));
  };
}

sparse::PruneOptions prune_options(const Call& c) {
  return {.rule = c.choice<sparse::PruneRule>("rule", {{"groups", sparse::PruneRule::groups},
                                                       {"tile_values", sparse::PruneRule::tile_values},
                                                       {"tile_magnitudes", sparse::PruneRule::tile_magnitudes},
                                                       {"causal1122", sparse::PruneRule::causal1122}})};
}

void add_sparse(Functions& table) {
  const auto compressed = [](const Call& c) { return sparse::compress(c["w"], {.strict = c.integer("strict", 1) != 0}); };
  table["prune_2_4"] = [](Call& c) { c.give(sparse::prune_2_4(c["w"], prune_options(c))); };
  table["mask_2_4"] = [](Call& c) { c.give(sparse::mask_2_4(c["w"], prune_options(c))); };
  table["apply_mask"] = [](Call& c) { c.give(sparse::apply_mask(c["w"], c["mask"])); };
  table["to_bitmask"] = [](Call& c) { c.give(sparse::to_bitmask(c["mask"])); };
  table["from_bitmask"] = [](Call& c) { c.give(sparse::from_bitmask(c["bits"])); };
  table["is_2_4"] = [](Call& c) { c.give(sparse::is_2_4(c["w"])); };
  table["require_2_4"] = [](Call& c) { sparse::require_2_4(c["w"]); };
  table["compress"] = [compressed](Call& c) {
    const sparse::SemiStructured s = compressed(c);
    c.give(std::vector{s.values(), s.metadata(), s.info()});
    c.say("sizes", to_json(s.sizes()));
    c.say("nbytes", s.nbytes());
  };
  table["decompress"] = [compressed](Call& c) {
    const sparse::SemiStructured s = compressed(c);
    c.give(std::vector{sparse::decompress(s), sparse::mask_of(s), sparse::decompress(sparse::SemiStructured(s.values(), s.metadata(), s.sizes()[1]))});
  };
  table["to_cutlass"] = [compressed](Call& c) {
    const sparse::CutlassLayout layout = sparse::to_cutlass(compressed(c));
    c.give(std::vector{layout.values, layout.metadata});
  };
  table["from_cutlass"] = [](Call& c) { c.give(sparse::decompress(sparse::from_cutlass({.values = c["values"], .metadata = c["metadata"]}))); };
  table["sparse_matmul"] = [compressed](Call& c) {
    const sparse::SemiStructured s = compressed(c);
    const std::vector<Tensor> inputs = c.list("inputs");
    const bool transposed = c.flag("transposed");  // b w^T instead of w b
    const Tensor& b = c["b"];
    if (c.has("epilogue")) {
      const ExprFunction f = epilogue(c, linalg::product_dtype(s.dtype(), b.dtype()), inputs);
      if (c.has("out"))
        transposed ? sparse::matmul_transposed_out(c["out"], b, s, f, inputs, matmul_options(c))
                   : sparse::matmul_out(c["out"], s, b, f, inputs, matmul_options(c));
      else
        c.give(transposed ? sparse::matmul_transposed(b, s, f, inputs, matmul_options(c)) : sparse::matmul(s, b, f, inputs, matmul_options(c)));
    } else if (c.has("out")) {
      transposed ? sparse::matmul_transposed_out(c["out"], b, s, matmul_options(c)) : sparse::matmul_out(c["out"], s, b, matmul_options(c));
    } else {
      c.give(transposed ? sparse::matmul_transposed(b, s, matmul_options(c)) : sparse::matmul(s, b, matmul_options(c)));
    }
  };
  table["sparse_scaled_matmul"] = [compressed](Call& c) {
    const linalg::ScaledMatmulOptions options{.bias = c.optional("bias"), .dtype = c.dtypes("dtype")};
    if (c.flag("transposed"))
      c.give(sparse::scaled_matmul_transposed(c["b"], compressed(c), c["scale_b"], c["scale_w"], options));
    else
      c.give(sparse::scaled_matmul(compressed(c), c["b"], c["scale_w"], c["scale_b"], options));
  };
  table["sparse_linear"] = [compressed](Call& c) {
    c.give(sparse::linear(c["x"], compressed(c), c.optional("bias"), {.activation = activation(c), .dtype = c.dtypes("dtype")}));
  };
  table["sparse_linear_backward"] = [compressed](Call& c) {
    sparse::LinearBackwardOptions options{.activation = activation(c), .transposed = {}, .masked = c.integer("masked", 1) != 0};
    if (c.flag("with_transposed")) options.transposed = sparse::compress(c["w"].mT());
    const linalg::LinearGradients g = sparse::linear_backward(c["grad"], c["x"], compressed(c), c.optional("bias"), options);
    c.give(std::vector{g.x, g.weight, g.bias});
  };
}

}  // namespace

void add_linalg_functions(Functions& table) {
  add_eigh(table);
  add_products(table);
  add_sparse(table);
}

}  // namespace clutch::oracle
