#include "tensor/byte_ranges.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>

using namespace infernode;
using namespace infernode::tensor;

TEST_CASE("ranges of bytes meet where they share one") {
  const std::array<std::byte, 64> memory{};
  const auto range = [&](std::size_t begin, std::size_t end) {
    return ByteRange{memory.data() + begin, memory.data() + end};
  };
  CHECK_FALSE(ByteRanges().meet(range(0, 64)));
  const ByteRanges held({range(40, 44), range(8, 32), range(10, 12), range(50, 50)});
  CHECK(held.meet(range(0, 9)));
  CHECK(held.meet(range(20, 22)));  // behind the end of the last one that begins before it
  CHECK(held.meet(range(31, 40)));
  CHECK(held.meet(range(0, 64)));
  CHECK_FALSE(held.meet(range(0, 8)));
  CHECK_FALSE(held.meet(range(32, 40)));
  CHECK_FALSE(held.meet(range(44, 64)));
  CHECK_FALSE(held.meet(range(20, 20)));
}

TEST_CASE("many ranges of bytes answer as each of them does") {
  std::array<std::byte, 100> memory{};
  std::mt19937 random(1);
  const auto draw = [&] {
    const std::size_t a = random() % 100, b = random() % 100;
    return ByteRange{memory.data() + std::min(a, b), memory.data() + std::max(a, b)};
  };
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    std::vector<ByteRange> all(random() % 5);
    for (ByteRange& one : all) one = draw();
    const ByteRanges held(all);
    const ByteRange other = draw();
    bool any = false;
    for (const ByteRange& one : all) any = any || std::max(one.begin, other.begin) < std::min(one.end, other.end);
    CHECK(held.meet(other) == any);
  }
}

TEST_CASE("a tensor's range is its elements'") {
  const Tensor t = Tensor::make(DType::Float32, {2, 3});
  const ByteRange range = byte_range(t);
  CHECK(range.begin == t.raw());
  CHECK(range.end - range.begin == 24);
}
