#pragma once
// How fused operators write their definitions in standard operators (kernel::DefinitionFn).

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/text.h"
#include "tensor/dtype.h"

namespace infernode::ops {

/// The statements of a definition, in text form; values are named as they come.
class Definition {
 public:
  /// Constants are of `type`.
  explicit Definition(tensor::DType type) : type_(tensor::onnx_name(type)) {}

  std::string call(std::string_view op, std::initializer_list<std::string_view> inputs) {
    return calls(op, inputs, 1)[0];
  }
  /// Of several outputs. Absent inputs are "".
  std::vector<std::string> calls(std::string_view op, std::initializer_list<std::string_view> inputs,
                                 std::size_t outputs);
  std::string constant(double value);
  std::string integers(const std::vector<std::int64_t>& values);
  /// `count` copies after one another along axis 2.
  std::string repeat(const std::string& value, std::int64_t count);
  /// What attributes `activation` and `activation_params` (ops/common/activation.h) make of a value.
  std::string activate(const std::string& value, const graph::Attributes& attributes);
  void finish(std::string_view result, std::string_view output = "y");
  const std::string& text() const { return text_; }

 private:
  std::string type_, text_;
  int count_ = 0;
};

/// The name in the definition of a node's input; "" where the node has none.
std::string definition_input(const graph::Node& node, std::size_t i);

}  // namespace infernode::ops
