// SPDX-License-Identifier: Apache-2.0
// Tensors: factories, views, copies and casts, random numbers, files, DLPack.
#include "server.hpp"

#include <cstdio>

namespace clutch::oracle {

namespace {

Overflow overflow(const Call& c) { return c.choice<Overflow>("overflow", {{"nonfinite", Overflow::nonfinite}, {"saturate", Overflow::saturate}}); }
CopyOptions copy_options(const Call& c) { return {.overflow = overflow(c), .implementation = {}}; }
TensorOptions tensor_options(const Call& c) { return {.dtype = c.dtype("dtype").value_or(DType::f32), .device = {}}; }

std::optional<std::uint64_t> seed(const Call& c) {
  if (!c.has("seed")) return {};
  return static_cast<std::uint64_t>(c.integer("seed", 0));
}

/// A generator at that state where the request has an offset, else none.
Generator generator(const Call& c) {
  if (!c.has("generator_offset")) return {};
  Generator result(default_device(), static_cast<std::uint64_t>(c.integer("generator_seed", 0)));
  result.set_state(
      {.seed = static_cast<std::uint64_t>(c.integer("generator_seed", 0)), .offset = static_cast<std::uint64_t>(c.integer("generator_offset", 0))});
  return result;
}

void say_state(Call& c, const Generator& g) {
  if (g.empty()) return;
  const GeneratorState state = g.state();
  c.say("seed", state.seed);
  c.say("offset", state.offset);
}

/// All digits of a number, infinities and NaN too, which JSON has not.
std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

void add_views(Functions& table) {
  table["slice"] = [](Call& c) { c.give(c["x"].slice(c.rank("dim", 0), c.integer("begin", 0), c.integer("end", 0), c.integer("step", 1))); };
  table["select"] = [](Call& c) { c.give(c["x"].select(c.rank("dim", 0), c.integer("index", 0))); };
  table["transpose"] = [](Call& c) { c.give(c["x"].transpose(c.rank("dim0", 0), c.rank("dim1", 1))); };
  table["mT"] = [](Call& c) { c.give(c["x"].mT()); };
  table["reshape"] = [](Call& c) {
    const Tensor result = c["x"].reshape(c.dims("sizes"));
    c.say("view", result.shares_storage(c["x"]));
    c.give(result);
  };
  table["expand"] = [](Call& c) { c.give(c["x"].expand(c.dims("sizes"))); };
  table["unsqueeze"] = [](Call& c) { c.give(c["x"].unsqueeze(c.rank("dim", 0))); };
  table["squeeze"] = [](Call& c) { c.give(c["x"].squeeze(c.rank("dim", 0))); };
  table["as_strided"] = [](Call& c) { c.give(c["x"].as_strided(c.dims("sizes"), c.dims("strides"), c.integer("offset", 0))); };
  table["contiguous"] = [](Call& c) {
    const Tensor result = c["x"].contiguous();
    c.say("view", result.shares_storage(c["x"]));
    c.give(result);
  };
  table["clone"] = [](Call& c) {
    const Tensor result = c["x"].clone();
    c.say("view", result.shares_storage(c["x"]));
    c.give(result);
  };
  table["identity"] = [](Call& c) {
    const Tensor& x = c["x"];
    c.say("rank", x.rank());
    c.say("numel", x.numel());
    c.say("nbytes", x.nbytes());
    c.say("contiguous", x.is_contiguous());
    c.say("text", x.to_string());
    if (x.numel() == 1 && !is_packed(x.dtype())) c.say("item", digits(x.item()));
    c.give(x);
  };
  table["broadcast_shapes"] = [](Call& c) {
    std::vector<Dims> shapes;
    for (std::int64_t i = 0; i < c.integer("count", 0); ++i) shapes.push_back(c.dims("shape" + std::to_string(i)));
    c.say("sizes", to_json(broadcast_shapes(shapes)));
  };
  table["result_type"] = [](Call& c) {
    const std::vector<Tensor> tensors = c.list("tensors");
    std::vector<const Tensor*> pointers;
    for (const Tensor& t : tensors) pointers.push_back(&t);
    c.say("dtype", word(result_type(pointers)));
  };
  table["promote_types"] = [](Call& c) { c.say("dtype", word(promote_types(*c.dtype("a"), *c.dtype("b")))); };
}

void add_copies(Functions& table) {
  table["copy_"] = [](Call& c) { copy_(c["destination"], c["source"], copy_options(c)); };
  table["cat"] = [](Call& c) { c.has("out") ? cat_out(c["out"], c.list("tensors"), c.rank("dim", 0)) : c.give(cat(c.list("tensors"), c.rank("dim", 0))); };
  table["stack"] = [](Call& c) { c.give(stack(c.list("tensors"), c.rank("dim", 0))); };
  table["split"] = [](Call& c) { c.give(split(c["x"], c.integer("size", 1), c.rank("dim", 0))); };
  table["split_copy"] = [](Call& c) {
    const Dims sizes = c.dims("sizes");
    c.give(split_copy(c["x"], std::span(sizes.begin(), sizes.end()), c.rank("dim", 0)));
  };
  table["foreach_copy_"] = [](Call& c) { foreach_copy_(c.list("destinations"), c.list("sources")); };
  // The bytes of "from", which has the tensor's sizes and dtype.
  table["write"] = [](Call& c) {
    const std::vector<std::uint8_t> bytes = c["from"].to_bytes();
    c["x"].write(std::as_bytes(std::span(bytes)));
  };
  table["cast"] = [](Call& c) { c.give(cast(c["x"], *c.dtype("dtype"), copy_options(c))); };
  table["to"] = [](Call& c) { c.give(c["x"].to(*c.dtype("dtype"), {.overflow = overflow(c)})); };
  // The host's own conversions, of one number after another.
  table["encode_small_float"] = [](Call& c) {
    const DType dtype = *c.dtype("dtype");
    std::vector<std::int32_t> codes;
    for (double value : c["x"].to_host<double>()) codes.push_back(encode_small_float(value, dtype, overflow(c)));
    c.give(from_host(codes, c["x"].sizes()));
  };
  table["decode_small_float"] = [](Call& c) {
    const DType dtype = *c.dtype("dtype");
    std::vector<double> values;
    for (std::int32_t code : c["x"].to_host<std::int32_t>()) values.push_back(decode_small_float(static_cast<std::uint16_t>(code), dtype));
    c.give(from_host(values, c["x"].sizes()));
  };
  table["fill_"] = [](Call& c) {
    if (c.has("imaginary"))
      fill_(c["self"], std::complex<double>(c.number("value", 0), c.number("imaginary", 0)));
    else
      fill_(c["self"], c.number("value", 0));
  };
  table["arange_"] = [](Call& c) { arange_(c["self"], c.number("start", 0), c.number("step", 1)); };
  table["full"] = [](Call& c) { c.give(full(c.dims("sizes"), c.number("value", 0), tensor_options(c))); };
  table["zeros"] = [](Call& c) { c.give(zeros(c.dims("sizes"), tensor_options(c))); };
  table["empty"] = [](Call& c) { c.say("sizes", to_json(empty(c.dims("sizes"), tensor_options(c)).sizes())); };
  table["arange"] = [](Call& c) { c.give(arange(c.number("start", 0), c.number("end", 0), c.number("step", 1), tensor_options(c))); };
}

void add_complex(Functions& table) {
  table["real"] = [](Call& c) { c.give(real(c["x"])); };
  table["imag"] = [](Call& c) { c.give(imag(c["x"])); };
  table["view_as_real"] = [](Call& c) { c.give(view_as_real(c["x"])); };
  table["view_as_complex"] = [](Call& c) { c.give(view_as_complex(c["x"])); };
  table["complex"] = [](Call& c) {
    const Tensor made = complex(c["re"], c["im"]), out = made.clone();
    complex_out(out, c["re"], c["im"]);
    c.give(made.to_bytes() == out.to_bytes() ? made : Tensor());
  };
  table["conj"] = [](Call& c) {
    if (c.text("form") == "new") return c.give(conj(c["x"]));
    const Tensor made = c["x"].clone();
    if (c.text("form") == "out")
      conj_out(made, c["x"]);
    else
      conj_(made);
    c.give(made);
  };
  const auto function = [](const ComplexExpr& z, const ComplexExpr& w) { return z * conj(w) + std::complex<double>(0, 1); };
  table["map_complex"] = [function](Call& c) { c.give(map_complex(function, {c["x"], c["y"]})); };
  table["map_complex_out"] = [function](Call& c) { map_complex_out(c["out"], function, {c["x"], c["y"]}); };
}

void add_random(Functions& table) {
  table["uniform_"] = [](Call& c) {
    const Generator g = generator(c);
    uniform_(c["self"], {.low = c.number("low", 0), .high = c.number("high", 1), .seed = seed(c), .generator = g});
    say_state(c, g);
  };
  table["normal_"] = [](Call& c) {
    const Generator g = generator(c);
    normal_(c["self"], {.mean = c.number("mean", 0), .stddev = c.number("stddev", 1), .seed = seed(c), .generator = g});
    say_state(c, g);
  };
  table["random_"] = [](Call& c) {
    const Generator g = generator(c);
    const DrawOptions draw{.seed = seed(c), .generator = g};
    c.has("from") ? random_(c["self"], c.integer("from", 0), c.integer("to", 1), draw) : random_(c["self"], draw);
    say_state(c, g);
  };
  table["bernoulli_"] = [](Call& c) {
    const Generator g = generator(c);
    const DrawOptions draw{.seed = seed(c), .generator = g};
    c.has("probabilities") ? bernoulli_(c["self"], c["probabilities"], draw) : bernoulli_(c["self"], c.number("p", 0.5), draw);
    say_state(c, g);
  };
  table["exponential_"] = [](Call& c) {
    const Generator g = generator(c);
    exponential_(c["self"], c.number("lambda", 1), {.seed = seed(c), .generator = g});
    say_state(c, g);
  };
  table["randperm"] = [](Call& c) {
    const Generator g = generator(c);
    c.give(randperm(c.integer("n", 0), {.seed = seed(c), .generator = g}));
    say_state(c, g);
  };
  // Dropout as one traced function, its mask beside it.
  table["random_uniform"] = [](Call& c) {
    const Generator g = generator(c);
    const double p = c.number("p", 0.5);
    const auto f = [&](Expr x) {
      const Expr u = seed(c) ? random_uniform(*seed(c)) : random_uniform(g);
      return std::array{select(u < param(p), 0 * x, x * 2.0), u};
    };
    const auto made = map(f, {c["x"]});
    c.give(std::vector{made[0], made[1]});
    say_state(c, g);
  };
  const auto options = [](const Call& c, const Generator& g) {
    return RandomOptions{.dtype = c.dtype("dtype").value_or(DType::f32), .device = {}, .seed = seed(c), .generator = g};
  };
  table["rand"] = [options](Call& c) {
    const Generator g = generator(c);
    c.give(rand(c.dims("sizes"), options(c, g)));
    say_state(c, g);
  };
  table["randn"] = [options](Call& c) {
    const Generator g = generator(c);
    c.give(randn(c.dims("sizes"), options(c, g)));
    say_state(c, g);
  };
  // The default generator, seeded, twice, and its state.
  table["manual_seed"] = [](Call& c) {
    manual_seed(static_cast<std::uint64_t>(c.integer("seed", 0)));
    c.give(rand(c.dims("sizes")));
    c.give(rand(c.dims("sizes")));
    say_state(c, default_generator());
  };
}

void add_files(Functions& table) {
  table["save_npy"] = [](Call& c) { save_npy(c.text("path"), c["x"]); };
  table["load_npy"] = [](Call& c) { c.give(load_npy(c.text("path"))); };
  table["read_npy"] = [](Call& c) {
    const std::vector<std::uint8_t> bytes = c["bytes"].to_bytes();
    c.give(read_npy(std::as_bytes(std::span(bytes))));
  };
  table["save_safetensors"] = [](Call& c) {
    std::map<std::string, Tensor> tensors;
    const std::vector<Tensor> list = c.list("tensors");
    for (std::size_t i = 0; i < list.size(); ++i) tensors["t" + std::to_string(i)] = list[i];
    save_safetensors(c.text("path"), tensors, {{"note", "of the oracle"}});
  };
  table["load_safetensors"] = [](Call& c) {
    const Safetensors file = Safetensors::open(c.text("path"));
    Json names = Json::array();
    for (const Safetensors::Entry& entry : file.entries()) {
      names.push_back(entry.name);
      c.give(file.load(entry.name));
    }
    c.say("names", names);
    c.say("metadata", file.metadata());
  };
  table["dlpack"] = [](Call& c) {
    const auto memory = c.choice<interop::DlpackMemory>("memory", {{"device", interop::DlpackMemory::device}, {"host", interop::DlpackMemory::host}});
    if (c.flag("versioned"))
      c.give(interop::from_dlpack(interop::to_dlpack_versioned(c["x"], memory)));
    else
      c.give(interop::from_dlpack(interop::to_dlpack(c["x"], memory)));
  };
  // A kernel of the caller's own: y = a x + y over contiguous f32.
  table["launch"] = [](Call& c) {
    const Tensor& x = c["x"];
    const Tensor y = c["y"].clone();
    const KernelSource source{.text =
                                  "__kernel void axpy(__global float* y, __global const float* x, float a, int n) {\n"
                                  "  for (size_t i = get_global_id(0); i < (size_t)n; i += get_global_size(0)) y[i] = fma(a, x[i], y[i]);\n}\n",
                              .entry = "axpy"};
    launch(source, {.global = 64}, {inout(y), input(x), value(static_cast<float>(c.number("a", 1))), value(static_cast<std::int32_t>(x.numel()))});
    c.give(y);
  };
}

}  // namespace

void add_tensor_functions(Functions& table) {
  add_views(table);
  add_copies(table);
  add_complex(table);
  add_random(table);
  add_files(table);
}

}  // namespace clutch::oracle
