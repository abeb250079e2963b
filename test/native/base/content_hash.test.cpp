#include "base/content_hash.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace infernode;

namespace {

std::vector<std::byte> bytes(std::size_t count) {
  std::vector<std::byte> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::byte>(i * 37 + i / 256);
  return all;
}

}  // namespace

TEST_CASE("contents that differ in a bit have other hashes, in both halves") {
  for (const std::size_t size : {1, 8, 63, 64, 65, 200}) {
    std::vector<std::byte> data = bytes(size);
    const ContentHash before = content_hash(data);
    std::set<std::string> seen{before.to_string()};
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      const auto mask = static_cast<std::byte>(1 << bit % 8);
      data[bit / 8] ^= mask;
      const ContentHash after = content_hash(data);
      CHECK(after.low != before.low);
      CHECK(after.high != before.high);
      CHECK(seen.insert(after.to_string()).second);
      data[bit / 8] ^= mask;
    }
    CHECK(content_hash(data) == before);
  }
}

TEST_CASE("contents that differ in the signs of two numbers have other hashes") {
  std::vector<std::byte> data = bytes(1024);
  std::set<std::string> seen{content_hash(data).to_string()};
  for (std::size_t a = 3; a < data.size(); a += 4) {
    for (std::size_t b = a + 4; b < data.size(); b += 4) {
      data[a] ^= std::byte{0x80};
      data[b] ^= std::byte{0x80};
      CHECK(seen.insert(content_hash(data).to_string()).second);
      data[a] ^= std::byte{0x80};
      data[b] ^= std::byte{0x80};
    }
  }
}

TEST_CASE("zeros of every length, and the order of what there is, are told apart") {
  std::set<std::string> seen;
  const std::vector<std::byte> zeros(500);
  for (std::size_t size = 0; size <= zeros.size(); ++size)
    CHECK(seen.insert(content_hash(std::span(zeros).first(size)).to_string()).second);
  std::vector<std::byte> data = bytes(256);
  for (std::size_t at = 0; at + 8 < data.size(); at += 8) {
    std::swap(data[at], data[at + 8]);
    CHECK(seen.insert(content_hash(data).to_string()).second);
  }
}

TEST_CASE("a hash reads as 32 digits") {
  CHECK(ContentHash{.low = 0x1f, .high = 0xabc0000000000000}.to_string() == "abc0000000000000000000000000001f");
}
