#include "base/float_mode.h"

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#elif defined(_M_ARM64)
#include <intrin.h>
#endif

namespace infernode {

#if defined(__x86_64__) || defined(_M_X64)

uint64_t float_mode() noexcept { return _mm_getcsr() & ~0x3fu; }
void set_float_mode(uint64_t mode) noexcept { _mm_setcsr(static_cast<unsigned>(mode) & 0xffffu); }
uint64_t flushing_float_mode(uint64_t) noexcept {
  // MXCSR: flush to zero (15), denormals are zero (6), all exceptions masked (7-12), round to nearest.
  return 0x8000u | 0x0040u | 0x1f80u;
}
uint64_t keeping_float_mode(uint64_t mode) noexcept { return mode & ~uint64_t{0x8000u | 0x0040u}; }

#elif defined(__aarch64__) || defined(_M_ARM64)

uint64_t float_mode() noexcept {
#if defined(_M_ARM64)
  return static_cast<uint64_t>(_ReadStatusReg(ARM64_FPCR));
#else
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#endif
}
void set_float_mode(uint64_t mode) noexcept {
#if defined(_M_ARM64)
  _WriteStatusReg(ARM64_FPCR, static_cast<__int64>(mode));
#else
  __asm__ volatile("msr fpcr, %0" ::"r"(mode) : "memory");
#endif
}
uint64_t flushing_float_mode(uint64_t) noexcept {
  // FPCR: FZ (24) and FZ16 off, traps off, round to nearest. Half precision keeps its denormals: they are ordinary
  // values there.
  return uint64_t{1} << 24;
}
uint64_t keeping_float_mode(uint64_t mode) noexcept { return mode & ~(uint64_t{1} << 24); }

#else

uint64_t float_mode() noexcept { return 0; }
void set_float_mode(uint64_t) noexcept {}
uint64_t flushing_float_mode(uint64_t mode) noexcept { return mode; }
uint64_t keeping_float_mode(uint64_t mode) noexcept { return mode; }

#endif

}  // namespace infernode
