#include "ops/op_test.h"

namespace infernode::test {
namespace {

Tensor rows() { return f32({4, 2}, {1, 2, -1, 0.5f, 0, 0, 0.3f, -0.2f}); }

TEST_CASE("LinearClassifier completes a single score to two") {
  const std::string text =
      "(float[N,2] X) => (int64[N] Y, float[N,2] Z) { Y, Z = ai.onnx.ml.LinearClassifier<coefficients=[0.3,0.1], "
      "intercepts=[0.05], classlabels_ints=[5,9]";
  check_op(text + ">(X) }", 15, {rows()},
           {i64({4}, {9, 5, 9, 9}), f32({4, 2}, {0.45f, 0.55f, 1.2f, -0.2f, 0.95f, 0.05f, 0.88f, 0.12f})});
  check_op(text + ", post_transform=\"LOGISTIC\">(X) }", 15, {rows()},
           {i64({4}, {9, 5, 9, 9}),
            f32({4, 2}, {0.3658644f, 0.6341356f, 0.549834f, 0.450166f, 0.4875026f, 0.5124974f, 0.470036f, 0.529964f})});
}

TEST_CASE("LinearClassifier names the class of the greatest score") {
  check_op(
      "(double[N,2] X) => (string[N] Y, float[N,2] Z) { Y, Z = ai.onnx.ml.LinearClassifier<coefficients="
      "[0.3,0.1,0.1,0.4], intercepts=[0.05,0.1], classlabels_strings=[\"a\",\"b\"], post_transform=\"SOFTMAX\">(X) }",
      15, {f64({2, 2}, {1, 2, 0.3, -0.2})},
      {str({2}, {"b", "a"}), f32({2, 2}, {0.3893608f, 0.6106393f, 0.5174929f, 0.4825071f})});
}

TEST_CASE("LinearRegressor gives a column for each target") {
  check_op(
      "(int64[N,2] X) => (float[N,2] Y) { Y = ai.onnx.ml.LinearRegressor<coefficients=[1.0,2.0,0.5,0.0], "
      "intercepts=[0.0,10.0], targets=2>(X) }",
      15, {i64({2, 2}, {1, 1, 2, 0})}, {f32({2, 2}, {3, 10.5f, 2, 11})});
  check_op_fails("(float[N,3] X) => (Y) { Y = ai.onnx.ml.LinearRegressor<coefficients=[1.0,2.0]>(X) }", 15,
                 {f32({1, 3}, {1, 2, 3})}, ErrorCode::InvalidArgument, "columns");
}

TEST_CASE("SVMRegressor weighs its kernels") {
  const std::string vectors =
      "kernel_params=[0.5,0.1,3.0], support_vectors=[0.1,0.2,0.3,0.4,-0.5,0.6], coefficients=[0.4,-0.6,0.3], "
      "n_supports=3, rho=[0.05]";
  const auto text = [&](const char* kind, const char* more = "") {
    return cat("(float[N,2] X) => (float[N,1] Y) { Y = ai.onnx.ml.SVMRegressor<kernel_type=\"", kind, "\", ", vectors,
               more, ">(X) }");
  };
  check_op(text("RBF"), 15, {rows()}, {f32({4, 1}, {0.00877862f, 0.26579794f, 0.13176282f, 0.06896055f})});
  check_op(text("POLY"), 15, {rows()}, {f32({4, 1}, {-0.07028753f, 0.087825f, 0.0501f, 0.04963551f})});
  check_op(text("SIGMOID", ", one_class=1"), 15, {rows()}, {f32({4, 1}, {-1, 1, 1, 1})});
}

TEST_CASE("SVMClassifier lets the classes of each pair vote") {
  const std::string start =
      "(float[N,2] X) => (int64[N] Y, float[N,C] Z) { Y, Z = ai.onnx.ml.SVMClassifier<kernel_type=\"RBF\", "
      "kernel_params=[0.5,0.0,3.0], support_vectors=[0.1,0.2,0.3,0.4,-0.5,0.6], ";
  const std::string three = start +
                            "coefficients=[0.4,-0.6,0.3,0.1,0.2,0.9], vectors_per_class=[1,1,1], rho=[0.05,0.1,-0.2], "
                            "classlabels_ints=[5,9,7]";
  check_op(three + ">(X) }", 15, {rows()},
           {i64({4}, {5, 5, 9, 9}),
            f32({4, 3}, {-0.02777509f, 0.1497531f, -0.04681469f, 0.00236929f, 0.41563323f, 0.67576885f, -0.0893742f,
                         0.418668f, 0.6399104f, -0.08922718f, 0.34867147f, 0.44161716f})});
  check_op(three + ", prob_a=[0.3,-1.0,2.0], prob_b=[0.2,0.1,0.0]>(X) }", 15, {rows()},
           {i64({4}, {5, 5, 9, 9}),
            f32({4, 3}, {0.31725812f, 0.36494723f, 0.31779474f, 0.37239543f, 0.22182585f, 0.40577883f, 0.37374508f,
                         0.22577746f, 0.4004775f, 0.35478377f, 0.25848597f, 0.38673025f})},
           1e-4);
  check_op(start + "coefficients=[0.4,-0.6,0.3], vectors_per_class=[1,2], rho=[0.05], classlabels_ints=[5,9]>(X) }", 15,
           {rows()},
           {i64({4}, {5, 5, 5, 5}), f32({4, 2}, {-0.00877862f, 0.00877862f, -0.26579794f, 0.26579794f, -0.13176282f,
                                                 0.13176282f, -0.06896053f, 0.06896053f})});
  check_op_fails(start + "coefficients=[0.4], vectors_per_class=[1,2], rho=[0.05], classlabels_ints=[5,9]>(X) }", 15,
                 {rows()}, ErrorCode::InvalidModel, "coefficients has 1");
}

}  // namespace
}  // namespace infernode::test
