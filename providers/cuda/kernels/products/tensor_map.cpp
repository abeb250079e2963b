#include "providers/cuda/kernels/products/tensor_map.h"

#include <cstring>

#include "base/error.h"
#include "providers/cuda/driver/api.h"

namespace infernode::cuda {

namespace {

// CUtensorMapDataType and the options of cuTensorMapEncode*.
constexpr int kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9;
constexpr int kNoInterleave = 0, kSwizzle128 = 3, kPromote256 = 3, kFillZeros = 0;

int map_type(Element type) { return type == Element::f16 ? kFloat16 : type == Element::bf16 ? kBfloat16 : kFloat32; }

TensorMap finished(driver::Result result, const driver::TensorMapBytes& bytes, const char* what) {
  if (result != driver::kSuccess) {
    fail(ErrorCode::Internal, cat("CUDA refused the map of ", what, " (error ", result, ")"));
  }
  TensorMap map;
  std::memcpy(map.bytes, bytes.bytes, sizeof(map.bytes));
  return map;
}

}  // namespace

TensorMap tiled_map(const Target& target, const TiledView& view, int box_rows) {
  if (!target.api) return {};
  const std::uint64_t size = element_size(view.type);
  std::uint64_t dims[4] = {static_cast<std::uint64_t>(view.k), static_cast<std::uint64_t>(view.rows), 1, 1};
  std::uint64_t strides[3] = {static_cast<std::uint64_t>(view.row_stride) * size, 16, 16};
  for (int i = 0; i < 2; i++) {
    if (view.batch_stride[i] == 0) continue;
    dims[2 + i] = static_cast<std::uint64_t>(view.batch[i]);
    strides[1 + i] = static_cast<std::uint64_t>(view.batch_stride[i]) * size;
  }
  const std::uint32_t box[4] = {static_cast<std::uint32_t>(128 / size), static_cast<std::uint32_t>(box_rows), 1, 1};
  const std::uint32_t ones[4] = {1, 1, 1, 1};
  driver::TensorMapBytes bytes;
  return finished(target.api->encode_tiled(&bytes, map_type(view.type), 4, reinterpret_cast<void*>(view.address), dims,
                                           strides, box, ones, kNoInterleave, kSwizzle128, kPromote256, kFillZeros),
                  bytes, "a matrix");
}

TensorMap pixel_map(const Target& target, DevicePtr address, Element type, std::int64_t channels, std::int64_t images,
                    const ConvParams& conv, int pixels) {
  if (!target.api) return {};
  const std::uint64_t size = element_size(type), pixel = static_cast<std::uint64_t>(conv.pixel) * size;
  const auto width = static_cast<std::uint64_t>(conv.in_w), height = static_cast<std::uint64_t>(conv.in_h);
  const std::uint64_t dims[4] = {static_cast<std::uint64_t>(channels), width, height,
                                 static_cast<std::uint64_t>(images)};
  const std::uint64_t strides[3] = {pixel, width * pixel, height * width * pixel};
  // The first tap of the first and of the last output pixel, from the first and the last pixel of the image.
  const int low[2] = {-conv.pad_w, -conv.pad_h};
  const int high[2] = {low[0] + (conv.out_w - 1) * conv.stride_w - (conv.in_w - 1),
                       low[1] + (conv.out_h - 1) * conv.stride_h - (conv.in_h - 1)};
  const std::uint32_t steps[4] = {1, static_cast<std::uint32_t>(conv.stride_w),
                                  static_cast<std::uint32_t>(conv.stride_h), 1};
  driver::TensorMapBytes bytes;
  return finished(
      target.api->encode_im2col(&bytes, map_type(type), 4, reinterpret_cast<void*>(address), dims, strides, low, high,
                                static_cast<std::uint32_t>(128 / size), static_cast<std::uint32_t>(pixels), steps,
                                kNoInterleave, kSwizzle128, kPromote256, kFillZeros),
      bytes, "an image");
}

}  // namespace infernode::cuda
