#include "fuzz/ort_tree.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <stdexcept>

#include "onnx/ort_schema.h"

namespace infernode::fuzz {
namespace {

namespace ort = onnx::ort;
using What = OrtSpot::What;

enum class Form : std::uint8_t { Scalar, Table, Tables, Text, Texts, Numbers };

/// What a field of a table is. `size`: of the number, or of each.
struct Rule {
  OrtKind table;
  int field;
  Form form;
  std::size_t size = 4;
  OrtKind leads = OrtKind::None;
};

constexpr Rule kRules[] = {
    {OrtKind::Session, ort::session::kVersion, Form::Text},
    {OrtKind::Session, ort::session::kModel, Form::Table, 4, OrtKind::Model},
    {OrtKind::Session, ort::session::kTypeNames, Form::Table, 4, OrtKind::TypeNames},
    {OrtKind::Model, ort::model::kIrVersion, Form::Scalar, 8},
    {OrtKind::Model, ort::model::kOpsetImport, Form::Tables, 4, OrtKind::Opset},
    {OrtKind::Model, ort::model::kProducerName, Form::Text},
    {OrtKind::Model, ort::model::kDomain, Form::Text},
    {OrtKind::Model, ort::model::kGraph, Form::Table, 4, OrtKind::Graph},
    {OrtKind::Model, ort::model::kMetadata, Form::Tables, 4, OrtKind::Metadata},
    {OrtKind::Graph, ort::graph::kInitializers, Form::Tables, 4, OrtKind::Tensor},
    {OrtKind::Graph, ort::graph::kValues, Form::Tables, 4, OrtKind::Value},
    {OrtKind::Graph, ort::graph::kNodes, Form::Tables, 4, OrtKind::Node},
    {OrtKind::Graph, ort::graph::kEdges, Form::Tables, 4, OrtKind::Edges},
    {OrtKind::Graph, ort::graph::kInputs, Form::Texts},
    {OrtKind::Graph, ort::graph::kOutputs, Form::Texts},
    {OrtKind::Graph, ort::graph::kSparseInitializers, Form::Tables, 4, OrtKind::Sparse},
    {OrtKind::Node, ort::node::kName, Form::Text},
    {OrtKind::Node, ort::node::kDomain, Form::Text},
    {OrtKind::Node, ort::node::kSinceVersion, Form::Scalar},
    {OrtKind::Node, ort::node::kIndex, Form::Scalar},
    {OrtKind::Node, ort::node::kOpType, Form::Text},
    {OrtKind::Node, ort::node::kType, Form::Scalar},
    {OrtKind::Node, ort::node::kInputs, Form::Texts},
    {OrtKind::Node, ort::node::kOutputs, Form::Texts},
    {OrtKind::Node, ort::node::kAttributes, Form::Tables, 4, OrtKind::Attribute},
    {OrtKind::Node, ort::node::kInputCounts, Form::Numbers},
    {OrtKind::Node, ort::node::kImplicitInputs, Form::Texts},
    {OrtKind::Edges, ort::edges::kNode, Form::Scalar},
    {OrtKind::Edges, ort::edges::kInputs, Form::Numbers, 12},
    {OrtKind::Edges, ort::edges::kOutputs, Form::Numbers, 12},
    {OrtKind::Value, ort::value::kName, Form::Text},
    {OrtKind::Value, ort::value::kType, Form::Table, 4, OrtKind::Type},
    {OrtKind::Type, ort::type::kKind, Form::Scalar, 1},
    {OrtKind::TensorType, ort::tensor_type::kElement, Form::Scalar},
    {OrtKind::TensorType, ort::tensor_type::kShape, Form::Table, 4, OrtKind::Shape},
    {OrtKind::SequenceType, ort::sequence_type::kElement, Form::Table, 4, OrtKind::Type},
    {OrtKind::MapType, ort::map_type::kKey, Form::Scalar},
    {OrtKind::MapType, ort::map_type::kValue, Form::Table, 4, OrtKind::Type},
    {OrtKind::Shape, ort::shape::kDims, Form::Tables, 4, OrtKind::Dim},
    {OrtKind::Dim, ort::dim::kValue, Form::Table, 4, OrtKind::DimValue},
    {OrtKind::DimValue, ort::dim_value::kKind, Form::Scalar, 1},
    {OrtKind::DimValue, ort::dim_value::kSize, Form::Scalar, 8},
    {OrtKind::DimValue, ort::dim_value::kSymbol, Form::Text},
    {OrtKind::Tensor, ort::tensor::kName, Form::Text},
    {OrtKind::Tensor, ort::tensor::kDims, Form::Numbers, 8},
    {OrtKind::Tensor, ort::tensor::kType, Form::Scalar},
    {OrtKind::Tensor, ort::tensor::kRaw, Form::Numbers, 1},
    {OrtKind::Tensor, ort::tensor::kStrings, Form::Texts},
    {OrtKind::Tensor, ort::tensor::kExternalOffset, Form::Scalar, 8},
    {OrtKind::Sparse, ort::sparse::kValues, Form::Table, 4, OrtKind::Tensor},
    {OrtKind::Sparse, ort::sparse::kIndices, Form::Table, 4, OrtKind::Tensor},
    {OrtKind::Sparse, ort::sparse::kDims, Form::Numbers, 8},
    {OrtKind::Attribute, ort::attribute::kName, Form::Text},
    {OrtKind::Attribute, ort::attribute::kType, Form::Scalar},
    {OrtKind::Attribute, ort::attribute::kFloat, Form::Scalar},
    {OrtKind::Attribute, ort::attribute::kInt, Form::Scalar, 8},
    {OrtKind::Attribute, ort::attribute::kString, Form::Text},
    {OrtKind::Attribute, ort::attribute::kTensor, Form::Table, 4, OrtKind::Tensor},
    {OrtKind::Attribute, ort::attribute::kGraph, Form::Table, 4, OrtKind::Graph},
    {OrtKind::Attribute, ort::attribute::kFloats, Form::Numbers},
    {OrtKind::Attribute, ort::attribute::kInts, Form::Numbers, 8},
    {OrtKind::Attribute, ort::attribute::kStrings, Form::Texts},
    {OrtKind::Attribute, ort::attribute::kTensors, Form::Tables, 4, OrtKind::Tensor},
    {OrtKind::Attribute, ort::attribute::kGraphs, Form::Tables, 4, OrtKind::Graph},
    {OrtKind::Opset, ort::pair::kFirst, Form::Text},
    {OrtKind::Opset, ort::pair::kSecond, Form::Scalar, 8},
    {OrtKind::Metadata, ort::pair::kFirst, Form::Text},
    {OrtKind::Metadata, ort::pair::kSecond, Form::Text},
    {OrtKind::TypeNames, ort::type_names::kOperators, Form::Tables, 4, OrtKind::OperatorNames},
    {OrtKind::OperatorNames, ort::type_names::kOperator, Form::Text},
    {OrtKind::OperatorNames, ort::type_names::kNames, Form::Tables, 4, OrtKind::TypeName},
    {OrtKind::TypeName, ort::type_names::kName, Form::Text},
    {OrtKind::TypeName, ort::type_names::kArguments, Form::Tables, 4, OrtKind::Argument},
    {OrtKind::Argument, ort::type_names::kDirection, Form::Scalar, 1},
    {OrtKind::Argument, ort::type_names::kIndex, Form::Scalar},
};

class Walk {
 public:
  explicit Walk(std::string_view file) : file_(file) { table(follow(0), OrtKind::Session); }
  std::vector<OrtSpot> out;

 private:
  template <class T>
  T load(std::size_t at) const {
    if (at > file_.size() || sizeof(T) > file_.size() - at) throw std::runtime_error("a seed model is cut off");
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }
  std::size_t follow(std::size_t at) const { return at + load<std::uint32_t>(at); }

  /// Where a field is; 0 where the table lacks it.
  std::size_t place(std::size_t table, int field) const {
    const std::size_t layout = table - static_cast<std::size_t>(load<std::int32_t>(table));
    const std::size_t entry = 4 + 2 * static_cast<std::size_t>(field);
    if (entry + 2 > load<std::uint16_t>(layout)) return 0;
    const auto offset = load<std::uint16_t>(layout + entry);
    return offset == 0 ? 0 : table + offset;
  }

  void table(std::size_t at, OrtKind kind) {
    if (!seen_.insert(at).second) return;
    const std::size_t layout = at - static_cast<std::size_t>(load<std::int32_t>(at));
    out.push_back({What::Layout, at, 4, kind, 0, at});
    for (std::size_t e = layout; e < layout + load<std::uint16_t>(layout); e += 2)
      out.push_back({What::Entry, e, 2, kind, 0, at});
    for (const Rule& rule : kRules) {
      if (rule.table != kind) continue;
      if (const std::size_t to = place(at, rule.field); to != 0) field(at, rule, to);
    }
    if (kind == OrtKind::Type) member(at);
  }

  /// The union in a type.
  void member(std::size_t at) {
    const std::size_t kind = place(at, ort::type::kKind), value = place(at, ort::type::kValue);
    if (kind == 0 || value == 0) return;
    const auto held = load<std::uint8_t>(kind);
    const OrtKind leads = held == ort::type::kTensor     ? OrtKind::TensorType
                          : held == ort::type::kSequence ? OrtKind::SequenceType
                                                         : OrtKind::MapType;
    field(at, {OrtKind::Type, ort::type::kValue, Form::Table, 4, leads}, value);
  }

  void field(std::size_t table_at, const Rule& rule, std::size_t at) {
    const auto add = [&](What what, std::size_t where, std::size_t size) {
      out.push_back({what, where, size, rule.table, rule.field, table_at, rule.leads});
    };
    if (rule.form == Form::Scalar) return add(What::Scalar, at, rule.size);
    const std::size_t to = follow(at);
    switch (rule.form) {
      case Form::Table:
        add(What::Offset, at, 4);
        return table(to, rule.leads);
      case Form::Text:
        add(What::Text, at, 4);
        return add(What::Count, to, 4);
      case Form::Numbers: {
        add(What::Numbers, at, rule.size);
        add(What::Count, to, 4);
        for (std::size_t i = 0; i < std::min(load<std::uint32_t>(to), std::uint32_t{8}); ++i)
          add(What::Element, to + 4 + i * rule.size, std::min<std::size_t>(rule.size, 8));
        return;
      }
      default:
        add(What::List, at, 4);
        add(What::Count, to, 4);
        for (std::size_t i = 0; i < load<std::uint32_t>(to); ++i) {
          const std::size_t item = to + 4 + 4 * i;
          add(rule.form == Form::Texts ? What::Text : What::Offset, item, 4);
          if (rule.form == Form::Tables) table(follow(item), rule.leads);
        }
    }
  }

  std::string_view file_;
  std::set<std::size_t> seen_;
};

}  // namespace

std::vector<OrtSpot> ort_spots(std::string_view file) { return std::move(Walk(file).out); }

}  // namespace infernode::fuzz
