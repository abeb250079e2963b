#include "provider/partitioner.h"

#include <set>

#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;
using graph::NodeId;
using provider::Claim;
using provider::Placement;

namespace {

/// Claims the operators it is told to, on a device of its own, and computes nothing.
class Chooser final : public provider::Provider {
 public:
  Chooser(std::string name, std::set<std::string, std::less<>> ops, tensor::Device device, bool compiles = true)
      : name_(std::move(name)), ops_(std::move(ops)), device_(device), compiles_(compiles) {}
  std::string_view name() const override { return name_; }
  tensor::Device device() const override { return device_; }
  std::vector<Claim> claim(const provider::GraphView& view) override {
    Claim claim{.nodes = {}, .compile = compiles_};
    for (const NodeId id : view.nodes) {
      if (ops_.contains(view.graph.node(id).op_type)) claim.nodes.push_back(id);
    }
    return {claim};
  }
  std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph>,
                                          microkernels::Float32Precision) override {
    return nullptr;
  }
  tensor::Allocator& allocator() override { return tensor::host_allocator(); }
  std::unique_ptr<provider::Stream> make_stream() override { return nullptr; }
  void copy(const Tensor&, const Tensor&, provider::Stream&) override {}

 private:
  std::string name_;
  std::set<std::string, std::less<>> ops_;
  tensor::Device device_;
  bool compiles_;
};

std::shared_ptr<provider::Provider> chooser(std::string name, std::set<std::string, std::less<>> ops,
                                            bool compiles = true) {
  return std::make_shared<Chooser>(std::move(name), std::move(ops), tensor::Device{"null", 0}, compiles);
}

std::vector<Placement> partition(graph::Model& model, const std::vector<std::shared_ptr<provider::Provider>>& providers,
                                 bool forbid = false) {
  auto placements = provider::partition(*model.graph, providers, registry(), {.forbid_cpu_fallback = forbid});
  graph::verify(*model.graph);
  (void)model.graph->topological_order();  // throws where parts depend on each other
  return placements;
}

/// Op types of the live nodes, each compiled one as its body's: "Neg [Exp Abs] CopyToHost".
std::string shape_of(const graph::Graph& graph) {
  std::string text;
  for (const NodeId id : graph.topological_order()) {
    const graph::Node& node = graph.node(id);
    text += text.empty() || text.back() == '[' ? "" : " ";
    if (node.op_type == provider::kCompiled) {
      text += "[" + shape_of(*node.attributes.get_graph("body")) + "]";
    } else {
      text += node.op_type;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("without providers all is the CPU's and nothing moves") {
  graph::Model model = parse("(float[2] x) => (y) { [\"n\"] a = Neg(x)  y = Exp(a) }");
  const std::string before = nodes(*model.graph);
  const auto placements = partition(model, {});
  CHECK(nodes(*model.graph) == before);
  REQUIRE(placements.size() == 2);
  CHECK(placements[0].node == "n");
  CHECK(placements[0].provider == "cpu");
  CHECK(placements[0].reason == "the only provider");
}

TEST_CASE("a claimed run of nodes becomes one, with copies around it") {
  graph::Model model = parse("(float[2] x) => (y) { a = Neg(x)  b = Exp(a)  y = Abs(b) }");
  partition(model, {chooser("p", {"Neg", "Exp"})});
  CHECK(shape_of(*model.graph) == "CopyToDevice [Neg Exp] CopyToHost Abs");
}

TEST_CASE("earlier providers choose first") {
  graph::Model model = parse("(float[2] x) => (y) { a = Neg(x)  y = Exp(a) }");
  const auto placements = partition(model, {chooser("p", {"Exp"}), chooser("q", {"Exp", "Neg"})});
  CHECK(placements[0].provider == "q");
  CHECK(placements[1].provider == "p");
}

TEST_CASE("a claim that leaves the set and comes back is cut") {
  graph::Model model = parse("(float[2] x) => (y) { a = Neg(x)  b = Exp(a)  c = Abs(a)  y = Add(b, c) }");
  partition(model, {chooser("p", {"Neg", "Exp", "Add"})});
  CHECK(shape_of(*model.graph) == "CopyToDevice [Neg Exp] CopyToHost Abs CopyToDevice [Add] CopyToHost");
}

TEST_CASE("parts of two providers never wait for each other") {
  // p1 -> q1 and q2 -> p2: as one part each, p and q would form a cycle.
  graph::Model model = parse("(float[2] x) => (y, z) { p1 = Neg(x)  y = Exp(p1)  q2 = Exp(x)  z = Neg(q2) }");
  partition(model, {chooser("p", {"Neg"}), chooser("q", {"Exp"})});
  CHECK(model.graph->topological_order().size() > 3);
}

TEST_CASE("a value crosses once for each direction, whoever reads it") {
  graph::Model model = parse("(float[2] x) => (y, z, a) { a = Neg(x)  y = Exp(a)  z = Abs(a)  b = Neg(x) }");
  partition(model, {chooser("p", {"Neg"}, false)});
  const std::string text = shape_of(*model.graph);
  std::size_t to = 0, from = 0;
  for (std::size_t at = text.find("CopyToDevice"); at != std::string::npos; at = text.find("CopyToDevice", at + 1))
    ++to;
  for (std::size_t at = text.find("CopyToHost"); at != std::string::npos; at = text.find("CopyToHost", at + 1)) ++from;
  CHECK(to == 1);
  CHECK(from == 1);
}

TEST_CASE("graph inputs and outputs keep their names and stay on the host") {
  graph::Model model = parse("(float[2] x) => (y) { y = Neg(x) }");
  partition(model, {chooser("p", {"Neg"})});
  CHECK(model.graph->value(model.graph->inputs()[0]).name == "x");
  const graph::ValueInfo& y = model.graph->value(model.graph->outputs()[0]);
  CHECK(y.name == "y");
  CHECK(model.graph->node(y.producer).op_type == provider::kCopyToHost);
}

TEST_CASE("constants go along with what is compiled") {
  graph::Model model =
      parse("(float[2] x, float[2] fed = {5, 6}) => (y) <float[2] k = {1, 2}> { a = Add(x, k)  y = Add(a, fed) }");
  partition(model, {chooser("p", {"Add"})});
  const graph::Node* compiled = nullptr;
  for (const NodeId id : model.graph->topological_order()) {
    if (model.graph->node(id).op_type == provider::kCompiled) compiled = &model.graph->node(id);
  }
  REQUIRE(compiled != nullptr);
  CHECK(compiled->inputs.size() == 2);  // x and fed, which may be overridden
  const auto body = compiled->attributes.get_graph("body");
  CHECK(body->value(body->find_value("k")).has_constant());
}

TEST_CASE("a captured value is brought to the host for the body that reads it") {
  graph::Model model = parse(
      "(bool c, float[2] x) => (y) { a = Neg(x)  y = If<then_branch = t () => (u) { u = Exp(a) }, "
      "else_branch = e () => (v) { v = Neg(a) }>(c) }");
  const auto placements = partition(model, {chooser("p", {"Neg", "If"})});
  CHECK(shape_of(*model.graph) == "CopyToDevice [Neg] CopyToHost If");
  CHECK(placements[1].reason == "control flow runs on the CPU");
}

TEST_CASE("forbidden fallback lists every node that is left") {
  graph::Model model = parse("(float[2] x) => (y) { [\"n\"] a = Neg(x)  [\"e\"] b = Exp(a)  y = Abs(b) }");
  try {
    partition(model, {chooser("p", {"Neg"})}, true);
    FAIL("it was partitioned");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::ProviderUnavailable);
    CHECK(error.context().details == std::vector<std::string>{"Exp 'e'", "Abs producing 'y'"});
  }
}
