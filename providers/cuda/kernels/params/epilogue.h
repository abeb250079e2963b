#pragma once

#include <cstdint>

// Plain structs that planners fill and kernels read: no CUDA header, the same layout on both sides.
namespace infernode::cuda {

/// Element types in device memory.
enum class Element : std::uint32_t { f16, bf16, f32 };

constexpr std::uint32_t element_size(Element type) { return type == Element::f32 ? 4 : 2; }

enum class Activation : std::uint32_t {
  none,
  relu,
  gelu,       ///< x/2 (1 + erf(x/sqrt 2))
  gelu_tanh,  ///< the tanh form
  silu,
  sigmoid,
  tanh,
  hard_swish,
  hard_sigmoid,  ///< clamp(a x + b, 0, 1)
  leaky_relu,    ///< a x below 0
  clip,          ///< clamp(x, a, b)
  elu,           ///< a (exp x - 1) below 0
};

inline constexpr Activation kLastCommonActivation = Activation::sigmoid;

/// out = act(alpha scale[n] sum + bias[n] + residual), or the residual added after the activation.
/// Batch index i has the parts i % inner and i / inner, each with a stride of its own.
struct EpilogueParams {
  std::uint64_t out, residual, bias, scale;  ///< device addresses, 0 where absent; bias and scale are float32
  std::uint32_t flags;                       ///< of kEpilogue*
  float alpha;
  std::int32_t column_batch;  ///< elements of bias and scale between batch parts 0 (groups of a convolution)
  Activation activation;
  Element out_type, residual_type;
  float a, b;
  std::int64_t out_row, residual_row;  ///< elements between rows
  std::int64_t out_batch[2], residual_batch[2];
};

inline constexpr std::uint32_t kEpilogueOutVector = 1;        ///< rows of out allow 16-byte stores
inline constexpr std::uint32_t kEpilogueResidualVector = 2;   ///< rows of the residual allow 16-byte loads
inline constexpr std::uint32_t kEpilogueResidualLast = 4;     ///< the residual is added after the activation
inline constexpr std::uint32_t kEpilogueColumnsConstant = 8;  ///< bias and scale are constants: read before the wait
inline constexpr std::uint32_t kEpilogueColumnsVector = 16;   ///< eight columns of bias and scale allow 16-byte loads

}  // namespace infernode::cuda
