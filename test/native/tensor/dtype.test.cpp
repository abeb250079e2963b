#include "tensor/dtype.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "tensor/dispatch.h"

using namespace infernode;
using namespace infernode::tensor;

TEST_CASE("every element type is found by both of its names and by its code") {
  for (int code = 1; code < kDTypeCount; ++code) {
    const auto type = static_cast<DType>(code);
    CAPTURE(name(type));
    CHECK(dtype_from_code(code) == type);
    CHECK(dtype_from_name(name(type)) == type);
    CHECK(dtype_from_name(onnx_name(type)) == type);
  }
  CHECK(name(DType::Float32) == "float32");
  CHECK(onnx_name(DType::Float64) == "double");
  CHECK_FALSE(dtype_from_name("undefined"));
  CHECK_FALSE(dtype_from_name("floaty"));
  CHECK_FALSE(dtype_from_code(0));
  CHECK_FALSE(dtype_from_code(29));
  CHECK_FALSE(dtype_from_code(-1));
}

TEST_CASE("byte sizes pack small types and refuse to wrap") {
  CHECK(byte_size(DType::Float32, 3) == 12);
  CHECK(byte_size(DType::Int4, 3) == 2);
  CHECK(byte_size(DType::UInt2, 5) == 2);
  CHECK(byte_size(DType::Float6E2M3, 4) == 3);
  CHECK(byte_size(DType::Float6E3M2, 9) == 7);
  CHECK(byte_size(DType::Complex128, 2) == 32);
  CHECK(byte_size(DType::String, 2) == 2 * sizeof(std::string));
  CHECK(byte_size(DType::Int4, 0) == 0);
  CHECK_THROWS_AS(byte_size(DType::Float64, INT64_MAX / 2), Error);
  CHECK_THROWS_AS(byte_size(DType::Float32, -1), Error);
}

TEST_CASE("families of types") {
  CHECK(is_floating(DType::BFloat16));
  CHECK(is_floating(DType::Float4E2M1));
  CHECK(is_floating(DType::Float6E3M2));
  CHECK_FALSE(is_floating(DType::Int8));
  CHECK(is_integer(DType::UInt2));
  CHECK_FALSE(is_integer(DType::Bool));
  CHECK(is_signed_integer(DType::Int4));
  CHECK_FALSE(is_signed_integer(DType::UInt4));
  CHECK(is_sub_byte(DType::Int2));
  CHECK(is_sub_byte(DType::Float6E2M3));
  CHECK_FALSE(is_sub_byte(DType::String));
}

TEST_CASE("type sets combine and print") {
  const TypeSet set = types::kFloats | TypeSet{DType::Int4};
  CHECK(set.contains(DType::Float16));
  CHECK_FALSE(set.contains(DType::BFloat16));
  CHECK((set & TypeSet{DType::Int4, DType::Int8}).to_string() == "int4");
  CHECK((set & types::kInts).empty());
  CHECK(TypeSet{DType::Float64, DType::Float32}.to_string() == "float32, float64");
}

TEST_CASE("dispatch calls the branch of the type and names what has none") {
  size_t bytes = 0;
  dispatch<float, double>(DType::Float64, "Test", [&]<class T>(TypeTag<T>) { bytes = sizeof(T); });
  CHECK(bytes == 8);
  dispatch_size(16, "Test", [&]<class T>(TypeTag<T>) { bytes = sizeof(T); });
  CHECK(bytes == 16);
  try {
    dispatch<float>(DType::Int8, "Sigmoid", [](auto) {});
    FAIL("int8 was dispatched");
  } catch (const Error& e) {
    CHECK(e.code() == ErrorCode::UnsupportedOperator);
    CHECK(e.message().find("Sigmoid") != std::string::npos);
    CHECK(e.message().find("int8") != std::string::npos);
  }
}
