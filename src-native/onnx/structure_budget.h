#pragma once

#include <cstddef>
#include <string_view>

namespace infernode::onnx {

/// What a model's structure may take while it is read, made into a graph and checked: nodes, names, types, properties
/// and the objects around tensors. What tensors and attributes hold is not counted: it is as large as the file says.
class StructureBudget {
 public:
  /// What one of each takes at most at any time before a load has checked it, in bytes.
  static constexpr std::size_t kNode = 900, kInput = 64, kValue = 480, kType = 160, kDim = 60, kUnknownDim = 300,
                               kAttribute = 160;
  static constexpr std::size_t kTensor = 900, kGraph = 720, kFunction = 720, kEntry = 200;

  explicit StructureBudget(std::size_t bytes) : left_(bytes), bytes_(bytes) {}

  /// Throws InvalidModel where the structure becomes too large.
  void take(std::size_t bytes) {
    if (bytes > left_) refuse();
    left_ -= bytes;
  }
  void take(std::size_t bytes, std::string_view name) { take(bytes + 3 * name.size()); }
  /// Throws now where so much cannot be taken later.
  void expect(std::size_t bytes) const {
    if (bytes > left_) refuse();
  }
  std::size_t left() const { return left_; }

 private:
  [[noreturn]] void refuse() const;
  std::size_t left_, bytes_;
};

}  // namespace infernode::onnx
