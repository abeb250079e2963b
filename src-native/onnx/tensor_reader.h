#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/function_ref.h"
#include "onnx/external_data.h"
#include "onnx/structure_budget.h"
#include "onnx/wire.h"
#include "tensor/value.h"

namespace infernode::onnx {

/// The type of a tensor as files state it, checked: a known type and dims whose product fits. Throws InvalidModel
/// naming the tensor, as do the functions below.
struct TensorHeader {
  std::string name;
  tensor::DType type = tensor::DType::Undefined;
  tensor::Shape shape;
  std::size_t bytes = 0;  ///< of the elements
};
TensorHeader make_header(std::string name, std::int64_t type_code, tensor::Shape shape);
/// The tensor of these bytes, as many as the header says: viewed where they are large, aligned and in a mapped file,
/// else copied, so that bytes in memory can go when they have been read.
tensor::Tensor view_or_copy(const TensorHeader& header, const SourceBytes& bytes);
/// Ranks, types and indices of a sparse tensor fit together.
void check_sparse(const std::string& name, const tensor::Sparse& sparse);

/// What all sparse tensors of a model may take as dense ones.
class DenseBudget {
 public:
  explicit DenseBudget(std::size_t bytes) : left_(bytes), bytes_(bytes) {}
  /// Throws InvalidModel where the tensor `name` takes them beyond it.
  void take(const std::string& name, std::size_t bytes);

 private:
  std::size_t left_, bytes_;
};

/// The same elements in a dense tensor, whose zeros take no memory before they are read. `look` is called now and then;
/// what it throws ends the work.
tensor::Tensor to_dense(const std::string& name, const tensor::Sparse& sparse, DenseBudget& budget,
                        FunctionRef<void()> look = nullptr);
[[noreturn]] void fail_tensor(const std::string& name, const std::string& what);

/// Makes tensors of TensorProtos. Data that is large and aligned is viewed in a mapped file, other data copied.
class TensorReader {
 public:
  /// `source` holds the messages; `external` may be null where external data is refused. What tensors hold is taken
  /// from `budget`.
  TensorReader(SourceBytes source, ExternalData* external, DenseBudget& dense, StructureBudget& budget,
               FunctionRef<void()> look = nullptr)
      : source_(std::move(source)), external_(external), dense_(dense), budget_(budget), look_(look) {}

  /// Name and contents. Throws InvalidModel naming the tensor.
  std::pair<std::string, tensor::Tensor> read(Message proto) const;
  /// A SparseTensorProto; the name is that of its values.
  std::pair<std::string, tensor::Sparse> read_sparse(Message proto) const;
  /// The same elements in a dense tensor.
  tensor::Tensor to_dense(const std::string& name, const tensor::Sparse& sparse) const {
    return onnx::to_dense(name, sparse, dense_, look_);
  }

 private:
  struct Header;
  tensor::Tensor read_fields(const Header& header, Message proto) const;
  SourceBytes source_;
  ExternalData* external_;
  DenseBudget& dense_;
  StructureBudget& budget_;
  FunctionRef<void()> look_;
};

}  // namespace infernode::onnx
