#pragma once

#include "providers/cuda/kernels/device/attention_common.cuh"
#include "providers/cuda/kernels/device/mma.cuh"

// Flash attention with mma.sync. Warps share the queries (WQ) and the keys of a block (WK); what WK warps found is
// merged at the end. MI tiles of 16 queries and KW keys a warp; heads of up to D elements.
namespace infernode::cuda {

template <MmaKind kind, int D, int WQ, int WK, int MI, int KW, int ST>
struct AttentionTile {
  static constexpr MmaKind kKind = kind;
  static constexpr int kD = D, kWarpsQ = WQ, kWarpsK = WK, kMI = MI, kKeysWarp = KW, kStages = ST;
  static constexpr int kThreads = WQ * WK * 32, kRows = WQ * MI * 16, kKeys = WK * KW, kBoxes = D / 64;
  static constexpr int kBytesQ = kRows * D * 2, kBytesKV = kKeys * D * 2;  ///< K and V: one each a stage
  static constexpr int kOutPitch = D + 4;                                  ///< floats
};

/// The state of a warp: sums of 16 MI rows, the largest scores and the sums of the weights.
template <class T>
struct AttentionRows {
  float out[T::kMI][T::kD / 8][4];
  float most[T::kMI][2], weight[T::kMI][2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
      most[i][0] = most[i][1] = -INFINITY;
      weight[i][0] = weight[i][1] = 0;
#pragma unroll
      for (int j = 0; j < T::kD / 8; j++) out[i][j][0] = out[i][j][1] = out[i][j][2] = out[i][j][3] = 0;
    }
  }
};

/// Copies blocks of keys or values into boxes of 64 elements a row; a thread copies one 16-byte column of every
/// kStep-th row.
template <class T>
struct KeyCopies {
  static constexpr int kChunks = T::kD / 8, kStep = T::kThreads / kChunks, kCopies = T::kKeys / kStep;
  static_assert(kStep % 8 == 0 || kStep == 4);
  const char* from;  ///< the thread's first row
  std::int64_t row;  ///< bytes between rows
  int bytes;         ///< of the column that exist

  __device__ __forceinline__ KeyCopies(std::uint64_t base, const HeadStrides& at, int batch, int head, int first, int d)
      : row(at.row * 2) {
    const int chunk = threadIdx.x % kChunks;
    from = reinterpret_cast<const char*>(base) + (batch * at.batch + head * at.head + chunk * 8) * 2 +
           (first + static_cast<int>(threadIdx.x) / kChunks) * row;
    bytes = max(0, min(16, d * 2 - chunk * 16));
  }

  /// Where in a stage the thread's i-th row goes.
  static __device__ __forceinline__ std::uint32_t place(int i) {
    const int chunk = threadIdx.x % kChunks;
    return (chunk >> 3) * T::kKeys * 128 + swizzled(threadIdx.x / kChunks + i * kStep, chunk & 7);
  }

  /// A block, of which `there` rows exist.
  __device__ __forceinline__ void copy(std::uint32_t to, int block, int there) const {
    const char* at = from + block * T::kKeys * row;
#pragma unroll
    for (int i = 0; i < kCopies; i++, at += kStep * row) {
      const int r = threadIdx.x / kChunks + i * kStep;
      copy16(to + place(i), at, there >= T::kKeys || r < there ? bytes : 0);
    }
  }
};

/// The thread's 16 bytes of some queries.
template <class T>
struct QueryCopies {
  static constexpr int kCopies = T::kRows * T::kD / 8 / T::kThreads;
  static_assert(T::kRows * T::kD / 8 % T::kThreads == 0);
  const char* from[kCopies];
  int bytes[kCopies];

  static __device__ __forceinline__ int chunk(int i) { return (threadIdx.x + i * T::kThreads) % (T::kD / 8); }
  static __device__ __forceinline__ int row(int i) { return (threadIdx.x + i * T::kThreads) / (T::kD / 8); }

  __device__ __forceinline__ QueryCopies(const AttentionParams& p, const AttentionPlace& at) {
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      const int r = at.tile + row(i), query = query_of(p, r);
      const std::int64_t first =
          at.batch * p.q_at.batch + (at.head + r - query * p.group) * p.q_at.head + query * p.q_at.row + chunk(i) * 8;
      bytes[i] = query < p.queries ? max(0, min(16, (p.d - chunk(i) * 8) * 2)) : 0;
      from[i] = reinterpret_cast<const char*>(p.q) + (bytes[i] ? first * 2 : 0);
    }
  }
  __device__ __forceinline__ void copy(std::uint32_t to) const {
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      copy16(to + (chunk(i) >> 3) * T::kRows * 128 + swizzled(row(i), chunk(i) & 7), from[i], bytes[i]);
    }
  }
};

/// Scores of the warp's rows and its keys of a stage.
template <class T>
__device__ __forceinline__ void score(float (&s)[T::kMI][T::kKeysWarp / 8][4], std::uint32_t q, std::uint32_t k,
                                      int row, int key, int lane) {
#pragma unroll
  for (int i = 0; i < T::kMI; i++) {
#pragma unroll
    for (int j = 0; j < T::kKeysWarp / 8; j++) s[i][j][0] = s[i][j][1] = s[i][j][2] = s[i][j][3] = 0;
  }
#pragma unroll
  for (int c = 0; c < T::kD / 16; c++) {
    std::uint32_t a[T::kMI][4];
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
      load_matrix4(a[i],
                   q + (c >> 2) * T::kRows * 128 + swizzled(row + i * 16 + (lane & 15), (c & 3) * 2 + (lane >> 4)));
    }
#pragma unroll
    for (int j = 0; j < T::kKeysWarp / 16; j++) {
      std::uint32_t b[4];
      load_matrix4(b, k + (c >> 2) * T::kKeys * 128 +
                          swizzled(key + j * 16 + (lane & 7) + (lane >> 4) * 8, (c & 3) * 2 + (lane >> 3 & 1)));
#pragma unroll
      for (int i = 0; i < T::kMI; i++) {
        mma<T::kKind>(s[i][2 * j], a[i], b[0], b[1]);
        mma<T::kKind>(s[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// The additive masks of a block's keys: 16-bit rows of whole words come to shared memory with the keys, kPitch bytes
/// apart; others are read when they are added.
template <class T>
struct Bias {
  static constexpr int kPitch = T::kKeys * 2 + 16, kBytes = T::kRows * kPitch;  ///< rows in different banks
  static constexpr int kChunks = T::kKeys / 8, kStep = T::kThreads / kChunks, kCopies = T::kRows / kStep;
  static_assert(T::kThreads % kChunks == 0 && T::kRows % kStep == 0);

  /// Where the mask of a row of the tile begins; -1: the row does not exist.
  static __device__ __forceinline__ std::int64_t row_of(const AttentionParams& p, const AttentionPlace& at, int row) {
    const int query = query_of(p, at.tile + row), head = at.head + at.tile + row - query * p.group;
    return query < p.queries ? at.batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row : -1;
  }

  std::int64_t from[kCopies];  ///< of the rows that the thread copies

  __device__ __forceinline__ Bias(const AttentionParams& p, const AttentionPlace& at) {
    if (!p.bias_words) return;
#pragma unroll
    for (int i = 0; i < kCopies; i++) from[i] = row_of(p, at, static_cast<int>(threadIdx.x) / kChunks + i * kStep);
  }

  /// The masks of a block of keys, whose first is `first`; `last` ends those that there are.
  __device__ __forceinline__ void copy(std::uint32_t to, const AttentionParams& p, int first, int last) const {
    const int column = static_cast<int>(threadIdx.x) % kChunks, key = first + column * 8;
    to += static_cast<int>(threadIdx.x) / kChunks * kPitch + column * 16;
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      const int bytes = from[i] < 0 ? 0 : max(0, min(16, (last - key) * 2));
      copy16(to + i * kStep * kPitch, reinterpret_cast<const char*>(p.bias) + (bytes ? (from[i] + key) * 2 : 0), bytes);
    }
  }

  /// Two neighbours of each eight keys from `own` on, as they lie in memory; `begin` as row_of says.
  static __device__ __forceinline__ void load(std::uint32_t (&w)[T::kKeysWarp / 8][2], const AttentionParams& p,
                                              std::int64_t begin, int own, int last) {
    const auto load_all = [&](int size, const auto& load) {
      const char* base = reinterpret_cast<const char*>(p.bias) + (begin + own) * size;
      const int there = begin < 0 ? 0 : last - own;
#pragma unroll
      for (int j = 0; j < T::kKeysWarp / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) w[j][e] = load(base + (j * 8 + e) * size, j * 8 + e < there);
      }
    };
    if (p.bias_type == Element::f32) return load_all(4, load4_if);
    load_all(2, load2_if);
#pragma unroll
    for (int j = 0; j < T::kKeysWarp / 8; j++) w[j][0] |= w[j][1] << 16;
  }

  /// Scales the scores and adds the masks: `copied` those of the block; `row`, `key`: the warp's first in it.
  static __device__ __forceinline__ void add(float (&s)[T::kMI][T::kKeysWarp / 8][4], const AttentionParams& p,
                                             const AttentionPlace& at, std::uint32_t copied, int row, int first,
                                             int key, int lane) {
    const int own = key + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int r = row + i * 16 + (lane >> 2) + half * 8;
        std::uint32_t w[T::kKeysWarp / 8][2];
        if (p.bias_words) {
#pragma unroll
          for (int j = 0; j < T::kKeysWarp / 8; j++)
            w[j][0] = __float_as_uint(load_shared(copied + r * kPitch + (own + j * 8) * 2));
        } else {
          load(w, p, row_of(p, at, r), first + own, at.last);
        }
#pragma unroll
        for (int j = 0; j < T::kKeysWarp / 8; j++) {
          const float2 v = p.bias_type == Element::f32 ? make_float2(__uint_as_float(w[j][0]), __uint_as_float(w[j][1]))
                           : p.bias_type == Element::f16 ? unpack_f16(w[j][0])
                                                         : unpack_bf16(w[j][0]);
          float* const x = &s[i][j][half * 2];
          x[0] = fmaf(x[0], p.scale_log2e, fmaxf(v.x * kLog2E, kMaskedScore));
          x[1] = fmaf(x[1], p.scale_log2e, fmaxf(v.y * kLog2E, kMaskedScore));
        }
      }
    }
  }
};

/// Masks the scores of keys that their query does not see.
template <class T>
__device__ __forceinline__ void mask(float (&s)[T::kMI][T::kKeysWarp / 8][4], const AttentionParams& p,
                                     const AttentionPlace& at, int row, int key, int lane) {
#pragma unroll
  for (int i = 0; i < T::kMI; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int query = query_of(p, at.tile + row + i * 16 + (lane >> 2) + half * 8);
      const int low = at.low(p, query) - key - (lane & 3) * 2, high = at.high(p, query) - key - (lane & 3) * 2;
#pragma unroll
      for (int j = 0; j < T::kKeysWarp / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
          if (j * 8 + e < low || j * 8 + e >= high) s[i][j][half * 2 + e] = -INFINITY;
        }
      }
    }
  }
}

/// Moves the rows' state to the new largest score, and makes weights of the scores, which `scale` brings to log 2.
template <class T>
__device__ __forceinline__ void weigh(float (&s)[T::kMI][T::kKeysWarp / 8][4], AttentionRows<T>& rows, float scale) {
#pragma unroll
  for (int i = 0; i < T::kMI; i++) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float most = fmaxf(s[i][0][half * 2], s[i][0][half * 2 + 1]);
#pragma unroll
      for (int j = 1; j < T::kKeysWarp / 8; j++) most = fmaxf(most, fmaxf(s[i][j][half * 2], s[i][j][half * 2 + 1]));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      most = fmaxf(rows.most[i][half], scale * fmaxf(most, __shfl_xor_sync(~0u, most, 2)));
      const float base = most == -INFINITY ? 0.f : most, shrink = fast_exp2(rows.most[i][half] - base);
      rows.most[i][half] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < T::kKeysWarp / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float& v = s[i][j][half * 2 + e];
          v = fast_exp2(fmaf(v, scale, -base));
          sum += v;
        }
      }
      rows.weight[i][half] = rows.weight[i][half] * shrink + sum;  // lanes of a row are added at the end
#pragma unroll
      for (int j = 0; j < T::kD / 8; j++) {
        rows.out[i][j][half * 2] *= shrink;
        rows.out[i][j][half * 2 + 1] *= shrink;
      }
    }
  }
}

/// Adds the weighted values.
template <class T>
__device__ __forceinline__ void add_values(const float (&s)[T::kMI][T::kKeysWarp / 8][4], AttentionRows<T>& rows,
                                           std::uint32_t v, int key, int lane) {
  const auto pack = [](float a, float b) { return T::kKind == MmaKind::f16 ? pack_f16(a, b) : pack_bf16(a, b); };
#pragma unroll
  for (int c = 0; c < T::kKeysWarp / 16; c++) {
    std::uint32_t a[T::kMI][4];
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
      a[i][0] = pack(s[i][2 * c][0], s[i][2 * c][1]);
      a[i][1] = pack(s[i][2 * c][2], s[i][2 * c][3]);
      a[i][2] = pack(s[i][2 * c + 1][0], s[i][2 * c + 1][1]);
      a[i][3] = pack(s[i][2 * c + 1][2], s[i][2 * c + 1][3]);
    }
#pragma unroll
    for (int j = 0; j < T::kD / 16; j++) {
      std::uint32_t b[4];
      load_matrix4_transposed(
          b, v + (j >> 2) * T::kKeys * 128 + swizzled(key + c * 16 + (lane & 15), (j & 3) * 2 + (lane >> 4)));
#pragma unroll
      for (int i = 0; i < T::kMI; i++) {
        mma<T::kKind>(rows.out[i][2 * j], a[i], b[0], b[1]);
        mma<T::kKind>(rows.out[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

}  // namespace infernode::cuda
