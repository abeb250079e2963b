#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// Turns pairs of elements of each head by an angle that depends on the position. The standard's operator and
/// com.microsoft's differ in the order of inputs and in where positions come from.
template <bool Microsoft>
class RotaryEmbedding final : public kernel::Kernel {
 public:
  explicit RotaryEmbedding(KernelInfo& info)
      : kernels_(info.kernels()),
        heads_(info.attributes().get_int("num_heads", 0)),
        rotated_(info.attributes().get_int("rotary_embedding_dim", 0)),
        interleaved_(info.attributes().get_int("interleaved", 0) != 0),
        scale_(info.attributes().get_float("scale", 1)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& cos = ctx.input(Microsoft ? 2 : 1);
    const Tensor& sin = ctx.input(Microsoft ? 3 : 2);
    const Tensor* positions = ctx.optional_input(Microsoft ? 1 : 3);
    Sizes s = sizes(x, cos);
    if (cos.shape() != sin.shape())
      fail(ErrorCode::ShapeMismatch, cat(kName, ": cos ", cos.to_string(), " and sin ", sin.to_string(), " differ"));
    const kernel::Scratch<std::size_t> rows = cache_rows(ctx.run(), s, cos, positions);
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    const RealInput<float> in(ctx, kernels_, x), c(ctx, kernels_, cos), n(ctx, kernels_, sin);
    const RealOutput<float> out(ctx, kernels_, y);
    const auto half = static_cast<std::size_t>(s.rotated / 2), head = static_cast<std::size_t>(s.head);
    const auto heads = static_cast<std::size_t>(s.heads), length = static_cast<std::size_t>(s.length);
    ctx.parallel_for(static_cast<std::size_t>(s.batch) * heads * length, static_cast<double>(head),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         // Rows lie as [batch, heads, length] or as [batch, length, heads].
                         const std::size_t batch = i / (heads * length);
                         const std::size_t position = s.flat ? i / heads % length : i % length;
                         const std::size_t at = rows[batch * length + position] * half;
                         turn(in + i * head, c + at, n + at, out + i * head, half, head);
                       }
                     });
    out.store();
  }

 private:
  static constexpr const char* kName = "RotaryEmbedding";
  struct Sizes {
    std::int64_t batch, heads, length, head, rotated;
    bool flat;
  };

  Sizes sizes(const Tensor& x, const Tensor& cos) const {
    if (x.rank() != 3 && x.rank() != 4)
      fail(ErrorCode::ShapeMismatch, cat(kName, " takes X of rank 3 or 4, got ", x.to_string()));
    if (cos.rank() < 2) fail(ErrorCode::ShapeMismatch, cat(kName, ": the cos cache is ", cos.to_string()));
    Sizes s{.batch = x.dim(0), .heads = heads_, .length = 0, .head = 0, .rotated = rotated_, .flat = x.rank() == 3};
    if (s.flat) {
      // Without num_heads com.microsoft's form takes the head's size from the cache.
      if (Microsoft && s.heads == 0) s.heads = x.dim(2) / std::max<std::int64_t>(1, cos.shape().back() * 2);
      if (s.heads < 1 || x.dim(2) % s.heads != 0)
        fail(ErrorCode::ShapeMismatch, cat(kName, ": X ", x.to_string(), " does not divide into ", s.heads, " heads"));
      s.length = x.dim(1);
      s.head = x.dim(2) / s.heads;
    } else {
      s.heads = x.dim(1);
      s.length = x.dim(2);
      s.head = x.dim(3);
    }
    if (s.rotated == 0) s.rotated = s.head;
    if (s.rotated < 0 || s.rotated > s.head || s.rotated % 2 != 0 || cos.shape().back() != s.rotated / 2) {
      fail(ErrorCode::ShapeMismatch, cat(kName, ": a cache of ", cos.shape().back(), " columns does not turn ",
                                         s.rotated, " of ", s.head, " elements"));
    }
    return s;
  }

  /// Row of the caches for each [batch, position].
  kernel::Scratch<std::size_t> cache_rows(const kernel::RunContext& run, const Sizes& s, const Tensor& cos,
                                          const Tensor* positions) const {
    const auto count = static_cast<std::size_t>(checked_mul(s.batch, s.length));
    kernel::Scratch<std::size_t> rows(run, count);
    kernel::Watch watch(run);
    if (positions == nullptr) {
      if (cos.rank() != 3 || cos.dim(0) != s.batch || cos.dim(1) != s.length)
        fail(ErrorCode::ShapeMismatch,
             cat(kName, " without positions takes caches [", s.batch, ",", s.length, ",...], got ", cos.to_string()));
      for (std::size_t i = 0; i < count; ++i) rows[i] = i;
      return rows;
    }
    const kernel::Numbers<std::int64_t> given(run, *positions);
    const bool offset = Microsoft && given.size() == 1 && count != 1;  // of the first position
    if (!offset && given.size() != count) {
      fail(ErrorCode::ShapeMismatch,
           cat(kName, ": positions ", positions->to_string(), " for ", s.batch, " x ", s.length, " tokens"));
    }
    const std::int64_t limit = cos.numel() / std::max<std::int64_t>(1, cos.shape().back());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t p = offset ? checked_add(given[0], static_cast<std::int64_t>(i) % s.length) : given[i];
      if (p < 0 || p >= limit)
        fail(ErrorCode::InvalidArgument, cat(kName, ": position ", p, " lies outside a cache of ", limit, " rows"));
      rows[i] = static_cast<std::size_t>(p);
      watch.did(5);
    }
    return rows;
  }

  void turn(const float* x, const float* cos, const float* sin, float* y, std::size_t half, std::size_t head) const {
    const std::size_t step = interleaved_ ? 2 : 1, second = interleaved_ ? 1 : half;
    for (std::size_t i = 0; i < half; ++i) {
      const float a = x[i * step] * scale_, b = x[i * step + second] * scale_;
      y[i * step] = cos[i] * a - sin[i] * b;
      y[i * step + second] = sin[i] * a + cos[i] * b;
    }
    for (std::size_t i = 2 * half; i < head; ++i) y[i] = x[i];
  }

  const microkernels::KernelSet& kernels_;
  std::int64_t heads_, rotated_;
  bool interleaved_;
  float scale_;
};

void infer_rotary(kernel::InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (const graph::SymShape* x = ctx.input_shape(0)) ctx.set_output_shape(0, *x);
}

}  // namespace

void register_rotary_embedding(kernel::OpRegistrar& r) {
  r.op("RotaryEmbedding")
      .version(23, "X:T, cos_cache:T, sin_cache:T, position_ids:M? -> Y:T; T = float|float16|bfloat16, M = int64")
      .infer(infer_rotary)
      .kernel<RotaryEmbedding<false>>();
  r.op("RotaryEmbedding", "com.microsoft")
      .version(1,
               "input:T, position_ids:M, cos_cache:T, sin_cache:T -> output:T; T = float|float16|bfloat16, M = int64")
      .infer(infer_rotary)
      .kernel<RotaryEmbedding<true>>();
}

}  // namespace infernode::ops
