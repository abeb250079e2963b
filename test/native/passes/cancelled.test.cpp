// A load that is cancelled ends at the next node that anything looks at.
#include "fusions/fusion.h"
#include "fusions/graph_test.h"
#include "passes/fusions.h"
#include "passes/pattern_passes.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// Counts how often something is asked about a node, and cancels the load at one of those times.
struct Probe {
  std::size_t calls = 0, last = SIZE_MAX;
  kernel::CancelToken token{};
  void count() {
    if (++calls == last) token.cancel();
  }
};
Probe* probe = nullptr;

/// All operators, and test.Probe, which counts what asks for the type of its output.
const kernel::Registry& with_probe() {
  static const kernel::Registry all = [] {
    kernel::Registry out = registry();
    kernel::OpRegistrar registrar(out);
    registrar.op("Probe", "test").version(1, "X:T -> Y:T; T = all").infer([](kernel::InferContext& ctx) {
      if (probe != nullptr) probe->count();
      kernel::infer_same_as_first(ctx);
    });
    return out;
  }();
  return all;
}

constexpr std::size_t kNodes = 40;
graph::Model chain() {
  std::string nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes += cat("v", i + 1, " = test.Probe(v", i, ")  ");
  graph::Model model = graph::parse_model(cat("(float[2] v0) => (v", kNodes, ") { ", nodes, " }"), 17);
  probe = nullptr;
  kernel::infer_graph(*model.graph, with_probe());
  return model;
}

/// What a whole load asks about nodes, cancelled at the call that `last` says; whether it was.
bool load(Probe& counted, std::size_t last = SIZE_MAX) {
  graph::Model model = chain();
  kernel::RunContext run;
  run.cancel = &counted.token;
  passes::PassOptions options = pass_options(2);
  options.registry = &with_probe();
  options.load = &run;
  counted.last = last;
  probe = &counted;
  try {
    kernel::infer_graph(*model.graph, with_probe(), nullptr, &run);
    passes::run_basic(model, options);
    passes::run_extended(model, "cpu", options);
  } catch (const Error& error) {
    probe = nullptr;
    CHECK(error.code() == ErrorCode::Aborted);
    graph::verify(*model.graph);
    return true;
  }
  probe = nullptr;
  return false;
}
}  // namespace

TEST_CASE("nothing is asked about nodes after a load was cancelled") {
  Probe whole;
  CHECK_FALSE(load(whole));
  CHECK(whole.calls >= 2 * kNodes);  // inference and folding at least
  for (std::size_t last = 1; last < whole.calls; ++last) {
    Probe counted;
    CAPTURE(last);
    CHECK(load(counted, last));
    CHECK(counted.calls == last);
  }
}

TEST_CASE("every pass ends before it changes anything") {
  const std::string text =
      "(float[2,3] x, bool[3] m) => (y) <float s = {0.5}, uint8 z = {7}, float c = {2}> { q = QuantizeLinear(x, s, z)  "
      "d = DequantizeLinear(q, s, z)  t = Where(m, d, c)  u = Flatten(t)  y = QuantizeLinear(u, s, z) }";
  kernel::CancelToken token;
  token.cancel();
  kernel::RunContext run;
  run.cancel = &token;
  passes::PassOptions options = pass_options(2);
  options.load = &run;
  options.keep_dequantizers = true;
  const auto ends = [&](const auto& pass) {
    graph::Model model = parse(text, 21);
    const std::string before = nodes(*model.graph);
    CHECK_THROWS_WITH_AS(pass(model), "the run was cancelled", Error);
    CHECK(nodes(*model.graph) == before);
  };
  ends([&](graph::Model& model) { passes::run_basic(model, options); });
  ends([&](graph::Model& model) { passes::run_extended(model, "cpu", options); });
  for (const auto pass :
       {passes::eliminate_cast_chains, passes::fold_constants, passes::fold_dequantizers,
        passes::fuse_dequantized_products, passes::fuse_quantized_units, passes::fuse_reshapes,
        passes::fuse_slices_to_depth, passes::inline_branches, passes::join_chains, passes::merge_common_subexpressions,
        passes::optimize_transposes, passes::propagate_quantization, passes::drop_quantization,
        passes::quantize_weights, passes::quantize_where_constants, passes::remove_dead_nodes, passes::remove_noops,
        passes::separate_dequantizers, passes::share_constants})
    ends([&](graph::Model& model) { pass(*model.graph, options); });
}

TEST_CASE("fusions end between two nodes") {
  fusions::FusionRegistry all(registry());
  all.add({.name = "Counted", .level = 1, .pattern = "(x) => (y) { y = Sin(x) }", .guard = [](const fusions::Match&) {
             probe->count();
             return false;
           }});
  const fusions::FusionSet set(all, 1);
  const graph::Model model = parse("(float x) => (y) { a = Sin(x)  b = Sin(a)  c = Sin(b)  d = Sin(c)  y = Sin(d) }");
  Probe counted;
  counted.last = 3;
  kernel::RunContext run;
  run.cancel = &counted.token;
  std::vector<std::string> applied;
  probe = &counted;
  CHECK_THROWS_AS(set.apply(*model.graph, "", applied, &run), Error);
  CHECK(counted.calls == 3);
  CHECK_FALSE(set.apply(*model.graph, "", applied));
  CHECK(counted.calls == 8);
  probe = nullptr;
}
