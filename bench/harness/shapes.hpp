// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random shapes: values for an op's parameters, drawn by a seed, and their text.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace clutch::bench {

/// What a shape has a value of: a number, or one of some words.
struct Parameter {
  std::string name;
  std::int64_t least = 1, most = 1;
  double often_least = 0;               ///< how often the least number is drawn, beside what the others' rule draws
  std::vector<std::string> words = {};  ///< instead of numbers
};

/// Values for parameters. Its text, "matmul/dtype=f32,m=37,n=1025", repeats it.
class RandomShape {
 public:
  RandomShape(std::string_view op, const std::vector<Parameter>& parameters, std::vector<std::int64_t> values)
      : op_(op), parameters_(&parameters), values_(std::move(values)) {}
  std::int64_t number(std::string_view name) const { return values_[place(name)]; }
  const std::string& word(std::string_view name) const;
  bool has(std::string_view name) const;
  std::string text() const;

 private:
  std::size_t place(std::string_view name) const;
  std::string op_;
  const std::vector<Parameter>* parameters_;  ///< outlives the shape
  std::vector<std::int64_t> values_;          ///< numbers, or places in the words
};

/// Shapes of one op, always the same for a seed. Numbers are drawn with equal chances for each factor of two; a third of them are a power of two or beside one.
class ShapeSource {
 public:
  ShapeSource(std::string_view op, const std::vector<Parameter>& parameters, std::uint64_t seed);
  RandomShape next();

 private:
  std::uint64_t bits();
  double uniform(double least, double most);
  std::int64_t draw(const Parameter& parameter);
  std::string op_;
  const std::vector<Parameter>* parameters_;
  std::uint64_t state_;
};

/// The op that a shape's text begins with.
std::string_view op_of_shape(std::string_view text);

/// The shape of a text, for its op's parameters. Errors: invalid_argument for anything but each of them once, in any order, within its bounds.
RandomShape parse_shape(std::string_view text, const std::vector<Parameter>& parameters);

}  // namespace clutch::bench
