// Loads that are cancelled after they began.
#include "base/cpu_features.h"
#include "kernel/profile.h"
#include "onnx/writer.h"
#include "provider/partitioner.h"
#include "session/loader.h"
#include "session/model_check.h"
#include "session/model_saver.h"
#include "session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Makes the plan of a load, with weights of its own.
void build_plan(const graph::Model& model, const kernel::RunContext& load) {
  runtime::WeightStore weights;
  (void)runtime::ExecutionPlan::build(model.graph, {.registry = &engine()->registry(),
                                                    .kernels = &microkernels::kernel_set(detect_cpu_rung()),
                                                    .weights = &weights,
                                                    .providers = {},
                                                    .logger = nullptr,
                                                    .load = &load});
}

}  // namespace

TEST_CASE("a load that is cancelled while types are inferred looks at no other node") {
  constexpr int kNodes = 30;
  std::string outputs, nodes;
  for (int i = 0; i < kNodes; ++i) {
    outputs += cat(i == 0 ? "" : ", ", "float[3] y", i);
    nodes += cat("y", i, " = Sin(x)  ");
  }
  const std::vector<std::byte> bytes = model_bytes(cat("(float[2] x) => (", outputs, ") { ", nodes, " }"));
  // A warning for each output, which declares a shape that cannot be.
  const auto warnings_until = [&](int last) {
    int warnings = 0;
    kernel::CancelToken token;
    const Logger logger(LogSeverity::Warning, "", [&](LogSeverity, std::string_view, std::string_view) {
      if (++warnings == last) token.cancel();
    });
    const auto load = [&] { session::load_model(*engine(), source_of(bytes), {}, logger, &token, nullptr); };
    if (last == 0) {
      load();
    } else {
      CHECK(error_of(load).code() == ErrorCode::Aborted);
    }
    return warnings;
  };
  CHECK(warnings_until(0) >= kNodes);
  for (int last = 1; last < kNodes; last += 7) CHECK(warnings_until(last) == last);
}

TEST_CASE("each step of a load looks at every node whether it is to end") {
  constexpr std::size_t kNodes = 50;
  std::string nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes += cat("v", i + 1, " = Sin(v", i, ")  ");
  graph::Model model = graph::parse_model(cat("(float[2] v0) => (v", kNodes, ") { ", nodes, " }"), 17);
  const kernel::Registry& all = engine()->registry();
  kernel::infer_graph(*model.graph, all);
  kernel::LoopProfile profile;
  kernel::RunContext load;
  load.loops = &profile;
  const auto looks = [&](auto&& step) {
    const std::size_t before = profile.looks();
    step();
    return profile.looks() - before;
  };
  CHECK(looks([&] { session::check_operators(model, all, load); }) >= kNodes);
  CHECK(looks([&] { session::raise_opsets(model, all, load); }) >= kNodes);
  CHECK(looks([&] { kernel::expand_functions(*model.graph, all, &load); }) >= kNodes);
  CHECK(looks([&] { provider::partition(*model.graph, {}, all, {.load = &load}); }) >= kNodes);
  CHECK(looks([&] {
          onnx::WriteOptions write;
          write.checkpoint = [&] { load.check(); };
          (void)onnx::write_model_bytes(model, write);
        }) >= 2 * kNodes);
  CHECK(looks([&] { build_plan(model, load); }) >= 3 * kNodes);
}

TEST_CASE("a load looks between parts of one large weight whether it is to end") {
  constexpr std::int64_t kRows = 16384, kColumns = 2048, kMostOfPart = 16 << 20;
  graph::Model model = graph::parse_model("(float[1,16384] x) => (y) <float[1,1] w = {0}> { y = MatMul(x, w) }", 17);
  const Tensor weight = Tensor::make(DType::Float32, {kRows, kColumns});
  std::fill_n(weight.mutable_data<float>(), kRows * kColumns, 0.5f);
  graph::ValueInfo& w = model.graph->value(model.graph->node(0).inputs[1]);
  w.constant = weight;
  w.type = graph::ValueType::tensor(DType::Float32, graph::to_sym(weight.shape()));
  kernel::infer_graph(*model.graph, engine()->registry());
  kernel::LoopProfile profile;
  kernel::RunContext load;
  load.loops = &profile;
  build_plan(model, load);
  CHECK(profile.looks() >= static_cast<std::size_t>(kRows * kColumns * 4 / kMostOfPart));
}
