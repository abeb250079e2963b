#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

/// The shared memory that the launch asks for.
#define INFERNODE_DYNAMIC_SHARED(name) extern __shared__ __align__(128) char name[]

// Instructions that C++ has no name for. Loads of what earlier kernels wrote are volatile: the compiler may not move
// them above wait_for_previous().
namespace infernode::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// Waits until all memory of the kernels before is visible (programmatic launches).
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next kernel's blocks become resident.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// What kernels of simple arithmetic do once they know their places: they wait. Where their blocks are few, the next
/// kernel's blocks come meanwhile; many of both would pile up on some of the processors.
__device__ __forceinline__ void wait_and_let_next_start() {
  constexpr unsigned kFewBlocks = 128;
  const bool few = gridDim.x * gridDim.y * gridDim.z <= kFewBlocks;
  if (few) let_next_start();
  wait_for_previous();
  if (!few) let_next_start();
}

/// Brings a parameter struct, or a part of it, near: constant memory that a kernel first reads behind its wait is far.
template <class P>
__device__ __forceinline__ void bring_near(const P& p) {
  constexpr int kLine = 64, kLines = sizeof(P) / kLine;
  constexpr unsigned kUnlikely = 0x9e3779b9;
  const auto* words = reinterpret_cast<const std::uint32_t*>(&p);
  std::uint32_t all = words[sizeof(P) / 4 - 1];
#pragma unroll
  for (int i = 0; i < kLines; i++) all ^= words[i * (kLine / 4)];
  asm volatile("{ .reg .pred q; setp.eq.u32 q, %0, %1; @q nanosleep.u32 0; }" ::"r"(all), "n"(kUnlikely));
}

/// All threads of a cluster; what they wrote to shared memory is visible to all.
__device__ __forceinline__ void clusters_meet() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// The same in two parts, of which the first orders no writes: its plain form is a release and compiles to a fence of
/// the whole GPU.
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
}

/// The address of the same place in another block of the cluster.
__device__ __forceinline__ std::uint32_t in_cluster(std::uint32_t address, int rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
#endif
  return address;
}

/// The number at the same place of shared memory in another block of the cluster.
__device__ __forceinline__ float load_from_block(const float* own, int rank) {
  float r = *own;
#if __CUDA_ARCH__ >= 900
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(r) : "r"(in_cluster(shared_address(own), rank)) : "memory");
#endif
  return r;
}

/// Writes a number to the same place of shared memory in a block of the cluster.
__device__ __forceinline__ void store_to_block(float* own, float x, int rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(in_cluster(shared_address(own), rank)), "f"(x) : "memory");
#else
  *own = x;
#endif
}

/// From shared memory of this block, or `far` of another one of the cluster.
__device__ __forceinline__ float2 load_shared2(std::uint32_t address, bool far) {
  float2 r;
#if __CUDA_ARCH__ >= 900
  if (far) {
    asm volatile("ld.shared::cluster.v2.f32 {%0, %1}, [%2];" : "=f"(r.x), "=f"(r.y) : "r"(address) : "memory");
    return r;
  }
#endif
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(r.x), "=f"(r.y) : "r"(address) : "memory");
  return r;
}
__device__ __forceinline__ float load_shared(std::uint32_t address) {
  float r;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r) : "r"(address) : "memory");
  return r;
}
__device__ __forceinline__ float4 load_shared4(std::uint32_t address, bool far) {
  float4 r;
#if __CUDA_ARCH__ >= 900
  if (far) {
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
                 : "r"(address)
                 : "memory");
    return r;
  }
#endif
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w)
               : "r"(address)
               : "memory");
  return r;
}

__device__ __forceinline__ float fast_reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

__device__ __forceinline__ float fast_exp2(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// The same value, of which the compiler knows nothing.
__device__ __forceinline__ std::uint32_t opaque(std::uint32_t v) {
  asm volatile("" : "+r"(v));
  return v;
}

__device__ __forceinline__ uint4 load16(const void* p) {
  uint4 r;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(p)
               : "memory");
  return r;
}

/// For weights that are read once.
__device__ __forceinline__ uint4 load16_stream(const void* p) {
  uint4 r;
  asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(p)
               : "memory");
  return r;
}

/// Zeros where `valid` is not true, without a branch: several such loads are under way at once.
__device__ __forceinline__ uint4 load16_if(const void* p, bool valid) {
  uint4 r;
  asm volatile(
      "{ .reg .pred q; setp.ne.b32 q, %5, 0; mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0;"
      " @q ld.global.v4.u32 {%0,%1,%2,%3}, [%4]; }"
      : "=&r"(r.x), "=&r"(r.y), "=&r"(r.z), "=&r"(r.w)
      : "l"(p), "r"(static_cast<int>(valid))
      : "memory");
  return r;
}

__device__ __forceinline__ std::uint32_t load4_if(const void* p, bool valid) {
  std::uint32_t r;
  asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; mov.u32 %0, 0; @q ld.global.cg.u32 %0, [%1]; }"
               : "=&r"(r)
               : "l"(p), "r"(static_cast<int>(valid))
               : "memory");
  return r;
}

__device__ __forceinline__ std::uint32_t load2_if(const void* p, bool valid) {
  std::uint16_t r;
  asm volatile("{ .reg .pred q; setp.ne.b32 q, %2, 0; mov.u16 %0, 0; @q ld.global.cg.u16 %0, [%1]; }"
               : "=&h"(r)
               : "l"(p), "r"(static_cast<int>(valid))
               : "memory");
  return r;
}

__device__ __forceinline__ float load_f32(const void* p) {
  float r;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(r) : "l"(p) : "memory");
  return r;
}

__device__ __forceinline__ std::uint16_t load_u16(const void* p) {
  std::uint16_t r;
  asm volatile("ld.global.cg.u16 %0, [%1];" : "=h"(r) : "l"(p) : "memory");
  return r;
}

/// 16 bytes into shared memory, of which the first `bytes` (0 to 16) are read and the rest are zero.
__device__ __forceinline__ void copy16(std::uint32_t to, const void* from, int bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  uint4 v = make_uint4(0, 0, 0, 0);
  if (bytes == 16) {
    v = load16(from);
  } else if (bytes > 0) {
    std::uint32_t w[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < 8; i++) {
      if (i * 2 < bytes) w[i >> 1] |= std::uint32_t{load_u16(static_cast<const char*>(from) + i * 2)} << (i & 1) * 16;
    }
    v = make_uint4(w[0], w[1], w[2], w[3]);
  }
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
#endif
}

__device__ __forceinline__ void copy16(void* to, const void* from, int bytes) {
  copy16(shared_address(to), from, bytes);
}

__device__ __forceinline__ void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most N groups of copies are under way.
template <int N>
__device__ __forceinline__ void copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

__device__ __forceinline__ void load_matrix4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void store_matrix4(std::uint32_t address, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                              std::uint32_t d) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(a), "r"(b), "r"(c),
               "r"(d)
               : "memory");
#endif
}

__device__ __forceinline__ void store_shared16(std::uint32_t address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ __forceinline__ uint4 load_shared16(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ __forceinline__ void load_matrix4_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// Where 16-byte chunk `chunk` (0 to 7) of a 128-byte row lies, so that eight rows of a column fall into eight banks.
/// It is the layout that TMA's 128-byte swizzle writes.
__device__ __forceinline__ std::uint32_t swizzled(int row, int chunk) { return row * 128 + ((chunk ^ (row & 7)) << 4); }

__device__ __forceinline__ std::uint32_t bits(__half2 v) { return *reinterpret_cast<std::uint32_t*>(&v); }
__device__ __forceinline__ std::uint32_t bits(__nv_bfloat162 v) { return *reinterpret_cast<std::uint32_t*>(&v); }
__device__ __forceinline__ std::uint32_t pack_f16(float a, float b) { return bits(__floats2half2_rn(a, b)); }
__device__ __forceinline__ std::uint32_t pack_bf16(float a, float b) { return bits(__floats2bfloat162_rn(a, b)); }
__device__ __forceinline__ float2 unpack_f16(std::uint32_t v) {
  return __half22float2(*reinterpret_cast<__half2*>(&v));
}
__device__ __forceinline__ float2 unpack_bf16(std::uint32_t v) {
  return make_float2(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
}

}  // namespace infernode::cuda
