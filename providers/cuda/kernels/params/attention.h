#pragma once

#include "providers/cuda/kernels/params/gemm.h"

namespace infernode::cuda {

/// Where row `r` of head `h` of batch `b` begins: elements r * row + h * head + b * batch.
struct HeadStrides {
  std::int64_t row, head, batch;
};

inline constexpr int kJoinRows = 64;                 ///< of keys and values that a block writes
inline constexpr int kFewRows = 16, kFewKeys = 128;  ///< of a block of attention_few; keys of a stage
/// Bytes of a row of a head in shared memory: those of float32 have 16 more, for the banks.
constexpr int few_row_bytes(int head, int size) { return head * size + (size == 4 ? 16 : 0); }
/// Stages of attention_few that are under way at most, a power of two: about 128 KB.
constexpr int few_stages(int head, int size) { return 131072 / (2 * kFewKeys * head * size); }

/// Bytes of shared memory of a block of attention_wgmma.
constexpr int wgmma_attention_shared(int head, int rows, int keys, int stages, bool masked) {
  return 1024 + (rows + stages * 2 * keys) * head * 2 + (masked ? stages * rows * keys * 2 : 0);
}

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
  std::int32_t bias_words;  ///< rows of 16-bit masks begin at whole words of 16 bytes
  std::int32_t stages;      ///< of keys and values in shared memory, before the masks
  std::int32_t vectors;     ///< rows of q, k and v are whole 16-byte words of float32
  std::int32_t out_vector;  ///< rows of the output allow 16-byte stores
  Element type, bias_type;
  // Kernels named attention_few alone. Where new_k is not 0, each key head has one tile of queries, and keys from
  // `past` on lie there; all are written behind each other, too, by blocks behind the first along x, kJoinRows each.
  std::int32_t cluster;  ///< the parts of the keys are a cluster, which adds them itself
  std::uint64_t new_k, new_v, all_k, all_v;
  HeadStrides new_k_at, new_v_at, all_k_at, all_v_at;
  std::int32_t past;
  std::int32_t past_given;  ///< no kernel of the run writes the keys before `past`
};

/// Hopper: TMA and wgmma; neither lengths nor splits nor groups. The maps' boxes are 64 elements of a warpgroup's
/// queries, or of the keys of a stage, and 64 keys of the masks of a warpgroup's queries. Block: 128 threads for each
/// 64 queries, and 128 that fetch.
struct AttentionTmaParams {
  TensorMap q, k, v, mask;
  AttentionParams a;
  std::int32_t q_batch[2], k_batch[2], v_batch[2],
      mask_batch[2];  ///< 1 where heads, batches lie apart, 0 where they are the same
};

}  // namespace infernode::cuda
