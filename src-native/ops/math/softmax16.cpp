#include <algorithm>

#include "base/checked.h"
#include "kernel/watch.h"
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

float Softmax16::sum(kernel::Watch& watch, const float* x, std::size_t n) const {
  // float16 sums are kept in float32. Sums of bfloat16 round at each addition, but only within short blocks: over long
  // rows they would stop growing.
  const bool stepwise = type_ == DType::BFloat16;
  constexpr std::size_t kBlock = 8;
  const auto block_sum = [&](std::size_t block) {
    float part = 0;
    for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      part += x[i];
      round(&part, 1);
    }
    return part;
  };
  auto total = stepwise ? sum_in_pieces<float>(watch, ceil_div(n, kBlock), kBlock * 4.0, block_sum)
                        : sum_in_pieces<float>(watch, n, 1.0, [&](std::size_t i) { return x[i]; });
  round(&total, 1);
  return total;
}

void Softmax16::operator()(kernel::Watch& watch, float* row, std::size_t n) const {
  float most = row[0];
  each_in_pieces(watch, n, 1.0, [&](std::size_t i) {
    if (!(row[i] <= most)) most = row[i];
  });
  in_pieces(watch, n, 2.0, [&](std::size_t begin, std::size_t end) {
    float* part = row + begin;
    elementwise_.vector_scalar[static_cast<std::size_t>(BinaryOp::kSub)](part, &most, part, end - begin);
    round(part, end - begin);
    elementwise_[UnaryOp::kExp](part, part, end - begin, 0, 0);
    round(part, end - begin);
  });
  const float total = sum(watch, row, n);
  in_pieces(watch, n, 1.0, [&](std::size_t begin, std::size_t end) {
    elementwise_.vector_scalar[static_cast<std::size_t>(BinaryOp::kDiv)](row + begin, &total, row + begin, end - begin);
    round(row + begin, end - begin);
  });
}

}  // namespace infernode::ops
