// SPDX-License-Identifier: Apache-2.0
#pragma once
// The server of the oracle: runs public functions on tensors that another process sends, and sends back what they gave.
// Requests and replies are one line of JSON each, followed by the bytes of the tensors; server.cpp describes them.
#include <clutch/clutch.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::oracle {

using Json = nlohmann::json;

/// The arguments of one request, and the results of its function. Arguments have the names that the cases give them.
class Call {
 public:
  Call(Json arguments, std::map<std::string, Tensor> tensors) : arguments_(std::move(arguments)), tensors_(std::move(tensors)) {}

  bool has(const std::string& name) const { return arguments_.contains(name) || tensors_.contains(name); }
  /// The tensor of that name. Throws std::out_of_range if there is none.
  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }
  /// The tensor of that name, or an undefined one.
  Tensor optional(const std::string& name) const;
  /// Tensors "name.0", "name.1", ... as many as there are; those that the request leaves undefined are undefined.
  std::vector<Tensor> list(const std::string& name) const;

  double number(const std::string& name, double fallback) const;
  std::int64_t integer(const std::string& name, std::int64_t fallback) const;
  int rank(const std::string& name, int fallback) const { return static_cast<int>(integer(name, fallback)); }
  bool flag(const std::string& name) const { return integer(name, 0) != 0; }
  std::string text(const std::string& name, const std::string& fallback = {}) const;
  Dims dims(const std::string& name) const;
  std::vector<double> numbers(const std::string& name) const;
  std::optional<DType> dtype(const std::string& name) const;
  DTypeList dtypes(const std::string& name) const;
  /// A number for an op of a tensor and a number: whole where the request has an integer.
  Scalar scalar(const std::string& name) const;
  /// The entry of the list whose place the argument has by name; the first one without it.
  template <class E>
  E choice(const std::string& name, std::initializer_list<std::pair<std::string_view, E>> entries) const {
    const std::string wanted = text(name, std::string(entries.begin()->first));
    for (const auto& [word, value] : entries)
      if (word == wanted) return value;
    throw std::runtime_error("no " + name + " is called " + wanted);
  }

  void give(const Tensor& result) { results_.push_back(result); }
  void give(const std::vector<Tensor>& results) { results_.insert(results_.end(), results.begin(), results.end()); }
  /// A number, text or list that is not a tensor.
  void say(const std::string& name, Json value) { values_[name] = std::move(value); }

  const std::vector<Tensor>& results() const { return results_; }
  const Json& values() const { return values_; }

 private:
  Json arguments_;
  std::map<std::string, Tensor> tensors_;
  std::vector<Tensor> results_;
  Json values_ = Json::object();
};

using Function = std::function<void(Call&)>;
using Functions = std::map<std::string, Function>;

// Each adds a family of public functions by the name under which the cases ask for them.
void add_tensor_functions(Functions& table);
void add_pointwise_functions(Functions& table);
void add_reduce_functions(Functions& table);
void add_index_functions(Functions& table);
void add_linalg_functions(Functions& table);
void add_attention_functions(Functions& table);
void add_optim_functions(Functions& table);

/// "f32"
inline std::string word(DType dtype) { return std::string(name(dtype)); }
inline Json to_json(const Dims& dims) { return Json(std::vector<std::int64_t>(dims.begin(), dims.end())); }

}  // namespace clutch::oracle
