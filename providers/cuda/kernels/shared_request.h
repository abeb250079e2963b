#pragma once

#include <cstddef>
#include <cstdint>

namespace infernode::cuda {

/// Dynamic shared memory to ask for. A kernel's static part counts toward the 48 KB that need no permission: what comes
/// near asks for more than 48 KB, for which launchers get it.
constexpr std::uint32_t shared_request(std::size_t bytes) {
  constexpr std::size_t kFree = 48 * 1024, kStatic = 10 * 1024;
  return static_cast<std::uint32_t>(bytes + kStatic > kFree && bytes <= kFree ? kFree + 128 : bytes);
}

}  // namespace infernode::cuda
