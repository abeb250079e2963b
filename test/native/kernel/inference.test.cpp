#include "kernel/inference.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "graph/text.h"
#include "kernel/test_ops.h"

namespace infernode::kernel {
namespace {

using graph::Dim;
using graph::Graph;
using graph::ValueType;
using tensor::DType;
using tensor::Tensor;

const Registry& registry() {
  static const Registry all = test::make_registry();
  return all;
}

std::shared_ptr<Graph> parse(std::string_view text) { return graph::parse_model(text, 13).graph; }

std::string type_of(const Graph& graph, std::string_view name) {
  const ValueType& type = graph.value(graph.find_value(name)).type;
  return cat(type.to_string(), type.shape ? graph::to_string(*type.shape) : "");
}

std::size_t index(const Graph& graph, std::string_view name) {
  return static_cast<std::size_t>(graph.find_value(name));
}

template <class F>
Error caught(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {ErrorCode::Internal, ""};
}

TEST_CASE("Types and symbolic shapes pass through a graph") {
  auto graph = parse("g (float[N,1] A, float[3] B) => (C) { T = Add(A, B) C = Add(T, T) }");
  infer_graph(*graph, registry());
  CHECK(type_of(*graph, "T") == "tensor(float)[N,3]");
  CHECK(type_of(*graph, "C") == "tensor(float)[N,3]");
}

TEST_CASE("Elements of shapes are followed, and computed where all inputs are known") {
  auto graph = parse("g (float[N,4] A, float[2,5] B) => (S, T) { S = Shape(A) U = Shape(B) T = Add(U, U) }");
  infer_graph(*graph, registry());
  const InferredGraph found = infer_values(*graph, graph->topological_order(), {}, {}, registry());
  REQUIRE(found.contents[index(*graph, "S")]);
  CHECK(graph::to_string(*found.contents[index(*graph, "S")]) == "[N,4]");
  CHECK_FALSE(found.known[index(*graph, "S")]);
  REQUIRE(found.known[index(*graph, "T")]);
  CHECK(tensor::to_int64_vector(found.known[index(*graph, "T")]) == std::vector<std::int64_t>{4, 10});
}

TEST_CASE("infer_values takes concrete inputs and leaves the graph alone") {
  auto graph = parse("g (float[N,4] A) => (S, C) { S = Shape(A) C = Add(A, A) }");
  const std::vector<ValueType> inputs{ValueType::tensor(DType::Float32, graph::SymShape{7, 4})};
  const InferredGraph found = infer_values(*graph, graph->topological_order(), inputs, {}, registry());
  CHECK(graph::to_string(*found.types[index(*graph, "C")].shape) == "[7,4]");
  CHECK(tensor::to_int64_vector(found.known[index(*graph, "S")]) == std::vector<std::int64_t>{7, 4});
  CHECK(type_of(*graph, "A") == "tensor(float)[N,4]");
  CHECK(graph->value(graph->find_value("C")).type.kind == ValueType::Kind::Unknown);
}

TEST_CASE("What is inferred outranks what is declared, with a warning") {
  std::string heard;
  const Logger logger(LogSeverity::Warning, "test",
                      [&](LogSeverity, std::string_view, std::string_view message) { heard += message; });
  auto graph = parse("g (float[2,3] A) => (float[2,9] C) { C = Add(A, A) }");
  infer_graph(*graph, registry(), &logger);
  CHECK(type_of(*graph, "C") == "tensor(float)[2,3]");
  CHECK(heard.find("'C' is declared as tensor(float)[2,9] but is tensor(float)[2,3]") != std::string::npos);
}

TEST_CASE("An output of another type than is declared is an error") {
  auto output = parse("g (int64[2] A) => (float[2] C) { C = Add(A, A) }");
  try {
    infer_graph(*output, registry());
    FAIL("it was taken");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidModel);
    CHECK(error.context().output == "C");
    CHECK(error.context().expected == "tensor(int64)");
    CHECK(error.context().actual == "tensor(float)");
  }
}

TEST_CASE("Declarations fill what inference cannot know") {
  auto graph = parse("g (float[2] A) => (float[5] C) { C = Mystery(A) }");
  infer_graph(*graph, registry());
  CHECK(type_of(*graph, "C") == "tensor(float)[5]");
}

TEST_CASE("Unknown operators are left alone") {
  auto graph = parse("g (float[2] A) => (C) { B = Nonsense(A) C = Add(A, B) }");
  infer_graph(*graph, registry());
  CHECK(graph->value(graph->find_value("B")).type.kind == ValueType::Kind::Unknown);
  CHECK(type_of(*graph, "C") == "tensor(float)");
}

TEST_CASE("Initializers that a feed may override are no constants") {
  auto graph = parse("g (int64[2] A) => (C) { C = Add(A, A) }");
  const auto a = graph->inputs()[0];
  graph->value(a).constant = Tensor::of<std::int64_t>({2}, {1, 2});
  graph->value(a).is_input = true;
  CHECK_FALSE(infer_values(*graph, graph->topological_order(), {}, {}, registry()).known[index(*graph, "C")]);
  graph->value(a).is_input = false;
  CHECK(infer_values(*graph, graph->topological_order(), {}, {}, registry()).known[index(*graph, "C")]);
}

TEST_CASE("Wrong counts and types of inputs name the node") {
  const auto infer = [](const char* text) { return caught([&] { infer_graph(*parse(text), registry()); }); };
  const Error few = infer("g (float[2] A) => (C) { [node1] C = Add(A) }");
  CHECK(few.code() == ErrorCode::InvalidModel);
  CHECK(few.context().op_type == "Add");
  CHECK(few.message().find("at least 2") != std::string::npos);
  CHECK(infer("g (float[2] A) => (C) { C = Add(A, A, A) }").message().find("at most 2") != std::string::npos);
  CHECK(infer("g (float[2] A) => (C, D) { C, D = Add(A, A) }").message().find("outputs") != std::string::npos);
  CHECK(infer("g (double[2] A) => (C) { C = Add(A, A) }").message().find("tensor(double) for input 'A'") !=
        std::string::npos);
  CHECK(infer("g (float[2] A, int64[2] B) => (C) { C = Add(A, B) }").message().find("same type T") !=
        std::string::npos);
  const Error shapes = infer("g (float[2] A, float[3] B) => (C) { C = Add(A, B) }");
  CHECK(shapes.code() == ErrorCode::ShapeMismatch);
  CHECK(shapes.context().op_type == "Add");
}

TEST_CASE("Outputs of very many dims are refused") {
  std::string dims = "1";
  for (int i = 1; i < 64; ++i) dims += ",1";
  const auto model = [](const std::string& shape) {
    return "g (float[" + shape + "] A, float[1] B) => (C) { C = Add(A, B) }";
  };
  infer_graph(*parse(model(dims)), registry());
  const Error error = caught([&] { infer_graph(*parse(model(dims + ",1")), registry()); });
  CHECK(error.code() == ErrorCode::InvalidModel);
  CHECK(error.context().op_type == "Add");
  CHECK(error.message().find("65 dims") != std::string::npos);
}

TEST_CASE("Subgraphs see types and contents from outside, and give theirs back") {
  auto graph = parse(
      "g (float[N,2] A, float[N,2] B) => (C) { S = Shape(A) C = Call<body = inner (x) => (y) { T = Add(S, S) y = "
      "Add(x, B) }>(A) }");
  infer_graph(*graph, registry());
  CHECK(type_of(*graph, "C") == "tensor(float)[N,2]");
  const auto inner = graph::subgraphs(graph->node(1)).at(0);
  CHECK(type_of(*inner, "x") == "tensor(float)[N,2]");
  CHECK(type_of(*inner, "T") == "tensor(int64)[2]");
}

TEST_CASE("In bodies with inputs a number that is declared outranks a symbol from outside, and symbols take its name") {
  auto graph = parse(
      "g (float[N,M] A) => (C) { C = Call<body = inner (float[2,q] x) => (float[2,q] y) { y = Mystery(x) }>(A) }");
  infer_graph(*graph, registry());
  const auto inner = graph::subgraphs(graph->node(0)).at(0);
  CHECK(type_of(*inner, "x") == "tensor(float)[2,M]");
  CHECK(type_of(*inner, "y") == "tensor(float)[2,M]");
  CHECK(type_of(*graph, "C") == "tensor(float)[2,M]");
}

TEST_CASE("Outputs of a body that never runs follow from what would come in") {
  auto graph = parse("g (float[N,q] A, float[p] B) => (float[N,2] C, float[3,p] D) { C = Mystery(A) D = Mystery(B) }");
  infer_graph(*graph, registry());
  const std::vector<ValueType> inputs{ValueType::tensor(DType::Float32, graph::SymShape{5, 7}),
                                      ValueType::tensor(DType::Float32, graph::SymShape{4})};
  const auto types = infer_outputs(*graph, graph->topological_order(), inputs, {}, registry());
  CHECK(graph::to_string(*types.at(0).shape) == "[5,2]");
  CHECK(graph::to_string(*types.at(1).shape) == "[3,4]");
}

TEST_CASE("What contradicts itself in a body is left to the run") {
  auto graph = parse(
      "g (float[2] A) => (C) { C = Call<body = inner (x) => (y) { y = Add(x, B) }>(A) D = Add(A, A) B = Add(A3, A3) A3 "
      "= Mystery(A) }");
  graph->value(graph->find_value("A3")).type = ValueType::tensor(DType::Float32, graph::SymShape{3});
  std::string heard;
  const Logger logger(LogSeverity::Info, "test",
                      [&](LogSeverity, std::string_view, std::string_view message) { heard += message; });
  infer_graph(*graph, registry(), &logger);
  CHECK(type_of(*graph, "C") == "tensor(float)");
  CHECK(type_of(*graph, "D") == "tensor(float)[2]");
  CHECK(heard.find("Add producing 'y' cannot run as it is") != std::string::npos);
  // Its signature is checked all the same.
  CHECK(caught([&] {
          infer_graph(*parse("g (float[2] A) => (C) { C = Call<body = inner (x) => (y) { y = Add(x) }>(A) }"),
                      registry());
        }).code() == ErrorCode::InvalidModel);
}

TEST_CASE("broadcast_shapes keeps what is sure") {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  const graph::SymShape a{n, 1, 3}, b{m, 3}, c{5, 1, 1};
  const graph::SymShape* ab[] = {&a, &b};
  CHECK(graph::to_string(broadcast_shapes(ab)) == "[n,m,3]");
  const graph::SymShape* ac[] = {&a, &c};
  CHECK(graph::to_string(broadcast_shapes(ac)) == "[5,1,3]");
  const graph::SymShape d{n}, e{m};
  const graph::SymShape* de[] = {&d, &e};
  CHECK(graph::to_string(broadcast_shapes(de)) == "[max(m, n)]");
  const graph::SymShape u{Dim::unknown()};
  const graph::SymShape* du[] = {&d, &u};
  CHECK(graph::to_string(broadcast_shapes(du)) == "[?]");
  const graph::SymShape f{2}, g{3};
  const graph::SymShape* fg[] = {&f, &g};
  CHECK_THROWS_AS(broadcast_shapes(fg), Error);
}

TEST_CASE("evaluate_graph runs nodes and subgraphs and names who failed") {
  RunContext run;
  run.allocator = &tensor::host_allocator();
  auto graph = parse(
      "g (float[2] A, float[2] B) => (C) { D = Add(A, B) C = Call<body = inner (x) => (y) { y = Add(x, B) }>(D) }");
  const std::vector<tensor::Value> inputs{Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({2}, {10, 20})};
  const auto out = evaluate_graph(*graph, inputs, {}, registry(), run);
  CHECK(out.at(0).tensor().data<float>()[1] == 42);

  const std::vector<tensor::Value> wrong{Tensor::of<float>({2}, {1, 2}), Tensor::of<float>({1}, {10})};
  const Error error = caught([&] { evaluate_graph(*graph, wrong, {}, registry(), run); });
  CHECK(error.code() == ErrorCode::ShapeMismatch);
  CHECK(error.context().op_type == "Add");

  auto unknown = parse("g (float[2] A) => (C) { C = Mystery(A) }");
  CHECK(caught([&] { evaluate_graph(*unknown, inputs, {}, registry(), run); }).code() ==
        ErrorCode::UnsupportedOperator);
}

TEST_CASE("A cancelled run stops before the next node") {
  RunContext run;
  run.allocator = &tensor::host_allocator();
  CancelToken token;
  token.cancel();
  run.cancel = &token;
  auto graph = parse("g (float[1] A) => (C) { C = Add(A, A) }");
  const std::vector<tensor::Value> inputs{Tensor::of<float>({1}, {1})};
  CHECK(caught([&] { evaluate_graph(*graph, inputs, {}, registry(), run); }).code() == ErrorCode::Aborted);
}

}  // namespace
}  // namespace infernode::kernel
