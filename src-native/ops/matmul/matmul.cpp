#include <algorithm>
#include <vector>

#include "kernel/op_registrar.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "ops/matmul/matmul_shapes.h"
#include "ops/matmul/product.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

template <class T>
void multiply_integers(KernelContext& ctx, const MatMulGeometry& g, const T* a, const T* b, T* c) {
  using U = std::make_unsigned_t<T>;  // products wrap as in numpy, without undefined behaviour
  ctx.parallel_for(g.count * g.m, static_cast<double>(g.n * g.k), [&](std::size_t begin, std::size_t end, std::size_t) {
    Mover mover(ctx.run());
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t batch = row / g.m, i = row % g.m;
      const T* x = a + (g.a_offsets.empty() ? 0 : g.a_offsets[batch]) + static_cast<std::int64_t>(i * g.k);
      const T* y = b + (g.b_offsets.empty() ? 0 : g.b_offsets[batch]);
      T* out = c + row * g.n;
      mover.fill(out, static_cast<std::int64_t>(g.n), T{});
      for (std::size_t p = 0; p < g.k; ++p) {
        mover.did(static_cast<double>(g.n));
        for (std::size_t j = 0; j < g.n; ++j) {
          out[j] = static_cast<T>(static_cast<U>(out[j]) + static_cast<U>(x[p]) * static_cast<U>(y[p * g.n + j]));
        }
      }
    }
  });
}

/// The shape with its last two dims swapped, where it has two and `swap` says so.
Shape swapped(Shape shape, bool swap) {
  if (swap && shape.rank() >= 2) std::swap(shape[shape.rank() - 1], shape[shape.rank() - 2]);
  return shape;
}

/// Order of the dims of an operand whose first dim is one of its matrices' (transBatchA, transBatchB): it moves behind
/// the batch's.
template <class Dims>
Dims batch_first(const Dims& dims) {
  Dims out = dims;
  if (dims.size() > 2) std::rotate(out.begin(), out.begin() + 1, out.end() - 1);
  return out;
}

/// MatMul, and com.microsoft's FusedMatMul: alpha * A' * B' with matrices transposed where attributes say so.
class MatMul final : public kernel::Kernel {
 public:
  explicit MatMul(KernelInfo& info)
      : kernels_(info.kernels()),
        loops_(info),
        alpha_(info.attributes().get_float("alpha", 1)),
        trans_a_(info.attributes().get_int("transA", 0) != 0),
        trans_b_(info.attributes().get_int("transB", 0) != 0),
        trans_batch_a_(info.attributes().get_int("transBatchA", 0) != 0),
        trans_batch_b_(info.attributes().get_int("transBatchB", 0) != 0) {
    const Tensor* b = info.constant(1);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0 || !gemm_type(b->dtype())) return;
    b_shape_ = b->shape();
    packed_ = PackedMatrix(info, loops_.packing(), 1, trans_b_);
  }

  void run(KernelContext& ctx) const override {
    const Tensor a = operand(ctx, 0, trans_batch_a_);
    const Tensor b = packed_ ? Tensor() : operand(ctx, 1, trans_batch_b_);
    const Shape& b_shape = packed_ ? b_shape_ : b.shape();
    const bool trans_a = trans_a_ && a.rank() >= 2, trans_b = trans_b_ && b_shape.rank() >= 2;
    const MatMulGeometry g =
        plan_matmul(ctx.run(), swapped(a.shape(), trans_a), swapped(b_shape, trans_b), "MatMul", !trans_a);
    const std::size_t lda = trans_a ? g.m : g.k, ldb = trans_b ? g.k : g.n;
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const GemmBatch batch{.count = g.count,
                          .a_offsets = g.a_offsets,
                          .b_offsets = g.b_offsets,
                          .c_stride = static_cast<std::int64_t>(g.m * g.n)};
    if (const auto type = gemm_type(a.dtype())) {
      tensor::Buffer hold;
      microkernels::GemmArgs args{
          .m = g.m, .n = g.n, .k = g.k, .alpha = alpha_, .a = a.raw(), .lda = lda, .trans_a = trans_a, .epilogue = {}};
      args.a_type = *type;
      if (packed_) {
        args.packed_b = packed_.b();
      } else {
        args.b = b.raw();
        args.ldb = ldb;
        args.trans_b = trans_b;
        args.b_type = *type;
      }
      args.c = float_target(ctx, out, hold);
      args.ldc = g.n;
      run_gemm(ctx, loops_, args, batch);
      if (out.dtype() != DType::Float32) narrow(ctx, kernels_, args.c, out);
      return;
    }
    if (a.dtype() == DType::Float64) {
      return run_dgemm(ctx, loops_.packing(),
                       {.m = g.m,
                        .n = g.n,
                        .k = g.k,
                        .alpha = static_cast<double>(alpha_),
                        .a = a.data<double>(),
                        .lda = lda,
                        .trans_a = trans_a,
                        .b = b.data<double>(),
                        .ldb = ldb,
                        .trans_b = trans_b,
                        .c = out.mutable_data<double>(),
                        .ldc = g.n},
                       batch);
    }
    tensor::dispatch<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
        a.dtype(), "MatMul",
        [&]<class T>(TypeTag<T>) { multiply_integers(ctx, g, a.data<T>(), b.data<T>(), out.mutable_data<T>()); });
  }

 private:
  /// The input, with its first dim behind those of the batch where it is not yet.
  static Tensor operand(const KernelContext& ctx, std::size_t input, bool trans_batch) {
    const Tensor& given = ctx.input(input);
    if (!trans_batch || given.rank() <= 2) return given;
    std::vector<std::int64_t> dims(given.shape().begin(), given.shape().end());
    const Shape strides = given.shape().strides();
    const std::vector<std::int64_t> steps(strides.begin(), strides.end());
    const Shape shape{std::span<const std::int64_t>(batch_first(dims))};
    const Tensor out = Tensor::make(given.dtype(), shape, *ctx.run().allocator);
    strided_copy(ctx.run(), shape, {given, 0, Shape{std::span<const std::int64_t>(batch_first(steps))}},
                 {out, 0, shape.strides()});
    return out;
  }

  const microkernels::KernelSet& kernels_;
  ProductLoops loops_;
  float alpha_;
  bool trans_a_, trans_b_, trans_batch_a_, trans_batch_b_;
  Shape b_shape_;
  PackedMatrix packed_;
};

void infer_fused_matmul(kernel::InferContext& ctx) {
  const graph::SymShape* a = ctx.input_shape(0);
  const graph::SymShape* b = ctx.input_shape(1);
  if (a == nullptr || b == nullptr) return;
  graph::SymShape left = *a, right = *b;
  if (ctx.attributes().get_int("transBatchA", 0) != 0) left = batch_first(left);
  if (ctx.attributes().get_int("transBatchB", 0) != 0) right = batch_first(right);
  const auto swap = [&](graph::SymShape& shape, const char* attribute) {
    if (shape.size() >= 2 && ctx.attributes().get_int(attribute, 0) != 0)
      std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  };
  swap(left, "transA");
  swap(right, "transB");
  ctx.set_output_shape(0, matmul_shape(left, right, ctx.node().op_type));
}

}  // namespace

void register_matmul(kernel::OpRegistrar& r) {
  r.op("MatMul")
      .version(1, "A:T, B:T -> Y:T; T = floats")
      .version(9, "A:T, B:T -> Y:T; T = floats|uint32|uint64|int32|int64")
      .version(13, "A:T, B:T -> Y:T; T = floats|uint32|uint64|int32|int64|bfloat16")
      .infer(infer_matmul)
      .kernel<MatMul>()
      .methods(product_methods)
      .product();
  for (const char* name : {"FusedMatMul", "TransposeMatMul"}) {
    r.op(name, "com.microsoft")
        .version(1, "A:T, B:T -> Y:T; T = floats_bf16")
        .infer(infer_fused_matmul)
        .kernel<MatMul>()
        .methods(product_methods)
        .product();
  }
}

}  // namespace infernode::ops
