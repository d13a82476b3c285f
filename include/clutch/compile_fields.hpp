// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which tensors and which numbers a value has, for compile(): walk() visits both in order.
#include <clutch/random.hpp>
#include <clutch/tensor.hpp>

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace clutch { inline namespace v0 { namespace detail {

template <class T>
inline constexpr bool kNoFields = false;

template <class T, template <class...> class Of>
inline constexpr bool kIsOf = false;
template <template <class...> class Of, class... A>
inline constexpr bool kIsOf<Of<A...>, Of> = true;
template <class T>
inline constexpr bool kIsArray = false;
template <class T, std::size_t N>
inline constexpr bool kIsArray<std::array<T, N>> = true;
template <class T>
inline constexpr bool kIsSpan = false;
template <class T, std::size_t N>
inline constexpr bool kIsSpan<std::span<T, N>> = true;

/// Stands for any field's initial value, where fields are counted.
struct AnyField {
  template <class T>
  requires(!std::is_lvalue_reference_v<T>) operator T() const noexcept;
};
template <class T, std::size_t... I>
constexpr bool takes_fields(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), AnyField{})...}; };
}
/// The most fields of a struct that compile() takes.
inline constexpr std::size_t kMostFields = 20;
template <class T, std::size_t N = kMostFields + 1>
constexpr std::size_t count_fields() {
  if constexpr (takes_fields<T>(std::make_index_sequence<N>()))
    return N;
  else if constexpr (N == 0)
    return kMostFields + 1;
  else
    return count_fields<T, N - 1>();
}

/// Calls `visit` with references to all fields of an aggregate.
template <class T, class Visit>
void with_fields(T& value, Visit&& visit) {
  constexpr std::size_t kCount = count_fields<std::remove_const_t<T>>();
  static_assert(kCount <= kMostFields, "compile(): a struct of arguments or results must have at most 20 fields");
  if constexpr (kCount == 0) {
    visit();
  } else if constexpr (kCount == 1) {
    auto& [a] = value;
    visit(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = value;
    visit(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = value;
    visit(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = value;
    visit(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = value;
    visit(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = value;
    visit(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    visit(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    visit(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    visit(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    visit(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (kCount == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (kCount == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (kCount == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  } else if constexpr (kCount == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o);
  } else if constexpr (kCount == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
  } else if constexpr (kCount == 17) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
  } else if constexpr (kCount == 18) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r);
  } else if constexpr (kCount == 19) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s);
  } else if constexpr (kCount == 20) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t);
  }
}

template <class T>
concept HasFields = requires(T& value) {
  compiled_fields(value);
};

/// Visits the tensors of `value` by visitor.tensor(), and by number(), text() and count() all that is not a tensor.
/// enter() and leave() are called around each part, with its number.
template <class Visitor, class Given>
void walk(Visitor& visitor, Given& value) {
  using T = std::remove_const_t<Given>;
  std::size_t index = 0;
  auto part = [&](auto& field) {
    visitor.enter(index++);
    walk(visitor, field);
    visitor.leave();
  };
  auto all = [&](auto&... fields) { (part(fields), ...); };
  if constexpr (std::is_same_v<T, Tensor>) {
    visitor.tensor(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    visitor.number(value);
  } else if constexpr (std::is_enum_v<T>) {
    visitor.number(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (kIsOf<T, std::complex>) {
    visitor.number(value.real());
    visitor.number(value.imag());
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    visitor.text(std::string_view(value));
  } else if constexpr (std::is_same_v<T, Device>) {
    visitor.number(value.empty() ? -1 : value.index());
  } else if constexpr (std::is_same_v<T, Generator>) {
    visitor.number(value.empty() ? 0 : reinterpret_cast<std::uintptr_t>(value.state_tensor().storage().get()));
  } else if constexpr (std::is_same_v<T, Dims>) {
    visitor.count(static_cast<std::size_t>(value.rank()));
    for (const std::int64_t size : value) visitor.number(size);
  } else if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, std::monostate>) {
    return;
  } else if constexpr (kIsOf<T, std::optional>) {
    visitor.count(value.has_value());
    if (value) walk(visitor, *value);
  } else if constexpr (kIsOf<T, std::vector> || kIsArray<T> || kIsSpan<T>) {
    static_assert(!kIsSpan<T> || !Visitor::kExchanges,
                  "compile(): a std::span must be an argument itself, not a part of one");
    visitor.count(value.size());
    for (auto&& element : value) part(element);
  } else if constexpr (kIsOf<T, std::map>) {
    visitor.count(value.size());
    for (auto& [key, element] : value) {
      walk(visitor, key);
      part(element);
    }
  } else if constexpr (kIsOf<T, std::variant>) {
    visitor.count(value.index());
    std::visit([&](auto& element) { walk(visitor, element); }, value);
  } else if constexpr (kIsOf<T, std::pair> || kIsOf<T, std::tuple>) {
    std::apply(all, value);
  } else if constexpr (HasFields<Given>) {
    std::apply(all, compiled_fields(value));
  } else if constexpr (std::is_aggregate_v<T>) {
    with_fields(value, all);
  } else {
    static_assert(kNoFields<T>,
                  "compile(): arguments and results must be tensors, numbers, enums, texts, Dims, Device, Generator, "
                  "containers or structs of those, or have a function compiled_fields() that ties their parts");
  }
}

/// The type in which compile() keeps a copy of an argument whose tensors it exchanges.
template <class T>
struct CompiledCopy {
  using type = T;
};
template <class T, std::size_t N>
struct CompiledCopy<std::span<T, N>> {
  using type = std::vector<std::remove_const_t<T>>;
};

/// Collects tensors, and bytes that are equal for equal values of all else.
class CompiledKey {
 public:
  static constexpr bool kExchanges = false;
  void tensor(const Tensor& tensor) { tensors.push_back(tensor); }
  template <class T>
  void number(T value) {
    if constexpr (std::is_same_v<T, long double>)
      bytes.append(reinterpret_cast<const char*>(&value), 10);  // the rest is padding where it is wider than double
    else
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view text) {
    count(text.size());
    bytes.append(text);
  }
  void count(std::size_t n) { number(n); }
  void enter(std::size_t) noexcept {}
  void leave() noexcept {}

  std::vector<Tensor> tensors;
  std::string bytes;
};

/// Puts other tensors in the place of a value's own, in order.
struct CompiledExchange {
  static constexpr bool kExchanges = true;
  void tensor(Tensor& tensor) { tensor = next < tensors.size() ? tensors[next] : Tensor(), ++next; }
  template <class T>
  void number(const T&) noexcept {}
  void text(std::string_view) noexcept {}
  void count(std::size_t) noexcept {}
  void enter(std::size_t) noexcept {}
  void leave() noexcept {}

  std::span<const Tensor> tensors;
  std::size_t next = 0;
};

/// Names of an argument's tensors and all else of it as text, for guards.
class CLUTCH_API CompiledNames {
 public:
  static constexpr bool kExchanges = false;
  void tensor(const Tensor&);
  template <class T>
  void number(T value) {
    if constexpr (std::is_same_v<T, bool>)
      add(value ? "true" : "false");
    else if constexpr (std::is_floating_point_v<T>)
      add_number(static_cast<double>(value));
    else
      add(std::to_string(value));
  }
  void text(std::string_view text);
  void count(std::size_t n);
  void enter(std::size_t part);
  void leave();

  std::vector<std::string> tensors;
  std::vector<std::pair<std::string, std::string>> values;

 private:
  void add(std::string value);
  void add_number(double value);
  std::string path() const;
  std::vector<std::size_t> parts_;
};

}}}  // namespace clutch::v0::detail
