#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
  Value() : kind_(Kind::Empty) {}  // so that a const one needs no initializer
  Value(Tensor t) : kind_(Kind::Tensor), tensor_(std::move(t)) {}
  Value(Sequence s);
  Value(Map m);
  Value(Optional o);
  Value(Sparse s);

  bool empty() const { return kind_ == Kind::Empty; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  bool is_sequence() const { return kind_ == Kind::Sequence; }
  bool is_map() const { return kind_ == Kind::Map; }
  bool is_optional() const { return kind_ == Kind::Optional; }
  bool is_sparse() const { return kind_ == Kind::Sparse; }

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
  enum class Kind : std::uint8_t { Empty, Tensor, Sequence, Map, Optional, Sparse };
  template <class T>
  const T& other(Kind kind, const char* wanted) const;

  // Not a std::variant: most files of the engine would compile its copies and moves anew.
  Kind kind_;
  Tensor tensor_;
  std::shared_ptr<const void> other_;  ///< the Sequence, Map, Optional or Sparse
};

}  // namespace infernode::tensor
