// Products and convolutions on the float32 units, from the same sources, for the host.

#include "host_kernels.h"

#include "providers/cuda/kernels/channelwise/channel_gate.cu"
#undef KERNEL
#include "providers/cuda/kernels/channelwise/depthwise.cu"
#include "providers/cuda/kernels/gemm_simt.cu"
#include "providers/cuda/kernels/pack.cu"

namespace infernode::cuda_double {

void add_product_kernels(Table& table) {
  using namespace cuda;
  ADD(gemm_simt, GemmMmaParams)
  ADD(gemm_reduce, GemmReduceParams)
  ADD(pack, PackParams)
  ADD(depthwise_any, DepthwiseParams)
#define ADD_DEPTHWISE_OF(name) ADD(name, DepthwiseTileParams) ADD(name##_whole, DepthwiseTileParams)
#define ADD_DEPTHWISE(type)                   \
  ADD_DEPTHWISE_OF(depthwise_##type##_3x3_s1) \
  ADD_DEPTHWISE_OF(depthwise_##type##_3x3_s2) \
  ADD_DEPTHWISE_OF(depthwise_##type##_5x5_s1) \
  ADD_DEPTHWISE_OF(depthwise_##type##_5x5_s2) \
  ADD_DEPTHWISE_OF(depthwise_##type##_7x7_s1)
  ADD_DEPTHWISE(f16)
  ADD_DEPTHWISE(bf16)
  ADD(channel_gate_f16, ChannelGateParams)
  ADD(channel_gate_bf16, ChannelGateParams)
  ADD(pixel_means_f16, PixelMeansParams)
  ADD(pixel_means_bf16, PixelMeansParams)
}

}  // namespace infernode::cuda_double
