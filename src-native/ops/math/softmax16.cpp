#include <algorithm>

#include "ops/math/softmax16.h"

namespace infernode::ops {

using microkernels::BinaryOp;
using microkernels::UnaryOp;
using tensor::DType;

void Softmax16::round(float* x, std::size_t n) const {
  constexpr std::size_t kPiece = 256;
  std::uint16_t bits[kPiece];
  const bool half = type_ == DType::Float16;
  for (std::size_t i = 0; i < n; i += kPiece) {
    const std::size_t count = std::min(kPiece, n - i);
    (half ? convert_.f32_to_f16 : convert_.f32_to_bf16)(x + i, bits, count);
    (half ? convert_.f16_to_f32 : convert_.bf16_to_f32)(bits, x + i, count);
  }
}

float Softmax16::sum(const float* x, std::size_t n) const {
  // float16 sums are kept in float32. Sums of bfloat16 round at each addition, but only within short blocks: over long
  // rows they would stop growing.
  const bool stepwise = type_ == DType::BFloat16;
  const std::size_t block = stepwise ? 8 : n;
  float total = 0;
  for (std::size_t first = 0; first < n; first += block) {
    float part = 0;
    for (std::size_t i = first; i < std::min(n, first + block); ++i) {
      part += x[i];
      if (stepwise) round(&part, 1);
    }
    total += part;
  }
  round(&total, 1);
  return total;
}

void Softmax16::operator()(float* row, std::size_t n) const {
  float most = row[0];
  for (std::size_t i = 1; i < n; ++i) {
    if (!(row[i] <= most)) most = row[i];
  }
  elementwise_.vector_scalar[static_cast<std::size_t>(BinaryOp::kSub)](row, &most, row, n);
  round(row, n);
  elementwise_[UnaryOp::kExp](row, row, n, 0, 0);
  round(row, n);
  const float total = sum(row, n);
  elementwise_.vector_scalar[static_cast<std::size_t>(BinaryOp::kDiv)](row, &total, row, n);
  round(row, n);
}

}  // namespace infernode::ops
