#pragma once
// Element types of tensors. The numeric codes are those of ONNX's TensorProto.DataType.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/half.h"

namespace infernode::tensor {

enum class DType : std::uint8_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
  Float6E2M3 = 27,
  Float6E3M2 = 28,
};
inline constexpr int kDTypeCount = 29;

/// Size of one element in bits, 2 to 128. String and Undefined: 0 (strings are objects, see Tensor).
std::size_t bit_size(DType type);
/// Bytes of `count` elements, sub-byte types packed and rounded up; sizeof(std::string) each for String. Throws
/// OutOfMemory on overflow.
std::size_t byte_size(DType type, std::int64_t count);
/// "float32", "int64", "float8e4m3fn", ...: the names JavaScript users see.
std::string_view name(DType type);
/// ONNX's own spelling, "float", "double", "int64", ...: used in type strings such as "tensor(float)".
std::string_view onnx_name(DType type);
/// Accepts either spelling; nullopt for an unknown one.
std::optional<DType> dtype_from_name(std::string_view text);
/// DType of an ONNX code; nullopt where the code is unknown or Undefined.
std::optional<DType> dtype_from_code(std::int64_t code);

bool is_floating(DType type);  ///< float64/32/16, bfloat16, float8*, float6*, float4
bool is_integer(DType type);   ///< signed or unsigned, 2 to 64 bits; not Bool
bool is_signed_integer(DType type);
bool is_sub_byte(DType type);

/// A set of element types.
class TypeSet {
 public:
  constexpr TypeSet() = default;
  constexpr TypeSet(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= bit(t);
  }
  constexpr bool contains(DType t) const { return (bits_ & bit(t)) != 0; }
  constexpr TypeSet operator|(TypeSet o) const { return TypeSet(bits_ | o.bits_); }
  constexpr TypeSet operator&(TypeSet o) const { return TypeSet(bits_ & o.bits_); }
  constexpr TypeSet without(TypeSet o) const { return TypeSet(bits_ & ~o.bits_); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const TypeSet&) const = default;
  /// "float32, float64", for messages.
  std::string to_string() const;

 private:
  static constexpr std::uint32_t bit(DType t) { return 1u << static_cast<unsigned>(t); }
  constexpr explicit TypeSet(std::uint32_t bits) : bits_(bits) {}
  std::uint32_t bits_ = 0;
};

namespace types {
using enum DType;
inline constexpr TypeSet kFloats{Float16, Float32, Float64};
inline constexpr TypeSet kSignedInts{Int8, Int16, Int32, Int64};
inline constexpr TypeSet kUnsignedInts{UInt8, UInt16, UInt32, UInt64};
inline constexpr TypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr TypeSet kNumeric = kFloats | kInts;
inline constexpr TypeSet kNumericBf16 = kNumeric | TypeSet{BFloat16};
inline constexpr TypeSet kFloat8{Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ};
}  // namespace types

/// The DType that a C++ element type stands for. std::complex<float>, std::string, bool and the 8/16-bit float codes
/// included.
template <class T>
struct DTypeOf;
#define INFERNODE_DTYPE(cpp, code)              \
  template <>                                   \
  struct DTypeOf<cpp> {                         \
    static constexpr DType value = DType::code; \
  };
INFERNODE_DTYPE(float, Float32)
INFERNODE_DTYPE(double, Float64)
INFERNODE_DTYPE(std::uint8_t, UInt8)
INFERNODE_DTYPE(std::int8_t, Int8)
INFERNODE_DTYPE(std::uint16_t, UInt16)
INFERNODE_DTYPE(std::int16_t, Int16)
INFERNODE_DTYPE(std::uint32_t, UInt32)
INFERNODE_DTYPE(std::int32_t, Int32)
INFERNODE_DTYPE(std::uint64_t, UInt64)
INFERNODE_DTYPE(std::int64_t, Int64)
INFERNODE_DTYPE(bool, Bool)
INFERNODE_DTYPE(std::string, String)
INFERNODE_DTYPE(Float16, Float16)
INFERNODE_DTYPE(BFloat16, BFloat16)
INFERNODE_DTYPE(Float8E4M3FN, Float8E4M3FN)
INFERNODE_DTYPE(Float8E4M3FNUZ, Float8E4M3FNUZ)
INFERNODE_DTYPE(Float8E5M2, Float8E5M2)
INFERNODE_DTYPE(Float8E5M2FNUZ, Float8E5M2FNUZ)
INFERNODE_DTYPE(Float8E8M0, Float8E8M0)
#undef INFERNODE_DTYPE
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace infernode::tensor
