#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/packed.h"
#include "ops/common/convert.h"
#include "ops/common/long_text.h"
#include "ops/common/strided_copy.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using tensor::DType;
using tensor::Tensor;
using tensor::TypeTag;

constexpr std::size_t kPiece = 512;  // a multiple of 8, so that packed elements of two pieces share no byte

/// Elements on their way between two types, in the widest type of their kind: n sources and n targets instead of n * n
/// loops.
struct Piece {
  enum class Kind { kSigned, kUnsigned, kReal } kind = Kind::kReal;
  union {
    std::int64_t i[kPiece];
    std::uint64_t u[kPiece];
    double r[kPiece];
  };
  Piece() {}
};

/// As the CPU's own conversion where that is defined, without its undefined cases.
std::int64_t to_integer(double x) {
  if (!(x >= -0x1p63)) return INT64_MIN;
  return x >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(x);
}

template <class T>
T real_to_integer(double x) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (x >= 0x1p63) return x >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(x);
  }
  if constexpr (std::is_same_v<T, std::int32_t>) {
    if (!(x > -0x1p31)) return INT32_MIN;
    if (x >= 0x1p31) return INT32_MAX;
  }
  return static_cast<T>(to_integer(x));
}

template <class T>
inline constexpr bool kIsFloat8 = std::is_same_v<T, Float8E4M3FN> || std::is_same_v<T, Float8E4M3FNUZ> ||
                                  std::is_same_v<T, Float8E5M2> || std::is_same_v<T, Float8E5M2FNUZ>;

/// Calls f(TypeTag<T>) for a type of whole bytes that is no string.
template <class F>
void dispatch_castable(DType type, F&& f) {
  tensor::dispatch<float, double, Float16, BFloat16, std::int64_t, std::int32_t, std::uint8_t, std::int8_t, bool,
                   std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                   Float8E5M2FNUZ, Float8E8M0>(type, "Cast", static_cast<F&&>(f));
}

template <class T>
void load(const void* data, std::size_t first, std::size_t n, Piece& piece) {
  if constexpr (std::is_same_v<T, bool>) {
    piece.kind = Piece::Kind::kSigned;
    const auto* x = static_cast<const std::uint8_t*>(data) + first;
    for (std::size_t i = 0; i < n; ++i) piece.i[i] = x[i] != 0;
  } else {
    const T* x = static_cast<const T*>(data) + first;
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      piece.kind = Piece::Kind::kUnsigned;
      std::copy(x, x + n, piece.u);
    } else if constexpr (std::is_integral_v<T>) {
      piece.kind = Piece::Kind::kSigned;
      std::copy(x, x + n, piece.i);
    } else {
      piece.kind = Piece::Kind::kReal;
      if constexpr (std::is_same_v<T, double>)
        std::copy(x, x + n, piece.r);
      else
        for (std::size_t i = 0; i < n; ++i) piece.r[i] = static_cast<float>(x[i]);
    }
  }
}

void load_packed(DType type, const void* data, std::size_t first, std::size_t n, Piece& piece) {
  const auto* x = static_cast<const std::uint8_t*>(data);
  piece.kind = tensor::is_floating(type) ? Piece::Kind::kReal : Piece::Kind::kSigned;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = first + i;
    switch (type) {
      case DType::UInt4:
        piece.i[i] = get_packed<4>(x, at);
        break;
      case DType::Int4:
        piece.i[i] = get_packed_signed<4>(x, at);
        break;
      case DType::UInt2:
        piece.i[i] = get_packed<2>(x, at);
        break;
      case DType::Int2:
        piece.i[i] = get_packed_signed<2>(x, at);
        break;
      case DType::Float6E2M3:
        piece.r[i] = static_cast<float>(Float6E2M3::from_bits(get_packed<6>(x, at)));
        break;
      case DType::Float6E3M2:
        piece.r[i] = static_cast<float>(Float6E3M2::from_bits(get_packed<6>(x, at)));
        break;
      default:
        piece.r[i] = static_cast<float>(Float4E2M1::from_bits(get_packed<4>(x, at)));
        break;
    }
  }
}

/// What stands in a text for a number, without the space around it.
std::string_view number_text(const std::string& text, Look look) {
  constexpr std::size_t kMost = std::size_t{1} << 20;  // a number's digits are read at one go
  const std::string_view trimmed = trimmed_text(text, look);
  if (trimmed.size() > kMost)
    fail(ErrorCode::InvalidArgument, cat("Cast: a text of ", trimmed.size(), " characters is no number"));
  return trimmed;
}

bool same_word(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y; });
}

double parse_real(std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  double value = 0;
  if (same_word(rest, "inf") || same_word(rest, "infinity")) {
    value = INFINITY;
  } else if (same_word(rest, "nan")) {
    value = NAN;
  } else {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error == std::errc::result_out_of_range) {
      // Beyond the range of double: infinity, or zero for a negative exponent.
      const std::size_t e = rest.find_first_of("eE");
      value = e != std::string_view::npos && e + 1 < rest.size() && rest[e + 1] == '-' ? 0.0 : INFINITY;
    } else if (error != std::errc() || end != rest.data() + rest.size() || rest.starts_with('-')) {
      fail(ErrorCode::InvalidArgument, cat("Cast: '", text.substr(0, 40), "' is no number"));
    }
  }
  return negative ? -value : value;
}

void load_strings(DType target, const std::string* x, std::size_t n, Piece& piece, Look look) {
  const bool integers = tensor::is_integer(target) || target == DType::Bool;
  piece.kind = !integers ? Piece::Kind::kReal : target == DType::UInt64 ? Piece::Kind::kUnsigned : Piece::Kind::kSigned;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string_view said = number_text(x[i], look);
    if (!integers) {
      piece.r[i] = parse_real(said);
      continue;
    }
    std::string_view text = said;
    if (text.starts_with('+')) text.remove_prefix(1);
    const char* end = text.data() + text.size();
    const auto whole = target == DType::UInt64 ? std::from_chars(text.data(), end, piece.u[i])
                                               : std::from_chars(text.data(), end, piece.i[i]);
    if (whole.ec == std::errc() && whole.ptr == end) continue;
    const double value = parse_real(said);
    if (target == DType::UInt64)
      piece.u[i] = real_to_integer<std::uint64_t>(value);
    else
      piece.i[i] = to_integer(value);
  }
}

template <class T>
T from_real(double x, const ConvertOptions& options) {
  if constexpr (kIsFloat8<T>)
    return T::from_float(round_to_odd(x), options.saturate);
  else if constexpr (std::is_same_v<T, Float8E8M0>)
    return T::from_float(round_to_odd(x), options.saturate, options.e8m0_rounding);
  else if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else if constexpr (std::is_integral_v<T>)
    return real_to_integer<T>(x);
  else
    return static_cast<T>(x);
}

template <class T, class I>
T from_integer(I x, const ConvertOptions& options) {
  if constexpr (std::is_same_v<T, bool>)
    return x != 0;
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(x);
  else
    return from_real<T>(static_cast<double>(x), options);
}

template <class T>
void store(const Piece& piece, void* data, std::size_t first, std::size_t n, const ConvertOptions& options) {
  T* y = static_cast<T*>(data) + first;
  for (std::size_t i = 0; i < n; ++i) {
    switch (piece.kind) {
      case Piece::Kind::kSigned:
        y[i] = from_integer<T>(piece.i[i], options);
        break;
      case Piece::Kind::kUnsigned:
        y[i] = from_integer<T>(piece.u[i], options);
        break;
      case Piece::Kind::kReal:
        y[i] = from_real<T>(piece.r[i], options);
        break;
    }
  }
}

void store_packed(DType type, const Piece& piece, void* data, std::size_t first, std::size_t n) {
  auto* y = static_cast<std::uint8_t*>(data);
  for (std::size_t i = 0; i < n; ++i) {
    const bool real = piece.kind == Piece::Kind::kReal;
    int code;
    if (tensor::is_floating(type)) {
      const double value = real                                 ? piece.r[i]
                           : piece.kind == Piece::Kind::kSigned ? static_cast<double>(piece.i[i])
                                                                : static_cast<double>(piece.u[i]);
      code = type == DType::Float4E2M1   ? Float4E2M1(value).bits
             : type == DType::Float6E2M3 ? Float6E2M3(value).bits
                                         : Float6E3M2(value).bits;
    } else {
      code = static_cast<int>((real ? to_integer(piece.r[i]) : piece.i[i]) & 15);
    }
    if (tensor::bit_size(type) == 6)
      set_packed<6>(y, first + i, code);
    else if (tensor::bit_size(type) == 4)
      set_packed<4>(y, first + i, code);
    else
      set_packed<2>(y, first + i, code & 3);
  }
}

/// The shortest digits that read back as the same number of type Real: as they are from 1e-4 to below 1e16, else with
/// an exponent. That is Python's form but for the ".0" of whole numbers, which the peer does not write either.
template <class Real>
std::string shown(Real value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  const Real size = std::abs(value);
  const bool plain = size == 0 || (size >= Real(1e-4) && size < Real(1e16));
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, value, plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {text, end.ptr};
}

void store_strings(const Piece& piece, bool wide, std::string* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    switch (piece.kind) {
      case Piece::Kind::kSigned:
        y[i] = std::to_string(piece.i[i]);
        break;
      case Piece::Kind::kUnsigned:
        y[i] = std::to_string(piece.u[i]);
        break;
      case Piece::Kind::kReal:
        y[i] = wide ? shown(piece.r[i]) : shown(static_cast<float>(piece.r[i]));
        break;
    }
  }
}

/// Pairs worth a loop of their own.
template <class X, class Y>
void convert_run(const X* x, Y* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<Y, bool>)
      y[i] = x[i] != 0;
    else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<Y>)
      y[i] = real_to_integer<Y>(x[i]);
    else
      y[i] = static_cast<Y>(x[i]);
  }
}

template <class F>
bool dispatch_common(DType type, F&& f) {
  switch (type) {
    case DType::Float32:
      f(TypeTag<float>{});
      return true;
    case DType::Int64:
      f(TypeTag<std::int64_t>{});
      return true;
    case DType::Int32:
      f(TypeTag<std::int32_t>{});
      return true;
    case DType::UInt8:
      f(TypeTag<std::uint8_t>{});
      return true;
    case DType::Bool:
      f(TypeTag<bool>{});
      return true;
    default:
      return false;
  }
}

/// False where the pair has no loop of its own.
bool convert_directly(const microkernels::ConvertTable& table, const Tensor& from, const Tensor& to, std::size_t first,
                      std::size_t n) {
  const DType x = from.dtype(), y = to.dtype();
  const auto in = [&]<class T>(TypeTag<T>) { return static_cast<const T*>(from.raw()) + first; };
  const auto out = [&]<class T>(TypeTag<T>) { return static_cast<T*>(to.mutable_raw()) + first; };
  constexpr TypeTag<float> kFloat;
  constexpr TypeTag<std::uint16_t> kHalf;
  if (y == DType::Float32) {
    switch (x) {
      case DType::Float16:
        table.f16_to_f32(in(kHalf), out(kFloat), n);
        return true;
      case DType::BFloat16:
        table.bf16_to_f32(in(kHalf), out(kFloat), n);
        return true;
      case DType::Bool:
        table.bool_to_f32(in(TypeTag<std::uint8_t>{}), out(kFloat), n);
        return true;
      case DType::UInt8:
        table.u8_to_f32(in(TypeTag<std::uint8_t>{}), out(kFloat), n);
        return true;
      case DType::Int8:
        table.s8_to_f32(in(TypeTag<std::int8_t>{}), out(kFloat), n);
        return true;
      case DType::Int32:
        table.s32_to_f32(in(TypeTag<std::int32_t>{}), out(kFloat), n);
        return true;
      default:
        break;
    }
  }
  if (x == DType::Float32 && y == DType::Float16) return table.f32_to_f16(in(kFloat), out(kHalf), n), true;
  if (x == DType::Float32 && y == DType::BFloat16) return table.f32_to_bf16(in(kFloat), out(kHalf), n), true;
  bool done = false;
  dispatch_common(x, [&]<class X>(TypeTag<X>) {
    // Bools are read as bytes: all but 0 are true.
    if constexpr (std::is_same_v<X, bool>) {
      if (y == DType::Bool) return;
      done = dispatch_common(y, [&]<class Y>(TypeTag<Y> tag) {
        const std::uint8_t* source = in(TypeTag<std::uint8_t>{});
        Y* target = out(tag);
        for (std::size_t i = 0; i < n; ++i) target[i] = static_cast<Y>(source[i] != 0);
      });
    } else {
      done = dispatch_common(y, [&]<class Y>(TypeTag<Y> tag) { convert_run(in(TypeTag<X>{}), out(tag), n); });
    }
  });
  return done;
}

void convert_piece(const kernel::RunContext& run, const Tensor& from, const Tensor& to, std::size_t first,
                   std::size_t n, const ConvertOptions& options) {
  Piece piece;
  const FloatModeScope scope(false);
  // Text stands for the very number, also where runs take denormal ones for zero.
  if (to.dtype() == DType::String || from.dtype() == DType::String) set_float_mode(keeping_float_mode(float_mode()));
  if (from.dtype() == DType::String) {
    load_strings(to.dtype(), from.data<std::string>() + first, n, piece, [&] { run.check(); });
  } else if (tensor::is_sub_byte(from.dtype())) {
    load_packed(from.dtype(), from.raw(), first, n, piece);
  } else {
    dispatch_castable(from.dtype(), [&]<class T>(TypeTag<T>) { load<T>(from.raw(), first, n, piece); });
  }
  if (to.dtype() == DType::String) {
    store_strings(piece, from.dtype() == DType::Float64, to.mutable_data<std::string>() + first, n);
  } else if (tensor::is_sub_byte(to.dtype())) {
    store_packed(to.dtype(), piece, to.mutable_raw(), first, n);
  } else {
    dispatch_castable(to.dtype(), [&]<class T>(TypeTag<T>) { store<T>(piece, to.mutable_raw(), first, n, options); });
  }
}

}  // namespace

void convert_elements(const kernel::RunContext& run, const microkernels::ConvertTable& table, const Tensor& from,
                      const Tensor& to, const ConvertOptions& options) {
  if (from.dtype() == to.dtype()) return copy_all(run, from, to);
  const auto total = static_cast<std::size_t>(from.numel());
  // The bits past the last element are zero, as in ONNX's raw data.
  if (total > 0 && tensor::is_sub_byte(to.dtype())) static_cast<std::uint8_t*>(to.mutable_raw())[to.bytes() - 1] = 0;
  const std::size_t pieces = (total + kPiece - 1) / kPiece;
  const bool strings = from.dtype() == DType::String || to.dtype() == DType::String;
  run.parallel_for(pieces, strings ? 50.0 * kPiece : 1.0 * kPiece,
                   [&](std::size_t begin, std::size_t end, std::size_t) {
                     const std::size_t first = begin * kPiece, last = std::min(end * kPiece, total);
                     if (convert_directly(table, from, to, first, last - first)) return;
                     for (std::size_t at = first; at < last; at += kPiece)
                       convert_piece(run, from, to, at, std::min(kPiece, last - at), options);
                   });
}

}  // namespace infernode::ops
