#include "runtime/run/executor.h"

#include <mutex>
#include <thread>
#include <vector>

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kChain =
    "(float[N,4] x) => (y) <float[4,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 8, 7, 6, 5, 4, 3, 2, 1}> { a = MatMul(x, w)  "
    "b = Softmax(a)  c = Mul(a, b)  d = Tanh(c)  e = Add(d, a)  y = Softmax(e) }";
}  // namespace

TEST_CASE("a fault names its node and leaves the frame usable") {
  const Planned p("(float[4] x, int64[N] i) => (y) { [\"double\"] d = Add(x, x)  [\"pick\"] y = Gather(d, i) }");
  runtime::Frame frame(true);
  const Value x = noise(DType::Float32, {4}, 1);
  try {
    (void)p.run({x, Tensor::of<std::int64_t>({1}, {9})}, {.frame = &frame});
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.context().node == "pick");
    CHECK(error.context().op_type == "Gather");
    CHECK(error.message().find("pick") != std::string::npos);
  }
  for (const Value& value : frame.values) CHECK(value.empty());
  CHECK(p.run({x, Tensor::of<std::int64_t>({1}, {3})}, {.frame = &frame})[0].tensor().numel() == 1);
}

TEST_CASE("a run that is cancelled ends at the next node") {
  const Planned p(kChain);
  kernel::CancelToken token;
  token.cancel();
  try {
    (void)p.run(feeds(p.plan->graph()), {.cancel = &token});
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::Aborted);
  }
}

TEST_CASE("the arena and what is allocated beside it count in the budget") {
  const Planned p("(float[N] x) => (y) { a = Exp(x)  b = Softmax(a)  c = Add(a, b)  y = Softmax(c) }");
  const auto inputs = feeds(p.plan->graph(), {{"N", 1024}});
  kernel::MemoryBudget little(1000), enough(1 << 20);
  CHECK_THROWS_WITH_AS(p.run(inputs, {.budget = &little}), doctest::Contains("of the 1000 bytes of its memoryLimit"),
                       Error);
  CHECK(little.used() == 0);
  const Planned named(
      "(float[N] x) => (y) { [\"small\"] a = ReduceSum <keepdims = 1> (x)  [\"large\"] b = Add(x, a)  "
      "c = ReduceSum <keepdims = 1> (b)  y = Mul(c, a) }");
  try {
    (void)named.run(inputs, {.budget = &little});
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::OutOfMemory);
    CHECK(error.context().node == "large");
    CHECK(error.context().op_type == "Add");
    CHECK(error.message().find("large") != std::string::npos);
  }
  (void)p.run(inputs, {.budget = &enough});
  CHECK(enough.used() == 0);
}

TEST_CASE("bound memory is written where it fits, and left alone where it does not") {
  const Planned p("(float[N] x) => (y) { y = Exp(x) }");
  const Value x = Tensor::of<float>({2}, {0, 0});
  const Tensor fits = Tensor::of<float>({2}, {7, 7}), other = Tensor::of<float>({3}, {7, 7, 7});
  CHECK(p.run({x}, {.bound = {fits}})[0].tensor().raw() == fits.raw());
  CHECK(tensor::to_float_vector(fits) == std::vector<float>{1, 1});
  CHECK(p.run({x}, {.bound = {other}})[0].tensor().raw() != other.raw());
  CHECK(tensor::to_float_vector(other) == std::vector<float>{7, 7, 7});
}

TEST_CASE("bound memory has its output also where inputs have the same owner, and where the output is an input") {
  float memory[] = {0, 0, 7, 7};
  const std::shared_ptr<const void> owner(std::shared_ptr<const void>(), memory);  // as of all that a caller lends
  const auto lent = [&](std::size_t at) {
    return Tensor(DType::Float32, Shape{2}, tensor::Buffer(memory + at, 2 * sizeof(float), owner));
  };
  const Tensor bound = lent(2);
  const auto run = [&](const char* text) { return Planned(text).run({lent(0)}, {.bound = {bound}})[0].tensor().raw(); };
  CHECK(run("(float[N] x) => (y) { y = Exp(x) }") == bound.raw());
  CHECK(tensor::to_float_vector(bound) == std::vector<float>{1, 1});
  CHECK(run("(float[N] x) => (y) { y = Identity(x) }") == bound.raw());
  CHECK(tensor::to_float_vector(bound) == std::vector<float>{0, 0});
}

TEST_CASE("one plan serves many runs at once") {
  const Planned p(kChain);
  ThreadPool pool(2);
  std::vector<std::vector<Value>> inputs, expected;
  for (std::uint32_t i = 0; i < 4; ++i) {
    inputs.push_back(feeds(p.plan->graph(), {{"N", i % 2 == 0 ? 5 : 9}}, i + 1));
    expected.push_back(p.run(inputs.back()));
  }
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      runtime::Frame frame(true);
      for (int again = 0; again < 20; ++again) {
        const auto got = p.run(inputs[t], {.frame = &frame, .pool = &pool, .inter_op_threads = t < 2 ? 1u : 2u});
        if (!difference(got[0], expected[t][0], 0).empty()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("steps that depend on nothing run at once, with the same answers") {
  std::string body;
  std::string sum = "y = Sum(";
  for (int i = 0; i < 12; ++i) {
    const std::string n = std::to_string(i);
    body += "a" + n + " = Exp(x)  b" + n + " = Softmax<axis = " + std::to_string(i % 2) + ">(a" + n + ")  c" + n +
            " = Mul(b" + n + ", x)  ";
    sum += (i == 0 ? "c" : ", c") + n;
  }
  const std::string text = "(float[8,32] x) => (y, b3) { " + body + sum + ") }";
  const Planned p(text);
  const auto inputs = feeds(p.plan->graph());
  const auto expected = evaluate(*parse(text).graph, inputs);
  ThreadPool pool(2);
  runtime::Frame frame(true);
  for (const std::size_t threads : {1u, 2u, 4u, 100u}) {
    for (int again = 0; again < 10; ++again)
      check_same(p.run(inputs, {.frame = &frame, .pool = &pool, .inter_op_threads = threads}), expected);
  }
}

TEST_CASE("a fault in a parallel walk ends it") {
  const Planned p(
      "(float[4] x, int64[N] i) => (y, z) { a = Exp(x)  b = Neg(x)  [\"pick\"] g = Gather(a, i)  "
      "c = Exp(b)  z = Softmax(c)  y = Neg(g) }");
  ThreadPool pool(2);
  runtime::Frame frame(true);
  for (int again = 0; again < 20; ++again) {
    CHECK_THROWS_WITH_AS(p.run({noise(DType::Float32, {4}, 1), Tensor::of<std::int64_t>({1}, {9})},
                               {.frame = &frame, .pool = &pool, .inter_op_threads = 3}),
                         doctest::Contains("pick"), Error);
  }
}

TEST_CASE("parallel walks do not wait for each other's helpers") {
  const Planned p("(float[4] x) => (y) { a = Exp(x)  b = Neg(x)  y = Add(a, b) }");
  ThreadPool pool(2, {.max_runners = 2});
  std::atomic<int> done{0};
  for (int i = 0; i < 8; ++i) {
    pool.submit([&] {
      (void)p.run(feeds(p.plan->graph()), {.pool = &pool, .inter_op_threads = 4});
      ++done;
    });
  }
  for (int wait = 0; wait < 2000 && done < 8; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(done == 8);
}

TEST_CASE("a run does what its outputs need") {
  const Planned p(
      "(float[N,2] x, int64[1] i) => (y, z, v, k) { a = Exp(x)  y = Gather(a, i)  z = Tanh(a)  v, k = "
      "TopK(z, i) }");
  const Value x = noise(DType::Float32, {2, 2}, 1);
  const std::vector<Value> inputs{x, Tensor::of<std::int64_t>({1}, {9})};  // no row, and too many columns
  CHECK_THROWS_AS(p.run(inputs), Error);
  for (const std::size_t threads : {1u, 2u}) {
    ThreadPool pool(2);
    for (int again = 0; again < 2; ++again) {
      const auto some =
          p.run(inputs, {.pool = &pool, .inter_op_threads = threads, .wanted = {false, true, false, false}});
      REQUIRE(some.size() == 4);
      CHECK(some[0].empty());
      CHECK(some[1].tensor().numel() == 4);
      CHECK(some[2].empty());
      CHECK(some[3].empty());
    }
  }
  const std::vector<Value> right{x, Tensor::of<std::int64_t>({1}, {1})};
  const auto all = p.run(right);
  for (std::size_t only = 0; only < 4; ++only) {
    std::vector<bool> wanted(4);
    wanted[only] = true;
    check_same({p.run(right, {.wanted = wanted})[only]}, {all[only]});
  }
  CHECK(p.plan->demand({true, true, true, true}) == nullptr);
  CHECK(p.plan->demand({true, false, true, true}) == p.plan->demand({true, false, true, true}));
}

namespace {
/// Ends the run when it is asked a second time, and notes which threads what it gave is freed on.
class EndingAllocator final : public tensor::Allocator {
 public:
  tensor::Buffer allocate(std::size_t bytes) override {
    if (++given_ == 2) token.cancel();
    const tensor::Buffer block = tensor::host_allocator().allocate(bytes);
    const auto freed = [this, block](const void*) {
      const std::lock_guard lock(mutex_);
      freed_on.push_back(std::this_thread::get_id());
    };
    return {block.data(), bytes, std::shared_ptr<const void>(block.data(), freed)};
  }
  tensor::Device device() const override { return {}; }

  kernel::CancelToken token;
  std::vector<std::thread::id> freed_on;

 private:
  std::mutex mutex_;
  int given_ = 0;
};
}  // namespace

TEST_CASE("what a run that is ended leaves is freed while its answer is given") {
  const char* text = "(float[N] x) => (y) { a = Sin(x)  b = Concat<axis = 0>(a, x)  y = Concat<axis = 0>(b, a) }";
  const Planned p(text, {.lay_out_memory = false});
  const auto freed_on = [&](std::int64_t elements, std::size_t inter_op_threads) {
    const Value x = Tensor::make(DType::Float32, {elements});
    EndingAllocator memory;
    runtime::Frame frame(true);
    {
      ThreadPool pool(2);
      const auto run = [&] {
        (void)p.run({x}, {.frame = &frame,
                          .pool = &pool,
                          .inter_op_threads = inter_op_threads,
                          .cancel = &memory.token,
                          .allocator = &memory});
      };
      CHECK_THROWS_WITH_AS(run(), "the run was cancelled", Error);
      for (const Value& value : frame.values) CHECK(value.empty());
    }
    return memory.freed_on;
  };
  for (const std::size_t threads : {1u, 2u}) {
    const auto large = freed_on(std::int64_t{5} << 20, threads);
    CHECK(large.size() == 2);  // a, and b as far as it had come
    for (const std::thread::id id : large) CHECK(id != std::this_thread::get_id());
  }
  const auto small = freed_on(1 << 10, 1);
  CHECK(small.size() == 2);
  for (const std::thread::id id : small) CHECK(id == std::this_thread::get_id());
}
