#pragma once

#include "providers/cuda/kernels/device/finish_sums.cuh"
#include "providers/cuda/kernels/device/split_wgmma.cuh"

// One block, one tile. Two warps of its own fetch: one the weights, before the wait for the kernel before and as far
// ahead as stages reach, one the rest; or a thread of those that multiply does. BM / 64 warpgroups share the rows and
// KW the K of every stage; blocks of a cluster share K.
namespace infernode::cuda {

/// Where a warp reads: the current stage and the phase of its barrier.
struct Ring {
  const int stages;
  const std::uint32_t empty;
  std::uint32_t full;
  int stage = 0, phase = 0;

  __device__ __forceinline__ void wait() const { barrier_wait(full + stage * 8, phase); }
  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, phase ^= 1;
  }
  /// This warp has read a stage.
  __device__ __forceinline__ void release(int of) const {
    if ((threadIdx.x & 31) == 0) barrier_arrive(empty + of * 8);
  }
};

/// Calls load(step, stage) for each step of K as soon as its stage is empty.
template <class F>
__device__ __forceinline__ void fill_stages(const GemmTmaParams& p, std::uint32_t empty, int count, const F& load) {
  int stage = 0, phase = 1;  // a barrier's phase before its first has ended
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    if (i >= p.stages) barrier_wait(empty + stage * 8, phase);
    load(i, stage);
    if (++stage == p.stages) stage = 0, phase ^= 1;
  }
}

/// Both operands, by the first thread of those that multiply: all that stages hold, then a step for each that is done.
template <class C>
struct OwnFetch {
  C& copies;
  const GemmTmaParams& p;
  const std::uint32_t empty;
  int next = 0, stage = 0, phase = 0;

  __device__ __forceinline__ void begin() {
    if (threadIdx.x == 0) {
      next = min(p.stages, copies.at.count);
      copies.begin();
      if (!p.b_constant) wait_for_previous();
#pragma unroll 1
      for (int i = 0; i < next; i++) copies.load_b(i, i);
      copies.find_pixel();
      wait_for_previous();
#pragma unroll 1
      for (int i = 0; i < next; i++) copies.load_a(i);
    }
    __syncwarp();
  }
  /// A step is done, and its stage soon empty.
  __device__ __forceinline__ void step_done() {
    if (threadIdx.x == 0 && next < copies.at.count) {
      barrier_wait(empty + stage * 8, phase);
      copies.load_b(next++, stage);
      copies.load_a(stage);
      if (++stage == p.stages) stage = 0, phase ^= 1;
    }
    __syncwarp();
  }
};

/// Others fetch.
struct NoFetch {
  template <class C>
  __device__ __forceinline__ NoFetch(const C&, const GemmTmaParams&, std::uint32_t) {}
  __device__ __forceinline__ void step_done() const {}
};

/// Begins the products of one step; a and b are operand words.
template <TensorKind kind, int BN, int KW, bool add>
__device__ __forceinline__ void multiply(float (&sums)[BN / 2], std::uint32_t a, std::uint32_t b) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4 / KW; k++) {
    Wgmma<kind, BN>::product(sums, wgmma_descriptor(a + k * 2), wgmma_descriptor(b + k * 2), add || k > 0);
  }
  wgmma_commit();
}

/// Operands in shared memory; a and b are the operands of the first stage, `part` the warpgroup's share of K. Operands
/// and barriers stay in registers that grow by constants: left to itself the compiler computes them anew in every step.
template <TensorKind kind, class C, int BN, int KW, class F>
__device__ __forceinline__ void run_plain(float (&sums)[BN / 2], Ring ring, int count, std::uint32_t a, std::uint32_t b,
                                          int part, F& fetch) {
  a = wgmma_operand(a) + part * (8 / KW);
  b = wgmma_operand(b) + part * (8 / KW);
  std::uint32_t full = ring.full;
  asm volatile("" : "+r"(a), "+r"(b), "+r"(full));
  barrier_wait(full, 0);
  multiply<kind, BN, KW, false>(sums, a, b);
  if (count <= ring.stages) {
#pragma unroll 1
    for (int i = 1; i < count; i++) {
      a += C::kA / 16, b += C::kB / 16, full += 8;
      barrier_wait(full, 0);
      multiply<kind, BN, KW, true>(sums, a, b);
    }
  } else {
    const std::uint32_t a0 = a, b0 = b, full0 = full, end = full + ring.stages * 8;
    const std::uint32_t to_empty = ring.empty - ring.full;
    int phase = 0;
#pragma unroll 1
    for (int i = 1; i < count; i++) {
      const std::uint32_t before = full;
      a += C::kA / 16, b += C::kB / 16, full += 8;
      if (full == end) a = a0, b = b0, full = full0, phase ^= 1;
      barrier_wait(full, phase);
      multiply<kind, BN, KW, true>(sums, a, b);
      wgmma_wait<1>();
      if ((threadIdx.x & 31) == 0) barrier_arrive(before + to_empty);
      fetch.step_done();
    }
  }
  wgmma_wait<0>();
  wgmma_settle(sums);
}

/// float32 A: `a` is the address of the warp's rows. Every step is summed apart, so that the tensor cores' rounding
/// does not grow with K, while the next step's A is split.
template <int pieces, class C, int BM, int BN, int KW>
__device__ __forceinline__ void run_split(float (&sums)[BN / 2], Ring ring, int count, std::uint32_t a, std::uint32_t b,
                                          int part) {
  const int lane = threadIdx.x & 31;
  b = wgmma_operand(b);
  asm volatile("" : "+r"(a), "+r"(b), "+r"(ring.full));
  SplitStep<pieces, BM, BN, KW> now;
  ring.wait();
  now.load(a, part, lane);
#pragma unroll
  for (int j = 0; j < BN / 2; j++) sums[j] = 0;
#pragma unroll 1
  for (int i = 0; i < count; i++) {
    float step[BN / 2];
    const int stage = ring.stage;
    now.begin(step, b + stage * (C::kB / 16), part);
    ring.next();
    SplitStep<pieces, BM, BN, KW> next;
    if (i + 1 < count) {
      ring.wait();
      next.load(a + ring.stage * C::kA, part, lane);
    }
    wgmma_wait<0>();
    wgmma_settle(step);
    now.release();
    ring.release(stage);
#pragma unroll
    for (int j = 0; j < BN / 2; j++) sums[j] += step[j];
    now = next;
  }
}

/// Barriers of a block: full[i], empty[i], then that of the exchange.
inline constexpr int kMostStages = 16;

/// By a warp, each of whose lanes has a stage.
template <int kConsumers>
__device__ __forceinline__ void init_barriers(const GemmTmaParams& p, std::uint32_t full, int exchange_bytes) {
  static_assert(kMostStages < 32);
  const int lane = threadIdx.x & 31;
  const std::uint32_t exchange = full + 2 * kMostStages * 8;
  if (lane < p.stages) {
    barrier_init(full + lane * 8, 1);
    barrier_init(full + (kMostStages + lane) * 8, kConsumers / 32);
  }
  if (lane == kMostStages) {
    prefetch_map(&p.a);
    prefetch_map(&p.b);
    barrier_init(exchange, 1);
  }
  barriers_initialised();
  if (lane == kMostStages && exchange_bytes > 0) barrier_expect(exchange, exchange_bytes);
}

/// The warps behind the consumers.
template <class C>
__device__ __forceinline__ void produce(C& copies, const GemmTmaParams& p, std::uint32_t empty, int warp) {
  if ((threadIdx.x & 31) == 0) {
    copies.begin();
    if (warp == 0) {
      if (!p.b_constant) wait_for_previous();
      fill_stages(p, empty, copies.at.count, [&](int step, int stage) { copies.load_b(step, stage); });
    } else {
      copies.find_pixel();
      wait_for_previous();
      fill_stages(p, empty, copies.at.count, [&](int, int stage) { copies.load_a(stage); });
    }
  }
  __syncwarp();
}

/// The end of tiles that ends_in_registers names: whole K, and outputs of whole words.
template <Element type, int BM, int BN>
__device__ __forceinline__ void finish_in_registers(const GemmTmaParams& p, float (&sums)[BN / 2], std::uint32_t base,
                                                    const Place& at, const TileColumns<BN>& columns) {
  using End = RowsEnd<type, BN>;
  const int warp = threadIdx.x >> 5;
  const End end{p, at, base + warp * End::kBytes, warp * 16};
  end.bring_residual();
  end.finish(sums, columns);
}

/// E: what is known of the epilogue. `late`: bias and residual are read after the products, to keep registers for two
/// blocks an SM.
template <class E, TensorKind kind, int pieces, int BM, int BN, int KW, bool late>
__device__ __forceinline__ void gemm_block(const GemmTmaParams& p) {
  using C = Copies<Step<kind, pieces>, BM, BN, pieces>;
  using H = Handout<BM, BN, KW>;
  constexpr int kConsumers = H::kThreads;
  constexpr bool kInRegisters = E::kWhole && ends_in_registers(BM, BN);
  INFERNODE_DYNAMIC_SHARED(raw);
  __shared__ __align__(8) std::uint64_t barriers[2 * kMostStages + 1];
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5, blocks = 1 << p.log_split;
  const Place at(p, BM, BN);
  const std::uint32_t base = (shared_address(raw) + 1023) & ~1023u, full = shared_address(barriers);
  const std::uint32_t empty = full + kMostStages * 8, exchanged = empty + kMostStages * 8;
  float* staged = reinterpret_cast<float*>(raw + (base - shared_address(raw)));
  const float* received = reinterpret_cast<const float*>(reinterpret_cast<const char*>(staged) + p.receive_offset);
  C copies{p, at, base, base + p.stages * C::kA, full};
  let_next_start();
  constexpr bool kOwnFetch = producers(BM, BN) == 0;
  if (warp == (kOwnFetch ? 0 : kConsumers / 32)) {
    init_barriers<kConsumers>(p, full, (blocks - 1) * (BM >> p.log_split) * H::kPitch * 4);
  }
  __syncthreads();
  if (blocks > 1) cluster_arrive();
  if (warp >= kConsumers / 32) {
    produce(copies, p, empty, warp - kConsumers / 32);
    if (blocks > 1) cluster_wait(), cluster_arrive(), cluster_wait();
    return;
  }
  std::conditional_t<kOwnFetch, OwnFetch<C>, NoFetch> fetch{copies, p, empty};
  if constexpr (kOwnFetch) fetch.begin();
  bring_near(p.e);
  __shared__ TileColumns<kInRegisters ? BN : 1> tile_columns;
  if constexpr (kInRegisters) {
    if (p.e.residual || !(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
    tile_columns.load(p.e, at.n0, p.n, at.batch0, kConsumers);
  }
  const H mine(thread);
  const int column = at.n0 + mine.column, count = min(8, p.n - column);
  const int row = at.m0 + (at.part * BM >> p.log_split) + mine.row;
  Columns columns;
  Raw8 residual[2];
  const auto read_epilogue = [&] {
    if (late || !(p.e.flags & kEpilogueColumnsConstant)) wait_for_previous();
    columns.template load<E>(p.e, column, count, at.batch0);
    if (p.e.residual) wait_for_previous();
    const EpilogueBatch batch(p.e, at.batch0, at.batch1);
#pragma unroll
    for (int i = 0; i < (BM > H::kRows ? 2 : 1); i++) {
      const int r = i * H::kRows;
      if (mine.active() && mine.row + r < BM >> p.log_split && row + r < p.m && count > 0) {
        load_residual<E>(residual[i], p.e, batch, row + r, column, count);
      }
    }
  };
  if constexpr (!late && !kInRegisters) read_epilogue();
  float sums[BN / 2];
  const int group = warp >> 2, rows = group % (BM / 64), part = group / (BM / 64);
  const Ring ring{p.stages, empty, full};
  if constexpr (pieces == 1) {
    run_plain<kind, C, BN, KW>(sums, ring, at.count, base + rows * 8192, copies.b, part, fetch);
  } else {
    run_split<pieces, C, BM, BN, KW>(sums, ring, at.count, base + rows * 8192 + (warp & 3) * 2048, copies.b, part);
  }
  consumers_meet<kConsumers>();
  if constexpr (kInRegisters) return finish_in_registers<E::kType, BM, BN>(p, sums, base, at, tile_columns);
  stage_sums<BN>(sums, staged + (part * BM + rows * 64 + (warp & 3) * 16) * H::kPitch, H::kPitch, lane);
  if constexpr (late) read_epilogue();
  consumers_meet<kConsumers>();
  if (blocks > 1) exchange<BM, BN, KW>(p, staged, received, exchanged, at.part);
  finish_tile<E, pieces, BM, BN, KW>(p, staged, received, at, columns, residual);
  if (blocks > 1) cluster_wait();
}

}  // namespace infernode::cuda

/// gemm_block_<name>_<rows>x<columns>x<warpgroups that share K>, with `_whole` behind it those of WholeEpilogue;
/// `BLOCKS` of them are to fit an SM. TYPE: of the outputs of those.
#define GEMM_BLOCK_OF(SUFFIX, EPILOGUE, NAME, KIND, PIECES, BM, BN, KW, LATE, BLOCKS)                            \
  extern "C" __global__ void __launch_bounds__(BM / 64 * KW * 128 + infernode::cuda::producers(BM, BN), BLOCKS)  \
      gemm_block_##NAME##_##BM##x##BN##x##KW##SUFFIX(const __grid_constant__ infernode::cuda::GemmTmaParams p) { \
    using namespace infernode::cuda;                                                                             \
    gemm_block<EPILOGUE, TensorKind::KIND, PIECES, BM, BN, KW, LATE>(p);                                         \
  }
#define GEMM_BLOCK_IN(TYPE, NAME, KIND, PIECES, BM, BN, KW, LATE, BLOCKS)    \
  GEMM_BLOCK_OF(, AnyEpilogue, NAME, KIND, PIECES, BM, BN, KW, LATE, BLOCKS) \
  GEMM_BLOCK_OF(_whole, WholeEpilogue<Element::TYPE>, NAME, KIND, PIECES, BM, BN, KW, LATE, BLOCKS)
#define GEMM_BLOCK(TYPE, NAME, KIND, PIECES, BM, BN, KW) GEMM_BLOCK_IN(TYPE, NAME, KIND, PIECES, BM, BN, KW, false, 1)

/// The tiles of the 16-bit types.
#define GEMM_BLOCK_KERNELS(KIND)                           \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 64, 32, 2)               \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 64, 48, 2)               \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 64, 64, 1)               \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 64, 64, 2)               \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 64, 96, 2)               \
  GEMM_BLOCK(KIND, KIND, KIND, 1, 128, 64, 1)              \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 128, 96, 1, true, 2)  \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 128, 128, 1, true, 2) \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 128, 160, 1, true, 2) \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 128, 192, 1, true, 1) \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 128, 256, 1, true, 1) \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 192, 96, 1, true, 1)  \
  GEMM_BLOCK_IN(KIND, KIND, KIND, 1, 192, 128, 1, true, 1)
