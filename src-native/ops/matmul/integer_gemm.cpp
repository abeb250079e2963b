#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/watch.h"
#include "ops/matmul/integer_gemm.h"

namespace infernode::ops {

using kernel::CountedVector;
using kernel::KernelContext;
using kernel::RunContext;
using microkernels::QgemmArgs;
using microkernels::QgemmOutput;
using microkernels::QgemmTable;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

template <class T>
CountedVector<T> numbers(const RunContext& run, const Tensor& t) {
  const kernel::Numbers<T> values(run, t);
  return CountedVector<T>(values.begin(), values.end(), run);
}

/// `values` spread over the elements of `to`, or the one value that serves all.
template <class T>
CountedVector<T> spread(const RunContext& run, CountedVector<T> values, const Shape& from, const Shape& to) {
  if (values.size() == 1 || from == to) return values;
  const CountedVector<std::int64_t> offsets = broadcast_offsets(run, from, to);
  CountedVector<T> out(run);
  out.reserve(offsets.size());
  kernel::Watch watch(run);
  each_in_pieces(watch, offsets.size(), 2.0,
                 [&](std::size_t i) { out.push_back(values[static_cast<std::size_t>(offsets[i])]); });
  return out;
}

/// The shape without one of its last two dims, which must be 1: row (or column) vectors of a stack of matrices.
Shape without(const Shape& shape, std::size_t from_end) {
  if (shape.rank() < 2) return shape;
  if (shape[shape.rank() - from_end] != 1)
    fail(ErrorCode::ShapeMismatch, cat("a scale or zero point of shape ", shape.to_string(), " fits no matrix"));
  Shape out;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i + from_end != shape.rank()) out.push_back(shape[i]);
  }
  return out;
}

Shape drop(const Shape& shape, std::size_t from_end) {
  Shape out;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (i + from_end != shape.rank()) out.push_back(shape[i]);
  }
  return out;
}

template <class T>
CountedVector<T> by_row(const RunContext& run, CountedVector<T> values, const Shape& shape, const Shape& a) {
  if (values.size() == 1) return values;
  return spread(run, std::move(values), without(shape, 1), drop(a, 1));
}
template <class T>
CountedVector<T> by_column(const RunContext& run, CountedVector<T> values, const Shape& shape, const Shape& b) {
  if (values.size() == 1) return values;
  return spread(run, std::move(values), without(shape, 2), b.rank() == 1 ? Shape{} : drop(b, 2));
}

}  // namespace

CountedVector<std::int32_t> row_zeros(const RunContext& run, const Tensor* zero, const Shape& a) {
  if (zero == nullptr) return CountedVector<std::int32_t>(1, 0, run);
  return by_row(run, numbers<std::int32_t>(run, *zero), zero->shape(), a);
}
CountedVector<std::int32_t> column_zeros(const RunContext& run, const Tensor* zero, const Shape& b) {
  if (zero == nullptr) return CountedVector<std::int32_t>(1, 0, run);
  return by_column(run, numbers<std::int32_t>(run, *zero), zero->shape(), b);
}
CountedVector<float> row_scales(const RunContext& run, const Tensor& scale, const Shape& a) {
  return by_row(run, numbers<float>(run, scale), scale.shape(), a);
}
CountedVector<float> column_scales(const RunContext& run, const Tensor& scale, const Shape& b) {
  return by_column(run, numbers<float>(run, scale), scale.shape(), b);
}

void run_qgemm(KernelContext& ctx, const QgemmTable& table, const QgemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  check_packing(args.packed_b, table.weights.name);
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const microkernels::GemmSplit split =
      microkernels::split_grid(table.mr, table.nr, args.m, args.n, args.k, threads, {8, 8});
  const std::size_t stride = align_up(table.scratch_bytes(args.k), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
  constexpr double kOpsPerNs = 60;
  const double cost = 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) *
                      static_cast<double>(std::max<std::size_t>(args.k, 1)) / static_cast<double>(split.count()) /
                      kOpsPerNs;
  ctx.parallel_for(split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    for (std::size_t i = begin; i < end; ++i)
      table.qgemm(args, split.range(i, args.m, args.n), scratch.data() + slot * stride);
  });
}

IntegerMatMul::IntegerMatMul(kernel::KernelInfo& info, std::size_t b_input)
    : b_input_(b_input), table_(info.kernels().qgemm) {
  const Tensor* b = info.constant(b_input);
  if (b == nullptr || b->rank() != 2 || b->numel() == 0) return;
  if (b->dtype() != DType::Int8 && b->dtype() != DType::UInt8) return;
  b_shape_ = b->shape();
  b_signed_ = b->dtype() == DType::Int8;
  const auto n = static_cast<std::size_t>(b_shape_[1]), k = static_cast<std::size_t>(b_shape_[0]);
  packed_ = PackedWeight(info, b_input, "matrix", table_.weights.packed(n, k, nullptr), 1,
                         [&](const Tensor& weight, std::size_t, std::byte* to) {
                           table_.weights.pack(n, k, weight.raw(), b_signed_, n, false, to, 0, n);
                         });
  info.release_constant(b_input);
}

MatMulGeometry IntegerMatMul::plan(const KernelContext& ctx, const Shape& a) const {
  return plan_matmul(ctx.run(), a, b_shape(ctx), "the integer product");
}

void IntegerMatMul::run(KernelContext& ctx, const MatMulGeometry& g, const Tensor& a, const IntegerProduct& product,
                        void* out) const {
  run(ctx, g, a.raw(), a.dtype() == DType::Int8, product, out);
}

void IntegerMatMul::run(KernelContext& ctx, const MatMulGeometry& g, const void* a, bool a_signed,
                        const IntegerProduct& product, void* out) const {
  const bool wide = product.output == QgemmOutput::kS32 || product.output == QgemmOutput::kF32;
  const std::size_t element = wide ? 4 : 1;
  QgemmArgs args{.m = g.m, .n = g.n, .k = g.k, .lda = g.k, .a_signed = a_signed};
  args.a_zero = product.a_zeros[0];
  args.b_zero = product.b_zeros[0];
  args.scale = product.scales[0];
  args.factor = product.factor;
  args.bias_f32 = product.bias;
  args.ld_residual = g.n;
  args.activation = product.activation;
  args.out_zero = product.out_zero;
  args.output = product.output;
  args.ldc = g.n;
  PackedWeight fresh;
  std::int64_t packed_offset = -1;
  for (std::size_t i = 0; i < g.count; ++i) {
    ctx.run().check();
    const std::int64_t a_at = g.a_offsets.empty() ? 0 : g.a_offsets[i], b_at = g.b_offsets.empty() ? 0 : g.b_offsets[i];
    const auto k = static_cast<std::int64_t>(std::max<std::size_t>(g.k, 1));
    args.a = static_cast<const std::byte*>(a) + a_at;
    if (packed_) {
      args.packed_b = packed_.read(table_.weights.name);
    } else {
      const Tensor& b = ctx.input(b_input_);
      if (b_at != packed_offset) {
        const auto fill = [&](std::size_t, std::size_t begin, std::size_t end, std::byte* to) {
          table_.weights.pack(g.n, g.k, static_cast<const std::byte*>(b.raw()) + b_at, b.dtype() == DType::Int8, g.n,
                              false, to, begin, end);
        };
        fresh = {};  // first, so that memory holds one at a time
        fresh = PackedWeight(ctx.run(), table_.weights.packed(g.n, g.k, nullptr), 1, table_.nr, fill);
        packed_offset = b_at;
      }
      args.packed_b = fresh.read(table_.weights.name);
    }
    if (product.a_zeros.size() > 1) args.a_zeros = product.a_zeros.data() + a_at / k;
    if (product.b_zeros.size() > 1) args.b_zeros = product.b_zeros.data() + b_at / k;
    if (product.scales.size() > 1) args.scales = product.scales.data() + b_at / k;
    if (product.residual != nullptr) args.residual = product.residual + i * g.m * g.n;
    args.c = static_cast<std::byte*>(out) + i * g.m * g.n * element;
    run_qgemm(ctx, table_, args);
  }
}

}  // namespace infernode::ops
