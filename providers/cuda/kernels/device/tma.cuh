#pragma once

#include "providers/cuda/kernels/device/ptx.cuh"
#include "providers/cuda/kernels/params/gemm.h"

// Hopper's bulk copies, the barriers that count their bytes, and clusters. Addresses are of shared memory.
namespace infernode::cuda {

__device__ __forceinline__ void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals));
}

__device__ __forceinline__ void barriers_initialised() {
  asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(std::uint32_t barrier, int phase) {
  asm volatile(
      "{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra AGAIN; DONE: }" ::
          "r"(barrier),
      "r"(phase)
      : "memory");
}

__device__ __forceinline__ void prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ __forceinline__ void copy_tile(std::uint32_t to, const TensorMap* map, int k, int row, int batch0,
                                          int batch1, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(to),
      "l"(map), "r"(k), "r"(row), "r"(batch0), "r"(batch1), "r"(barrier)
      : "memory");
}

/// Pixels of an image from (n, h, w) on, each moved by the offsets of a tap.
__device__ __forceinline__ void copy_pixels(std::uint32_t to, const TensorMap* map, int channel, int w, int h, int n,
                                            int offset_w, int offset_h, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5}], "
      "[%6], {%7, %8};" ::"r"(to),
      "l"(map), "r"(channel), "r"(w), "r"(h), "r"(n), "r"(barrier), "h"(static_cast<unsigned short>(offset_w)),
      "h"(static_cast<unsigned short>(offset_h))
      : "memory");
}

/// Writes of ordinary stores become visible to bulk copies and wgmma.
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// The address of the same place in another block of the cluster.
__device__ __forceinline__ std::uint32_t in_block(std::uint32_t address, int rank) {
  std::uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(address), "r"(rank));
  return r;
}

__device__ __forceinline__ void copy_to_block(std::uint32_t to, std::uint32_t from, int bytes, std::uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "r"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

}  // namespace infernode::cuda
