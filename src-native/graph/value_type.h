#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graph/dim.h"
#include "tensor/dtype.h"

namespace infernode::graph {

/// Static type of a value, as ONNX's TypeProto.
struct ValueType {
  enum class Kind : std::uint8_t { Unknown, Tensor, SparseTensor, Sequence, Map, Optional };
  Kind kind = Kind::Unknown;
  tensor::DType elem = tensor::DType::Undefined;  ///< tensors: element type; maps: key type
  std::optional<SymShape> shape;                  ///< tensors: nullopt where even the rank is unknown
  std::shared_ptr<const ValueType> inner;         ///< sequence and optional: element type; map: value type

  static ValueType tensor(tensor::DType elem, std::optional<SymShape> shape = std::nullopt);
  static ValueType sparse_tensor(tensor::DType elem, std::optional<SymShape> shape = std::nullopt);
  static ValueType sequence(ValueType element);
  static ValueType optional(ValueType element);
  static ValueType map(tensor::DType key, ValueType value);
  bool is_tensor() const { return kind == Kind::Tensor; }
  bool is_sequence() const { return kind == Kind::Sequence; }
  /// "tensor(float)", "seq(tensor(int64))", "map(string,tensor(float))", "optional(...)": ONNX's spelling, without
  /// dims.
  std::string to_string() const;
  bool operator==(const ValueType& other) const;  ///< dims too
};

}  // namespace infernode::graph
