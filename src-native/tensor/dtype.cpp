#include "tensor/dtype.h"

#include <array>

#include "base/checked.h"
#include "base/error.h"

namespace infernode::tensor {
namespace {

struct TypeRow {
  std::string_view name, onnx;
  uint8_t bits;
};

constexpr std::array<TypeRow, kDTypeCount> kTypes{{
    {"undefined", "undefined", 0},
    {"float32", "float", 32},
    {"uint8", "uint8", 8},
    {"int8", "int8", 8},
    {"uint16", "uint16", 16},
    {"int16", "int16", 16},
    {"int32", "int32", 32},
    {"int64", "int64", 64},
    {"string", "string", 0},
    {"bool", "bool", 8},
    {"float16", "float16", 16},
    {"float64", "double", 64},
    {"uint32", "uint32", 32},
    {"uint64", "uint64", 64},
    {"complex64", "complex64", 64},
    {"complex128", "complex128", 128},
    {"bfloat16", "bfloat16", 16},
    {"float8e4m3fn", "float8e4m3fn", 8},
    {"float8e4m3fnuz", "float8e4m3fnuz", 8},
    {"float8e5m2", "float8e5m2", 8},
    {"float8e5m2fnuz", "float8e5m2fnuz", 8},
    {"uint4", "uint4", 4},
    {"int4", "int4", 4},
    {"float4e2m1", "float4e2m1", 4},
    {"float8e8m0", "float8e8m0", 8},
    {"uint2", "uint2", 2},
    {"int2", "int2", 2},
    {"float6e2m3", "float6e2m3", 6},
    {"float6e3m2", "float6e3m2", 6},
}};

const TypeRow& row(DType type) { return kTypes.at(static_cast<size_t>(type)); }

constexpr TypeSet kSigned{DType::Int2, DType::Int4, DType::Int8, DType::Int16, DType::Int32, DType::Int64};
constexpr TypeSet kUnsigned{DType::UInt2, DType::UInt4, DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64};
constexpr TypeSet kFloating =
    types::kFloats | types::kFloat8 |
    TypeSet{DType::BFloat16, DType::Float8E8M0, DType::Float4E2M1, DType::Float6E2M3, DType::Float6E3M2};

}  // namespace

size_t bit_size(DType type) { return row(type).bits; }

size_t byte_size(DType type, int64_t count) {
  INFERNODE_CHECK(count >= 0, ErrorCode::InvalidArgument, "negative element count ", count);
  const size_t n = checked_cast<size_t>(count, ErrorCode::OutOfMemory);
  if (type == DType::String) return checked_mul(n, sizeof(std::string));
  const size_t bits = bit_size(type);
  if (bits >= 8) return checked_mul(n, bits / 8);
  if (bits == 0) return 0;
  return n / 8 * bits + ceil_div(n % 8 * bits, size_t{8});
}

std::string_view name(DType type) { return row(type).name; }
std::string_view onnx_name(DType type) { return row(type).onnx; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (int i = 1; i < kDTypeCount; ++i) {
    const TypeRow& r = kTypes[static_cast<size_t>(i)];
    if (text == r.name || text == r.onnx) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_code(int64_t code) {
  if (code <= 0 || code >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(code);
}

bool is_floating(DType type) { return kFloating.contains(type); }
bool is_integer(DType type) { return (kSigned | kUnsigned).contains(type); }
bool is_signed_integer(DType type) { return kSigned.contains(type); }
bool is_sub_byte(DType type) { return bit_size(type) > 0 && bit_size(type) < 8; }

std::string TypeSet::to_string() const {
  std::string out;
  for (int i = 1; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    if (!contains(type)) continue;
    if (!out.empty()) out += ", ";
    out += name(type);
  }
  return out;
}

}  // namespace infernode::tensor
