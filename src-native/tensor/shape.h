#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/inline_vector.h"

namespace infernode::tensor {

/// Dimensions of a tensor, outermost first; rank 0 is a scalar. Never negative.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims) {
    for (std::int64_t d : dims) dims_.push_back(d);
  }
  explicit Shape(std::span<const std::int64_t> dims) {
    for (std::int64_t d : dims) dims_.push_back(d);
  }

  std::size_t rank() const { return dims_.size(); }
  std::int64_t operator[](std::size_t axis) const { return dims_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return dims_[axis]; }
  std::int64_t back() const { return dims_[dims_.size() - 1]; }
  void push_back(std::int64_t dim) { dims_.push_back(dim); }
  void resize(std::size_t rank, std::int64_t fill = 1) { dims_.resize(rank, fill); }
  std::span<const std::int64_t> dims() const { return {dims_.data(), dims_.size()}; }
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + dims_.size(); }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }

  /// Number of elements. Throws OutOfMemory where the product overflows, InvalidArgument on a negative dim.
  std::int64_t numel() const;
  /// Product of dims [from, to).
  std::int64_t numel(std::size_t from, std::size_t to) const;
  /// Row-major strides in elements.
  Shape strides() const;
  /// "[1,3,224,224]"
  std::string to_string() const;

 private:
  InlineVector<std::int64_t, 6> dims_;
};

/// Maps an axis in [-rank, rank) to [0, rank). Throws InvalidArgument naming `what` otherwise.
std::size_t normalize_axis(std::int64_t axis, std::size_t rank, const char* what = "axis");

/// numpy broadcasting of two shapes; throws ShapeMismatch where they do not fit.
Shape broadcast(const Shape& a, const Shape& b);
/// Strides (elements) with which a tensor of shape `from` is read as `to`: 0 on broadcast axes. `from` must broadcast
/// to `to`.
Shape broadcast_strides(const Shape& from, const Shape& to);

}  // namespace infernode::tensor
