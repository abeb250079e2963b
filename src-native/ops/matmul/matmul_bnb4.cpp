#include <cstdint>
#include <span>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "ops/common/reals.h"
#include "ops/matmul/bnb4.h"
#include "ops/matmul/expanded_gemm.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// com.microsoft's MatMulBnb4: A [..., K] by a weight of 4-bit codes, [N, K] (transB, the default) or [K, N] flattened,
/// the first code in the high bits; blocks of block_size elements share their greatest magnitude.
class MatMulBnb4 final : public kernel::Kernel {
 public:
  explicit MatMulBnb4(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.gemm_float32),
        k_(info.attributes().get_int("K")),
        n_(info.attributes().get_int("N")),
        block_(info.attributes().get_int("block_size")),
        trans_b_(info.attributes().get_int("transB", 1) != 0) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (k_ < 1 || n_ < 1 || k_ > kMost || n_ > kMost || block_ < 16 || block_ > kMost || (block_ & (block_ - 1)) != 0)
      fail(ErrorCode::InvalidModel, cat("MatMulBnb4: K ", k_, ", N ", n_, ", block_size ", block_));
    const std::int64_t type = info.attributes().get_int("quant_type");
    if (type != 0 && type != 1)
      fail(ErrorCode::InvalidModel, cat("MatMulBnb4: quant_type is ", type, "; 0 is FP4, 1 is NF4"));
    values_ = bnb4_values(type);
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &codes = ctx.input(1), &absmax = ctx.input(2);
    const std::int64_t count = checked_mul(k_, n_);
    if (a.rank() == 0 || a.shape().back() != k_)
      fail(ErrorCode::ShapeMismatch, cat("MatMulBnb4: A is ", a.to_string(), " for K = ", k_));
    if (codes.numel() != ceil_div(count, 2) || absmax.numel() != ceil_div(count, block_)) {
      fail(ErrorCode::ShapeMismatch, cat("MatMulBnb4: B ", codes.to_string(), " and absmax ", absmax.to_string(),
                                         " do not fit K = ", k_, ", N = ", n_, " and blocks of ", block_));
    }
    Shape shape = a.shape();
    shape[shape.rank() - 1] = n_;
    const Tensor y = ctx.output(0, shape);
    if (y.numel() == 0) return;
    const RealInput<float> in(ctx, kernels_, a), scales(ctx, kernels_, absmax);
    const RealOutput<float> out(ctx, kernels_, y);
    const auto* bytes = codes.data<std::uint8_t>();
    const std::size_t k = size(k_), n = size(n_), block = size(block_);
    multiply_expanded(ctx, table_, size(a.numel()) / k, n, k, in, nullptr, out, [&](std::size_t row, float* to) {
      for (std::size_t i = 0; i < k; ++i) {
        const std::size_t at = trans_b_ ? row * k + i : i * n + row;
        to[i] = values_[at % 2 == 0 ? bytes[at / 2] >> 4 : bytes[at / 2] & 15] * scales[at / block];
      }
    });
    out.store();
  }

 private:
  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  std::int64_t k_, n_, block_;
  bool trans_b_;
  std::span<const float, 16> values_ = bnb4_values(0);
};

}  // namespace

void register_matmul_bnb4(kernel::OpRegistrar& r) {
  r.op("MatMulBnb4", "com.microsoft")
      .version(1, "A:T1, B:T2, absmax:T1 -> Y:T1; T1 = float|float16|bfloat16, T2 = uint8")
      .infer(infer_expanded_gemm)
      .kernel<MatMulBnb4>()
      .product();
}

}  // namespace infernode::ops
