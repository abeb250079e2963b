#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/run_context.h"
#include "tensor/tensor.h"

namespace infernode::transform {

/// Codes of few bits in blocks that have a scale each, rounded to nearest. Symmetric: value = (code - middle) * scale,
/// where the value of largest magnitude has code 0, of which there is one more below the middle than above. Otherwise
/// value = (code - zero) * scale over the block's range, which is widened to hold 0.
struct BlockFormat {
  int bits = 4;  ///< 4 or 8
  std::size_t block = 128;
  bool symmetric = false;
};

/// A line of the matrix is a row, or a column, which blocks go along.
enum class Lines { Rows, Columns };

struct BlockCodes {
  std::size_t lines = 0, blocks = 0;  ///< blocks of a line; the last may be shorter
  std::size_t line_bytes = 0;         ///< of codes: whole blocks, the last filled up with its zero; low bits first
  tensor::Buffer codes;
  tensor::Tensor scales;            ///< [lines, blocks] of the matrix's type
  std::vector<std::uint8_t> zeros;  ///< by line and block; empty where symmetric
};

/// Whether it is a matrix of a type that has codes.
bool can_have_codes(const tensor::Tensor& matrix);

/// Throws InvalidModel for elements that are no finite numbers; Aborted.
BlockCodes make_block_codes(const tensor::Tensor& matrix, Lines lines, const BlockFormat& format,
                            const kernel::RunContext& run);

/// Zeros as MatMulNBits has them: those of a line packed into whole bytes.
tensor::Tensor packed_zeros(const BlockCodes& codes, int bits);

}  // namespace infernode::transform
