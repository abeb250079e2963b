// Optimizers by the names that onnxruntime has for them.
#include "passes/names.h"

#include "fusions/fusion.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
using Names = std::set<std::string, std::less<>>;
Names added(std::string_view name) {
  Names names;
  passes::add_optimizer(names, name);
  return names;
}
/// The operators after level basic, one a line.
std::string without(const std::string& text, std::string_view name) {
  graph::Model model = parse(text);
  passes::run_basic(model, pass_options(1, added(name)));
  return nodes(*model.graph);
}
}  // namespace

TEST_CASE("names of onnxruntime stand for what does the same here") {
  CHECK(added("ConvBNFusion") == Names{"ConvBNFusion", "ConvBatchNormFusion"});
  CHECK(added("CastElimination") == Names{"CastElimination", "EliminateNoops"});
  CHECK(added("GeluFusionL1").contains("GeluFusion"));
  CHECK(added("LayerNormFusionL2").contains("LayerNormFusion"));
  CHECK(added("QDQSelectorActionTransformer").size() == 4);
  for (const char* same : {"ConstantFolding", "MatMulAddFusion", "nothing", ""}) CHECK(added(same) == Names{same});
  Names both = added("Pad_Fusion");
  passes::add_optimizer(both, "PadFusion");
  CHECK(both == Names{"PadFusion", "Pad_Fusion"});
}

TEST_CASE("a name of onnxruntime switches off what it stands for") {
  const std::string pad =
      "(float[1,1,4,4] x, float[1,1,3,3] w) => (y) <int64[8] p = {0,0,1,1,0,0,1,1}> { a = Pad(x, p)  y = Conv(a, w) }";
  CHECK(without(pad, "").find("= Pad ") == std::string::npos);
  CHECK(without(pad, "Pad_Fusion").find("= Pad ") != std::string::npos);
  const std::string same = "(float[2] x) => (y) { a = Identity(x)  y = Exp(a) }";
  CHECK(without(same, "") == "y = Exp (x)");
  CHECK(without(same, "EliminateIdentity") == "a = Identity (x)\ny = Exp (a)");
}
