#pragma once
// Cases of operators, from scripts in test/fixtures or from tests, four lines each and an empty one:
//   operator | what the case shows | opset | tolerance
//   the nodes: y0 = Abs(x)
//   the inputs: float[2] x = {-1, 2}
//   the outputs: float[2] y0 = {1, 2}, or "refused", or "unsupported"

#include "ops/op_test.h"

namespace infernode::test {

struct WrittenCase {
  std::string op, title, nodes, inputs, outputs;
  std::int64_t opset = 0;
  double tolerance = 0;

  bool fails() const { return outputs == "refused" || outputs == "unsupported"; }
};

std::vector<WrittenCase> read_cases(const std::string& file_name);

/// Cases of an operator at the edges of its domain that stand in its own test, in the form of those in
/// test/fixtures/operator-edges.txt, beside which edges.test.cpp runs them:
///   const EdgeCases edges(R"(
///   Softsign | empty | 22 | 1e-05
///   y0 = Softsign(x)
///   float[2,0,3] x = {}
///   float[2,0,3] y0 = {}
///   )");
class EdgeCases {
 public:
  explicit EdgeCases(const char* text) { texts().push_back(text); }
  /// Those of the fixture and of every test.
  static std::vector<WrittenCase> all();

 private:
  static std::vector<const char*>& texts();
};

/// Runs each case of the file, of which there are more than `least`.
void check_cases(const std::string& file_name, std::size_t least);

/// Runs a node of com.microsoft's operator `op` with some inputs, of which an empty Value is absent: it ends in an
/// error. The test looks at output Y.
void refuses(const char* op, const char* attributes, const std::vector<Value>& inputs, ErrorCode code, const char* what,
             const char* outputs = "Y, K, V");

/// The tensors of `float[2] x = {1, 2}, int64 n = {3}`, and their names joined by ", ".
std::vector<Value> tensors_of(const std::string& text, std::string* names = nullptr);

}  // namespace infernode::test
