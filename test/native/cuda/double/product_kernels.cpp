// Products and convolutions on the float32 units, from the same sources, for the host.

#include "host_kernels.h"

#include "providers/cuda/kernels/depthwise.cu"
#include "providers/cuda/kernels/gemm_simt.cu"
#include "providers/cuda/kernels/pack.cu"

namespace infernode::cuda_double {

void add_product_kernels(Table& table) {
  using namespace cuda;
  ADD(gemm_simt, GemmMmaParams)
  ADD(gemm_reduce, GemmReduceParams)
  ADD(pack, PackParams)
  ADD(depthwise_any, DepthwiseParams)
  ADD(depthwise_3x3_s1, DepthwiseParams)
  ADD(depthwise_3x3_s2, DepthwiseParams)
  ADD(depthwise_5x5_s1, DepthwiseParams)
  ADD(depthwise_5x5_s2, DepthwiseParams)
  ADD(depthwise_7x7_s1, DepthwiseParams)
}

}  // namespace infernode::cuda_double
