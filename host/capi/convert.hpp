// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the functions of the C ABI are made of: errors at the border, and conversions between C's arguments and C++'s.
#include <clutch/clutch.h>
#include <clutch/allocator.hpp>
#include <clutch/attention.hpp>
#include <clutch/complex.hpp>
#include <clutch/dlpack.hpp>
#include <clutch/event.hpp>
#include <clutch/files.hpp>
#include <clutch/foreach.hpp>
#include <clutch/graph.hpp>
#include <clutch/host_memory.hpp>
#include <clutch/nn.hpp>
#include <clutch/ops.hpp>
#include <clutch/paged_cache.hpp>
#include <clutch/partition.hpp>
#include <clutch/pointwise.hpp>
#include <clutch/profiler.hpp>
#include <clutch/random.hpp>
#include <clutch/settings.hpp>
#include <clutch/sparse.hpp>
#include <clutch/storage.hpp>
#include <clutch/tune.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clutch { inline namespace v0 { namespace capi {

/// A C function that runs on this thread: errors of arguments carry its name. Calls nest where C calls back.
class Call {
 public:
  explicit Call(const char* name) noexcept;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  const char* former_;
};

/// Keeps the exception that is being handled as this thread's last error and returns its code.
clutch_status_t keep_error() noexcept;

/// Runs what a C function does; no exception leaves it.
template <class F>
clutch_status_t guarded(const char* name, const F& f) noexcept {
  const Call call(name);
  try {
    f();
    return CLUTCH_OK;
  } catch (...) {
    return keep_error();
  }
}

/// The name of an argument, or of a field of one.
struct At {
  At(std::string_view argument) : what(argument) {}
  At(const char* argument) : what(argument) {}
  At(std::string_view argument, std::string_view inner) : what(argument), field(inner) {}
  std::string text() const;
  std::string_view what, field = {};
};
inline At at(std::string_view argument, std::string_view field) { return {argument, field}; }

/// Throws an Error in the name of the C function that runs.
[[noreturn]] void refuse(ErrorCode code, const std::string& message);
[[noreturn]] void refuse_null(const At& what);
[[noreturn]] void refuse_enumerator(std::int64_t given, std::span<const std::string_view> names, const At& what);
[[noreturn]] void refuse_range(std::int64_t given, std::int64_t low, std::int64_t high, const At& what);

// Objects.

/// The object behind a pointer, an empty one behind NULL.
template <class H>
const typename H::Value& ref(const H* object) {
  if constexpr (std::is_default_constructible_v<typename H::Value>) {
    static const typename H::Value& empty = *new typename H::Value();
    return object ? object->value : empty;
  } else {
    if (!object) refuse_null("the object");
    return object->value;
  }
}
template <class H>
const typename H::Value& need(const H* object, const char* what) {
  if (!object) refuse_null(what);
  return object->value;
}
template <class H>
typename H::Value& need(H* object, const char* what) {
  if (!object) refuse_null(what);
  return object->value;
}
template <class H>
void release(const H* object) noexcept {
  delete object;
}
template <class T>
T* cleared(T* result) {
  if (!result) refuse_null("result");
  return result;
}
template <class T>
void clear(T** result) {
  *cleared(result) = nullptr;
}
inline bool is_empty(const Tensor& tensor) { return !tensor.defined(); }
template <class T>
bool is_empty(const T& value) {
  return value.empty();
}
/// A new object; none for an empty value.
template <class H, class V>
H* share(const V& value) {
  return is_empty(value) ? nullptr : new H{value};
}

// Numbers and text.

bool flag(std::int64_t given, const At& what);
template <class T>
T narrow(std::int64_t given, const At& what) {
  if (!std::in_range<T>(given)) refuse_range(given, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), what);
  return static_cast<T>(given);
}
/// Names of an enum's enumerators.
template <class E>
struct Enumerators;
template <class E>
E enumerator(std::int64_t given, const At& what) {
  const auto& names = Enumerators<E>::kNames;
  if (given < 0 || given >= static_cast<std::int64_t>(names.size())) refuse_enumerator(given, names, what);
  return static_cast<E>(given);
}
inline const char* text(const char* given) { return given ? given : ""; }
Scalar number(clutch_number_t given);

// Lists.

/// Elements of a list. Errors: invalid_argument for NULL in the place of some.
template <class T>
std::span<const T> list(const T* given, std::size_t count, const At& what) {
  if (!given && count > 0) refuse_null(what);
  return {given, count};
}
Dims dims(const std::int64_t* given, std::size_t count, const At& what);
inline std::span<const std::int64_t> i64s(const std::int64_t* given, std::size_t count, const At& what) { return list(given, count, what); }
inline std::span<const double> f64s(const double* given, std::size_t count, const At& what) { return list(given, count, what); }
std::vector<int> i32s(const std::int64_t* given, std::size_t count, const At& what);
std::vector<DType> dtypes(const std::int64_t* given, std::size_t count, const At& what);
DTypeList dtype_list(const std::int64_t* given, std::size_t count, const At& what);
std::vector<Reduce> reduces(const std::int64_t* given, std::size_t count, const At& what);
std::vector<attention::SdpaBackend> backends(const std::int64_t* given, std::size_t count, const At& what);
std::vector<std::string> texts(const char* const* given, std::size_t count, const At& what);
std::vector<Tensor> tensors(const clutch_tensor_t* const* given, std::size_t count, const At& what);
std::vector<ExprFunction> functions(const clutch_expr_function_t* const* given, std::size_t count, const At& what);
std::map<std::string, Tensor> state(const char* const* names, const std::vector<Tensor>& tensors, std::size_t count);
inline std::span<const std::byte> bytes(const void* given, std::size_t size, const At& what) { return list(static_cast<const std::byte*>(given), size, what); }
inline std::span<std::byte> buffer(void* given, std::size_t size, const At& what) {
  if (!given && size > 0) refuse_null(what);
  return {static_cast<std::byte*>(given), size};
}
/// Lists of tensors, for the length of a call.
class TensorLists {
 public:
  TensorLists(const clutch_tensor_t* const* const* given, const std::size_t* sizes, std::size_t count, const At& what);
  operator std::span<const std::span<const Tensor>>() const { return spans_; }

 private:
  std::vector<std::vector<Tensor>> lists_;
  std::vector<std::span<const Tensor>> spans_;
};

// Sized structs.

/// A struct with its defaults, and its name.
template <class C>
struct Initial;
/// Errors: invalid_argument for a size that no version of the struct has; not_supported for fields beyond `known` bytes that are not 0.
void check_size(std::size_t known, const void* given, std::string_view name, const At& what);
/// The caller's fields, and defaults behind them.
template <class C>
C sized(const C* given, const At& what) {
  check_size(sizeof(C), given, Initial<C>::kName, what);
  C result = Initial<C>::value();
  std::memcpy(&result, given, std::min(given->size, sizeof(C)));
  result.size = sizeof(C);
  return result;
}
/// A struct that the caller gets: written up to its size when it is whole.
template <class C>
struct Result {
  Result(C* result, std::string_view what) : to(cleared(result)) { check_size(sizeof(C), result, Initial<C>::kName, what); }
  bool has(std::size_t offset) const { return offset + 8 <= to->size; }
  void commit() {
    const std::size_t size = to->size;
    std::memcpy(to, &made, std::min(size, sizeof(C)));
    to->size = size;
  }
  C* to;
  C made = Initial<C>::value();
};

// Results.

void put_text(std::string_view value, char* text, std::size_t capacity, std::size_t* length);
void put_texts(const std::vector<std::string>& value, char* text, std::size_t capacity, std::size_t* length);
/// Whether all of so many are to be written. Errors: invalid_argument where the capacity is below their number.
bool fits(std::size_t number, const void* values, std::size_t capacity, std::size_t* count);
template <class Range>
void put_numbers(const Range& value, std::int64_t* values, std::size_t capacity, std::size_t* count) {
  const auto number = static_cast<std::size_t>(std::distance(value.begin(), value.end()));
  if (!fits(number, values, capacity, count)) return;
  for (const auto n : value) *values++ = n;
}
template <class H, class Range>
void put_objects(const Range& value, H** results, std::size_t capacity, std::size_t* count) {
  if (!fits(value.size(), results, capacity, count)) return;
  std::vector<std::unique_ptr<H>> made;
  for (const auto& v : value) made.emplace_back(new H{v});
  for (auto& m : made) *results++ = m.release();
}
void put_state(const std::map<std::string, Tensor>& value, char* names, std::size_t names_capacity, std::size_t* names_length, clutch_tensor_t** results,
               std::size_t capacity, std::size_t* count);
void put_memory(std::span<std::byte> value, void** result, std::size_t* size);

}}}  // namespace clutch::v0::capi
