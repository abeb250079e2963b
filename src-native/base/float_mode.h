#pragma once

#include <cstdint>

namespace infernode {

/// The calling thread's floating-point control bits (MXCSR or FPCR) without the sticky exception flags.
/// 0 on targets without such a register.
uint64_t float_mode() noexcept;
void set_float_mode(uint64_t mode) noexcept;
/// `mode` with denormal inputs and results flushed to zero, rounding to nearest and exceptions masked.
uint64_t flushing_float_mode(uint64_t mode) noexcept;
/// `mode` with denormal numbers as they are.
uint64_t keeping_float_mode(uint64_t mode) noexcept;

/// Sets the calling thread's mode for a scope and restores it, whatever ran before in that thread.
class FloatModeScope {
 public:
  explicit FloatModeScope(bool flush_denormals) noexcept : saved_(float_mode()) {
    if (flush_denormals) set_float_mode(flushing_float_mode(saved_));
  }
  ~FloatModeScope() { set_float_mode(saved_); }
  FloatModeScope(const FloatModeScope&) = delete;
  FloatModeScope& operator=(const FloatModeScope&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace infernode
