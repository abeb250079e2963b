#include "graph/value_type.h"

#include "base/error.h"

namespace infernode::graph {
namespace {

/// `kind` around `inner`.
ValueType wrap(ValueType::Kind kind, ValueType inner, tensor::DType elem = tensor::DType::Undefined) {
  ValueType out;
  out.kind = kind;
  out.elem = elem;
  out.inner = std::make_shared<const ValueType>(std::move(inner));
  return out;
}

}  // namespace

ValueType ValueType::tensor(tensor::DType elem, std::optional<SymShape> shape) {
  ValueType out;
  out.kind = Kind::Tensor;
  out.elem = elem;
  out.shape = std::move(shape);
  return out;
}

ValueType ValueType::sparse_tensor(tensor::DType elem, std::optional<SymShape> shape) {
  ValueType out = tensor(elem, std::move(shape));
  out.kind = Kind::SparseTensor;
  return out;
}

ValueType ValueType::sequence(ValueType element) { return wrap(Kind::Sequence, std::move(element)); }
ValueType ValueType::optional(ValueType element) { return wrap(Kind::Optional, std::move(element)); }
ValueType ValueType::map(tensor::DType key, ValueType value) { return wrap(Kind::Map, std::move(value), key); }

std::string ValueType::to_string() const {
  const std::string within = inner ? inner->to_string() : std::string();
  switch (kind) {
    case Kind::Unknown:
      return "unknown";
    case Kind::Tensor:
      return cat("tensor(", onnx_name(elem), ")");
    case Kind::SparseTensor:
      return cat("sparse_tensor(", onnx_name(elem), ")");
    case Kind::Sequence:
      return cat("seq(", within, ")");
    case Kind::Map:
      return cat("map(", onnx_name(elem), ",", within, ")");
    case Kind::Optional:
      return cat("optional(", within, ")");
  }
  return "unknown";
}

bool ValueType::operator==(const ValueType& other) const {
  if (kind != other.kind || elem != other.elem || shape != other.shape) return false;
  if (!inner || !other.inner) return inner == other.inner;
  return *inner == *other.inner;
}

}  // namespace infernode::graph
