#include "ops/common/reals.h"
#include "microkernels/convert/convert.h"

namespace infernode::ops {

using tensor::DType;
using tensor::TypeTag;

void convert_reals(const kernel::RunContext& run, const microkernels::KernelSet& kernels, DType from_type,
                   const void* from, DType to_type, void* to, std::size_t count) {
  const microkernels::ConvertTable& table = kernels.convert;
  using Bits = std::uint16_t;
  constexpr double kCost = 0.3;
  run.parallel_for(count, kCost, [&](std::size_t begin, std::size_t end, std::size_t) {
    const std::size_t n = end - begin;
    const auto* bits_in = static_cast<const Bits*>(from) + begin;
    auto* bits_out = static_cast<Bits*>(to) + begin;
    if (to_type == DType::Float32 && from_type == DType::Float16)
      return table.f16_to_f32(bits_in, static_cast<float*>(to) + begin, n);
    if (to_type == DType::Float32 && from_type == DType::BFloat16)
      return table.bf16_to_f32(bits_in, static_cast<float*>(to) + begin, n);
    if (from_type == DType::Float32 && to_type == DType::Float16)
      return table.f32_to_f16(static_cast<const float*>(from) + begin, bits_out, n);
    if (from_type == DType::Float32 && to_type == DType::BFloat16)
      return table.f32_to_bf16(static_cast<const float*>(from) + begin, bits_out, n);
    tensor::dispatch_floats(from_type, "conversion", [&]<class From>(TypeTag<From>) {
      tensor::dispatch_floats(to_type, "conversion", [&]<class To>(TypeTag<To>) {
        using Wide = tensor::ComputeTypeOf<From>;
        const From* x = static_cast<const From*>(from) + begin;
        To* y = static_cast<To*>(to) + begin;
        for (std::size_t i = 0; i < n; ++i) y[i] = static_cast<To>(static_cast<Wide>(x[i]));
      });
    });
  });
}

}  // namespace infernode::ops
