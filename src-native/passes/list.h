#pragma once
// Every pass, in the order in which they run. docs/optimizer.md has the table that a test writes of it
// (test/native/passes/list.test.cpp).

#include <vector>

#include "passes/pattern_passes.h"

namespace infernode::passes {

/// In each round of level basic, before the others, where options.enabled has them.
inline constexpr Pass kAsked[] = {
    {"CastChainElimination", 1, eliminate_cast_chains, "eliminate_cast_chains.cpp",
     "makes a chain of Casts one; only where it is enabled"},
    {"DQMatMulNBitsFusion", 1, fuse_dequantized_products, "quantization/fuse_dequantized_products.cpp",
     "as at level 2, where it is enabled"},
};

/// In each round of level basic, in the graph and in every subgraph.
inline constexpr Pass kRounds[] = {
    {"EliminateNoops", 1, remove_noops, "remove_noops.cpp",
     "drops Identity, Dropout at inference, casts to the same type, x + 0, x * 1, and Slices, views and Transposes "
     "that change nothing",
     "a graph output would be an input or a constant"},
    {"ConstantFolding", 1, fold_constants, "folding/fold_constants.cpp",
     "computes nodes of constants, dims that are known, loops over constants (`evaluate_bodies.cpp`)",
     "a random operator; the result is large and far larger than its inputs; the model's budget of bytes or time is "
     "spent"},
    {"ConstantFolding", 1, inline_branches, "folding/inline_branches.cpp",
     "puts the branch in the place of an If whose condition is known"},
    {"ConstantSharing", 1, share_constants, "folding/share_constants.cpp", "makes small equal constants one"},
    {"CommonSubexpressionElimination", 1, merge_common_subexpressions, "merge_common_subexpressions.cpp",
     "makes nodes that compute the same one", "a random operator"},
    {"JoinChains", 1, join_chains, "join_chains.cpp", "makes two Transposes, views or Casts in a row one",
     "a cast between them loses something; a view's dims hang on what it reads"},
    {"ReshapeFusion", 1, fuse_reshapes, "fuse_reshapes.cpp",
     "gives Reshapes whose dims are computed from the input's own constant dims; makes two views one",
     "more than one dim would have to be -1"},
    {"SliceConcatToSpaceToDepthFusion", 1, fuse_slices_to_depth, "fuse_slices_to_depth.cpp",
     "makes the four Slices of every second row and column and their Concat a SpaceToDepth; another order of the four "
     "goes into the Conv behind it, or a Gather",
     "other steps or starts"},
    {"QDQPropagationTransformer", 1, propagate_quantization, "quantization/propagate_quantization.cpp",
     "moves elements, or takes the largest, before they are dequantized and after they were quantized",
     "the node computes; scales differ"},
    {"TransposeOptimizer", 1, optimize_transposes, "transposes/optimize_transposes.cpp", "see below"},
    {"DeadNodeElimination", 1, remove_dead_nodes, "remove_dead_nodes.cpp", "drops nodes that nobody reads"},
};

/// Once, when nothing else of level basic finds anything to do and before DequantizeLinears of constants are folded.
inline constexpr Pass kWeights{
    "WeightBiasQuantization",
    1,
    quantize_weights,
    "quantization/quantize_weights.cpp",
    "rounds float weights of Conv, ConvTranspose and Gemm to 256 steps, and their bias to multiples of the input's "
    "step times the weights', where the node stands between a DequantizeLinear and a QuantizeLinear (what cuts off, "
    "and MaxPools, may come before that); a bias beside weights that are codes too",
    "another reader; the input has more than one scale, or one that is not constant; a bias that is computed, of other "
    "rank or out of 32 bits' range; NaN or infinite weights"};
/// Once after the rounds of level basic, where what it adds is not folded again.
inline constexpr Pass kWhereCodes{
    "WhereDummyDq",
    1,
    quantize_where_constants,
    "quantization/quantize_where_constants.cpp",
    "writes the number that a Where takes in the place of a dequantized element as a code and a DequantizeLinear, so "
    "that the Where can run on codes",
    "what comes out does not all become codes of the same type; the number is no scalar, NaN, infinite or denormal; a "
    "scale or zero point is not constant"};
/// For a file that others read.
inline constexpr Pass kSeparate{"EnsureUniqueDQForNodeUnit",
                                1,
                                separate_dequantizers,
                                "quantization/separate_dequantizers.cpp",
                                "gives each reader of what is dequantized a DequantizeLinear of its own",
                                "the reader is the body of a node"};

/// For the CPU's nodes, at the beginning of level extended.
inline constexpr Pass kExtended[] = {
    {"DQMatMulNBitsFusion", 2, fuse_dequantized_products, "quantization/fuse_dequantized_products.cpp",
     "makes products with weights of few bits `MatMulNBits`"},
    {"QDQSelectorActionTransformer", 2, fuse_quantized_units, "quantization/fuse_quantized_units.cpp",
     "makes what stands between DequantizeLinears and a QuantizeLinear the operator that computes on codes: see below",
     "see below; other providers take part in the session"},
    {"ConvDftMerge", 2, merge_transforms, "merge_transforms.cpp",
     "makes two convolutions of one input, by the cosines and by the sines of a Fourier transform, one and a Split",
     "attributes or windows differ; a bias"},
};
/// What makes operators on codes of nodes between codes.
inline constexpr const Pass& kUnits = kExtended[1];

/// At the end of level extended, where options.enabled has it.
inline constexpr Pass kCleanup{"QDQFinalCleanupTransformer",
                               2,
                               drop_quantization,
                               "quantization/drop_quantization.cpp",
                               "drops QuantizeLinears and the DequantizeLinears that undo them, at the end; only where "
                               "`session.enable_quant_qdq_cleanup` asks for it",
                               "the codes have another reader; scale or zero point differ or are not one constant; a "
                               "node beside the pair has codes on "
                               "its other side too, or is a product behind it"};
/// Last of all levels but layout.
inline constexpr Pass kDequantizers{"ConstantFolding",
                                    1,
                                    fold_dequantizers,
                                    "folding/fold_constants.cpp",
                                    "computes what is left of DequantizeLinears of constants, after all other passes",
                                    "codes of less than 8 bits, unless they are few"};

/// For the CPU's nodes, at level layout.
inline constexpr Pass kLayout[] = {
    {"NchwcTransformer", 3, block_channels, "block_channels.cpp",
     "has convolutions and what stands between them work on channels in blocks of 16: see below", "see below"},
    {"NchwcTransformer", 3, round_blocks, "round_blocks.cpp", "keeps blocks that all their readers take so as bfloat16",
     "products are not of bfloat16 numbers"},
};

/// All of them in order.
inline std::vector<Pass> listed_passes() {
  std::vector<Pass> all(std::begin(kAsked), std::end(kAsked));
  all.push_back(kWeights);
  all.insert(all.end(), std::begin(kRounds), std::end(kRounds));
  for (const Pass& pass : {kWhereCodes, kSeparate}) all.push_back(pass);
  all.insert(all.end(), std::begin(kExtended), std::end(kExtended));
  for (const Pass& pass : {kCleanup, kDequantizers}) all.push_back(pass);
  all.insert(all.end(), std::begin(kLayout), std::end(kLayout));
  return all;
}

}  // namespace infernode::passes
