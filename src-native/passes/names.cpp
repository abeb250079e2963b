#include "passes/names.h"

namespace infernode::passes {

namespace {

struct Alias {
  std::string_view theirs;  ///< the name that onnxruntime's option takes, or the name of the class
  const char* ours;
};

constexpr Alias kAliases[] = {
    {"CastElimination", "EliminateNoops"},
    {"ConvBNFusion", "ConvBatchNormFusion"},
    {"EliminateDropout", "EliminateNoops"},
    {"EliminateIdentity", "EliminateNoops"},
    {"EliminateSlice", "EliminateNoops"},
    {"ExpandElimination", "EliminateNoops"},
    {"GeluFusionL1", "GeluFusion"},
    {"GeluFusionL2", "GeluFusion"},
    {"GemmActivationFusion", "MatMulActivationFusion"},
    {"LayerNormFusionL1", "LayerNormFusion"},
    {"LayerNormFusionL2", "LayerNormFusion"},
    {"MatMul_BatchNormalization_Fusion", "MatmulBNFusion"},
    {"NoopElimination", "EliminateNoops"},
    {"Pad_Fusion", "PadFusion"},
    {"PreShapeNodeElimination", "JoinChains"},
    {"QDQSelectorActionTransformer", "DQMatMulNBitsFusion"},
    {"QDQSelectorActionTransformer", "DequantizeMatMulFusion"},
    {"QDQSelectorActionTransformer", "GatherDequantizeFusion"},
    {"RemoveDuplicateCastTransformer", "JoinChains"},
};

}  // namespace

void add_optimizer(std::set<std::string, std::less<>>& names, std::string_view name) {
  names.emplace(name);
  for (const Alias& alias : kAliases) {
    if (alias.theirs == name) names.emplace(alias.ours);
  }
}

}  // namespace infernode::passes
