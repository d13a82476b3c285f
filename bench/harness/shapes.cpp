// SPDX-License-Identifier: Apache-2.0
#include "harness/shapes.hpp"

#include <clutch/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace clutch::bench {

namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(ErrorCode::invalid_argument, "clutch-bench", text); }

}  // namespace

std::size_t RandomShape::place(std::string_view name) const {
  const auto found = std::find_if(parameters_->begin(), parameters_->end(), [&](const Parameter& p) { return p.name == name; });
  if (found == parameters_->end()) throw Error(ErrorCode::internal, "clutch-bench", fmt::format("{} must have the parameter {}, got none", op_, name));
  return static_cast<std::size_t>(found - parameters_->begin());
}

bool RandomShape::has(std::string_view name) const {
  return std::any_of(parameters_->begin(), parameters_->end(), [&](const Parameter& p) { return p.name == name; });
}

const std::string& RandomShape::word(std::string_view name) const {
  const std::size_t at = place(name);
  return (*parameters_)[at].words.at(static_cast<std::size_t>(values_[at]));
}

std::string RandomShape::text() const {
  std::string text = op_;
  for (std::size_t k = 0; k < parameters_->size(); ++k) {
    const Parameter& p = (*parameters_)[k];
    text += fmt::format("{}{}={}", k == 0 ? '/' : ',', p.name, p.words.empty() ? std::to_string(values_[k]) : p.words.at(static_cast<std::size_t>(values_[k])));
  }
  return text;
}

ShapeSource::ShapeSource(std::string_view op, const std::vector<Parameter>& parameters, std::uint64_t seed)
    : op_(op), parameters_(&parameters), state_(seed * 0x9E3779B97F4A7C15u) {
  for (char c : op) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;  // other shapes for each op
}

// SplitMix64.
std::uint64_t ShapeSource::bits() {
  std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

double ShapeSource::uniform(double least, double most) { return least + (most - least) * static_cast<double>(bits() >> 11) * 0x1p-53; }

std::int64_t ShapeSource::draw(const Parameter& p) {
  if (!p.words.empty()) return static_cast<std::int64_t>(bits() % p.words.size());
  if (uniform(0, 1) < p.often_least) return p.least;
  // From 0 on, one more is drawn, whose logarithm is finite.
  const std::int64_t shift = p.least < 1 ? 1 - p.least : 0;
  const double least = static_cast<double>(p.least + shift), most = static_cast<double>(p.most + shift) + 1;
  std::int64_t value = static_cast<std::int64_t>(std::exp(uniform(std::log(least), std::log(most))));
  if (bits() % 3 == 0) {
    const auto exponent = static_cast<int>(std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(value, 1)))));
    value = (std::int64_t{1} << exponent) + static_cast<std::int64_t>(bits() % 3) - 1;
  }
  return std::clamp(value - shift, p.least, p.most);
}

RandomShape ShapeSource::next() {
  std::vector<std::int64_t> values;
  for (const Parameter& p : *parameters_) values.push_back(draw(p));
  return {op_, *parameters_, std::move(values)};
}

std::string_view op_of_shape(std::string_view text) { return text.substr(0, text.find('/')); }

RandomShape parse_shape(std::string_view text, const std::vector<Parameter>& parameters) {
  const std::string_view op = op_of_shape(text);
  std::vector<std::optional<std::int64_t>> values(parameters.size());
  std::string_view rest = op.size() < text.size() ? text.substr(op.size() + 1) : std::string_view();
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals), value = equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
    const auto p = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& parameter) { return parameter.name == name; });
    if (p == parameters.end()) {
      std::vector<std::string_view> names;
      for (const Parameter& parameter : parameters) names.push_back(parameter.name);
      refuse(fmt::format("a parameter of {} must be one of {}, got '{}'", op, fmt::join(names, " "), name));
    }
    std::optional<std::int64_t>& place = values[static_cast<std::size_t>(p - parameters.begin())];
    if (place) refuse(fmt::format("a parameter of {} must be given once, got {} twice", op, name));
    if (!p->words.empty()) {
      const auto word = std::find(p->words.begin(), p->words.end(), value);
      if (word == p->words.end()) refuse(fmt::format("{} of {} must be one of {}, got '{}'", name, op, fmt::join(p->words, " "), value));
      place = word - p->words.begin();
    } else {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < p->least || number > p->most)
        refuse(fmt::format("{} of {} must be a number from {} to {}, got '{}'", name, op, p->least, p->most, value));
      place = number;
    }
  }
  std::vector<std::int64_t> given;
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (!values[k]) refuse(fmt::format("the shape of {} must give {}, got '{}'", op, parameters[k].name, text));
    given.push_back(*values[k]);
  }
  return {op, parameters, std::move(given)};
}

}  // namespace clutch::bench
