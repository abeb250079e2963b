#include "ops/op_test.h"

namespace infernode::test {
namespace {

using tensor::Map;
using tensor::Sequence;

TEST_CASE("Scaler, Normalizer, Binarizer and Imputer change columns") {
  check_op("(int64[N,2] X) => (float[N,2] Y) { Y = ai.onnx.ml.Scaler<scale=[2.0,3.0], offset=[1.0,0.0]>(X) }", 15,
           {i64({2, 2}, {1, 2, -1, 0})}, {f32({2, 2}, {0, 6, -4, 0})});
  const Tensor x = f32({2, 2}, {3, -4, 0, 0});
  const auto normalized = [](const char* norm) {
    return cat("(float[N,2] X) => (float[N,2] Y) { Y = ai.onnx.ml.Normalizer<norm=\"", norm, "\">(X) }");
  };
  check_op(normalized("MAX"), 15, {x}, {f32({2, 2}, {0.75f, -1, 0, 0})});
  check_op(normalized("L1"), 15, {x}, {f32({2, 2}, {3.0f / 7, -4.0f / 7, 0, 0})});
  check_op(normalized("L2"), 15, {x}, {f32({2, 2}, {0.6f, -0.8f, 0, 0})});
  check_op("(double[N] X) => (double[N] Y) { Y = ai.onnx.ml.Binarizer<threshold=0.5>(X) }", 15,
           {f64({3}, {0.4, 0.5, 0.6})}, {f64({3}, {0, 0, 1})});
  check_op(
      "(float[N,2] X) => (float[N,2] Y) { Y = ai.onnx.ml.Imputer<imputed_value_floats=[7.0,8.0], "
      "replaced_value_float=nan>(X) }",
      15, {f32({2, 2}, {1, kNaN, kNaN, 4})}, {f32({2, 2}, {1, 8, 7, 4})});
  check_op(
      "(int64[N,2] X) => (int64[N,2] Y) { Y = ai.onnx.ml.Imputer<imputed_value_int64s=[7], replaced_value_int64=0>(X) "
      "}",
      15, {i64({1, 2}, {0, 4})}, {i64({1, 2}, {7, 4})});
}

TEST_CASE("LabelEncoder maps keys of every version to values") {
  check_op(
      "<ir_version: 8, opset_import: [\"\": 15, \"ai.onnx.ml\": 1]> g (string[N] X) => (int64[N] Y) { "
      "Y = ai.onnx.ml.LabelEncoder<classes_strings=[\"b\",\"a\"]>(X) }",
      15, {str({2}, {"a", "z"})}, {i64({2}, {1, -1})});
  check_op(
      "(int64[N] X) => (string[N] Y) { Y = ai.onnx.ml.LabelEncoder<keys_int64s=[4,5], values_strings=[\"a\",\"b\"]>(X) "
      "}",
      15, {i64({2}, {5, 6})}, {str({2}, {"b", "_Unused"})});
  check_op(
      "(float[N] X) => (string[N] Y) { Y = ai.onnx.ml.LabelEncoder<keys_floats=[nan,2.0], "
      "values_strings=[\"n\",\"t\"]>(X) }",
      15, {f32({2}, {kNaN, 2})}, {str({2}, {"n", "t"})});
  check_op(
      "(int64[N] X) => (double[N] Y) { Y = ai.onnx.ml.LabelEncoder<keys_tensor=int64[2] {1, 2}, "
      "values_tensor=double[2] {1.5, 2.5}, default_tensor=double[1] {-7.0}>(X) }",
      15, {i64({3}, {2, 1, 9})}, {f64({3}, {2.5, 1.5, -7})});
  check_op_fails(
      "(string[N] X) => (Y) { Y = ai.onnx.ml.LabelEncoder<keys_strings=[\"a\"], values_floats=[1.0,2.0]>(X) }", 15,
      {str({1}, {"a"})}, ErrorCode::InvalidModel, "1 keys and 2 values");
}

TEST_CASE("CategoryMapper maps both ways and OneHotEncoder adds an axis") {
  const std::string cats = "cats_int64s=[4,5], cats_strings=[\"a\",\"b\"]";
  check_op("(string[N] X) => (int64[N] Y) { Y = ai.onnx.ml.CategoryMapper<" + cats + ">(X) }", 15,
           {str({2}, {"b", "z"})}, {i64({2}, {5, -1})});
  check_op("(int64[N] X) => (string[N] Y) { Y = ai.onnx.ml.CategoryMapper<" + cats + ">(X) }", 15, {i64({2}, {4, 9})},
           {str({2}, {"a", "_Unused"})});
  const std::string one_hot = "(float[N,1] X) => (float[N,1,3] Y) { Y = ai.onnx.ml.OneHotEncoder<cats_int64s=[1,2,3]";
  check_op(one_hot + ">(X) }", 15, {f32({3, 1}, {1.5f, 2, 9})}, {f32({3, 1, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 0})});
  check_op_fails(one_hot + ", zeros=0>(X) }", 15, {f32({1, 1}, {9})}, ErrorCode::InvalidArgument, "categories");
}

TEST_CASE("ArrayFeatureExtractor and FeatureVectorizer pick and join columns") {
  check_op("(string[A,B] X, int64[K] I) => (string[A,K] Y) { Y = ai.onnx.ml.ArrayFeatureExtractor(X, I) }", 15,
           {str({2, 2}, {"a", "b", "c", "d"}), i64({3}, {1, 0, 1})}, {str({2, 3}, {"b", "a", "b", "d", "c", "d"})});
  check_op_fails("(float[N] X, int64[K] I) => (Y) { Y = ai.onnx.ml.ArrayFeatureExtractor(X, I) }", 15,
                 {f32({2}, {1, 2}), i64({1}, {-1})}, ErrorCode::InvalidArgument, "Y[0] is -1");
  check_op(
      "(float[N,2] A, float[N,1] B) => (float[N,4] Y) { Y = ai.onnx.ml.FeatureVectorizer<inputdimensions=[3,1]>(A, B) "
      "}",
      15, {f32({2, 2}, {1, 2, 3, 4}), f32({2, 1}, {5, 6})}, {f32({2, 4}, {1, 2, 0, 5, 3, 4, 0, 6})});
  const auto refuse = [](const char* widths, const char* why) {
    check_op_fails(cat("(float[N,2] A, float[N,1] B) => (Y) { Y = ai.onnx.ml.FeatureVectorizer<inputdimensions=",
                       widths, ">(A, B) }"),
                   15, {f32({1, 2}, {1, 2}), f32({1, 1}, {5})}, ErrorCode::InvalidModel, why);
  };
  refuse("[16777217,0]", "inputdimensions asks for 16777217 columns");
  refuse("[9223372036854775807,9223372036854775807]", "too large");
  refuse("[-1,3]", "inputdimensions holds -1");
  refuse("[3]", "1 elements for 2 inputs");
}

TEST_CASE("ZipMap gives a map for each row, DictVectorizer and CastMap take one") {
  const auto scalar = [](float v) { return Value(f32({}, {v})); };
  const auto map = [&](float a, float b) { return Value(Map{str({2}, {"a", "b"}), {scalar(a), scalar(b)}}); };
  const std::vector<Value> zipped =
      run_op("(float[N,2] X) => (Z) { Z = ai.onnx.ml.ZipMap<classlabels_strings=[\"a\",\"b\"]>(X) }", 15,
             {f32({2, 2}, {1, 2, 3, 4})});
  REQUIRE(zipped[0].is_sequence());
  CHECK(difference(zipped[0], Value(Sequence{DType::Undefined, {map(1, 2), map(3, 4)}})) == "");
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<Value> unreal =
      run_op("(float[N,2] X) => (Z) { Z = ai.onnx.ml.ZipMap<classlabels_strings=[\"a\",\"b\"]>(X) }", 15,
             {f32({1, 2}, {nan, inf})});
  CHECK(difference(unreal[0], Value(Sequence{DType::Undefined, {map(nan, inf)}})) == "");
  CHECK(difference(unreal[0], Value(Sequence{DType::Undefined, {map(inf, nan)}})) != "");
  const auto dense =
      run_op("(X) => (float[1,C] Y) { Y = ai.onnx.ml.DictVectorizer<string_vocabulary=[\"q\",\"b\",\"a\"]>(X) }", 15,
             {map(1, 2)});
  CHECK(difference(dense[0], f32({1, 3}, {0, 2, 1})) == "");
  const auto dense_unreal =
      run_op("(X) => (float[1,C] Y) { Y = ai.onnx.ml.DictVectorizer<string_vocabulary=[\"q\",\"b\",\"a\"]>(X) }", 15,
             {map(nan, -inf)});
  CHECK(difference(dense_unreal[0], f32({1, 3}, {0, -inf, nan})) == "");
  const Value numbered(Map{i64({2}, {3, 1}), {scalar(-2.5f), scalar(1.75f)}});
  const auto cast = [&](const char* attributes) {
    return run_op(cat("(X) => (Y) { Y = ai.onnx.ml.CastMap<", attributes, ">(X) }"), 15, {numbered})[0];
  };
  CHECK(difference(cast("cast_to=\"TO_INT64\""), i64({1, 2}, {1, -2})) == "");
  CHECK(difference(cast("cast_to=\"TO_FLOAT\", map_form=\"SPARSE\", max_map=4"), f32({1, 4}, {0, 1.75f, 0, -2.5f})) ==
        "");
  CHECK(difference(cast("cast_to=\"TO_STRING\""), str({1, 2}, {"1.750000", "-2.500000"})) == "");
  check_op_fails("(X) => (Y) { Y = ai.onnx.ml.CastMap<map_form=\"SPARSE\", max_map=9223372036854775807>(X) }", 15,
                 {numbered}, ErrorCode::InvalidModel, "max_map asks for");
}

}  // namespace
}  // namespace infernode::test
