#include <algorithm>
#include <vector>

#include "kernel/op_registrar.h"
#include "ops/gemm.h"
#include "ops/matmul_shapes.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

/// The products that two operands of any rank make: numpy.matmul's rules.
struct Geometry {
  std::size_t m = 1, n = 1, k = 0;
  Shape out;
  std::vector<std::int64_t> a_offsets, b_offsets;  ///< by batch; empty where it is one product
  std::size_t count = 1;
};

/// Offsets (elements) of each batch of `from` read as the batches of `to`.
std::vector<std::int64_t> batch_offsets(const Shape& from, const Shape& to, std::int64_t matrix) {
  const Shape strides = tensor::broadcast_strides(from, to);
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(to.numel()), 0);
  std::size_t block = 1;
  for (std::size_t axis = to.rank(); axis-- > 0;) {
    const auto dim = static_cast<std::size_t>(to[axis]);
    for (std::size_t i = 0; i < offsets.size(); ++i)
      offsets[i] += static_cast<std::int64_t>(i / block % dim) * strides[axis] * matrix;
    block *= dim;
  }
  return offsets;
}

Geometry plan(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0)
    fail(ErrorCode::ShapeMismatch, cat("MatMul takes no scalars: ", a.to_string(), " x ", b.to_string()));
  Geometry g;
  const bool a_row = a.rank() == 1, b_column = b.rank() == 1;
  const std::int64_t k = a.back(), b_k = b_column ? b[0] : b[b.rank() - 2];
  if (k != b_k) {
    fail(ErrorCode::ShapeMismatch, cat("MatMul dimension mismatch: ", a.to_string(), " x ", b.to_string()),
         {.expected = cat("inner dimension ", k), .actual = cat(b_k)});
  }
  g.k = static_cast<std::size_t>(k);
  g.m = a_row ? 1 : static_cast<std::size_t>(a[a.rank() - 2]);
  g.n = b_column ? 1 : static_cast<std::size_t>(b.back());
  const Shape a_batch(a.dims().first(a.rank() - std::min<std::size_t>(a.rank(), 2)));
  const Shape b_batch(b.dims().first(b.rank() - std::min<std::size_t>(b.rank(), 2)));
  const Shape batch = tensor::broadcast(a_batch, b_batch);
  g.out = batch;
  if (!a_row) g.out.push_back(static_cast<std::int64_t>(g.m));
  if (!b_column) g.out.push_back(static_cast<std::int64_t>(g.n));
  const bool b_shared = b_batch.numel() == 1 && a_batch.numel() == batch.numel();
  if (b_shared && g.out.numel() > 0) {  // the batches of A stand under each other as one matrix
    g.m *= static_cast<std::size_t>(batch.numel());
    return g;
  }
  g.count = static_cast<std::size_t>(batch.numel());
  if (g.count > 0) {
    g.a_offsets = batch_offsets(a_batch, batch, static_cast<std::int64_t>(g.m * g.k));
    g.b_offsets = batch_offsets(b_batch, batch, static_cast<std::int64_t>(g.k * g.n));
  }
  return g;
}

template <class T>
void multiply_integers(KernelContext& ctx, const Geometry& g, const T* a, const T* b, T* c) {
  using U = std::make_unsigned_t<T>;  // products wrap as in numpy, without undefined behaviour
  ctx.parallel_for(g.count * g.m, static_cast<double>(g.n * g.k), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t batch = row / g.m, i = row % g.m;
      const T* x = a + (g.a_offsets.empty() ? 0 : g.a_offsets[batch]) + static_cast<std::int64_t>(i * g.k);
      const T* y = b + (g.b_offsets.empty() ? 0 : g.b_offsets[batch]);
      T* out = c + row * g.n;
      std::fill(out, out + g.n, T{});
      for (std::size_t p = 0; p < g.k; ++p) {
        for (std::size_t j = 0; j < g.n; ++j) {
          out[j] = static_cast<T>(static_cast<U>(out[j]) + static_cast<U>(x[p]) * static_cast<U>(y[p * g.n + j]));
        }
      }
    }
  });
}

class MatMul final : public kernel::Kernel {
 public:
  explicit MatMul(KernelInfo& info) : rung_(info.cpu_rung()), table_(microkernels::gemm_table(rung_)) {
    const Tensor* b = info.constant(1);
    if (b == nullptr || b->rank() != 2 || b->numel() == 0 || !gemm_type(b->dtype())) return;
    b_shape_ = b->shape();
    packed_ = PackedMatrix(info, 1, false);
  }

  void run(KernelContext& ctx) const override {
    const Tensor& a = ctx.input(0);
    const Geometry g = plan(a.shape(), packed_ ? b_shape_ : ctx.input(1).shape());
    const Tensor out = ctx.output(0, g.out);
    if (out.numel() == 0) return;
    const GemmBatch batch{.count = g.count,
                          .a_offsets = g.a_offsets,
                          .b_offsets = g.b_offsets,
                          .c_stride = static_cast<std::int64_t>(g.m * g.n)};
    if (const auto type = gemm_type(a.dtype())) {
      tensor::Buffer hold;
      microkernels::GemmArgs args{
          .m = g.m, .n = g.n, .k = g.k, .a = a.raw(), .lda = g.k, .a_type = *type, .epilogue = {}};
      if (packed_) {
        args.packed_b = packed_.data();
      } else {
        args.b = ctx.input(1).raw();
        args.ldb = g.n;
        args.b_type = *type;
      }
      args.c = float_target(ctx, out, hold);
      args.ldc = g.n;
      run_gemm(ctx, table_, args, batch);
      if (out.dtype() != DType::Float32) narrow(rung_, args.c, out);
      return;
    }
    const Tensor& b = ctx.input(1);
    if (a.dtype() == DType::Float64) {
      return run_dgemm(ctx, table_,
                       {.m = g.m,
                        .n = g.n,
                        .k = g.k,
                        .a = a.data<double>(),
                        .lda = g.k,
                        .b = b.data<double>(),
                        .ldb = g.n,
                        .c = out.mutable_data<double>(),
                        .ldc = g.n},
                       batch);
    }
    tensor::dispatch<std::int32_t, std::int64_t, std::uint32_t, std::uint64_t>(
        a.dtype(), "MatMul",
        [&]<class T>(TypeTag<T>) { multiply_integers(ctx, g, a.data<T>(), b.data<T>(), out.mutable_data<T>()); });
  }

 private:
  CpuRung rung_;
  const microkernels::GemmTable& table_;
  Shape b_shape_;
  PackedMatrix packed_;
};

}  // namespace

void register_matmul(kernel::OpRegistrar& r) {
  r.op("MatMul")
      .version(1, "A:T, B:T -> Y:T; T = floats")
      .version(9, "A:T, B:T -> Y:T; T = floats|uint32|uint64|int32|int64")
      .version(13, "A:T, B:T -> Y:T; T = floats|uint32|uint64|int32|int64|bfloat16")
      .infer(infer_matmul)
      .kernel<MatMul>();
}

}  // namespace infernode::ops
