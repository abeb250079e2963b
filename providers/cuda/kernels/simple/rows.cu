#include "providers/cuda/kernels/device/warp_rows.cuh"

#include <type_traits>

// Softmax, reductions and running sums.
namespace infernode::cuda {

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

ROW_KERNEL(softmax_f32, softmax, float, SoftmaxParams)
ROW_KERNEL(softmax_f16, softmax, __half, SoftmaxParams)
ROW_KERNEL(softmax_bf16, softmax, __nv_bfloat16, SoftmaxParams)
ROW_KERNEL(reduce_f32, reduce, float, ReduceParams)
ROW_KERNEL(reduce_f16, reduce, __half, ReduceParams)
ROW_KERNEL(reduce_bf16, reduce, __nv_bfloat16, ReduceParams)
ROW_KERNEL(scan_f32, scan, float, ScanParams)
ROW_KERNEL(scan_f16, scan, __half, ScanParams)
ROW_KERNEL(scan_bf16, scan, __nv_bfloat16, ScanParams)
ROW_KERNEL(scan_i64, scan_ints, long long, ScanParams)
ROW_KERNEL(scan_i32, scan_ints, int, ScanParams)
ROW_KERNEL(reduce_i64, reduce_ints, long long, ReduceParams)
ROW_KERNEL(reduce_i32, reduce_ints, int, ReduceParams)

}  // namespace infernode::cuda
