// SPDX-License-Identifier: Apache-2.0
#include "expr/contraction.hpp"

#include "expr/dependence.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace clutch { inline namespace v0 { namespace detail {
namespace {

constexpr int kQuery = 3, kKey = 4;  // indices of inputs of the function; input 0 is the score

/// An integer constant of at most 2^24 in absolute value, so that sums and products of a few are exact.
std::optional<std::int64_t> small_number(const ExprStep& s) {
  if (s.op != ExprOp::constant || !is_whole(s.dtype)) return std::nullopt;
  const std::int64_t n = whole_number(s);
  return n >= -(1 << 24) && n <= 1 << 24 ? std::optional(n) : std::nullopt;
}

/// An addend of a sum. `left` and `right` are its factors, if it is a product of factors that depend on queries and factors that depend on keys.
struct Term {
  bool minus = false;
  std::vector<int> multiplied;  ///< steps whose product the term is
  std::vector<int> left, right;
  bool is_product() const { return !left.empty() && !right.empty(); }
};

class Finder {
 public:
  explicit Finder(const ExprFunction& function) : body_(*function.body()), on_(dependences(body_, kQuery, kKey)) {}

  Contracted run(const ExprFunction& function) {
    find_addends();
    for (std::size_t k = 0; k < body_.steps.size(); ++k)
      if (is_sum(step(static_cast<int>(k))) && !addend_[k]) take_sum(static_cast<int>(k));
    if (made_.sums.empty()) return {function, {}};
    std::vector<DType> inputs = body_.inputs;
    inputs.insert(inputs.end(), dtypes_.begin(), dtypes_.end());
    const std::vector<Expr> values =
        expressions_of(body_, [&](std::size_t k, const std::vector<Expr>& earlier) { return rewritten(static_cast<int>(k), earlier); });
    std::vector<Expr> outputs;
    for (int o : body_.outputs) outputs.push_back(values[static_cast<std::size_t>(o)]);
    made_.rest = ExprFunction(inputs, outputs);
    return std::move(made_);
  }

 private:
  const ExprStep& step(int k) const { return body_.steps[static_cast<std::size_t>(k)]; }
  const Dependence& on(int k) const { return on_[static_cast<std::size_t>(k)]; }
  static bool is_sum(const ExprStep& s) { return is_floating(s.dtype) && (s.op == ExprOp::add || s.op == ExprOp::sub || s.op == ExprOp::fma); }

  /// Marks sums that are an addend of exactly one other sum and have no other use.
  void find_addends() {
    std::vector<int> uses(body_.steps.size());
    addend_.assign(body_.steps.size(), false);
    for (const ExprStep& s : body_.steps)
      for (std::size_t i = 0; i < s.operands.size(); ++i) {
        const auto o = static_cast<std::size_t>(s.operands[i]);
        ++uses[o];
        addend_[o] = is_sum(body_.steps[o]) && is_sum(s) && (s.op != ExprOp::fma || i == 2);
      }
    for (int o : body_.outputs) uses[static_cast<std::size_t>(o)] += 2;
    for (std::size_t k = 0; k < uses.size(); ++k) addend_[k] = addend_[k] && uses[k] == 1;
  }

  /// Lists a sum's terms in the order of the additions.
  void list_terms(int k, bool minus, std::vector<Term>& terms, bool is_root) const {
    const ExprStep& s = step(k);
    if (is_root || addend_[static_cast<std::size_t>(k)]) {
      if (s.op == ExprOp::fma) {
        list_terms(s.operands[2], minus, terms, false);
        add_term({.minus = minus, .multiplied = {s.operands[0], s.operands[1]}}, terms);
      } else {
        list_terms(s.operands[0], minus, terms, false);
        list_terms(s.operands[1], minus != (s.op == ExprOp::sub), terms, false);
      }
      return;
    }
    add_term({.minus = minus, .multiplied = {k}}, terms);
  }
  void add_term(Term term, std::vector<Term>& terms) const {
    bool apart = true;
    for (int k : term.multiplied) sort_factors(k, term, apart);
    if (!apart) term.left.clear();
    terms.push_back(std::move(term));
  }
  void sort_factors(int k, Term& term, bool& apart) const {
    const ExprStep& s = step(k);
    const bool widens = s.op == ExprOp::cast && s.target == DType::f64 && is_floating(step(s.operands[0]).dtype);
    if (s.op == ExprOp::mul || widens) {
      for (int o : s.operands) sort_factors(o, term, apart);
    } else if (!on(k).on(0) && !on(k).on(kKey)) {
      term.left.push_back(k);
    } else {
      apart = apart && !on(k).on(0) && !on(k).on(kQuery);
      term.right.push_back(k);
    }
  }

  /// Equal for steps that differ in integer constants alone.
  std::size_t shape_of(int k) {
    if (const auto known = shape_.find(k); known != shape_.end()) return known->second;
    const ExprStep& s = step(k);
    std::vector<std::size_t> key{static_cast<std::size_t>(s.op), static_cast<std::size_t>(s.dtype), static_cast<std::size_t>(s.target)};
    if (!small_number(s)) key.push_back(s.bits), key.push_back(static_cast<std::size_t>(s.index));
    for (int o : s.operands) key.push_back(shape_of(o));
    return shape_[k] = shapes_.try_emplace(std::move(key), shapes_.size()).first->second;
  }

  void take_sum(int root) {
    std::vector<Term> terms;
    list_terms(root, false, terms, true);
    std::map<std::vector<std::size_t>, std::vector<std::size_t>> alike;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (!terms[t].is_product()) continue;
      std::vector<std::size_t> key{terms[t].minus, terms[t].left.size()};
      for (const std::vector<int>* side : {&terms[t].left, &terms[t].right})
        for (int k : *side) key.push_back(shape_of(k));
      alike[key].push_back(t);
    }
    std::map<std::size_t, int> first_of;  // index of a sum's first term: the contraction that replaces the term
    std::vector<bool> taken(terms.size());
    for (const auto& [key, members] : alike) {
      if (members.size() < kFewestProducts || made_.sums.size() == kMostContractions) continue;
      std::vector<const Term*> products;
      for (std::size_t t : members) products.push_back(&terms[t]);
      const DType dtype = step(root).dtype;
      const std::optional<ExprFunction> left = rolled(products, &Term::left, kQuery, dtype), right = rolled(products, &Term::right, kKey, dtype);
      if (!left || !right) continue;
      first_of[members[0]] = static_cast<int>(made_.sums.size());
      for (std::size_t t : members) taken[t] = true;
      made_.sums.push_back({static_cast<std::int64_t>(members.size()), *left, *right});
      dtypes_.push_back(dtype);
    }
    if (first_of.empty()) return;
    std::vector<Addend> addends;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const auto first = first_of.find(t);
      if (first != first_of.end())
        addends.push_back({.term = terms[t], .contraction = first->second});
      else if (!taken[t])
        addends.push_back({.term = terms[t]});
    }
    sums_.emplace(root, std::move(addends));
  }

  /// One side of the products as a function of b, h, the side's own position (q or kv) and the index of the product.
  std::optional<ExprFunction> rolled(const std::vector<const Term*>& products, std::vector<int> Term::*side, int own, DType dtype) {
    const Expr number = expr_input(3, DType::i32);
    const std::vector<Expr> values = expressions_of(body_, [&](std::size_t k, const std::vector<Expr>&) -> std::optional<Expr> {
      const ExprStep& s = body_.steps[k];
      if (s.op != ExprOp::input) return std::nullopt;
      // The side uses no other inputs.
      return s.index == own ? expr_input(2, DType::i32) : s.index == 1 || s.index == 2 ? expr_input(s.index - 1, DType::i32) : expr_constant(s.dtype, 0);
    });
    std::optional<Expr> product;
    for (std::size_t i = 0; i < (products[0]->*side).size(); ++i) {
      std::vector<int> steps;
      for (const Term* p : products) steps.push_back((p->*side)[i]);
      std::map<std::vector<int>, Expr> known;
      const std::optional<Expr> factor = rolled(steps, values, number, known);
      if (!factor) return std::nullopt;
      product = product ? *product * *factor : *factor;
    }
    if (side == &Term::left && products[0]->minus) product = -*product;
    const DType inputs[] = {DType::i32, DType::i32, DType::i32, DType::i32};
    const Expr output = cast(*product, dtype);
    return ExprFunction(inputs, std::span(&output, 1));
  }
  std::optional<Expr> rolled(const std::vector<int>& steps, const std::vector<Expr>& values, const Expr& number,
                             std::map<std::vector<int>, Expr>& known) const {
    const ExprStep& first = step(steps[0]);
    if (std::equal(steps.begin() + 1, steps.end(), steps.begin())) return values[static_cast<std::size_t>(steps[0])];
    if (const auto found = known.find(steps); found != known.end()) return found->second;
    std::optional<Expr> made;
    if (first.op == ExprOp::constant) {
      auto value = [&](std::size_t i) { return *small_number(step(steps[i])); };
      const std::int64_t from = value(0), by = value(1) - from;
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (value(i) != from + by * static_cast<std::int64_t>(i)) return std::nullopt;
      made = cast(number, first.dtype) * by + from;
    } else {
      std::vector<Expr> operands;
      for (std::size_t i = 0; i < first.operands.size(); ++i) {
        std::vector<int> each;
        for (int k : steps) each.push_back(step(k).operands[i]);
        const std::optional<Expr> operand = rolled(each, values, number, known);
        if (!operand) return std::nullopt;
        operands.push_back(*operand);
      }
      made = expression_of(body_, first, operands);
    }
    known.emplace(steps, *made);
    return made;
  }

  /// The sum in `k` with contractions in place of their terms, added in the order of the terms.
  std::optional<Expr> rewritten(int k, const std::vector<Expr>& earlier) const {
    const auto sum = sums_.find(k);
    if (sum == sums_.end()) return std::nullopt;
    std::optional<Expr> total;
    for (const Addend& a : sum->second) {
      std::optional<Expr> value;
      if (a.contraction >= 0)
        value = expr_input(static_cast<int>(body_.inputs.size()) + a.contraction, dtypes_[static_cast<std::size_t>(a.contraction)]);
      else
        for (int factor : a.term.multiplied) {
          const Expr& x = earlier[static_cast<std::size_t>(factor)];
          value = value ? *value * x : x;
        }
      const bool minus = a.contraction < 0 && a.term.minus;
      total = !total ? (minus ? -*value : *value) : minus ? *total - *value : *total + *value;
    }
    return total;
  }

  struct Addend {
    Term term;
    int contraction = -1;
  };
  const ExprBody& body_;
  const std::vector<Dependence> on_;
  std::vector<bool> addend_;
  std::map<std::vector<std::size_t>, std::size_t> shapes_;
  std::map<int, std::size_t> shape_;  // by step
  std::map<int, std::vector<Addend>> sums_;
  std::vector<DType> dtypes_;  // of the contractions
  Contracted made_;
};

}  // namespace

Contracted contracted(const ExprFunction& function) { return Finder(function).run(function); }

}}}  // namespace clutch::v0::detail
