#pragma once

#include <optional>
#include <vector>

#include "providers/cuda/kernels/launch.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace infernode::cuda {

/// In which order elements lie: as in ONNX, or with channels (axis 1) last, each pixel's `pitch` elements apart.
enum class Order : std::uint8_t { Plain, ChannelsLast };

/// A tensor while a plan is made: where it will lie.
struct DeviceTensor {
  tensor::DType dtype = tensor::DType::Undefined;
  tensor::Shape shape;  ///< as in ONNX, whatever the order
  DevicePtr at = 0;
  Order order = Order::Plain;
  std::int64_t pitch = 0;   ///< channels last: elements from pixel to pixel, a multiple of 8
  std::size_t storage = 0;  ///< which of the plan's storages holds it
  /// A view into another tensor's memory: elements between neighbours along each dim. Empty: dense, in `order`.
  std::vector<std::int64_t> strides{};
  bool is_constant = false;  ///< never written: kernels may read it before they wait for the kernel before
  explicit operator bool() const { return dtype != tensor::DType::Undefined; }
  std::int64_t numel() const { return shape.numel(); }
  std::size_t element_bytes() const { return tensor::bit_size(dtype) / 8; }
  /// Images and positions of them, of a tensor of rank 3 or more.
  std::int64_t pixels() const { return shape[0] * shape.numel(2, shape.rank()); }
};

/// Elements between neighbours along each dim of the shape.
std::vector<std::int64_t> strides_of(const DeviceTensor& t);
/// Strides under which the elements of a view read as another shape; nothing where there are none.
std::optional<std::vector<std::int64_t>> reshaped_strides(const tensor::Shape& from,
                                                          const std::vector<std::int64_t>& strides,
                                                          const tensor::Shape& to);

/// Elements from pixel to pixel: rows of channels begin at multiples of 16 bytes.
inline std::int64_t pixel_pitch(std::int64_t channels) { return (channels + 7) / 8 * 8; }

/// Bytes of memory that a tensor takes in this order.
inline std::size_t storage_bytes(tensor::DType dtype, const tensor::Shape& shape, Order order) {
  if (order == Order::Plain) return tensor::byte_size(dtype, shape.numel());
  return tensor::byte_size(dtype, shape[0] * shape.numel(2, shape.rank()) * pixel_pitch(shape[1]));
}

}  // namespace infernode::cuda
