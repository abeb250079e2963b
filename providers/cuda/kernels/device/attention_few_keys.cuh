#pragma once

#include "providers/cuda/kernels/device/attention_common.cuh"
#include "providers/cuda/kernels/device/mma.cuh"

// How queries, keys and values come into the shared memory of attention_few.cuh.
namespace infernode::cuda {

/// pieces: 1, or 3 for float32, which is split (pieces.cuh).
template <MmaKind kind, int D, int pieces>
struct FewTile {
  static constexpr MmaKind kKind = kind;
  static constexpr int kPieces = pieces, kSize = pieces > 1 ? 4 : 2;  ///< kSize: bytes of an element
  static constexpr int kD = D, kWarps = 8, kThreads = kWarps * 32, kRows = kFewRows, kKeys = kFewKeys;
  static constexpr int kStages = few_stages(D, kSize), kKeysWarp = kKeys / kWarps;
  static constexpr int kRowBytes = few_row_bytes(D, kSize);
  static constexpr int kBytesQ = kRows * kRowBytes, kBytesKV = kKeys * kRowBytes;  ///< K and V: one each a stage
  static constexpr int kPer = 16 / kSize, kChunks = D / kPer;           ///< elements of 16 bytes; those of a row
  static constexpr int kStep = kThreads / kChunks;                      ///< rows that threads copy at once
  static constexpr int kPitch = D + 4;                                  ///< floats of a merged row
  static constexpr int kEightRows = pieces > 1 ? 8 * kRowBytes : 1024;  ///< bytes from a row to the eighth behind it

  /// Where 16 bytes of a row of a matrix lie: boxes of 128 bytes a row, swizzled; rows of float32 behind each other.
  static __device__ __forceinline__ std::uint32_t place(int rows, int row, int chunk) {
    return pieces > 1 ? row * kRowBytes + chunk * 16 : (chunk >> 3) * rows * 128 + swizzled(row, chunk & 7);
  }
};

/// Rows of keys or values in one place: the thread's 16 bytes of them.
template <class T>
struct FewRows {
  const char* from;  ///< of the thread's first row
  int pitch;

  __device__ __forceinline__ FewRows(std::uint64_t base, const HeadStrides& at, const AttentionPlace& place)
      : from(reinterpret_cast<const char*>(base) +
             (place.batch * at.batch + place.kv_head * at.head + threadIdx.x % T::kChunks * T::kPer) * T::kSize),
        pitch(static_cast<int>(at.row) * T::kSize) {
    from += static_cast<int>(threadIdx.x) / T::kChunks * std::int64_t{pitch};
  }
  __device__ __forceinline__ const char* at(int row) const { return from + row * std::int64_t{pitch}; }
};

/// The keys and values of a block, and its stages: those before p.past in one place, the others in another.
template <class T>
struct FewKeys {
  const int first, past, row, bytes_k, bytes_v;
  const std::uint32_t stages;  ///< where the thread's bytes of the first stage go
  const FewRows<T> k, v, new_k, new_v;

  __device__ __forceinline__ FewKeys(const AttentionParams& p, const AttentionPlace& at, std::uint32_t to)
      : first(at.first),
        past(p.new_k ? p.past : 1 << 30),
        row(threadIdx.x / T::kChunks),
        bytes_k(max(0, min(16, (p.d - chunk() * T::kPer) * T::kSize))),
        bytes_v(max(0, min(16, (p.dv - chunk() * T::kPer) * T::kSize))),
        stages(to + T::place(T::kKeys, row, chunk())),
        k(p.k, p.k_at, at),
        v(p.v, p.v_at, at),
        new_k(p.new_k, p.new_k_at, at),
        new_v(p.new_v, p.new_v_at, at) {}

  static __device__ __forceinline__ int chunk() { return threadIdx.x % T::kChunks; }

  /// Keys [begin, end) into their stages. Rows that a thread copies lie a whole number of swizzles apart.
  __device__ __forceinline__ void copy(const FewRows<T>& keys, const FewRows<T>& values, int begin, int end,
                                       int base) const {
    static_assert(T::kStep % 8 == 0);
    const int skipped = max(0, (begin - first - row + T::kStep - 1) / T::kStep);
    int at = first + skipped * T::kStep;
    const char *from_k = keys.at(at - base), *from_v = values.at(at - base);
    const std::int64_t step_k = std::int64_t{T::kStep} * keys.pitch, step_v = std::int64_t{T::kStep} * values.pitch;
#pragma unroll 2
    for (; at + row < end; at += T::kStep, from_k += step_k, from_v += step_v) {
      const int r = at - first;
      const std::uint32_t to =
          stages + r / T::kKeys % T::kStages * (2 * T::kBytesKV) + r % T::kKeys / 8 * T::kEightRows;
      copy16(to, from_k, bytes_k);
      copy16(to + T::kBytesKV, from_v, bytes_v);
    }
  }
  __device__ __forceinline__ void copy_past(int begin, int end) const { copy(k, v, begin, min(end, past), 0); }
  __device__ __forceinline__ void copy_new(int begin, int end) const {
    if (end > past) copy(new_k, new_v, max(begin, past), end, past);
  }

  /// Values that a weight of zero shall not make NaN: those behind the last.
  __device__ __forceinline__ void clear(int last, int end) const {
#pragma unroll 1
    for (int at = first + (last - first) / T::kStep * T::kStep; at < end; at += T::kStep) {
      const int r = at - first;
      if (at + row < last || at + row >= end) continue;
      copy16(stages + r / T::kKeys % T::kStages * (2 * T::kBytesKV) + r % T::kKeys / 8 * T::kEightRows + T::kBytesKV,
             v.from, 0);
    }
  }
};

/// Writes kJoinRows of the keys and values of a head behind each other: what the blocks behind the first do.
template <class T>
__device__ __forceinline__ void join_rows(const AttentionParams& p, const AttentionPlace& at, int part) {
  const int own = threadIdx.x / T::kChunks;
  if (FewKeys<T>::chunk() * T::kPer >= p.d) return;
  const FewRows<T> from[2][2] = {{{p.k, p.k_at, at}, {p.new_k, p.new_k_at, at}},
                                 {{p.v, p.v_at, at}, {p.new_v, p.new_v_at, at}}};
  const FewRows<T> to[2] = {{p.all_k, p.all_k_at, at}, {p.all_v, p.all_v_at, at}};
  constexpr int kCopies = kJoinRows / T::kStep;
  uint4 rows[2][kCopies];
  const auto each = [&](const auto& f) {
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      const int key = part * kJoinRows + i * T::kStep;
      if (key + own < p.keys) f(i, key, key + own < p.past);
    }
  };
  const auto load = [&](bool past) {
    each([&](int i, int key, bool is_past) {
      if (is_past != past) return;
      for (int j = 0; j < 2; j++) rows[j][i] = load16(past ? from[j][0].at(key) : from[j][1].at(key - p.past));
    });
  };
  if (p.past_given) load(true);
  wait_for_previous();
  if (!p.past_given) load(true);
  load(false);
  each([&](int i, int key, bool) {
    for (int j = 0; j < 2; j++) *reinterpret_cast<uint4*>(const_cast<char*>(to[j].at(key))) = rows[j][i];
  });
}

/// The thread's 16 bytes of the queries.
template <class T>
struct FewQueries {
  static constexpr int kCopies = (T::kRows + T::kStep - 1) / T::kStep;
  const char* from[kCopies];
  int bytes[kCopies];

  __device__ __forceinline__ FewQueries(const AttentionParams& p, const AttentionPlace& at, int row, int own_bytes) {
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      const int r = at.tile + row + i * T::kStep, query = query_of(p, r);
      const std::int64_t first = at.batch * p.q_at.batch + (at.head + r - query * p.group) * p.q_at.head +
                                 query * p.q_at.row + FewKeys<T>::chunk() * T::kPer;
      bytes[i] = query < p.queries ? own_bytes : 0;
      from[i] = reinterpret_cast<const char*>(p.q) + (bytes[i] ? first * T::kSize : 0);
    }
  }
  __device__ __forceinline__ void copy(std::uint32_t to, int row) const {
#pragma unroll
    for (int i = 0; i < kCopies; i++) {
      const int r = row + i * T::kStep;
      if (r < T::kRows) copy16(to + T::place(T::kRows, r, FewKeys<T>::chunk()), from[i], bytes[i]);
    }
  }
};

}  // namespace infernode::cuda
