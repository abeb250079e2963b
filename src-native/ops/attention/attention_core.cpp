#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "base/half.h"
#include "microkernels/attention/attention.h"
#include "microkernels/elementwise/elementwise.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/reduce/reduce.h"
#include "ops/attention/attention_core.h"
#include "ops/math/softmax16.h"
#include "ops/matmul/methods/method.h"

namespace infernode::ops {

namespace {

using tensor::DType;

/// Rows of scores and what is done to them, in T.
template <class T>
class Loops;

template <>
class Loops<float> {
 public:
  explicit Loops(const microkernels::KernelSet& kernels) : kernels_(kernels), gemm_(kernels.gemm) {}
  std::size_t scratch_floats() const { return gemm_.scratch_floats; }
  std::size_t tile_rows() const { return gemm_.mr; }
  /// Whether products are of operands that are split into pieces first.
  bool splits() const { return gemm_.splits; }
  /// Elements of the form in which operands are kept that several blocks multiply by.
  std::size_t packed_size(std::size_t n, std::size_t k) const {
    return align_up(gemm_.operand.bytes(n, k), 64) / sizeof(float);
  }
  void pack(std::size_t n, std::size_t k, const float* b, std::size_t ldb, bool trans_b, float* out) const {
    gemm_.operand.pack(n, k, b, microkernels::FloatType::kF32, ldb, trans_b, out, 0, n);
  }

  /// Whether what is packed of `packed_k` rows serves for the first k of them.
  bool takes_depth(std::size_t k, std::size_t packed_k) const {
    return k % gemm_.operand.depth_unit == 0 || k == packed_k;
  }

  /// c[m, n] = alpha * a[m, k] * b, b [n, k] where `trans_b`, else [k, n]; `packed`, unless null, is b of `packed_n`
  /// columns and `packed_k` rows packed.
  void multiply(std::size_t m, std::size_t n, std::size_t k, double alpha, const float* a, std::size_t lda,
                const float* b, std::size_t ldb, bool trans_b, const float* packed, std::size_t packed_n,
                std::size_t packed_k, float* c, std::size_t ldc, float* scratch) const {
    microkernels::GemmArgs args{
        .m = m, .n = n, .k = k, .alpha = static_cast<float>(alpha), .a = a, .lda = lda, .epilogue = {}};
    args.b = b;
    args.ldb = ldb;
    args.trans_b = trans_b;
    if (packed != nullptr) args.packed_b = gemm_.operand.packed(packed_n, packed_k, packed);
    args.c = c;
    args.ldc = ldc;
    gemm_.gemm(args, {0, m, 0, n}, scratch);
  }
  /// Whether rows of scores may become powers of 16 bits, whose products are divided by their sums.
  bool makes_powers() const { return kernels_.powers != nullptr; }
  /// The same powers, in the first half of x.
  float powers(float* x, std::size_t n, double scale) const {
    return kernels_.powers->powers(x, reinterpret_cast<std::uint16_t*>(x), n, static_cast<float>(scale));
  }
  /// Powers in the first half of x become float32.
  static void widen(float* x, std::size_t n) {
    for (std::size_t i = n; i-- > 0;) {
      std::uint16_t bits;
      std::memcpy(&bits, reinterpret_cast<const std::uint16_t*>(x) + i, sizeof bits);
      x[i] = static_cast<float>(BFloat16::from_bits(bits));
    }
  }
  /// The sum of magnitudes: not finite where an element is not, or if they are very large.
  float magnitude(const float* x, std::size_t n) const {
    return kernels_.reduce.row[static_cast<std::size_t>(microkernels::ReduceOp::kSumAbs)](x, n);
  }
  /// c[m, n] = powers[m, k] * packed, the rows of powers `lda` floats apart.
  void multiply_powers(std::size_t m, std::size_t n, std::size_t k, const float* powers, std::size_t lda,
                       const float* packed, std::size_t packed_n, std::size_t packed_k, float* c, std::size_t ldc,
                       float* scratch) const {
    microkernels::GemmArgs args{.m = m, .n = n, .k = k, .a = powers, .lda = 2 * lda, .epilogue = {}};
    args.a_type = microkernels::FloatType::kBf16;
    args.packed_b = gemm_.operand.packed(packed_n, packed_k, packed);
    args.c = c;
    args.ldc = ldc;
    gemm_.gemm(args, {0, m, 0, n}, scratch);
  }
  void scale(float* x, std::size_t n, double factor) const {
    kernels_.elementwise[microkernels::UnaryOp::kAffine](x, x, n, static_cast<float>(factor), 0);
  }
  void divide(float* x, std::size_t n, double divisor) const {
    const auto d = static_cast<float>(divisor);
    kernels_.elementwise.vector_scalar[static_cast<std::size_t>(microkernels::BinaryOp::kDiv)](x, &d, x, n);
  }
  void tanh(float* x, std::size_t n) const { kernels_.elementwise[microkernels::UnaryOp::kTanh](x, x, n, 0, 0); }
  /// x += mask where no element of the mask is -infinity (or NaN); else does nothing and returns false.
  bool add_open(const float* mask, float* x, std::size_t n) const {
    if (!(kernels_.reduce.row[static_cast<std::size_t>(microkernels::ReduceOp::kMin)](mask, n) >
          -std::numeric_limits<float>::infinity()))
      return false;
    kernels_.elementwise.vector_vector[static_cast<std::size_t>(microkernels::BinaryOp::kAdd)](x, mask, x, n);
    return true;
  }
  /// Rounding to `type` at each step where it is a 16-bit one.
  void softmax(DType type, float* x, std::size_t n) const {
    if (type != DType::Float16 && type != DType::BFloat16) return kernels_.reduce.softmax(x, x, n);
    const Softmax16 steps(kernels_, type);
    steps.round(x, n);
    steps(x, n);
  }
  /// x = exp(scale * (x - the greatest x)); returns their sum.
  float exponentials(float* x, std::size_t n, double scale) const {
    return kernels_.reduce.exponentials(x, x, n, static_cast<float>(scale));
  }
  void round(DType type, float* x, std::size_t n) const { Softmax16(kernels_, type).round(x, n); }

 private:
  const microkernels::KernelSet& kernels_;
  const microkernels::GemmTable& gemm_;
};

template <>
class Loops<double> {
 public:
  explicit Loops(const microkernels::KernelSet& kernels) : gemm_(kernels.gemm_float32) {}
  static bool splits() { return false; }
  std::size_t scratch_floats() const { return gemm_.scratch_floats; }
  static std::size_t tile_rows() { return 1; }
  static std::size_t packed_size(std::size_t, std::size_t) { return 0; }
  static void pack(std::size_t, std::size_t, const double*, std::size_t, bool, double*) {}
  static bool takes_depth(std::size_t, std::size_t) { return true; }

  void multiply(std::size_t m, std::size_t n, std::size_t k, double alpha, const double* a, std::size_t lda,
                const double* b, std::size_t ldb, bool trans_b, const double*, std::size_t, std::size_t, double* c,
                std::size_t ldc, float* scratch) const {
    gemm_.dgemm({.m = m,
                 .n = n,
                 .k = k,
                 .alpha = alpha,
                 .a = a,
                 .lda = lda,
                 .b = b,
                 .ldb = ldb,
                 .trans_b = trans_b,
                 .c = c,
                 .ldc = ldc},
                {0, m, 0, n}, scratch);
  }
  static bool makes_powers() { return false; }
  static float powers(double*, std::size_t, double) { return 0; }
  static void widen(double*, std::size_t) {}
  static double magnitude(const double* x, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(x[i]);
    return sum;
  }
  static void multiply_powers(std::size_t, std::size_t, std::size_t, const double*, std::size_t, const double*,
                              std::size_t, std::size_t, double*, std::size_t, float*) {}
  static void scale(double* x, std::size_t n, double factor) {
    for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
  }
  static void divide(double* x, std::size_t n, double divisor) {
    for (std::size_t i = 0; i < n; ++i) x[i] /= divisor;
  }
  static bool add_open(const double*, double*, std::size_t) { return false; }
  static void tanh(double* x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] = std::tanh(x[i]);
  }
  static double exponentials(double* x, std::size_t n, double scale) {
    const double most = *std::max_element(x, x + n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = std::exp(scale * (x[i] - most));
      sum += x[i];
    }
    return sum;
  }
  static void softmax(DType, double* x, std::size_t n) { divide(x, n, exponentials(x, n, 1)); }
  static void round(DType, double*, std::size_t) {}

 private:
  const microkernels::GemmTable& gemm_;
};

template <class T>
class Attention {
 public:
  using Stage = typename AttentionCall<T>::Stage;

  Attention(const microkernels::KernelSet& kernels, const AttentionCall<T>& call)
      : loops_(call.precision == DType::Undefined ? kernels : kernels.exact()),
        c_(call),
        rounds_(call.precision != DType::Undefined),
        open_(call.scores == nullptr && call.sinks == nullptr && !is_16_bit(call.precision) &&
              !is_16_bit(call.softmax_precision)),
        scales_late_(open_ && call.softcap <= 0 && call.mask.data == nullptr && call.scale > 0 &&
                     std::isfinite(static_cast<float>(call.scale))) {
    // Each block reads keys and values anew; the matrix unit splits float32, too, and gains by more rows.
    const bool tiles = loops_.splits();
    const std::size_t scores = tiles ? 96 << 10 : 64 << 10;  // elements of the scores of a block
    const std::size_t most = !tiles ? 64 : call.causal ? 128 : kMostRows;
    rows_ = std::clamp<std::size_t>(scores / std::max<std::size_t>(1, c_.kv_len), 1, most);
    if (tiles && rows_ > 32) rows_ = rows_ / 32 * 32;  // rows of two tiles
    rows_ = std::min(rows_, std::max<std::size_t>(1, c_.q_len));
    // Rows of scores start on lines of memory, and not all of them on the same lines of a cache.
    ld_ = std::is_same_v<T, float> ? align_up(c_.kv_len, 16) : c_.kv_len;
    if (ld_ % 256 == 0) ld_ += 16;
    if (rounds_ || std::is_same_v<T, double> || rows_ == c_.q_len) return;
    // Blocks of about the same number of rows, in whole tiles.
    rows_ = std::min(align_up(ceil_div(c_.q_len, ceil_div(c_.q_len, rows_)), loops_.tile_rows()), c_.q_len);
    constexpr std::size_t kMost = 2 << 20;  // elements
    packed_k_ = loops_.packed_size(c_.kv_len, c_.head);
    packed_v_ = loops_.packed_size(c_.v_head, c_.kv_len);
    if (packed_k_ + packed_v_ > kMost) packed_k_ = packed_v_ = 0;
  }

  void run(kernel::KernelContext& ctx) const {
    const std::size_t blocks = ceil_div(c_.q_len, rows_), group = c_.q_heads / c_.kv_heads;
    const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
    // Beside the GEMM's own scratch: scores, and 16-bit operands after their scaling.
    const std::size_t scores = checked_mul(rows_, ld_);
    const std::size_t copies = rounds_ ? checked_mul(rows_ + c_.kv_len, c_.head) : 0;
    const std::size_t before = align_up(checked_mul(checked_add(scores, copies), sizeof(T)), 64);
    const std::size_t own = checked_add(before, align_up((packed_k_ + packed_v_) * sizeof(T), 64));
    const std::size_t stride = own + align_up(loops_.scratch_floats() * sizeof(float), 64);
    const tensor::Buffer memory = ctx.scratch(checked_mul(stride, threads));
    constexpr std::size_t kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> packed_heads(threads, kNone);  // by slot: whose keys and values are packed there
    const double cost = 2.0 * static_cast<double>(rows_) * static_cast<double>(c_.kv_len) *
                        static_cast<double>(c_.head + c_.v_head + 16) / 30;
    ctx.parallel_for(c_.batch * c_.q_heads * blocks, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
      auto* const work = reinterpret_cast<T*>(memory.data() + slot * stride);
      auto* const scratch = reinterpret_cast<float*>(memory.data() + slot * stride + own);
      auto* const packed = packed_k_ == 0 ? nullptr : reinterpret_cast<T*>(memory.data() + slot * stride + before);
      for (std::size_t i = begin; i < end; ++i) {
        if (i % 16 == 0) ctx.run().check();
        const std::size_t first = i % blocks * rows_, head = i / blocks % c_.q_heads, batch = i / blocks / c_.q_heads;
        const Block b{batch, head, head / group, first, std::min(rows_, c_.q_len - first), packed};
        if (packed != nullptr && packed_heads[slot] != batch * c_.kv_heads + b.kv_head) {
          packed_heads[slot] = batch * c_.kv_heads + b.kv_head;
          pack(b, packed);
        }
        block(b, work, scratch);
      }
    });
  }

 private:
  static constexpr std::size_t kMostRows = 256;  ///< of a block

  struct Block {
    std::size_t batch, head, kv_head, first, rows;
    const T* packed;  ///< of the head's keys, then of its values; null: not packed
  };

  /// Blocks of rows share what is packed of a head.
  void pack(const Block& b, T* packed) const {
    loops_.pack(c_.kv_len, c_.head, c_.k.at(b.batch, b.kv_head), c_.k.row, true, packed);
    loops_.pack(c_.v_head, c_.kv_len, c_.v.at(b.batch, b.kv_head), c_.v.row, false, packed + packed_k_);
  }

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

  void block(const Block& b, T* work, float* scratch) const {
    const std::size_t n = c_.scores != nullptr ? c_.kv_len : reach(b);
    T* const y = c_.y.at(b.batch, b.head, b.first);
    if (n == 0) {
      for (std::size_t r = 0; r < b.rows; ++r) std::fill_n(y + r * c_.y.row, c_.v_head, T{0});
      return;
    }
    products(b, n, work, scratch);
    const T* const values = b.packed != nullptr && loops_.takes_depth(n, c_.kv_len) ? b.packed + packed_k_ : nullptr;
    if (open_) return open_rows(b, n, values, work, y, scratch);
    for (std::size_t r = 0; r < b.rows; ++r) finish_row(b, r, n, work + r * ld_);
    loops_.multiply(b.rows, c_.v_head, n, 1, work, ld_, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values, c_.v_head,
                    c_.kv_len, y, c_.y.row, scratch);
  }

  /// The rest of a block whose rows are divided by the sums of their exponentials after they are multiplied by values.
  void open_rows(const Block& b, std::size_t n, const T* values, T* scores, T* y, float* scratch) const {
    const bool powers = values != nullptr && loops_.makes_powers();
    const double scale = scales_late_ ? c_.scale : 1;
    std::array<T, kMostRows> sums{};  // 0: no key counts
    for (std::size_t r = 0; r < b.rows; ++r) {
      T* const row = scores + r * ld_;
      cap(row, n);
      if (add_bias(b, b.first + r, n, row)) {
        sums[r] = powers ? loops_.powers(row, n, scale) : loops_.exponentials(row, n, scale);
        if (c_.zero_nan && std::isnan(sums[r])) sums[r] = 0;
      }
      if (sums[r] == 0) std::fill_n(row, n, T{0});
    }
    if (powers) {
      loops_.multiply_powers(b.rows, c_.v_head, n, scores, ld_, values, c_.v_head, c_.kv_len, y, c_.y.row, scratch);
    } else {
      loops_.multiply(b.rows, c_.v_head, n, 1, scores, ld_, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values,
                      c_.v_head, c_.kv_len, y, c_.y.row, scratch);
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
      loops_.multiply(1, c_.v_head, n, 1, row_scores, n, c_.v.at(b.batch, b.kv_head), c_.v.row, false, values,
                      c_.v_head, c_.kv_len, row, c_.y.row, scratch);
    }
  }

  void products(const Block& b, std::size_t n, T* scores, float* scratch) const {
    const T* q = c_.q.at(b.batch, b.head, b.first);
    const T* k = c_.k.at(b.batch, b.kv_head);
    if (!rounds_) {
      return loops_.multiply(b.rows, n, c_.head, scales_late_ ? 1 : c_.scale, q, c_.q.row, k, c_.k.row, true, b.packed,
                             c_.kv_len, c_.head, scores, ld_, scratch);
    }
    // Each operand takes the root of the scale.
    T root = static_cast<T>(std::sqrt(c_.scale));
    loops_.round(c_.precision, &root, 1);
    T* const copies = scores + rows_ * ld_;
    const auto scaled = [&](const T* from, std::size_t stride, std::size_t rows, T* to) {
      for (std::size_t r = 0; r < rows; ++r) std::copy_n(from + r * stride, c_.head, to + r * c_.head);
      loops_.scale(to, rows * c_.head, static_cast<double>(root));
      loops_.round(c_.precision, to, rows * c_.head);
      return to;
    };
    const T* left = scaled(q, c_.q.row, b.rows, copies);
    const T* right = scaled(k, c_.k.row, n, copies + rows_ * c_.head);
    loops_.multiply(b.rows, n, c_.head, 1, left, c_.head, right, c_.head, true, nullptr, 0, 0, scores, ld_, scratch);
    for (std::size_t r = 0; r < b.rows; ++r) loops_.round(c_.precision, scores + r * ld_, n);
  }

  static bool is_16_bit(DType type) { return type == DType::Float16 || type == DType::BFloat16; }

  /// Scores of one query to probabilities.
  void finish_row(const Block& b, std::size_t r, std::size_t n, T* row) const {
    const std::size_t query = b.first + r;
    T* const stored =
        c_.scores == nullptr ? nullptr : c_.scores + ((b.batch * c_.q_heads + b.head) * c_.q_len + query) * c_.kv_len;
    const auto keep = [&](Stage stage) {
      if (stored != nullptr && c_.stage == stage) std::copy_n(row, n, stored);
    };
    keep(Stage::Raw);
    cap(row, n);
    keep(Stage::Capped);
    const bool any = add_bias(b, query, n, row);
    round(row, n);
    keep(Stage::Biased);
    if (any) {
      const T most = c_.sinks == nullptr ? T{0} : *std::max_element(row, row + n);
      softmax(row, n);
      if (c_.sinks != nullptr) sink(c_.sinks[b.head] - most, row, n);
      if (c_.zero_nan && std::isnan(row[0])) std::fill_n(row, n, T{0});  // then all of them are NaN
    } else {
      std::fill_n(row, n, c_.shut_row);
    }
    keep(Stage::Probabilities);
    round(row, n);
  }

  void cap(T* row, std::size_t n) const {
    if (c_.softcap <= 0) return;
    loops_.divide(row, n, c_.softcap);
    round(row, n);
    loops_.tanh(row, n);
    round(row, n);
    loops_.scale(row, n, c_.softcap);
    round(row, n);
  }

  void round(T* row, std::size_t n) const {
    if (rounds_) loops_.round(c_.precision, row, n);
  }

  /// Takes the share of a score that lies `above` the greatest one out of probabilities.
  void sink(T above, T* row, std::size_t n) const {
    const T most = *std::max_element(row, row + n);  // 1 / the sum of powers
    loops_.scale(row, n, 1 / (1 + static_cast<double>(std::exp(above) * most)));
  }

  void softmax(T* row, std::size_t n) const {
    const DType type = c_.softmax_precision == DType::Undefined ? c_.precision : c_.softmax_precision;
    loops_.softmax(type, row, n);
  }

  /// Adds the mask and shuts keys out; false where no key is left.
  bool add_bias(const Block& b, std::size_t query, std::size_t n, T* row) const {
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
    if (first < last && loops_.add_open(mask + first, row + first, static_cast<std::size_t>(last - first))) return true;
    bool any = false;
    for (std::int64_t i = first; i < last; ++i) {
      any = any || mask[i] != kShut;
      row[i] += mask[i];
    }
    return any;
  }

  Loops<T> loops_;
  const AttentionCall<T>& c_;
  bool rounds_;
  bool open_;         ///< rows of the result are divided by the sums of exponentials, not the probabilities
  bool scales_late_;  ///< nothing is added to scores, so that they are scaled where exponentials are made
  std::size_t rows_;  ///< of a block
  std::size_t ld_;    ///< elements from one row of scores to the next
  std::size_t packed_k_ = 0, packed_v_ = 0;  ///< elements of a head's packed keys and values; 0: they are not
};

}  // namespace

namespace {

/// On a CPU with a matrix unit also the loops of vectors may make the products of a head the quickest.
template <class T>
const microkernels::KernelSet& quickest_loops(const microkernels::KernelSet& kernels, const AttentionCall<T>& call) {
  if (std::is_same_v<T, double> || !kernels.gemm.matrix_unit) return kernels;
  const ProductLoops loops(kernels);
  const ProductSite scores{.m = call.q_len, .n = call.kv_len, .k = call.head, .trans_b = true},
      values{.m = call.q_len, .n = call.v_head, .k = call.kv_len};
  const auto time = [&](bool unit) { return loops.time(scores, unit) + loops.time(values, unit); };
  return time(true) <= time(false) ? kernels : microkernels::kernel_set(CpuRung::Avx512);
}

}  // namespace

template <class T>
void run_attention(kernel::KernelContext& ctx, const microkernels::KernelSet& kernels, const AttentionCall<T>& call) {
  if (call.batch == 0 || call.q_heads == 0 || call.q_len == 0) return;
  Attention<T>(quickest_loops(kernels, call), call).run(ctx);
}

void join_rows(kernel::KernelContext& ctx, std::size_t batch, std::size_t heads, std::size_t head,
               const Heads<const float>& past, std::span<const std::size_t> past_lengths,
               const Heads<const float>& fresh, std::size_t fresh_rows, float* out, std::size_t rows) {
  ctx.parallel_for(batch * heads, static_cast<double>(rows * head) * 0.2,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     for (std::size_t i = begin; i < end; ++i) {
                       const std::size_t b = i / heads, h = i % heads, before = past_lengths[b];
                       float* to = out + i * rows * head;
                       for (std::size_t r = 0; r < before; ++r) {
                         const float* from = past.at(b, h, r);
                         if (from != to + r * head) std::copy_n(from, head, to + r * head);
                       }
                       for (std::size_t r = 0; r < fresh_rows; ++r)
                         std::copy_n(fresh.at(b, h, r), head, to + (before + r) * head);
                     }
                   });
}

template void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<float>&);
template void run_attention(kernel::KernelContext&, const microkernels::KernelSet&, const AttentionCall<double>&);

}  // namespace infernode::ops
