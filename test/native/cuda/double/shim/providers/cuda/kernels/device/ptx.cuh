#pragma once

#include <cmath>
#include <cstring>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

// In place of the header of this name, for kernels that compute without tensor cores: they run one after the other
// here.
namespace infernode::cuda {

#define INFERNODE_DYNAMIC_SHARED(name) alignas(128) static char name[96 * 1024]

inline void wait_for_previous() {}
inline void wait_and_let_next_start() {}
template <class P>
void bring_near(const P&) {}

// Clusters have one block here.
inline void clusters_meet() {}
inline void cluster_arrive() {}
inline void cluster_wait() {}
inline float load_from_block(const float* own, int) { return *own; }
inline void store_to_block(float* own, float x, int) { *own = x; }
inline void let_next_start() {}

inline float fast_reciprocal(float x) { return 1.0f / x; }
inline float fast_exp2(float x) { return std::exp2(x); }
inline std::uint32_t opaque(std::uint32_t v) { return v; }

template <class T>
T load_as(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}
inline uint4 load16(const void* p) { return load_as<uint4>(p); }
inline uint4 load16_if(const void* p, bool valid) { return valid ? load_as<uint4>(p) : uint4{}; }
inline std::uint32_t load4_if(const void* p, bool valid) { return valid ? load_as<std::uint32_t>(p) : 0; }
inline std::uint32_t load2_if(const void* p, bool valid) { return valid ? load_as<std::uint16_t>(p) : 0; }
inline float load_f32(const void* p) { return load_as<float>(p); }
inline std::uint16_t load_u16(const void* p) { return load_as<std::uint16_t>(p); }

inline void copy16(void* to, const void* from, int bytes) {
  std::memset(to, 0, 16);
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
inline void copies_commit() {}
template <int N>
void copies_wait() {}

/// Two 16-bit numbers in a word.
template <class T>
std::uint32_t word_of(float a, float b) {
  const T pair[2] = {T(a), T(b)};
  return load_as<std::uint32_t>(pair);
}
template <class T>
float2 floats_of(std::uint32_t word) {
  T pair[2];
  std::memcpy(pair, &word, sizeof(word));
  return {static_cast<float>(pair[0]), static_cast<float>(pair[1])};
}
inline std::uint32_t pack_f16(float a, float b) { return word_of<__half>(a, b); }
inline std::uint32_t pack_bf16(float a, float b) { return word_of<__nv_bfloat16>(a, b); }
inline float2 unpack_f16(std::uint32_t word) { return floats_of<__half>(word); }
inline float2 unpack_bf16(std::uint32_t word) { return floats_of<__nv_bfloat16>(word); }

}  // namespace infernode::cuda
