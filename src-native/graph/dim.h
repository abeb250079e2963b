#pragma once
// Symbolic dimensions: integers, named symbols and polynomials in them.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/shape.h"

namespace infernode::graph {

class DimExpr;

/// One dimension, or one element of an integer shape tensor: a known integer, or an expression over symbols in a normal
/// form, so that a*b == b*a and n+1-1 == n. Unknown values are fresh symbols, equal to themselves only. Cheap where
/// known: no allocation. Named symbols are dimensions, so never negative. Arithmetic that overflows, and expressions
/// that grow too large, give unknown.
class Dim {
 public:
  Dim() = default;  ///< 0
  Dim(std::int64_t value) : value_(value) {}
  static Dim symbol(std::string_view name);
  /// A symbol equal to no other; shown as '' in metadata.
  static Dim unknown();

  bool known() const { return expr_ == nullptr; }
  std::int64_t value() const { return value_; }  ///< only where known()
  bool is(std::int64_t v) const { return known() && value_ == v; }
  /// Name of a plain named symbol; "" for known, unknown and compound ones.
  std::string symbol_name() const;
  /// "batch", "2*seq + 1", "12", "?"
  std::string to_string() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  /// Rounds toward negative infinity; exact where b divides a's polynomial. Division by a known 0 gives unknown.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  bool operator==(const Dim& other) const;

  /// Value under an assignment of symbols; nullopt where one is missing. `lookup(name)` returns nullopt for a free
  /// symbol.
  std::optional<std::int64_t> evaluate(
      const std::function<std::optional<std::int64_t>(std::string_view)>& lookup) const;

 private:
  explicit Dim(std::shared_ptr<const DimExpr> expr) : expr_(std::move(expr)) {}
  friend class DimExpr;
  std::int64_t value_ = 0;
  std::shared_ptr<const DimExpr> expr_;
};

/// Dimensions that may be symbolic.
using SymShape = std::vector<Dim>;

SymShape to_sym(const tensor::Shape& shape);
/// nullopt where some dim is not known.
std::optional<tensor::Shape> to_known(const SymShape& shape);
Dim numel(const SymShape& shape);
std::string to_string(const SymShape& shape);

}  // namespace infernode::graph
