// Operators at the edges of their domain: the EdgeCases of their own tests, and test/fixtures/operator-edges.txt,
// written by test/generators/edges/make_cases.py.

#include <algorithm>
#include <iterator>

#include "ops/evaluate.h"
#include "ops/written_cases.h"

namespace infernode::test {
namespace {

using Case = WrittenCase;

/// The graph `(inputs) => (outputs) { nodes }` in a model that imports every domain.
std::string model(const Case& c, const std::string& graph) {
  return cat("<ir_version: 14, opset_import: [\"\" : ", c.opset,
             ", \"com.microsoft\" : 1, \"ai.onnx.ml\" : 5, \"ai.onnx.preview\" : 1, \"ai.onnx.preview.training\" : 1, "
             "\"infernode\" : 1]> g ",
             graph);
}

/// Operators that the cases leave out, by the beginning of "domain name".
constexpr std::string_view kLeftOut[] = {
    "ai.onnx Constant",                   // these four take no tensor
    "ai.onnx RandomNormal",               //
    "ai.onnx RandomUniform",              //
    "ai.onnx SequenceEmpty",              //
    "ai.onnx.ml CastMap",                 // these two take maps: ml_features.test.cpp
    "ai.onnx.ml DictVectorizer",          //
    "ai.onnx.preview.training Gradient",  // refused whatever it is given
    "infernode BlockChannels",            // these three take images that have elements, as the pass sees to
    "infernode BlockedConv",              //
    "infernode UnblockChannels",          //
    "infernode CopyTo",                   // from device to device: test/native/provider
};

/// An error that tells the caller of his fault, or where the outputs say "unsupported" that the engine lacks what the
/// standard has; whether the inputs are fed or are constants of the graph.
void check_refused(const Case& c) {
  const bool lacking = c.outputs == "unsupported";
  std::string names;
  const std::vector<Value> inputs = tensors_of(c.inputs, &names);
  const auto refuse = [&](const std::string& text, const std::vector<Value>& feeds) {
    CAPTURE(text);
    try {
      const std::vector<Value> answer = run_op(text, c.opset, feeds);
      if (must_refuse()) FAIL_CHECK("it answered ", answer.at(0).to_string());
    } catch (const Error& error) {
      const ErrorCode code = error.code();
      const bool fault = code == ErrorCode::InvalidArgument || code == ErrorCode::ShapeMismatch ||
                         code == ErrorCode::InvalidModel || code == ErrorCode::OutOfMemory;
      CHECK_MESSAGE((lacking ? code == ErrorCode::UnsupportedOperator : fault),
                    cat(to_string(code), ": ", error.message()));
      CHECK(error.message().size() > 10);
    }
  };
  refuse(model(c, cat("(", names, ") => (y0) { ", c.nodes, " }")), inputs);
  refuse(model(c, cat("() => (y0) <", c.inputs, "> { ", c.nodes, " }")), {});
}

}  // namespace

TEST_CASE("operators answer at the edges of their domain as the standard, or else numpy, says") {
  const std::vector<Case> cases = EdgeCases::all();
  CHECK(cases.size() > 1000);
  for (const Case& c : cases) {
    CAPTURE(c.title);
    if (c.fails()) {
      check_refused(c);
      continue;
    }
    std::string names, results;
    const std::vector<Value> inputs = tensors_of(c.inputs, &names);
    const std::vector<Value> expected = tensors_of(c.outputs, &results);
    check_op(model(c, cat("(", names, ") => (", results, ") { ", c.nodes, " }")), c.opset, inputs, expected,
             c.tolerance);
  }
}

TEST_CASE("every operator is asked for no elements and for rank 0") {
  const std::vector<Case> cases = EdgeCases::all();
  std::vector<std::vector<Value>> inputs;
  for (const Case& c : cases) inputs.push_back(tensors_of(c.inputs));
  for (const kernel::OpSchema* schema : registry().schemas()) {
    const std::string key = cat(schema->domain.empty() ? "ai.onnx" : schema->domain, " ", schema->name);
    CAPTURE(key);
    bool none = false, scalar = false;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string call = cat("= ", schema->domain, schema->domain.empty() ? "" : ".", schema->name);
      const std::size_t at = cases[i].nodes.find(call);
      if (at == std::string::npos) continue;
      const char next = cases[i].nodes[at + call.size()];
      if (next != '(' && next != '<') continue;
      for (const Value& value : inputs[i]) {
        none = none || value.tensor().numel() == 0;
        scalar = scalar || value.tensor().rank() == 0;
      }
    }
    const bool out = std::any_of(std::begin(kLeftOut), std::end(kLeftOut),
                                 [&](std::string_view start) { return key.starts_with(start); });
    constexpr std::string_view kPlace =
        "extend the operator's test, test/native/ops/<family>/<name>.test.cpp, by EdgeCases (ops/written_cases.h) "
        "with ";
    CHECK_MESSAGE((out || none), kPlace, "a tensor of no elements");
    CHECK_MESSAGE((out || scalar), kPlace, "a tensor of rank 0");
  }
}

}  // namespace infernode::test
