#pragma once

#include "providers/cuda/kernels/device/gemm_tma.cuh"

// The end of a wide tile of whole words: a warpgroup's sums go from registers through the epilogue to the output.
namespace infernode::cuda {

/// Bias and scale of a tile's columns, in shared memory.
template <int BN>
struct TileColumns {
  float bias[BN], scale[BN];

  /// By the first `threads` of a block; columns that do not exist have zeros.
  __device__ __forceinline__ void load(const EpilogueParams& e, int n0, int n, int batch_part, int threads) {
#pragma unroll 1
    for (int i = threadIdx.x; i < BN; i += threads) {
      const int at = n0 + i + batch_part * e.column_batch;
      const bool there = n0 + i < n;
      bias[i] = there && e.bias ? load_f32(reinterpret_cast<const float*>(e.bias) + at) : 0.f;
      scale[i] = there && e.scale ? e.alpha * load_f32(reinterpret_cast<const float*>(e.scale) + at) : e.alpha;
    }
  }
};

/// How a warp moves 16 rows by kColumns of 16-bit numbers between memory, where a lane has 16 bytes of a row, and its
/// sums, where it has pairs of every eighth column in rows lane / 4 and eight below: through shared memory.
template <int kColumns>
struct WarpWords {
  static constexpr int kWords = kColumns / 8, kRowsAtOnce = 32 / kWords, kTurns = 16 / kRowsAtOnce;
  static constexpr int kBytes = 16 * kColumns * 2;
  static_assert(kColumns == 64 || kColumns == 32);
  std::uint32_t shared;
  int lane;

  /// Eight rows of a column of words fall into eight banks.
  static __device__ __forceinline__ std::uint32_t place(int row, int word) {
    return kColumns == 64 ? swizzled(row, word) : row * 64 + ((word ^ (row >> 1 & 3)) << 4);
  }
  __device__ __forceinline__ int row(int turn) const { return lane / kWords + turn * kRowsAtOnce; }
  __device__ __forceinline__ int column() const { return lane % kWords * 8; }
  __device__ __forceinline__ std::uint32_t word(int turn) const { return shared + place(row(turn), lane % kWords); }
  /// Of four 8 x 8 matrices: columns 16 i to 16 i + 15.
  __device__ __forceinline__ std::uint32_t matrix(int i) const {
    return shared + place(lane & 15, 2 * i + (lane >> 4));
  }
};

template <Element type>
__device__ __forceinline__ float2 unpacked(std::uint32_t v) {
  return type == Element::f16 ? unpack_f16(v) : unpack_bf16(v);
}
template <Element type>
__device__ __forceinline__ std::uint32_t packed(float a, float b) {
  return type == Element::f16 ? pack_f16(a, b) : pack_bf16(a, b);
}

/// The end of a warp's 16 rows, the first of which is row `row` of the tile. Columns take turns; `words` is the warp's
/// share of shared memory.
template <Element type, int BN>
struct RowsEnd {
  static constexpr int kColumns = BN % 64 == 0 ? 64 : 32, kSums = kColumns / 2, kTurns = BN / kColumns;
  static constexpr int kBytes = 32 * BN;
  using W = WarpWords<kColumns>;
  const GemmTmaParams& p;
  const Place& at;
  std::uint32_t words;
  int row;

  __device__ __forceinline__ W first() const { return {words, static_cast<int>(threadIdx.x & 31)}; }

  /// Asks for the residual.
  __device__ __forceinline__ void bring_residual() const {
    const EpilogueParams& e = p.e;
    if (!e.residual) return;
    W w = first();
    const int m = at.m0 + row, column = at.n0 + w.column();
    const std::int64_t begin = EpilogueBatch(e, at.batch0, at.batch1).residual + column;
#pragma unroll 1
    for (int turn = 0; turn < kTurns; turn++, w.shared += W::kBytes) {
#pragma unroll
      for (int i = 0; i < W::kTurns; i++) {
        const bool there = m + w.row(i) < p.m && column + turn * kColumns < p.n;
        const std::int64_t from = there ? begin + turn * kColumns + (m + w.row(i)) * e.residual_row : 0;
        copy16(w.word(i), reinterpret_cast<const char*>(e.residual) + from * 2, there ? 16 : 0);
      }
    }
    copies_commit();
  }

  static __device__ __forceinline__ void add_residual(float (&v)[kSums], const W& w) {
#pragma unroll
    for (int i = 0; i < kColumns / 16; i++) {
      std::uint32_t r[4];
      load_matrix4(r, w.matrix(i));
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const float2 x = unpacked<type>(r[j]);
        v[8 * i + 2 * j] += x.x, v[8 * i + 2 * j + 1] += x.y;
      }
    }
  }

  /// Sums that are done make room for those of the next turn: the loop's code is there once.
  __device__ __forceinline__ void finish(float (&sums)[BN / 2], const TileColumns<BN>& columns) const {
    using E = WholeEpilogue<type>;
    const EpilogueParams& e = p.e;
    W w = first();
    const int rows_left = p.m - at.m0 - row - w.row(0);
    const int column = at.n0 + w.column(), columns_left = p.n - column;
    const std::int64_t row_bytes = e.out_row * 2;
    char* first_word = reinterpret_cast<char*>(e.out) + (EpilogueBatch(e, at.batch0, at.batch1).out + column) * 2 +
                       (at.m0 + row + w.row(0)) * row_bytes;
    const bool last = e.flags & kEpilogueResidualLast;
    float(&v)[kSums] = reinterpret_cast<float(&)[kSums]>(sums);
    if (e.residual) copies_wait<0>();
    __syncwarp();
#pragma unroll 1
    for (int turn = 0; turn < kTurns; turn++, w.shared += W::kBytes) {
#pragma unroll
      for (int j = 0; j < kColumns / 8; j++) {
        const int c = turn * kColumns + j * 8 + (w.lane & 3) * 2;
        const float2 bias = *reinterpret_cast<const float2*>(&columns.bias[c]);
        const float2 scale = *reinterpret_cast<const float2*>(&columns.scale[c]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
          v[4 * j + i] = fmaf(v[4 * j + i], i % 2 ? scale.y : scale.x, i % 2 ? bias.y : bias.x);
        }
      }
      if (e.residual && !last) add_residual(v, w);
      activate<E>(v, e.activation, e.a, e.b);
      if (e.residual && last) add_residual(v, w);
      if (e.residual) __syncwarp();
#pragma unroll
      for (int i = 0; i < kColumns / 16; i++) {
        const float* x = v + 8 * i;
        store_matrix4(w.matrix(i), packed<type>(x[0], x[1]), packed<type>(x[2], x[3]), packed<type>(x[4], x[5]),
                      packed<type>(x[6], x[7]));
      }
      __syncwarp();
      uint4 out[W::kTurns];
#pragma unroll
      for (int i = 0; i < W::kTurns; i++) out[i] = load_shared16(w.word(i));
      char* to = first_word + turn * kColumns * 2;
#pragma unroll
      for (int i = 0; i < W::kTurns; i++, to += W::kRowsAtOnce * row_bytes) {
        if (turn * kColumns < columns_left && i * W::kRowsAtOnce < rows_left) *reinterpret_cast<uint4*>(to) = out[i];
      }
#pragma unroll
      for (int j = 0; j + kSums < BN / 2; j++) sums[j] = sums[j + kSums];
    }
  }
};

}  // namespace infernode::cuda
