#pragma once
// Matrix products over tensors: what MatMul, Gemm, Einsum, attention and the like share.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "microkernels/gemm/gemm.h"
#include "ops/common/packed_weight.h"
#include "ops/matmul/methods/method.h"
#include "tensor/tensor.h"

namespace infernode::ops {

/// The loops for products of the node's inputs: of a B of float32 packed for the session's precision, of others as
/// float32.
const microkernels::GemmTable& product_table(const kernel::KernelInfo& info);
/// Of a node whose kernel makes Y = A * B by its ProductLoops, for kernel::OpBuilder::methods: those that can make the
/// product, the quickest first. None where sizes are symbols.
std::vector<std::string> product_methods(const kernel::KernelInfo& info);

/// A constant right-hand side, packed once and shared between sessions.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// Packs input `input` of the node, a constant matrix [k, n] of float32, float16 or bfloat16, for `table`, and gives
  /// up the unpacked one. Where `transposed` it is [n, k]; further axes count to k.
  PackedMatrix(kernel::KernelInfo& info, const microkernels::GemmTable& table, std::size_t input, bool transposed);
  explicit operator bool() const { return static_cast<bool>(packed_); }
  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  const microkernels::PackedOperand& b() const { return b_; }

 private:
  PackedWeight packed_;
  microkernels::PackedOperand b_;
  std::int64_t k_ = 0, n_ = 0;
};

/// `count` products of one shape; pointers of product i are the arguments' plus i times the strides (in elements, 0
/// repeats). Offsets may be given instead where batches do not lie at equal distances.
struct GemmBatch {
  std::size_t count = 1;
  std::span<const std::int64_t> a_offsets, b_offsets;  ///< by product, in elements; empty: all 0
  std::int64_t c_stride = 0;
};

/// Throws Internal where B is packed in a form that the table's loops do not read. All of them read panels of float32.
void check_packing(const microkernels::GemmTable& table, const microkernels::PackedOperand& b);

/// Runs float32-accumulating products split over the context's threads: by the quickest method of `loops`, or by one
/// table, in the way that the arguments name.
void run_gemm(kernel::KernelContext& ctx, const ProductLoops& loops, const microkernels::GemmArgs& args,
              const GemmBatch& batch = {});
void run_gemm(kernel::KernelContext& ctx, const microkernels::GemmTable& table, const microkernels::GemmArgs& args,
              const GemmBatch& batch = {});
void run_dgemm(kernel::KernelContext& ctx, const microkernels::GemmTable& table, const microkernels::DgemmArgs& args,
               const GemmBatch& batch = {});

/// How the GEMM reads elements of this type; nullopt for those it cannot read.
std::optional<microkernels::FloatType> gemm_type(tensor::DType type);

/// Writes a float32 result as the output's 16-bit type, in parallel.
void narrow(const kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const float* from,
            const tensor::Tensor& to);
/// Memory for a float32 result that becomes `out`: out itself where it is float32, scratch (held by `hold`) otherwise.
float* float_target(kernel::KernelContext& ctx, const tensor::Tensor& out, tensor::Buffer& hold);

}  // namespace infernode::ops
