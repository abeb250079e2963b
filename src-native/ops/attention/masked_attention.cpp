#include "ops/attention/masked_attention.h"
#include "base/checked.h"
#include "base/error.h"
#include "kernel/numbers.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"

#include <cmath>

namespace infernode::ops {

using kernel::KernelContext;
using tensor::Shape;
using tensor::Tensor;

namespace {
std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
}  // namespace

MaskedAttention::MaskedAttention(kernel::KernelInfo& info)
    : kernels_(info.kernels()),
      heads_(info.attributes().get_int("num_heads")),
      causal_(info.attributes().get_int("unidirectional", 0) != 0),
      filter_(info.attributes().get_float("mask_filter_value", -10000)) {
  const float scale = info.attributes().get_float("scale", 0);
  if (scale != 0) scale_ = scale;
  if (heads_ < 1) fail(ErrorCode::InvalidModel, cat("num_heads is ", heads_));
}

double MaskedAttention::scale(std::size_t head) const {
  return scale_ ? static_cast<double>(*scale_) : 1 / std::sqrt(static_cast<double>(head));
}

kernel::CountedVector<float> MaskedAttention::bias(KernelContext& ctx, const Tensor* mask, const Tensor* added,
                                                   AttentionCall<float>& call) const {
  if (mask == nullptr && added == nullptr) return kernel::CountedVector<float>(ctx.run());
  const std::size_t b = call.batch, t = call.kv_len;
  const bool by_head = added != nullptr && added->rank() == 4 && added->dim(1) != 1;
  const bool by_row = added != nullptr || (mask != nullptr && mask->rank() >= 3);
  const std::size_t heads = by_head ? call.q_heads : 1, rows = by_row ? call.q_len : 1;
  kernel::CountedVector<float> out(checked_mul(checked_mul(b * heads, rows), t), 0.0f, ctx.run());
  call.mask = {out.data(), heads * rows * t, by_head ? rows * t : 0, by_row ? t : 0};
  call.mask_columns = t;
  if (mask != nullptr) add_mask(ctx, *mask, call, heads, rows, out.data());
  if (added == nullptr) return out;
  const Shape target{static_cast<std::int64_t>(b), static_cast<std::int64_t>(heads), static_cast<std::int64_t>(rows),
                     static_cast<std::int64_t>(t)};
  const Shape strides = tensor::broadcast_strides(added->shape(), target);
  const RealInput<float> values(ctx, kernels_, *added);
  kernel::Watch watch(ctx.run());
  for (std::size_t i = 0; i < b * heads * rows; ++i) {
    watch.did(static_cast<double>(t));
    const auto at = static_cast<std::int64_t>(i / rows / heads) * strides[0] +
                    static_cast<std::int64_t>(i / rows % heads) * strides[1] +
                    static_cast<std::int64_t>(i % rows) * strides[2];
    for (std::size_t k = 0; k < t; ++k) out[i * t + k] += values[size(at + static_cast<std::int64_t>(k) * strides[3])];
  }
  return out;
}

void MaskedAttention::add_mask(const KernelContext& ctx, const Tensor& mask, const AttentionCall<float>& call,
                               std::size_t heads, std::size_t rows, float* out) const {
  const std::size_t b = call.batch, t = call.kv_len, q = call.q_len;
  const kernel::Numbers<std::int64_t> values(ctx.run(), mask);
  kernel::Watch watch(ctx.run());
  const auto shut = [&](auto closed) {
    for (std::size_t i = 0; i < b * heads * rows; ++i) {
      for (std::size_t k = 0; k < t; ++k) {
        if (closed(i / rows / heads, i % rows, k)) out[i * t + k] += filter_;
      }
      watch.did(2.0 * static_cast<double>(t));
    }
  };
  const auto at = [&](std::size_t i) { return values[i]; };
  if (mask.rank() == 1 && values.size() == b) {
    shut([&](std::size_t n, std::size_t, std::size_t k) { return static_cast<std::int64_t>(k) >= at(n); });
  } else if (mask.rank() == 1 && values.size() == 2 * b) {
    shut([&](std::size_t n, std::size_t, std::size_t k) {
      return static_cast<std::int64_t>(k) >= at(n) || static_cast<std::int64_t>(k) < at(b + n);
    });
  } else if (mask.rank() == 1 && values.size() == 3 * b + 2) {  // lengths, then where sequences start
    shut([&](std::size_t n, std::size_t, std::size_t k) { return static_cast<std::int64_t>(k) >= at(n); });
  } else if (mask.rank() == 2 && values.size() == b * t) {
    shut([&](std::size_t n, std::size_t, std::size_t k) { return at(n * t + k) == 0; });
  } else if (mask.rank() == 3 && values.size() == b * q * t) {
    shut([&](std::size_t n, std::size_t row, std::size_t k) { return at((n * q + row) * t + k) == 0; });
  } else if (mask.rank() == 4 && size(mask.dim(0)) == b && mask.dim(1) == 1 && size(mask.dim(3)) >= t && t >= q &&
             mask.dim(2) == mask.dim(3)) {
    const std::size_t most = size(mask.dim(3));
    shut([&](std::size_t n, std::size_t row, std::size_t k) { return at((n * most + t - q + row) * most + k) == 0; });
  } else {
    fail(ErrorCode::ShapeMismatch,
         cat("an attention mask ", mask.to_string(), " for ", b, " batches, ", q, " queries and ", t, " keys"));
  }
}

}  // namespace infernode::ops
