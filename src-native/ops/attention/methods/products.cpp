// Products of queries and keys, softmax, products with values: one after the other, block by block of queries.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/attention/loops.h"
#include "ops/attention/methods/method.h"

namespace infernode::ops {

namespace {

using microkernels::KernelSet;
using microkernels::PackedOperand;
using tensor::DType;

template <class T>
class Products {
 public:
  using Stage = typename AttentionCall<T>::Stage;

  /// With blocks of so many rows. `even`: about the same number of rows in each of them.
  Products(const KernelSet& kernels, const AttentionCall<T>& call, std::size_t rows, bool even)
      : loops_(call.precision == DType::Undefined ? kernels : kernels.exact()),
        c_(call),
        rounds_(call.precision != DType::Undefined),
        open_(call.scores == nullptr && call.sinks == nullptr && !is_16_bit(call.precision) &&
              !is_16_bit(call.softmax_precision)),
        scales_late_(open_ && call.softcap <= 0 && call.mask.data == nullptr && call.scale > 0 &&
                     std::isfinite(static_cast<float>(call.scale))),
        rows_(rows) {
    rows_ = std::clamp<std::size_t>(rows_, 1, std::min(kMostRows, std::max<std::size_t>(1, c_.q_len)));
    // Rows of scores start on lines of memory, and not all of them on the same lines of a cache.
    ld_ = std::is_same_v<T, float> ? align_up(c_.kv_len, 16) : c_.kv_len;
    if (ld_ % 256 == 0) ld_ += 16;
    if (rounds_ || std::is_same_v<T, double> || rows_ == c_.q_len) return;
    if (even)  // in whole tiles
      rows_ = std::min(align_up(ceil_div(c_.q_len, ceil_div(c_.q_len, rows_)), loops_.tile_rows()), c_.q_len);
    constexpr std::size_t kMost = 8 << 20;
    key_bytes_ = align_up(loops_.operand(c_.kv_len, c_.head).bytes, 64);
    value_bytes_ = align_up(loops_.operand(c_.v_head, c_.kv_len).bytes, 64);
    if (key_bytes_ + value_bytes_ > kMost) key_bytes_ = value_bytes_ = 0;
  }

  /// Computes `parts`, each of at most as many rows as a block has; everything where `parts` is empty.
  void run(kernel::KernelContext& ctx, std::span<const AttentionPart> parts) const {
    const std::size_t blocks = ceil_div(c_.q_len, rows_), group = c_.q_heads / c_.kv_heads;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    // Beside the GEMM's own scratch: scores, and 16-bit operands after their scaling.
    const std::size_t scores = checked_mul(rows_, ld_);
    const std::size_t copies = rounds_ ? checked_mul(rows_ + c_.kv_len, c_.head) : 0;
    const std::size_t before = align_up(checked_mul(checked_add(scores, copies), sizeof(T)), 64);
    const std::size_t own = checked_add(before, key_bytes_ + value_bytes_);
    const std::size_t stride = own + align_up(loops_.scratch_floats() * sizeof(float), 64);
    const tensor::Buffer memory = ctx.scratch(checked_mul(stride, threads));
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> packed_heads(threads, kNone);  // by slot: whose keys and values are packed there
    const double cost = 2.0 * static_cast<double>(rows_) * static_cast<double>(c_.kv_len) *
                        static_cast<double>(c_.head + c_.v_head + 16) / 30;
    const auto part_at = [&](std::size_t i) {
      if (!parts.empty()) return parts[i];
      const std::size_t first = i % blocks * rows_;
      return AttentionPart{i / blocks / c_.q_heads, i / blocks % c_.q_heads, first, std::min(rows_, c_.q_len - first)};
    };
    const std::size_t count = parts.empty() ? c_.batch * c_.q_heads * blocks : parts.size();
    ctx.parallel_for(count, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* const work = reinterpret_cast<T*>(memory.data() + slot * stride);
      auto* const scratch = reinterpret_cast<float*>(memory.data() + slot * stride + own);
      std::byte* const packed = key_bytes_ == 0 ? nullptr : memory.data() + slot * stride + before;
      PackedOperand keys, values;
      if (packed != nullptr) {
        keys = loops_.operand(c_.kv_len, c_.head, packed);
        values = loops_.operand(c_.v_head, c_.kv_len, packed + key_bytes_);
      }
      kernel::Watch watch(ctx.run());
      for (std::size_t i = begin; i < end; ++i) {
        if (i % 16 == 0) ctx.run().check();
        const AttentionPart part = part_at(i);
        const Block b{part.batch, part.head, part.head / group, part.first, part.rows, keys, values};
        if (packed != nullptr && packed_heads[slot] != b.batch * c_.kv_heads + b.kv_head) {
          packed_heads[slot] = b.batch * c_.kv_heads + b.kv_head;
          loops_.pack(keys, c_.k.at(b.batch, b.kv_head), c_.k.row, true, packed);
          loops_.pack(values, c_.v.at(b.batch, b.kv_head), c_.v.row, false, packed + key_bytes_);
        }
        block(ctx.run(), watch, b, work, scratch);
      }
    });
  }

 private:
  static constexpr std::size_t kMostRows = 256;  ///< of a block

  struct Block {
    std::size_t batch, head, kv_head, first, rows;
    const PackedOperand &keys, &values;  ///< of the head, which its blocks share; maybe not packed
  };

  /// Keys that some row of the block may see: those behind them need not be looked at.
  std::size_t reach(const Block& b) const {
    std::int64_t end = static_cast<std::int64_t>(c_.kv_len);
    if (!c_.lengths.empty()) end = std::min(end, c_.lengths[b.batch]);
    const std::int64_t last = offset(b.batch) + static_cast<std::int64_t>(b.first + b.rows) - 1;
    if (c_.causal) end = std::min(end, last + 1);
    if (c_.right_window >= 0) end = std::min(end, last + c_.right_window + 1);
    return static_cast<std::size_t>(std::max<std::int64_t>(0, end));
  }
  std::int64_t offset(std::size_t batch) const { return c_.offsets.empty() ? 0 : c_.offsets[batch]; }

  /// Looks between its parts whether the run is to end: keys may be many.
  void block(const kernel::RunContext& run, kernel::Watch& watch, const Block& b, T* work, float* scratch) const {
    const std::size_t n = c_.scores != nullptr ? c_.kv_len : reach(b);
    T* const y = c_.y.at(b.batch, b.head, b.first);
    if (n == 0) {
      for (std::size_t r = 0; r < b.rows; ++r) std::fill_n(y + r * c_.y.row, c_.v_head, T{0});
      return;
    }
    products(run, watch, b, n, work, scratch);
    run.check();
    const PackedOperand values = b.values && loops_.takes_depth(n, b.values) ? b.values : PackedOperand();
    if (open_) return open_rows(run, watch, b, n, values, work, y, scratch);
    for (std::size_t r = 0; r < b.rows; ++r) finish_row(watch, b, r, n, work + r * ld_);
    run.check();
    loops_.multiply(run, b.rows, c_.v_head, n, 1, work, ld_, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values, y,
                    c_.y.row, scratch);
  }

  /// The rest of a block whose rows are divided by the sums of their exponentials after they are multiplied by values.
  void open_rows(const kernel::RunContext& run, kernel::Watch& watch, const Block& b, std::size_t n,
                 const PackedOperand& values, T* scores, T* y, float* scratch) const {
    const bool powers = values && loops_.makes_powers();
    const double scale = scales_late_ ? c_.scale : 1;
    std::array<T, kMostRows> sums{};  // 0: no key counts
    for (std::size_t r = 0; r < b.rows; ++r) {
      T* const row = scores + r * ld_;
      cap(watch, row, n);
      if (add_bias(watch, b, b.first + r, n, row)) {
        sums[r] = powers ? loops_.powers(row, n, scale) : loops_.exponentials(watch, row, n, scale);
        if (c_.zero_nan && std::isnan(sums[r])) sums[r] = 0;
      }
      if (sums[r] == 0) std::fill_n(row, n, T{0});
      watch.did(static_cast<double>(n));
    }
    if (powers) {
      loops_.multiply_powers(b.rows, c_.v_head, n, scores, ld_, values, y, c_.y.row, scratch);
    } else {
      loops_.multiply(run, b.rows, c_.v_head, n, 1, scores, ld_, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values,
                      y, c_.y.row, scratch);
    }
    for (std::size_t r = 0; r < b.rows; ++r) {
      T* const row = y + r * c_.y.row;
      if (sums[r] == 0) {
        if (std::isnan(c_.shut_row)) std::fill_n(row, c_.v_head, c_.shut_row);
        continue;
      }
      const double factor = 1 / static_cast<double>(sums[r]);
      if (std::isfinite(loops_.magnitude(row, c_.v_head))) {
        loops_.scale(row, c_.v_head, factor);
        continue;
      }
      // The product alone may be too large: of probabilities it is not.
      T* const row_scores = scores + r * ld_;
      if (powers) loops_.widen(row_scores, n);
      loops_.scale(row_scores, n, factor);
      loops_.multiply(run, 1, c_.v_head, n, 1, row_scores, n, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values, row,
                      c_.y.row, scratch);
    }
  }

  void products(const kernel::RunContext& run, kernel::Watch& watch, const Block& b, std::size_t n, T* scores,
                float* scratch) const {
    const T* q = c_.q.at(b.batch, b.head, b.first);
    const T* k = c_.k.at(b.batch, b.kv_head);
    if (!rounds_) {
      return loops_.multiply(run, b.rows, n, c_.head, scales_late_ ? 1 : c_.scale, q, c_.q.row, k, c_.k.row, true,
                             b.keys, scores, ld_, scratch);
    }
    // Each operand takes the root of the scale.
    T root = static_cast<T>(std::sqrt(c_.scale));
    loops_.round(c_.precision, &root, 1);
    T* const copies = scores + rows_ * ld_;
    const auto scaled = [&](const T* from, std::size_t stride, std::size_t rows, T* to) {
      in_pieces(watch, rows, 2.0 * static_cast<double>(c_.head), [&](std::size_t begin, std::size_t end) {
        T* const piece = to + begin * c_.head;
        const std::size_t count = (end - begin) * c_.head;
        for (std::size_t r = begin; r < end; ++r) std::copy_n(from + r * stride, c_.head, to + r * c_.head);
        loops_.scale(piece, count, static_cast<double>(root));
        loops_.round(c_.precision, piece, count);
      });
      return to;
    };
    const T* left = scaled(q, c_.q.row, b.rows, copies);
    const T* right = scaled(k, c_.k.row, n, copies + rows_ * c_.head);
    loops_.multiply(run, b.rows, n, c_.head, 1, left, c_.head, right, c_.head, true, PackedOperand(), scores, ld_,
                    scratch);
    for (std::size_t r = 0; r < b.rows; ++r) round(watch, scores + r * ld_, n);
  }

  static bool is_16_bit(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

  /// Scores of one query to probabilities.
  void finish_row(kernel::Watch& watch, const Block& b, std::size_t r, std::size_t n, T* row) const {
    const std::size_t query = b.first + r;
    T* const stored =
        c_.scores == nullptr ? nullptr : c_.scores + ((b.batch * c_.q_heads + b.head) * c_.q_len + query) * c_.kv_len;
    const auto keep = [&](Stage stage) {
      if (stored == nullptr || c_.stage != stage) return;
      in_pieces(watch, n, 1.0,
                [&](std::size_t begin, std::size_t end) { std::copy(row + begin, row + end, stored + begin); });
    };
    keep(Stage::Raw);
    cap(watch, row, n);
    keep(Stage::Capped);
    const bool any = add_bias(watch, b, query, n, row);
    round(watch, row, n);
    keep(Stage::Biased);
    if (any) {
      const T most = c_.sinks == nullptr ? T{0} : *std::max_element(row, row + n);
      softmax(watch, row, n);
      if (c_.sinks != nullptr) sink(c_.sinks[b.head] - most, row, n);
      if (c_.zero_nan && std::isnan(row[0])) std::fill_n(row, n, T{0});  // then all of them are NaN
    } else {
      std::fill_n(row, n, c_.shut_row);
    }
    keep(Stage::Probabilities);
    round(watch, row, n);
  }

  void cap(kernel::Watch& watch, T* row, std::size_t n) const {
    if (c_.softcap <= 0) return;
    in_pieces(watch, n, 4.0, [&](std::size_t begin, std::size_t end) {
      T* const piece = row + begin;
      const std::size_t count = end - begin;
      const auto round = [&] {
        if (rounds_) loops_.round(c_.precision, piece, count);
      };
      loops_.divide(piece, count, c_.softcap);
      round();
      loops_.tanh(piece, count);
      round();
      loops_.scale(piece, count, c_.softcap);
      round();
    });
  }

  void round(kernel::Watch& watch, T* row, std::size_t n) const {
    if (!rounds_) return watch.did(static_cast<double>(n));
    in_pieces(watch, n, 1.0,
              [&](std::size_t begin, std::size_t end) { loops_.round(c_.precision, row + begin, end - begin); });
  }

  /// Takes the share of a score that lies `above` the greatest one out of probabilities.
  void sink(T above, T* row, std::size_t n) const {
    const T most = *std::max_element(row, row + n);  // 1 / the sum of powers
    loops_.scale(row, n, 1 / (1 + static_cast<double>(std::exp(above) * most)));
  }

  void softmax(kernel::Watch& watch, T* row, std::size_t n) const {
    const DType type = c_.softmax_precision == DType::Undefined ? c_.precision : c_.softmax_precision;
    loops_.softmax(watch, type, row, n);
  }

  /// Adds the mask and shuts keys out; false where no key is left.
  bool add_bias(kernel::Watch& watch, const Block& b, std::size_t query, std::size_t n, T* row) const {
    constexpr T kShut = -std::numeric_limits<T>::infinity();
    const auto count = static_cast<std::int64_t>(n);
    const std::int64_t position = offset(b.batch) + static_cast<std::int64_t>(query);
    std::int64_t first = 0, last = count;  // keys that the geometry leaves open
    if (!c_.lengths.empty()) last = std::min(last, c_.lengths[b.batch]);
    if (c_.causal) last = std::min(last, position + 1);
    if (c_.right_window >= 0) last = std::min(last, position + c_.right_window + 1);
    if (c_.left_window >= 0) first = std::max<std::int64_t>(first, position - c_.left_window);
    if (c_.mask.data != nullptr) last = std::min(last, static_cast<std::int64_t>(c_.mask_columns));
    last = std::max<std::int64_t>(last, 0);
    first = std::min(first, last);
    std::fill(row, row + first, kShut);
    std::fill(row + last, row + count, kShut);
    if (c_.mask.data == nullptr) return first < last;
    const T* mask = c_.mask.at(b.batch, b.head, query);
    bool any = false;
    in_pieces(watch, static_cast<std::size_t>(last - first), 1.0, [&](std::size_t begin, std::size_t end) {
      const T* const open = mask + first + begin;
      T* const piece = row + first + begin;
      const std::size_t count = end - begin;
      if (loops_.add_open(open, piece, count)) {
        any = true;
        return;
      }
      for (std::size_t i = 0; i < count; ++i) {
        any = any || open[i] != kShut;
        piece[i] += open[i];
      }
    });
    return any;
  }

  AttentionLoops<T> loops_;
  const AttentionCall<T>& c_;
  bool rounds_;
  bool open_;         ///< rows of the result are divided by the sums of exponentials, not the probabilities
  bool scales_late_;  ///< nothing is added to scores, so that they are scaled where exponentials are made
  std::size_t rows_;  ///< of a block
  std::size_t ld_;    ///< elements from one row of scores to the next
  std::size_t key_bytes_ = 0, value_bytes_ = 0;  ///< of a head's packed keys and values; 0: they are not
};

/// Each block reads keys and values anew; the matrix unit splits scores, too, and gains by more rows.
constexpr std::size_t kBlocks[] = {16, 32, 64}, kUnitBlocks[] = {16, 32, 64, 96, 128, 192, 256};
std::span<const std::size_t> blocks(const AttentionSite& site, const KernelSet& kernels) {
  if (!kernels.gemm.matrix_unit) return kBlocks;
  constexpr std::size_t kMostScores = 1 << 19;  // of a block: what a second-level cache holds
  std::size_t count = 1;
  while (count < std::size(kUnitBlocks) && kUnitBlocks[count] * site.kv_len <= kMostScores) ++count;
  return std::span(kUnitBlocks).first(count);
}

double number(std::size_t v) { return static_cast<double>(v); }

bool can_run(const AttentionSite&, const KernelSet&) { return true; }

/// Blocks, multiply-adds of whole vectors, powers, floats of keys and values that are packed, rows, and floats of keys
/// and values that few rows read as they lie.
cost::Terms terms(const AttentionSite& s, std::size_t rows, const KernelSet& kernels) {
  constexpr std::size_t kFewRows = 4;
  const auto whole = [](std::size_t v, std::size_t step) { return number((v + step - 1) / step * step); };
  const double blocks = number(s.heads) * number((s.q_len + rows - 1) / rows), all_rows = number(s.heads * s.q_len);
  const bool unit = kernels.gemm.matrix_unit;
  const std::size_t half = kernels.gemm.nr / 2, tile_rows = unit ? 16 : 1, depth = unit ? 32 : 1;
  const double operands = number(s.kv_len) * number(s.head + s.v_head);
  const bool few = s.q_len <= kFewRows, triangle = s.causal && s.q_len > 1 && s.kv_len >= s.q_len;
  const double keys = number(s.kv_len) - (triangle ? (number(s.q_len) - number(rows)) / 2 : 0);  // that a block sees
  const double seen = keys / number(s.kv_len);
  return {blocks,
          number(s.heads) * whole(s.q_len, tile_rows) * seen *
              (whole(s.kv_len, half) * whole(s.head, depth) + whole(s.v_head, half) * whole(s.kv_len, depth)),
          all_rows * keys,
          few ? 0 : number(rows < s.q_len ? s.groups : s.heads) * operands,
          all_rows,
          few ? number(s.heads) * operands : 0};
}

void run(kernel::KernelContext& ctx, const KernelSet& kernels, const AttentionCall<float>& call, std::size_t rows) {
  run_attention_products<float>(ctx, kernels, call, rows);
}

}  // namespace

template <class T>
void run_attention_products(kernel::KernelContext& ctx, const KernelSet& kernels, const AttentionCall<T>& call,
                            std::size_t rows, std::span<const AttentionPart> parts) {
  Products<T>(kernels, call, rows, parts.empty()).run(ctx, parts);
}

template void run_attention_products(kernel::KernelContext&, const KernelSet&, const AttentionCall<float>&, std::size_t,
                                     std::span<const AttentionPart>);
template void run_attention_products(kernel::KernelContext&, const KernelSet&, const AttentionCall<double>&,
                                     std::size_t, std::span<const AttentionPart>);

const AttentionMethod kAttentionProducts = {
    "attention.products",
    "products and softmax one after the other, with everything that operators ask for beside them: caps, windows, "
    "scores that are kept, 16-bit steps; also by the matrix unit",
    blocks,
    can_run,
    terms,
    run};

}  // namespace infernode::ops
