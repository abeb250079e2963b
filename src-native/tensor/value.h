#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace infernode::tensor {

class Value;

/// ONNX sequence: values of one type. Immutable once shared: an operator that changes one makes a new vector of the
/// (cheap) values.
struct Sequence {
  DType elem =
      DType::Undefined;  ///< element type of its tensors, also when empty (Undefined where elements are no tensors)
  std::vector<Value> items;
};
/// ONNX map: keys are int64 or string tensors of rank 1, values follow the keys' order.
struct Map {
  Tensor keys;
  std::vector<Value> values;
};
/// ONNX optional: empty or one value.
struct Optional {
  std::shared_ptr<const Value> item;
};
/// COO sparse tensor: values [nnz], indices int64 [nnz] (linear) or [nnz, rank].
struct Sparse {
  Tensor values, indices;
  Shape shape;
};

/// What an edge carries. Copies share.
class Value {
 public:
  Value() = default;
  Value(Tensor t) : v_(std::move(t)) {}
  Value(Sequence s);
  Value(Map m);
  Value(Optional o) : v_(std::move(o)) {}
  Value(Sparse s);

  bool empty() const { return std::holds_alternative<std::monostate>(v_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(v_); }
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<const Sequence>>(v_); }
  bool is_map() const { return std::holds_alternative<std::shared_ptr<const Map>>(v_); }
  bool is_optional() const { return std::holds_alternative<Optional>(v_); }
  bool is_sparse() const { return std::holds_alternative<std::shared_ptr<const Sparse>>(v_); }

  /// Each throws Internal where the value is of another kind.
  const Tensor& tensor() const;
  Tensor& tensor();
  const Sequence& sequence() const;
  const Map& map() const;
  const Optional& optional() const;
  const Sparse& sparse() const;

  /// Bytes of all tensors within.
  std::size_t bytes() const;
  std::string to_string() const;  ///< "float32[2,3]", "sequence(3)", ...

 private:
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, std::shared_ptr<const Map>, Optional,
               std::shared_ptr<const Sparse>>
      v_;
};

}  // namespace infernode::tensor
