#include "providers/cuda/kernels/device/warp_rows.cuh"

// Layer and root-mean-square normalization.
namespace infernode::cuda {

/// A row's thread has packs of 16 bytes of T, every p.warps * 32nd. Rows of up to that many packs of each thread stay
/// in registers; longer ones are read again.
template <class T>
struct Columns {
  static constexpr int kPack = 16 / sizeof(T), kPacks = kNormalizedInWarp / 32 / kPack;
  static_assert(kPacks > 0);
  using Numbers = float[kPacks][kPack];

  const int first, step, count;  ///< packs: the thread's first, threads of a row, all

  __device__ __forceinline__ explicit Columns(const NormalizeParams& p)
      : first(threadIdx.x % (p.warps * 32)), step(p.warps * 32), count(p.columns / kPack) {}
  /// f(pack's number, its place among the thread's)
  template <class F>
  __device__ __forceinline__ void each(const F& f) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (first + i * step < count) f(first + i * step, i);
    }
  }
};

/// A row and, if there is one, the row that is added to it; their sum is stored where somebody wants it.
template <class T>
__device__ __forceinline__ void load_row(typename Columns<T>::Numbers& x, const NormalizeParams& p, std::int64_t row,
                                         const Columns<T>& columns) {
  constexpr int kPack = Columns<T>::kPack;
  using Word = Pack<T, kPack>;
  const auto* in = reinterpret_cast<const Word*>(p.in) + row * columns.count;
  const auto* residual = reinterpret_cast<const Word*>(p.residual) + row * columns.count;
  auto* sum = reinterpret_cast<Word*>(p.sum) + row * columns.count;
  columns.each([&](int at, int i) {
    const Word own = in[at];
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[i][j] = to_float(own.of[j]);
  });
  if (p.residual == 0) return;
  columns.each([&](int at, int i) {
    const Word other = residual[at];
    Word both;
#pragma unroll
    for (int j = 0; j < kPack; ++j) x[i][j] += to_float(other.of[j]), both.of[j] = from_float<T>(x[i][j]);
    if (p.sum != 0) sum[at] = both;
  });
}

/// float32 of the thread's columns; `none` where there are none.
template <class T>
__device__ __forceinline__ void load_columns(typename Columns<T>::Numbers& to, std::uint64_t from, float none,
                                             const Columns<T>& columns) {
  constexpr int kPack = Columns<T>::kPack;
#pragma unroll
  for (int i = 0; i < Columns<T>::kPacks; ++i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) to[i][j] = none;
  }
  if (from == 0) return;
  columns.each([&](int at, int i) {
#pragma unroll
    for (int j = 0; j < kPack; j += 4) {
      const float4 v = reinterpret_cast<const float4*>(from)[at * (kPack / 4) + j / 4];
      to[i][j] = v.x, to[i][j + 1] = v.y, to[i][j + 2] = v.z, to[i][j + 3] = v.w;
    }
  });
}

/// The sum over the threads of a row. `parts`: of the block, used once.
__device__ __forceinline__ float row_sum(float x, int warps, float (&parts)[kWarps]) {
  x = warp_sum(x);
  if (warps == 1) return x;
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) x += parts[i];
  return x;
}

template <class T>
__device__ __forceinline__ void normalize_in_registers(const NormalizeParams& p, std::int64_t row) {
  constexpr int kPack = Columns<T>::kPack;
  __shared__ float parts[2][kWarps];
  const Columns<T> columns(p);
  typename Columns<T>::Numbers x, scale, bias;
  if (!p.columns_constant) wait_for_previous();
  load_columns<T>(scale, p.scale, 1, columns);
  load_columns<T>(bias, p.bias, 0, columns);
  bring_near(p);
  wait_for_previous();
  load_row<T>(x, p, row, columns);
  float mean = 0;
  if (!p.no_mean) {
    columns.each([&](int, int i) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) mean += x[i][j];
    });
    mean = row_sum(mean, p.warps, parts[0]) * p.per_column;
  }
  float squares = 0;
  columns.each([&](int, int i) {
#pragma unroll
    for (int j = 0; j < kPack; ++j) squares += (x[i][j] - mean) * (x[i][j] - mean);
  });
  const float factor = rsqrtf(fmaf(row_sum(squares, p.warps, parts[1]), p.per_column, p.epsilon));
  auto* out = reinterpret_cast<Pack<T, kPack>*>(p.out) + row * columns.count;
  columns.each([&](int at, int i) {
    Pack<T, kPack> y;
#pragma unroll
    for (int j = 0; j < kPack; ++j) y.of[j] = from_float<T>((x[i][j] - mean) * factor * scale[i][j] + bias[i][j]);
    out[at] = y;
  });
}

/// The sum of f(column) over the lane's columns, by runs of them: in one sum rounding would grow with the row.
template <class F>
__device__ __forceinline__ float lane_sum(std::int64_t columns, int lane, const F& f) {
  constexpr std::int64_t kRun = 64 * 32;
  float sum = 0;
#pragma unroll 1
  for (std::int64_t begin = 0; begin < columns; begin += kRun) {
    const std::int64_t end = min(begin + kRun, columns);
    float part = 0;
#pragma unroll 1
    for (std::int64_t i = begin + lane; i < end; i += 32) part += f(static_cast<int>(i));
    sum += part;
  }
  return sum;
}

template <class T>
__device__ __forceinline__ void normalize_any(const NormalizeParams& p, std::int64_t row) {
  const int lane = threadIdx.x % 32;
  const T* in = reinterpret_cast<const T*>(p.in) + row * p.columns;
  const T* residual = reinterpret_cast<const T*>(p.residual) + row * p.columns;
  T* sum = reinterpret_cast<T*>(p.sum) + row * p.columns;
  T* out = reinterpret_cast<T*>(p.out) + row * p.columns;
  const auto* scale = reinterpret_cast<const float*>(p.scale);
  const auto* bias = reinterpret_cast<const float*>(p.bias);
  const auto at = [&](int i) { return to_float(in[i]) + (p.residual != 0 ? to_float(residual[i]) : 0.0f); };
  const float mean = p.no_mean ? 0.0f : warp_sum(lane_sum(p.columns, lane, at)) / p.columns;
  const float squares = lane_sum(p.columns, lane, [&](int i) { return (at(i) - mean) * (at(i) - mean); });
  const float factor = 1.0f / sqrtf(warp_sum(squares) / p.columns + p.epsilon);
#pragma unroll 1
  for (int i = lane; i < p.columns; i += 32) {
    const float x = at(i);
    if (p.sum != 0) sum[i] = from_float<T>(x);
    out[i] = from_float<T>((x - mean) * factor * (p.scale != 0 ? scale[i] : 1.0f) + (p.bias != 0 ? bias[i] : 0.0f));
  }
}

template <class T>
__device__ __forceinline__ void normalize(const NormalizeParams& p) {
  let_next_start();
  const std::int64_t row = p.warps == 1 ? row_of_warp() : std::int64_t{blockIdx.x};
  if (row >= p.rows) return;
  if (p.columns % Columns<T>::kPack == 0 && p.columns <= p.warps * kNormalizedInWarp) {
    normalize_in_registers<T>(p, row);
  } else {
    wait_for_previous();
    normalize_any<T>(p, row);
  }
}

ROW_KERNEL(normalize_f32, normalize, float, NormalizeParams)
ROW_KERNEL(normalize_f16, normalize, __half, NormalizeParams)
ROW_KERNEL(normalize_bf16, normalize, __nv_bfloat16, NormalizeParams)

}  // namespace infernode::cuda
