#include "kernel/op_schema.h"

#include "base/error.h"

namespace infernode::kernel {
namespace {

using tensor::DType;
using tensor::TypeSet;

constexpr TypeSet kComplex{DType::Complex64, DType::Complex128};
constexpr TypeSet kAll = tensor::types::kNumeric | TypeSet{DType::String, DType::Bool} | kComplex;
constexpr TypeSet kAllIr4 = kAll | TypeSet{DType::BFloat16};
constexpr TypeSet kAllIr9 = kAllIr4 | tensor::types::kFloat8;
constexpr TypeSet kAllIr10 = kAllIr9 | TypeSet{DType::Int4, DType::UInt4};
constexpr TypeSet kAllIr11 = kAllIr10 | TypeSet{DType::Float4E2M1};
constexpr TypeSet kAllIr12 = kAllIr11 | TypeSet{DType::Float8E8M0};
constexpr TypeSet kAllIr13 = kAllIr12 | TypeSet{DType::Int2, DType::UInt2};
constexpr TypeSet kAllIr14 = kAllIr13 | TypeSet{DType::Float6E2M3, DType::Float6E3M2};

struct Group {
  std::string_view name;
  TypeSet types;
};
constexpr Group kGroups[] = {
    {"floats", tensor::types::kFloats},
    {"floats_bf16", tensor::types::kFloats | TypeSet{DType::BFloat16}},
    {"sints", tensor::types::kSignedInts},
    {"uints", tensor::types::kUnsignedInts},
    {"ints", tensor::types::kInts},
    {"numeric", tensor::types::kNumeric},
    {"numeric_bf16", tensor::types::kNumericBf16},
    {"float8", tensor::types::kFloat8},
    {"complex", kComplex},
    {"all", kAll},
    {"all_ir4", kAllIr4},
    {"all_ir9", kAllIr9},
    {"all_ir10", kAllIr10},
    {"all_ir11", kAllIr11},
    {"all_ir12", kAllIr12},
    {"all_ir13", kAllIr13},
    {"all_ir14", kAllIr14},
};

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \n\t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \n\t") - begin + 1);
}

/// Cuts off what stands before the first `separator` outside parentheses; `rest` keeps what follows.
std::string_view cut(std::string_view& rest, char separator) {
  int depth = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '(') ++depth;
    if (rest[i] == ')') --depth;
    if (depth == 0 && rest[i] == separator) {
      const std::string_view head = rest.substr(0, i);
      rest.remove_prefix(i + 1);
      return trim(head);
    }
  }
  const std::string_view head = rest;
  rest = {};
  return trim(head);
}

/// "seq(X)" -> "X" for prefix "seq"; empty where `text` is something else.
std::string_view inside(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix) || text.size() < prefix.size() + 2 || text[prefix.size()] != '(' || text.back() != ')')
    return {};
  return trim(text.substr(prefix.size() + 1, text.size() - prefix.size() - 2));
}

class Reader {
 public:
  Reader(OpSchema& schema, std::string_view signature) : schema_(schema), signature_(signature) {}

  void read() {
    std::string_view rest = signature_;
    std::string_view parameters = cut(rest, ';');
    read_constraints(rest);
    const std::size_t arrow = parameters.find("->");
    if (arrow == std::string_view::npos) bad("has no '->'");
    read_parameters(parameters.substr(0, arrow), schema_.inputs);
    read_parameters(parameters.substr(arrow + 2), schema_.outputs);
  }

 private:
  [[noreturn]] void bad(std::string_view why) const {
    fail(ErrorCode::Internal, cat("signature of ", schema_.name, " ", why, ": ", signature_));
  }

  TypeSet element_types(std::string_view text) const {
    TypeSet out;
    bool add = true;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of("|-"), text.size());
      const std::string_view word = trim(text.substr(0, end));
      TypeSet types;
      for (const Group& group : kGroups) {
        if (group.name == word) types = group.types;
      }
      if (types.empty()) {
        const auto type = tensor::dtype_from_name(word);
        if (!type) bad(cat("names an unknown type '", word, "'"));
        types = TypeSet{*type};
      }
      out = add ? out | types : out.without(types);
      add = end == text.size() || text[end] == '|';
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }

  TypeConstraint read_type(std::string_view text) const {
    TypeConstraint out;
    if (text.find('(') == std::string_view::npos) {
      if (text == "any") {
        out.any = true;
      } else {
        out.tensor = element_types(text);
      }
      return out;
    }
    while (!text.empty()) {
      const std::string_view term = cut(text, '|');
      if (const auto seq = inside(term, "seq"); !seq.empty()) {
        if (seq.starts_with("map")) {
          out.maps.emplace_back(term);
        } else {
          out.sequence = out.sequence | element_types(seq);
        }
      } else if (const auto optional = inside(term, "optional"); !optional.empty()) {
        const auto sequence = inside(optional, "seq");
        TypeSet& set = sequence.empty() ? out.optional_tensor : out.optional_sequence;
        set = set | element_types(sequence.empty() ? optional : sequence);
      } else if (!inside(term, "map").empty()) {
        out.maps.emplace_back(term);
      } else {
        out.tensor = out.tensor | element_types(term);
      }
    }
    return out;
  }

  void read_constraints(std::string_view rest) {
    while (!trim(rest).empty()) {
      std::string_view item = cut(rest, ',');
      const std::string_view name = cut(item, '=');
      if (name.empty() || trim(item).empty()) bad("has a constraint that is not 'NAME = types'");
      TypeConstraint constraint = read_type(trim(item));
      constraint.name = name;
      schema_.constraints.push_back(std::move(constraint));
    }
  }

  void read_parameters(std::string_view rest, std::vector<Parameter>& out) {
    rest = trim(rest);
    while (!rest.empty()) {
      std::string_view type = cut(rest, ',');
      Parameter parameter;
      parameter.name = cut(type, ':');
      type = trim(type);
      if (type.ends_with("**")) {
        parameter.arity = Parameter::Arity::VariadicHeterogeneous;
        type.remove_suffix(2);
      } else if (type.ends_with("*")) {
        parameter.arity = Parameter::Arity::Variadic;
        type.remove_suffix(1);
      } else if (type.ends_with("?")) {
        parameter.arity = Parameter::Arity::Optional;
        type.remove_suffix(1);
      }
      type = trim(type);
      if (parameter.name.empty() || type.empty()) bad("has a parameter that is not 'name:type'");
      parameter.constraint = constraint_of(type);
      out.push_back(std::move(parameter));
    }
  }

  std::size_t constraint_of(std::string_view type) {
    for (std::size_t i = 0; i < schema_.constraints.size(); ++i) {
      if (schema_.constraints[i].name == type) return i;
    }
    schema_.constraints.push_back(read_type(type));
    return schema_.constraints.size() - 1;
  }

  OpSchema& schema_;
  std::string_view signature_;
};

bool is_variadic(const Parameter& p) {
  return p.arity == Parameter::Arity::Variadic || p.arity == Parameter::Arity::VariadicHeterogeneous;
}

/// Parameters up to the last that may not be left out; a variadic one needs one value at least unless it is
/// heterogeneous.
std::size_t minimum(const std::vector<Parameter>& parameters) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].arity == Parameter::Arity::Single || parameters[i].arity == Parameter::Arity::Variadic)
      count = i + 1;
  }
  return count;
}

std::size_t maximum(const std::vector<Parameter>& parameters) {
  return !parameters.empty() && is_variadic(parameters.back()) ? SIZE_MAX : parameters.size();
}

const Parameter& parameter_at(const std::vector<Parameter>& parameters, std::size_t index) {
  if (index < parameters.size()) return parameters[index];
  if (parameters.empty() || !is_variadic(parameters.back()))
    fail(ErrorCode::Internal, cat("an operator has no parameter ", index));
  return parameters.back();
}

/// Without blanks: "map(int64, float)" and ValueType's own spelling "map(int64,tensor(float))" compare equal.
std::string squeeze(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("tensor(")) {
      const std::size_t close = text.find(')', i);
      out += text.substr(i + 7, close - i - 7);
      i = close;
    } else if (text[i] != ' ') {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

bool TypeConstraint::accepts(const graph::ValueType& type) const {
  using Kind = graph::ValueType::Kind;
  if (any || type.kind == Kind::Unknown) return true;
  const auto in = [](const TypeSet& set, DType elem) {
    return set.contains(elem) || (elem == DType::Undefined && !set.empty());
  };
  const auto inner = [](const graph::ValueType& t) { return t.inner ? *t.inner : graph::ValueType{}; };
  switch (type.kind) {
    case Kind::Tensor:
    case Kind::SparseTensor:
      return in(tensor, type.elem);
    case Kind::Sequence: {
      const graph::ValueType element = inner(type);
      if (element.kind == Kind::Unknown) return !sequence.empty() || !maps.empty();
      if (element.is_tensor()) return in(sequence, element.elem);
      break;
    }
    case Kind::Optional: {
      const graph::ValueType element = inner(type);
      if (element.kind == Kind::Unknown) return !optional_tensor.empty() || !optional_sequence.empty();
      if (element.is_tensor()) return in(optional_tensor, element.elem);
      if (element.kind == Kind::Sequence) {
        const graph::ValueType item = inner(element);
        return item.kind == Kind::Unknown ? !optional_sequence.empty()
                                          : item.is_tensor() && in(optional_sequence, item.elem);
      }
      return false;
    }
    default:
      break;
  }
  const std::string spelled = squeeze(type.to_string());
  for (const std::string& map : maps) {
    if (squeeze(map) == spelled) return true;
  }
  return false;
}

std::string TypeConstraint::to_string() const {
  if (any) return "any type";
  std::string out = tensor.to_string();
  const auto add = [&](const TypeSet& set, const char* before, const char* after) {
    if (!set.empty()) out += cat(out.empty() ? "" : "; ", before, set.to_string(), after);
  };
  add(sequence, "sequences of ", "");
  add(optional_tensor, "optional ", "");
  add(optional_sequence, "optional sequences of ", "");
  for (const std::string& map : maps) out += cat(out.empty() ? "" : "; ", map);
  return out;
}

std::size_t OpSchema::min_inputs() const { return minimum(inputs); }
std::size_t OpSchema::max_inputs() const { return maximum(inputs); }
std::size_t OpSchema::min_outputs() const { return minimum(outputs); }
std::size_t OpSchema::max_outputs() const { return maximum(outputs); }
const Parameter& OpSchema::input(std::size_t index) const { return parameter_at(inputs, index); }
const Parameter& OpSchema::output(std::size_t index) const { return parameter_at(outputs, index); }

OpSchema parse_signature(std::string_view domain, std::string_view name, std::int64_t since_version,
                         std::string_view signature) {
  OpSchema schema;
  schema.domain = domain;
  schema.name = name;
  schema.since_version = since_version;
  Reader(schema, signature).read();
  return schema;
}

}  // namespace infernode::kernel
