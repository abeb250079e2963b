#include "ops/op_test.h"

namespace infernode::test {
namespace {

/// x0 <= 0.1 ? (x1 <= 0.1 ? leaf 3 : leaf 4) : leaf 2
const std::string kTree =
    "nodes_treeids=[0,0,0,0,0], nodes_nodeids=[0,1,2,3,4], nodes_featureids=[0,1,0,0,0], "
    "nodes_values=[0.1,0.1,0.0,0.0,0.0], nodes_modes=[\"BRANCH_LEQ\",\"BRANCH_LEQ\",\"LEAF\",\"LEAF\",\"LEAF\"], "
    "nodes_truenodeids=[1,3,0,0,0], nodes_falsenodeids=[2,4,0,0,0]";

Tensor rows() { return f32({4, 2}, {1, 2, -1, 0.5f, 0, 0, 0.3f, -0.2f}); }

std::string regressor(const std::string& attributes, const std::string& type = "float") {
  return cat("(", type, "[N,2] X) => (float[N,T] Y) { Y = ai.onnx.ml.TreeEnsembleRegressor<", attributes, ">(X) }");
}

std::string classifier(const std::string& attributes, const std::string& label = "int64") {
  return cat("(float[N,2] X) => (", label, "[N] Y, float[N,C] Z) { Y, Z = ai.onnx.ml.TreeEnsembleClassifier<", kTree,
             ", ", attributes, ">(X) }");
}

TEST_CASE("TreeEnsembleRegressor sums the leaves that its trees reach") {
  const std::string one =
      kTree + ", target_treeids=[0,0,0], target_nodeids=[2,3,4], target_ids=[0,0,0], target_weights=[0.2,0.3,0.9]";
  check_op(regressor(one + ", n_targets=1, base_values=[0.05]"), 15, {rows()},
           {f32({4, 1}, {0.25f, 0.95f, 0.35f, 0.25f})});
  check_op(regressor(one + ", n_targets=1", "double"), 15, {f64({1, 2}, {0, 0.5})}, {f32({1, 1}, {0.9f})});
  check_op(regressor(one + ", n_targets=1", "int64"), 15, {i64({2, 2}, {1, 0, 0, 0})}, {f32({2, 1}, {0.2f, 0.3f})});
  check_op(regressor(one + ", n_targets=1", "int32"), 15, {i32({0, 2}, {})}, {f32({0, 1}, {})});
}

TEST_CASE("TreeEnsembleRegressor serves few rows and many alike") {
  const std::string text = regressor(
      kTree + ", target_treeids=[0,0,0], target_nodeids=[2,3,4], target_ids=[0,0,0], target_weights=[1.0,2.0,3.0]");
  for (const std::int64_t count : {1, 7, 8, 9, 300}) {
    const Tensor x = noise({count, 2}, 0.4f, static_cast<std::uint32_t>(count));
    const Tensor expected = Tensor::make(DType::Float32, {count, 1});
    for (std::int64_t i = 0; i < count; ++i) {
      const float a = x.data<float>()[2 * i], b = x.data<float>()[2 * i + 1];
      expected.mutable_data<float>()[i] = a <= 0.1f ? (b <= 0.1f ? 2.0f : 3.0f) : 1.0f;
    }
    check_op(text, 15, {x}, {expected});
  }
}

TEST_CASE("TreeEnsembleRegressor aggregates by sum, mean, least and greatest") {
  const std::string two =
      "nodes_treeids=[0,0,0,1,1,1], nodes_nodeids=[0,1,2,0,1,2], nodes_featureids=[0,0,0,1,0,0], "
      "nodes_values=[0.0,0.0,0.0,0.0,0.0,0.0], "
      "nodes_modes=[\"BRANCH_LT\",\"LEAF\",\"LEAF\",\"BRANCH_LT\",\"LEAF\",\"LEAF\"], "
      "nodes_truenodeids=[1,0,0,1,0,0], nodes_falsenodeids=[2,0,0,2,0,0], target_treeids=[0,0,1,1], "
      "target_nodeids=[1,2,1,2], target_ids=[0,0,0,0], target_weights=[1.0,2.0,10.0,20.0], n_targets=1, ";
  const Tensor x = f32({2, 2}, {-1, 1, 0, -1});
  const auto check = [&](const char* how, std::initializer_list<float> expected) {
    check_op(regressor(cat(two, "aggregate_function=\"", how, "\"")), 15, {x}, {f32({2, 1}, expected)});
  };
  check("SUM", {21, 12});
  check("AVERAGE", {10.5f, 6});
  check("MIN", {1, 2});
  check("MAX", {20, 10});
}

TEST_CASE("TreeEnsembleClassifier answers binary models from their one score") {
  const std::string positive =
      "class_treeids=[0,0,0], class_nodeids=[2,3,4], class_ids=[0,0,0], class_weights=[0.2,0.3,0.9], ";
  check_op(classifier(positive + "classlabels_int64s=[5,9]"), 15, {rows()},
           {i64({4}, {5, 9, 5, 5}), f32({4, 2}, {0.8f, 0.2f, 0.1f, 0.9f, 0.7f, 0.3f, 0.8f, 0.2f})});
  const std::string mixed =
      "class_treeids=[0,0,0], class_nodeids=[2,3,4], class_ids=[0,0,0], class_weights=[-0.2,0.3,0.9], ";
  check_op(classifier(mixed + "classlabels_strings=[\"no\",\"yes\"], base_values=[0.1]", "string"), 15, {rows()},
           {str({4}, {"no", "yes", "yes", "no"}), f32({4, 2}, {0.1f, -0.1f, -1, 1, -0.4f, 0.4f, 0.1f, -0.1f})});
  check_op(classifier(mixed + "classlabels_int64s=[5,9], post_transform=\"LOGISTIC\""), 15, {rows()},
           {i64({4}, {5, 9, 9, 5}),
            f32({4, 2}, {0.549834f, 0.450166f, 0.2890505f, 0.7109495f, 0.4255575f, 0.5744425f, 0.549834f, 0.450166f})});
}

TEST_CASE("TreeEnsembleClassifier takes the greatest score that some leaf spoke of") {
  const std::string three =
      "class_treeids=[0,0,0], class_nodeids=[2,3,4], class_ids=[0,2,1], class_weights=[-0.2,0.3,0.9], "
      "classlabels_int64s=[5,6,7]";
  check_op(classifier(three), 15, {rows()},
           {i64({4}, {5, 6, 7, 5}), f32({4, 3}, {-0.2f, 0, 0, 0, 0.9f, 0, 0, 0, 0.3f, -0.2f, 0, 0})});
  check_op(classifier(three + ", post_transform=\"SOFTMAX_ZERO\""), 15, {rows()},
           {i64({4}, {5, 6, 7, 5}), f32({4, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0})});
}

TEST_CASE("TreeEnsembleClassifier takes the greater of two classes that leaves speak of both") {
  check_op(classifier("class_treeids=[0,0,0,0,0], class_nodeids=[2,2,3,4,4], class_ids=[0,1,0,0,1], "
                      "class_weights=[0.7,0.3,1.0,0.2,0.8], classlabels_int64s=[5,9]"),
           15, {rows()}, {i64({4}, {5, 9, 5, 5}), f32({4, 2}, {0.7f, 0.3f, 0.2f, 0.8f, 1, 0, 0.7f, 0.3f})});
}

std::string ensemble(int mode, const std::string& more = "") {
  return cat(
      "(float[N,1] X) => (float[N,T] Y) { Y = ai.onnx.ml.TreeEnsemble<n_targets=1, tree_roots=[0], "
      "nodes_modes=uint8[1] {",
      mode,
      "}, nodes_splits=float[1] {1.0}, nodes_featureids=[0], "
      "nodes_truenodeids=[0], nodes_trueleafs=[1], nodes_falsenodeids=[1], nodes_falseleafs=[1], "
      "leaf_targetids=[0,0], leaf_weights=float[2] {1.0, -1.0}",
      more, ">(X) }");
}

TEST_CASE("TreeEnsemble asks every kind of question") {
  const Tensor x = f32({4, 1}, {0, 1, 2, kNaN});
  const auto check = [&](int mode, std::initializer_list<float> expected, const std::string& more = "") {
    CAPTURE(mode);
    check_op(ensemble(mode, more), 15, {x}, {f32({4, 1}, expected)});
  };
  check(0, {1, 1, -1, -1});
  check(1, {1, -1, -1, -1});
  check(2, {-1, 1, 1, -1});
  check(3, {-1, -1, 1, -1});
  check(4, {-1, 1, -1, -1});
  check(5, {1, -1, 1, 1});
  check(6, {1, -1, 1, -1}, ", membership_values=float[3] {2.0, 0.0, nan}");
  for (const int mode : {0, 1, 2, 3, 4}) {
    const Tensor one = f32({1, 1}, {kNaN});
    check_op(ensemble(mode, ", nodes_missing_value_tracks_true=[1]"), 15, {one}, {f32({1, 1}, {1})});
  }
}

TEST_CASE("TreeEnsemble lets nodes share what follows them, as converters of categories do") {
  check_op(
      "(float[N,1] X) => (float[N,1] Y) { Y = ai.onnx.ml.TreeEnsemble<n_targets=1, tree_roots=[0], "
      "nodes_modes=uint8[2] {4, 4}, nodes_splits=float[2] {1.0, 3.0}, nodes_featureids=[0,0], "
      "nodes_truenodeids=[0,0], nodes_trueleafs=[1,1], nodes_falsenodeids=[1,1], nodes_falseleafs=[0,1], "
      "leaf_targetids=[0,0], leaf_weights=float[2] {1.0, -1.0}>(X) }",
      15, {f32({3, 1}, {1, 2, 3})}, {f32({3, 1}, {1, -1, 1})});
}

TEST_CASE("TreeEnsemble walks trees of any depth") {
  const int depth = 3000;
  std::string zeros = "0", ones = "1", next = "1", leaves = "0", kinds = "0";
  for (int i = 1; i < depth; ++i) {
    zeros += ",0";
    ones += ",1";
    kinds += ",0";
    next += i + 1 < depth ? cat(",", i + 1) : std::string(",0");
    leaves += i + 1 < depth ? ",0" : ",1";
  }
  const std::string count = std::to_string(depth);
  check_op(cat("(float[N,1] X) => (float[N,1] Y) { Y = ai.onnx.ml.TreeEnsemble<n_targets=1, tree_roots=[0], ",
               "nodes_modes=uint8[", count, "] {", kinds, "}, nodes_splits=float[", count, "] {", zeros,
               "}, nodes_featureids=[", zeros, "], nodes_truenodeids=[", next, "], nodes_trueleafs=[", leaves,
               "], nodes_falsenodeids=[", ones, "], nodes_falseleafs=[", ones,
               "], leaf_targetids=[0,0], leaf_weights=float[2] {1.0, -1.0}>(X) }"),
           15, {f32({2, 1}, {-1, 1})}, {f32({2, 1}, {1, -1})});
}

TEST_CASE("tree ensembles refuse lists that do not fit together") {
  const std::string weights =
      ", target_treeids=[0,0,0], target_nodeids=[2,3,4], target_ids=[0,0,0], target_weights=[0.2,0.3,0.9]";
  const auto refuse = [&](std::string tree, std::string_view from, std::string_view to, std::string_view why) {
    const std::size_t at = tree.find(from);
    REQUIRE(at != std::string::npos);
    tree.replace(at, from.size(), to);
    check_op_fails(regressor(tree), 15, {rows()}, ErrorCode::InvalidModel, why);
  };
  const std::string whole = kTree + weights;
  refuse(whole, "nodes_nodeids=[0,1,2,3,4]", "nodes_nodeids=[0,1,2,3,3]", "given twice");
  refuse(whole, "nodes_truenodeids=[1,3,0,0,0]", "nodes_truenodeids=[1,0,0,0,0]", "cycle");
  refuse(whole, "nodes_truenodeids=[1,3,0,0,0]", "nodes_truenodeids=[1,99,0,0,0]", "does not exist");
  refuse(whole, "nodes_featureids=[0,1,0,0,0]", "nodes_featureids=[0,-1,0,0,0]", "reads column -1");
  refuse(whole, "nodes_featureids=[0,1,0,0,0]", "nodes_featureids=[0,1]", "nodes_featureids has 2");
  refuse(whole, "BRANCH_LEQ", "BRANCH", "BRANCH_NEQ");
  refuse(whole, "target_nodeids=[2,3,4]", "target_nodeids=[2,3,44]", "does not exist");
  refuse(whole, "target_ids=[0,0,0]", "n_targets=1, target_ids=[0,0,7]", "target_ids holds 7");
  // Sizes that only memory would bound are refused before any is asked for.
  refuse(whole, "target_ids=[0,0,0]", "n_targets=2147483647, target_ids=[0,0,0]", "n_targets asks for 2147483647");
  refuse(whole, "target_ids=[0,0,0]", "target_ids=[0,0,2147483646]", "n_targets asks for 2147483647");
  refuse(whole, "target_ids=[0,0,0]", "target_ids=[0,0,9223372036854775807]", "n_targets asks for");
  refuse(whole, "target_ids=[0,0,0]", "n_targets=-1, target_ids=[0,0,0]", "n_targets is -1");
  refuse(whole, "nodes_featureids=[0,1,0,0,0]", "nodes_featureids=[0,2147483647,0,0,0]", "reads column 2147483647");
  check_op_fails(regressor(whole), 15, {f32({1, 1}, {0})}, ErrorCode::InvalidArgument, "column 1");
  check_op_fails(ensemble(6), 15, {f32({1, 1}, {0})}, ErrorCode::InvalidModel, "membership");
}

}  // namespace
}  // namespace infernode::test
