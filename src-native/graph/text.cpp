#include "graph/text.h"

#include <algorithm>

#include "base/packed.h"
#include "graph/text_scanner.h"
#include "graph/verifier.h"
#include "tensor/dispatch.h"

namespace infernode::graph {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr int kMaxTypeDepth = 16;

/// ONNX's code of a type of attribute; 0 for an unknown or empty name.
int attribute_type(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "",        "float",   "int",    "string",        "tensor",         "graph",      "floats",     "ints",
      "strings", "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};
  const auto at = std::ranges::find(kNames, name);
  return at == std::end(kNames) ? 0 : static_cast<int>(at - std::begin(kNames));
}

class Parser {
 public:
  Parser(std::string_view text, int64_t default_opset) : s_(text) {
    opsets_ = {{"", default_opset}, {"ai.onnx.ml", 5}, {"com.microsoft", 1}};
  }

  Model model() {
    Model out;
    out.info.ir_version = 10;
    if (s_.peek() == '<') header(&out.info, nullptr);
    const GraphDef def = graph();
    std::vector<FunctionDef> functions;
    const auto opsets = opsets_;
    while (s_.peek() != '\0') functions.push_back(function());
    out.info.opsets = opsets;
    out.info.graph_name = def.name;
    out.graph = build_graph(def, opsets);
    if (!functions.empty()) {
      inline_functions(*out.graph, functions);
      out.graph->compact();
      verify(*out.graph);
    }
    return out;
  }

  FunctionDef lone_function() {
    FunctionDef out = function();
    if (s_.peek() != '\0') s_.fail("text after the end of the function");
    return out;
  }

 private:
  void header(ModelInfo* info, FunctionDef* function) {
    s_.expect('<');
    while (!s_.accept('>')) {
      const std::string_view key = s_.identifier("a key of the header");
      s_.expect(':');
      if (key == "opset_import") {
        opsets_.clear();
        pairs([&](std::string domain) { opsets_[normal_domain(domain)] = s_.integer(); });
      } else if (key == "metadata_props") {
        pairs([&](std::string name) {
          std::string value = s_.string();
          if (info) info->metadata.emplace_back(std::move(name), std::move(value));
        });
      } else if (s_.peek() == '"') {
        std::string value = s_.string();
        std::string* target = nullptr;
        if (info && key == "producer_name") target = &info->producer_name;
        if (info && key == "producer_version") target = &info->producer_version;
        if (info && key == "domain") target = &info->domain;
        if (info && key == "doc_string") target = &info->doc;
        if (function && key == "domain") target = &function->domain;
        if (function && key == "overload") target = &function->overload;
        if (function && key == "doc_string") target = &function->body.doc;
        if (!target) s_.fail(cat("unknown key '", key, "'"));
        *target = std::move(value);
      } else {
        const int64_t value = s_.integer();
        if (info && key == "ir_version")
          info->ir_version = value;
        else if (info && key == "model_version")
          info->model_version = value;
        else
          s_.fail(cat("unknown key '", key, "'"));
      }
      if (!s_.accept(',') && s_.peek() != '>') s_.expect('>');
    }
  }

  template <class F>
  void pairs(F&& f) {
    s_.expect('[');
    while (!s_.accept(']')) {
      std::string key = s_.string();
      s_.expect(':');
      f(std::move(key));
      if (!s_.accept(',') && s_.peek() != ']') s_.expect(']');
    }
  }

  FunctionDef function() {
    FunctionDef out;
    if (s_.peek() == '<') header(nullptr, &out);
    if (s_.at_identifier()) out.name = s_.identifier();
    if (s_.accept(':')) out.overload = s_.identifier("an overload");
    if (s_.accept('<')) {
      while (!s_.accept('>')) {
        const size_t at = s_.position();
        std::string name(s_.identifier("an attribute"));
        if (s_.accept(':')) s_.identifier("a type of attribute");
        if (s_.peek() == '=') {
          s_.rewind(at);
          NodeDef holder;
          attribute(holder);
          for (const auto& [key, value] : holder.attributes) out.defaults.set(key, value);
        } else {
          out.attributes.push_back(std::move(name));
        }
        if (!s_.accept(',') && s_.peek() != '>') s_.expect('>');
      }
    }
    out.body.name = out.name;
    out.body.inputs = value_infos(nullptr);
    s_.expect_arrow();
    out.body.outputs = value_infos(nullptr);
    if (s_.accept('<')) initializers(out.body);
    node_list(out.body);
    out.opsets = opsets_;
    return out;
  }

  GraphDef graph() {
    if (++depth_ > kMaxSubgraphDepth) s_.fail(cat("graphs are nested deeper than ", kMaxSubgraphDepth, " levels"));
    GraphDef out;
    if (s_.peek() != '(') out.name = s_.name("the name of a graph");
    out.inputs = value_infos(&out);
    s_.expect_arrow();
    out.outputs = value_infos(nullptr);
    if (s_.accept('<')) initializers(out);
    node_list(out);
    --depth_;
    return out;
  }

  /// `(float[N] x, y, int64 n = {3})`; constants only where `graph` takes them.
  std::vector<NamedType> value_infos(GraphDef* graph) {
    std::vector<NamedType> out;
    s_.expect('(');
    while (!s_.accept(')')) {
      out.push_back(value_info());
      if (graph && s_.accept('=')) graph->initializers.emplace_back(out.back().name, literal(out.back().type));
      if (!s_.accept(',') && s_.peek() != ')') s_.expect(')');
    }
    return out;
  }

  void initializers(GraphDef& graph) {
    while (!s_.accept('>')) {
      NamedType item = value_info();
      if (s_.accept('='))
        graph.initializers.emplace_back(item.name, literal(item.type));
      else
        graph.value_info.push_back(std::move(item));
      if (!s_.accept(',') && s_.peek() != '>') s_.expect('>');
    }
  }

  NamedType value_info() {
    NamedType out;
    if (at_type()) {
      const size_t at = s_.position();
      out.type = type();
      // A value may be called like a type.
      const char next = s_.peek();
      if (next == ',' || next == ')' || next == '>' || next == '=') {
        s_.rewind(at);
        out.type = {};
      }
    }
    out.name = s_.name("the name of a value");
    return out;
  }

  bool at_type() {
    const std::string_view word = s_.peek_identifier();
    return word == "seq" || word == "map" || word == "optional" || word == "sparse_tensor" ||
           tensor::dtype_from_name(word).has_value();
  }

  DType element_type() {
    const std::string_view word = s_.identifier("an element type");
    const auto found = tensor::dtype_from_name(word);
    if (!found) s_.fail(cat("'", word, "' is no element type"));
    return *found;
  }

  ValueType type(int depth = 0) {
    if (depth > kMaxTypeDepth) s_.fail("a type is nested too deep");
    const std::string_view word = s_.peek_identifier();
    if (word == "seq" || word == "optional" || word == "map" || word == "sparse_tensor") {
      s_.identifier();
      s_.expect('(');
      ValueType out;
      if (word == "map") {
        const DType key = element_type();
        s_.expect(',');
        out = ValueType::map(key, type(depth + 1));
      } else if (word == "sparse_tensor") {
        out = type(depth + 1);
        out.kind = ValueType::Kind::SparseTensor;
      } else {
        ValueType inner = type(depth + 1);
        out = word == "seq" ? ValueType::sequence(std::move(inner)) : ValueType::optional(std::move(inner));
      }
      s_.expect(')');
      return out;
    }
    const DType elem = element_type();
    if (!s_.accept('[')) return ValueType::tensor(elem, SymShape{});
    if (s_.accept(']')) return ValueType::tensor(elem);
    SymShape shape;
    do {
      if (s_.accept('?'))
        shape.push_back(Dim::unknown());
      else if (s_.at_identifier() || s_.peek() == '"')
        shape.push_back(Dim::symbol(s_.name()));
      else
        shape.push_back(Dim(s_.integer()));
    } while (s_.accept(','));
    s_.expect(']');
    return ValueType::tensor(elem, std::move(shape));
  }

  /// `{1, 2, 3}` as a tensor of the type; where its rank is unknown, a list. Numbers of complex tensors come in pairs.
  Tensor literal(const ValueType& type) {
    if (!type.is_tensor()) s_.fail("only tensors have literals");
    const size_t start = s_.position();
    std::vector<std::string_view> numbers;
    std::vector<std::string> strings;
    const bool is_string = type.elem == DType::String;
    s_.expect('{');
    while (!s_.accept('}')) {
      if (is_string)
        strings.push_back(s_.string());
      else
        numbers.push_back(s_.number());
      if (!s_.accept(',') && s_.peek() != '}') s_.expect('}');
    }
    const size_t per_element = type.elem == DType::Complex64 || type.elem == DType::Complex128 ? 2 : 1;
    const size_t count = is_string ? strings.size() : numbers.size() / per_element;
    tensor::Shape shape{static_cast<int64_t>(count)};
    if (type.shape) {
      const auto known = to_known(*type.shape);
      if (!known) s_.fail("the dims of a literal must be numbers");
      shape = *known;
    }
    for (int64_t d : shape)
      if (d < 0) s_.fail("a dim is negative");
    if (shape.numel() != static_cast<int64_t>(count) || numbers.size() % per_element != 0) {
      s_.rewind(start);
      s_.fail(cat("a tensor of shape ", shape.dims(), " needs ", shape.numel(), " values, not ", count));
    }
    Tensor out = Tensor::make(type.elem, shape);
    if (is_string)
      std::ranges::move(strings, out.mutable_data<std::string>());
    else
      fill(out, numbers);
    return out;
  }

  void fill(const Tensor& out, const std::vector<std::string_view>& numbers) {
    const DType type = out.dtype();
    if (tensor::is_sub_byte(type)) {
      auto* bytes = static_cast<uint8_t*>(out.mutable_raw());
      std::fill_n(bytes, out.bytes(), uint8_t{0});
      const int bits = static_cast<int>(tensor::bit_size(type));
      const int low = tensor::is_signed_integer(type) ? -(1 << (bits - 1)) : 0;
      const int high = low + (1 << bits) - 1;
      for (size_t i = 0; i < numbers.size(); ++i) {
        int value;
        if (type == DType::Float4E2M1) {
          value = Float4E2M1(s_.parse_number<float>(numbers[i])).bits;
        } else if (type == DType::Float6E2M3) {
          value = Float6E2M3(s_.parse_number<float>(numbers[i])).bits;
        } else if (type == DType::Float6E3M2) {
          value = Float6E3M2(s_.parse_number<float>(numbers[i])).bits;
        } else {
          value = s_.parse_number<int>(numbers[i]);
          if (value < low || value > high) s_.fail(cat("the number ", value, " is out of range"));
        }
        if (bits == 6)
          set_packed<6>(bytes, i, value);
        else if (bits == 4)
          set_packed<4>(bytes, i, value);
        else
          set_packed<2>(bytes, i, value);
      }
      return;
    }
    if (type == DType::Complex64 || type == DType::Complex128) {
      for (size_t i = 0; i < numbers.size(); ++i) {
        const double v = s_.parse_number<double>(numbers[i]);
        if (type == DType::Complex64)
          static_cast<float*>(out.mutable_raw())[i] = static_cast<float>(v);
        else
          static_cast<double*>(out.mutable_raw())[i] = v;
      }
      return;
    }
    tensor::dispatch<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool,
                     Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0>(
        type, "a tensor literal", [&]<class T>(tensor::TypeTag<T>) {
          T* to = out.mutable_data<T>();
          for (size_t i = 0; i < numbers.size(); ++i) {
            if constexpr (std::is_same_v<T, bool>)
              to[i] = s_.parse_number<int>(numbers[i]) != 0;
            else if constexpr (std::is_arithmetic_v<T>)
              to[i] = s_.parse_number<T>(numbers[i]);
            else
              to[i] = T(s_.parse_number<double>(numbers[i]));
          }
        });
  }

  void node_list(GraphDef& graph) {
    s_.expect('{');
    while (!s_.accept('}')) graph.nodes.push_back(node());
  }

  NodeDef node() {
    NodeDef out;
    if (s_.accept('[')) {
      out.name = s_.name();
      s_.expect(']');
    }
    do {
      const char c = s_.peek();
      out.outputs.push_back(c == ',' || c == '=' ? std::string() : s_.name("an output"));
    } while (s_.accept(','));
    s_.expect('=');
    const std::string_view qualified = s_.identifier("an operator");
    const size_t dot = qualified.rfind('.');
    out.op_type = dot == std::string_view::npos ? qualified : qualified.substr(dot + 1);
    out.domain = dot == std::string_view::npos ? std::string_view() : qualified.substr(0, dot);
    if (s_.accept(':')) out.overload = s_.identifier("an overload");
    if (s_.peek() == '<') attribute_list(out);
    s_.expect('(');
    while (!s_.accept(')')) {
      out.inputs.push_back(s_.peek() == ',' ? std::string() : s_.name("an input"));
      if (!s_.accept(',') && s_.peek() != ')') s_.expect(')');
    }
    if (s_.peek() == '<') attribute_list(out);
    return out;
  }

  void attribute_list(NodeDef& node) {
    s_.expect('<');
    while (!s_.accept('>')) {
      attribute(node);
      if (!s_.accept(',') && s_.peek() != '>') s_.expect('>');
    }
  }

  void attribute(NodeDef& node) {
    std::string name(s_.identifier("an attribute"));
    std::string_view kind;
    if (s_.accept(':')) kind = s_.identifier("a type of attribute");
    s_.expect('=');
    if (s_.accept('@')) {
      node.attribute_refs.push_back(
          {std::move(name), std::string(s_.identifier("an attribute of the function")), attribute_type(kind)});
    } else if (s_.accept('[')) {
      list(node, std::move(name), kind);
    } else if (s_.peek() == '"') {
      node.attributes.set(std::move(name), s_.string());
    } else if (s_.at_number()) {
      node.attributes.set(std::move(name), number_attribute(kind));
    } else if (at_type()) {
      ValueType t = type();
      if (s_.peek() != '{' && s_.peek() != '=' && !s_.at_identifier()) {
        node.attributes.set(std::move(name), std::move(t));
        return;
      }
      if (s_.at_identifier()) s_.identifier();
      s_.accept('=');
      node.attributes.set(std::move(name), literal(t));
    } else {
      node.graphs.push_back({std::move(name), {std::make_shared<const GraphDef>(graph())}, false});
    }
  }

  Attribute number_attribute(std::string_view kind) {
    const std::string_view text = s_.number();
    const bool whole =
        text == "true" || text == "false" || text.find_first_not_of("-0123456789") == std::string_view::npos;
    if (kind == "float" || kind == "floats" || !whole) return s_.parse_number<float>(text);
    return s_.parse_number<int64_t>(text);
  }

  void list(NodeDef& node, std::string name, std::string_view kind) {
    std::vector<int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    std::vector<Tensor> tensors;
    GraphAttribute graphs{name, {}, true};
    while (!s_.accept(']')) {
      if (s_.peek() == '"') {
        strings.push_back(s_.string());
      } else if (s_.at_number()) {
        const Attribute a = number_attribute(kind);
        if (const auto* i = std::get_if<int64_t>(&a); i && floats.empty())
          ints.push_back(*i);
        else
          floats.push_back(i ? static_cast<float>(*i) : std::get<float>(a));
      } else if (at_type()) {
        const ValueType t = type();
        if (s_.at_identifier()) s_.identifier();
        s_.accept('=');
        tensors.push_back(literal(t));
      } else {
        graphs.graphs.push_back(std::make_shared<const GraphDef>(graph()));
      }
      if (!s_.accept(',') && s_.peek() != ']') s_.expect(']');
    }
    // [1, 2.5]: integers before the first float are floats too.
    if (!floats.empty()) {
      floats.insert(floats.begin(), ints.begin(), ints.end());
      ints.clear();
    }
    const int kinds = !ints.empty() + !floats.empty() + !strings.empty() + !tensors.empty() + !graphs.graphs.empty();
    if (kinds > 1) s_.fail(cat("the list '", name, "' mixes kinds of values"));
    if (!graphs.graphs.empty() || kind == "graphs")
      node.graphs.push_back(std::move(graphs));
    else if (!floats.empty() || kind == "floats")
      node.attributes.set(std::move(name), std::move(floats));
    else if (!strings.empty() || kind == "strings")
      node.attributes.set(std::move(name), std::move(strings));
    else if (!tensors.empty() || kind == "tensors")
      node.attributes.set(std::move(name), std::move(tensors));
    else
      node.attributes.set(std::move(name), std::move(ints));
  }

  Scanner s_;
  std::map<std::string, int64_t> opsets_;
  int depth_ = 0;
};

}  // namespace

Model parse_model(std::string_view text, int64_t default_opset) { return Parser(text, default_opset).model(); }

FunctionDef parse_function(std::string_view text, int64_t default_opset) {
  return Parser(text, default_opset).lone_function();
}

}  // namespace infernode::graph
