#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/definition.h"
#include "onnx/structure_budget.h"
#include "onnx/tensor_reader.h"
#include "onnx/wire.h"

namespace infernode::onnx {

/// Makes definitions of GraphProtos, FunctionProtos and what they hold. Nesting is bounded.
class GraphReader {
 public:
  /// What is read is taken from `budget`. `checkpoint`, where there is one, is called at each node.
  GraphReader(const TensorReader& tensors, StructureBudget& budget, const std::function<void()>& checkpoint = {})
      : tensors_(tensors), budget_(budget), checkpoint_(checkpoint) {}

  /// Adds what the message holds to `out`: parts of one graph may come in several messages.
  void read_graph(Message proto, graph::GraphDef& out, int depth = 0) const;
  graph::FunctionDef read_function(Message proto) const;
  graph::ValueType read_type(Message proto, const std::string& name, int depth = 0) const;

  static void read_opset(Message proto, std::map<std::string, std::int64_t>& opsets);

 private:
  graph::NodeDef read_node(Message proto, int depth) const;
  void read_attribute(Message proto, graph::NodeDef& node, int depth) const;
  /// False where the message has no name or no type: it says nothing.
  bool read_value(Message proto, graph::NamedType& out) const;
  const TensorReader& tensors_;
  StructureBudget& budget_;
  std::function<void()> checkpoint_;
};

}  // namespace infernode::onnx
