// Members of a session called from many threads at once. What they may do wrong, ThreadSanitizer sees.

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "base/thread_pool/task_lanes.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr const char* kModel =
    "(bool c, float[N] x) => (a, y) { a = Neg(x)  y = If<then_branch = t () => (u) { u = Exp(x) }, else_branch = e () "
    "=> (v) { w = Abs(x)  v = Neg(w) }>(c) }";
const std::vector<std::size_t> kBoth{0, 1};

/// Calls members in a loop each, until all have ended in an Error; the codes of those.
class Callers {
 public:
  void add(std::function<void(int)> call) {
    threads_.emplace_back([this, call = std::move(call)] {
      try {
        for (int i = 0;; ++i) call(i);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::Disposed) ++others_;
      }
    });
  }
  /// How many ended otherwise than by Disposed.
  int join() {
    for (std::thread& thread : threads_) thread.join();
    return others_;
  }

 private:
  std::vector<std::thread> threads_;
  std::atomic<int> others_{0};
};

}  // namespace

TEST_CASE("the members of a session may be called from any thread, while it is released too") {
  const TemporaryFolder folder;
  for (const bool parallel : {false, true}) {
    SessionOptions options{.parallel = parallel};
    options.providers = {{"null", {{"ops", "Neg"}}}, {"cpu", {}}};
    options.profile_prefix = folder / "trace";
    const auto s = open(kModel, options);
    std::atomic<int> runs{0}, wrong{0};
    const auto inputs = [](int i) {
      return std::vector<Value>{Tensor::scalar(i % 2 == 0), noise(DType::Float32, {1 + i % 3}, 1)};
    };
    std::vector<std::vector<Value>> expected;
    for (int i = 0; i < 6; ++i) expected.push_back(run(*s, inputs(i)));
    const auto check = [&](int i, const std::vector<Value>& results) {
      for (const std::size_t o : kBoth)
        wrong += difference(results[o], expected[static_cast<std::size_t>(i % 6)][o], 0).empty() ? 0 : 1;
    };
    Callers callers;
    for (int thread = 0; thread < 2; ++thread) {
      callers.add([&](int i) {
        check(i, run(*s, inputs(i)));
        ++runs;
      });
    }
    callers.add([&](int i) {
      const auto results = prepare(*s, inputs(i), kBoth).execute_briefly(std::chrono::minutes(1));
      if (results) check(i, *results);
    });
    callers.add([&](int i) {
      session::PreparedRun prepared = prepare(*s, inputs(i), kBoth);
      (void)prepared.result_shapes();
      (void)prepared.expected_us();
      (void)s->memory_bytes();
      if (s->released()) fail(ErrorCode::Disposed, "released");
    });
    callers.add([&](int) {
      s->start_profiling();
      (void)s->end_profiling();
    });
    callers.add([&](int) {
      const Tensor there = s->allocate(DType::Float32, {3}, s->device("null")),
                   here = Tensor::make(DType::Float32, {3});
      s->copy(Tensor::of<float>({3}, {1, 2, 3}), there);
      s->copy(there, here);
      wrong += tensor::to_float_vector(here) == std::vector<float>{1, 2, 3} ? 0 : 1;
    });
    while (runs < 20) std::this_thread::yield();
    CHECK(s->release());
    CHECK(callers.join() == 0);
    CHECK(wrong == 0);
  }
}

TEST_CASE("an engine's threads are made and joined by the hooks that it was given") {
  std::atomic<int> created{0}, joined{0};
  const ThreadHooks hooks{[&](void (*entry)(void*), void* argument) -> void* {
                            ++created;
                            return std::make_unique<std::thread>(entry, argument).release();
                          },
                          [&](void* handle) {
                            const std::unique_ptr<std::thread> thread(static_cast<std::thread*>(handle));
                            thread->join();
                            ++joined;
                          }};
  {
    const auto engine = session::Engine::create(3, hooks);
    CHECK(created == 2);
    std::atomic<bool> ran{false};
    engine->pool().submit([&] { ran = true; });
    while (!ran) std::this_thread::yield();
  }
  CHECK(created == 3);
  CHECK(joined == 3);
}

TEST_CASE("two runs for each processor execute at a time, unless the process asks for another number") {
  const auto engine = session::Engine::create(3);
  CHECK(engine->lanes().most() == 2 * engine->pool().size());
  engine->set_concurrent_runs(5);
  CHECK(engine->lanes().most() == 5);
  engine->set_concurrent_runs(0);
  CHECK(engine->lanes().most() == 2 * engine->pool().size());
}
