// Batch normalization at inference over columns of a product, as they are or moved to the channels' place: it scales
// the weights' columns and adds a row.

#include <algorithm>
#include <cmath>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

using tensor::DType;
using tensor::Tensor;

/// The weights are a matrix [K, N] with statistics for each of the N columns.
bool fits(const Match& match) {
  const graph::Node& norm = match.last();
  if (norm.attributes.get_int("training_mode", 0) != 0 || norm.attributes.get_int("spatial", 1) == 0) return false;
  // Before this version an attribute says how Add broadcasts; BatchNormalization came to its five inputs there too.
  if (norm.opset < 9 || !match.type("x").shape) return false;
  for (std::size_t o = 1; o < norm.outputs.size(); ++o) {
    if (norm.outputs[o] != graph::kNoValue) return false;
  }
  const Tensor* w = match.constant("c_w");
  if (w == nullptr || w->dtype() != DType::Float32 || w->rank() != 2) return false;
  for (const char* name : {"c_scale", "c_shift", "c_mean", "c_var"}) {
    const Tensor* t = match.constant(name);
    if (t == nullptr || t->dtype() != DType::Float32 || t->numel() != w->dim(1)) return false;
  }
  return true;
}

bool guard(const Match& match) { return rank_of(match.type("x")) == 2u && fits(match); }

/// The transpose makes the columns the second axis.
bool guard_moved(const Match& match) {
  const std::size_t rank = rank_of(match.type("x")).value_or(0);
  const auto perm = match.maker("m").attributes.get_ints("perm");
  return rank >= 3 && perm.size() == rank && perm[1] == static_cast<std::int64_t>(rank) - 1 && fits(match);
}

/// A reshape that only adds dims of 1 after the columns: [M, N, 1, ..].
bool keeps_columns(const Match& match) {
  const auto& shape = match.type("r").shape;
  if (!shape || shape->size() < 2 || !(*shape)[1].is(match.constant("c_w")->dim(1))) return false;
  return std::all_of(shape->begin() + 2, shape->end(), [](const graph::Dim& dim) { return dim.is(1); });
}
bool guard_reshaped(const Match& match) { return guard(match) && keeps_columns(match); }

/// Rows are spread over several dims, and the columns, still last, moved to the channels' place.
bool guard_reshaped_moved(const Match& match) {
  const auto& shape = match.type("r").shape;
  const auto perm = match.maker("m").attributes.get_ints("perm");
  return shape && shape->size() >= 3 && perm.size() == shape->size() &&
         perm[1] == static_cast<std::int64_t>(shape->size()) - 1 && fits(match) &&
         shape->back().is(match.constant("c_w")->dim(1)) && rank_of(match.type("t")).value_or(0) >= 2;
}

/// Adds the product with scaled weights and the row; the sum is `out`, or a value of its own.
graph::ValueId add_affine(const Match& match, graph::GraphPatch& patch, graph::ValueId out) {
  const Tensor& w = *match.constant("c_w");
  const auto columns = static_cast<std::size_t>(w.dim(1)), rows = static_cast<std::size_t>(w.dim(0));
  const float epsilon = match.last().attributes.get_float("epsilon", 1e-5f);
  const float *scale = match.constant("c_scale")->data<float>(), *shift = match.constant("c_shift")->data<float>();
  const float *mean = match.constant("c_mean")->data<float>(), *var = match.constant("c_var")->data<float>();
  const Tensor weights = w.clone();
  const Tensor row = Tensor::make(DType::Float32, tensor::Shape{w.dim(1)});
  for (std::size_t n = 0; n < columns; ++n) {
    const float factor = scale[n] / std::sqrt(var[n] + epsilon);
    for (std::size_t k = 0; k < rows; ++k) weights.mutable_data<float>()[k * columns + n] *= factor;
    row.mutable_data<float>()[n] = shift[n] - mean[n] * factor;
  }
  const graph::ValueId product = match.value("t");
  const std::string name = match.graph().value(match.value("c_w")).name;
  graph::Node matmul = match.maker("t");
  matmul.inputs[1] = patch.add_constant(name + "_fused", weights);
  patch.add_node(std::move(matmul));
  if (out == graph::kNoValue) out = patch.add_value(match.graph().value(product).name + "_sum", match.type("t"));
  graph::Node add = make_node(match, "", "Add", {product, patch.add_constant(name + "_bias_fused", row)});
  add.outputs = {out};
  patch.add_node(std::move(add), match.nodes());
  return out;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  return {add_affine(match, patch, match.value("y"))};
}

std::vector<graph::ValueId> replace_moved(const Match& match, graph::GraphPatch& patch) {
  graph::Node transpose = match.maker("m");
  transpose.inputs = {add_affine(match, patch, graph::kNoValue)};
  transpose.outputs = {match.value("y")};
  patch.add_node(std::move(transpose));
  return {match.value("y")};
}

/// The reshape, and where there is one the transpose after it, follow the sum.
std::vector<graph::ValueId> replace_reshaped(const Match& match, graph::GraphPatch& patch) {
  graph::Node reshape = match.maker("r");
  reshape.inputs[0] = add_affine(match, patch, graph::kNoValue);
  reshape.outputs = {match.value("y")};
  patch.add_node(std::move(reshape));
  return {match.value("y")};
}
std::vector<graph::ValueId> replace_reshaped_moved(const Match& match, graph::GraphPatch& patch) {
  graph::Node reshape = match.maker("r"), transpose = match.maker("m");
  reshape.inputs[0] = add_affine(match, patch, graph::kNoValue);
  transpose.outputs = {match.value("y")};
  patch.add_node(std::move(reshape));
  patch.add_node(std::move(transpose));
  return {match.value("y")};
}

}  // namespace

void register_matmul_batch_norm(FusionRegistry& registry) {
  registry.describe({"MatmulBNFusion"}, "BatchNormalization goes into the product before it", "training");
  registry.add({"MatmulBNFusion", 1,
                "(x, c_w, c_scale, c_shift, c_mean, c_var) => (y) { t = MatMul(x, c_w)  "
                "y = BatchNormalization(t, c_scale, c_shift, c_mean, c_var) }",
                guard, replace});
  registry.add({"MatmulBNFusion", 1,
                "(x, c_w, c_scale, c_shift, c_mean, c_var) => (y) { t = MatMul(x, c_w)  m = Transpose(t)  "
                "y = BatchNormalization(m, c_scale, c_shift, c_mean, c_var) }",
                guard_moved, replace_moved});
  registry.add({"MatmulBNFusion", 1,
                "(x, d, c_w, c_scale, c_shift, c_mean, c_var) => (y) { t = MatMul(x, c_w)  r = Reshape(t, d)  "
                "y = BatchNormalization(r, c_scale, c_shift, c_mean, c_var) }",
                guard_reshaped, replace_reshaped});
  registry.add({"MatmulBNFusion", 1,
                "(x, d, c_w, c_scale, c_shift, c_mean, c_var) => (y) { t = MatMul(x, c_w)  r = Reshape(t, d)  "
                "m = Transpose(r)  y = BatchNormalization(m, c_scale, c_shift, c_mean, c_var) }",
                guard_reshaped_moved, replace_reshaped_moved});
}

}  // namespace infernode::fusions
