#pragma once

#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/epilogue.h"

// What follows a product: eight columns of one row at a time.
namespace infernode::cuda {

inline constexpr float kLog2E = 1.44269504f;

/// What a kernel knows of its epilogue when it is compiled: nothing, or that columns and rows are whole
/// words of 16 bytes, elements are of type T, and the activation is a common one. Code that never runs is in the way of
/// code that does: the instruction cache holds 32 KB for all kernels of a net.
struct AnyEpilogue {
  static constexpr bool kWhole = false;
  static __device__ __forceinline__ Element type(Element given) { return given; }
};
template <Element T>
struct WholeEpilogue {
  static constexpr bool kWhole = true;
  static constexpr Element kType = T;
  static __device__ __forceinline__ Element type(Element) { return T; }
};

/// x less z times the share of a normal distribution below -z, z = |x|, whose logarithm is a polynomial: |error| <
/// 1e-7.
__device__ __forceinline__ float gelu(float x) {
  const float z = fminf(fabsf(x), 6.f);
  const float share = fast_exp2(
      fmaf(z,
           fmaf(z,
                fmaf(z, fmaf(z, fmaf(z, fmaf(z, 3.25058680e-5f, -7.63796095e-4f), 8.06167350e-3f), -5.33800800e-2f),
                     -0.458797600f),
                -1.15119170f),
           -0.99999434f));
  return fmaf(-z, share, x < 0.f ? 0.f : x);
}

__device__ __forceinline__ float sigmoid(float x) { return fast_reciprocal(1.f + fast_exp2(x * -kLog2E)); }

/// By sigmoid, near 0 by the series: relative error below 1e-6 everywhere.
__device__ __forceinline__ float tanh(float x) {
  const float s = x * x, near = x * fmaf(s, fmaf(s, fmaf(s, -17.f / 315.f, 2.f / 15.f), -1.f / 3.f), 1.f);
  return s < 0.02f ? near : fmaf(2.f, sigmoid(2.f * x), -1.f);
}

template <int N, class F>
__device__ __forceinline__ void each(float (&v)[N], F f) {
#pragma unroll
  for (int i = 0; i < N; i++) v[i] = f(v[i]);
}

/// Keeps the compiler from making a jump table of comparisons: its entries would come from cold constant memory.
__device__ __forceinline__ Activation opaque(Activation act) {
  return static_cast<Activation>(opaque(static_cast<std::uint32_t>(act)));
}

/// The activations that are rare behind products.
template <int N>
__device__ __forceinline__ void activate_rare(float (&v)[N], Activation act, float a, float b) {
  if (act == Activation::tanh) return each(v, tanh);
  act = opaque(act);
  if (act == Activation::hard_swish) return each(v, [](float x) { return x * __saturatef(fmaf(x, 1.f / 6, 0.5f)); });
  act = opaque(act);
  if (act == Activation::hard_sigmoid) return each(v, [=](float x) { return __saturatef(fmaf(x, a, b)); });
  act = opaque(act);
  if (act == Activation::leaky_relu) return each(v, [=](float x) { return x < 0.f ? a * x : x; });
  act = opaque(act);
  if (act == Activation::clip) return each(v, [=](float x) { return x < a ? a : x > b ? b : x; });
  act = opaque(act);
  if (act == Activation::elu) each(v, [=](float x) { return x < 0.f ? a * (fast_exp2(x * kLog2E) - 1.f) : x; });
}

template <class E = AnyEpilogue, int N>
__device__ __forceinline__ void activate(float (&v)[N], Activation act, float a, float b) {
  if (act == Activation::none) return;
  act = opaque(act);
  if (act == Activation::relu) return each(v, [](float x) { return x < 0.f ? 0.f : x; });
  act = opaque(act);
  if (act == Activation::gelu) return each(v, gelu);
  act = opaque(act);
  if constexpr (!E::kWhole) {
    if (act > kLastCommonActivation) return activate_rare(v, act, a, b);
  }
  const float cube = act == Activation::gelu_tanh ? 0.0713548163f : 0.f;
  const float factor = act == Activation::gelu_tanh ? 1.5957691216f : 1.f;
  each(v, [=](float x) {
    const float s = sigmoid(x * fmaf(cube * x, x, factor));
    return act == Activation::sigmoid ? s : x * s;
  });
}

/// Element i of an array of some type, read after the wait.
__device__ __forceinline__ float load_element(std::uint64_t base, Element type, std::int64_t i) {
  const char* p = reinterpret_cast<const char*>(base);
  if (type == Element::f32) return load_f32(p + i * 4);
  const std::uint32_t u = load_u16(p + i * 2);
  return type == Element::f16 ? unpack_f16(u).x : unpack_bf16(u).x;
}

__device__ __forceinline__ void store_element(std::uint64_t base, Element type, std::int64_t i, float v) {
  if (type == Element::f32) {
    reinterpret_cast<float*>(base)[i] = v;
  } else {
    const std::uint32_t u = type == Element::f16 ? pack_f16(v, 0.f) : pack_bf16(v, 0.f);
    reinterpret_cast<std::uint16_t*>(base)[i] = static_cast<std::uint16_t>(u);
  }
}

template <class E = AnyEpilogue>
__device__ __forceinline__ void load8(float (&v)[8], std::uint64_t base, std::int64_t at, int count, bool vector) {
  const char* p = reinterpret_cast<const char*>(base) + at * 4;
  if (E::kWhole || (vector && count == 8)) {
    const uint4 a = load16(p), b = load16(p + 16);
    v[0] = __uint_as_float(a.x), v[1] = __uint_as_float(a.y), v[2] = __uint_as_float(a.z), v[3] = __uint_as_float(a.w);
    v[4] = __uint_as_float(b.x), v[5] = __uint_as_float(b.y), v[6] = __uint_as_float(b.z), v[7] = __uint_as_float(b.w);
  } else if constexpr (!E::kWhole) {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = i < count ? load_f32(p + i * 4) : 0.f;
  }
}

/// Bias and scale of eight columns, of which `count` exist.
struct Columns {
  float bias[8], scale[8];

  template <class E = AnyEpilogue>
  __device__ __forceinline__ void load(const EpilogueParams& e, int first, int count, int batch_part) {
    const int at = first + batch_part * e.column_batch;
    const bool vector = e.flags & kEpilogueColumnsVector;
#pragma unroll
    for (int i = 0; i < 8; i++) bias[i] = 0, scale[i] = e.alpha;
    if (e.bias) load8<E>(bias, e.bias, at, count, vector);
    if (e.scale) {
      load8<E>(scale, e.scale, at, count, vector);
#pragma unroll
      for (int i = 0; i < 8; i++) scale[i] *= e.alpha;
    }
  }
};

/// Eight elements as they lie in memory (two 16-byte words for float32).
struct Raw8 {
  std::uint32_t w[8];

  template <class E = AnyEpilogue>
  __device__ __forceinline__ void load(std::uint64_t base, Element type, std::int64_t at, int count, bool vector) {
    const char* p = reinterpret_cast<const char*>(base) + at * (type == Element::f32 ? 4 : 2);
    if (E::kWhole || (vector && count == 8)) {
      set(0, load16(p));
      if (type == Element::f32) set(4, load16(p + 16));
    } else if constexpr (!E::kWhole) {
#pragma unroll
      for (int i = 0; i < 8; i++) {
        if (type == Element::f32) {
          w[i] = i < count ? __float_as_uint(load_f32(p + i * 4)) : 0;
        } else {
          std::uint32_t h = i < count ? load_u16(p + i * 2) : 0;
          w[i >> 1] = i & 1 ? w[i >> 1] | h << 16 : h;
        }
      }
    }
  }

  __device__ __forceinline__ void set(int i, uint4 v) {
    w[i] = v.x;
    w[i + 1] = v.y;
    w[i + 2] = v.z;
    w[i + 3] = v.w;
  }

  __device__ __forceinline__ void add_to(float (&v)[8], Element type) const {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 f = type == Element::f32   ? make_float2(__uint_as_float(w[2 * i]), __uint_as_float(w[2 * i + 1]))
                 : type == Element::f16 ? unpack_f16(w[i])
                                        : unpack_bf16(w[i]);
      v[2 * i] += f.x;
      v[2 * i + 1] += f.y;
    }
  }
};

template <class E = AnyEpilogue>
__device__ __forceinline__ void store8(const float (&v)[8], std::uint64_t base, Element type, std::int64_t at,
                                       int count, bool vector) {
  std::uint32_t u[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    u[i] = type == Element::f16 ? pack_f16(v[2 * i], v[2 * i + 1]) : pack_bf16(v[2 * i], v[2 * i + 1]);
  }
  char* p = reinterpret_cast<char*>(base) + at * (type == Element::f32 ? 4 : 2);
  if (E::kWhole || (vector && count == 8)) {
    if (type == Element::f32) {
      reinterpret_cast<float4*>(p)[0] = make_float4(v[0], v[1], v[2], v[3]);
      reinterpret_cast<float4*>(p)[1] = make_float4(v[4], v[5], v[6], v[7]);
    } else {
      *reinterpret_cast<uint4*>(p) = make_uint4(u[0], u[1], u[2], u[3]);
    }
  } else if constexpr (!E::kWhole) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (i >= count) break;
      if (type == Element::f32) {
        reinterpret_cast<float*>(p)[i] = v[i];
      } else {
        reinterpret_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(u[i >> 1] >> (i & 1) * 16);
      }
    }
  }
}

/// Where batch index `batch` starts in the output and the residual.
struct EpilogueBatch {
  std::int64_t out, residual;

  __device__ __forceinline__ EpilogueBatch(const EpilogueParams& e, int part0, int part1)
      : out(part0 * e.out_batch[0] + part1 * e.out_batch[1]),
        residual(part0 * e.residual_batch[0] + part1 * e.residual_batch[1]) {}
};

/// The residual of columns [column, column + count) of a row; call it where the row exists.
template <class E = AnyEpilogue>
__device__ __forceinline__ void load_residual(Raw8& r, const EpilogueParams& e, const EpilogueBatch& batch, int row,
                                              int column, int count) {
  if (e.residual) {
    r.load<E>(e.residual, E::type(e.residual_type), batch.residual + row * e.residual_row + column, count,
              e.flags & kEpilogueResidualVector);
  }
}

/// Makes results of the sums v of eight columns of a row.
template <class E = AnyEpilogue>
__device__ __forceinline__ void apply8(float (&v)[8], const EpilogueParams& e, const Columns& columns,
                                       const Raw8& residual) {
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = fmaf(v[i], columns.scale[i], columns.bias[i]);
  const bool last = e.flags & kEpilogueResidualLast;
  if (e.residual && !last) residual.add_to(v, E::type(e.residual_type));
  activate<E>(v, e.activation, e.a, e.b);
  if (e.residual && last) residual.add_to(v, E::type(e.residual_type));
}

/// The same, and stores them.
__device__ __forceinline__ void finish8(float (&v)[8], const EpilogueParams& e, const EpilogueBatch& batch,
                                        const Columns& columns, const Raw8& residual, int row, int column, int count) {
  apply8(v, e, columns, residual);
  store8(v, e.out, e.out_type, batch.out + row * e.out_row + column, count, e.flags & kEpilogueOutVector);
}

/// One element: its parts of the epilogue are read before (`bias` and `scale` as Columns has them).
__device__ __forceinline__ void finish1(float sum, const EpilogueParams& e, const EpilogueBatch& batch, float bias,
                                        float scale, float residual, int row, int column) {
  const bool last = e.flags & kEpilogueResidualLast;
  float v[1] = {fmaf(sum, scale, bias) + (last ? 0.f : residual)};
  activate(v, e.activation, e.a, e.b);
  const float r = last ? v[0] + residual : v[0];
  store_element(e.out, e.out_type, batch.out + row * e.out_row + column, r);
}

}  // namespace infernode::cuda
