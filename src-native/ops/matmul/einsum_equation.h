#pragma once
// Equations of Einsum: "bij,bjk->bik", with ellipses, repeated labels and an implied output.

#include <string_view>
#include <vector>

namespace infernode::ops {

struct EinsumEquation {
  /// One label for each dim: a letter's code, or kEllipsis + how far the dim stands from the end of its ellipsis.
  static constexpr int kEllipsis = 256;
  using Labels = std::vector<int>;
  std::vector<Labels> inputs;
  Labels output;

  /// For operands of these ranks. Throws InvalidModel for what is no equation, ShapeMismatch for ranks that do not fit
  /// it.
  static EinsumEquation parse(std::string_view text, const std::vector<std::size_t>& ranks);
};

}  // namespace infernode::ops
