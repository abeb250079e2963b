// Every version of every operator, with inputs of the types that it takes and of shapes that it may not: empty, scalar,
// of rank 8, of too few or too many inputs. Settings: campaign.h, and INFERNODE_FUZZ_OPERATOR names the only one to
// take.
#include <doctest/doctest.h>

#include <algorithm>

#include "fuzz/campaign.h"
#include "fuzz/models.h"
#include "onnx/fields.h"

using namespace infernode;
using fuzz::Field;
using fuzz::Kind;
using fuzz::Mutator;
using fuzz::setting;

namespace {

Field number(std::uint32_t field, std::int64_t value) {
  Field out;
  out.number = field;
  out.scalar = static_cast<std::uint64_t>(value);
  return out;
}
Field text(std::uint32_t field, std::string value) {
  Field out;
  out.number = field;
  out.wire = Field::Wire::Bytes;
  out.bytes = std::move(value);
  return out;
}
Field message(std::uint32_t field, Kind kind, std::vector<Field> children) {
  Field out;
  out.number = field;
  out.wire = Field::Wire::Bytes;
  out.kind = kind;
  out.children = std::move(children);
  return out;
}

Field tensor_type(tensor::DType type, Mutator& random) {
  using namespace onnx;
  constexpr std::size_t kRanks[] = {0, 1, 1, 2, 2, 3, 4, 4, 5, 8};
  std::vector<Field> dims;
  for (std::size_t rank = kRanks[random.below(10)]; rank > 0; --rank) {
    const auto dim = static_cast<std::int64_t>(random.below(random.once_in(4) ? 6 : 4));
    dims.push_back(message(shape_field::kDim, Kind::Dim, {number(dim_field::kValue, dim)}));
  }
  return message(type_field::kTensor, Kind::TensorType,
                 {number(tensor_type_field::kElemType, static_cast<std::int64_t>(type)),
                  message(tensor_type_field::kShape, Kind::Shape, std::move(dims))});
}

tensor::DType one_of(tensor::TypeSet types, Mutator& random) {
  std::vector<tensor::DType> all;
  for (int code = 1; code < tensor::kDTypeCount; ++code)
    if (types.contains(static_cast<tensor::DType>(code))) all.push_back(static_cast<tensor::DType>(code));
  // float, the type of most loops, more often than one in fifteen times
  if (types.contains(tensor::DType::Float32) && random.once_in(3)) return tensor::DType::Float32;
  return all.empty() ? tensor::DType::Float32 : all[random.below(all.size())];
}

/// A model of one node.
std::string model_of(const kernel::OpSchema& schema, Mutator& random) {
  using namespace onnx;
  std::vector<tensor::DType> bound;
  for (const kernel::TypeConstraint& constraint : schema.constraints)
    bound.push_back(one_of(constraint.tensor.empty() ? constraint.sequence : constraint.tensor, random));
  const std::size_t least = schema.min_inputs();
  const std::size_t most = std::max(least, std::min(schema.max_inputs(), least + 4));
  std::size_t inputs = least + random.below(most - least + 1);
  if (random.once_in(40)) inputs = random.below(most + 3);

  std::vector<Field> node, graph;
  for (std::size_t i = 0; i < inputs; ++i) {
    const std::string name = random.once_in(12) ? "" : cat("i", i);
    node.push_back(text(node_field::kInput, name));
    if (name.empty()) continue;
    const bool known = !schema.inputs.empty() && i < schema.max_inputs();
    const kernel::TypeConstraint* constraint = known ? &schema.constraints[schema.input(i).constraint] : nullptr;
    const tensor::DType type = known ? bound[schema.input(i).constraint] : tensor::DType::Float32;
    Field held = tensor_type(type, random);
    if (constraint && constraint->tensor.empty() && !constraint->sequence.empty()) {
      held = message(type_field::kSequence, Kind::ElementType,
                     {message(element_type_field::kElemType, Kind::Type, {held})});
    }
    graph.push_back(message(graph_field::kInput, Kind::ValueInfo,
                            {text(value_field::kName, name), message(value_field::kType, Kind::Type, {held})}));
  }
  const std::size_t fewest = schema.min_outputs();
  const std::size_t outputs =
      fewest + random.below(std::clamp<std::size_t>(schema.max_outputs(), fewest, 5) - fewest + 1);
  for (std::size_t o = 0; o < outputs; ++o) {
    node.push_back(text(node_field::kOutput, cat("o", o)));
    graph.push_back(message(graph_field::kOutput, Kind::ValueInfo, {text(value_field::kName, cat("o", o))}));
  }
  node.push_back(text(node_field::kOpType, schema.name));
  node.push_back(text(node_field::kDomain, schema.domain));
  for (Field& attribute : random.attributes_of(schema.name)) node.push_back(std::move(attribute));
  graph.push_back(message(graph_field::kNode, Kind::Node, std::move(node)));
  graph.push_back(text(graph_field::kName, "g"));

  std::vector<Field> opsets{text(opset_field::kDomain, schema.domain),
                            number(opset_field::kVersion, schema.since_version)};
  std::vector<Field> model{number(model_field::kIrVersion, 10), message(model_field::kGraph, Kind::Graph, graph),
                           message(model_field::kOpsetImport, Kind::Opset, std::move(opsets))};
  return fuzz::write(model);
}

}  // namespace

TEST_CASE("operators meet inputs of any shape with answers or errors") {
  fuzz::Campaign campaign;
  Mutator random({}, static_cast<std::uint32_t>(std::stoul(setting("INFERNODE_FUZZ_SEED", "1"))));
  for (const std::string& model : fuzz::seed_models()) random.learn(model);
  for (const auto& [op, models] : fuzz::written_models())
    for (const std::string& model : models) random.learn(model);
  const std::string only = setting("INFERNODE_FUZZ_OPERATOR", "");
  const long rounds = std::stol(setting("INFERNODE_FUZZ_COUNT", "3"));
  for (const kernel::OpSchema* schema : campaign.engine()->registry().schemas()) {
    if (schema->deprecated || (!only.empty() && only != schema->name)) continue;
    for (long round = 0; round < rounds; ++round)
      campaign.meet(model_of(*schema, random), random,
                    cat(schema->domain, " ", schema->name, " version ", schema->since_version));
  }
  campaign.close();
  CHECK(campaign.count(fuzz::Verdict::Stage::Ran) > 0);
}
