// A plan whose kernels are made on several threads is the one that a single thread makes, and fails as it does.
#include "base/cpu_features.h"
#include "base/error.h"
#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

class Fails final : public kernel::Kernel {
 public:
  explicit Fails(kernel::KernelInfo& info) { fail(ErrorCode::InvalidModel, info.node().name); }
  void run(kernel::KernelContext&) const override {}
};

kernel::Registry with_fails() {
  kernel::Registry out = registry();
  kernel::OpRegistrar registrar(out);
  const std::string_view signature = "X:T -> Y:T; T = all";
  registrar.op("Fails", "test").version(1, signature).infer(kernel::infer_same_as_first).kernel<Fails>();
  registrar.op("Lacks", "test").version(1, signature).infer(kernel::infer_same_as_first);
  return out;
}

struct Builder {
  const kernel::Registry registry = with_fails();
  runtime::WeightStore weights{};
  ThreadPool pool{4};

  std::unique_ptr<runtime::ExecutionPlan> build(const graph::Model& model, std::size_t threads) {
    kernel::RunContext load;
    load.pool = &pool;
    load.max_threads = threads;
    return runtime::ExecutionPlan::build(model.graph, {.registry = &registry,
                                                       .kernels = &microkernels::kernel_set(detect_cpu_rung()),
                                                       .weights = &weights,
                                                       .providers = {},
                                                       .logger = nullptr,
                                                       .load = &load});
  }
  std::string error(const std::string& text, std::size_t threads) {
    const graph::Model model = graph::parse_model(text, 17);
    kernel::infer_graph(*model.graph, registry);
    try {
      build(model, threads);
    } catch (const Error& error) {
      return cat(error.message(), " | ", error.context().node, " | ", error.context().op_type, " | ",
                 error.context().details.size());
    }
    return "none";
  }
};

/// `count` nodes in a row, of which op_of(i) says the kind.
template <class F>
std::string chain(std::size_t count, F op_of) {
  std::string text = "(float[8] x) => (y) {";
  for (std::size_t i = 0; i < count; ++i)
    text += cat(" ", i + 1 == count ? "y" : cat("v", i + 1), " = ", op_of(i), "(", i == 0 ? "x" : cat("v", i), ")");
  return text + " }";
}

}  // namespace

TEST_CASE("kernels made on several threads: the first failure is reported, or all missing operators in order") {
  Builder builder;
  const auto lacks = [](std::size_t i) { return i % 7 == 3 ? "test.Lacks" : "Neg"; };
  const auto fails = [](std::size_t i) { return i >= 40 ? "test.Fails" : i == 5 ? "test.Lacks" : "Neg"; };
  for (const std::string& text : {chain(90, lacks), chain(90, fails)}) {
    const std::string expected = builder.error(text, 1);
    CHECK(expected != "none");
    for (int turn = 0; turn < 20; ++turn) CHECK(builder.error(text, 4) == expected);
  }
}

TEST_CASE("kernels made on several threads hold the same bytes and give the same answers") {
  std::string weights, nodes, at = "x";
  for (int i = 0; i < 24; ++i) {
    weights += cat(i == 0 ? "" : ", ", "float[2,2] w", i, " = {", i % 5 - 2, ", 1, -1, ", i % 3, "}");
    nodes += cat(" p", i, " = MatMul(", at, ", w", i, ") v", i, " = Tanh(p", i, ")");
    at = cat("v", i);
  }
  const std::string text =
      cat("(float[N,2] x, bool m) => (y) <", weights, "> {", nodes, " y = If<then_branch = t () => (a) { a = MatMul(",
          at, ", w0) }, else_branch = e () => (b) { b = Abs(", at, ") }>(m) }");
  ThreadPool pool(4);
  kernel::RunContext load;
  load.pool = &pool;
  const Planned alone(text);
  const std::vector<Value> fed = {noise(DType::Float32, {3, 2}, 1), Tensor::of<bool>({}, {true})};
  const Value expected = alone.run(fed)[0];
  for (load.max_threads = 1; load.max_threads <= 4; ++load.max_threads) {
    const Planned shared(text, {.load = &load});
    CHECK(shared.plan->held_bytes() == alone.plan->held_bytes());
    CHECK(std::ranges::equal(shared.run(fed)[0].tensor().byte_span(), expected.tensor().byte_span()));
  }
}
