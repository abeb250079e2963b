#include "microkernels/attention/attention.h"

#include "microkernels/tables.h"

namespace infernode::microkernels {

const AttentionTable& attention_table(CpuRung rung) noexcept {
  return *choose_attention(rung, Float32Precision::kHighest);
}

}  // namespace infernode::microkernels
