// A load that is cancelled while kernels are made makes no other one.
#include "base/cpu_features.h"
#include "base/error.h"
#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::size_t made = 0, last = 0;
kernel::CancelToken* token = nullptr;

/// Cancels the load that makes it, if it is the one that `last` says.
class Probe final : public kernel::Kernel {
 public:
  explicit Probe(kernel::KernelInfo&) {
    if (++made == last) token->cancel();
  }
  void run(kernel::KernelContext& ctx) const override { ctx.output(0, ctx.input(0).shape()); }
};

kernel::Registry with_probe() {
  kernel::Registry out = registry();
  kernel::OpRegistrar registrar(out);
  registrar.op("Probe", "test").version(1, "X:T -> Y:T; T = all").infer(kernel::infer_same_as_first).kernel<Probe>();
  return out;
}
}  // namespace

TEST_CASE("a load that is cancelled makes no other kernel, in the graph and in bodies") {
  const kernel::Registry registry = with_probe();
  runtime::WeightStore weights;
  const auto build = [&](std::string_view text) {
    const graph::Model model = graph::parse_model(text, 17);
    kernel::infer_graph(*model.graph, registry);
    kernel::CancelToken own;
    token = &own;
    kernel::RunContext load;
    load.cancel = &own;
    made = 0;
    return runtime::ExecutionPlan::build(model.graph, {.registry = &registry,
                                                       .kernels = &microkernels::kernel_set(detect_cpu_rung()),
                                                       .weights = &weights,
                                                       .providers = {},
                                                       .logger = nullptr,
                                                       .load = &load});
  };
  for (const char* text :
       {"(float x) => (y) { a = test.Probe(x)  b = test.Probe(a)  c = test.Probe(b)  y = test.Probe(c) }",
        "(float x, bool m) => (y) { a = test.Probe(x)  b = If(m) <then_branch = t () => (u) { s = test.Probe(a)  u = "
        "test.Probe(s) }, else_branch = e () => (v) { v = Neg(a) }>  y = test.Probe(b) }"}) {
    last = 0;
    build(text);
    CHECK(made == 4);
    for (last = 1; last <= 4; ++last) {
      CHECK_THROWS_WITH_AS(build(text), "the run was cancelled", Error);
      CHECK(made == last);
    }
  }
}
