#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "kernel/op_registrar.h"
#include "ops/gemm.h"
#include "ops/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
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
      : rung_(info.cpu_rung()),
        table_(microkernels::gemm_table(rung_)),
        k_(info.attributes().get_int("K")),
        n_(info.attributes().get_int("N")),
        bits_(info.attributes().get_int("bits", 4)),
        block_(info.attributes().get_int("block_size")) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;
    if (k_ < 1 || n_ < 1 || k_ > kMost || n_ > kMost || block_ < 16 || block_ > kMost || (block_ & (block_ - 1)) != 0)
      fail(ErrorCode::InvalidModel, cat("MatMulNBits: K ", k_, ", N ", n_, ", block_size ", block_));
    if (bits_ != 2 && bits_ != 4 && bits_ != 8)
      fail(ErrorCode::UnsupportedOperator, cat("MatMulNBits of ", bits_, " bits; 2, 4 and 8 are supported"));
    if (info.has_input(4)) fail(ErrorCode::UnsupportedOperator, "MatMulNBits with g_idx");
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
    const RealInput<float> in(ctx, rung_, a), scale(ctx, rung_, scales), add(ctx, rung_, bias),
        zero(ctx, rung_, packed_zeros ? nullptr : zeros);
    const RealOutput<float> out(ctx, rung_, y);
    const Expansion e{static_cast<const std::uint8_t*>(weight.raw()),
                      scale.data(),
                      zero.data(),
                      packed_zeros ? zeros->data<std::uint8_t>() : nullptr,
                      size(blocks),
                      size(block_bytes),
                      size(zero_bytes)};
    multiply(ctx, e, in, size(a.numel() / k_), add.data(), out);
    out.store();
  }

 private:
  struct Expansion {
    const std::uint8_t* codes;
    const float* scales;
    const float* zeros;                ///< by block, or null
    const std::uint8_t* packed_zeros;  ///< or these; with neither, the middle of the range
    std::size_t blocks, block_bytes, zero_bytes;
  };

  void multiply(KernelContext& ctx, const Expansion& e, const float* a, std::size_t m, const float* bias,
                float* y) const {
    const std::size_t k = size(k_), n = size(n_), columns = table_.nr * 2, parts = ceil_div(n, columns);
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    const std::size_t own = align_up(checked_mul(checked_mul(columns, k), sizeof(float)), 64);
    const std::size_t stride = checked_add(own, align_up(table_.scratch_floats * sizeof(float), 64));
    const tensor::Buffer memory = ctx.scratch(checked_mul(stride, threads));
    const double cost = static_cast<double>(columns * k) * (1 + static_cast<double>(m) / 15);
    ctx.parallel_for(parts, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* expanded = reinterpret_cast<float*>(memory.data() + slot * stride);
      auto* scratch = reinterpret_cast<float*>(memory.data() + slot * stride + own);
      for (std::size_t i = begin; i < end; ++i) {
        ctx.run().check();
        const std::size_t first = i * columns, count = std::min(columns, n - first);
        for (std::size_t c = 0; c < count; ++c) expand(e, first + c, expanded + c * k);
        microkernels::GemmArgs args{.m = m,
                                    .n = count,
                                    .k = k,
                                    .a = a,
                                    .lda = k,
                                    .b = expanded,
                                    .ldb = k,
                                    .trans_b = true,
                                    .c = y + first,
                                    .ldc = n,
                                    .epilogue = {}};
        args.epilogue.bias_n = bias == nullptr ? nullptr : bias + first;
        table_.gemm(args, {0, m, 0, count}, scratch);
      }
    });
  }

  /// One row of the weight: (code - zero) * scale.
  void expand(const Expansion& e, std::size_t row, float* out) const {
    const std::size_t k = size(k_), block = size(block_);
    for (std::size_t b = 0; b < e.blocks; ++b) {
      const std::uint8_t* codes = e.codes + (row * e.blocks + b) * e.block_bytes;
      const float scale = e.scales[row * e.blocks + b];
      float zero = static_cast<float>(1 << (bits_ - 1));
      if (e.zeros != nullptr) zero = e.zeros[row * e.blocks + b];
      if (e.packed_zeros != nullptr) zero = code(e.packed_zeros + row * e.zero_bytes, b);
      const std::size_t count = std::min(block, k - b * block);
      for (std::size_t i = 0; i < count; ++i) *out++ = (code(codes, i) - zero) * scale;
    }
  }
  float code(const std::uint8_t* data, std::size_t i) const {
    return bits_ == 4 ? get_packed<4>(data, i) : bits_ == 8 ? data[i] : get_packed<2>(data, i);
  }

  CpuRung rung_;
  const microkernels::GemmTable& table_;
  std::int64_t k_, n_, bits_, block_;
};

void infer_matmul_nbits(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* a = ctx.input_shape(0);
  if (a == nullptr || a->empty()) return;
  graph::SymShape out = *a;
  out.back() = ctx.attributes().get_int("N");
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_matmul_nbits(kernel::OpRegistrar& r) {
  r.op("MatMulNBits", "com.microsoft")
      .version(1,
               "A:T1, B:T2, scales:T1, zero_points:T3?, g_idx:T4?, bias:T1? -> Y:T1; T1 = float|float16|bfloat16, "
               "T2 = uint8|int32, T3 = uint8|int32|float16|float|bfloat16, T4 = int32")
      .infer(infer_matmul_nbits)
      .kernel<MatMulNBits>(
          {{"T2", {tensor::DType::UInt8}},
           {"T3", {tensor::DType::UInt8, tensor::DType::Float16, tensor::DType::Float32, tensor::DType::BFloat16}}});
}

}  // namespace infernode::ops
