#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace infernode::onnx {

/// What a model may take while it is read, made into a graph and checked: nodes, names, types, properties, and what
/// tensors and attributes hold, as it lies in memory. External data and the zeros of sparse tensors are not counted.
class StructureBudget {
 public:
  /// What one of each takes at most at any time before a load has checked it, in bytes.
  static constexpr std::size_t kNode = 900, kInput = 64, kValue = 480, kType = 160, kDim = 60, kUnknownDim = 300,
                               kAttribute = 160;
  static constexpr std::size_t kTensor = 900, kGraph = 720, kFunction = 720, kEntry = 200;

  /// Tensors and attributes of large files hold much: with them a model may take this many times its file.
  static constexpr std::size_t kTimesFile = 4;

  StructureBudget(std::size_t bytes, std::size_t file_bytes)
      : left_(bytes), bytes_(bytes), held_left_(std::max(kTimesFile * file_bytes, bytes) - bytes) {}

  /// Throws InvalidModel where the structure becomes too large.
  void take(std::size_t bytes) {
    if (bytes > left_) refuse();
    left_ -= bytes;
  }
  void take(std::size_t bytes, std::string_view name) { take(bytes + 3 * name.size()); }
  /// The same for what tensors and attributes hold.
  void hold(std::size_t bytes) {
    const std::size_t own = std::min(bytes, held_left_);
    take(bytes - own);
    held_left_ -= own;
  }
  /// What a string takes in a list.
  static constexpr std::size_t string_bytes(std::size_t letters) {
    constexpr std::size_t kWithin = 15, kOfBlock = 16;
    return sizeof(std::string) + (letters > kWithin ? letters + kOfBlock : 0);
  }
  /// Throws now where so much cannot be taken later.
  void expect(std::size_t bytes) const {
    if (bytes > left_) refuse();
  }
  void expect_held(std::size_t bytes) const { expect(bytes - std::min(bytes, held_left_)); }
  std::size_t left() const { return left_; }

 private:
  [[noreturn]] void refuse() const;
  std::size_t left_, bytes_;
  std::size_t held_left_;  ///< for tensors and attributes alone
};

}  // namespace infernode::onnx
