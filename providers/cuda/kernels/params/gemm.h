#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// CUtensorMap.
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

/// How rows of A are found in an image (channels last) when the product is a convolution. One row is one output pixel.
struct ConvParams {
  std::int32_t channels;         ///< of a group
  std::int32_t channels_padded;  ///< K of one tap in the weights
  std::int32_t taps;
  std::int32_t in_d, in_h, in_w;
  std::int32_t out_d, out_h, out_w;
  std::int32_t kernel_h, kernel_w;
  std::int32_t stride_d, stride_h, stride_w;
  std::int32_t pad_d, pad_h, pad_w;  ///< before the first element
  std::int32_t dilation_d, dilation_h, dilation_w;
  std::int32_t transposed;  ///< input pixel = (output + pad - tap * dilation) / stride where that divides
  std::int64_t pixel;       ///< elements between pixels of the input
  float per_channels, per_kernel_w, per_kernel_h;  ///< 1 / channels_padded, 1 / kernel_w, 1 / kernel_h
};

/// What a split product reads: float32 A and bfloat16 pieces of B, in elements.
struct FloatOperands {
  std::uint64_t a, b;
  std::int64_t a_row, b_row, a_batch[2], b_batch[2];  ///< a convolution's A has no rows
  std::int32_t b_plane, k;                            ///< k: of a row of B
};

/// Tiles of gemm_block that leave registers to finish their sums in, where words are whole and K has no parts.
constexpr bool ends_in_registers(int rows, int columns) {
  return rows == 192 || (rows == 128 && (columns == 96 || columns == 160 || columns == 192));
}

/// Threads of a block of gemm_block that fetch, behind the others. Where two blocks of 256 threads fit an SM by their
/// registers, and no thread more, the first of the others fetches.
constexpr int producers(int rows, int columns) { return rows == 128 && columns == 160 ? 0 : 64; }

/// Hopper: TMA and wgmma. Grid: x tiles of columns, y of rows, or the other way round; z batch times parts of K; those
/// are a cluster.
struct GemmTmaParams {
  TensorMap a, b;
  EpilogueParams e;
  std::int32_t m, n;
  std::int32_t n_tiles;
  std::int32_t k_blocks;  ///< 128 bytes of A each (split products: 256)
  std::int32_t b_plane;   ///< split products: elements of K between pieces of B
  std::int32_t stages, log_split;
  std::int32_t receive_offset;          ///< bytes from the first stage to where parts of other blocks arrive
  std::int32_t batch_inner;             ///< 2^30: the batch has one part
  std::int32_t a_batch[2], b_batch[2];  ///< 1 where the operand has the batch part, 0 where it repeats
  std::int32_t rows_first;              ///< x of the grid are tiles of rows
  std::int32_t b_constant;              ///< B is fetched before the wait for the kernel before
  ConvParams conv;                      ///< taps 0: A is a matrix
  FloatOperands floats;                 ///< of split products
};

/// Every GPU: mma.sync, or plain arithmetic. Grid: x tiles (columns fastest), y batch, z parts of K.
struct GemmMmaParams {
  std::uint64_t a, b;
  std::uint64_t
      partial;  ///< float32 [z][batch][m][n rounded up to 8], for gemm_reduce; 0: the epilogue follows at once
  EpilogueParams e;
  ConvParams conv;
  std::int64_t a_row, b_row;  ///< elements between rows
  std::int64_t a_batch[2], b_batch[2];
  std::int64_t b_plane;
  std::int32_t m, n, k;
  std::int32_t n_tiles;
  std::int32_t k_blocks;
  std::int32_t batch_inner;
  std::int32_t b_constant;
  Element a_type, b_type;  ///< read by gemm_simt alone
};

/// Adds the parts of K of gemm_mma and finishes. Grid: x blocks of 256 chunks of 8 columns, y batch.
struct GemmReduceParams {
  std::uint64_t partial;
  EpilogueParams e;
  std::int32_t m, n, parts, batch, batch_inner;
};

}  // namespace infernode::cuda
