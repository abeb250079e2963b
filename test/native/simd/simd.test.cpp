#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/half.h"
#include "probe.h"

namespace infernode::simd::test {
namespace {

template <typename Fn>
void for_each_probe(Fn fn) {
  const auto run = [&](const Probe& probe) {
    const std::string target = probe.name;
    CAPTURE(target);
    fn(probe);
  };
  run(probe_scalar);
#if defined(__x86_64__) || defined(_M_X64)
  const CpuRung best = cpu_rung();
  run(probe_sse42);
  if (best >= CpuRung::Avx2) {
    run(probe_avx2);
  } else {
    MESSAGE("not run: avx2 is not there, or above INFERNODE_CPU");
  }
  if (best >= CpuRung::Avx512) {
    run(probe_avx512);
  } else {
    MESSAGE("not run: avx512 is not there, or above INFERNODE_CPU");
  }
#elif defined(__aarch64__) || defined(_M_ARM64)
  run(probe_neon);
#endif
}

float f(std::uint32_t u) { return std::bit_cast<float>(u); }
std::uint32_t u(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint32_t u(std::int32_t x) { return static_cast<std::uint32_t>(x); }
std::int32_t i(std::uint32_t x) { return static_cast<std::int32_t>(x); }
std::uint32_t pick(bool m, std::uint32_t yes) { return m ? yes : 0u; }
std::int32_t half(std::uint32_t x, int which) { return static_cast<std::int16_t>(x >> (16 * which) & 0xffff); }

std::uint32_t expected_of_integers(Operation op, std::uint32_t a, std::uint32_t b, std::size_t lane) {
  switch (op) {
    case Operation::kIntAdd:
      return a + b;
    case Operation::kIntSub:
      return a - b;
    case Operation::kIntMul:
      return a * b;
    case Operation::kIntMin:
      return u(std::min(i(a), i(b)));
    case Operation::kIntMax:
      return u(std::max(i(a), i(b)));
    case Operation::kIntAnd:
      return a & b;
    case Operation::kIntOr:
      return a | b;
    case Operation::kIntXor:
      return a ^ b;
    case Operation::kIntAndNot:
      return ~a & b;
    case Operation::kIntGreater:
      return i(a) > i(b) ? a : 7u;
    case Operation::kIntEqual:
      return a == b ? a : 7u;
    case Operation::kShiftLeft:
      return a << 5;
    case Operation::kShiftRight:
      return a >> 5;
    case Operation::kShiftArithmetic:
      return u(i(a) >> 5);
    case Operation::kToInt:
      return u(static_cast<std::int32_t>(std::nearbyint(f(a))));
    case Operation::kToFloat:
      return u(static_cast<float>(i(a)));
    case Operation::kIota:
      return static_cast<std::uint32_t>(lane);
    case Operation::kDotPairs:
      return static_cast<std::uint32_t>(half(a, 0)) * static_cast<std::uint32_t>(half(b, 0)) +
             static_cast<std::uint32_t>(half(a, 1)) * static_cast<std::uint32_t>(half(b, 1));
    default:
      FAIL("nothing is expected of this operation");
      return 0;
  }
}

// What one lane must hold. `fused` tells of results that may be rounded once or twice.
std::uint32_t expected(Operation op, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::size_t lane,
                       float* fused) {
  const float x = f(a), y = f(b), z = f(c);
  switch (op) {
    case Operation::kAdd:
      return u(x + y);
    case Operation::kSub:
      return u(x - y);
    case Operation::kMul:
      return u(x * y);
    case Operation::kDiv:
      return u(x / y);
    case Operation::kFma:
      *fused = std::fma(x, y, z);
      return u(static_cast<float>(x * y) + z);
    case Operation::kFnma:
      *fused = std::fma(-x, y, z);
      return u(z - static_cast<float>(x * y));
    case Operation::kMin:
      return x < y ? a : b;
    case Operation::kMax:
      return x > y ? a : b;
    case Operation::kMinNan:
      return std::isnan(x) ? a : x < y ? a : b;
    case Operation::kMaxNan:
      return std::isnan(x) ? a : x > y ? a : b;
    case Operation::kClamp: {
      const float low = y > x ? y : x;
      return u(z < low ? z : low);
    }
    case Operation::kNegate:
      return a ^ 0x80000000u;
    case Operation::kAbs:
      return a & 0x7fffffffu;
    case Operation::kSqrt:
      return u(std::sqrt(x));
    case Operation::kFloor:
      return u(std::floor(x));
    case Operation::kCeil:
      return u(std::ceil(x));
    case Operation::kRoundEven:
      return u(std::nearbyint(x));
    case Operation::kCopysign:
      return (a & 0x7fffffffu) | (b & 0x80000000u);
    case Operation::kLess:
      return pick(x < y, c);
    case Operation::kLessEqual:
      return pick(x <= y, c);
    case Operation::kGreater:
      return pick(x > y, c);
    case Operation::kGreaterEqual:
      return pick(x >= y, c);
    case Operation::kEqual:
      return pick(x == y, c);
    case Operation::kIsNan:
      return pick(std::isnan(x), c);
    case Operation::kMaskLogic:
      return ((x < y) || (y < z)) && !(x < z) ? a : b;
    default:
      return expected_of_integers(op, a, b, lane);
  }
}

bool is_nan_bits(std::uint32_t x) { return (x & 0x7fffffffu) > 0x7f800000u; }

TEST_CASE("every function of the vocabulary agrees with scalar code on numbers, NaN, infinities and zeros") {
  const float numbers[] = {0.0f,  -0.0f, 1.0f,  -1.0f,    0.5f,      1.5f, 2.5f,   -2.5f, 0.49999997f, 3.7f,
                           -8.3f, 1e9f,  -1e9f, INFINITY, -INFINITY, NAN,  1e-30f, 3e38f, 8388607.5f,  123456.78f};
  std::vector<std::uint32_t> patterns;
  for (const float x : numbers) patterns.push_back(u(x));
  for (const std::uint32_t x : {0u, 1u, 31u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0x12345678u, 0x7fff8000u}) {
    patterns.push_back(x);
  }
  for_each_probe([&](const Probe& probe) {
    for (int index = 0; index < static_cast<int>(Operation::kCount); ++index) {
      const auto op = static_cast<Operation>(index);
      CAPTURE(index);
      std::size_t wrong = 0;
      const std::size_t count = patterns.size();
      for (std::size_t at = 0; at < count * count * 3; at += probe.lanes) {
        std::vector<std::uint32_t> a(probe.lanes), b(probe.lanes), c(probe.lanes), out(probe.lanes, 99);
        for (std::size_t lane = 0; lane < probe.lanes; ++lane) {
          const std::size_t j = at + lane;
          a[lane] = patterns[j % count];
          b[lane] = patterns[j / count % count];
          c[lane] = patterns[(j * 7 + j / count) % count];
          // Out of int32's range the conversion is the target's own.
          if (op == Operation::kToInt && !(std::abs(f(a[lane])) < 2147483520.0f)) a[lane] = u(2.5f);
        }
        probe.run(op, a.data(), b.data(), c.data(), out.data());
        for (std::size_t lane = 0; lane < probe.lanes; ++lane) {
          float fused = 0;
          const std::uint32_t want = expected(op, a[lane], b[lane], c[lane], lane, &fused);
          const bool may_fuse = op == Operation::kFma || op == Operation::kFnma;
          const bool bits_only = index >= static_cast<int>(Operation::kIntAdd) && op != Operation::kToFloat;
          const bool same = out[lane] == want || (!bits_only && is_nan_bits(out[lane]) && is_nan_bits(want)) ||
                            (may_fuse && (out[lane] == u(fused) || (is_nan_bits(out[lane]) && std::isnan(fused))));
          wrong += !same;
        }
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("reductions take every lane") {
  for_each_probe([](const Probe& probe) {
    for (std::size_t odd = 0; odd < probe.lanes; ++odd) {
      std::vector<float> a(probe.lanes, 1.0f), b(probe.lanes, 2.0f);
      std::vector<std::int32_t> ints(probe.lanes, 3);
      a[odd] = -5.0f;
      ints[odd] = 10;
      const auto n = static_cast<float>(probe.lanes);
      Reductions r = probe.reduce(a.data(), b.data(), ints.data());
      CHECK(r.add == n - 6);
      CHECK(r.max == 1.0f);
      CHECK(r.min == -5.0f);
      CHECK(r.int_add == static_cast<std::int32_t>(3 * probe.lanes + 7));
      CHECK((r.any_less && r.all_less));
      a[odd] = 9.0f;
      r = probe.reduce(a.data(), b.data(), ints.data());
      CHECK(r.max == 9.0f);
      CHECK((r.any_less && !r.all_less));
      std::vector<float> least(probe.lanes, -1.0f);
      CHECK_FALSE(probe.reduce(a.data(), least.data(), ints.data()).any_less);
    }
  });
}

TEST_CASE("partial loads and stores touch exactly n elements") {
  for_each_probe([](const Probe& probe) {
    for (std::size_t n = 0; n <= probe.lanes; ++n) {
      std::vector<float> x(probe.lanes), out(probe.lanes + 1, -1.0f);
      std::vector<std::int32_t> ix(probe.lanes), iout(probe.lanes + 1, -1);
      for (std::size_t j = 0; j < probe.lanes; ++j) {
        x[j] = static_cast<float>(j + 1);
        ix[j] = static_cast<std::int32_t>(j + 1);
      }
      probe.copy_partial(x.data(), out.data(), n);
      probe.copy_partial_int(ix.data(), iout.data(), n);
      std::size_t wrong = 0;
      for (std::size_t j = 0; j < out.size(); ++j) {
        wrong += out[j] != (j < n ? static_cast<float>(j + 1) : -1.0f);
        wrong += iout[j] != (j < n ? static_cast<std::int32_t>(j + 1) : -1);
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("loads of every second, third or fourth element and transposes of 4 x 4") {
  for_each_probe([](const Probe& probe) {
    for (std::size_t stride = 2; stride <= 4; ++stride) {
      std::vector<float> x(stride * (probe.lanes - 1) + 1), out(probe.lanes);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<float>(j);
      (stride == 2 ? probe.load_stride2 : stride == 3 ? probe.load_stride3 : probe.load_stride4)(x.data(), out.data());
      for (std::size_t j = 0; j < probe.lanes; ++j) CHECK(out[j] == static_cast<float>(stride * j));
    }
    float square[4][5], turned[4][6] = {};
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 5; ++c) square[r][c] = static_cast<float>(10 * r + c);
    }
    probe.transpose4(&square[0][0], 5, &turned[0][0], 6);
    for (int r = 0; r < 4; ++r) {
      for (int c = 0; c < 6; ++c) CHECK(turned[r][c] == (c < 4 ? static_cast<float>(10 * c + r) : 0.0f));
    }
  });
}

TEST_CASE("zips take elements of two vectors in turn") {
  for_each_probe([](const Probe& probe) {
    std::vector<float> a(probe.lanes), b(probe.lanes), out(2 * probe.lanes);
    for (std::size_t j = 0; j < probe.lanes; ++j) {
      a[j] = static_cast<float>(j);
      b[j] = static_cast<float>(100 + j);
    }
    probe.zip(a.data(), b.data(), out.data());
    for (std::size_t j = 0; j < out.size(); ++j) CHECK(out[j] == (j % 2 == 0 ? a[j / 2] : b[j / 2]));
  });
}

TEST_CASE("vectors are parted, go on by a lane, and load the lanes of a mask") {
  for_each_probe([](const Probe& probe) {
    const std::size_t n = probe.lanes;
    std::vector<float> x(4 * n), out(4 * n);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = static_cast<float>(j + 1);
    for (std::size_t parts = 2; parts <= 4; ++parts) {
      probe.part(x.data(), parts, out.data());
      for (std::size_t j = 0; j < parts * n; ++j) CHECK(out[j] == x[j % n * parts + j / n]);
    }
    probe.next(x.data(), x.data() + 2 * n, out.data());
    for (std::size_t j = 0; j < n; ++j) CHECK(out[j] == (j + 1 < n ? x[j + 1] : x[2 * n]));
    for (std::ptrdiff_t from = -3; from <= static_cast<std::ptrdiff_t>(n); ++from) {
      for (std::ptrdiff_t to = from; to <= static_cast<std::ptrdiff_t>(n) + 2; ++to) {
        // Lanes outside lie in no memory of the test's.
        const std::size_t first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(from, 0)),
                          last = static_cast<std::size_t>(
                              std::clamp<std::ptrdiff_t>(to, 0, static_cast<std::ptrdiff_t>(n)));
        std::vector<float> part(x.begin() + static_cast<std::ptrdiff_t>(first),
                                x.begin() + static_cast<std::ptrdiff_t>(std::max(first, last)));
        probe.load_between(part.data() - first, from, to, out.data());
        for (std::size_t j = 0; j < n; ++j) CHECK(out[j] == (j >= first && j < last ? x[j] : 0.0f));
      }
    }
  });
}

TEST_CASE("narrow integers widen, and narrowing saturates") {
  for_each_probe([](const Probe& probe) {
    const std::size_t n = probe.lanes;
    std::vector<std::uint8_t> bytes(2 * n), u8(n);
    std::vector<std::int8_t> s8(n);
    std::vector<std::uint16_t> words(n), u16(n);
    std::vector<std::int32_t> wide_u8(n), wide_s8(n), wide_u16(n), pairs(n), x(n);
    for (std::size_t j = 0; j < 2 * n; ++j) bytes[j] = static_cast<std::uint8_t>(j * 37 + 200);
    for (std::size_t j = 0; j < n; ++j) words[j] = static_cast<std::uint16_t>(j * 9001 + 40000);
    probe.load_narrow(bytes.data(), words.data(), wide_u8.data(), wide_s8.data(), wide_u16.data(), pairs.data());
    for (std::size_t j = 0; j < n; ++j) {
      CHECK(wide_u8[j] == bytes[j]);
      CHECK(wide_s8[j] == static_cast<std::int8_t>(bytes[j]));
      CHECK(wide_u16[j] == words[j]);
      CHECK(half(u(pairs[j]), 0) == static_cast<std::int8_t>(bytes[2 * j]));
      CHECK(half(u(pairs[j]), 1) == static_cast<std::int8_t>(bytes[2 * j + 1]));
    }
    const std::int32_t values[] = {-2147483647 - 1, 2147483647, -40000, 40000, -129, -128, -1, 0, 127, 128, 255, 256,
                                   70000,           5,          6,      7};
    for (std::size_t start = 0; start < 16; start += n) {
      for (std::size_t j = 0; j < n; ++j) x[j] = values[start + j];
      probe.store_narrow(x.data(), u8.data(), s8.data(), u16.data());
      for (std::size_t j = 0; j < n; ++j) {
        CHECK(u8[j] == std::clamp(x[j], 0, 255));
        CHECK(s8[j] == std::clamp(x[j], -128, 127));
        CHECK(u16[j] == (u(x[j]) & 0xffffu));
      }
    }
  });
}

TEST_CASE("float16 and bfloat16 convert every pattern") {
  for_each_probe([](const Probe& probe) {
    const std::size_t n = probe.lanes;
    std::vector<std::uint16_t> bits(n), f16(n), bf16(n);
    std::vector<float> wide(n), wide_b(n);
    std::size_t wrong = 0;
    for (std::uint32_t start = 0; start < 65536; start += static_cast<std::uint32_t>(n)) {
      for (std::size_t j = 0; j < n; ++j) bits[j] = static_cast<std::uint16_t>(start + j);
      probe.halves(bits.data(), bits.data(), f16.data(), bf16.data(), wide.data(), wide_b.data());
      for (std::size_t j = 0; j < n; ++j) {
        const auto h = static_cast<float>(Float16::from_bits(bits[j]));
        const auto b = static_cast<float>(BFloat16::from_bits(bits[j]));
        wrong += std::isnan(h) ? !std::isnan(wide[j]) : wide[j] != h || f16[j] != bits[j];
        wrong += std::isnan(b) ? !std::isnan(wide_b[j]) : wide_b[j] != b || bf16[j] != bits[j];
      }
    }
    CHECK(wrong == 0);
  });
}

}  // namespace
}  // namespace infernode::simd::test
