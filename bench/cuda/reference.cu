#include "bench/cuda/reference.h"
#include "providers/cuda/kernels/device/epilogue.cuh"

namespace infernode::cuda::bench {
namespace {

__device__ double activated(double x, Activation act, double a, double b) {
  switch (act) {
    case Activation::none:
      return x;
    case Activation::relu:
      return fmax(x, 0.0);
    case Activation::gelu:
      return 0.5 * x * (1 + erf(x * 0.70710678118654752));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + ::tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case Activation::silu:
      return x / (1 + exp(-x));
    case Activation::sigmoid:
      return 1 / (1 + exp(-x));
    case Activation::tanh:
      return ::tanh(x);
    case Activation::hard_swish:
      return x * fmin(fmax(x / 6 + 0.5, 0.0), 1.0);
    case Activation::hard_sigmoid:
      return fmin(fmax(a * x + b, 0.0), 1.0);
    case Activation::leaky_relu:
      return x < 0 ? a * x : x;
    case Activation::clip:
      return fmin(fmax(x, a), b);
    case Activation::elu:
      return x < 0 ? a * (exp(x) - 1) : x;
  }
  return x;
}

__device__ double finished(double sum, const ReferenceEpilogue& e, std::int64_t row, std::int64_t column, int part0,
                           int part1) {
  const std::int64_t c = column + part0 * std::int64_t{e.column_batch};
  double v = sum * e.alpha * (e.scale ? load_element(e.scale, Element::f32, c) : 1.f);
  if (e.bias) v += load_element(e.bias, Element::f32, c);
  const double r =
      e.residual
          ? load_element(e.residual, e.residual_type,
                         part0 * e.residual_batch[0] + part1 * e.residual_batch[1] + row * e.residual_row + column)
          : 0.0;
  if (!e.residual_last) v += r;
  v = activated(v, e.activation, e.a, e.b);
  return e.residual_last ? v + r : v;
}

/// What becomes of an element of a row: (x - mean) * factor.
struct RowState {
  double mean = 0, factor = 1;
};

__device__ RowState state_of(const ReferenceGemm& p, std::int64_t a) {
  RowState s;
  if (p.norm_scale == 0) return s;
  double sum = 0, squares = 0;
  for (std::int64_t k = 0; k < p.k; k++) sum += load_element(p.a, p.a_type, a + k * p.a_k);
  if (!p.norm_no_mean) s.mean = sum / static_cast<double>(p.k);
  for (std::int64_t k = 0; k < p.k; k++) {
    const double d = load_element(p.a, p.a_type, a + k * p.a_k) - s.mean;
    squares += d * d;
  }
  s.factor = 1 / sqrt(squares / static_cast<double>(p.k) + p.norm_epsilon);
  return s;
}

__device__ double normalized(const ReferenceGemm& p, const RowState& s, double x, std::int64_t k) {
  if (p.norm_scale == 0) return x;
  const double bias = p.norm_bias ? load_element(p.norm_bias, p.a_type, k) : 0;
  const auto y = static_cast<float>((x - s.mean) * s.factor * load_element(p.norm_scale, p.a_type, k) + bias);
  return p.a_type == Element::f16 ? unpack_f16(pack_f16(y, 0)).x : unpack_bf16(pack_bf16(y, 0)).x;
}

}  // namespace
}  // namespace infernode::cuda::bench

using namespace infernode::cuda;
using namespace infernode::cuda::bench;

extern "C" __global__ void reference_fill(const __grid_constant__ FillParams p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= p.count) return;
  std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761u + p.seed;
  x ^= x >> 16, x *= 0x85ebca6bu, x ^= x >> 13, x *= 0xc2b2ae35u, x ^= x >> 16;
  const float v = ((x & 0xffffff) / 8388608.0f - 1.0f) * p.scale + p.shift;
  if (p.type == Element::f32) {
    reinterpret_cast<float*>(p.out)[i] = v;
  } else {
    reinterpret_cast<std::uint16_t*>(p.out)[i] =
        static_cast<std::uint16_t>(p.type == Element::f16 ? pack_f16(v, 0) : pack_bf16(v, 0));
  }
}

extern "C" __global__ void reference_gemm(const __grid_constant__ ReferenceGemm p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= p.m * p.n * p.batch[0] * p.batch[1]) return;
  const std::int64_t n = i % p.n, m = i / p.n % p.m, batch = i / p.n / p.m;
  const int b0 = static_cast<int>(batch % p.batch[0]), b1 = static_cast<int>(batch / p.batch[0]);
  const std::int64_t a = b0 * p.a_batch[0] + b1 * p.a_batch[1] + m * p.a_row;
  const std::int64_t b = b0 * p.b_batch[0] + b1 * p.b_batch[1] + n * p.b_row;
  double sum = 0;
  const RowState row = state_of(p, a);
  for (std::int64_t k = 0; k < p.k; k++) {
    const double x = normalized(p, row, load_element(p.a, p.a_type, a + k * p.a_k), k);
    sum += x * load_element(p.b, p.b_type, b + k * p.b_k);
  }
  reinterpret_cast<double*>(p.ref)[i] = finished(sum, p.e, m, n, b0, b1);
}

extern "C" __global__ void reference_conv(const __grid_constant__ ReferenceConv p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, columns = p.groups * p.outputs;
  if (i >= p.pixels * columns) return;
  const ConvParams& c = p.conv;
  const int column = static_cast<int>(i % columns), group = column / static_cast<int>(p.outputs);
  const std::int64_t row = i / columns;
  std::int64_t rest = row;
  const int x = static_cast<int>(rest % c.out_w);
  rest /= c.out_w;
  const int y = static_cast<int>(rest % c.out_h);
  rest /= c.out_h;
  const int z = static_cast<int>(rest % c.out_d), image = static_cast<int>(rest / c.out_d);
  double sum = 0;
  for (int tap = 0; tap < c.taps; tap++) {
    const int kx = tap % c.kernel_w, ky = tap / c.kernel_w % c.kernel_h, kz = tap / c.kernel_w / c.kernel_h;
    int ix, iy, iz;
    if (c.transposed) {
      ix = x + c.pad_w - kx * c.dilation_w, iy = y + c.pad_h - ky * c.dilation_h, iz = z + c.pad_d - kz * c.dilation_d;
      if (ix < 0 || iy < 0 || iz < 0 || ix % c.stride_w || iy % c.stride_h || iz % c.stride_d) continue;
      ix /= c.stride_w, iy /= c.stride_h, iz /= c.stride_d;
    } else {
      ix = x * c.stride_w - c.pad_w + kx * c.dilation_w;
      iy = y * c.stride_h - c.pad_h + ky * c.dilation_h;
      iz = z * c.stride_d - c.pad_d + kz * c.dilation_d;
    }
    if (ix < 0 || iy < 0 || iz < 0 || ix >= c.in_w || iy >= c.in_h || iz >= c.in_d) continue;
    const std::int64_t pixel = ((std::int64_t{image} * c.in_d + iz) * c.in_h + iy) * c.in_w + ix;
    for (int k = 0; k < c.channels; k++) {
      sum += static_cast<double>(load_element(p.input, p.type, pixel * c.pixel + group * c.channels + k)) *
             load_element(p.weights, p.weights_type, (std::int64_t{column} * c.taps + tap) * c.channels + k);
    }
  }
  reinterpret_cast<double*>(p.ref)[i] = finished(sum, p.e, row, column, 0, 0);
}

/// A thread a query and head; the scores of its keys are computed twice.
extern "C" __global__ void reference_attention(const __grid_constant__ ReferenceAttention r) {
  const AttentionParams& p = r.p;
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= std::int64_t{p.batch} * p.heads * p.queries) return;
  const int query = static_cast<int>(i % p.queries), head = static_cast<int>(i / p.queries % p.heads);
  const int batch = static_cast<int>(i / p.queries / p.heads), kv = head / p.heads_per_key;
  const int keys = p.lengths ? min(p.keys, reinterpret_cast<const int*>(p.lengths)[batch]) : p.keys;
  const int offset = p.causal_offset + keys - p.keys;
  const int high = p.causal ? min(keys, query + offset + 1) : keys;
  const int low = p.window ? max(0, query + offset + 1 - p.window) : 0;
  const std::int64_t q = batch * p.q_at.batch + head * p.q_at.head + query * p.q_at.row;
  const auto score = [&](int key) {
    const std::int64_t k = batch * p.k_at.batch + kv * p.k_at.head + key * p.k_at.row;
    double s = 0;
    for (int d = 0; d < p.d; d++) {
      s += static_cast<double>(load_element(p.q, p.type, q + d)) * load_element(p.k, p.type, k + d);
    }
    s *= r.scale;
    if (p.bias) {
      s += load_element(p.bias, p.bias_type,
                        batch * p.bias_at.batch + head * p.bias_at.head + query * p.bias_at.row + key);
    }
    return s;
  };
  double* out = reinterpret_cast<double*>(r.ref) + i * p.dv;
  double most = -1e300, total = 0;
  for (int key = low; key < high; key++) most = fmax(most, score(key));
  for (int d = 0; d < p.dv; d++) out[d] = 0;
  for (int key = low; key < high; key++) {
    const double w = exp(score(key) - most);
    total += w;
    const std::int64_t v = batch * p.v_at.batch + kv * p.v_at.head + key * p.v_at.row;
    for (int d = 0; d < p.dv; d++) out[d] += w * load_element(p.v, p.type, v + d);
  }
  for (int d = 0; d < p.dv && total > 0; d++) out[d] /= total;
}

extern "C" __global__ void reference_compare(const __grid_constant__ CompareParams p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t width = p.gaps ? p.out_row : p.columns;
  if (i >= p.rows * width * p.batch[0] * p.batch[1]) return;
  const std::int64_t c = i % width, r = i / width % p.rows, batch = i / width / p.rows;
  const std::int64_t at = batch % p.batch[0] * p.out_batch[0] + batch / p.batch[0] * p.out_batch[1] + r * p.out_row + c;
  double* sums = reinterpret_cast<double*>(p.sums);
  if (c >= p.columns) {
    const bool same = p.type == Element::f32 ? reinterpret_cast<const std::uint32_t*>(p.out)[at] == 0xffffffffu
                                             : reinterpret_cast<const std::uint16_t*>(p.out)[at] == 0xffffu;
    if (!same) atomicAdd(&sums[3], 1.0);
    return;
  }
  const double out = load_element(p.out, p.type, at);
  const double ref = reinterpret_cast<const double*>(
      p.ref)[batch % p.batch[0] * p.ref_batch[0] + batch / p.batch[0] * p.ref_batch[1] + r * p.ref_row + c];
  if (!isfinite(out)) {
    atomicAdd(&sums[2], 1.0);
    return;
  }
  atomicAdd(&sums[0], (out - ref) * (out - ref));
  atomicAdd(&sums[1], ref * ref);
}
