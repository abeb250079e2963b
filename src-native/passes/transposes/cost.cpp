#include "passes/transposes/cost.h"

#include <algorithm>
#include <set>
#include <string>

namespace infernode::passes::transposes {

namespace {

using graph::Dim;

/// Names of the symbols in a dim.
std::set<std::string, std::less<>> symbols_of(const Dim& dim) {
  std::set<std::string, std::less<>> names;
  (void)dim.evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    names.emplace(name);
    return 1;
  });
  return names;
}

Dim sum(const std::vector<Dim>& sizes) {
  Dim total = 0;
  for (const Dim& size : sizes) total = total + size;
  return total;
}

}  // namespace

Dim bits_of(const graph::ValueType& type) {
  return graph::numel(*type.shape) * Dim(static_cast<std::int64_t>(tensor::bit_size(type.elem)));
}

std::int64_t usual_bytes(const graph::ValueType& type) {
  constexpr std::int64_t kUsual = 8, kMost = std::int64_t{1} << 38;
  std::int64_t bits = std::max<std::int64_t>(1, static_cast<std::int64_t>(tensor::bit_size(type.elem)));
  for (const Dim& dim : *type.shape) {
    const std::int64_t size = dim.known() ? dim.value() : kUsual;
    if (size <= 0) return 0;
    if (size > 8 * kMost / bits) return kMost;
    bits *= size;
  }
  return std::min(kMost, bits / 8);
}

std::strong_ordering compare(std::vector<Dim> now, std::vector<Dim> before) {
  constexpr auto kLess = std::strong_ordering::less, kMore = std::strong_ordering::greater;
  if (now.size() > before.size()) return kMore;
  const bool fewer = now.size() < before.size();
  std::erase_if(now, [&](const Dim& size) {
    const auto same = std::find(before.begin(), before.end(), size);
    if (same == before.end()) return false;
    before.erase(same);
    return true;
  });
  if (now.empty()) return fewer ? kLess : std::strong_ordering::equal;
  const Dim saved = sum(before) - sum(now);
  const auto names = symbols_of(saved);
  bool any = fewer;
  // Every symbol small, every symbol large, one unlike the others.
  const auto saves = [&](std::int64_t usual, std::string_view odd, std::int64_t other) {
    const auto value =
        saved.evaluate([&](std::string_view name) { return std::optional(name == odd ? other : usual); });
    any = any || (value && *value > 0);
    return value && *value >= 0;
  };
  constexpr std::int64_t kLarge = 1024;
  if (!saves(1, "", 1) || !saves(3, "", 3) || !saves(kLarge, "", kLarge)) return kMore;
  for (const std::string& name : names) {
    if (!saves(1, name, kLarge) || !saves(kLarge, name, 1)) return kMore;
  }
  return any ? kLess : kMore;
}

}  // namespace infernode::passes::transposes
