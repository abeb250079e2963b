#pragma once

#include <cstdint>

// wgmma: the product of a warpgroup, m64 by N, one 32-byte step of K; sums in float32, operands in shared memory under
// the 128-byte swizzle (A also from registers).
namespace infernode::cuda {

/// The low word of the descriptor of an operand whose rows of 128 bytes begin at `address`; 2 more a step of K.
__device__ __forceinline__ std::uint32_t wgmma_operand(std::uint32_t address) {
  return (address & 0x3ffff) >> 4 | 1 << 16;
}

/// The same where rows lie along K: boxes of 64 elements of N begin `box` bytes after each other.
__device__ __forceinline__ std::uint32_t wgmma_values(std::uint32_t address, int box) {
  return (address & 0x3ffff) >> 4 | box >> 4 << 16;
}

/// The whole descriptor: 128-byte swizzle, 1024 bytes between groups of eight rows.
__device__ __forceinline__ std::uint64_t wgmma_descriptor(std::uint32_t low) { return 0x40000040ull << 32 | low; }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most N groups of products are under way.
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

/// Sums of a finished group: the compiler may not move reads of them above wgmma_wait.
template <int N>
__device__ __forceinline__ void wgmma_settle(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}

/// Registers that a thread has from here on, fewer or more than before: by a whole warpgroup.
template <int N>
__device__ __forceinline__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

enum class TensorKind { f16, bf16, tf32 };

template <TensorKind kind, int N>
struct Wgmma;

// clang-format off
#define REGS0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define REGS8 "%8, %9, %10, %11, %12, %13, %14, %15"
#define REGS16 "%16, %17, %18, %19, %20, %21, %22, %23"
#define REGS24 "%24, %25, %26, %27, %28, %29, %30, %31"
#define REGS32 "%32, %33, %34, %35, %36, %37, %38, %39"
#define REGS40 "%40, %41, %42, %43, %44, %45, %46, %47"
#define REGS48 "%48, %49, %50, %51, %52, %53, %54, %55"
#define REGS56 "%56, %57, %58, %59, %60, %61, %62, %63"
#define REGS64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define REGS72 "%72, %73, %74, %75, %76, %77, %78, %79"
#define REGS80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define REGS88 "%88, %89, %90, %91, %92, %93, %94, %95"
#define REGS96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define REGS104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define REGS112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define REGS120 "%120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS0 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define SUMS8 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define SUMS16 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define SUMS24 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define SUMS32 "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define SUMS40 "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define SUMS48 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define SUMS56 "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define SUMS64 "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define SUMS72 "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define SUMS80 "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define SUMS88 "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define SUMS96 "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define SUMS104 "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define SUMS112 "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define SUMS120 "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
#define REGS_N32 REGS0 ", " REGS8
#define SUMS_N32 SUMS0, SUMS8
#define REGS_N48 REGS_N32 ", " REGS16
#define SUMS_N48 SUMS_N32, SUMS16
#define REGS_N64 REGS_N48 ", " REGS24
#define SUMS_N64 SUMS_N48, SUMS24
#define REGS_N96 REGS_N64 ", " REGS32 ", " REGS40
#define SUMS_N96 SUMS_N64, SUMS32, SUMS40
#define REGS_N128 REGS_N96 ", " REGS48 ", " REGS56
#define SUMS_N128 SUMS_N96, SUMS48, SUMS56
#define REGS_N160 REGS_N128 ", " REGS64 ", " REGS72
#define SUMS_N160 SUMS_N128, SUMS64, SUMS72
#define REGS_N192 REGS_N160 ", " REGS80 ", " REGS88
#define SUMS_N192 SUMS_N160, SUMS80, SUMS88
#define REGS_N256 REGS_N192 ", " REGS96 ", " REGS104 ", " REGS112 ", " REGS120
#define SUMS_N256 SUMS_N192, SUMS96, SUMS104, SUMS112, SUMS120
// The numbers are those of the operands after the sums: A's descriptor, B's, whether to add.
#define WGMMA(KIND, N, SHAPE, TYPES, TAIL, A, B, P)                                                                         \
  template <> struct Wgmma<TensorKind::KIND, N> {                                                                           \
    static __device__ __forceinline__ void product(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, int add) {          \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N SHAPE ".f32" TYPES     \
                   " {" REGS_N##N "}, %" #A ", %" #B ", p, 1, 1" TAIL "; }"                                                 \
                   : SUMS_N##N : "l"(a), "l"(b), "r"(add));                                                                 \
    }                                                                                                                       \
  };
#define WGMMA_N(N, A, B, P)                             \
  WGMMA(f16, N, "k16", ".f16.f16", ", 0, 0", A, B, P)   \
  WGMMA(bf16, N, "k16", ".bf16.bf16", ", 0, 0", A, B, P) \
  WGMMA(tf32, N, "k8", ".tf32.tf32", "", A, B, P)
WGMMA_N(32, 16, 17, 18)
WGMMA_N(48, 24, 25, 26)
WGMMA_N(64, 32, 33, 34)
WGMMA_N(96, 48, 49, 50)
WGMMA_N(128, 64, 65, 66)
WGMMA_N(160, 80, 81, 82)
WGMMA_N(192, 96, 97, 98)
WGMMA_N(256, 128, 129, 130)

/// bfloat16 with A in registers: the layout of mma.sync's m16n8k16 A, 16 rows a warp.
template <int N> struct WgmmaFromRegisters;
#define WGMMA_REGISTERS(N, A0, A1, A2, A3, B, P)                                                                            \
  template <> struct WgmmaFromRegisters<N> {                                                                                \
    static __device__ __forceinline__ void product(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b, int add) { \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {"  \
                   REGS_N##N "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1, 0; }"                          \
                   : SUMS_N##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                             \
    }                                                                                                                       \
  };
WGMMA_REGISTERS(32, 16, 17, 18, 19, 20, 21)
WGMMA_REGISTERS(64, 32, 33, 34, 35, 36, 37)
WGMMA_REGISTERS(96, 48, 49, 50, 51, 52, 53)
WGMMA_REGISTERS(128, 64, 65, 66, 67, 68, 69)

/// A in registers as above, B of 16 rows along K whose N elements lie behind each other (boxes of 64, `wgmma_values`).
template <TensorKind kind, int N> struct WgmmaValues;
#define WGMMA_VALUES(KIND, N, A0, A1, A2, A3, B, P)                                                                         \
  template <> struct WgmmaValues<TensorKind::KIND, N> {                                                                     \
    static __device__ __forceinline__ void product(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b, int add) { \
      asm volatile("{ .reg .pred p; setp.ne.b32 p, %" #P ", 0; wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." #KIND "." #KIND " {" \
                   REGS_N##N "}, {%" #A0 ", %" #A1 ", %" #A2 ", %" #A3 "}, %" #B ", p, 1, 1, 1; }"                          \
                   : SUMS_N##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                             \
    }                                                                                                                       \
  };
WGMMA_VALUES(f16, 64, 32, 33, 34, 35, 36, 37)
WGMMA_VALUES(f16, 128, 64, 65, 66, 67, 68, 69)
WGMMA_VALUES(bf16, 64, 32, 33, 34, 35, 36, 37)
WGMMA_VALUES(bf16, 128, 64, 65, 66, 67, 68, 69)
// clang-format on

#undef REGS0
#undef SUMS0
#undef REGS8
#undef SUMS8
#undef REGS16
#undef SUMS16
#undef REGS24
#undef SUMS24
#undef REGS32
#undef SUMS32
#undef REGS40
#undef SUMS40
#undef REGS48
#undef SUMS48
#undef REGS56
#undef SUMS56
#undef REGS64
#undef SUMS64
#undef REGS72
#undef SUMS72
#undef REGS80
#undef SUMS80
#undef REGS88
#undef SUMS88
#undef REGS96
#undef SUMS96
#undef REGS104
#undef SUMS104
#undef REGS112
#undef SUMS112
#undef REGS120
#undef SUMS120
#undef REGS_N32
#undef SUMS_N32
#undef REGS_N48
#undef SUMS_N48
#undef REGS_N64
#undef SUMS_N64
#undef REGS_N96
#undef SUMS_N96
#undef REGS_N128
#undef SUMS_N128
#undef REGS_N160
#undef SUMS_N160
#undef REGS_N192
#undef SUMS_N192
#undef REGS_N256
#undef SUMS_N256
#undef WGMMA
#undef WGMMA_N
#undef WGMMA_REGISTERS
#undef WGMMA_VALUES

}  // namespace infernode::cuda
