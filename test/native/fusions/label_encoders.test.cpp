#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// The labels that a graph with a vector input gives before and after level basic, and its nodes after.
void check(const std::string& input, const std::string& statements, const Value& x, const std::string& expected,
           const std::string& outputs = "y") {
  const std::string text = cat("<ir_version: 9, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 4]> g (", input, ") => (",
                               outputs, ") { ", statements, " }");
  CAPTURE(text);
  const graph::Model before = parse(text);
  graph::Model after = parse(text);
  const std::vector<std::string> applied = optimize(after, 1);
  CHECK(nodes(*after.graph) == (expected.empty() ? nodes(*before.graph) : expected));
  CHECK((applied == std::vector<std::string>{"LabelEncoderFusion"}) == !expected.empty());
  const auto labels = [&](const graph::Model& model) {
    const Tensor t = evaluate(*model.graph, {x})[0].tensor();
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < t.numel(); ++i) {
      out.push_back(t.dtype() == DType::String
                        ? t.data<std::string>()[i]
                        : std::to_string(tensor::to_float_vector(t)[static_cast<std::size_t>(i)]));
    }
    return out;
  };
  CHECK(labels(after) == labels(before));
}
constexpr const char* kWords =
    "m = ai.onnx.ml.LabelEncoder<keys_int64s = [1,2,3], values_strings = [\"a\",\"b\",\"c\"]";
const Value kNumbers = Tensor::of<std::int64_t>(Shape{5}, {3, 1, 2, 7, -1});
}  // namespace

TEST_CASE("two label encoders in a row are one") {
  check("int64[5] x",
        cat(kWords,
            ">(x) y = ai.onnx.ml.LabelEncoder<keys_strings = [\"b\",\"a\"], values_int64s = [20,10], "
            "default_int64 = 99>(m)"),
        kNumbers,
        "y = ai.onnx.ml.LabelEncoder <default_int64 = 99, keys_int64s = [1, 2, 3], values_int64s = [10, 20, 99]> (x)");
}

TEST_CASE("the first one's default may be a key of the second one") {
  check("int64[5] x",
        cat(kWords,
            ", default_string = \"other\">(x) y = ai.onnx.ml.LabelEncoder<keys_strings = [\"other\",\"a\"], "
            "values_floats = [0.5,1.5]>(m)"),
        kNumbers,
        "y = ai.onnx.ml.LabelEncoder <default_float = 0.5, keys_int64s = [1, 2, 3], values_floats = [1.5, -0.0, -0.0]> "
        "(x)");
  // "_Unused" is what there is where nothing is said.
  check("int64[5] x",
        cat(kWords,
            ">(x) y = ai.onnx.ml.LabelEncoder<keys_strings = [\"_Unused\",\"a\"], values_strings = "
            "[\"none\",\"A\"]>(m)"),
        kNumbers,
        "y = ai.onnx.ml.LabelEncoder <default_string = \"none\", keys_int64s = [1, 2, 3], values_strings = [\"A\", "
        "\"_Unused\", \"_Unused\"]> (x)");
}

TEST_CASE("labels of every type, as lists and as tensors") {
  const Value floats = Tensor::of<float>(Shape{4}, {1.5f, std::nanf(""), 0.0f, 9.0f});
  for (const char* type : {"int32", "int16", "double"}) {
    const char* point = type == std::string("double") ? ".0" : "";
    const std::string first = cat("m = ai.onnx.ml.LabelEncoder<keys_floats = [1.5,nan,-0.0], values_tensor = ", type,
                                  "[3] {1,2,3}, default_tensor = ", type, "[1] {4}>(x) ");
    check("float[4] x",
          cat(first, "y = ai.onnx.ml.LabelEncoder<keys_tensor = ", type, "[2] {2,4}, values_tensor = ", type,
              "[2] {6,7}, default_tensor = ", type, "[1] {5}>(m)"),
          floats,
          cat("y = ai.onnx.ml.LabelEncoder <default_tensor = ", type, "[1] {7", point,
              "}, keys_floats = [1.5, nan, -0.0], values_tensor = ", type, "[3] {5", point, ", 6", point, ", 5", point,
              "}> (x)"));
  }
}

TEST_CASE("labels that are read between stay") {
  const std::string second = "y = ai.onnx.ml.LabelEncoder<keys_strings = [\"b\",\"a\"], values_int64s = [20,10]>(m)";
  check("int64[5] x", cat(kWords, ">(x) ", second), kNumbers, "", "y, m");
  check("int64[5] x",
        cat(kWords, ">(x) ", second, " z = ai.onnx.ml.LabelEncoder<keys_strings = [\"c\"], values_int64s = [1]>(m)"),
        kNumbers, "", "y, z");
}

TEST_CASE("label encoders of the first version stay") {
  const char* text =
      "<ir_version: 3, opset_import: [\"\" : 8, \"ai.onnx.ml\" : 1]> g (string[N] x) => (y) { "
      "m = ai.onnx.ml.LabelEncoder<classes_strings = [\"a\",\"b\"]>(x)  "
      "y = ai.onnx.ml.LabelEncoder<classes_strings = [\"c\",\"d\"]>(m) }";
  graph::Model model = parse(text);
  CHECK(optimize(model, 1).empty());
}
