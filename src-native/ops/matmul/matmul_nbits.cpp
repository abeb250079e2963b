#include <algorithm>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/packed.h"
#include "kernel/op_registrar.h"
#include "ops/common/reals.h"
#include "ops/matmul/expanded_gemm.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

/// com.microsoft's MatMulNBits: A [..., K] by a weight [N, K] of 2, 4 or 8 bits, quantized in blocks along K. Columns
/// of the result are made some at a time from weights that were just expanded.
class MatMulNBits final : public kernel::Kernel {
 public:
  explicit MatMulNBits(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.gemm_float32),
        k_(info.attributes().get_int("K")),
        n_(info.attributes().get_int("N")),
        bits_(info.attributes().get_int("bits", 4)),
        block_(info.attributes().get_int("block_size")) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (k_ < 1 || n_ < 1 || k_ > kMost || n_ > kMost || block_ < 16 || block_ > kMost || (block_ & (block_ - 1)) != 0)
      fail(ErrorCode::InvalidModel, cat("MatMulNBits: K ", k_, ", N ", n_, ", block_size ", block_));
    if (bits_ != 2 && bits_ != 4 && bits_ != 8)
      fail(ErrorCode::UnsupportedOperator, cat("MatMulNBits of ", bits_, " bits; 2, 4 and 8 are supported"));
    if (info.attributes().get_int("weight_prepacked", 0) != 0)
      fail(ErrorCode::UnsupportedOperator, "MatMulNBits with a weight that is packed for another device");
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Tensor &weight = ctx.input(1), &scales = ctx.input(2);
    const Tensor *zeros = ctx.optional_input(3), *bias = ctx.optional_input(5);
    const std::int64_t blocks = (k_ + block_ - 1) / block_, block_bytes = block_ * bits_ / 8;
    if (a.rank() == 0 || a.shape().back() != k_)
      fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: A is ", a.to_string(), " for K = ", k_));
    if (weight.numel() != n_ * blocks * block_bytes || scales.numel() != n_ * blocks ||
        (bias != nullptr && bias->numel() != n_)) {
      fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: B ", weight.to_string(), " and scales ", scales.to_string(),
                                         " do not fit N = ", n_, " and ", blocks, " blocks"));
    }
    const std::int64_t zero_bytes = (blocks * bits_ + 7) / 8;
    const bool packed_zeros = zeros != nullptr && zeros->dtype() == DType::UInt8;
    if (zeros != nullptr && zeros->numel() != n_ * (packed_zeros ? zero_bytes : blocks))
      fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: zero_points is ", zeros->to_string()));
    Shape shape = a.shape();
    shape[shape.rank() - 1] = n_;
    const Tensor y = ctx.output(0, shape);
    if (y.numel() == 0) return;
    const RealInput<float> in(ctx, kernels_, a), scale(ctx, kernels_, scales), add(ctx, kernels_, bias),
        zero(ctx, kernels_, packed_zeros ? nullptr : zeros);
    const RealOutput<float> out(ctx, kernels_, y);
    const std::vector<std::size_t> groups = group_indices(ctx.optional_input(4), blocks);
    const Expansion e{static_cast<const std::uint8_t*>(weight.raw()),
                      scale.data(),
                      zero.data(),
                      packed_zeros ? zeros->data<std::uint8_t>() : nullptr,
                      size(blocks),
                      size(block_bytes),
                      size(zero_bytes),
                      groups};
    multiply_expanded(ctx, table_, size(a.numel() / k_), size(n_), size(k_), in, add.data(), out,
                      [&](std::size_t row, float* to) { expand(e, row, to); });
    out.store();
  }

 private:
  struct Expansion {
    const std::uint8_t* codes;
    const float* scales;
    const float* zeros;                ///< by block, or null
    const std::uint8_t* packed_zeros;  ///< or these; with neither, the middle of the range
    std::size_t blocks, block_bytes, zero_bytes;
    std::span<const std::size_t> groups;  ///< by element of K: the block whose scale it has; empty: its own
  };

  std::vector<std::size_t> group_indices(const Tensor* g_idx, std::int64_t blocks) const {
    if (g_idx == nullptr) return {};
    std::vector<std::size_t> out;
    for (const std::int64_t group : tensor::to_int64_vector(*g_idx)) {
      if (group < 0 || group >= blocks)
        fail(ErrorCode::InvalidArgument, cat("MatMulNBits: g_idx has ", group, ", there are ", blocks, " groups"));
      out.push_back(size(group));
    }
    if (out.size() < size(k_))
      fail(ErrorCode::ShapeMismatch, cat("MatMulNBits: g_idx is ", g_idx->to_string(), " for K = ", k_));
    return out;
  }

  /// One row of the weight: (code - zero) * scale.
  void expand(const Expansion& e, std::size_t row, float* out) const {
    const std::size_t k = size(k_), block = size(block_);
    const std::uint8_t* codes = e.codes + row * e.blocks * e.block_bytes;  // blocks fill whole bytes
    if (!e.groups.empty()) {
      for (std::size_t i = 0; i < k; ++i)
        out[i] = (code(codes, i) - zero(e, row, e.groups[i])) * scale(e, row, e.groups[i]);
      return;
    }
    for (std::size_t b = 0; b < e.blocks; ++b, codes += e.block_bytes) {
      const float factor = scale(e, row, b), middle = zero(e, row, b);
      const std::size_t count = std::min(block, k - b * block);
      for (std::size_t i = 0; i < count; ++i) *out++ = (code(codes, i) - middle) * factor;
    }
  }
  static float scale(const Expansion& e, std::size_t row, std::size_t block) {
    return e.scales[row * e.blocks + block];
  }
  float zero(const Expansion& e, std::size_t row, std::size_t block) const {
    if (e.packed_zeros != nullptr) return code(e.packed_zeros + row * e.zero_bytes, block);
    return e.zeros != nullptr ? e.zeros[row * e.blocks + block] : static_cast<float>(1 << (bits_ - 1));
  }
  float code(const std::uint8_t* data, std::size_t i) const {
    return bits_ == 4 ? get_packed<4>(data, i) : bits_ == 8 ? data[i] : get_packed<2>(data, i);
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& table_;
  std::int64_t k_, n_, bits_, block_;
};

}  // namespace

void register_matmul_nbits(kernel::OpRegistrar& r) {
  r.op("MatMulNBits", "com.microsoft")
      .version(1,
               "A:T1, B:T2, scales:T1, zero_points:T3?, g_idx:T4?, bias:T1? -> Y:T1; T1 = float|float16|bfloat16, "
               "T2 = uint8|int32, T3 = uint8|int32|float16|float|bfloat16, T4 = int32")
      .infer(infer_expanded_gemm)
      .kernel<MatMulNBits>(
          {{"T2", {tensor::DType::UInt8}},
           {"T3", {tensor::DType::UInt8, tensor::DType::Float16, tensor::DType::Float32, tensor::DType::BFloat16}}})
      .product();
}

}  // namespace infernode::ops
