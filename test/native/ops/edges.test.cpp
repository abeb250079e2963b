// Operators at the edges of their domain (test/fixtures/operator-edges.txt, written by scripts/edges/make_cases.py).

#include <fstream>
#include <sstream>

#include "graph/text.h"
#include "ops/op_test.h"

namespace infernode::test {
namespace {

struct Case {
  std::string op, title, nodes, inputs, outputs;
  std::int64_t opset = 0;
  double tolerance = 0;
};

/// The tensors of `float[2] x = {1, 2}, int64 n = {3}`, and their names joined by ", ".
std::vector<Value> tensors_of(const std::string& text, std::string* names = nullptr) {
  const auto graph = graph::parse_model(cat("g (", text, ") => () {}")).graph;
  std::vector<Value> out;
  for (graph::ValueId id : graph->inputs()) {
    out.push_back(graph->value(id).constant);
    if (names) *names += cat(names->empty() ? "" : ", ", graph->value(id).name);
  }
  return out;
}

std::vector<Case> read_cases() {
  std::ifstream file(INFERNODE_TEST_FIXTURES "/operator-edges.txt");
  REQUIRE(file.good());
  std::vector<Case> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    Case next;
    next.title = line;
    next.op = line.substr(0, line.find(' '));
    const std::size_t last = line.rfind('|');
    next.tolerance = std::stod(line.substr(last + 1));
    next.opset = std::stoll(line.substr(line.rfind('|', last - 1) + 1));
    for (std::string* part : {&next.nodes, &next.inputs, &next.outputs}) REQUIRE(std::getline(file, *part));
    out.push_back(std::move(next));
  }
  return out;
}

/// An error that tells the caller of his fault, whether the inputs are fed or are constants of the graph.
void check_refused(const Case& c) {
  std::string names;
  const std::vector<Value> inputs = tensors_of(c.inputs, &names);
  const auto refuse = [&](const std::string& text, const std::vector<Value>& feeds) {
    CAPTURE(text);
    try {
      for (const Value& value : run_op(text, c.opset, feeds)) FAIL_CHECK("it answered ", value.to_string());
    } catch (const Error& error) {
      const ErrorCode code = error.code();
      CHECK_MESSAGE((code == ErrorCode::InvalidArgument || code == ErrorCode::ShapeMismatch ||
                     code == ErrorCode::InvalidModel || code == ErrorCode::OutOfMemory),
                    cat(to_string(code), ": ", error.message()));
      CHECK(error.message().size() > 10);
    }
  };
  refuse(cat("(", names, ") => (y0) { ", c.nodes, " }"), inputs);
  refuse(cat("() => (y0) <", c.inputs, "> { ", c.nodes, " }"), {});
}

}  // namespace

TEST_CASE("operators answer at the edges of their domain as the standard, or else numpy, says") {
  const std::vector<Case> cases = read_cases();
  CHECK(cases.size() > 1000);
  for (const Case& c : cases) {
    CAPTURE(c.title);
    if (c.outputs == "refused") {
      check_refused(c);
      continue;
    }
    std::string names, results;
    const std::vector<Value> inputs = tensors_of(c.inputs, &names);
    const std::vector<Value> expected = tensors_of(c.outputs, &results);
    check_op(cat("(", names, ") => (", results, ") { ", c.nodes, " }"), c.opset, inputs, expected, c.tolerance);
  }
}

}  // namespace infernode::test
