// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reverse-mode differentiation of scalars in double: an independent reference for gradients of whole networks.
#include <cmath>
#include <cstddef>
#include <vector>

namespace clutch::testing {

/// Numbers and how each was made; one tape at a time, the thread's own.
class Tape {
 public:
  struct Node {
    std::size_t left, right;
    double left_slope, right_slope;
  };
  static Tape& current() {
    static thread_local Tape tape;
    return tape;
  }
  void clear() { nodes_.clear(); }
  std::size_t add(std::size_t left, double left_slope, std::size_t right = 0, double right_slope = 0) {
    nodes_.push_back({left, right, left_slope, right_slope});
    return nodes_.size() - 1;
  }
  std::size_t leaf() { return add(0, 0); }
  /// Derivatives of node `of` by every node.
  std::vector<double> gradients(std::size_t of) const {
    std::vector<double> slope(nodes_.size(), 0);
    slope[of] = 1;
    for (std::size_t k = of + 1; k-- > 0;) {
      slope[nodes_[k].left] += k == nodes_[k].left ? 0 : slope[k] * nodes_[k].left_slope;
      slope[nodes_[k].right] += k == nodes_[k].right ? 0 : slope[k] * nodes_[k].right_slope;
    }
    return slope;
  }

 private:
  std::vector<Node> nodes_;
};

/// A number on the tape.
struct Var {
  double value = 0;
  std::size_t id = 0;

  static Var leaf(double v) { return {v, Tape::current().leaf()}; }
  static Var of(double v, const Var& a, double slope) { return {v, Tape::current().add(a.id, slope)}; }
  friend Var operator+(const Var& a, const Var& b) { return {a.value + b.value, Tape::current().add(a.id, 1, b.id, 1)}; }
  friend Var operator-(const Var& a, const Var& b) { return {a.value - b.value, Tape::current().add(a.id, 1, b.id, -1)}; }
  friend Var operator*(const Var& a, const Var& b) { return {a.value * b.value, Tape::current().add(a.id, b.value, b.id, a.value)}; }
  friend Var operator/(const Var& a, const Var& b) { return {a.value / b.value, Tape::current().add(a.id, 1 / b.value, b.id, -a.value / (b.value * b.value))}; }
  friend Var operator*(const Var& a, double c) { return of(a.value * c, a, c); }
  friend Var operator+(const Var& a, double c) { return of(a.value + c, a, 1); }
  friend Var exp(const Var& a) { return of(std::exp(a.value), a, std::exp(a.value)); }
  friend Var log(const Var& a) { return of(std::log(a.value), a, 1 / a.value); }
  friend Var sqrt(const Var& a) { return of(std::sqrt(a.value), a, 0.5 / std::sqrt(a.value)); }
  friend Var relu(const Var& a) { return of(a.value > 0 ? a.value : 0, a, a.value > 0 ? 1 : 0); }
  friend Var gelu(const Var& a) {
    constexpr double kRoot2 = 1.4142135623730951, kRootTau = 2.5066282746310002;
    double below = 0.5 * (1 + std::erf(a.value / kRoot2));
    return of(a.value * below, a, below + a.value * std::exp(-0.5 * a.value * a.value) / kRootTau);
  }
};

using Vars = std::vector<Var>;

inline Var sum(const Vars& v) {
  Var total = v[0];
  for (std::size_t i = 1; i < v.size(); ++i) total = total + v[i];
  return total;
}
inline Var dot(const Vars& a, const Vars& b) {
  Var total = a[0] * b[0];
  for (std::size_t i = 1; i < a.size(); ++i) total = total + a[i] * b[i];
  return total;
}
inline Vars softmax(const Vars& x) {
  double top = x[0].value;
  for (const Var& v : x) top = std::fmax(top, v.value);
  Vars e;
  for (const Var& v : x) e.push_back(exp(v + -top));
  Var total = sum(e);
  for (Var& v : e) v = v / total;
  return e;
}
/// -log softmax(x)[target].
inline Var cross_entropy(const Vars& x, std::size_t target) { return log(softmax(x)[target]) * -1; }
inline Vars layer_norm(const Vars& x, const Vars& weight, const Vars& bias, double eps) {
  auto n = static_cast<double>(x.size());
  Var mean = sum(x) * (1 / n);
  Vars centered, y;
  for (const Var& v : x) centered.push_back(v - mean);
  Var deviation = sqrt(dot(centered, centered) * (1 / n) + eps);
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(centered[i] / deviation * weight[i] + bias[i]);
  return y;
}

}  // namespace clutch::testing
