#include <set>

#include "transform/transform_test.h"

using namespace infernode;
using namespace infernode::test;
using transform::Report;
using transform::Setting;
using transform::Settings;

namespace {

/// 4 bits in blocks of 16.
Settings settings(std::initializer_list<std::pair<const std::string, Setting>> changes = {}) {
  return changed({{"bits", 4.0},
                  {"blockSize", 16.0},
                  {"isSymmetric", false},
                  {"accuracyLevel", 0.0},
                  {"opTypesToQuantize", Texts{"MatMul", "Gemm"}},
                  {"nodesToExclude", Texts{}},
                  {"nodesToInclude", Texts{}}},
                 changes);
}

Report quantize(graph::Model& model, const Settings& given = settings()) {
  return transform_model("quantizeWeights", model, given);
}

std::string check(std::string_view text, const Weights& weights, const Settings& given = settings(),
                  double tolerance = 1e-5) {
  return check_transformed("quantizeWeights", text, weights, given, tolerance);
}

constexpr std::string_view kProduct = "g (float[2,48] x, w) => (y) { [\"p\"] y = MatMul(x, w) }";

}  // namespace

TEST_CASE("a product by a weight reads its codes") {
  const Weights weights{{"w", quarters({48, 6})}};
  const std::string nbits = "y = com.microsoft.MatMulNBits <K = 48, N = 6, ";
  CHECK(check(kProduct, weights) == nbits + "bits = 4, block_size = 16> (x, w_Q4, w_scales, w_zero_points)");
  CHECK(check(kProduct, weights, settings({{"isSymmetric", true}, {"accuracyLevel", 4.0}})) ==
        nbits + "accuracy_level = 4, bits = 4, block_size = 16> (x, w_Q4, w_scales)");
  for (const double block : {32.0, 256.0}) check(kProduct, weights, settings({{"blockSize", block}}), 0.1);
  check(kProduct, weights, settings({{"bits", 8.0}, {"blockSize", 64.0}}), 0.01);
  check(kProduct, {{"w", noise(DType::Float32, {48, 6}, 2)}}, settings({{"bits", 8.0}, {"isSymmetric", true}}), 0.02);
}

TEST_CASE("a Gemm's weight may be transposed, and its C is the product's bias or is added") {
  const Weights weights{{"w", quarters({48, 6})},
                        {"t", quarters({6, 48})},
                        {"c", noise(DType::Float32, {6}, 1)},
                        {"d", noise(DType::Float32, {2, 1}, 1)}};
  const std::string made = "com.microsoft.MatMulNBits <K = 48, N = 6, bits = 4, block_size = 16> (x, ";
  CHECK(check("g (float[2,48] x, w) => (y) { y = Gemm(x, w) }", weights) ==
        "y = " + made + "w_Q4, w_scales, w_zero_points)");
  CHECK(check("g (float[2,48] x, t, c) => (y) { y = Gemm <transB = 1>(x, t, c) }", weights,
              settings({{"isSymmetric", true}})) == "y = " + made + "t_Q4, t_scales, \"\", \"\", c)");
  CHECK(check("g (float[2,48] x, t, d) => (y) { y = Gemm <transB = 1>(x, t, d) }", weights) ==
        "y_product = " + made + "t_Q4, t_scales, t_zero_points)\ny = Add (y_product, d)");
}

TEST_CASE("weights that several nodes read have codes once") {
  const Weights weights{{"w", quarters({48, 48})}};
  check("g (float[2,48] x, w) => (y) { a = MatMul(x, w) b = Gemm <transB = 1>(a, w) y = MatMul(b, w) }", weights);
  graph::Model model = model_with(
      "g (float[2,48] x, w, bool c) => (y) { a = MatMul(x, w) y = If <then_branch = t () => (p) { p = MatMul(a, w) }, "
      "else_branch = e () => (q) { q = Neg(a) }>(c) }",
      weights);
  graph::adopt_constants(*model.graph);
  quantize(model);
  graph::capture_constants(*model.graph);
  graph::verify(*model.graph);
  std::size_t constants = 0;
  for (const graph::ValueInfo& value : model.graph->values()) constants += value.has_constant() ? 1 : 0;
  CHECK(constants == 3);  // codes, scales and zero points, which the branch captures
  CHECK(nodes(*model.graph).find("p = com.microsoft.MatMulNBits") != std::string::npos);
}

TEST_CASE("tables of embeddings are quantized where that is asked for") {
  const std::string text = "g (int64[2,3] i, w) => (y, z) { [\"e\"] y = Gather(w, i) z = MatMul(y, w) }";
  const Weights weights{{"w", quarters({48, 48})}};
  const Settings both = settings({{"opTypesToQuantize", Texts{"MatMul", "Gather"}}});
  const std::string zeros = check(text, weights, both);
  CHECK(zeros.find("y = com.microsoft.GatherBlockQuantized <block_size = 16, gather_axis = 0, quantize_axis = 1> (") !=
        std::string::npos);
  check(text, weights, changed(both, {{"isSymmetric", true}}));
  check(text, weights, changed(both, {{"bits", 8.0}}), 0.01);
  check(text, weights, changed(both, {{"bits", 8.0}, {"isSymmetric", true}}), 0.01);
  CHECK(check(text, weights).find("y = Gather (w, i)") != std::string::npos);
}

TEST_CASE("what cannot be quantized stays, and the report says why") {
  graph::Model model = model_with(R"(g (float[2,48] x, float[48,48] v, float[2,48,48] z, w, c, m, o) => (y, q) {
      ["product"] a = MatMul(x, w) ["free"] b = MatMul(a, v) ["alpha"] d = Gemm <alpha = 0.5>(b, w)
      ["out"] e = MatMul(d, w) ["batch"] q = MatMul(z, m) ["cast"] y = Gemm <beta = 2.>(e, w, c) })",
                                  {{"w", quarters({48, 48})}, {"c", quarters({48})}, {"m", quarters({2, 48, 48})}});
  const Report report = quantize(model, settings({{"nodesToExclude", Texts{"out"}}}));
  std::map<std::string, std::string> outcomes;
  for (const auto& node : report.nodes) outcomes[node.node] = node.became + node.reason;
  CHECK(outcomes == std::map<std::string, std::string>{{"product", "MatMulNBits"},
                                                       {"free", "its weight is no constant"},
                                                       {"alpha", "its alpha is not 1"},
                                                       {"out", "it is excluded"},
                                                       {"batch", "its weight is no matrix of floats"},
                                                       {"cast", "its beta is not 1"}});
  CHECK(model.graph->find_value("w") != graph::kNoValue);  // which others still read
}

TEST_CASE("only nodes that are included are quantized, and names must be those of nodes") {
  const std::string text = R"(g (float[2,48] x, w) => (y) { ["a"] t = MatMul(x, w) ["b"] y = MatMul(t, w) })";
  const Weights weights{{"w", quarters({48, 48})}};
  const std::string made = check(text, weights, settings({{"nodesToInclude", Texts{"b"}}}));
  CHECK(made.find("t = MatMul (x, w)") != std::string::npos);
  CHECK(made.find("y = com.microsoft.MatMulNBits") != std::string::npos);
  for (const char* list : {"nodesToInclude", "nodesToExclude"}) {
    graph::Model model = model_with(text, weights);
    CHECK_THROWS_WITH_AS(quantize(model, settings({{list, Texts{"c"}}})),
                         cat(list, " names 'c', and the model has no node of this name").c_str(), Error);
  }
}

TEST_CASE("a weight may be the value of a Constant, or an input with a default") {
  CHECK(check("g (float[1,16] x) => (y) { w = Constant <value = float[16,1] "
              "{-2, 1.75, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}>() y = MatMul(x, w) }",
              {})
            .find("Constant") == std::string::npos);
  graph::Model model = model_with(kProduct, {{"w", quarters({48, 6})}});
  graph::Graph& graph = *model.graph;
  graph.add_input(graph.find_value("w"));
  quantize(model);
  CHECK(graph.inputs().size() == 1);
}

TEST_CASE("nothing to quantize, settings that make no sense and odd weights are errors") {
  graph::Model none = model_with("g (float[2] x) => (y) { y = Relu(x) }", {});
  CHECK_THROWS_WITH_AS(quantize(none), doctest::Contains("there is nothing to quantize: no weight"), Error);
  graph::Model model = model_with(kProduct, {{"w", quarters({48, 6})}});
  CHECK_THROWS_WITH_AS(quantize(model, settings({{"bits", 5.0}})), "bits is 5; it may be 4 or 8", Error);
  CHECK_THROWS_WITH_AS(quantize(model, settings({{"blockSize", 24.0}})), "blockSize is 24; it must be a power of two",
                       Error);
  CHECK_THROWS_WITH_AS(quantize(model, settings({{"blockSize", 8.0}})),
                       "the option 'blockSize' must be a whole number from 16 to 256", Error);
  CHECK_THROWS_WITH_AS(quantize(model, Settings()), doctest::Contains("is missing"), Error);
  quantize(model);
  CHECK_THROWS_WITH_AS(quantize(model), doctest::Contains("The model is quantized already: 1 of its nodes are."),
                       Error);
  Tensor odd = quarters({48, 6});
  odd.mutable_span<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  graph::Model broken = model_with(kProduct, {{"w", odd}});
  CHECK_THROWS_WITH_AS(quantize(broken), doctest::Contains("the weight 'w' of MatMul 'p' cannot be quantized"), Error);
  CHECK_THROWS_WITH_AS(transform::find_transformation("quantise"), "there is no transformation 'quantise'", Error);
}

TEST_CASE("progress tells every node, and a cancelled run ends the work") {
  graph::Model model = model_with("g (float[2,48] x, w) => (y) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }",
                                  {{"w", quarters({48, 48})}});
  kernel::CancelToken token;
  kernel::RunContext run;
  run.cancel = &token;
  std::vector<std::pair<std::size_t, std::size_t>> told;
  Report report;
  transform::quantize_weights(
      model, settings(),
      {.run = run,
       .registry = registry(),
       .progress = [&](std::size_t done, std::size_t total) { told.emplace_back(done, total); }},
      report);
  CHECK(told == std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 2}});
  token.cancel();
  graph::Model other = model_with(kProduct, {{"w", quarters({48, 6})}});
  CHECK_THROWS_AS(transform::quantize_weights(other, settings(), {.run = run, .registry = registry()}, report), Error);
}
