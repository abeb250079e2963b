#pragma once

#include <memory>
#include <string>
#include <utility>

#include "onnx/external_data.h"
#include "onnx/wire.h"
#include "tensor/value.h"

namespace infernode::onnx {

/// Makes tensors of TensorProtos. Data that is large and aligned is viewed where its owner is known, other data copied.
class TensorReader {
 public:
  /// `source` holds the messages; `external` may be null where external data is refused.
  TensorReader(SourceBytes source, ExternalData* external, std::size_t max_dense_bytes)
      : source_(std::move(source)), external_(external), max_dense_bytes_(max_dense_bytes) {}

  /// Name and contents. Throws InvalidModel naming the tensor.
  std::pair<std::string, tensor::Tensor> read(Message proto) const;
  /// A SparseTensorProto; the name is that of its values.
  std::pair<std::string, tensor::Sparse> read_sparse(Message proto) const;
  /// The same elements in a dense tensor.
  tensor::Tensor to_dense(const std::string& name, const tensor::Sparse& sparse) const;

 private:
  struct Header;
  tensor::Tensor view_or_copy(const Header& header, const SourceBytes& bytes) const;
  tensor::Tensor read_fields(const Header& header, Message proto) const;
  SourceBytes source_;
  ExternalData* external_;
  std::size_t max_dense_bytes_;
};

}  // namespace infernode::onnx
