// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin_calls.hpp"
#include "capi/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <new>

namespace clutch { inline namespace v0 { namespace capi {
namespace {

thread_local const char* t_function = "clutch";
/// The text that a plugin gave during the call that runs.
thread_local std::string t_plugin_error;

/// This thread's last error.
struct LastError {
  std::string message, op;
  std::int32_t cl_code = 0;
  /// There was no memory for the text.
  bool out_of_memory = false;
};
LastError& last_error() {
  thread_local LastError error;
  return error;
}

clutch_status_t keep(ErrorCode code, std::string_view op, std::string_view message, std::int32_t cl_code) noexcept {
  LastError& error = last_error();
  try {
    error.out_of_memory = false;
    error.message.assign(message);
    error.op.assign(op);
    error.cl_code = cl_code;
  } catch (...) {
    error.out_of_memory = true;
  }
  return static_cast<clutch_status_t>(code);
}

template <class E>
std::vector<E> enumerators(const std::int64_t* given, std::size_t count, const At& what) {
  std::vector<E> result;
  for (const std::int64_t number : list(given, count, what)) result.push_back(enumerator<E>(number, what));
  return result;
}

template <std::size_t... kI>
DTypeList dtype_list_of(const std::vector<DType>& list, std::index_sequence<kI...>) {
  return DTypeList{list[kI]...};
}
template <std::size_t kCount = 0>
DTypeList dtype_list_of(const std::vector<DType>& list) {
  if (list.size() == kCount) return dtype_list_of(list, std::make_index_sequence<kCount>());
  if constexpr (kCount < 8) return dtype_list_of<kCount + 1>(list);
  return {};
}

}  // namespace

Call::Call(const char* name) noexcept : former_(std::exchange(t_function, name)) {}
Call::~Call() { t_function = former_; }

clutch_status_t keep_error() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(error.code(), error.op(), error.what(), error.cl_code());
  } catch (const std::bad_alloc&) {
    return keep(ErrorCode::out_of_memory, t_function, "the host has no memory left", 0);
  } catch (const std::exception& error) {
    return keep(ErrorCode::internal, t_function, error.what(), 0);
  } catch (...) {
    return keep(ErrorCode::internal, t_function, "an exception of an unknown type", 0);
  }
}

std::string At::text() const { return field.empty() ? std::string(what) : fmt::format("{}.{}", what, field); }

void refuse(ErrorCode code, const std::string& message) { throw Error(code, t_function, message); }
void refuse_null(const At& what) { refuse(ErrorCode::invalid_argument, fmt::format("{} must not be NULL, got NULL", what.text())); }
void refuse_enumerator(std::int64_t given, std::span<const std::string_view> names, const At& what) {
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) all += fmt::format("{}{} ({})", i == 0 ? "" : ", ", i, names[i]);
  refuse(ErrorCode::invalid_argument, fmt::format("{} must be one of {}, got {}", what.text(), all, given));
}
void refuse_range(std::int64_t given, std::int64_t low, std::int64_t high, const At& what) {
  refuse(ErrorCode::invalid_argument, fmt::format("{} must be from {} to {}, got {}", what.text(), low, high, given));
}

void set_plugin_error(const char* text) { t_plugin_error = text ? text : ""; }
void clear_plugin_error() {
  t_plugin_error.clear();
  last_error().message.clear();
}
std::string plugin_error() {
  if (!t_plugin_error.empty()) return t_plugin_error;
  return last_error().message.empty() ? "it gave no reason" : last_error().message;
}

bool flag(std::int64_t given, const At& what) {
  if (given != 0 && given != 1) refuse(ErrorCode::invalid_argument, fmt::format("{} must be 0 or 1, got {}", what.text(), given));
  return given == 1;
}
Scalar number(clutch_number_t given) {
  if (!flag(given.is_whole, at("the number", "is_whole"))) return {given.value};
  // 2^63 is the first that an integer does not hold.
  if (!(given.value >= -0x1p63 && given.value < 0x1p63) || given.value != static_cast<double>(static_cast<std::int64_t>(given.value)))
    refuse(ErrorCode::invalid_argument, fmt::format("a number that is_whole must be a whole one of 64 bits, got {}", given.value));
  return {static_cast<std::int64_t>(given.value)};
}

Dims dims(const std::int64_t* given, std::size_t count, const At& what) {
  if (count > static_cast<std::size_t>(kMaxRank))
    refuse(ErrorCode::invalid_shape, fmt::format("{} must have at most {} dimensions, got {}", what.text(), kMaxRank, count));
  return Dims(list(given, count, what));
}
std::vector<int> i32s(const std::int64_t* given, std::size_t count, const At& what) {
  std::vector<int> result;
  for (const std::int64_t number : list(given, count, what)) result.push_back(narrow<int>(number, what));
  return result;
}
std::vector<DType> dtypes(const std::int64_t* given, std::size_t count, const At& what) { return enumerators<DType>(given, count, what); }
DTypeList dtype_list(const std::int64_t* given, std::size_t count, const At& what) {
  if (count > 8) refuse(ErrorCode::invalid_argument, fmt::format("{} must have at most 8 dtypes, got {}", what.text(), count));
  return dtype_list_of(dtypes(given, count, what));
}
std::vector<Reduce> reduces(const std::int64_t* given, std::size_t count, const At& what) { return enumerators<Reduce>(given, count, what); }
std::vector<attention::SdpaBackend> backends(const std::int64_t* given, std::size_t count, const At& what) {
  return enumerators<attention::SdpaBackend>(given, count, what);
}
std::vector<std::string> texts(const char* const* given, std::size_t count, const At& what) {
  std::vector<std::string> result;
  for (const char* one : list(given, count, what)) {
    if (!one) refuse_null(what);
    result.emplace_back(one);
  }
  return result;
}
std::vector<Tensor> tensors(const clutch_tensor_t* const* given, std::size_t count, const At& what) {
  std::vector<Tensor> result;
  result.reserve(count);
  for (const clutch_tensor_t* one : list(given, count, what)) result.push_back(ref(one));
  return result;
}
std::vector<ExprFunction> functions(const clutch_expr_function_t* const* given, std::size_t count, const At& what) {
  std::vector<ExprFunction> result;
  for (const clutch_expr_function_t* one : list(given, count, what)) result.push_back(ref(one));
  return result;
}
std::map<std::string, Tensor> state(const char* const* names, const std::vector<Tensor>& tensors, std::size_t count) {
  const std::vector<std::string> keys = texts(names, count, "names");
  std::map<std::string, Tensor> result;
  for (std::size_t i = 0; i < count; ++i)
    if (!result.emplace(keys[i], tensors[i]).second) refuse(ErrorCode::invalid_argument, fmt::format("names must differ, got '{}' twice", keys[i]));
  return result;
}

TensorLists::TensorLists(const clutch_tensor_t* const* const* given, const std::size_t* sizes, std::size_t count, const At& what) {
  const auto all = list(given, count, what);
  const auto lengths = list(sizes, count, what);
  for (std::size_t i = 0; i < count; ++i) lists_.push_back(tensors(all[i], lengths[i], what));
  spans_.assign(lists_.begin(), lists_.end());
}

void check_size(std::size_t known, const void* given, std::string_view name, const At& what) {
  // More than any version ever has: memory that was never set is not read on.
  constexpr std::size_t kMost = 4096;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < 16 || size % 8 != 0 || size > kMost)
    refuse(ErrorCode::invalid_argument,
           fmt::format("{}.size must be sizeof({}), {} in this version, as its macro _INIT sets it; got {}", what.text(), name, known, size));
  const auto* bytes = static_cast<const unsigned char*>(given);
  for (std::size_t i = known; i < size; ++i)
    if (bytes[i] != 0)
      refuse(ErrorCode::not_supported, fmt::format("bytes of {} behind the {} of {} that this version (ABI {}) knows must be 0, got {} in byte {}", what.text(),
                                                   known, name, CLUTCH_C_ABI, bytes[i], i));
}

void put_text(std::string_view value, char* text, std::size_t capacity, std::size_t* length) {
  if (length) *length = value.size();
  if (!text || capacity == 0) {
    if (!length) refuse_null("length");
    return;
  }
  const std::size_t written = std::min(value.size(), capacity - 1);
  std::copy_n(value.begin(), written, text);
  text[written] = '\0';
}
void put_texts(const std::vector<std::string>& value, char* text, std::size_t capacity, std::size_t* length) {
  put_text(fmt::format("{}", fmt::join(value, "\n")), text, capacity, length);
}
bool fits(std::size_t number, const void* values, std::size_t capacity, std::size_t* count) {
  if (count) *count = number;
  if (!values && capacity == 0) {
    if (!count) refuse_null("count");
    return false;
  }
  if (!values) refuse_null("the results");
  if (capacity < number) refuse(ErrorCode::invalid_argument, fmt::format("capacity must be at least {}, got {}", number, capacity));
  return true;
}
void put_state(const std::map<std::string, Tensor>& value, char* names, std::size_t names_capacity, std::size_t* names_length, clutch_tensor_t** results,
               std::size_t capacity, std::size_t* count) {
  std::vector<std::string> keys;
  std::vector<Tensor> tensors;
  for (const auto& [key, tensor] : value) {
    keys.push_back(key);
    tensors.push_back(tensor);
  }
  put_texts(keys, names, names_capacity, names_length);
  put_objects(tensors, results, capacity, count);
}
void put_memory(std::span<std::byte> value, void** result, std::size_t* size) {
  clear(result);
  *cleared(size) = value.size();
  *result = value.data();
}

}}}  // namespace clutch::v0::capi

extern "C" {

std::int64_t clutch_abi_version(void) { return CLUTCH_C_ABI; }
const char* clutch_error_message(void) {
  const auto& error = clutch::capi::last_error();
  return error.out_of_memory ? "the host has no memory left" : error.message.c_str();
}
const char* clutch_error_op(void) { return clutch::capi::last_error().op.c_str(); }
std::int32_t clutch_error_cl_code(void) { return clutch::capi::last_error().cl_code; }
const char* clutch_status_name(clutch_status_t status) {
  // Names are literals, so that they end in 0.
  const std::string_view name = clutch::name(static_cast<clutch::ErrorCode>(status));
  return name.empty() ? "unknown" : name.data();
}

}  // extern "C"
