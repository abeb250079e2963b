// No operator is left out of those whose looks are counted, but for those that have nothing to look between.

#include <algorithm>
#include <set>

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

struct Brief {
  const char* why;
  std::vector<std::string_view> operators;
};

/// What cannot be long between two looks.
const Brief kBrief[] = {
    {"gives what it was given, without a copy",
     {"BitCast", "Flatten", "Identity", "Optional", "OptionalGetElement", "Reshape", "Squeeze", "Unsqueeze",
      "com.microsoft.ExpandDims"}},
    {"gives a constant of the model, or a number or two",
     {"Constant", "OptionalHasElement", "SequenceLength", "Shape", "Size"}},
    {"handles whole tensors of a sequence, whose number memory bounds",
     {"SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"}},
    {"runs a graph, whose nodes look; between steps of loops looks test/native/runtime/run", {"If", "Loop", "Scan"}},
    {"refuses every node", {"ai.onnx.preview.training.Gradient", "com.microsoft.EPContext"}},
    {"takes a map, whose entries are text by text", {"ai.onnx.ml.CastMap", "ai.onnx.ml.DictVectorizer"}},
};

std::string name(std::string_view domain, std::string_view op) { return cat(domain, domain.empty() ? "" : ".", op); }

}  // namespace

TEST_CASE("the last node of a text is found") {
  CHECK(last_operator(
            "(float[n] X) => (Y) { A = Constant<value_ints=[1]>() Y = com.microsoft.Foo<mode=\"x = B(\">(X) }") ==
        "com.microsoft.Foo");
  CHECK(last_operator("<ir_version: 8, opset_import: [\"\" : 17]> g (X) => (Y) { Y = Bar<body = b (u) => (p) { p = "
                      "Neg(u) }>(X) }") == "Bar");
}

TEST_CASE("every operator hears the end of its run: its looks are counted, or it cannot be long between two") {
  std::set<std::string, std::less<>> counted, brief, known;
  for (const std::string& text : CountedGraphs::all()) counted.insert(last_operator(text));
  for (const Brief& kind : kBrief) brief.insert(kind.operators.begin(), kind.operators.end());
  for (const kernel::KernelDef* kernel : registry().kernels()) known.insert(name(kernel->domain, kernel->op));
  for (const std::string& op : known) {
    const bool is_counted = counted.contains(op), is_brief = brief.contains(op);
    CHECK_MESSAGE((is_counted || is_brief), op,
                  ": count its looks by a graph that ends in it, in a table of test/native/ops/looks/*.test.cpp");
    CHECK_MESSAGE(!(is_counted && is_brief), op, " has its looks counted: take it out of kBrief");
  }
  for (const std::string& op : brief) CHECK_MESSAGE(known.contains(op), op, " is in kBrief, and has no kernel");
}
