#include "runtime/memory/frame_allocator.h"

#include <doctest/doctest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "base/error.h"
#include "runtime/run/frame_pool.h"

using namespace infernode;
using runtime::BudgetAllocator;
using runtime::FrameAllocator;

TEST_CASE("a freed block serves the next request of its size class") {
  FrameAllocator allocator(1 << 20);
  tensor::Buffer block = allocator.allocate(1000);
  const std::byte* at = block.data();
  CHECK(block.size() == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(at) % 64 == 0);
  block = {};
  CHECK(allocator.kept_bytes() >= 1000);
  CHECK(allocator.kept_bytes() <= 1250);
  CHECK(allocator.allocate(1010).data() == at);
  CHECK(allocator.kept_bytes() >= 1000);
}

TEST_CASE("no more is kept than was asked for") {
  FrameAllocator none(0);
  (void)none.allocate(1000);
  CHECK(none.kept_bytes() == 0);
  FrameAllocator little(2048);
  { const tensor::Buffer a = little.allocate(1500), b = little.allocate(1500); }
  CHECK(little.kept_bytes() >= 1500);
  CHECK(little.kept_bytes() <= 2048);
  little.trim();
  CHECK(little.kept_bytes() == 0);
}

TEST_CASE("large blocks that an exception ends are left for another thread to free") {
  FrameAllocator allocator(1 << 20);
  (void)allocator.allocate(runtime::kSlowBytes);
  CHECK(allocator.take_left().empty());
  const std::byte* at = nullptr;
  try {
    const tensor::Buffer large = allocator.allocate(2 * runtime::kSlowBytes), small = allocator.allocate(2 << 20);
    at = large.data();
    throw 1;
  } catch (int) {
  }
  const std::vector<tensor::Buffer> left = allocator.take_left();
  REQUIRE(left.size() == 1);
  CHECK(left.front().data() == at);
  CHECK(allocator.take_left().empty());
}

TEST_CASE("blocks outlive their allocator") {
  tensor::Buffer block;
  {
    FrameAllocator allocator(1 << 20);
    block = allocator.allocate(100);
  }
  std::memset(block.data(), 1, block.size());
  CHECK(block.data()[99] == std::byte{1});
}

TEST_CASE("empty requests give valid buffers, absurd ones an error") {
  FrameAllocator allocator(1 << 20);
  CHECK(allocator.allocate(0));
  CHECK_THROWS_AS(allocator.allocate(SIZE_MAX - 10), Error);
}

TEST_CASE("threads may share an allocator") {
  FrameAllocator allocator(1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      for (std::size_t i = 0; i < 500; ++i) {
        const tensor::Buffer block = allocator.allocate(100 + i % 7 * 300);
        std::memset(block.data(), t, block.size());
        CHECK(block.data()[block.size() - 1] == static_cast<std::byte>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("a budget is charged while memory is held") {
  const auto budget = std::make_shared<kernel::MemoryBudget>(1000);
  FrameAllocator frame(1 << 20);
  BudgetAllocator allocator(frame, budget);
  tensor::Buffer a = allocator.allocate(600);
  CHECK(budget->used() == 600);
  CHECK_THROWS_WITH_AS(allocator.allocate(500), doctest::Contains("1000"), Error);
  CHECK(budget->used() == 600);
  const tensor::Buffer part = a.slice(0, 10);
  a = {};
  CHECK(budget->used() == 600);
}

TEST_CASE("many small blocks do not take far more than the budget") {
  const auto budget = std::make_shared<kernel::MemoryBudget>(1 << 20);
  FrameAllocator frame(1 << 20);
  BudgetAllocator allocator(frame, budget);
  std::vector<tensor::Buffer> held;
  CHECK_THROWS_WITH_AS(
      [&] {
        for (int i = 0; i < 10000; ++i) held.push_back(allocator.allocate(4));
      }(),
      doctest::Contains("of the 1048576 bytes of its memoryLimit"), Error);
  held.clear();
  CHECK(budget->used() == 0);
}

TEST_CASE("frames are pooled and their values dropped") {
  runtime::FramePool pool(true);
  runtime::Frame* first = nullptr;
  {
    const runtime::FrameLease lease(pool);
    first = &*lease;
    (*lease).values.emplace_back(tensor::Tensor::scalar(1.0f));
    (void)(*lease).allocator.allocate(5000);
  }
  CHECK(pool.bytes() >= 5000);
  {
    const runtime::FrameLease again(pool), other(pool);
    CHECK(&*again == first);
    CHECK(&*other != first);
    CHECK((*again).values[0].empty());
  }
  pool.clear();
  CHECK(pool.bytes() == 0);
}

TEST_CASE("frames that keep nothing hold nothing") {
  runtime::FramePool pool(false);
  {
    const runtime::FrameLease lease(pool);
    (*lease).arena = tensor::host_allocator().allocate(4096);
    (void)(*lease).allocator.allocate(5000);
  }
  CHECK(pool.bytes() == 0);
}
