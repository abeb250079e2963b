#include "microkernels/blocked/detail/pairs.h"
#include "microkernels/common/bf16_pairs.h"

// After what it calls: `load` of bfloat16 numbers.
#include "microkernels/blocked/detail/depthwise.simd.h"

// Depthwise convolutions between blocks of bfloat16 numbers: computed in float32.
namespace infernode::microkernels {
namespace {

// Apart from the loops, which are many: made once for each count.
template <std::size_t kCount>
[[gnu::noinline]] void activate_outputs(const ActivationArgs& activation, VecF* x) noexcept {
  activate_tile<kCount>(activation, x);
}

template <std::size_t kCount>
INFERNODE_SIMD void put_outputs(const Taps<std::uint16_t>& t, std::size_t, std::size_t step, const VecF* sum) {
  const VecF low = set(t.low), high = set(t.high);
  VecF made[kCount];
  INFERNODE_UNROLL
  for (std::size_t i = 0; i < kCount; ++i) {
    VecF value = sum[i];
    if (t.residual) value = value + load(t.residual + i * step);
    made[i] = clamp(value, low, high);
  }
  if (t.activation) {
    VecF held[kCount];  // what leaves the registers, on this way alone
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) held[i] = made[i];
    activate_outputs<kCount>(*t.activation, held);
    INFERNODE_UNROLL
    for (std::size_t i = 0; i < kCount; ++i) made[i] = held[i];
  }
  if (step == kChannelBlock) return store_rows<kCount>(t.y, made);
  for (std::size_t i = 0; i < kCount; ++i) store_rows<1>(t.y + i * step, made + i);
}

void depthwise(const BlockedConvArgs& args, std::size_t begin, std::size_t end) noexcept {
  depthwise_blocks<std::uint16_t>(args, args.input_bf16, args.residual_bf16, args.output_bf16, begin, end);
}

}  // namespace

INFERNODE_TABLE_OF(BlockedDepthwiseTable, blocked_depthwise, medium) = {depthwise};

}  // namespace infernode::microkernels
