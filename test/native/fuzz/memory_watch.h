#pragma once

#include <cstdint>

namespace infernode::fuzz {

/// The most bytes that were allocated at a time since it was made, beyond those before. Only AddressSanitizer tells:
/// without it always 0. One at a time.
class MemoryWatch {
 public:
  MemoryWatch();
  std::int64_t peak() const;
};

}  // namespace infernode::fuzz
