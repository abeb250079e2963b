#include "ops/written_cases.h"

#include <fstream>

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

std::vector<WrittenCase> read_cases(const std::string& file_name) {
  std::ifstream file(INFERNODE_TEST_FIXTURES "/" + file_name);
  REQUIRE(file.good());
  std::vector<WrittenCase> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    WrittenCase next;
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

}  // namespace infernode::test
