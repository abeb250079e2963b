#pragma once

#include <cstdint>

#include "providers/cuda/kernels/params/elementwise.h"

namespace infernode::cuda {

/// y = saturate(round(x / scale) + zero), or back. Element e is (outer, i, inner) of [outer][n][inner]; its scale is
/// that of block i / block, of which there are `blocks` along the axis: of all inner elements, or of each. Grid: x
/// blocks of 256 elements.
struct QuantizeParams {
  std::uint64_t x, scale, zero, y;  ///< zero 0: all are 0
  std::int64_t count, n, inner, block, blocks;
  std::int32_t per_element;  ///< scales lie as [outer][blocks][inner], not as [blocks]
  std::int32_t back;
  Number x_type, scale_type, zero_type, y_type;
};

/// The least and the largest number of each part, NaN aside, and 0. Grid: x parts; block 256.
struct NumberRangeParams {
  std::uint64_t in, low, high;  ///< float32; low and high: of each part
  std::int64_t count, parts;
};

/// The scale and the zero point of uint8 codes for numbers in these ranges. One warp.
struct DynamicRangeParams {
  std::uint64_t low, high, scale, zero;  ///< float32 [parts], float32 [parts], float32, uint8
  std::int32_t parts;
};

/// out[b][m][n] = sum over k of (a[b][m][k] - a_zero) * (b[b][k][n] - b_zero): bytes to int32. Grid: x tiles of 32
/// columns, y of 32 rows, z matrices; block 256.
struct ByteProductParams {
  std::uint64_t a, b, out;
  std::uint64_t a_zero, b_zero;  ///< of a's and b's types, or 0
  std::int64_t a_batch, b_batch;
  std::int32_t m, n, k;
  std::int32_t a_signed, b_signed;
  std::int32_t a_zero_step, b_zero_step;  ///< 1: one for each row of a, for each column of b
};

/// out[row][k] = (code - zero) * scale of rows whose codes have 2, 4 or 8 bits, in blocks that fill whole bytes. Grid:
/// x blocks of 256 elements.
struct ExpandBitsParams {
  std::uint64_t codes, scales, zeros, out;  ///< zeros 0: the middle
  std::int64_t count;                       ///< rows * k
  std::int32_t k, blocks, block, bits;
  Number type, zero_type;  ///< of scales and out; of zeros: u8 is packed like codes, in whole bytes for each row
};

/// out[row][k] = value[code] * scale of 4-bit codes, the first in the high bits, that lie as [rows][k], or as
/// [k][rows], in blocks of `block` elements. Grid: x blocks of 256 elements.
struct ExpandCodesParams {
  std::uint64_t codes, scales, out;
  std::int64_t count;  ///< rows * k
  std::int64_t rows, k, block;
  std::int32_t rows_first;
  Number type;  ///< of scales and out
  float value[16];
};

/// Slices of a tensor along an axis, (code - zero) * scale of each element: codes [outer][axis][inner], quantized in
/// blocks along [before][length][within]. Places beyond the axis give zeros. Grid: x blocks of 256 elements of `out`.
struct GatherBlocksParams {
  std::uint64_t codes, index, scales, zeros, out;  ///< zeros 0: all are `middle`
  std::int64_t count, axis, inner, indices;
  std::int64_t length, within, block, blocks;
  std::int64_t zero_row;  ///< codes of a row of zeros, where those begin at whole bytes; 0: they lie as scales do
  std::int32_t index_is_64;
  std::int32_t bits, is_signed;
  Number type;  ///< of scales and out
  float middle;
};

}  // namespace infernode::cuda
