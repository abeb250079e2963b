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

/// The additive masks of a warp's rows for its keys of a stage, two neighbours a word, in the order of the scores.
/// Those of 16 bits are loaded a stage ahead, those of 32 bits when they are added.
template <class T>
struct Bias {
  std::uint32_t w[T::kMI][2][T::kKeysWarp / 8];
  std::int64_t from[T::kMI][2];  ///< where the masks of the lane's rows begin; -1: the row does not exist

  __device__ __forceinline__ Bias(const AttentionParams& p, const AttentionPlace& at, int row, int lane) {
    if (!p.bias) return;
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int r = at.tile + row + i * 16 + (lane >> 2) + half * 8, query = query_of(p, r);
        const int head = at.head + r - query * p.group;
        from[i][half] = at.batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row;
        if (query >= p.queries) from[i][half] = -1;
      }
    }
  }

  /// `key`: the first of the warp's keys; `last` ends those that there are.
  __device__ __forceinline__ void load(const AttentionParams& p, int key, int last, int lane) {
    if (!p.bias || p.bias_type == Element::f32) return;
    const int first = key + (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const char* base = reinterpret_cast<const char*>(p.bias) + (from[i][half] + first) * 2;
        const int there = from[i][half] < 0 ? 0 : last - first;
#pragma unroll
        for (int j = 0; j < T::kKeysWarp / 8; j++) {
          if (p.bias_pairs) {
            w[i][half][j] = load4_if(base + j * 16, there > j * 8);
          } else {
            w[i][half][j] = load2_if(base + j * 16, there > j * 8) | load2_if(base + j * 16 + 2, there > j * 8 + 1)
                                                                         << 16;
          }
        }
      }
    }
  }

  /// Scales the scores and adds the masks.
  __device__ __forceinline__ void add(float (&s)[T::kMI][T::kKeysWarp / 8][4], const AttentionParams& p, int key,
                                      int last, int lane) const {
#pragma unroll
    for (int i = 0; i < T::kMI; i++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int j = 0; j < T::kKeysWarp / 8; j++) {
          float2 v = p.bias_type == Element::f16 ? unpack_f16(w[i][half][j]) : unpack_bf16(w[i][half][j]);
          if (p.bias_type == Element::f32) {
            const int k = key + j * 8 + (lane & 3) * 2;
            const std::int64_t at = from[i][half] + k;
            v.x = from[i][half] >= 0 && k < last ? load_element(p.bias, Element::f32, at) : 0.f;
            v.y = from[i][half] >= 0 && k + 1 < last ? load_element(p.bias, Element::f32, at + 1) : 0.f;
          }
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
