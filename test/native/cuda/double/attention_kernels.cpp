// Attention on the float32 units, from the same source, for the host.

#include "host_kernels.h"

#include "providers/cuda/kernels/attention_simt.cu"

namespace infernode::cuda_double {

void add_attention_kernels(Table& table) {
  using namespace cuda;
  ADD(attention_simt_64, AttentionParams)
  ADD(attention_simt_128, AttentionParams)
  ADD(attention_simt_256, AttentionParams)
  ADD(attention_combine, AttentionParams)
}

}  // namespace infernode::cuda_double
