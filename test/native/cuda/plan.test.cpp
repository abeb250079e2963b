#include <atomic>
#include <random>
#include <thread>

#include "cuda_test.h"
#include "providers/cuda/device/memory.h"
#include "providers/cuda/plan/arena.h"
#include "providers/cuda/plan/device_tensor.h"
#include "session/prepared_run.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kModel = "(float[N] x) => (y) { e = Exp(x)  y = Neg(e) }";

std::shared_ptr<cuda::Device> device() { return cuda::Device::open(cuda::driver::open(), 0); }
}  // namespace

TEST_CASE("what lives at the same time has places of its own") {
  std::mt19937 random(1);
  std::vector<cuda::Lifetime> lives;
  for (int i = 0; i < 60; ++i) {
    const std::size_t first = random() % 20;
    lives.push_back({random() % 5000, first, first + random() % 6});
  }
  const cuda::ArenaLayout layout = cuda::lay_out(lives);
  for (std::size_t a = 0; a < lives.size(); ++a) {
    CHECK(layout.offsets[a] % 256 == 0);
    CHECK(layout.offsets[a] + lives[a].bytes <= layout.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      if (lives[a].last < lives[b].first || lives[b].last < lives[a].first) continue;
      CHECK((layout.offsets[a] + lives[a].bytes <= layout.offsets[b] ||
             layout.offsets[b] + lives[b].bytes <= layout.offsets[a]));
    }
  }
}

TEST_CASE("strides of reshaped views") {
  using Strides = std::vector<std::int64_t>;
  CHECK(cuda::reshaped_strides({1, 6, 24}, {144, 30, 1}, {1, 6, 3, 8}) == Strides{0, 30, 8, 1});
  CHECK(cuda::reshaped_strides({4, 6}, {1, 4}, {24}) == std::nullopt);
  CHECK(cuda::reshaped_strides({2, 3, 4}, {24, 8, 1}, {6, 4}) == Strides{8, 1});
  CHECK(cuda::reshaped_strides({2, 1, 4}, {100, 7, 1}, {2, 4}) == Strides{100, 1});
}

TEST_CASE("memory is kept, limited and given back") {
  const OnDouble undo;
  const auto memory = cuda::Memory::create(device(), {.limit = 1 << 20, .next_power_of_two = false});
  const void* first = nullptr;
  {
    const tensor::Buffer block = memory->allocate(1000);
    first = block.data();
    CHECK(memory->used() == 1024);
  }
  CHECK(memory->used() == 0);
  CHECK(memory->held() == 1024);
  CHECK(memory->allocate(1001).data() == first);
  const Error error = error_of([&] { memory->allocate(2 << 20); });
  CHECK(error.code() == ErrorCode::OutOfMemory);
  CHECK(has(error.message(), "exceed gpu_mem_limit"));
  memory->shrink();
  CHECK(memory->held() == 0);
}

TEST_CASE("the third run of the same shapes replays a graph") {
  const OnDouble undo;
  auto& state = cuda_double::state();
  const auto s = open(kModel, on_cuda());
  for (int i = 0; i < 4; ++i) {
    state.launches.clear();
    CHECK(tensor::to_float_vector(run(*s, {Tensor::of<float>({2}, {0, 0})})[0].tensor()) == std::vector<float>{-1, -1});
    REQUIRE(state.launches.size() == 2);
    CHECK(state.launches[0].replayed == (i > 1));
  }
  CHECK(state.graphs == 1);
  run(*s, {Tensor::of<float>({3}, {0, 0, 0})});
  CHECK(state.graphs == 1);
  const auto without = open(kModel, on_cuda({{"enable_cuda_graph", "0"}}));
  for (int i = 0; i < 4; ++i) run(*without, {Tensor::of<float>({2}, {0, 0})});
  CHECK(state.graphs == 1);
}

TEST_CASE("times of kernels are taken beside a run, not in it") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda({{"kernel_times", "1"}}));
  for (int i = 0; i < 4; ++i) {
    cuda_double::state().launches.clear();
    CHECK(tensor::to_float_vector(run(*s, {Tensor::of<float>({2}, {0, 0})})[0].tensor()) == std::vector<float>{-1, -1});
    CHECK((cuda_double::state().launches.size() > 2) == (i == 2));  // when the plan is captured
  }
}

TEST_CASE("bound tensors on the device are read and written where they lie") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda());
  const tensor::Device gpu = s->device("cuda");
  for (int i = 0; i < 12; ++i) {  // more addresses than there are plans of their own
    const Tensor host = Tensor::of<float>({2}, {static_cast<float>(i), 0});
    const Tensor x = s->allocate(tensor::DType::Float32, {2}, gpu);
    s->copy(host, x);
    session::PreparedRun bound = s->prepare({x});
    bound.want(0, gpu);
    for (int again = 0; again < 3; ++again) {
      const auto results = bound.execute();
      REQUIRE(results[0].tensor().device() == gpu);
      const Tensor y = Tensor::of<float>({2}, {0, 0});
      s->copy(results[0].tensor(), y);
      CHECK(y.data<float>()[0] == doctest::Approx(-std::exp(static_cast<float>(i))));
    }
  }
}

TEST_CASE("an output bound to a tensor of the device takes no other memory") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda());
  const tensor::Device gpu = s->device("cuda");
  constexpr std::int64_t kCount = 4000;
  constexpr std::size_t kBytes = kCount * sizeof(float);
  const Tensor x = s->allocate(tensor::DType::Float32, {kCount}, gpu),
               y = s->allocate(tensor::DType::Float32, {kCount}, gpu);
  const std::size_t before = cuda_double::state().bytes;
  session::PreparedRun bound = s->prepare({x});
  bound.want(0, gpu);
  bound.write_into(0, y);
  for (int i = 0; i < 4; ++i) CHECK(bound.execute()[0].tensor().raw() == y.raw());
  CHECK(cuda_double::state().bytes < before + kBytes * 3 / 2);  // that between the two nodes alone
  const Tensor host = Tensor::make(tensor::DType::Float32, {kCount});
  s->copy(y, host);
  CHECK(host.data<float>()[kCount - 1] == -1);
}

TEST_CASE("a session outlives a lack of memory") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda());
  cuda_double::state().most_bytes = cuda_double::state().bytes + 1000;
  const Error error = error_of([&] { run(*s, {numbers({100000})}); });
  CHECK(error.code() == ErrorCode::OutOfMemory);
  CHECK(has(error.message(), "Double GPU is out of memory (allocating "));
  CHECK(has(error.message(), "while running CopyToDevice node. Name:'x_on_cuda_copy'"));
  cuda_double::state().most_bytes = cuda_double::kMostBytes;
  CHECK(run(*s, {numbers({100000})}).size() == 1);
}

TEST_CASE("an error that ends the context is told once, and later ones say so") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda());
  cuda_double::state().wait_result = 700;
  CHECK(has(error_of([&] { run(*s, {numbers({2})}); }).message(), "Its context is lost"));
  cuda_double::state().wait_result = 0;
  CHECK(has(error_of([&] { run(*s, {numbers({2})}); }).message(), "was lost by an earlier error"));
}

TEST_CASE("runs at once do not meet") {
  const OnDouble undo;
  const auto s = open(kModel, on_cuda());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto results = run(*s, {Tensor::of<float>({2}, {static_cast<float>(t), 0})});
        if (std::abs(results[0].tensor().data<float>()[0] + std::exp(static_cast<float>(t))) > 1e-3) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
