#include "base/text/edit_distance.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace infernode {
namespace {

constexpr size_t kLongestName = 256;  // longer names are not typed by hand; bounds the quadratic work

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

template <class T>
std::string_view nearest(std::string_view name, std::span<const T> candidates) {
  std::string_view best;
  size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    if (candidate == name) return candidate;
    const size_t longest = std::max(name.size(), candidate.size());
    const size_t shortest = std::min(name.size(), candidate.size());
    const size_t allowed = std::max<size_t>(1, longest / 3);
    if (longest > kLongestName || longest - shortest > allowed) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance > allowed || distance >= longest) continue;
    if (best.data() == nullptr || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment over three rows of the distance matrix.
  std::vector<size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (same ? 0u : 1u)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  return nearest(name, candidates);
}
std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates) {
  return nearest(name, candidates);
}

}  // namespace infernode
