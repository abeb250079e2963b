#pragma once

#include <span>
#include <string>
#include <vector>

#include "session/session.h"

namespace infernode::session {

/// Dims of a model's feeds that the same symbol stands for.
class SharedSymbols {
 public:
  SharedSymbols() = default;
  explicit SharedSymbols(std::span<const ValueMetadata> declared);

  /// A symbol that two inputs, or two dims of one, give different sizes, in words; empty where there is none. It is
  /// allowed: each then stands for itself.
  std::string disagreement(std::span<const ValueMetadata> declared, std::span<const tensor::Value> feeds) const;

 private:
  struct Place {
    std::size_t feed, dim;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<std::vector<Place>> groups_;  ///< of two places or more each, by feed and dim
};

}  // namespace infernode::session
