// SPDX-License-Identifier: Apache-2.0
#include "ops/traced.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>

namespace torch_clutch {

using clutch::DType;
using clutch::ExprFunction;

Number::Number(const at::Scalar& scalar) {
  if (scalar.isComplex()) {
    const c10::complex<double> number = scalar.toComplexDouble();
    value = number.real(), imaginary = number.imag(), complex = true;
    return;
  }
  whole = scalar.isIntegral(true);
  value = scalar.toDouble();
  constexpr double kWholeDouble = 9007199254740992.0;
  if (whole && std::abs(value) > kWholeDouble) refuse("a whole number past 2^53");
}

namespace detail {
namespace {

// How one operand of a lambda comes about.
struct Operand {
  std::optional<DType> tensor;  // its dtype; empty: a number
  std::optional<DType> common;  // what it is cast to
  bool whole = false;           // of a number
  friend bool operator==(const Operand&, const Operand&) = default;
};

// A traced function without its numbers and captured tensors, and where in its text these stand.
struct Entry {
  ExprFunction function;
  std::vector<int> numbers, captured;  // of each one in the text which of the call's it is
  std::vector<double> last;            // numbers of `filled`
  ExprFunction filled;
  bool kept = true;
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};
Cache& cache() {
  static auto* made = new Cache;
  return *made;
}

void append(std::string& key, const void* data, std::size_t bytes) { key.append(static_cast<const char*>(data), bytes); }

std::string key_of(Formula formula, std::span<const Operand> operands, std::span<const Number> numbers, std::span<const clutch::Tensor> captured) {
  std::string key;
  append(key, &formula, sizeof formula);
  auto code = [](const std::optional<DType>& dtype) { return static_cast<char>(dtype ? static_cast<int>(*dtype) : 127); };
  for (const Operand& operand : operands) key += {code(operand.tensor), code(operand.common), operand.whole ? '1' : '0'};
  for (const Number& number : numbers) key += number.whole ? 'w' : 'r';
  for (const clutch::Tensor& tensor : captured) key += {'c', static_cast<char>(tensor.dtype()), static_cast<char>(tensor.rank())};
  return key;
}

// Numbers are traced with values that tell them apart.
double mark(std::size_t i) { return 1000003.0 + static_cast<double>(i); }

Expr number_param(double value, bool whole) { return whole ? clutch::param(static_cast<std::int64_t>(value)) : clutch::param(value); }

bool traceable(DType dtype) { return !clutch::is_complex(dtype) && !(clutch::is_floating(dtype) && clutch::bits(dtype) < 16); }

Entry trace(Formula formula, std::span<const Operand> operands, std::span<const DType> dtypes, std::span<const Number> numbers,
            std::span<const clutch::Tensor> captured) {
  std::vector<Expr> x, n;
  std::vector<clutch::Captured> c;
  std::size_t params = 0;
  int inputs = 0;
  for (const Operand& operand : operands) {
    Expr value = operand.tensor ? clutch::detail::expr_input(inputs, dtypes[static_cast<std::size_t>(inputs)]) : number_param(mark(params++), operand.whole);
    if (operand.tensor) ++inputs;
    // A number adopts the dtype of its neighbour, which is the common one.
    const bool adopts = !operand.tensor && operand.common != DType::boolean;
    if (operand.common && !adopts && operand.common != operand.tensor) value = clutch::cast(value, *operand.common);
    x.push_back(value);
  }
  for (const Number& number : numbers) n.push_back(number_param(mark(params++), number.whole));
  for (const clutch::Tensor& tensor : captured) c.push_back(clutch::captured(tensor));
  Entry entry;
  const Results results = formula({.x = x, .n = n, .c = c});
  ExprFunction traced(dtypes, results.all);
  for (int i = 0; i < traced.param_count(); ++i)
    for (std::size_t k = 0; k < params; ++k)
      if (traced.param_value(i) == mark(k)) entry.numbers.push_back(static_cast<int>(k));
  for (int i = 0; i < traced.captured_count(); ++i) {
    int matches = 0;
    for (std::size_t k = 0; k < captured.size(); ++k) {
      const clutch::Tensor& found = traced.captured_tensor(i);
      if (!found.shares_storage(captured[k]) || found.byte_offset() != captured[k].byte_offset() || !(found.strides() == captured[k].strides())) continue;
      if (matches++ == 0) entry.captured.push_back(static_cast<int>(k));
    }
    entry.kept = entry.kept && matches == 1;  // one tensor in two places: which is which cannot be told the next time
  }
  TORCH_INTERNAL_ASSERT(entry.numbers.size() == static_cast<std::size_t>(traced.param_count()));
  // A function keeps the tensors that it captured alive; its text does not.
  entry.function = captured.empty() || !entry.kept ? traced : ExprFunction::parse(traced.text());
  return entry;
}

ExprFunction filled(Entry& entry, std::span<const double> values, std::span<const clutch::Tensor> captured) {
  ExprFunction made = entry.function;
  if (!entry.numbers.empty()) {
    std::vector<double> ordered;
    for (int k : entry.numbers) ordered.push_back(values[static_cast<std::size_t>(k)]);
    if (entry.filled.empty() || std::memcmp(ordered.data(), entry.last.data(), ordered.size() * sizeof(double)) != 0) {
      entry.filled = entry.function.with_params(ordered);
      entry.last = std::move(ordered);
    }
    made = entry.filled;
  }
  if (entry.captured.empty()) return made;
  std::vector<clutch::Tensor> tensors;
  for (int k : entry.captured) tensors.push_back(captured[static_cast<std::size_t>(k)]);
  return made.with_captured(tensors);
}

ExprFunction function_of(Formula formula, std::span<const Operand> operands, std::span<const clutch::Tensor> inputs, std::span<const Number> numbers,
                         std::span<const double> values, std::span<const clutch::Tensor> captured) {
  for (const Number& number : numbers)
    if (number.complex) refuse("a complex number");
  const std::string key = key_of(formula, operands, numbers, captured);
  std::lock_guard lock(cache().mutex);
  auto found = cache().entries.find(key);
  if (found == cache().entries.end()) {
    for (const Operand& operand : operands)
      for (const std::optional<DType>& dtype : {operand.tensor, operand.common})
        if (dtype && !traceable(*dtype)) refuse("numbers of dtype ", std::string(clutch::name(*dtype)));
    Entry entry = trace(formula, operands, clutch::traced_dtypes(inputs), numbers, captured);
    if (!entry.kept) return filled(entry, values, captured);
    found = cache().entries.emplace(key, std::move(entry)).first;
  }
  return filled(found->second, values, captured);
}

// The operand of an iterator, broadcast, with its dimensions joined: memory as it is.
clutch::Tensor operand(const at::TensorIteratorBase& iterator, int i) {
  clutch::Dims sizes, strides;
  if (iterator.ndim() > clutch::kMaxRank) refuse("clutch has up to ", clutch::kMaxRank, " dimensions, got ", iterator.ndim());
  if (iterator.tensor_base(i).is_conj() || iterator.tensor_base(i).is_neg()) refuse("a lazy conjugate or minus");
  const auto width = static_cast<std::int64_t>(iterator.element_size(i));
  for (int d = iterator.ndim() - 1; d >= 0; --d) {
    sizes.push_back(iterator.shape()[static_cast<std::size_t>(d)]);
    strides.push_back(iterator.strides(i)[static_cast<std::size_t>(d)] / width);
  }
  if (sizes.empty()) sizes.push_back(1), strides.push_back(1);  // a tensor of rank 0 would count only by its kind
  return wrap_at(iterator.tensor_base(i), iterator.data_ptr(i), sizes, strides, need_dtype(iterator.dtype(i)));
}

}  // namespace

clutch::ExprFunction function(Formula formula, std::span<const clutch::Tensor> inputs, std::span<const Number> numbers,
                              std::span<const clutch::Tensor> captured) {
  std::vector<Operand> operands;
  for (const clutch::Tensor& input : inputs) operands.push_back({.tensor = input.dtype(), .common = {}});
  std::vector<double> values;
  for (const Number& number : numbers) values.push_back(number.value);
  return function_of(formula, operands, inputs, numbers, values, captured);
}

void pointwise(at::TensorIteratorBase& iterator, Formula formula, std::span<const Number> numbers, std::optional<c10::ScalarType> compute) {
  if (iterator.numel() == 0) return;
  std::optional<DType> common;
  if (compute) common = need_dtype(*compute);
  std::vector<Operand> operands;
  std::vector<clutch::Tensor> inputs, outputs;
  std::vector<double> values;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i) {
    if (iterator.is_cpu_scalar(i)) {
      const Number number(at::Scalar(iterator.tensor(i).item()));
      if (number.complex) refuse("a complex number");
      operands.push_back({.tensor = {}, .common = common, .whole = number.whole});
      values.push_back(number.value);
    } else {
      inputs.push_back(operand(iterator, i));
      operands.push_back({.tensor = inputs.back().dtype(), .common = common});
    }
  }
  for (const Number& number : numbers) values.push_back(number.value);
  if (inputs.empty()) refuse("tensors of the CPU alone");
  for (int i = 0; i < iterator.noutputs(); ++i) outputs.push_back(operand(iterator, i));
  clutch::map_out(outputs, function_of(formula, operands, inputs, numbers, values, {}), inputs);
}

void complex_pointwise(at::TensorIteratorBase& iterator, ComplexFormula formula, std::span<const Number> numbers, c10::ScalarType compute) {
  if (iterator.numel() == 0) return;
  std::vector<clutch::Tensor> inputs;
  std::vector<clutch::ComplexExpr> x, n;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i)
    if (!iterator.is_cpu_scalar(i)) inputs.push_back(operand(iterator, i));
  if (inputs.empty()) refuse("tensors of the CPU alone");
  const DType part = need_dtype(compute) == DType::c128 ? DType::f64 : DType::f32;
  const std::vector<clutch::ComplexExpr> traced = clutch::detail::complex_inputs(inputs, "map_complex");
  std::size_t next = 0;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i) {
    const clutch::ComplexExpr z = iterator.is_cpu_scalar(i) ? Number(at::Scalar(iterator.tensor(i).item())).traced() : traced[next++];
    x.emplace_back(clutch::cast(z.re(), part), clutch::cast(z.im(), part));
  }
  for (const Number& number : numbers) n.push_back(number.traced());
  const clutch::Tensor out = operand(iterator, 0);
  clutch::detail::map_complex(&out, formula({.x = x, .n = n}), inputs, {}, {}, "map_complex");
}

}  // namespace detail
}  // namespace torch_clutch
