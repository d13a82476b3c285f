// SPDX-License-Identifier: Apache-2.0
// Reads requests from standard input and answers on standard output until the input ends:
//   {"function": "softmax", "arguments": {"dim": 1}, "storages": [bytes, ...], "tensors": {"x": {"storage": 0, "dtype": "f32", "sizes": [..],
//    "strides": [..], "offset": 3}, ...}, "back": ["self"], "plant": ""}
// and then the bytes of the storages, one after another. Tensors of one storage are views of it; offsets and strides count elements. The reply is
//   {"ok": true, "results": [{"dtype": "f32", "sizes": [..], "strides": [..], "bytes": n} or null, ...], "back": [bytes, ...], "values": {...}, "plan": ""}
// and the bytes of the results in row-major order, and of the whole storages of the tensors that are asked back; or
//   {"ok": false, "code": "not_supported", "op": "eigh", "message": "..."}.
// "plant" makes a wrong result on purpose, for the test that cases notice one: "value" changes one element by a quarter, "ulp" by 3 units in its last place.
#include "server.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>

namespace clutch::oracle {

Tensor Call::optional(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? Tensor() : found->second;
}

std::vector<Tensor> Call::list(const std::string& name) const {
  std::vector<Tensor> result;
  const auto found = arguments_.find(name);
  if (found == arguments_.end() || !found->is_number()) return result;  // an empty list has no tensors to be told by
  for (std::int64_t i = 0; i < integer(name, 0); ++i) result.push_back(optional(name + "." + std::to_string(i)));
  return result;
}

double Call::number(const std::string& name, double fallback) const {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return fallback;
  // JSON has no infinities and NaN.
  return found->is_string() ? std::strtod(found->get<std::string>().c_str(), nullptr) : found->get<double>();
}

std::int64_t Call::integer(const std::string& name, std::int64_t fallback) const {
  const auto found = arguments_.find(name);
  if (found == arguments_.end()) return fallback;
  return found->is_boolean() ? std::int64_t{found->get<bool>()} : found->get<std::int64_t>();
}

std::string Call::text(const std::string& name, const std::string& fallback) const { return arguments_.value(name, fallback); }

Dims Call::dims(const std::string& name) const {
  Dims result;
  if (const auto found = arguments_.find(name); found != arguments_.end())
    for (const Json& size : *found) result.push_back(size.get<std::int64_t>());
  return result;
}

std::vector<double> Call::numbers(const std::string& name) const { return arguments_.value(name, std::vector<double>()); }

std::optional<DType> Call::dtype(const std::string& name) const {
  if (const auto found = arguments_.find(name); found != arguments_.end()) return dtype_from_name(found->get<std::string>());
  return {};
}

DTypeList Call::dtypes(const std::string& name) const {
  const std::optional<DType> one = dtype(name);
  return one ? DTypeList(*one) : DTypeList();
}

Scalar Call::scalar(const std::string& name) const {
  const Json& value = arguments_.at(name);
  if (value.is_number_integer()) return Scalar(value.get<std::int64_t>());
  return Scalar(number(name, 0));
}

namespace {

void read_exactly(void* data, std::size_t bytes) {
  if (std::fread(data, 1, bytes, stdin) != bytes) throw std::runtime_error("the input ended within a request");
}

/// Changes the finite element of the largest magnitude (of integers the first one) so that every comparison has to notice it; of many numbers, whose
/// distribution is what is looked at, all.
void plant(std::vector<std::uint8_t>& bytes, DType dtype, bool ulp) {
  const auto change = [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (values.empty()) return;
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    std::size_t place = 0;
    T largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || std::fabs(values[i]) <= largest) continue;
      largest = std::fabs(values[i]);
      place = i;
    }
    T& value = values[place];
    if (values.size() > 100000) {
      for (T& each : values) each *= T(0.75);
    } else if (largest == 0) {
      value = 1;
    } else if (ulp) {
      for (int i = 0; i < 3; ++i) value = std::nextafter(value, T(0));
    } else {
      value *= T(0.75);
    }
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  };
  if (bytes.empty()) return;
  switch (dtype) {
    case DType::f64:
    case DType::c128: change(0.0); break;
    case DType::f32:
    case DType::c64: change(0.0f); break;
    case DType::f16:
    case DType::bf16:
      for (std::size_t i = 0; i < (bytes.size() > 200000 ? bytes.size() : 2); i += 2) bytes[ulp ? i : i + 1] ^= 3;
      break;
    default: bytes[0] ^= 1;
  }
}

/// One request; false at the end of the input.
bool answer(const Functions& functions, std::FILE* out) {
  std::string line;
  for (int c = std::getc(stdin); c != '\n'; c = std::getc(stdin)) {
    if (c == EOF) return false;
    line.push_back(static_cast<char>(c));
  }
  const Json request = Json::parse(line);
  std::vector<std::vector<std::uint8_t>> storages;
  for (const Json& bytes : request.at("storages")) {
    std::vector<std::uint8_t>& storage = storages.emplace_back(bytes.get<std::size_t>());
    read_exactly(storage.data(), storage.size());
  }

  Json reply;
  std::vector<std::vector<std::uint8_t>> payload;
  try {
    // A storage is made as elements of the dtype of the first tensor in it; packed dtypes have no views.
    std::vector<Tensor> bases(storages.size());
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, spec] : request.at("tensors").items()) {
      const std::size_t storage = spec.at("storage").get<std::size_t>();
      const DType dtype = dtype_from_name(spec.at("dtype").get<std::string>());
      Dims sizes, strides;
      for (const Json& size : spec.at("sizes")) sizes.push_back(size.get<std::int64_t>());
      for (const Json& stride : spec.at("strides")) strides.push_back(stride.get<std::int64_t>());
      std::vector<std::uint8_t>& bytes = storages[storage];
      Tensor& base = bases[storage];
      if (is_packed(dtype)) {
        tensors[name] = from_bytes(bytes.data(), bytes.size(), sizes, {.dtype = dtype});
        continue;
      }
      if (!base.defined())
        base = from_bytes(bytes.data(), bytes.size(), {static_cast<std::int64_t>(bytes.size() * 8 / static_cast<std::size_t>(bits(dtype)))}, {.dtype = dtype});
      tensors[name] = base.as_strided(sizes, strides, spec.at("offset").get<std::int64_t>());
    }
    Call call(request.at("arguments"), tensors);
    functions.at(request.at("function").get<std::string>())(call);

    const std::string planted = request.value("plant", std::string());
    Json results = Json::array(), back = Json::array();
    bool changed = false;
    for (const Tensor& result : call.results()) {
      if (!result.defined()) {
        results.push_back(nullptr);
        continue;
      }
      payload.push_back(result.to_bytes());
      if (!planted.empty() && !payload.back().empty()) {
        plant(payload.back(), result.dtype(), planted == "ulp");
        changed = true;
      }
      results.push_back(
          {{"dtype", word(result.dtype())}, {"sizes", to_json(result.sizes())}, {"strides", to_json(result.strides())}, {"bytes", payload.back().size()}});
    }
    for (const Json& name : request.at("back")) {
      const std::string which = name.get<std::string>();
      const Json& spec = request.at("tensors").at(which);
      payload.push_back(bases.at(spec.at("storage").get<std::size_t>()).to_bytes());
      // Planted in the tensor's first element, which lies within its storage.
      if (!planted.empty() && !changed && tensors.at(which).numel() > 0) {
        const DType dtype = tensors.at(which).dtype();
        const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
        const std::size_t at = spec.at("offset").get<std::size_t>() * size;
        std::vector<std::uint8_t> element(payload.back().begin() + static_cast<std::ptrdiff_t>(at),
                                          payload.back().begin() + static_cast<std::ptrdiff_t>(at + size));
        plant(element, dtype, planted == "ulp");
        std::copy(element.begin(), element.end(), payload.back().begin() + static_cast<std::ptrdiff_t>(at));
      }
      back.push_back(payload.back().size());
    }
    Json values = call.values();
    if (!planted.empty() && results.empty() && back.empty())
      for (auto& [name, value] : values.items()) value = value.is_array() ? Json::array({-1}) : Json("planted");
    reply = {{"ok", true}, {"results", results}, {"back", back}, {"values", values}};
  } catch (const Error& e) {
    payload.clear();
    const bool planted = request.value("expects_error", false) && !request.value("plant", std::string()).empty();
    reply = {{"ok", false}, {"code", planted ? "planted" : std::string(name(e.code()))}, {"op", e.op()}, {"message", e.message()}};
  } catch (const std::exception& e) {
    payload.clear();
    reply = {{"ok", false}, {"code", "exception"}, {"op", ""}, {"message", e.what()}};
  }
  const std::string text = reply.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), out);
  for (const std::vector<std::uint8_t>& bytes : payload) std::fwrite(bytes.data(), 1, bytes.size(), out);
  std::fflush(out);
  return true;
}

/// What the cases have to know of the device.
Json greeting(const Functions& functions) {
  const Device device = default_device();
  const DeviceTraits& traits = device.traits();
  Json names = Json::array();
  for (const auto& entry : functions) names.push_back(entry.first);
  return {{"device", device.name()},   {"platform", device.platform()},
          {"fp64", traits.fp64},       {"denormals", traits.denormals},
          {"quirks", device.quirks()}, {"functions", names},
          {"fp16", traits.fp16}};
}

int run() {
  Functions functions;
  add_tensor_functions(functions);
  add_pointwise_functions(functions);
  add_reduce_functions(functions);
  add_index_functions(functions);
  add_linalg_functions(functions);
  add_attention_functions(functions);
  add_optim_functions(functions);
  // Drivers print to standard output, too: it becomes standard error, and replies go where it went.
  std::FILE* out = fdopen(dup(STDOUT_FILENO), "wb");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string text = greeting(functions).dump() + "\n";
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  while (answer(functions, out)) {
  }
  return 0;
}

}  // namespace
}  // namespace clutch::oracle

int main() {
  try {
    return clutch::oracle::run();
  } catch (const std::exception& e) {
    std::cerr << "oracle_server: " << e.what() << '\n';
    return 1;
  }
}
