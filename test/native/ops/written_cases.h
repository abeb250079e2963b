#pragma once
// Cases of operators that scripts write into test/fixtures, four lines each and an empty one:
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

/// The tensors of `float[2] x = {1, 2}, int64 n = {3}`, and their names joined by ", ".
std::vector<Value> tensors_of(const std::string& text, std::string* names = nullptr);

}  // namespace infernode::test
