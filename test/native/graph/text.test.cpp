#include "graph/text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

using namespace infernode;
using namespace infernode::graph;
using tensor::DType;

namespace {
std::string failure(std::string_view text) {
  try {
    (void)parse_model(text);
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::InvalidModel);
    return e.message();
  }
  return "";
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const Node& only_node(const Model& model) {
  REQUIRE(model.graph->node_count() == 1);
  return model.graph->node(0);
}
}  // namespace

TEST_CASE("a model with header, types, initializers and attributes") {
  const Model model = parse_model(R"(
    <ir_version: 8, producer_name: "test", opset_import: ["" : 17, "com.microsoft" : 1], metadata_props: ["k": "v"]>
    agraph (float[N,3] X, int64 s = {2}) => (float[N,?] Y)
    <float[2] w = {1, 2.5}, float16[1,2] h = {-1, inf}, int4[3] q = {-8, 7, 1}, bool[] b = {1, 0}>
    {
      # a comment
      ["first"] T = Gemm <alpha = 0.5, transB = 1, axes = [1, -2], name = "a\"b"> (X, w, "")
      Y, , Z = com.microsoft.Foo <v: floats = [1, 2], none: ints = []> (T, , s)
    })");
  CHECK(model.info.ir_version == 8);
  CHECK(model.info.opsets.at("") == 17);
  CHECK(model.info.producer_name == "test");
  CHECK(model.info.metadata.at(0).second == "v");
  const Graph& g = *model.graph;
  CHECK(g.name == "agraph");
  REQUIRE(g.inputs().size() == 2);
  CHECK(g.value(g.inputs()[0]).type.shape->at(0).symbol_name() == "N");
  CHECK(g.value(g.inputs()[1]).has_constant());
  CHECK(g.value(g.inputs()[1]).constant.tensor().rank() == 0);
  const auto constant = [&](const char* name) { return g.value(g.find_value(name)).constant.tensor(); };
  CHECK(to_float_vector(constant("w")) == std::vector<float>{1, 2.5f});
  CHECK(std::isinf(to_float_vector(constant("h"))[1]));
  CHECK(to_int64_vector(constant("q")) == std::vector<int64_t>{-8, 7, 1});
  CHECK(constant("b").to_string() == "bool[2]");
  REQUIRE(g.node_count() == 2);
  const Node& gemm = g.node(0);
  CHECK(gemm.name == "first");
  CHECK(gemm.opset == 17);
  CHECK(gemm.attributes.get_float("alpha") == 0.5f);
  CHECK(gemm.attributes.get_int("transB") == 1);
  CHECK(gemm.attributes.get_ints("axes") == std::vector<int64_t>{1, -2});
  CHECK(gemm.attributes.get_string("name") == "a\"b");
  CHECK(gemm.inputs[2] == kNoValue);
  const Node& foo = g.node(1);
  CHECK(foo.domain == "com.microsoft");
  CHECK(foo.opset == 1);
  CHECK(foo.outputs[1] == kNoValue);
  CHECK(foo.inputs[1] == kNoValue);
  CHECK(foo.attributes.get_floats("v") == std::vector<float>{1, 2});
  CHECK(foo.attributes.has("none"));
}

TEST_CASE("types may be missing and the header too") {
  const Model model = parse_model("(x) => (y) { y = Relu(x) }", 13);
  CHECK(only_node(model).opset == 13);
  CHECK(model.graph->value(model.graph->inputs()[0]).type.kind == ValueType::Kind::Unknown);
}

TEST_CASE("every kind of type") {
  const Model model = parse_model(
      "g (seq(float[]) a, optional(seq(float[2])) b, map(int64, float) c, sparse_tensor(float[3]) d, float[] e, double "
      "f)"
      " => (e) {}");
  const auto type = [&](size_t i) { return model.graph->value(model.graph->inputs()[i]).type; };
  CHECK(type(0).to_string() == "seq(tensor(float))");
  CHECK(type(1).to_string() == "optional(seq(tensor(float)))");
  CHECK(type(2).to_string() == "map(int64,tensor(float))");
  CHECK(type(3).to_string() == "sparse_tensor(float)");
  CHECK_FALSE(type(4).shape);
  CHECK(type(5).shape->empty());
}

TEST_CASE("tensor, type and list attributes") {
  const Node node = only_node(parse_model(R"(g () => (y) { y = Op <
      t = float[2] {1, 2}, named = int8[1] w {3}, scalar = double {4}, s = string[2] {"a", "b"}, ty = seq(float[2]),
      ts = [int64[1] {1}, int64[2] {2, 3}], mixed = [1, 2.5], c = complex64[1] {1, 2}, strs = ["x", "y"], f: float = 3> () })"));
  CHECK(node.attributes.get_tensor("t")->to_string() == "float32[2]");
  CHECK(node.attributes.get_tensor("named")->to_string() == "int8[1]");
  CHECK(node.attributes.get_tensor("scalar")->to_string() == "float64[]");
  CHECK(node.attributes.get_tensor("s")->data<std::string>()[1] == "b");
  CHECK(node.attributes.get_type("ty")->to_string() == "seq(tensor(float))");
  CHECK(std::get<std::vector<tensor::Tensor>>(*node.attributes.find("ts")).size() == 2);
  CHECK(node.attributes.get_floats("mixed") == std::vector<float>{1, 2.5f});
  CHECK(node.attributes.get_tensor("c")->dtype() == DType::Complex64);
  CHECK(node.attributes.get_strings("strs") == std::vector<std::string>{"x", "y"});
  CHECK(std::holds_alternative<float>(*node.attributes.find("f")));
}

TEST_CASE("subgraphs capture outer values through every level") {
  const Model model = parse_model(R"(g (bool c, float[2] x) => (y) {
      k = Relu(x)
      y = If <then_branch = t () => (a) { a = Neg(x) },
              else_branch = e () => (b) {
                 b = If <then_branch = tt () => (p) { p = Add(k, x) }, else_branch = ee () => (q) { q = Identity(k) }>(c)
              }>(c)
    })");
  const Graph& g = *model.graph;
  const Node& outer = g.node(1);
  CHECK(subgraphs(outer).size() == 2);
  const auto captured = implicit_inputs(outer);
  REQUIRE(captured.size() == 4);
  CHECK(g.value(captured[0]).name == "x");
  const Graph& e = *outer.attributes.get_graph("else_branch");
  CHECK(e.captures().size() == 3);
  const Graph& tt = *e.node(0).attributes.get_graph("then_branch");
  REQUIRE(tt.captures().size() == 2);
  CHECK(e.value(tt.captures()[0].outer).name == "k");
  CHECK(g.consumers()[static_cast<size_t>(g.find_value("k"))] == std::vector<NodeId>{1});
}

TEST_CASE("nodes out of order are sorted") {
  const Model model = parse_model("g (x) => (y) { y = Neg(t) t = Relu(x) }");
  CHECK(model.graph->node(0).op_type == "Relu");
  CHECK(model.graph->node(1).op_type == "Neg");
}

TEST_CASE("functions are inlined with their attributes, defaults and missing inputs") {
  const Model model = parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (x, y) => (z, w) {
      ["call"] z = local.f <alpha = 2.0> (x)
      w = local.f (x, y)
    }
    <domain: "local", opset_import: ["" : 18, "local": 1]>
    f <alpha: float = 1.0, beta> (a, b) => (r) {
      ["inner"] t = LeakyRelu <alpha = @alpha, beta: float = @beta> (a)
      r = local.h (t, b)
    }
    <domain: "local", opset_import: ["" : 16]>
    h (a, b) => (r) { r = Clip (a, b) })");
  const Graph& g = *model.graph;
  REQUIRE(g.node_count() == 4);
  std::vector<const Node*> leaky, clip;
  for (NodeId id : g.topological_order()) (g.node(id).op_type == "Clip" ? clip : leaky).push_back(&g.node(id));
  REQUIRE(leaky.size() == 2);
  CHECK(leaky[0]->op_type == "LeakyRelu");
  CHECK(leaky[0]->opset == 18);
  CHECK(leaky[0]->attributes.get_float("alpha") == 2.0f);
  CHECK_FALSE(leaky[0]->attributes.has("beta"));
  CHECK(leaky[0]->name == "call/inner");
  CHECK(leaky[0]->provenance == std::vector<std::string>{"call"});
  CHECK(leaky[1]->attributes.get_float("alpha") == 1.0f);
  CHECK(clip[0]->opset == 16);
  CHECK(clip[0]->inputs.size() == 1);
  CHECK(clip[1]->inputs.size() == 2);
  CHECK(g.value(clip[0]->outputs[0]).name == "z");
}

TEST_CASE("functions are inlined in branches, and their own branches see their inputs and attributes") {
  const Model model = parse_model(R"(
    <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
    g (bool c, float[2] x) => (y, z) {
      y = If <then_branch = t () => (a) { a = local.leak(x) }, else_branch = e () => (b) { b = Neg(x) }>(c)
      z = local.choose <slope = 0.25> (c, x)
    }
    <domain: "local", opset_import: ["" : 18]>
    leak <slope: float = 0.5> (a) => (r) { r = LeakyRelu <alpha = @slope> (a) }
    <domain: "local", opset_import: ["" : 18, "local": 1]>
    choose <slope> (which, a) => (r) {
      r = If <then_branch = t () => (p) { p = local.leak <slope = @slope> (a) }, else_branch = e () => (q) { q = Neg(a) }>(which)
    })");
  const Graph& g = *model.graph;
  REQUIRE(g.node_count() == 2);
  const auto inlined = [&](const char* output) -> const Node& {
    const Node& branching = g.node(g.value(g.find_value(output)).producer);
    const auto captured = implicit_inputs(branching);
    CHECK(std::ranges::all_of(captured, [&](ValueId id) { return g.value(id).name == "x"; }));
    CHECK(captured.size() == 2);
    const Graph& branch = *branching.attributes.get_graph("then_branch");
    REQUIRE(branch.topological_order().size() == 1);
    return branch.node(branch.topological_order()[0]);
  };
  CHECK(inlined("y").op_type == "LeakyRelu");
  CHECK(inlined("y").attributes.get_float("alpha") == 0.5f);
  CHECK(inlined("z").op_type == "LeakyRelu");
  CHECK(inlined("z").attributes.get_float("alpha") == 0.25f);
}

TEST_CASE("functions whose text multiplies are refused") {
  const std::string million(1'000'000, 's');
  const auto refused = [&](const std::string& call, const std::string& body) {
    std::string text = "<opset_import: [\"\": 17, \"l\": 1]> g (x) => (x300) {";
    for (int i = 0; i < 300; ++i) text += cat("x", i + 1, " = l.f", call, "(", i == 0 ? "x" : cat("x", i), ")\n");
    text += cat("} <domain: \"l\", opset_import: [\"\": 17]> ", body);
    return contains(failure(text), "expand to more than");
  };
  for (const std::string value : {"value_string = \"@\"", "value_strings = [\"a\", \"@\"]"}) {
    std::string body = "f (a) => (b) { c = Constant<" + value + ">() b = Identity(a) }";
    CHECK(refused("", body.replace(body.find('@'), 1, million)));
  }
  // What a call gives is copied to each node that refers to it.
  std::string body = "f <s> (a) => (b) { b = Identity(a)";
  for (int i = 0; i < 1000; ++i) body += cat("\nc", i, " = Constant<value_string: string = @s>()");
  CHECK(refused(cat("<s = \"", million.substr(0, 2000), "\">"), body + " }"));
}

TEST_CASE("functions that call themselves or explode are refused") {
  CHECK(contains(failure(R"(<opset_import: ["": 17, "l": 1]> g (x) => (y) { y = l.f(x) }
      <domain: "l", opset_import: ["l": 1]> f (a) => (b) { b = l.g(a) }
      <domain: "l", opset_import: ["l": 1]> g (a) => (b) { b = l.f(a) })"),
                 "calls itself"));
  std::string text = R"(<opset_import: ["": 17, "l": 1]> g (x) => (y) { y = l.f0(x) })";
  for (int i = 0; i < 40; ++i)
    text += cat("<domain: \"l\", opset_import: [\"l\": 1]> f", i, " (a) => (b) { t = l.f", i + 1, "(a) b = l.f", i + 1,
                "(t) }");
  CHECK(contains(failure(text), "expand to more than"));
  // Few nodes with long lists.
  text = R"(<opset_import: ["": 17, "l": 1]> g (x) => (y) { y = l.f0(x) })";
  for (int i = 0; i < 12; ++i)
    text += cat("<domain: \"l\", opset_import: [\"l\": 1]> f", i, " (a) => (b) { t = l.f", i + 1, "(a) b = l.f", i + 1,
                "(t) }");
  std::string list;
  for (int i = 0; i < 12000; ++i) list += cat(i > 0 ? ", " : "", i);
  text += cat("<domain: \"l\", opset_import: [\"\": 17]> f12 (a) => (b) { b = Op<v = [", list, "]>(a) }");
  CHECK(contains(failure(text), "or 268435456 bytes of them"));
}

TEST_CASE("a lone function keeps references and defaults") {
  const FunctionDef f =
      parse_function("Gelu <approximate: string = \"none\", k> (X) => (Y) { Y = Op <a = @approximate> (X) }", 20);
  CHECK(f.name == "Gelu");
  CHECK(f.defaults.get_string("approximate") == "none");
  CHECK(f.attributes == std::vector<std::string>{"k"});
  CHECK(f.body.nodes.at(0).attribute_refs.at(0).source == "approximate");
  CHECK(f.opsets.at("") == 20);
}

TEST_CASE("mistakes name line and column, or the culprit") {
  CHECK(contains(failure("g (x) => (y) {\n  y = Relu x }"), "line 2, column 12"));
  CHECK(contains(failure("g (x) => (y) { y = Relu(x)"), "text ends"));
  CHECK(contains(failure("g (x) => (y) { y = Relu(nope) }"), "nope"));
  CHECK(contains(failure("g (x) => (y, z) { y = Relu(x) }"), "'z'"));
  CHECK(contains(failure("g (x) => (y) { y = Relu(x) y = Neg(x) }"), "more than once"));
  CHECK(contains(failure("g (x, x) => (y) { y = Relu(x) }"), "two inputs"));
  CHECK(contains(failure("g (x) => (y) { y = Add(x, z) z = Neg(y) }"), "cycle"));
  CHECK(contains(failure("g (x) => (y) <float[3] w = {1, 2}> { y = Relu(x) }"), "needs 3 values"));
  CHECK(contains(failure("g (x) => (y) <int8[1] w = {300}> { y = Relu(x) }"), "out of range"));
  CHECK(contains(failure("g (x) => (y) <int4[1] w = {9}> { y = Relu(x) }"), "out of range"));
  CHECK(contains(failure("g (x) => (y) { y = Relu <a = @b> (x) }"), "outside of a function"));
  CHECK(contains(failure("g (x) => (y) { y = Relu <a = \"open> (x) }"), "not closed"));
  CHECK(contains(failure("g (x) => (y) { y = Op <a = [1, \"b\"]> (x) }"), "mixes"));
  std::string deep = "g (c) => (y) { y = If <b = ";
  for (int i = 0; i < 100; ++i) deep += "h () => (y) { y = If <b = ";
  CHECK(contains(failure(deep), "nested deeper"));
}

TEST_CASE("printed text reads back as the same text") {
  const char* text = R"(g (float[N,3] x, int64 i = {2}) => (float[N,?] y)
    <float[2] w = {1, 2.5}, string[1] s = {"a\"b"}, double[1] d = {0.1}, uint64[1] u = {18446744073709551615}>
    {
      ["a/b"] "t:0" = Gemm <beta = 1.5, alpha: float = inf, k = [1, 2], e: floats = []> (x, w, "")
      y = com.microsoft.Foo <b = t () => (p) { p = Neg("t:0") }> ("t:0", i, d, s, u)
    })";
  const Model first = parse_model(text);
  const std::string printed = to_text(*first.graph, true);
  CHECK(contains(printed, "alpha: float = inf, beta = 1.5"));
  CHECK(contains(printed, "\"t:0\""));
  const Model second = parse_model(printed);
  CHECK(to_text(*second.graph, true) == printed);
  CHECK(second.graph->node(0).attributes == first.graph->node(0).attributes);
}

TEST_CASE("long tensors are abbreviated unless asked for") {
  std::string values = "0";
  for (int i = 1; i < 17; ++i) values += cat(", ", i);
  const Model model = parse_model("g (x) => (y) <int32[17] w = {" + values + "}> { y = Add(x, w) }");
  CHECK(contains(to_text(*model.graph), "int32[17] w = {...}"));
  CHECK(contains(to_text(*model.graph, true), ", 16}"));
}
