#pragma once
// Products of 8-bit integer tensors with exact 32-bit sums.

#include <cstdint>
#include <vector>

#include "kernel/counted.h"
#include "kernel/kernel.h"
#include "microkernels/qgemm/qgemm.h"
#include "ops/common/packed_weight.h"
#include "ops/matmul/matmul_shapes.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// What a product's elements become, and the quantization of its operands. Vectors run over all rows of A or over all
/// columns of B (of every batch); one element serves all.
struct IntegerProduct {
  explicit IntegerProduct(const kernel::RunContext& run) : a_zeros(1, 0, run), b_zeros(1, 0, run), scales(1, 1, run) {}

  kernel::CountedVector<std::int32_t> a_zeros, b_zeros;
  microkernels::QgemmOutput output = microkernels::QgemmOutput::kS32;
  kernel::CountedVector<float> scales;  ///< by column
  float factor = 1;                     ///< of all scales
  const float* bias = nullptr;          ///< by column of one matrix
  const float* residual = nullptr;      ///< of the result's shape
  microkernels::ActivationArgs activation = {};
  std::int32_t out_zero = 0;
};

/// A matrix product whose right-hand side, if constant, is packed once.
class IntegerMatMul {
 public:
  IntegerMatMul(kernel::KernelInfo& info, std::size_t b_input);
  const tensor::Shape& b_shape(const kernel::KernelContext& ctx) const {
    return packed_ ? b_shape_ : ctx.input(b_input_).shape();
  }
  MatMulGeometry plan(const kernel::KernelContext& ctx, const tensor::Shape& a) const;
  /// Writes the product of `a` and input B into `out`. `a` is 8-bit; `out` as `product.output` says.
  void run(kernel::KernelContext& ctx, const MatMulGeometry& g, const tensor::Tensor& a, const IntegerProduct& product,
           void* out) const;
  /// The same for A's bytes; `a_signed`: they are int8.
  void run(kernel::KernelContext& ctx, const MatMulGeometry& g, const void* a, bool a_signed,
           const IntegerProduct& product, void* out) const;

 private:
  std::size_t b_input_;
  const microkernels::QgemmTable& table_;
  tensor::Shape b_shape_;
  bool b_signed_ = false;
  PackedWeight packed_;
};

/// Values of a zero point or scale of a left-hand side of shape `a`, by row: one, [M], or [..., M, 1].
/// Throws ShapeMismatch. An absent zero point is 0.
kernel::CountedVector<std::int32_t> row_zeros(const kernel::RunContext& run, const tensor::Tensor* zero,
                                              const tensor::Shape& a);
/// The same of a right-hand side of shape `b`, by column: one, [N], or [..., 1, N].
kernel::CountedVector<std::int32_t> column_zeros(const kernel::RunContext& run, const tensor::Tensor* zero,
                                                 const tensor::Shape& b);
kernel::CountedVector<float> row_scales(const kernel::RunContext& run, const tensor::Tensor& scale,
                                        const tensor::Shape& a);
kernel::CountedVector<float> column_scales(const kernel::RunContext& run, const tensor::Tensor& scale,
                                           const tensor::Shape& b);

/// 8-bit rows times a packed matrix, cut over the context's threads.
void run_qgemm(kernel::KernelContext& ctx, const microkernels::QgemmTable& table, const microkernels::QgemmArgs& args);

}  // namespace infernode::ops
