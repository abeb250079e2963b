#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace infernode {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`; ASCII case counts as equal.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `name` most likely meant, or empty when none is near (distance above a third of the length).
/// An exact match is no misspelling, yet returned. The view points into `candidates`.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);
std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace infernode
