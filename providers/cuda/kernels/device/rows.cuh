#pragma once

#include "providers/cuda/kernels/params/gemm.h"

// Rows of A that are pixels of an image, one tap at a time.
namespace infernode::cuda {

/// The output pixel of a row.
struct Pixel {
  int image;  ///< the first pixel of its image, as a number of pixels
  int z, y, x;
  bool valid;

  __device__ __forceinline__ void find(const ConvParams& c, int row, int rows) {
    valid = row < rows;
    const int plane = c.out_h * c.out_w, volume = plane * c.out_d;
    const int n = row / volume;
    row -= n * volume;
    z = row / plane;
    row -= z * plane;
    y = row / c.out_w;
    x = row - y * c.out_w;
    image = n * c.in_d * c.in_h * c.in_w;
    if (c.transposed) {
      z += c.pad_d, y += c.pad_h, x += c.pad_w;
    } else {
      z = z * c.stride_d - c.pad_d, y = y * c.stride_h - c.pad_h, x = x * c.stride_w - c.pad_w;
    }
  }
};

/// What a position of K reads: a channel and a tap.
struct Tap {
  int channel, z, y, x;
  bool valid;

  __device__ __forceinline__ Tap(const ConvParams& c, int k) {
    const int tap = static_cast<int>((k + 0.5f) * c.per_channels);
    channel = k - tap * c.channels_padded;
    valid = tap < c.taps;
    const int row = static_cast<int>((tap + 0.5f) * c.per_kernel_w);
    z = static_cast<int>((row + 0.5f) * c.per_kernel_h);
    y = row - z * c.kernel_h;
    x = (tap - row * c.kernel_w) * c.dilation_w;
    y *= c.dilation_h;
    z *= c.dilation_d;
  }
};

/// The number of the input pixel that a tap reads for an output pixel; -1: none, its value is zero.
__device__ __forceinline__ int input_pixel(const ConvParams& c, const Pixel& p, const Tap& t) {
  int z, y, x;
  if (c.transposed) {
    z = p.z - t.z, y = p.y - t.y, x = p.x - t.x;
    if (z < 0 || y < 0 || x < 0 || z % c.stride_d || y % c.stride_h || x % c.stride_w) return -1;
    z /= c.stride_d, y /= c.stride_h, x /= c.stride_w;
  } else {
    z = p.z + t.z, y = p.y + t.y, x = p.x + t.x;
  }
  const bool inside = p.valid && t.valid && static_cast<unsigned>(z) < static_cast<unsigned>(c.in_d) &&
                      static_cast<unsigned>(y) < static_cast<unsigned>(c.in_h) &&
                      static_cast<unsigned>(x) < static_cast<unsigned>(c.in_w);
  return inside ? p.image + (z * c.in_h + y) * c.in_w + x : -1;
}

}  // namespace infernode::cuda
