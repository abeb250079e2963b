#include "runtime/memory/memory_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace infernode::runtime;

namespace {

/// Bytes alive at the busiest step, each block rounded up: no layout needs less.
std::size_t busiest(const std::vector<Lifetime>& lifetimes) {
  std::size_t most = 0;
  for (std::uint32_t step = 0; step < 64; ++step) {
    std::size_t sum = 0;
    for (const Lifetime& block : lifetimes) {
      if (block.first <= step && step <= block.last)
        sum += (block.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    }
    most = std::max(most, sum);
  }
  return most;
}

bool overlap(const Lifetime& a, std::size_t at_a, const Lifetime& b, std::size_t at_b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  return in_time && at_a < at_b + b.bytes && at_b < at_a + a.bytes;
}

}  // namespace

TEST_CASE("blocks alive at the same step never overlap") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Lifetime> lifetimes(random() % 40);
    for (Lifetime& block : lifetimes) {
      block.bytes = random() % 3 == 0 ? random() % 5 * 64 : random() % 5000;
      block.first = static_cast<std::uint32_t>(random() % 60);
      block.last = block.first + static_cast<std::uint32_t>(random() % (60 - block.first + 1));
    }
    const MemoryPlan plan = plan_memory(lifetimes);
    REQUIRE(plan.offsets.size() == lifetimes.size());
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      REQUIRE(plan.offsets[i] % kArenaAlignment == 0);
      REQUIRE(plan.offsets[i] + lifetimes[i].bytes <= plan.arena_bytes);
      for (std::size_t j = 0; j < i; ++j)
        REQUIRE_FALSE(overlap(lifetimes[i], plan.offsets[i], lifetimes[j], plan.offsets[j]));
    }
    CHECK(plan.arena_bytes >= busiest(lifetimes));
    CHECK(plan.arena_bytes <= busiest(lifetimes) * 3 / 2 + 64);
  }
}

TEST_CASE("a chain takes the room of its two largest neighbours") {
  std::vector<Lifetime> chain;
  for (std::uint32_t i = 0; i < 20; ++i) chain.push_back({1024, i, i + 1});
  CHECK(plan_memory(chain).arena_bytes == 2048);
}

TEST_CASE("blocks that are never alive together share their place") {
  const MemoryPlan plan = plan_memory(std::vector<Lifetime>{{100, 0, 1}, {64, 2, 3}, {100, 4, 5}});
  CHECK(plan.offsets == std::vector<std::size_t>{0, 0, 0});
  CHECK(plan.arena_bytes == 128);
}

TEST_CASE("no blocks and empty blocks take nothing") {
  CHECK(plan_memory({}).arena_bytes == 0);
  CHECK(plan_memory(std::vector<Lifetime>{{0, 0, 9}, {0, 0, 9}}).arena_bytes == 0);
}

TEST_CASE("the same lifetimes give the same plan") {
  const std::vector<Lifetime> lifetimes{{64, 0, 2}, {64, 1, 3}, {64, 2, 4}, {128, 0, 1}};
  CHECK(plan_memory(lifetimes).offsets == plan_memory(lifetimes).offsets);
}
