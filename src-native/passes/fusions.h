#pragma once

#include <array>
#include <cstddef>

#include "fusions/fusion.h"

namespace infernode::passes {

/// The fusions of every level with their patterns parsed. Parsing takes longer than loading a small model does, so that
/// one of these serves all models.
class Fusions {
 public:
  /// `operators` outlives it.
  explicit Fusions(const kernel::Registry& operators) : Fusions(registered(operators)) {}
  /// `level` 1 to 3.
  const fusions::FusionSet& of(int level) const { return levels_[static_cast<std::size_t>(level - 1)]; }

 private:
  explicit Fusions(const fusions::FusionRegistry& all) : levels_{{{all, 1}, {all, 2}, {all, 3}}} {}
  static fusions::FusionRegistry registered(const kernel::Registry& operators) {
    fusions::FusionRegistry all(operators);
    fusions::register_all(all);
    return all;
  }
  std::array<fusions::FusionSet, 3> levels_;
};

}  // namespace infernode::passes
