#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace infernode {

/// 128 bits that tell contents apart. Reads memory about as fast as it comes; no protection against who makes two
/// contents meet on purpose.
struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const ContentHash&) const = default;
  std::string to_string() const;  ///< 32 hexadecimal digits
};

ContentHash content_hash(std::span<const std::byte> bytes) noexcept;

}  // namespace infernode
