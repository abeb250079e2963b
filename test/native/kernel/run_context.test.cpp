#include "kernel/run_context.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"

namespace infernode::kernel {
namespace {

TEST_CASE("A budget is asked before memory is") {
  MemoryBudget budget(100);
  budget.reserve(60);
  CHECK_THROWS_AS(budget.reserve(41), Error);
  CHECK_THROWS_AS(budget.reserve(SIZE_MAX), Error);
  CHECK(budget.used() == 60);
  budget.reserve(40);
  budget.release(100);
  CHECK(budget.used() == 0);
}

TEST_CASE("check() ends cancelled and late runs") {
  RunContext run;
  CHECK_NOTHROW(run.check());
  CancelToken token;
  run.cancel = &token;
  CHECK_NOTHROW(run.check());
  token.cancel();
  CHECK_THROWS_AS(run.check(), Error);
  run.cancel = nullptr;
  run.deadline = std::chrono::steady_clock::now() - std::chrono::milliseconds(1);
  CHECK_THROWS_AS(run.check(), Error);
}

TEST_CASE("parallel_for covers the range once, with and without threads") {
  ThreadPool pool(3);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    RunContext run;
    run.pool = threads;
    run.max_threads = 3;
    std::vector<int> touched(1001, 0);
    run.parallel_for(touched.size(), 10000.0, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      CHECK(slot < 3);
      for (std::size_t i = begin; i < end; ++i) ++touched[i];
    });
    for (int t : touched) CHECK(t == 1);
    run.parallel_for(0, 1.0, [](std::size_t, std::size_t, std::size_t) { FAIL("called for nothing"); });
  }
}

TEST_CASE("A loop of a cancelled run does not go on") {
  ThreadPool pool(2);
  CancelToken token;
  RunContext run;
  run.pool = &pool;
  run.max_threads = 2;
  run.cancel = &token;
  token.cancel();
  CHECK_THROWS_AS(run.parallel_for(1000, 10000.0, [](std::size_t, std::size_t, std::size_t) {}), Error);
}

}  // namespace
}  // namespace infernode::kernel
