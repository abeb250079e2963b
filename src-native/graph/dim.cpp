#include "graph/dim.h"

#include <algorithm>
#include <compare>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace infernode::graph {
namespace {

/// Bounds on an expression; beyond them the result is a fresh unknown.
constexpr size_t kMaxTerms = 64;
constexpr size_t kMaxSize = 256;
constexpr int kMaxDegree = 16;
/// Orders of arguments looked at to find one order: nested minimums and maximums offer exponentially many.
constexpr int kMaxOrders = 64;
/// Ends of slices that mean "to the end": no axis is that long.
constexpr int64_t kUnbounded = INT32_MAX;

/// An indivisible factor. Fresh ones are told apart by their address.
struct Atom {
  enum class Kind : uint8_t { Named, Fresh, FloorDiv, Min, Max } kind;
  std::string name;
  std::vector<Dim> arguments;  ///< FloorDiv: dividend, divisor. Min and Max: two or more, sorted
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Factor {
  AtomPtr atom;
  int power;
};
/// Product of factors, sorted by atom; never empty in a term.
using Monomial = std::vector<Factor>;
struct Term {
  Monomial monomial;
  int64_t coefficient;
};

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

}  // namespace

/// Sum of terms (sorted, no zero coefficients) and a constant.
class DimExpr {
 public:
  std::vector<Term> terms;
  int64_t constant = 0;
  size_t size = 0;  ///< terms and factors, those of atoms' arguments included

  static DimExpr of(const Dim& d) {
    if (d.expr_) return *d.expr_;
    DimExpr e;
    e.constant = d.value_;
    return e;
  }
  static const DimExpr* get(const Dim& d) { return d.expr_.get(); }
  static size_t size_of(const Dim& d) { return d.expr_ ? d.expr_->size : 1; }

  static Dim dim_of(DimExpr e) {
    if (e.terms.empty()) return Dim(e.constant);
    e.size = 1;
    for (const Term& t : e.terms) {
      int degree = 0;
      for (const Factor& f : t.monomial) {
        degree += f.power;
        e.size += 1;
        for (const Dim& a : f.atom->arguments) e.size += size_of(a);
      }
      if (degree > kMaxDegree) return Dim::unknown();
    }
    if (e.terms.size() > kMaxTerms || e.size > kMaxSize) return Dim::unknown();
    return Dim(std::make_shared<const DimExpr>(std::move(e)));
  }

  static Dim of_atom(Atom atom) {
    DimExpr e;
    e.terms.push_back({{{std::make_shared<const Atom>(std::move(atom)), 1}}, 1});
    return dim_of(std::move(e));
  }

  /// The atom where the expression is that and nothing else.
  const Atom* sole_atom() const {
    if (constant != 0 || terms.size() != 1) return nullptr;
    const Term& t = terms[0];
    return t.coefficient == 1 && t.monomial.size() == 1 && t.monomial[0].power == 1 ? t.monomial[0].atom.get()
                                                                                    : nullptr;
  }
};

namespace {

std::strong_ordering compare(const Dim& a, const Dim& b);

std::strong_ordering compare(const AtomPtr& a, const AtomPtr& b) {
  if (a == b) return std::strong_ordering::equal;
  if (auto c = a->kind <=> b->kind; c != 0) return c;
  if (a->kind == Atom::Kind::Named) return a->name <=> b->name;
  if (a->kind == Atom::Kind::Fresh) return std::compare_three_way()(a.get(), b.get());
  return std::lexicographical_compare_three_way(a->arguments.begin(), a->arguments.end(), b->arguments.begin(),
                                                b->arguments.end(),
                                                [](const Dim& x, const Dim& y) { return compare(x, y); });
}

/// Graded lexicographic order, the greatest monomial first.
std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  int degree_a = 0, degree_b = 0;
  for (const Factor& f : a) degree_a += f.power;
  for (const Factor& f : b) degree_b += f.power;
  if (degree_a != degree_b) return degree_b <=> degree_a;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (auto c = compare(a[i].atom, b[i].atom); c != 0) return c;
    if (a[i].power != b[i].power) return b[i].power <=> a[i].power;
  }
  return b.size() <=> a.size();
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  const DimExpr *x = DimExpr::get(a), *y = DimExpr::get(b);
  if (x == y) return x ? std::strong_ordering::equal : a.value() <=> b.value();
  if (!x || !y) return x ? std::strong_ordering::greater : std::strong_ordering::less;
  for (size_t i = 0; i < x->terms.size() && i < y->terms.size(); ++i) {
    if (auto c = compare(x->terms[i].monomial, y->terms[i].monomial); c != 0) return c;
    if (auto c = x->terms[i].coefficient <=> y->terms[i].coefficient; c != 0) return c;
  }
  if (auto c = x->terms.size() <=> y->terms.size(); c != 0) return c;
  return x->constant <=> y->constant;
}

/// Sorts terms and adds up equal monomials; false where a coefficient overflows.
bool normalise(std::vector<Term>& terms) {
  std::ranges::sort(terms, [](const Term& a, const Term& b) { return compare(a.monomial, b.monomial) < 0; });
  size_t kept = 0;
  for (size_t i = 0; i < terms.size();) {
    Term sum = std::move(terms[i]);
    for (++i; i < terms.size() && compare(terms[i].monomial, sum.monomial) == 0; ++i)
      if (add_overflows(sum.coefficient, terms[i].coefficient, sum.coefficient)) return false;
    if (sum.coefficient != 0) terms[kept++] = std::move(sum);
  }
  terms.resize(kept);
  return true;
}

Monomial product(const Monomial& a, const Monomial& b) {
  Monomial out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const auto order = i == a.size()   ? std::strong_ordering::greater
                       : j == b.size() ? std::strong_ordering::less
                                       : compare(a[i].atom, b[j].atom);
    if (order < 0)
      out.push_back(a[i++]);
    else if (order > 0)
      out.push_back(b[j++]);
    else
      out.push_back({a[i].atom, a[i++].power + b[j++].power});
  }
  return out;
}

/// a / b where b's factors are all in a.
std::optional<Monomial> quotient(const Monomial& a, const Monomial& b) {
  Monomial out;
  size_t j = 0;
  for (const Factor& f : a) {
    Factor rest = f;
    if (j < b.size() && compare(f.atom, b[j].atom) == 0) rest.power -= b[j++].power;
    if (rest.power < 0) return std::nullopt;
    if (rest.power > 0) out.push_back(std::move(rest));
  }
  return j == b.size() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<DimExpr> add_scaled(const DimExpr& a, const DimExpr& b, int64_t scale) {
  DimExpr out = a;
  int64_t scaled;
  if (mul_overflows(b.constant, scale, scaled) || add_overflows(a.constant, scaled, out.constant)) return std::nullopt;
  for (const Term& t : b.terms) {
    if (mul_overflows(t.coefficient, scale, scaled)) return std::nullopt;
    out.terms.push_back({t.monomial, scaled});
  }
  if (!normalise(out.terms)) return std::nullopt;
  return out;
}

std::optional<DimExpr> multiply(const DimExpr& a, const DimExpr& b) {
  DimExpr out;
  int64_t c;
  if (mul_overflows(a.constant, b.constant, out.constant)) return std::nullopt;
  if (a.terms.size() * b.terms.size() > kMaxTerms * 4) return std::nullopt;
  for (const Term& t : a.terms) {
    if (mul_overflows(t.coefficient, b.constant, c)) return std::nullopt;
    if (c != 0) out.terms.push_back({t.monomial, c});
    for (const Term& u : b.terms) {
      if (mul_overflows(t.coefficient, u.coefficient, c)) return std::nullopt;
      out.terms.push_back({product(t.monomial, u.monomial), c});
    }
  }
  for (const Term& u : b.terms) {
    if (mul_overflows(u.coefficient, a.constant, c)) return std::nullopt;
    if (c != 0) out.terms.push_back({u.monomial, c});
  }
  if (!normalise(out.terms)) return std::nullopt;
  return out;
}

Dim dim_or_unknown(std::optional<DimExpr> e) { return e ? DimExpr::dim_of(*std::move(e)) : Dim::unknown(); }

bool non_negative(const Dim& d);

bool non_negative(const Atom& a) {
  switch (a.kind) {
    case Atom::Kind::Named:  // names of dimensions
      return true;
    case Atom::Kind::Fresh:
      return false;
    case Atom::Kind::FloorDiv:
      return non_negative(a.arguments[0]) && non_negative(a.arguments[1]);
    case Atom::Kind::Min:
      return std::ranges::all_of(a.arguments, [](const Dim& d) { return non_negative(d); });
    case Atom::Kind::Max:
      return std::ranges::any_of(a.arguments, [](const Dim& d) { return non_negative(d); });
  }
  return false;
}

/// Certainly >= 0, whatever its (non-negative) named symbols are.
bool non_negative(const Dim& d) {
  const DimExpr* e = DimExpr::get(d);
  if (!e) return d.value() >= 0;
  if (e->constant < 0) return false;
  return std::ranges::all_of(e->terms, [](const Term& t) {
    return t.coefficient > 0 &&
           std::ranges::all_of(t.monomial, [](const Factor& f) { return f.power % 2 == 0 || non_negative(*f.atom); });
  });
}

/// Divides by a polynomial as long as leading terms divide: a = quotient * b + remainder.
std::optional<std::pair<DimExpr, DimExpr>> divide(const DimExpr& a, const DimExpr& b) {
  DimExpr q, rest = a, remainder;
  const Term& lead = b.terms[0];
  for (size_t step = 0; !rest.terms.empty(); ++step) {
    if (step > kMaxTerms * 2) return std::nullopt;
    const Term t = rest.terms[0];
    const auto m = quotient(t.monomial, lead.monomial);
    if (!m || t.coefficient % lead.coefficient != 0) {
      remainder.terms.push_back(t);
      rest.terms.erase(rest.terms.begin());
      continue;
    }
    DimExpr part;
    if (m->empty())
      part.constant = t.coefficient / lead.coefficient;
    else
      part.terms.push_back({*m, t.coefficient / lead.coefficient});
    const auto taken = multiply(part, b);
    auto sum = add_scaled(q, part, 1);
    if (!taken || !sum) return std::nullopt;
    auto left = add_scaled(rest, *taken, -1);
    if (!left) return std::nullopt;
    q = *std::move(sum);
    rest = *std::move(left);
  }
  remainder.constant = rest.constant;
  return std::pair(std::move(q), std::move(remainder));
}

/// Floor of a symbolic dividend by a known divisor above 1: whole multiples leave the quotient, so equal values look
/// equal.
Dim floor_div_known(const Dim& a, int64_t b) {
  DimExpr whole, rest;
  const DimExpr& e = *DimExpr::get(a);
  for (const Term& t : e.terms) {
    const int64_t q = floor_quotient(t.coefficient, b);
    if (q != 0) whole.terms.push_back({t.monomial, q});
    if (const int64_t r = t.coefficient - q * b; r != 0) rest.terms.push_back({t.monomial, r});
  }
  whole.constant = floor_quotient(e.constant, b);
  rest.constant = e.constant - whole.constant * b;
  if (rest.terms.empty()) return DimExpr::dim_of(std::move(whole));
  // floor((floor(x / c) + k) / b) = floor((x + k * c) / (b * c))
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 && rest.terms[0].monomial.size() == 1 &&
      rest.terms[0].monomial[0].power == 1) {
    const Atom& inner = *rest.terms[0].monomial[0].atom;
    int64_t divisor;
    if (inner.kind == Atom::Kind::FloorDiv && inner.arguments[1].known() &&
        !mul_overflows(b, inner.arguments[1].value(), divisor))
      return DimExpr::dim_of(std::move(whole)) +
             floor_div(inner.arguments[0] + Dim(rest.constant) * inner.arguments[1], Dim(divisor));
  }
  return DimExpr::dim_of(std::move(whole)) +
         DimExpr::of_atom({Atom::Kind::FloorDiv, {}, {DimExpr::dim_of(std::move(rest)), Dim(b)}});
}

void flatten(const Dim& d, Atom::Kind kind, std::vector<Dim>& out) {
  const DimExpr* e = DimExpr::get(d);
  const Atom* atom = e ? e->sole_atom() : nullptr;
  if (atom && atom->kind == kind)
    out.insert(out.end(), atom->arguments.begin(), atom->arguments.end());
  else
    out.push_back(d);
}

int order(const Dim& a, const Dim& b, int& budget);

/// Whether a <= b is certain because a is a minimum of something not above b, or b a maximum of something not below a.
bool is_bounded(const Dim& a, const Dim& b, int& budget) {
  const auto any = [&](const Dim& d, Atom::Kind kind, const auto& holds) {
    const DimExpr* e = DimExpr::get(d);
    const Atom* atom = e ? e->sole_atom() : nullptr;
    return atom && atom->kind == kind &&
           std::ranges::any_of(atom->arguments, [&](const Dim& argument) { return budget-- > 0 && holds(argument); });
  };
  return any(a, Atom::Kind::Min, [&](const Dim& d) { return order(d, b, budget) < 0; }) ||
         any(b, Atom::Kind::Max, [&](const Dim& d) { return order(a, d, budget) < 0; });
}

/// -1 where a <= b is certain, 1 where a >= b is certain, 0 otherwise.
int order(const Dim& a, const Dim& b, int& budget) {
  const Dim difference = b - a;
  if (non_negative(difference) || is_bounded(a, b, budget)) return -1;
  if (non_negative(a - b) || is_bounded(b, a, budget)) return 1;
  return 0;
}
int order(const Dim& a, const Dim& b) {
  int budget = kMaxOrders;
  return order(a, b, budget);
}

Dim extreme(const Dim& a, const Dim& b, Atom::Kind kind) {
  const bool is_min = kind == Atom::Kind::Min;
  if (is_min && a.known() && a.value() >= kUnbounded && non_negative(b) && !b.known()) return b;
  if (is_min && b.known() && b.value() >= kUnbounded && non_negative(a) && !a.known()) return a;
  if (const int o = order(a, b); o != 0) return (o < 0) == is_min ? a : b;
  std::vector<Dim> all, kept;
  flatten(a, kind, all);
  flatten(b, kind, all);
  for (const Dim& d : all) {
    bool drop = false;
    for (size_t i = 0; i < kept.size() && !drop;) {
      const int o = order(d, kept[i]);
      if (o == 0) {
        ++i;
      } else if ((o < 0) == is_min) {
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        drop = true;
      }
    }
    if (!drop) kept.push_back(d);
  }
  if (kept.size() == 1) return kept[0];
  std::ranges::sort(kept, [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });
  return DimExpr::of_atom({kind, {}, std::move(kept)});
}

using Lookup = std::function<std::optional<int64_t>(std::string_view)>;

std::optional<int64_t> evaluate_atom(const Atom& atom, const Lookup& lookup) {
  if (atom.kind == Atom::Kind::Named) return lookup(atom.name);
  if (atom.kind == Atom::Kind::Fresh) return std::nullopt;
  std::vector<int64_t> values;
  for (const Dim& d : atom.arguments) {
    const auto v = d.evaluate(lookup);
    if (!v) return std::nullopt;
    values.push_back(*v);
  }
  if (atom.kind == Atom::Kind::Min) return *std::ranges::min_element(values);
  if (atom.kind == Atom::Kind::Max) return *std::ranges::max_element(values);
  if (values[1] == 0 || (values[1] == -1 && values[0] == INT64_MIN)) return std::nullopt;
  return floor_quotient(values[0], values[1]);
}

std::string text_of(const Atom& atom) {
  switch (atom.kind) {
    case Atom::Kind::Named:
      return atom.name;
    case Atom::Kind::Fresh:
      return "?";
    case Atom::Kind::FloorDiv: {
      const auto part = [](const Dim& d) {
        const DimExpr* e = DimExpr::get(d);
        return !e || e->sole_atom() ? d.to_string() : "(" + d.to_string() + ")";
      };
      return "floor(" + part(atom.arguments[0]) + "/" + part(atom.arguments[1]) + ")";
    }
    default: {
      std::string out = atom.kind == Atom::Kind::Min ? "min(" : "max(";
      for (size_t i = 0; i < atom.arguments.size(); ++i) out += (i ? ", " : "") + atom.arguments[i].to_string();
      return out + ")";
    }
  }
}

}  // namespace

Dim Dim::symbol(std::string_view name) { return DimExpr::of_atom({Atom::Kind::Named, std::string(name), {}}); }
Dim Dim::unknown() { return DimExpr::of_atom({Atom::Kind::Fresh, {}, {}}); }

std::string Dim::symbol_name() const {
  const Atom* atom = expr_ ? expr_->sole_atom() : nullptr;
  return atom && atom->kind == Atom::Kind::Named ? atom->name : std::string();
}

std::string Dim::to_string() const {
  if (known()) return std::to_string(value_);
  std::string out;
  for (const Term& t : expr_->terms) {
    const bool negative = t.coefficient < 0;
    if (!out.empty())
      out += negative ? " - " : " + ";
    else if (negative)
      out += '-';
    const uint64_t magnitude =
        negative ? 0 - static_cast<uint64_t>(t.coefficient) : static_cast<uint64_t>(t.coefficient);
    bool first = magnitude == 1;
    if (!first) out += std::to_string(magnitude);
    for (const Factor& f : t.monomial) {
      for (int i = 0; i < f.power; ++i) {
        if (!first) out += '*';
        out += text_of(*f.atom);
        first = false;
      }
    }
  }
  if (expr_->constant > 0) out += " + " + std::to_string(expr_->constant);
  if (expr_->constant < 0) out += " - " + std::to_string(0 - static_cast<uint64_t>(expr_->constant));
  return out;
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t sum;
  if (a.known() && b.known()) return add_overflows(a.value_, b.value_, sum) ? Dim::unknown() : Dim(sum);
  if (b.is(0)) return a;
  if (a.is(0)) return b;
  return dim_or_unknown(add_scaled(DimExpr::of(a), DimExpr::of(b), 1));
}

Dim operator-(const Dim& a, const Dim& b) {
  int64_t difference;
  if (a.known() && b.known()) return sub_overflows(a.value_, b.value_, difference) ? Dim::unknown() : Dim(difference);
  if (b.is(0)) return a;
  return dim_or_unknown(add_scaled(DimExpr::of(a), DimExpr::of(b), -1));
}

Dim operator*(const Dim& a, const Dim& b) {
  int64_t p;
  if (a.known() && b.known()) return mul_overflows(a.value_, b.value_, p) ? Dim::unknown() : Dim(p);
  if (a.is(0) || b.is(0)) return Dim(0);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  return dim_or_unknown(multiply(DimExpr::of(a), DimExpr::of(b)));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.known()) {
    const int64_t d = b.value_;
    if (d == 0) return Dim::unknown();
    if (d == 1) return a;
    if (d == -1) return Dim(0) - a;
    if (a.known()) return Dim(floor_quotient(a.value_, d));
    if (d == INT64_MIN) return Dim::unknown();
    return d > 0 ? floor_div_known(a, d) : floor_div_known(Dim(0) - a, -d);
  }
  if (a.is(0)) return a;
  const auto parts = divide(DimExpr::of(a), *b.expr_);
  if (!parts) return Dim::unknown();
  const Dim whole = DimExpr::dim_of(parts->first);
  const Dim rest = DimExpr::dim_of(parts->second);
  if (rest.is(0)) return whole;
  return whole + DimExpr::of_atom({Atom::Kind::FloorDiv, {}, {rest, b}});
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (b.known() && b.value_ > 0 && !a.known()) return floor_div(a + Dim(b.value_ - 1), b);
  return Dim(0) - floor_div(Dim(0) - a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return Dim(std::min(a.value_, b.value_));
  return extreme(a, b, Atom::Kind::Min);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.known() && b.known()) return Dim(std::max(a.value_, b.value_));
  return extreme(a, b, Atom::Kind::Max);
}

bool Dim::operator==(const Dim& other) const { return compare(*this, other) == 0; }

std::optional<int64_t> Dim::evaluate(const std::function<std::optional<int64_t>(std::string_view)>& lookup) const {
  if (known()) return value_;
  int64_t total = expr_->constant;
  for (const Term& t : expr_->terms) {
    int64_t product = t.coefficient;
    for (const Factor& f : t.monomial) {
      const auto v = evaluate_atom(*f.atom, lookup);
      if (!v) return std::nullopt;
      for (int i = 0; i < f.power; ++i)
        if (mul_overflows(product, *v, product)) return std::nullopt;
    }
    if (add_overflows(total, product, total)) return std::nullopt;
  }
  return total;
}

SymShape to_sym(const tensor::Shape& shape) { return SymShape(shape.begin(), shape.end()); }

std::optional<tensor::Shape> to_known(const SymShape& shape) {
  tensor::Shape out;
  for (const Dim& d : shape) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

Dim numel(const SymShape& shape) {
  Dim out(1);
  for (const Dim& d : shape) out = out * d;
  return out;
}

std::string to_string(const SymShape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? "," : "") + shape[i].to_string();
  return out + "]";
}

}  // namespace infernode::graph
