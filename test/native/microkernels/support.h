#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#if defined(_WIN32)
#include <memory>
#else
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "base/arm_rung.h"
#include "base/cpu_features.h"
#include "base/half.h"
#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"

// What the tests of microkernels share: every target that the CPU has, arrays that end at an unreadable page, numbers.
namespace infernode::microkernels::test {

// The targets that tests run: those up to INFERNODE_CPU's, or with INFERNODE_TEST_TARGET=avx512 that one alone.
inline bool is_wanted(CpuRung rung) {
  static const CpuRung highest = cpu_rung();
  static const char* const alone = std::getenv("INFERNODE_TEST_TARGET");
  return alone == nullptr || *alone == '\0' ? rung <= highest : rung == cpu_rung_from(alone, detect_cpu_rung());
}

// Calls fn(rung) for every target of this architecture that is wanted; one that the CPU lacks is reported by name.
template <typename Fn>
void for_each_target(Fn fn) {
#if defined(__aarch64__) || defined(_M_ARM64)
  const CpuRung rungs[] = {ArmRung::kNeon, ArmRung::kDotprod, ArmRung::kI8mm, ArmRung::kBf16};
#else
  const CpuRung rungs[] = {CpuRung::Baseline, CpuRung::Avx2, CpuRung::Avx512,
                           CpuRung::Vnni,     CpuRung::Bf16, CpuRung::Amx};
#endif
  const CpuRung best = detect_cpu_rung();
  for (const CpuRung rung : rungs) {
    if (rung > best) {
      MESSAGE("not run: this CPU lacks ", std::string(to_string(rung)));
      continue;
    }
    if (!is_wanted(rung)) continue;
    const std::string target = to_string(rung);
    INFO("target ", target);
    fn(rung);
  }
}

// Calls fn(CpuRung::Bf16), whose tables of medium precision round operands to bfloat16, where the CPU can do that.
template <typename Fn>
void with_bfloat16([[maybe_unused]] Fn fn) {
#if defined(__x86_64__) || defined(_M_X64)
  if (detect_cpu_rung() >= CpuRung::Bf16) return is_wanted(CpuRung::Bf16) ? fn(CpuRung::Bf16) : void();
#endif
  MESSAGE("not run: this CPU does not multiply bfloat16 by vectors");
}

// Calls fn(rung) for every target of x86-64 that keeps blocks and powers as bfloat16 at medium precision.
template <typename Fn>
void for_each_bfloat16_target(Fn fn) {
  for_each_target([&](CpuRung rung) {
    if (rung == CpuRung::Bf16 || rung == CpuRung::Amx) fn(rung);
  });
}

// The nearest bfloat16.
inline float rounded(float x) { return static_cast<float>(BFloat16(x)); }

// n elements that end where an inaccessible page begins; the bytes before them are writable and hold a pattern, which
// the destructor checks.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t n) : size_(n) {
#if defined(_WIN32)
    bytes_ = kPattern + n * sizeof(T);
    storage_ = std::make_unique<unsigned char[]>(bytes_);
    base_ = storage_.get();
    data_ = reinterpret_cast<T*>(base_ + kPattern);
#else
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t body = (n * sizeof(T) + kPattern + page - 1) / page * page;
    bytes_ = body + page;
    base_ =
        static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(base_ != MAP_FAILED);
    REQUIRE(mprotect(base_ + body, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(base_ + body - n * sizeof(T));
#endif
    for (std::size_t i = 1; i <= kPattern; ++i)
      reinterpret_cast<unsigned char*>(data_)[-static_cast<std::ptrdiff_t>(i)] = 0xa5;
  }
  ~Guarded() {
    bool intact = true;
    for (std::size_t i = 1; i <= kPattern; ++i) {
      intact = intact && reinterpret_cast<unsigned char*>(data_)[-static_cast<std::ptrdiff_t>(i)] == 0xa5;
    }
    CHECK_MESSAGE(intact, "a kernel wrote before the start of an array");
#if !defined(_WIN32)
    munmap(base_, bytes_);
#endif
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  static constexpr std::size_t kPattern = 64;
  unsigned char* base_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_, bytes_;
#if defined(_WIN32)
  std::unique_ptr<unsigned char[]> storage_;
#endif
};

// A small generator with a fixed sequence.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint32_t bits() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::uint32_t>(state_ >> 32);
  }
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(bits() >> 8) * 0x1p-24f; }
  template <typename Array>
  void fill(Array& a, float low = -1.0f, float high = 1.0f) {
    for (auto& x : a) x = static_cast<std::decay_t<decltype(x)>>(uniform(low, high));
  }

 private:
  std::uint64_t state_;
};

// 64-byte aligned scratch.
template <typename T>
class Scratch {
 public:
  explicit Scratch(std::size_t n) : storage_(n * sizeof(T) + 64) {
    const auto at = reinterpret_cast<std::uintptr_t>(storage_.data());
    data_ = reinterpret_cast<T*>(storage_.data() + (64 - at % 64) % 64);
  }
  T* data() { return data_; }

 private:
  std::vector<unsigned char> storage_;
  T* data_;
};

inline std::uint16_t narrow(float x, FloatType type) {
  return type == FloatType::kF16 ? Float16(x).bits : BFloat16(x).bits;
}
inline float widen(std::uint16_t bits, FloatType type) {
  return type == FloatType::kF16 ? static_cast<float>(Float16::from_bits(bits))
                                 : static_cast<float>(BFloat16::from_bits(bits));
}

// Distance of `actual` from `expected` in units of the last place of float32, counted from the expected double.
// Below the normal range the unit stays that of the smallest normal numbers, since kernels may flush denormals.
inline double ulp_error(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : std::numeric_limits<double>::infinity();
  const auto rounded = static_cast<float>(expected);
  if (std::isinf(rounded) || std::isinf(actual)) return rounded == actual ? 0 : std::numeric_limits<double>::infinity();
  if (std::isnan(actual)) return std::numeric_limits<double>::infinity();
  int exponent = 0;
  std::frexp(std::max(std::abs(expected), 0x1p-126), &exponent);
  return std::abs(static_cast<double>(actual) - expected) / std::ldexp(1.0, exponent - 24);
}

}  // namespace infernode::microkernels::test
