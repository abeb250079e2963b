#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "kernel/op_schema.h"

namespace infernode::kernel {

/// What an operator's shape inference sees and says. The same function serves symbolic inference at load and concrete
/// planning at run: dims are graph::Dim either way. Element types of outputs whose constraint an input binds are set
/// before `infer` runs; infer sets the rest. Throws ShapeMismatch or InvalidModel (via fail) on a contradiction; says
/// nothing where it cannot know.
class InferContext {
 public:
  virtual ~InferContext() = default;
  virtual const graph::Node& node() const = 0;
  virtual std::int64_t since_version() const = 0;  ///< of the schema in force
  const graph::Attributes& attributes() const { return node().attributes; }

  std::size_t input_count() const { return node().inputs.size(); }
  std::size_t output_count() const { return node().outputs.size(); }
  bool has_input(std::size_t i) const { return i < input_count() && node().inputs[i] != graph::kNoValue; }
  bool has_output(std::size_t i) const { return i < output_count() && node().outputs[i] != graph::kNoValue; }

  /// Unknown kind for an absent input.
  virtual const graph::ValueType& input_type(std::size_t i) const = 0;
  tensor::DType input_dtype(std::size_t i) const { return input_type(i).elem; }
  /// nullptr where absent, no tensor, or of unknown rank.
  const graph::SymShape* input_shape(std::size_t i) const;
  /// Known contents (initializer or evaluated), nullptr otherwise.
  virtual const tensor::Tensor* input_constant(std::size_t i) const = 0;
  /// Elements of an integer tensor of rank 0 or 1 with at most 64 elements, known or symbolic; nullopt where nothing is
  /// known. Also answers from input_constant.
  virtual std::optional<std::vector<graph::Dim>> input_contents(std::size_t i) const = 0;

  /// What is known of an output so far: bound by the schema or set by this inference.
  virtual const graph::ValueType& output_type(std::size_t o) const = 0;
  virtual void set_output_type(std::size_t o, graph::ValueType type) = 0;
  virtual void set_output_dtype(std::size_t o, tensor::DType dtype) = 0;
  virtual void set_output_shape(std::size_t o, graph::SymShape shape) = 0;
  void set_output_shape(std::size_t o, const tensor::Shape& shape) { set_output_shape(o, graph::to_sym(shape)); }
  /// Contents of an integer output of rank 0 or 1, for chains of shape arithmetic.
  virtual void set_output_contents(std::size_t o, std::vector<graph::Dim> contents) = 0;
  /// Types of the outputs of a subgraph attribute given the types of its inputs; empty where it cannot be inferred.
  virtual std::vector<graph::ValueType> infer_subgraph(std::string_view attribute,
                                                       std::span<const graph::ValueType> inputs) = 0;

 protected:
  InferContext() = default;
};

/// Common inference functions, usable directly as InferFn.
void infer_same_as_first(InferContext& ctx);  ///< every output has input 0's dtype and shape
void infer_broadcast(
    InferContext& ctx);  ///< output 0: numpy broadcast of all inputs' shapes; dtype of input 0 unless bound
graph::SymShape broadcast_shapes(
    std::span<const graph::SymShape* const> shapes);  ///< throws ShapeMismatch; unknown dims stay unknown

}  // namespace infernode::kernel
