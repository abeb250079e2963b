#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("QuantizeLinear rounds to even and saturates") {
  check_op("(float[N] X, float S, uint8 Z) => (uint8[N] Y) { Y = QuantizeLinear(X, S, Z) }", 10,
           {f32({6}, {0, 1, 3, -1000, 1000, kNaN}), f32({}, {2}), u8({}, {128})},
           {u8({6}, {128, 128, 130, 0, 255, 128})});
  check_op("(float[4] X, float S) => (uint8[4] Y) { Y = QuantizeLinear(X, S) }", 13,
           {f32({4}, {0.5, 1.5, kInf, -kInf}), f32({}, {1})}, {u8({4}, {0, 2, 255, 0})});
  check_op("(int32[2] X, float S, int8 Z) => (int8[2] Y) { Y = QuantizeLinear(X, S, Z) }", 13,
           {i32({2}, {7, -1000}), f32({}, {2}), i8({}, {1})}, {i8({2}, {5, -128})});
}

TEST_CASE("QuantizeLinear along an axis") {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  check_op("(float[2,3] X, float[3] S, uint8[3] Z) => (uint8[2,3] Y) { Y = QuantizeLinear(X, S, Z) }", 13,
           {x, f32({3}, {1, 0.5, 0.25}), u8({3}, {0, 1, 2})}, {u8({2, 3}, {1, 5, 14, 4, 11, 26})});
  check_op("(float[2,3] X, float[2] S, int8[2] Z) => (int8[2,3] Y) { Y = QuantizeLinear<axis=-2>(X, S, Z) }", 13,
           {x, f32({2}, {1, 0.5}), i8({2}, {0, -1})}, {i8({2, 3}, {1, 2, 3, 7, 9, 11})});
}

TEST_CASE("QuantizeLinear in blocks, and to types of other widths") {
  const Tensor x = f32({1, 4}, {1, 2, 3, 40000});
  check_op("(float[1,4] X, float[1,2] S, int16[1,2] Z) => (int16[1,4] Y) { Y = QuantizeLinear<block_size=2>(X, S, Z) }",
           21, {x, f32({1, 2}, {1, 0.5}), tensor_as(DType::Int16, {1, 2}, {10, 0})},
           {tensor_as(DType::Int16, {1, 4}, {11, 12, 6, 32767})});
  check_op("(float[1,4] X, float S) => (uint16[1,4] Y) { Y = QuantizeLinear<output_dtype=4>(X, S) }", 21,
           {x, f32({}, {0.5})}, {tensor_as(DType::UInt16, {1, 4}, {2, 4, 6, 65535})});
  check_op("(float[3] X, float S, int4 Z) => (int4[3] Y) { Y = QuantizeLinear(X, S, Z) }", 21,
           {f32({3}, {-100, 3, 100}), f32({}, {1}), tensor_as(DType::Int4, {}, {1})},
           {tensor_as(DType::Int4, {3}, {-8, 4, 7})});
  check_op("(float[5] X, float S) => (uint2[5] Y) { Y = QuantizeLinear<output_dtype=25>(X, S) }", 25,
           {f32({5}, {-1, 0, 1, 2, 9}), f32({}, {1})}, {tensor_as(DType::UInt2, {5}, {0, 0, 1, 2, 3})});
  check_op("(float[3] X, float S) => (float4e2m1[3] Y) { Y = QuantizeLinear<output_dtype=23>(X, S) }", 23,
           {f32({3}, {-100, 3, 1}), f32({}, {2})}, {tensor_as(DType::Float4E2M1, {3}, {-6, 1.5, 0.5})});
  check_op("(float[5] X, float S) => (float6e2m3[5] Y) { Y = QuantizeLinear<output_dtype=27>(X, S) }", 28,
           {f32({5}, {-100, 3, 1, 0.25, 15}), f32({}, {2})},
           {tensor_as(DType::Float6E2M3, {5}, {-7.5, 1.5, 0.5, 0.125, 7.5})});
  check_op("(float[2,2] X, float[2] S, float6e3m2[2] Z) => (float6e3m2[2,2] Y) { Y = QuantizeLinear(X, S, Z) }", 28,
           {f32({2, 2}, {-100, 3, 1, 90}), f32({2}, {2, 3}), tensor_as(DType::Float6E3M2, {2}, {0, 0})},
           {tensor_as(DType::Float6E3M2, {2, 2}, {-28, 1, 0.5, 28})});
  check_op("(float16[3] X, float16 S, float8e4m3fn Z) => (float8e4m3fn[3] Y) { Y = QuantizeLinear(X, S, Z) }", 19,
           {f16({3}, {1, 2, 60000}), f16({}, {2}), tensor_as(DType::Float8E4M3FN, {}, {0})},
           {tensor_as(DType::Float8E4M3FN, {3}, {0.5, 1, 448})});
}

TEST_CASE("DequantizeLinear undoes it") {
  check_op("(uint8[N] X, float S, uint8 Z) => (float[N] Y) { Y = DequantizeLinear(X, S, Z) }", 10,
           {u8({3}, {0, 128, 255}), f32({}, {2}), u8({}, {128})}, {f32({3}, {-256, 0, 254})});
  check_op("(int32[2] X, float S) => (float[2] Y) { Y = DequantizeLinear(X, S) }", 13,
           {i32({2}, {7, -9}), f32({}, {0.5})}, {f32({2}, {3.5, -4.5})});
  check_op("(int8[2,2] X, float[2] S, int8[2] Z) => (float[2,2] Y) { Y = DequantizeLinear<axis=0>(X, S, Z) }", 13,
           {i8({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 10}), i8({2}, {1, 0})}, {f32({2, 2}, {0, 1, 30, 40})});
  check_op("(int4[2,3] X, float16[1,3] S) => (float16[2,3] Y) { Y = DequantizeLinear<axis=0, block_size=2>(X, S) }", 21,
           {tensor_as(DType::Int4, {2, 3}, {-8, 7, 1, 2, 3, -1}), f16({1, 3}, {1, 2, 3})},
           {f16({2, 3}, {-8, 14, 3, 2, 6, -3})});
  check_op("(uint16[2] X, bfloat16 S) => (bfloat16[2] Y) { Y = DequantizeLinear(X, S) }", 21,
           {tensor_as(DType::UInt16, {2}, {0, 1024}), bf16({}, {0.5})}, {bf16({2}, {0, 512})});
  check_op("(float8e5m2[2] X, float S) => (float[2] Y) { Y = DequantizeLinear(X, S) }", 19,
           {tensor_as(DType::Float8E5M2, {2}, {1.5, -2}), f32({}, {2})}, {f32({2}, {3, -4})});
  check_op("(int2[3] X, float8e8m0 S) => (float16[3] Y) { Y = DequantizeLinear<output_dtype=10>(X, S) }", 25,
           {tensor_as(DType::Int2, {3}, {-2, 1, 0}), tensor_as(DType::Float8E8M0, {}, {4})}, {f16({3}, {-8, 4, 0})});
  check_op("(float6e2m3[5] X, float S) => (float[5] Y) { Y = DequantizeLinear(X, S) }", 28,
           {tensor_as(DType::Float6E2M3, {5}, {-7.5, 1.875, 0, 0.125, 2}), f32({}, {2})},
           {f32({5}, {-15, 3.75, 0, 0.25, 4})});
  check_op(
      "(float6e3m2[1,4] X, float8e8m0[1,2] S) => (bfloat16[1,4] Y) "
      "{ Y = DequantizeLinear<block_size=2, output_dtype=16>(X, S) }",
      28, {tensor_as(DType::Float6E3M2, {1, 4}, {28, -0.0625, 1, 5}), tensor_as(DType::Float8E8M0, {1, 2}, {4, 2})},
      {bf16({1, 4}, {112, -0.25, 2, 10})});
}

TEST_CASE("DynamicQuantizeLinear widens the range to hold 0") {
  check_op("(float[N] X) => (uint8[N] Y, float S, uint8 Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 11,
           {f32({3}, {51, 102, 255})}, {u8({3}, {51, 102, 255}), f32({}, {1}), u8({}, {0})});
  check_op("(float[2] X) => (uint8[2] Y, float S, uint8 Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 11,
           {f32({2}, {-510, -255})}, {u8({2}, {0, 127}), f32({}, {2}), u8({}, {255})});
  check_op("(float[2] X) => (uint8[2] Y, float S, uint8 Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 11,
           {f32({2}, {0, 0})}, {u8({2}, {0, 0}), f32({}, {1}), u8({}, {0})});
  check_op("(float[2] X) => (uint8[2] Y, float S, uint8 Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 11,
           {f32({2}, {-kInf, 1})}, {u8({2}, {0, 0}), f32({}, {kInf}), u8({}, {0})});
  check_threads("(X) => (Y, S, Z) { Y, S, Z = DynamicQuantizeLinear(X) }", 11, {noise({100000})});
}

TEST_CASE("Quantization refuses scales that do not fit") {
  check_op_fails("(X, S) => (Y) { Y = QuantizeLinear(X, S) }", 13, {noise({2, 3}), f32({2}, {1, 1})},
                 ErrorCode::ShapeMismatch, "does not fit x");
  check_op_fails("(X, S, Z) => (Y) { Y = QuantizeLinear(X, S, Z) }", 13,
                 {noise({2, 3}), f32({3}, {1, 1, 1}), u8({2}, {1, 1})}, ErrorCode::ShapeMismatch, "zero point");
  check_op_fails("(X, S) => (Y) { Y = QuantizeLinear<block_size=2>(X, S) }", 21, {noise({2, 3}), noise({2, 3})},
                 ErrorCode::ShapeMismatch, "does not fit x");
}

}  // namespace
}  // namespace infernode::test
