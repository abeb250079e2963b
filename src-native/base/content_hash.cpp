#include "base/content_hash.h"

#include <array>
#include <bit>
#include <cstring>

#if !defined(__SIZEOF_INT128__)
#include <intrin.h>
#endif

namespace infernode {
namespace {

constexpr size_t kLanes = 4;
constexpr size_t kStripe = 2 * kLanes * sizeof(uint64_t);
constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // odd: 2^64 over the golden ratio

/// Both halves of the product of two numbers, folded: every bit of either reaches all of it.
inline uint64_t fold(uint64_t a, uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
  uint64_t high;
  const uint64_t low = _umul128(a, b, &high);
  return low ^ high;
#endif
}

/// A bijection in which every bit reaches every other.
uint64_t scatter(uint64_t x) noexcept {
  for (int i = 0; i < 3; ++i) x = (x ^ (x >> 32)) * kFactor;
  return x ^ (x >> 32);
}

}  // namespace

std::string ContentHash::to_string() const {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {high, low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  }
  return text;
}

ContentHash content_hash(std::span<const std::byte> bytes) noexcept {
  std::array<uint64_t, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = scatter(i + 1);
  const std::byte* at = bytes.data();
  const auto absorb_stripe = [&lanes](const std::byte* stripe) {
    std::array<uint64_t, 2 * kLanes> words;
    std::memcpy(words.data(), stripe, kStripe);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] = fold(lanes[i] ^ words[2 * i], kFactor ^ words[2 * i + 1]);
  };
  for (size_t left = bytes.size() / kStripe; left > 0; --left, at += kStripe) absorb_stripe(at);
  if (const size_t rest = bytes.size() % kStripe; rest > 0) {
    std::array<std::byte, kStripe> last{};
    std::memcpy(last.data(), at, rest);
    absorb_stripe(last.data());
  }
  ContentHash hash{scatter(bytes.size()), scatter(~uint64_t{bytes.size()})};
  for (size_t i = 0; i < kLanes; ++i) {
    hash.low = scatter(hash.low ^ lanes[i]);
    hash.high = scatter(hash.high + std::rotl(lanes[i], 32));
  }
  return hash;
}

}  // namespace infernode
