#pragma once

#include "providers/cuda/kernels/device/number.cuh"
#include "providers/cuda/kernels/params/elementwise.h"

// Numbers whose type is known at run time.
namespace infernode::cuda {

/// A number of any type: floats as double, integers as themselves.
struct Any {
  bool integer;
  double real;
  long long whole;
  bool is_unsigned;
};

template <class T>
__device__ __forceinline__ T at(std::uint64_t base, std::int64_t i) {
  return reinterpret_cast<const T*>(base)[i];
}
__device__ __forceinline__ Any of(double x) { return {false, x, 0, false}; }
__device__ __forceinline__ Any of(long long x) { return {true, 0, x, false}; }

/// Element `i` of memory that holds this type.
__device__ __forceinline__ Any load_any(std::uint64_t from, Number type, std::int64_t i) {
  switch (type) {
    case Number::f32:
      return of(static_cast<double>(at<float>(from, i)));
    case Number::f16:
      return of(static_cast<double>(__half2float(at<__half>(from, i))));
    case Number::bf16:
      return of(static_cast<double>(__bfloat162float(at<__nv_bfloat16>(from, i))));
    case Number::f64:
      return of(at<double>(from, i));
    case Number::i64:
      return of(at<long long>(from, i));
    case Number::i32:
      return of(static_cast<long long>(at<int>(from, i)));
    case Number::i16:
      return of(static_cast<long long>(at<short>(from, i)));
    case Number::i8:
      return of(static_cast<long long>(at<signed char>(from, i)));
    case Number::u64: {
      Any any = of(at<long long>(from, i));
      any.is_unsigned = true;
      return any;
    }
    case Number::u32:
      return of(static_cast<long long>(at<unsigned>(from, i)));
    case Number::u16:
      return of(static_cast<long long>(at<unsigned short>(from, i)));
    case Number::u8:
      return of(static_cast<long long>(at<unsigned char>(from, i)));
    default:
      return of(static_cast<long long>(at<unsigned char>(from, i) != 0));
  }
}

template <class T>
__device__ __forceinline__ void put(std::uint64_t base, std::int64_t i, T x) {
  reinterpret_cast<T*>(base)[i] = x;
}
__device__ __forceinline__ double real(const Any& x) {
  if (!x.integer) return x.real;
  return x.is_unsigned ? static_cast<double>(static_cast<unsigned long long>(x.whole)) : static_cast<double>(x.whole);
}
/// To float32 with one rounding.
__device__ __forceinline__ float single(const Any& x) {
  if (!x.integer) return static_cast<float>(x.real);
  return x.is_unsigned ? static_cast<float>(static_cast<unsigned long long>(x.whole)) : static_cast<float>(x.whole);
}
/// What lies beyond the 64-bit integers is the nearest of them, NaN the lowest.
__device__ __forceinline__ long long whole(const Any& x) {
  constexpr double kBeyond = 9223372036854775808.0;
  constexpr long long kLowest = -0x7fffffffffffffff - 1;
  if (x.integer) return x.whole;
  if (x.real >= kBeyond) return 0x7fffffffffffffff;
  return x.real >= -kBeyond ? static_cast<long long>(x.real) : kLowest;
}
/// The same among those of 32 bits.
__device__ __forceinline__ int whole_32(const Any& x) {
  constexpr double kBeyond = 2147483648.0;
  constexpr int kLowest = -0x7fffffff - 1;
  if (x.integer) return static_cast<int>(x.whole);
  if (x.real >= kBeyond) return 0x7fffffff;
  return x.real >= -kBeyond ? static_cast<int>(x.real) : kLowest;
}
/// Positive ones have a bit more.
__device__ __forceinline__ unsigned long long unsigned_whole(const Any& x) {
  constexpr double kSigned = 9223372036854775808.0;
  if (x.integer || !(x.real >= kSigned)) return static_cast<unsigned long long>(whole(x));
  return x.real >= 2 * kSigned ? ~0ULL : static_cast<unsigned long long>(x.real);
}

__device__ __forceinline__ void store_any(std::uint64_t to, Number type, std::int64_t i, const Any& x) {
  switch (type) {
    case Number::f32:
      return put(to, i, single(x));
    case Number::f16:
      return put(to, i, __double2half(real(x)));
    case Number::bf16:
      return put(to, i, __double2bfloat16(real(x)));
    case Number::f64:
      return put(to, i, real(x));
    case Number::i64:
      return put(to, i, whole(x));
    case Number::i32:
      return put(to, i, whole_32(x));
    case Number::i16:
      return put(to, i, static_cast<short>(whole(x)));
    case Number::i8:
      return put(to, i, static_cast<signed char>(whole(x)));
    case Number::u64:
      return put(to, i, unsigned_whole(x));
    case Number::u32:
      return put(to, i, static_cast<unsigned>(whole(x)));
    case Number::u16:
      return put(to, i, static_cast<unsigned short>(whole(x)));
    case Number::u8:
      return put(to, i, static_cast<unsigned char>(whole(x)));
    default:
      return put(to, i, static_cast<unsigned char>(x.integer ? x.whole != 0 : x.real != 0));
  }
}

}  // namespace infernode::cuda
