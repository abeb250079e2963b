#pragma once

#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// Where row `r` of head `h` of batch `b` begins: elements r * row + h * head + b * batch.
struct HeadStrides {
  std::int64_t row, head, batch;
};

/// out = softmax(scale q k' + bias) v. Grid: x query tiles, y heads / group, z batch * splits.
struct AttentionParams {
  std::uint64_t q, k, v, out;
  std::uint64_t bias;     ///< added to the scores: [batch][head][query][key], or 0
  std::uint64_t lengths;  ///< int32 [batch]: how many keys there are, or 0
  std::uint64_t partial;  ///< float32 for attention_combine: [split][batch][head][query][dv + 2], or 0
  HeadStrides q_at, k_at, v_at, out_at, bias_at;
  std::int32_t queries, keys, heads, d, dv;
  std::int32_t heads_per_key;  ///< query heads of a key head
  std::int32_t group;   ///< query heads of a key head that share a tile: row r is query r / group of head r % group
  float per_group;      ///< 1 / group
  std::int32_t splits;  ///< parts of the keys
  std::int32_t batch;
  std::int32_t causal;  ///< query i sees keys up to i + causal_offset (less what lengths cut off)
  std::int32_t causal_offset;
  std::int32_t window;  ///< keys before that many are not seen; 0: all are
  float scale_log2e;
  std::int32_t bias_offset;  ///< bytes of shared memory before the masks
  std::int32_t out_vector;   ///< rows of the output allow 16-byte stores
  Element type, bias_type;
};

}  // namespace infernode::cuda
