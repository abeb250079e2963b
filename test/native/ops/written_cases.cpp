#include "ops/written_cases.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "graph/text.h"

namespace infernode::test {

std::vector<Value> tensors_of(const std::string& text, std::string* names) {
  const auto graph = graph::parse_model(cat("g (", text, ") => () {}")).graph;
  std::vector<Value> out;
  for (graph::ValueId id : graph->inputs()) {
    out.push_back(graph->value(id).constant);
    if (names) *names += cat(names->empty() ? "" : ", ", graph->value(id).name);
  }
  return out;
}

namespace {

/// Lines may be indented.
std::vector<WrittenCase> parse_cases(std::istream& text) {
  const auto read = [&](std::string& line) {
    if (!std::getline(text, line)) return false;
    line.erase(0, line.find_first_not_of(' '));
    return true;
  };
  std::vector<WrittenCase> out;
  for (std::string line; read(line);) {
    if (line.empty()) continue;
    WrittenCase next;
    next.title = line;
    next.op = line.substr(0, line.find(' '));
    const std::size_t last = line.rfind('|');
    next.tolerance = std::stod(line.substr(last + 1));
    next.opset = std::stoll(line.substr(line.rfind('|', last - 1) + 1));
    for (std::string* part : {&next.nodes, &next.inputs, &next.outputs}) REQUIRE(read(*part));
    out.push_back(std::move(next));
  }
  return out;
}

}  // namespace

std::vector<WrittenCase> read_cases(const std::string& file_name) {
  std::ifstream file(INFERNODE_TEST_FIXTURES "/" + file_name);
  REQUIRE(file.good());
  return parse_cases(file);
}

void check_cases(const std::string& file_name, std::size_t least) {
  const std::vector<WrittenCase> cases = read_cases(file_name);
  CHECK(cases.size() > least);
  for (const WrittenCase& c : cases) {
    CAPTURE(c.title);
    std::string names, results;
    const std::vector<Value> inputs = tensors_of(c.inputs, &names), expected = tensors_of(c.outputs, &results);
    check_op(cat("<ir_version: 8, opset_import: [\"\" : ", c.opset, ", \"com.microsoft\" : 1]> g (", names, ") => (",
                 results, ") { ", c.nodes, " }"),
             c.opset, inputs, expected, c.tolerance);
  }
}

void refuses(const char* op, const char* attributes, const std::vector<Value>& inputs, ErrorCode code, const char* what,
             const char* outputs) {
  std::string names, fed;
  std::vector<Value> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i > 0) names += ", ";
    if (!inputs[i].is_tensor() || !inputs[i].tensor()) continue;
    names += cat("X", i);
    fed += cat(fed.empty() ? "" : ", ", "X", i);
    feeds.push_back(inputs[i]);
  }
  check_op_fails(cat("<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g (", fed, ") => (Y) { ",
                     outputs, " = com.microsoft.", op, "<", attributes, ">(", names, ") }"),
                 21, feeds, code, what);
}

std::vector<const char*>& EdgeCases::texts() {
  static std::vector<const char*> all;
  return all;
}

std::vector<WrittenCase> EdgeCases::all() {
  std::vector<WrittenCase> out = read_cases("operator-edges.txt");
  for (const char* const text : texts()) {
    std::istringstream stream(text);
    for (WrittenCase& next : parse_cases(stream)) out.push_back(std::move(next));
  }
  return out;
}

}  // namespace infernode::test
