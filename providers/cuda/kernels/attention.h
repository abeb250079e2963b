#pragma once

#include <optional>

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/attention.h"

namespace infernode::cuda {

/// Heads in memory: element e of row r of head h of batch b at r * row + h * head + b * batch + e.
struct Heads {
  DevicePtr address = 0;
  HeadStrides at{};
};

/// Keys and values in two places: k and v of the problem are the first `past` rows, these the rest. The kernel writes
/// all of them behind each other, too.
struct AttentionJoin {
  Heads k, v, all_k, all_v;
  std::int64_t past = 0;
  bool past_given = false;  ///< the first rows are the caller's: they may be read before the kernels before have ended
};

/// out = softmax(scale q k' + bias) v, for each batch and head. Heads of up to 256 elements. A query that sees no key
/// gives zeros.
struct AttentionProblem {
  std::int64_t batch = 1, heads = 1, kv_heads = 1;  ///< heads: a multiple of kv_heads
  std::int64_t queries = 0, keys = 0;
  std::int64_t d = 0, dv = 0;  ///< elements of a head of q and k, of v
  Element type = Element::f16;
  Heads q, k, v, out;
  float scale = 1;
  Heads bias;  ///< added to the scores: row is the query, element the key; address 0: none
  Element bias_type = Element::f16;
  DevicePtr lengths = 0;  ///< int32 [batch]: how many of the keys there are; 0: all
  bool causal = false;    ///< query i sees keys up to i + causal_offset, which lengths move as they cut keys off
  std::int64_t causal_offset = 0;
  std::int64_t window = 0;              ///< with causal: how many keys a query sees at most; 0: all
  std::optional<AttentionJoin> join{};  ///< for few queries of 16 bits
  DevicePtr workspace = 0;              ///< attention_workspace bytes, 256-byte aligned
};

/// few: attention_few.cuh; tile: attention_mma.cuh; wgmma: attention_wgmma.cuh.
enum class AttentionKernel : std::uint32_t { few, tile, wgmma, simt };

struct AttentionChoice {
  AttentionKernel kernel = AttentionKernel::simt;
  int head = 64;             ///< the kernel's largest head
  int rows = 32, keys = 32;  ///< of a block
  int group = 1;             ///< query heads of a key head in one block
  int splits = 1;            ///< parts of the keys
  float microseconds = 0;    ///< as the model expects
};

/// All that can compute it, the fastest by the model first. Empty where heads are too large, or no kernel joins such
/// keys.
std::vector<AttentionChoice> attention_choices(const Target& target, const AttentionProblem& problem);
std::size_t attention_workspace(const Target& target, const AttentionProblem& problem,
                                const std::optional<AttentionChoice>& choice = std::nullopt);
std::vector<Launch> plan_attention(const Target& target, const AttentionProblem& problem,
                                   const std::optional<AttentionChoice>& choice = std::nullopt);

}  // namespace infernode::cuda
