#include "runtime/profiler.h"

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;
using runtime::Profiler;

TEST_CASE("a trace is a JSON array with one complete event a line") {
  Profiler profiler;
  const auto now = Profiler::Clock::now();
  profiler.add("Session", "model_run", now, now + std::chrono::microseconds(250));
  profiler.add("Node", "a \"b\"\n_kernel_time", now, now,
               {{"op_name", "Add"}, {"input_type_shape", "[{\"float\":[2]}]"}});
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
