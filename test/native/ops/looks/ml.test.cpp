// Cancellation reaches into classical models: trees, vectors, labels, maps.

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

Tensor rows(std::int64_t count, std::int64_t columns = 2) { return repeated(DType::Float32, {count, columns}, 0.5); }
Tensor texts(std::int64_t count) {
  const Tensor out = Tensor::make(DType::String, {count});
  for (std::string& each : out.mutable_span<std::string>()) each = "k";
  return out;
}

#define INFERNODE_TREE                                                                                          \
  "nodes_treeids=[0,0,0,0,0], nodes_nodeids=[0,1,2,3,4], nodes_featureids=[0,1,0,0,0], "                        \
  "nodes_values=[0.1,0.1,0.0,0.0,0.0], nodes_modes=[\"BRANCH_LEQ\",\"BRANCH_LEQ\",\"LEAF\",\"LEAF\",\"LEAF\"]," \
  " nodes_truenodeids=[1,3,0,0,0], nodes_falsenodeids=[2,4,0,0,0], "

constexpr double kRows = 1 << 16;

/// A support vector machine whose `classes` get probabilities of each pair's.
std::string coupled(std::int64_t classes) {
  const auto list = [](std::int64_t count, std::string_view each) {
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += cat(i == 0 ? "[" : ",", each);
    return out + "]";
  };
  const std::int64_t pairs = classes * (classes - 1) / 2;
  return cat(
      "(float[N,2] X) => (Y, Z) { Y, Z = ai.onnx.ml.SVMClassifier<kernel_type=\"RBF\", "
      "kernel_params=[0.5,0.0,3.0], support_vectors=",
      list(classes * 2, "0.5"), ", coefficients=", list(classes * (classes - 1), "1.0"),
      ", vectors_per_class=", list(classes, "1"), ", rho=", list(pairs, "0.5"), ", prob_a=", list(pairs, "-1.5"),
      ", prob_b=", list(pairs, "0.5"), ", classlabels_ints=", list(classes, "1"), ">(X) }");
}
constexpr std::int64_t kClasses = 500;
const std::string kCoupled = coupled(kClasses);

const LongOp kModels[] = {
    {"(float[N,2] X) => (float[N,T] Y) { Y = ai.onnx.ml.TreeEnsembleRegressor<" INFERNODE_TREE
     "target_treeids=[0,0,0], target_nodeids=[2,3,4], target_ids=[0,0,0], target_weights=[0.2,0.3,0.9], "
     "n_targets=1>(X) "
     "}",
     17, [] { return values({rows(2000000)}); }, 2e6, 16 * kRows},
    {"(float[N,2] X) => (Y, Z) { Y, Z = ai.onnx.ml.TreeEnsembleClassifier<" INFERNODE_TREE
     "class_treeids=[0,0,0], class_nodeids=[2,3,4], class_ids=[0,1,0], class_weights=[0.2,0.3,0.9], "
     "classlabels_int64s=[5,9]>(X) }",
     17, [] { return values({rows(2000000)}); }, 2e6, 16 * kRows},
    {"(float[N,1] X) => (float[N,T] Y) { Y = ai.onnx.ml.TreeEnsemble<n_targets=1, tree_roots=[0], nodes_modes=uint8[1] "
     "{0}, nodes_splits=float[1] {1.0}, nodes_featureids=[0], nodes_truenodeids=[0], nodes_trueleafs=[1], "
     "nodes_falsenodeids=[1], nodes_falseleafs=[1], leaf_targetids=[0,0], leaf_weights=float[2] {1.0, -1.0}>(X) }",
     17, [] { return values({rows(2000000, 1)}); }, 2e6, 16 * kRows},
    {"(float[N,2] X) => (float[N,1] Y) { Y = ai.onnx.ml.SVMRegressor<kernel_type=\"RBF\", kernel_params=[0.5,0.0,3.0], "
     "support_vectors=[0.1,0.2,0.3,0.4], coefficients=[1.0,2.0], n_supports=2, rho=[0.0]>(X) }",
     17, [] { return values({rows(1000000)}); }, 1e6, 4 * kRows},
    {"(float[N,2] X) => (Y, Z) { Y, Z = ai.onnx.ml.SVMClassifier<kernel_type=\"RBF\", kernel_params=[0.5,0.0,3.0], "
     "support_vectors=[0.1,0.2,0.3,0.4,-0.5,0.6], coefficients=[0.4,-0.6,0.3,0.1,0.2,0.9], vectors_per_class=[1,1,1], "
     "rho=[0.05,0.1,-0.2], classlabels_ints=[5,9,7]>(X) }",
     17, [] { return values({rows(1000000)}); }, 1e6, 4 * kRows},
    {kCoupled.c_str(), 17, [] { return values({rows(1)}); }, static_cast<double>(kClasses* kClasses), kRows},
    {"(float[N,2] X) => (Y, Z) { Y, Z = ai.onnx.ml.LinearClassifier<coefficients=[0.3,0.1], intercepts=[0.05], "
     "classlabels_ints=[5,9], post_transform=\"LOGISTIC\">(X) }",
     17, [] { return values({rows(2000000)}); }, 2e6, 4 * kRows},
    {"(float[N,2] X) => (Y) { Y = ai.onnx.ml.Scaler<scale=[2.0,3.0], offset=[1.0,0.0]>(X) }", 17,
     [] { return values({rows(4000000)}); }, 8e6, 64 * kRows},
    {"(float[N,2] X) => (Y) { Y = ai.onnx.ml.Imputer<imputed_value_floats=[7.0,8.0], replaced_value_float=0.5>(X) }",
     17, [] { return values({rows(4000000)}); }, 8e6, 64 * kRows},
    {"(float[N,2] X, int64[K] I) => (Y) { Y = ai.onnx.ml.ArrayFeatureExtractor(X, I) }", 17,
     [] {
       return values({rows(4000000), i64({1}, {1})});
     },
     4e6, 64 * kRows},
    {"(string[N] X) => (Y) { Y = ai.onnx.ml.CategoryMapper<cats_int64s=[4], cats_strings=[\"k\"]>(X) }", 17,
     [] { return values({texts(1000000)}); }, 1e6, kRows},
    {"(float[N,2] X) => (Y) { Y = ai.onnx.ml.ZipMap<classlabels_int64s=[7,-1]>(X) }", 17,
     [] { return values({rows(200000)}); }, 2e5, kRows / 8},
    {"(int64[N] X) => (float[M] Y) { Y = TfIdfVectorizer<max_gram_length=2, max_skip_count=1, min_gram_length=1, "
     "mode=\"TF\", ngram_counts=[0,1], ngram_indexes=[0,1], pool_int64s=[1,1,1]>(X) }",
     17, [] { return values({repeated(DType::Int64, {2000000}, 1)}); }, 2e6, 4 * kRows},
};

#undef INFERNODE_TREE

const CountedGraphs kGraphs{std::span<const LongOp>(kModels)};

}  // namespace

TEST_CASE("classical models of many rows look whether their run is to end") { check_looks(kModels); }
