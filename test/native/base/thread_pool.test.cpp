#include "base/thread_pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"

using namespace infernode;
using namespace std::chrono_literals;

namespace {

constexpr double kCostly = 1e6;  // per item: every loop is worth all threads

/// Runs a loop and returns how often each item was computed.
std::vector<int> visits(ThreadPool& pool, size_t count, double cost, size_t max_threads,
                        size_t dynamic_block_base = 0) {
  std::vector<std::atomic<int>> seen(count);
  pool.parallel_for(
      count, cost, max_threads,
      [&](size_t begin, size_t end, size_t slot) {
        if (begin >= end || slot >= max_threads) throw std::logic_error("empty block or slot out of range");
        for (size_t i = begin; i < end; ++i) seen[i].fetch_add(1);
      },
      dynamic_block_base);
  return std::vector<int>(seen.begin(), seen.end());
}

template <class F>
bool eventually(F condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

}  // namespace

TEST_CASE("every item is computed exactly once, whatever count, cost, threads and grain") {
  for (const size_t threads : {1, 2, 4, 9}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const size_t count : {0, 1, 2, 7, 64, 1000}) {
      for (const double cost : {0.0, 1.0, 100.0, kCostly, -1.0, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
        for (const size_t most : {size_t{1}, size_t{3}, SIZE_MAX}) {
          for (const size_t base : {0, 1, 4}) {
            const std::vector<int> seen = visits(pool, count, cost, most, base);
            CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<std::ptrdiff_t>(count));
          }
        }
      }
    }
  }
}

TEST_CASE("a pool of no threads is a pool of one, and a cheap loop is one call on the caller") {
  ThreadPool none(0);
  CHECK(none.size() == 1);
  ThreadPool pool(4);
  const auto here = std::this_thread::get_id();
  int calls = 0;
  pool.parallel_for(100, 1.0, 4, [&](size_t begin, size_t end, size_t slot) {
    ++calls;
    CHECK(begin == 0);
    CHECK(end == 100);
    CHECK(slot == 0);
    CHECK(std::this_thread::get_id() == here);
  });
  pool.parallel_for(100, kCostly, 1, [&](size_t, size_t, size_t) { ++calls; });
  pool.parallel_for(100, kCostly, 0, [&](size_t, size_t, size_t) { ++calls; });
  CHECK(calls == 3);
}

TEST_CASE("several threads take part, each with a slot of its own") {
  ThreadPool pool(4);
  for (const size_t most : {2, 3, 4}) {
    std::vector<std::atomic<int>> inside(most);
    std::atomic<int> clashes{0}, arrived{0};
    pool.parallel_for(most, kCostly, most, [&](size_t, size_t, size_t slot) {
      if (inside[slot].fetch_add(1) != 0) ++clashes;
      // Holds this thread until all have come, so that none can do two blocks.
      ++arrived;
      if (!eventually([&] { return arrived == static_cast<int>(most); })) ++clashes;
      inside[slot].fetch_sub(1);
    });
    CHECK(arrived == static_cast<int>(most));
    CHECK(clashes == 0);
  }
}

TEST_CASE("the first exception reaches the caller, the rest of the range is skipped, and the pool works on") {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<size_t> computed{0};
    const auto run = [&] {
      pool.parallel_for(
          100000, kCostly, 4,
          [&](size_t begin, size_t end, size_t) {
            if (begin >= 40) fail(ErrorCode::Aborted, cat("block ", begin), {.node = "n"});
            computed += end - begin;
          },
          100000);
    };
    try {
      run();
      FAIL("did not throw");
    } catch (const Error& e) {
      CHECK(e.code() == ErrorCode::Aborted);
      CHECK(e.context().node == "n");
    }
    CHECK(computed < 1000);
  }
  CHECK(visits(pool, 50, kCostly, 4) == std::vector<int>(50, 1));
}

TEST_CASE("an inline loop passes its exception on") {
  ThreadPool pool(2);
  CHECK_THROWS_AS(pool.parallel_for(3, 1.0, 2, [](size_t, size_t, size_t) { throw std::runtime_error("x"); }),
                  std::runtime_error);
}

TEST_CASE("loops nest") {
  ThreadPool pool(4);
  std::atomic<size_t> leaves{0};
  for (int round = 0; round < 20; ++round) {
    pool.parallel_for(6, kCostly, 4, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i)
        pool.parallel_for(5, kCostly, 4, [&](size_t b, size_t e, size_t) {
          for (size_t j = b; j < e; ++j)
            pool.parallel_for(7, kCostly, 3, [&](size_t x, size_t y, size_t) { leaves += y - x; });
        });
    });
  }
  CHECK(leaves == 20 * 6 * 5 * 7);
}

TEST_CASE("nesting deeper than there are loop records runs inline") {
  ThreadPool pool(2);
  std::atomic<int> depth{0};
  const auto descend = [&](auto& self, int level) -> void {
    ++depth;
    if (level == 0) return;
    pool.parallel_for(2, kCostly, 2, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i)
        if (i == 0) self(self, level - 1);
    });
  };
  descend(descend, 100);
  CHECK(depth == 101);
}

TEST_CASE("many callers share the pool, with nested loops and exceptions among them") {
  for (const uint32_t spin_us : {0u, 200u}) {
    ThreadPool pool(3, {.spin_us = spin_us});
    std::atomic<size_t> wrong{0};
    std::vector<std::thread> callers;
    for (size_t caller = 0; caller < 6; ++caller) {
      callers.emplace_back([&, caller] {
        for (size_t round = 0; round < 300; ++round) {
          const size_t count = 1 + (round * 7 + caller * 13) % 90;
          std::vector<uint32_t> plain(count,
                                      0);  // each element written by one thread: the sanitizer checks the hand-over
          std::vector<size_t> scratch(3, 0);
          try {
            pool.parallel_for(count, 1e4, 3, [&](size_t begin, size_t end, size_t slot) {
              for (size_t i = begin; i < end; ++i) {
                ++plain[i];
                ++scratch[slot];
                if (round % 10 == 3 && i == count / 2) throw std::runtime_error("stop");
                if (round % 10 == 5 && i == 0)
                  pool.parallel_for(8, kCostly, 3, [&](size_t b, size_t e, size_t) {
                    if (b >= e) ++wrong;
                  });
              }
            });
            if (round % 10 == 3) ++wrong;
            if (std::accumulate(plain.begin(), plain.end(), size_t{0}) != count) ++wrong;
            if (std::accumulate(scratch.begin(), scratch.end(), size_t{0}) != count) ++wrong;
          } catch (const std::runtime_error&) {
            if (round % 10 != 3) ++wrong;
          }
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    CHECK(wrong == 0);
  }
}

TEST_CASE("more callers at once than there are loop records") {
  ThreadPool pool(2);
  std::atomic<size_t> items{0};
  std::atomic<int> inside{0};
  std::vector<std::thread> callers;
  callers.reserve(80);
  for (int i = 0; i < 80; ++i)
    callers.emplace_back([&] {
      pool.parallel_for(4, kCostly, 2, [&](size_t begin, size_t end, size_t) {
        ++inside;
        eventually([&] { return inside >= 80; });
        items += end - begin;
      });
    });
  for (std::thread& caller : callers) caller.join();
  CHECK(items == 80 * 4);
}

TEST_CASE("workers compute in the caller's floating-point mode") {
  ThreadPool pool(3);
  const auto modes = [&] {
    std::vector<uint64_t> seen(3);
    std::atomic<int> arrived{0};
    pool.parallel_for(3, kCostly, 3, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) seen[i] = float_mode();
      ++arrived;
      eventually([&] { return arrived == 3; });
    });
    return std::set<uint64_t>(seen.begin(), seen.end());
  };
  const uint64_t plain = float_mode();
  CHECK(modes() == std::set{plain});
  {
    const FloatModeScope flushing(true);
    CHECK(modes() == std::set{flushing_float_mode(plain)});
  }
  CHECK(modes() == std::set{plain});
}

TEST_CASE("pools come and go while threads are still busy or asleep") {
  for (int round = 0; round < 60; ++round) {
    ThreadPool pool(1 + static_cast<size_t>(round) % 5, {.spin_us = round % 2 == 0 ? 0u : 200u});
    std::atomic<int> tasks{0};
    for (int i = 0; i < round % 4; ++i)
      pool.submit([&] {
        pool.parallel_for(16, kCostly, 8, [](size_t, size_t, size_t) {});
        ++tasks;
      });
    if (round % 3 == 0) CHECK(visits(pool, 20, kCostly, 8) == std::vector<int>(20, 1));
    if (round % 7 == 0) std::this_thread::sleep_for(1ms);
  }
}

TEST_CASE("submitted tasks all run, on other threads, and before the pool ends") {
  std::atomic<int> done{0}, on_caller{0};
  const auto here = std::this_thread::get_id();
  {
    ThreadPool pool(2, {.max_runners = 3});
    for (int i = 0; i < 200; ++i)
      pool.submit([&, owned = std::make_unique<int>(i)] {
        if (std::this_thread::get_id() == here) ++on_caller;
        pool.parallel_for(4, kCostly, 2, [](size_t, size_t, size_t) {});
        ++done;
        if (*owned % 50 == 0) pool.submit([&] { ++done; });
      });
  }
  CHECK(done == 204);
  CHECK(on_caller == 0);
}

TEST_CASE("tasks wait for each other without starving loops, up to the cap of runners") {
  ThreadPool pool(2, {.max_runners = 16});
  std::atomic<int> waiting{0}, loops{0};
  std::atomic<bool> go{false};
  for (int i = 0; i < 16; ++i)
    pool.submit([&] {
      ++waiting;
      eventually([&] { return go.load(); });
      ++loops;
    });
  CHECK(eventually([&] { return waiting == 16; }));
  CHECK(visits(pool, 100, kCostly, 2) == std::vector<int>(100, 1));
  std::atomic<bool> extra{false};
  pool.submit([&] { extra = true; });
  std::this_thread::sleep_for(20ms);
  CHECK_FALSE(extra);
  go = true;
  CHECK(eventually([&] { return loops == 16 && extra; }));
}

TEST_CASE("a task that throws is survived") {
  std::atomic<bool> next{false};
  ThreadPool pool(1, {.max_runners = 1});
  pool.submit([] { throw std::runtime_error("lost"); });
  pool.submit([&] { next = true; });
  CHECK(eventually([&] { return next.load(); }));
}

namespace {

/// A user's thread hooks that count, with real threads underneath.
struct CountingHooks {
  std::atomic<int> created{0}, joined{0};
  int refuse_after = 1000;

  ThreadHooks hooks() {
    return {[this](void (*entry)(void*), void* argument) -> void* {
              if (created >= refuse_after) return nullptr;
              ++created;
              return std::make_unique<std::thread>(entry, argument).release();
            },
            [this](void* handle) {
              const std::unique_ptr<std::thread> thread(static_cast<std::thread*>(handle));
              thread->join();
              ++joined;
            }};
  }
};

}  // namespace

TEST_CASE("hooks make and join every thread") {
  CountingHooks counting;
  {
    ThreadPool pool(3, {.hooks = counting.hooks()});
    CHECK(counting.created == 2);
    CHECK(visits(pool, 10, kCostly, 3) == std::vector<int>(10, 1));
    pool.submit([] {});
  }
  CHECK(counting.created == 3);
  CHECK(counting.joined == 3);
}

TEST_CASE("a pool that gets fewer threads than asked for works with those") {
  CountingHooks counting;
  counting.refuse_after = 1;
  ThreadPool pool(4, {.hooks = counting.hooks()});
  CHECK(pool.size() == 2);
  CHECK(visits(pool, 10, kCostly, 4) == std::vector<int>(10, 1));
  bool ran = false;
  try {
    pool.submit([&] { ran = true; });
    FAIL("did not throw");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::OutOfMemory);
  }
  CHECK_FALSE(ran);
}

TEST_CASE("idle runners end and come back") {
  CountingHooks counting;
  {
    ThreadPool pool(1, {.max_runners = 4, .runner_idle_ms = 1, .hooks = counting.hooks()});
    for (int round = 0; round < 5; ++round) {
      std::atomic<bool> ran{false};
      pool.submit([&] { ran = true; });
      CHECK(eventually([&] { return ran.load(); }));
      std::this_thread::sleep_for(20ms);
    }
    CHECK(counting.created > 1);
    CHECK(counting.joined >= 1);
  }
  CHECK(counting.joined == counting.created);
}

#if defined(__linux__)
TEST_CASE("an idle pool uses no processor time") {
  ThreadPool pool(4);
  visits(pool, 1000, kCostly, 4);
  std::this_thread::sleep_for(50ms);
  const auto processor_ms = [] { return std::clock() * 1000 / CLOCKS_PER_SEC; };
  const auto before = processor_ms();
  std::this_thread::sleep_for(300ms);
  CHECK(processor_ms() - before < 20);
}
#endif
