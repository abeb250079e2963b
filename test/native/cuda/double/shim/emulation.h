#pragma once
// CUDA C++ on the host: enough for kernels without instructions of their own. The threads of a block are fibers of one
// thread, which take turns at barriers and shuffles; blocks follow each other.

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static

struct float2 {
  float x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace infernode::cuda_double {

struct Index {
  unsigned x, y, z;
};

/// One block while it runs.
class Block {
 public:
  /// Memory of a thread's stack. Blocks that follow each other use the same.
  using Stack = std::unique_ptr<char[]>;
  static std::vector<Stack> stacks(std::size_t threads);
  Block(Index index, Index size, const std::function<void()>& kernel, std::span<const Stack> stacks);
  void run();
  static Block& current();
  Index index, size, thread{};
  /// The running fiber gives its value and gets that of another lane of its warp.
  std::uint32_t shuffle(std::uint32_t value, unsigned lane_mask);
  void barrier();

 private:
  struct Fiber {
    ucontext_t context{};
    Index thread{};
    bool done = false;
    unsigned phase = 0;
    std::uint32_t given[2] = {};
  };
  std::unique_ptr<Fiber> make_fiber(Index thread, const Stack& stack);
  static void enter();
  void yield();

  const std::function<void()>& kernel_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  ucontext_t scheduler_{};
  std::size_t running_ = 0, live_ = 0, waiting_ = 0, barriers_ = 0;
};

void run_grid(const unsigned grid[3], const unsigned block[3], const std::function<void()>& kernel);

}  // namespace infernode::cuda_double

#define blockIdx (::infernode::cuda_double::Block::current().index)
#define blockDim (::infernode::cuda_double::Block::current().size)
#define threadIdx (::infernode::cuda_double::Block::current().thread)

inline void __syncthreads() { infernode::cuda_double::Block::current().barrier(); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  static_assert(sizeof(T) == 4);
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, 4);
  bits = infernode::cuda_double::Block::current().shuffle(bits, static_cast<unsigned>(mask));
  __builtin_memcpy(&value, &bits, 4);
  return value;
}
inline std::size_t __cvta_generic_to_shared(const void* p) { return reinterpret_cast<std::size_t>(p); }
inline float __int_as_float(int bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
inline int __float_as_int(float x) {
  int bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(__float_as_int(x)); }
inline float __expf(float x) { return std::exp(x); }
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0f), 1.0f); }
inline float __fdividef(float a, float b) { return a / b; }
using std::max;
using std::min;
template <class T>
T __ldg(const T* p) {
  return *p;
}
inline long long __double_as_longlong(double x) {
  long long bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
inline int atomicAdd(int* at, int x) {
  const int old = *at;
  *at += x;
  return old;
}
inline int atomicExch(int* at, int x) {
  const int old = *at;
  *at = x;
  return old;
}
inline int atomicMax(int* at, int x) {
  const int old = *at;
  *at = std::max(old, x);
  return old;
}
inline void __syncwarp(unsigned = ~0u) { infernode::cuda_double::Block::current().shuffle(0, 0); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
using std::isinf;
