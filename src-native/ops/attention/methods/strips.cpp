// Fused loops over strips of queries: keys and values are rearranged once a head, scores stay near.
#include <algorithm>
#include <atomic>

#include "base/checked.h"
#include "microkernels/attention/attention.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"
#include "ops/attention/methods/method.h"

namespace infernode::ops {

namespace {

using microkernels::AttentionStrip;
using microkernels::AttentionTable;
using microkernels::KernelSet;

constexpr std::size_t kBlocks[] = {12, 24, 48, 96};
std::span<const std::size_t> blocks(const AttentionSite&, const KernelSet&) { return kBlocks; }

double number(std::size_t v) { return static_cast<double>(v); }

/// Where products are those of vectors of float32, scores do not take too much memory, and keys are read often enough
/// to be rearranged.
bool can_run(const AttentionSite& site, const KernelSet& kernels) {
  constexpr std::size_t kMostKeys = 1 << 16, kLeastRows = 3;
  return site.plain && site.kv_len <= kMostKeys && site.q_len >= kLeastRows && !kernels.gemm.matrix_unit &&
         !kernels.gemm.rounds;
}

/// Register tiles, their multiply-adds, powers, floats of keys and values that are rearranged, rows, and floats of keys
/// and values that the blocks read from beyond a second-level cache.
cost::Terms terms(const AttentionSite& s, std::size_t rows, const KernelSet& kernels) {
  constexpr double kNearFloats = 200 << 10;
  const AttentionTable& table = microkernels::attention_table(kernels.rung);
  const auto whole = [](std::size_t v, std::size_t step) { return (v + step - 1) / step; };
  const double strips = number(s.heads) * (number(s.q_len / rows) * number(whole(rows, table.rows)) +
                                           number(whole(s.q_len % rows, table.rows)));
  const double seen =
      s.causal && s.q_len > 1 && s.kv_len >= s.q_len ? (number(s.kv_len) - number(s.q_len) / 2) / number(s.kv_len) : 1;
  const double key_vectors = number(whole(s.kv_len, table.lanes)), lanes = number(table.lanes);
  const double products = key_vectors * number(s.head) + number(whole(s.v_head, table.lanes)) * number(s.kv_len);
  const double tiles = number(whole(s.kv_len, table.columns)) + number(whole(s.v_head, table.columns));
  const bool copied = !s.values_lie || s.v_head % table.lanes != 0;
  const double operands = number(s.kv_len) * number(s.head + s.v_head);
  const double all_rows = number(s.heads) * number(s.q_len);
  // Blocks of all heads of a group follow each other.
  return {strips * tiles * seen,
          std::max(all_rows, strips * number(table.rows) / 3) * products * lanes * seen,
          all_rows * key_vectors * lanes * seen,
          number(s.groups) * number(s.kv_len) * number(s.head + (copied ? s.v_head : 0)),
          all_rows,
          operands > kNearFloats ? number(s.heads) * number(whole(s.q_len, rows)) * operands * seen : 0};
}

class Strips {
 public:
  Strips(const KernelSet& kernels, const AttentionCall<float>& call, std::size_t rows)
      : table_(microkernels::attention_table(kernels.rung)),
        c_(call),
        rows_(rows),
        copied_(call.v.row != call.v_head || call.v_head % table_.lanes != 0),
        keys_(align_up(table_.keys_floats(call.kv_len, call.head), 16)),
        values_(copied_ ? align_up(checked_mul(table_.values_stride(call.v_head), call.kv_len), 16) : 0) {}

  /// Returns the parts that are yet to be made by products.
  std::vector<AttentionPart> run(kernel::KernelContext& ctx, double nanoseconds) const {
    const std::size_t blocks = ceil_div(c_.q_len, rows_), units = c_.batch * c_.q_heads * blocks;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    const std::size_t floats = align_up(keys_ + values_ + table_.scores_floats(rows_, c_.kv_len), 16);
    const tensor::Buffer memory = ctx.scratch(checked_mul(checked_mul(floats, threads), sizeof(float)));
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> packed(threads, kNone);  // by slot: whose keys and values are there
    std::vector<std::uint8_t> odd(units);
    const auto part_at = [&](std::size_t i) {
      const std::size_t first = i % blocks * rows_;
      return AttentionPart{i / blocks / c_.q_heads, i / blocks % c_.q_heads, first, std::min(rows_, c_.q_len - first)};
    };
    ctx.parallel_for(units, nanoseconds / number(units), [&](std::size_t begin, std::size_t end, std::size_t slot) {
      float* const work = reinterpret_cast<float*>(memory.data()) + slot * floats;
      for (std::size_t i = begin; i < end; ++i) {
        if (i % 16 == 0) ctx.run().check();
        const AttentionPart part = part_at(i);
        const std::size_t kv_head = part.head / (c_.q_heads / c_.kv_heads);
        if (packed[slot] != part.batch * c_.kv_heads + kv_head) {
          packed[slot] = part.batch * c_.kv_heads + kv_head;
          pack(part.batch, kv_head, work);
        }
        odd[i] = !make(part, kv_head, work);
      }
    });
    std::vector<AttentionPart> left;
    for (std::size_t i = 0; i < units; ++i)
      if (odd[i]) left.push_back(part_at(i));
    return left;
  }

 private:
  void pack(std::size_t batch, std::size_t kv_head, float* work) const {
    table_.pack_keys(c_.k.at(batch, kv_head), c_.k.row, c_.kv_len, c_.head, work);
    if (copied_) table_.pack_values(c_.v.at(batch, kv_head), c_.v.row, c_.kv_len, c_.v_head, work + keys_);
  }

  bool make(const AttentionPart& part, std::size_t kv_head, float* work) const {
    std::size_t keys = c_.kv_len;
    if (!c_.lengths.empty())
      keys = std::min(keys, static_cast<std::size_t>(std::max<std::int64_t>(0, c_.lengths[part.batch])));
    if (c_.mask.data != nullptr) keys = std::min(keys, c_.mask_columns);
    const std::size_t offset = c_.offsets.empty() ? 0 : static_cast<std::size_t>(c_.offsets[part.batch]);
    const std::size_t first_keys = offset + part.first + 1;
    if (c_.causal) keys = std::min(keys, first_keys + part.rows - 1);
    if (keys == 0) return false;
    return table_.attend({.rows = part.rows,
                          .keys = keys,
                          .head = c_.head,
                          .v_head = c_.v_head,
                          .q = c_.q.at(part.batch, part.head, part.first),
                          .ldq = c_.q.row,
                          .k = work,
                          .v = copied_ ? work + keys_ : c_.v.at(part.batch, kv_head),
                          .ldv = copied_ ? table_.values_stride(c_.v_head) : c_.v.row,
                          .scale = static_cast<float>(c_.scale),
                          .mask = c_.mask.data == nullptr ? nullptr : c_.mask.at(part.batch, part.head, part.first),
                          .ld_mask = c_.mask.row,
                          .causal = c_.causal,
                          .first_keys = first_keys,
                          .scores = work + keys_ + values_,
                          .y = c_.y.at(part.batch, part.head, part.first),
                          .ldy = c_.y.row});
  }

  const AttentionTable& table_;
  const AttentionCall<float>& c_;
  std::size_t rows_;           ///< of a block
  bool copied_;                ///< values, to whole vectors
  std::size_t keys_, values_;  ///< floats of a head's rearranged keys and values
};

void run(kernel::KernelContext& ctx, const KernelSet& kernels, const AttentionCall<float>& call, std::size_t rows) {
  const double products =
      number(call.batch * call.q_heads * call.q_len) * number(call.kv_len * (call.head + call.v_head + 16));
  constexpr double kMultiplyAddsPerNanosecond = 30;
  const std::vector<AttentionPart> left = Strips(kernels, call, rows).run(ctx, products / kMultiplyAddsPerNanosecond);
  if (!left.empty()) run_attention_products(ctx, kernels, call, left.front().rows, left);
}

}  // namespace

const AttentionMethod kAttentionStrips = {
    "attention.strips",
    "some queries at a time: their scores, softmax and sums of values in one call (`microkernels/attention/`). Keys "
    "are "
    "rearranged once a head; a strip with a result that is not finite is made again by products",
    blocks,
    can_run,
    terms,
    run};

}  // namespace infernode::ops
