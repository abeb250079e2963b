#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "ops/quant/dynamic_quantize.h"

namespace infernode::ops {

namespace {

constexpr std::size_t kChunk = 16384;

/// f(chunk, first element, elements) over chunks of n elements, in parallel.
template <class F>
void for_chunks(const kernel::KernelContext& ctx, std::size_t n, F f) {
  ctx.parallel_for(ceil_div(n, kChunk), static_cast<double>(std::min(n, kChunk)) * 0.2,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t i = begin; i < end; ++i) f(i, i * kChunk, std::min(kChunk, n - i * kChunk));
                   });
}

}  // namespace

DynamicScale dynamic_scale(const kernel::KernelContext& ctx, const microkernels::ConvertTable& table, const float* x,
                           std::size_t n) {
  struct Range {
    float low = 0, high = 0;
  };
  std::vector<Range> ranges(ceil_div(n, kChunk));
  for_chunks(ctx, n, [&](std::size_t i, std::size_t first, std::size_t count) {
    table.min_max(x + first, count, &ranges[i].low, &ranges[i].high);
  });
  Range all;
  for (const Range& r : ranges) all = {std::min(all.low, r.low), std::max(all.high, r.high)};
  return DynamicScale(all.low, all.high);
}

void quantize_dynamically(const kernel::KernelContext& ctx, const microkernels::ConvertTable& table, const float* x,
                          std::size_t n, const DynamicScale& scale, std::uint8_t* out) {
  for_chunks(ctx, n, [&](std::size_t, std::size_t first, std::size_t count) {
    table.quantize_u8(x + first, out + first, count, scale.scale, scale.zero);
  });
}

}  // namespace infernode::ops
