#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/rows.h"

#include <type_traits>

// A warp for each row: normalizations, softmax, reductions.
namespace infernode::cuda {

constexpr int kWarps = 4;

__device__ __forceinline__ std::int64_t row_of_warp() { return blockIdx.x * std::int64_t{kWarps} + threadIdx.x / 32; }

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
  float mean = 0, squares = 0;
  if (!p.no_mean) {
#pragma unroll 1
    for (int i = lane; i < p.columns; i += 32) mean += at(i);
    mean = warp_sum(mean) / p.columns;
  }
#pragma unroll 1
  for (int i = lane; i < p.columns; i += 32) squares += (at(i) - mean) * (at(i) - mean);
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

template <class T>
__device__ __forceinline__ void softmax(const SoftmaxParams& p) {
  const std::int64_t row = row_of_warp();
  const int lane = threadIdx.x % 32;
  const std::int64_t start = row / p.inner * p.columns * p.inner + row % p.inner;
  bring_near(p);
  wait_and_let_next_start();
  if (row >= p.rows) return;
  const T* in = reinterpret_cast<const T*>(p.in) + start;
  T* out = reinterpret_cast<T*>(p.out) + start;
  float most = -INFINITY;
  for (int i = lane; i < p.columns; i += 32) most = fmaxf(most, to_float(in[i * p.inner]));
  most = warp_max(most);
  float sum = 0;
  for (int i = lane; i < p.columns; i += 32) sum += expf(to_float(in[i * p.inner]) - most);
  sum = warp_sum(sum);
  const float shift = p.logarithm ? logf(sum) : 1.0f / sum;
  for (int i = lane; i < p.columns; i += 32) {
    const float x = to_float(in[i * p.inner]) - most;
    out[i * p.inner] = from_float<T>(p.logarithm ? x - shift : expf(x) * shift);
  }
}

__device__ __forceinline__ float start_of(ReduceOp op) {
  return op == ReduceOp::max || op == ReduceOp::log_sum_exp ? -INFINITY
         : op == ReduceOp::min                              ? INFINITY
         : op == ReduceOp::prod                             ? 1.0f
                                                            : 0.0f;
}

/// Adds one more number; what log_sum_exp needs first is the largest.
__device__ __forceinline__ float take(ReduceOp op, float sum, float x) {
  switch (op) {
    case ReduceOp::max:
    case ReduceOp::log_sum_exp:
      return x != x || x > sum ? x : sum;
    case ReduceOp::min:
      return x != x || x < sum ? x : sum;
    case ReduceOp::prod:
      return sum * x;
    case ReduceOp::l1:
      return sum + fabsf(x);
    case ReduceOp::l2:
    case ReduceOp::sum_square:
      return sum + x * x;
    default:
      return sum + x;
  }
}
__device__ __forceinline__ float join(ReduceOp op, float a, float b) {
  return op == ReduceOp::l1 || op == ReduceOp::l2 || op == ReduceOp::sum_square ? a + b : take(op, a, b);
}

template <class T>
__device__ __forceinline__ void reduce(const ReduceParams& p) {
  const std::int64_t output = row_of_warp();
  const int lane = threadIdx.x % 32;
  const T* in = reinterpret_cast<const T*>(p.in) + output / p.inner * p.columns * p.inner + output % p.inner;
  bring_near(p);
  wait_and_let_next_start();
  if (output >= p.outputs) return;
  float sum = start_of(p.op);
  for (std::int64_t i = lane; i < p.columns; i += 32) sum = take(p.op, sum, to_float(in[i * p.inner]));
#pragma unroll
  for (int step = 16; step > 0; step /= 2) sum = join(p.op, sum, __shfl_xor_sync(~0u, sum, step));
  if (p.op == ReduceOp::log_sum_exp) {
    const float most = isinf(sum) ? 0.0f : sum;
    sum = 0;
    for (std::int64_t i = lane; i < p.columns; i += 32) sum += expf(to_float(in[i * p.inner]) - most);
    sum = most + logf(warp_sum(sum));
  }
  if (p.op == ReduceOp::mean) sum /= p.columns;
  if (p.op == ReduceOp::l2) sum = sqrtf(sum);
  if (p.op == ReduceOp::log_sum) sum = logf(sum);
  if (lane == 0) reinterpret_cast<T*>(p.out)[output] = from_float<T>(sum);
}

/// Sums, products and extremes of integers.
template <class T>
__device__ __forceinline__ void reduce_ints(const ReduceParams& p) {
  bring_near(p);
  wait_and_let_next_start();
  const std::int64_t output = row_of_warp();
  if (output >= p.outputs || threadIdx.x % 32 != 0) return;
  const T* in = reinterpret_cast<const T*>(p.in) + output / p.inner * p.columns * p.inner + output % p.inner;
  T sum = p.op == ReduceOp::prod ? 1 : p.op == ReduceOp::max || p.op == ReduceOp::min ? in[0] : 0;
  for (std::int64_t i = 0; i < p.columns; ++i) {
    const T x = in[i * p.inner];
    if (p.op == ReduceOp::max)
      sum = x > sum ? x : sum;
    else if (p.op == ReduceOp::min)
      sum = x < sum ? x : sum;
    else if (p.op == ReduceOp::prod)
      sum *= x;
    else if (p.op == ReduceOp::sum_square)
      sum += x * x;
    else if (p.op == ReduceOp::l1)
      sum += x < 0 ? -x : x;
    else
      sum += x;
  }
  if (p.op == ReduceOp::mean) sum /= static_cast<T>(p.columns);
  reinterpret_cast<T*>(p.out)[output] = sum;
}

template <class Sum, class T>
__device__ __forceinline__ Sum to_sum(T x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return to_float(x);
}
template <class T, class Sum>
__device__ __forceinline__ T of_sum(Sum x) {
  if constexpr (std::is_integral_v<T>)
    return x;
  else
    return from_float<T>(x);
}

/// Another lane's number of four or eight bytes.
template <class T>
__device__ __forceinline__ T lane_xor(T x, int mask) {
  if constexpr (sizeof(T) == 4) {
    return __shfl_xor_sync(~0u, x, mask);
  } else {
    const std::uint32_t low = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x), mask);
    const std::uint32_t high = __shfl_xor_sync(~0u, static_cast<std::uint32_t>(x >> 32), mask);
    return static_cast<T>(std::uint64_t{high} << 32 | low);
  }
}

/// A row of neighbours, by a warp: kAhead numbers of each lane are under way at once.
template <class T, class Sum>
__device__ __forceinline__ void scan_row(const ScanParams& p, std::int64_t row) {
  constexpr int kAhead = 8;
  const int lane = threadIdx.x % 32;
  const T* in = reinterpret_cast<const T*>(p.in) + row * p.columns;
  T* out = reinterpret_cast<T*>(p.out) + row * p.columns;
  const auto place = [&](std::int64_t i) { return p.reverse ? p.columns - 1 - i : i; };
  Sum before = 0;
  for (std::int64_t first = lane; first - lane < p.columns; first += 32 * kAhead) {
    Sum x[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::int64_t i = first + j * 32;
      x[j] = i < p.columns ? to_sum<Sum>(in[place(i)]) : 0;
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      Sum sum = p.exclusive ? 0 : x[j], all = x[j];  // up to this lane; of the lanes met so far
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const Sum other = lane_xor(all, step);
        if (lane & step) sum += other;
        all += other;
      }
      const std::int64_t i = first + j * 32;
      if (i < p.columns) out[place(i)] = of_sum<T>(before + sum);
      before += all;
    }
  }
}

/// The sums of floats are float32, those of integers integers.
template <class T, class Sum>
__device__ __forceinline__ void scan_as(const ScanParams& p) {
  bring_near(p);
  wait_and_let_next_start();
  if (p.inner == 1) {
    if (row_of_warp() < p.rows) scan_row<T, Sum>(p, row_of_warp());
    return;
  }
  const std::int64_t row = blockIdx.x * std::int64_t{kWarps * 32} + threadIdx.x;
  if (row >= p.rows) return;
  const std::int64_t start = row / p.inner * p.columns * p.inner + row % p.inner;
  Sum sum = 0;
  for (std::int64_t i = 0; i < p.columns; ++i) {
    const std::int64_t at = start + (p.reverse ? p.columns - 1 - i : i) * p.inner;
    const Sum x = to_sum<Sum>(reinterpret_cast<const T*>(p.in)[at]);
    T* const out = reinterpret_cast<T*>(p.out) + at;
    *out = of_sum<T>(p.exclusive ? sum : sum + x);
    sum += x;
  }
}
template <class T>
__device__ __forceinline__ void scan(const ScanParams& p) {
  scan_as<T, float>(p);
}
template <class T>
__device__ __forceinline__ void scan_ints(const ScanParams& p) {
  scan_as<T, T>(p);
}

#define KERNEL(name, function, type, params)                                                         \
  extern "C" __global__ void __launch_bounds__(kWarps * 32) name(const __grid_constant__ params p) { \
    function<type>(p);                                                                               \
  }
KERNEL(normalize_f32, normalize, float, NormalizeParams)
KERNEL(normalize_f16, normalize, __half, NormalizeParams)
KERNEL(normalize_bf16, normalize, __nv_bfloat16, NormalizeParams)
KERNEL(softmax_f32, softmax, float, SoftmaxParams)
KERNEL(softmax_f16, softmax, __half, SoftmaxParams)
KERNEL(softmax_bf16, softmax, __nv_bfloat16, SoftmaxParams)
KERNEL(reduce_f32, reduce, float, ReduceParams)
KERNEL(reduce_f16, reduce, __half, ReduceParams)
KERNEL(reduce_bf16, reduce, __nv_bfloat16, ReduceParams)
KERNEL(scan_f32, scan, float, ScanParams)
KERNEL(scan_f16, scan, __half, ScanParams)
KERNEL(scan_bf16, scan, __nv_bfloat16, ScanParams)
KERNEL(scan_i64, scan_ints, long long, ScanParams)
KERNEL(scan_i32, scan_ints, int, ScanParams)
KERNEL(reduce_i64, reduce_ints, long long, ReduceParams)
KERNEL(reduce_i32, reduce_ints, int, ReduceParams)

}  // namespace infernode::cuda
