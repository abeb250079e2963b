#include "session/shared_symbols.h"

#include <map>

namespace infernode::session {

SharedSymbols::SharedSymbols(std::span<const ValueMetadata> declared) {
  std::map<std::string, std::vector<Place>> by_name;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const auto& shape = declared[i].type.shape;
    for (std::size_t d = 0; shape && d < shape->size(); ++d) by_name[(*shape)[d].symbol_name()].push_back({i, d});
  }
  by_name.erase("");
  for (auto& [name, places] : by_name) {
    if (places.size() > 1) groups_.push_back(std::move(places));
  }
}

std::string SharedSymbols::disagreement(std::span<const ValueMetadata> declared,
                                        std::span<const tensor::Value> feeds) const {
  const auto is_given = [&](const Place& at) {
    return at.feed < feeds.size() && feeds[at.feed].is_tensor() &&
           feeds[at.feed].tensor().rank() == declared[at.feed].type.shape->size();
  };
  const auto size = [&](const Place& at) { return feeds[at.feed].tensor().dim(at.dim); };
  const Place *one = nullptr, *other = nullptr;  // the first feed that disagrees, and with whom
  for (const std::vector<Place>& group : groups_) {
    const Place* first = nullptr;
    for (const Place& place : group) {
      if (!is_given(place)) continue;
      if (first == nullptr) first = &place;
      if (size(*first) == size(place)) continue;
      if (other == nullptr || place < *other) one = first, other = &place;
      break;
    }
  }
  if (other == nullptr) return {};
  const ValueMetadata &a = declared[one->feed], &b = declared[other->feed];
  return cat("inputs give dimension '", (*a.type.shape)[one->dim].symbol_name(), "' different sizes: ", size(*one),
             " in '", a.name, "', ", size(*other), " in '", b.name, "'; each is taken as it is");
}

}  // namespace infernode::session
