#include "runtime/run/profiler.h"

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;
using runtime::Profiler;

TEST_CASE("a trace is a JSON array with one complete event a line") {
  Profiler profiler;
  const auto now = Profiler::Clock::now();
  profiler.add("Session", "model_run", now, now + std::chrono::microseconds(250));
  profiler.add("Node", "a \"b\"\n_kernel_time", now, now,
               std::vector<Profiler::Argument>{{"op_name", "Add"}, {"input_type_shape", "[{\"float\":[2]}]"}});
  const std::string json = profiler.json();
  CHECK(json.starts_with("[\n{\"cat\":\"Session\",\"pid\":"));
  CHECK(json.ends_with("}\n]\n"));
  CHECK(std::count(json.begin(), json.end(), '\n') == 4);
  CHECK(json.find("\"dur\":250,\"ts\":") != std::string::npos);
  CHECK(json.find("\"ph\":\"X\",\"name\":\"model_run\",\"args\":{}},\n") != std::string::npos);
  CHECK(json.find("\"a \\\"b\\\"\\n_kernel_time\"") != std::string::npos);
  CHECK(json.find("\"op_name\":\"Add\",\"input_type_shape\":[{\"float\":[2]}]") != std::string::npos);
}

TEST_CASE("a trace's file has the prefix and the time") {
  const std::string name = Profiler::file_name("p/q");
  CHECK(name.starts_with("p/q_2"));
  CHECK(name.ends_with(".json"));
  CHECK(name.size() == std::string("p/q_2026-01-02_03-04-05_678.json").size());
}

TEST_CASE("every node that runs is in the trace, with what it reads and makes") {
  const Planned p("(float[2,3] x) => (y) <float[3] b = {1, 2, 3}> { [\"sum\"] a = Add(x, b)  y = Softmax(a) }");
  Profiler profiler;
  (void)p.run(feeds(p.plan->graph()), {.profiler = &profiler});
  const std::string json = profiler.json();
  for (const char* part : {"\"cat\":\"Node\"", "\"name\":\"sum_kernel_time\"", "\"op_name\":\"Add\"",
                           "\"provider\":\"CPUExecutionProvider\"", "\"node_index\":\"0\"",
                           "\"activation_size\":\"24\"", "\"parameter_size\":\"12\"", "\"output_size\":\"24\"",
                           "\"input_type_shape\":[{\"float\":[2,3]},{\"float\":[3]}]",
                           "\"output_type_shape\":[{\"float\":[2,3]}]", "\"name\":\"Softmax_1_kernel_time\""}) {
    CHECK_MESSAGE(json.find(part) != std::string::npos, part, " in ", json);
  }
}

TEST_CASE("the nodes of bodies are in the trace, before the node that ran them") {
  const Planned p(R"((bool c, float[2] x) => (y) {
      ["branch"] y = If <then_branch = t () => (o) { ["inner"] h = Add(x, x)  o = Relu(h) },
                         else_branch = e () => (o) { o = Neg(x) }> (c) })");
  Profiler profiler;
  Tensor yes = Tensor::make(DType::Bool, {});
  *yes.mutable_data<bool>() = true;
  (void)p.run({yes, noise(DType::Float32, {2}, 1)}, {.profiler = &profiler});
  const std::string json = profiler.json();
  std::size_t at = 0;
  for (const char* name : {"\"inner_kernel_time\"", "\"Relu_1_kernel_time\"", "\"SequentialExecutor::Execute\"",
                           "\"branch_kernel_time\""}) {
    at = json.find(name, at);
    REQUIRE_MESSAGE(at != std::string::npos, name, " in ", json);
  }
  CHECK(json.find("Neg") == std::string::npos);
}

TEST_CASE("a node's loops say which threads took part") {
  ThreadPool pool(2);
  const Planned p("(float[400,400] x) => (y) { y = MatMul(x, x) }");
  Profiler profiler;
  (void)p.run(feeds(p.plan->graph()), {.pool = &pool, .profiler = &profiler});
  const std::string json = profiler.json();
  const std::size_t stats =
      json.find("\"thread_scheduling_stats\":{\"main_thread\":{\"thread_pool_name\":\"infernode\"");
  REQUIRE_MESSAGE(stats != std::string::npos, json);
  // Which of the two threads gets the blocks is chance, but one of them does.
  const bool main_idle = json.find("\"block_size\":[]", stats) != std::string::npos;
  const bool helper_idle = json.find("\"sub_threads\":{}", stats) != std::string::npos;
  CHECK_MESSAGE(!(main_idle && helper_idle), json);
}

TEST_CASE("a loop's profile counts each thread's blocks, and a loop in a loop once") {
  ThreadPool pool(3);
  kernel::LoopProfile loops;
  kernel::RunContext run;
  run.pool = &pool;
  run.max_threads = 3;
  run.loops = &loops;
  std::atomic<std::size_t> others = 0;
  const std::uint64_t self = kernel::thread_id();
  run.parallel_for(3000, 1000, [&](std::size_t begin, std::size_t end, std::size_t) {
    if (kernel::thread_id() != self) ++others;
    const auto until = Profiler::Clock::now() + std::chrono::microseconds(end - begin);
    while (Profiler::Clock::now() < until) continue;
    run.parallel_for(2, 1, [](std::size_t, std::size_t, std::size_t) {});
  });
  const std::string json = loops.json();
  std::size_t counted = 0;
  for (std::size_t at = 0; (at = json.find("\"num_run\":", at)) != std::string::npos;) {
    at += 10;
    counted += std::stoul(json.substr(at));
  }
  CHECK_MESSAGE(counted == others, json);
  CHECK(json.starts_with(cat("{\"main_thread\":{\"thread_pool_name\":\"infernode\",\"thread_id\":\"", self, "\"")));
}

TEST_CASE("a trace that is full says how much it left out") {
  Profiler profiler;
  const auto now = Profiler::Clock::now();
  for (std::size_t i = 0; i < Profiler::kMaxEvents + 3; ++i) profiler.add("Node", "n", now, now);
  CHECK(profiler.dropped() == 3);
}
