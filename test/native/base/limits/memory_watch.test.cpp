#include "base/limits/memory_watch.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/error.h"

using namespace infernode;

namespace {

constexpr std::uint64_t kMb = std::uint64_t{1} << 20;

/// What the system has left, and how often it was asked.
std::atomic<std::uint64_t> left, looks;
std::uint64_t look() {
  ++looks;
  return left;
}

/// Blocks of so many bytes that are granted and written to before one is refused.
std::uint64_t granted(MemoryWatch& watch, std::uint64_t bytes) {
  for (std::uint64_t count = 0;; ++count) {
    try {
      const auto lock = watch.expect(bytes);
      REQUIRE(bytes <= left);
      left -= bytes;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::OutOfMemory);
      return count;
    }
  }
}

}  // namespace

TEST_CASE("blocks of any size are refused where the system has no more, and not before") {
  for (const std::uint64_t bytes : {kMb / 1000, kMb, 7 * kMb, 60 * kMb, 128 * kMb, 400 * kMb}) {
    MemoryWatch watch(look);
    left = 512 * kMb + MemoryWatch::kOthers;
    looks = 0;
    CHECK(granted(watch, bytes) == 512 * kMb / bytes);
    CHECK(left >= MemoryWatch::kOthers);
    CHECK_THROWS_WITH_AS((void)watch.expect(left + 1), doctest::Contains("the system has"), Error);
    left = left + bytes;  // something ended
    CHECK(granted(watch, bytes) == 1);
  }
}

TEST_CASE("the system is asked at least once for each 64 MB that are granted, and not for each small block") {
  MemoryWatch watch(look);
  left = std::uint64_t{1} << 50;
  looks = 0;
  for (int i = 0; i < 1024; ++i) CHECK_FALSE(watch.expect(kMb).owns_lock());
  CHECK(looks >= 1024 / 64);
  CHECK(looks <= 1024 / 64 + 1);
  looks = 0;
  for (int i = 0; i < 10; ++i) (void)watch.expect(65 * kMb);
  CHECK(looks == 10);
}

TEST_CASE("where little is left, what is granted is written to before another block is granted") {
  MemoryWatch watch(look);
  left = 512 * kMb + MemoryWatch::kOthers;
  std::atomic<int> refused = 0, given = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        try {
          const auto lock = watch.expect(100 * kMb);
          const std::uint64_t before = left;
          std::this_thread::yield();  // a block that is not written to takes nothing yet
          left = before - 100 * kMb;
          ++given;
        } catch (const Error&) {
          ++refused;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(given == 5);
  CHECK(refused == 11);
  CHECK(left == 12 * kMb + MemoryWatch::kOthers);
}
