#pragma once
// The InferContext that infer_graph and evaluate_node hand to an operator's inference. Internal to kernel/.

#include <optional>
#include <string_view>
#include <vector>

#include "kernel/infer_context.h"
#include "kernel/registry.h"

namespace infernode::kernel {

using Contents = std::optional<std::vector<graph::Dim>>;
inline constexpr std::int64_t kMaxContents = 64;

/// Elements of a tensor as Dims where it is an integer or bool tensor of rank 0 or 1 with at most kMaxContents
/// elements.
Contents contents_of(const tensor::Tensor& tensor);
/// The tensor that fully known contents stand for; an empty Tensor where some element is symbolic or the type is not an
/// integer tensor of known shape.
tensor::Tensor tensor_of(const std::vector<graph::Dim>& contents, const graph::ValueType& type);

class SubgraphInference {
 public:
  virtual ~SubgraphInference() = default;
  virtual std::vector<graph::ValueType> infer_subgraph(const graph::Node& node, std::string_view attribute,
                                                       std::span<const graph::ValueType> inputs) = 0;
};

/// Inference of one node: inputs in, output types and contents out. Everything passed in must outlive it.
class NodeInference final : public InferContext {
 public:
  struct Input {
    const graph::ValueType* type = nullptr;    ///< null: absent
    const tensor::Tensor* constant = nullptr;  ///< null: not known
    const Contents* contents = nullptr;        ///< null: not known
  };

  explicit NodeInference(SubgraphInference* subgraphs) : subgraphs_(subgraphs) {}
  /// Begins a node; the caller then fills in `input(i)`. May be called again for the next node.
  void reset(const graph::Node& node, const OpSchema& schema);
  Input& input(std::size_t i) { return inputs_[i]; }
  /// Binds output types by the schema, then calls the operator's own function.
  void infer();
  const graph::ValueType& result(std::size_t o) const { return types_[o]; }
  Contents& contents(std::size_t o) { return contents_[o]; }

  const graph::Node& node() const override { return *node_; }
  std::int64_t since_version() const override { return schema_->since_version; }
  const graph::ValueType& input_type(std::size_t i) const override;
  const tensor::Tensor* input_constant(std::size_t i) const override;
  std::optional<std::vector<graph::Dim>> input_contents(std::size_t i) const override;
  const graph::ValueType& output_type(std::size_t o) const override;
  void set_output_type(std::size_t o, graph::ValueType type) override;
  void set_output_dtype(std::size_t o, tensor::DType dtype) override;
  void set_output_shape(std::size_t o, graph::SymShape shape) override;
  void set_output_contents(std::size_t o, std::vector<graph::Dim> contents) override;
  std::vector<graph::ValueType> infer_subgraph(std::string_view attribute,
                                               std::span<const graph::ValueType> inputs) override;

 private:
  void bind_outputs();
  const graph::Node* node_ = nullptr;
  const OpSchema* schema_ = nullptr;
  std::vector<Input> inputs_;
  SubgraphInference* subgraphs_;
  std::vector<graph::ValueType> types_;
  std::vector<Contents> contents_;
};

/// Arity of the node and types of its inputs against the schema; throws InvalidModel. `types[i]` null: absent.
void check_signature(const graph::Graph& graph, const graph::Node& node, const OpSchema& schema,
                     std::span<const graph::ValueType* const> types);

/// The schema of a node; UnsupportedOperator where there is none.
const OpSchema& schema_of(const graph::Graph& graph, const graph::Node& node, const Registry& registry);

/// Adds the node's name and operator to an error that does not carry them yet.
void add_node_context(Error& error, const graph::Graph& graph, const graph::Node& node);

}  // namespace infernode::kernel
