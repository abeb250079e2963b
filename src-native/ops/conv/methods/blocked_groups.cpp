// Groups of channels that share blocks, apart from each other.
#include <array>
#include <cmath>

#include "microkernels/reduce/reduce.h"
#include "ops/conv/methods/blocked.h"

namespace infernode::ops {
using microkernels::kChannelBlock;
using tensor::DType;
using tensor::Tensor;

namespace {

/// Whether one of the bfloat16 numbers has an exponent of all ones: one more carries into its sign's place.
bool any_beyond(const std::uint16_t* x, std::size_t count) {
  std::uint16_t most = 0;
  for (std::size_t i = 0; i < count; ++i) most |= static_cast<std::uint16_t>((x[i] & 0x7f80u) + 0x80u);
  return (most & 0x8000u) != 0;
}

template <class T>
void take(const Tensor& from, const Tensor& to, const std::array<bool, kChannelBlock>& taken, std::size_t first,
          std::size_t positions, bool clear_others) {
  const T* const x = static_cast<const T*>(from.raw()) + first;
  T* const y = static_cast<T*>(to.mutable_raw()) + first;
  for (std::size_t i = 0; i < positions * kChannelBlock; ++i) {
    if (taken[i % kChannelBlock]) {
      y[i] = x[i];
    } else if (clear_others) {
      y[i] = 0;
    }
  }
}

}  // namespace

std::vector<std::size_t> beyond_numbers(kernel::KernelContext& ctx, const microkernels::ReduceTable& reduce,
                                        const Tensor& x, std::size_t parts) {
  const std::size_t count = static_cast<std::size_t>(x.numel()) / parts;
  const auto sum = reduce.row[static_cast<std::size_t>(microkernels::ReduceOp::kSum)];
  std::vector<std::uint8_t> beyond(parts);
  ctx.parallel_for(parts, 0.05 * static_cast<double>(count), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t part = begin; part < end; ++part) {
      beyond[part] = x.dtype() == DType::BFloat16
                         ? any_beyond(static_cast<const std::uint16_t*>(x.raw()) + part * count, count)
                         : !std::isfinite(sum(x.data<float>() + part * count, count));
    }
  });
  std::vector<std::size_t> found;
  for (std::size_t part = 0; part < parts; ++part) {
    if (beyond[part] != 0) found.push_back(part);
  }
  return found;
}

void take_group(const Tensor& from, const Tensor& to, std::size_t width, std::size_t count, std::size_t group,
                bool clear_others) {
  const auto blocks = static_cast<std::size_t>(from.dim(0) * from.dim(1));
  const auto positions = static_cast<std::size_t>(from.dim(2) * from.dim(3));
  for (std::size_t block = 0; block < blocks; ++block) {
    std::array<bool, kChannelBlock> taken;
    for (std::size_t i = 0; i < kChannelBlock; ++i) taken[i] = (block * kChannelBlock + i) / width % count == group;
    const std::size_t first = block * positions * kChannelBlock;
    if (from.dtype() == DType::BFloat16) {
      take<std::uint16_t>(from, to, taken, first, positions, clear_others);
    } else {
      take<float>(from, to, taken, first, positions, clear_others);
    }
  }
}

}  // namespace infernode::ops
