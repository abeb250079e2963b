#pragma once

#include "providers/cuda/kernels/device/epilogue.cuh"
#include "providers/cuda/kernels/device/exact_sum.cuh"
#include "providers/cuda/kernels/device/tma.cuh"
#include "providers/cuda/kernels/device/wgmma.cuh"

// What the Hopper products share: where a block works, how its operands arrive, how its sums leave.
namespace infernode::cuda {

/// The bytes and elements of one step along K. Split products read float32 A and `pieces` bfloat16 pieces of B.
template <TensorKind kind, int pieces>
struct Step {
  static constexpr bool kSplit = pieces > 1;
  static constexpr int kElements = kind == TensorKind::tf32 && !kSplit ? 32 : 64;
  static constexpr int kBoxes = kSplit ? 2 : 1;  ///< of 128 bytes a row of A
  static constexpr int kBoxElements = kElements / kBoxes;
};

/// Where a block works.
struct Place {
  int m0, n0, part, batch0, batch1, first, count;  ///< steps of K: [first, first + count)

  __device__ __forceinline__ Place(const GemmTmaParams& p, int bm, int bn) {
    n0 = (p.rows_first ? blockIdx.y : blockIdx.x) * bn;
    m0 = (p.rows_first ? blockIdx.x : blockIdx.y) * bm;
    part = blockIdx.z & ((1 << p.log_split) - 1);
    batch0 = blockIdx.z >> p.log_split;
    batch1 = 0;
    if (p.batch_inner < 1 << 30) {
      batch1 = batch0 / p.batch_inner;
      batch0 -= batch1 * p.batch_inner;
    }
    first = p.k_blocks * part >> p.log_split;
    count = (p.k_blocks * (part + 1) >> p.log_split) - first;
  }
};

/// The copies of a block's stages: those of A, in order, and those of B are issued by a thread each.
template <class S, int BM, int BN, int pieces>
struct Copies {
  static constexpr int kA = BM * 128 * S::kBoxes, kB = BN * 128 * pieces;
  const GemmTmaParams& p;
  const Place at;
  std::uint32_t a, b, full;  ///< the first stage of A, of B, its barrier
  int w, h, n;               ///< a convolution's first pixel of the block
  int k;                     ///< the next element of K, or channel of the tap
  int tap_w, tap_h, end_w;   ///< offsets of the tap; of a row's last tap and one more
  int a0, a1, b0, b1;        ///< batch coordinates

  /// Before the wait: divisions take long.
  __device__ __forceinline__ void begin() {
    k = at.first * S::kElements;
    a0 = at.batch0 * p.a_batch[0], a1 = at.batch1 * p.a_batch[1];
    b0 = at.batch0 * p.b_batch[0], b1 = at.batch1 * p.b_batch[1];
    // Registers of their own: parameters are read while there is time.
    asm volatile("" : "+r"(a), "+r"(b), "+r"(full), "+r"(a0), "+r"(a1), "+r"(b0), "+r"(b1), "+r"(k));
  }

  /// The same for A alone.
  __device__ __forceinline__ void find_pixel() {
    if (!p.conv.taps) return;
    const int image = p.conv.out_h * p.conv.out_w;
    n = at.m0 / image;
    const int pixel = at.m0 - n * image, y = pixel / p.conv.out_w, x = pixel - y * p.conv.out_w;
    h = y * p.conv.stride_h - p.conv.pad_h;
    w = x * p.conv.stride_w - p.conv.pad_w;
    const int tap = k / p.conv.channels_padded, r = tap / p.conv.kernel_w;
    k -= tap * p.conv.channels_padded;
    tap_w = (tap - r * p.conv.kernel_w) * p.conv.dilation_w;
    tap_h = r * p.conv.dilation_h;
    end_w = p.conv.kernel_w * p.conv.dilation_w;
  }

  __device__ __forceinline__ void load_b(int step, int stage) const {
    const std::uint32_t barrier = full + stage * 8;
    barrier_expect(barrier, kA + kB);
#pragma unroll
    for (int i = 0; i < pieces; i++) {
      copy_tile(b + stage * kB + i * BN * 128, &p.b, (at.first + step) * S::kElements + i * p.b_plane, at.n0, b0, b1,
                barrier);
    }
  }

  __device__ __forceinline__ void load_a(int stage) {
    const std::uint32_t barrier = full + stage * 8, to = a + stage * kA;
    if (p.conv.taps) {
      const int channel = k + at.batch0 * p.conv.channels;
#pragma unroll
      for (int i = 0; i < S::kBoxes; i++) {
        copy_pixels(to + i * BM * 128, &p.a, channel + i * S::kBoxElements, w, h, n, tap_w, tap_h, barrier);
      }
      k += S::kElements;
      if (k < p.conv.channels_padded) return;
      k = 0;
      tap_w += p.conv.dilation_w;
      if (tap_w == end_w) tap_w = 0, tap_h += p.conv.dilation_h;
    } else {
#pragma unroll
      for (int i = 0; i < S::kBoxes; i++) {
        copy_tile(to + i * BM * 128, &p.a, k + i * S::kBoxElements, at.m0, a0, a1, barrier);
      }
      k += S::kElements;
    }
  }
};

/// Writes a warpgroup's sums to shared memory: rows of `pitch` floats, from the warp's own 16 rows on.
template <int BN>
__device__ __forceinline__ void stage_sums(const float (&sums)[BN / 2], float* rows, int pitch, int lane) {
  float* w = rows + (lane >> 2) * pitch + (lane & 3) * 2;
#pragma unroll
  for (int j = 0; j < BN / 8; j++) {
    *reinterpret_cast<float2*>(&w[j * 8]) = make_float2(sums[4 * j], sums[4 * j + 1]);
    *reinterpret_cast<float2*>(&w[8 * pitch + j * 8]) = make_float2(sums[4 * j + 2], sums[4 * j + 3]);
  }
}

__device__ __forceinline__ void add8(float (&v)[8], const float* from) {
  const float4 a = reinterpret_cast<const float4*>(from)[0], b = reinterpret_cast<const float4*>(from)[1];
  v[0] += a.x, v[1] += a.y, v[2] += a.z, v[3] += a.w, v[4] += b.x, v[5] += b.y, v[6] += b.z, v[7] += b.w;
}

__device__ __forceinline__ void store8(const float (&v)[8], float* to) {
  reinterpret_cast<float4*>(to)[0] = make_float4(v[0], v[1], v[2], v[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(v[4], v[5], v[6], v[7]);
}

__device__ __forceinline__ void load8(float (&v)[8], const float* from) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = 0;
  add8(v, from);
}

/// How a block of BM x BN sums, held KW times in parts, is handed to threads: eight columns each, the same in every
/// row.
template <int BM, int BN, int KW>
struct Handout {
  static constexpr int kThreads = BM / 64 * KW * 128, kPitch = BN + 8, kChunks = BN / 8, kRows = kThreads / kChunks;
  const int row, column;

  __device__ __forceinline__ explicit Handout(int thread) : row(thread / kChunks), column(thread % kChunks * 8) {}
  __device__ __forceinline__ bool active() const { return row < kRows; }
};

/// All threads but the producers meet.
template <int kThreads>
__device__ __forceinline__ void consumers_meet() {
  asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory");
}

/// Sends each block of the cluster its rows of this block's sums, and waits for those of the others.
template <int BM, int BN, int KW>
__device__ __forceinline__ void exchange(const GemmTmaParams& p, float* staged, const float* received,
                                         std::uint32_t barrier, int part) {
  using H = Handout<BM, BN, KW>;
  const int blocks = 1 << p.log_split, bytes = BM / blocks * H::kPitch * 4, thread = threadIdx.x;
  cluster_wait();  // the barriers of all blocks are initialised
  if constexpr (KW > 1) {
#pragma unroll 1
    for (int i = thread; i < BM * H::kChunks; i += H::kThreads) {
      float* to = staged + i / H::kChunks * H::kPitch + i % H::kChunks * 8;
      float v[8] = {};
#pragma unroll
      for (int q = 0; q < KW; q++) add8(v, to + q * BM * H::kPitch);
      store8(v, to);
    }
  }
  fence_async();
  consumers_meet<H::kThreads>();
  if (thread < blocks && thread != part) {
    copy_to_block(in_block(shared_address(received) + part * bytes, thread), shared_address(staged) + thread * bytes,
                  bytes, in_block(barrier, thread));
  }
  barrier_wait(barrier, 0);
  cluster_arrive();  // what this block sent has been read by nobody later than the wait at the end
}

/// Stores rows of finished numbers where rows of the output begin at any element: words of 16 bytes where they lie, and
/// single elements at a row's ends.
template <int BN, int kThreads>
__device__ __forceinline__ void store_narrow(const EpilogueParams& e, const float* rows, int pitch, int count,
                                             std::int64_t first, int columns) {
  columns = min(columns, BN);
  if (e.out_type == Element::f32) {
#pragma unroll 4
    for (int i = threadIdx.x; i < count * BN; i += kThreads) {
      const int r = i / BN, c = i % BN;
      if (c < columns) reinterpret_cast<float*>(e.out)[first + r * e.out_row + c] = rows[r * pitch + c];
    }
    return;
  }
  const auto before = [&](std::int64_t at) { return static_cast<int>(-(e.out / 2 + at) & 7); };
#pragma unroll 2
  for (int i = threadIdx.x; i < count * (BN / 8); i += kThreads) {
    const int r = i / (BN / 8);
    const std::int64_t at = first + r * e.out_row;
    const int c = before(at) + i % (BN / 8) * 8;
    if (c + 8 > columns) continue;
    float v[8];
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = rows[r * pitch + c + j];
    store8(v, e.out, e.out_type, at + c, 8, true);
  }
#pragma unroll 1
  for (int i = threadIdx.x; i < count * 16; i += kThreads) {
    const int r = i / 16, one = i % 8;
    const std::int64_t at = first + r * e.out_row;
    const int head = min(before(at), columns), words = (columns - head) / 8;
    const int c = i & 8 ? head + words * 8 + one : one;
    if (c < (i & 8 ? columns : head)) store_element(e.out, e.out_type, at + c, rows[r * pitch + c]);
  }
}

/// Adds parts, finishes and stores this block's rows of the tile. `residual` is that of the thread's first two rows.
template <class E, int pieces, int BM, int BN, int KW>
__device__ __forceinline__ void finish_tile(const GemmTmaParams& p, float* staged, const float* received,
                                            const Place& at, const Columns& columns, Raw8 (&residual)[2]) {
  using H = Handout<BM, BN, KW>;
  const H mine(threadIdx.x);
  const int blocks = 1 << p.log_split, rows = BM >> p.log_split, first = at.part * rows;
  const int column = at.n0 + mine.column, count = min(8, p.n - column), end = min(rows, p.m - at.m0 - first);
  const bool wide = E::kWhole || (p.e.flags & kEpilogueOutVector);
  const EpilogueBatch batch(p.e, at.batch0, at.batch1);
  if (mine.active() && count > 0) {
#pragma unroll 1
    for (int r = mine.row; r < end; r += H::kRows) {
      const int m = at.m0 + first + r;
      const Raw8 now = residual[0];
      residual[0] = residual[1];
      if (r + 2 * H::kRows < end) load_residual<E>(residual[1], p.e, batch, m + 2 * H::kRows, column, count);
      float* s = staged + (first + r) * H::kPitch + mine.column;
      float v[8] = {};
      add8(v, s);
      if (blocks > 1) {
        const float* q = received + r * H::kPitch + mine.column;
#pragma unroll 4
        for (int i = 0; i < blocks; i++, q += rows * H::kPitch) {
          if (i != at.part) add8(v, q);
        }
      } else {
#pragma unroll
        for (int i = 1; i < KW; i++) add8(v, s + i * BM * H::kPitch);
      }
      if constexpr (pieces > 1) {
        store8(v, s);
        ExactSum<pieces>(p.floats, p.conv, p.m, at.batch0, at.batch1).mend(s, m, column, count, 0, p.floats.k);
        load8(v, s);
      }
      apply8<E>(v, p.e, columns, now);
      if (wide) {
        store8<E>(v, p.e.out, E::type(p.e.out_type), batch.out + m * p.e.out_row + column, count, true);
      } else {
        store8(v, s);
      }
    }
  }
  if (wide) return;
  consumers_meet<H::kThreads>();
  store_narrow<BN, H::kThreads>(p.e, staged + first * H::kPitch, H::kPitch, end,
                                batch.out + (at.m0 + first) * p.e.out_row + at.n0, p.n - at.n0);
}

}  // namespace infernode::cuda
