#include "ops/op_test.h"

namespace infernode::test {
namespace {

std::string cast_to(DType to, const char* more = "") {
  return cat("(X) => (Y) { Y = Cast<to=", static_cast<int>(to), more, ">(X) }");
}

const DType kTypes[] = {DType::Float32, DType::Float64,        DType::Float16,      DType::BFloat16,
                        DType::Int8,    DType::Int16,          DType::Int32,        DType::Int64,
                        DType::UInt8,   DType::UInt16,         DType::UInt32,       DType::UInt64,
                        DType::Bool,    DType::Int4,           DType::Float8E4M3FN, DType::UInt4,
                        DType::UInt2,   DType::Float8E4M3FNUZ, DType::Float8E5M2,   DType::Float8E5M2FNUZ};

TEST_CASE("Cast converts between every two types") {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      CAPTURE(tensor::name(from));
      CAPTURE(tensor::name(to));
      check_op(cast_to(to), 25, {tensor_as(from, {5}, {0, 1, 1, 0, 1})}, {tensor_as(to, {5}, {0, 1, 1, 0, 1})});
    }
  }
}

TEST_CASE("Large tensors convert in pieces") {
  for (const DType from : {DType::Float32, DType::Int64, DType::Float16, DType::UInt8, DType::Int16})
    for (const DType to : {DType::Float32, DType::Int32, DType::BFloat16, DType::Int8, DType::Float64, DType::UInt4}) {
      if (from == to) continue;
      std::vector<double> values(200001);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7 % 8);
      const Shape shape{static_cast<std::int64_t>(values.size())};
      check_op(cast_to(to), 21, {tensor_as(from, shape, values)}, {tensor_as(to, shape, values)});
    }
}

TEST_CASE("Floats lose their fraction, integers their high bits") {
  check_op(cast_to(DType::Int32), 13, {f32({4}, {1.9f, -1.9f, 0.5f, -0.5f})}, {i32({4}, {1, -1, 0, 0})});
  check_op(cast_to(DType::Int8), 13, {i32({3}, {200, -129, 256})}, {i8({3}, {-56, 127, 0})});
  check_op(cast_to(DType::UInt8), 13, {i64({2}, {-1, 257})}, {u8({2}, {255, 1})});
  check_op(cast_to(DType::Bool), 13, {f32({4}, {0.0f, -0.0f, 0.1f, kNaN})}, {b8({4}, {false, false, true, true})});
  check_op(cast_to(DType::Int4), 21, {f32({3}, {-9, 15, 3.7f})}, {tensor_as(DType::Int4, {3}, {7, -1, 3})});
  check_op(cast_to(DType::Float32), 13, {tensor_as(DType::UInt64, {1}, {18446744073709549568.0})},
           {f32({1}, {18446744073709549568.0f})});
  // Out of range has no defined result, but must not trap.
  run_op(cast_to(DType::Int64), 13, {f32({4}, {kNaN, kInf, -kInf, 1e30f})});
  run_op(cast_to(DType::UInt16), 13, {f64({3}, {1e300, -1e300, kNaN})});
}

TEST_CASE("Floats round to the nearest, once") {
  check_op(cast_to(DType::Float16), 13, {f32({4}, {1.0f + 0x1p-11f, 65519, 65520, 1e-8f})},
           {f16({4}, {1, 65504, kInf, 0})}, 0);
  // 1 + 2^-11 + 2^-40 lies above the tie, which rounding through float would lose.
  check_op(cast_to(DType::Float16), 13, {f64({1}, {1.0 + 0x1p-11 + 0x1p-40})}, {f16({1}, {1.0 + 0x1p-10})}, 0);
  check_op(cast_to(DType::Float32), 13, {f64({2}, {1e300, 0.1})}, {f32({2}, {kInf, 0.1f})}, 0);
}

TEST_CASE("8-bit floats saturate unless told otherwise") {
  const Tensor x = f32({3}, {1000000, -1000000, kInf});
  check_op(cast_to(DType::Float8E4M3FN), 19, {x}, {tensor_as(DType::Float8E4M3FN, {3}, {448, -448, 448})});
  const Value loose = run_op(cast_to(DType::Float8E5M2, ", saturate=0"), 19, {x}).at(0);
  CHECK(std::isinf(static_cast<float>(loose.tensor().data<Float8E5M2>()[0])));
  check_op(cast_to(DType::Float8E8M0), 24, {f32({3}, {0.124f, 1.1f, 2})},
           {tensor_as(DType::Float8E8M0, {3}, {0.125, 2, 2})});
  check_op(cast_to(DType::Float8E8M0, ", round_mode=\"down\""), 24, {f32({2}, {1.1f, 2})},
           {tensor_as(DType::Float8E8M0, {2}, {1, 2})});
  check_op_fails(cast_to(DType::Float8E8M0, ", round_mode=\"sideways\""), 24, {x}, ErrorCode::InvalidModel,
                 "round_mode");
}

TEST_CASE("6-bit floats convert both ways and saturate") {
  for (const DType six : {DType::Float6E2M3, DType::Float6E3M2}) {
    for (const DType other : kTypes) {
      CAPTURE(tensor::name(other));
      check_op(cast_to(six), 28, {tensor_as(other, {5}, {0, 1, 1, 0, 1})}, {tensor_as(six, {5}, {0, 1, 1, 0, 1})});
      check_op(cast_to(other), 28, {tensor_as(six, {5}, {0, 1, 1, 0, 1})}, {tensor_as(other, {5}, {0, 1, 1, 0, 1})});
    }
    std::vector<double> values(5001);  // several pieces, the last of them no whole number of bytes
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7) / 2;
    check_op(cast_to(six), 28, {tensor_as(DType::Float32, {5001}, values)}, {tensor_as(six, {5001}, values)});
    check_op(cast_to(DType::Float32), 28, {tensor_as(six, {5001}, values)},
             {tensor_as(DType::Float32, {5001}, values)});
  }
  const Tensor x = f32({5}, {1.0625f, 1000, -kInf, 0.03125f, 1.1875f});
  check_op(cast_to(DType::Float6E2M3), 28, {x}, {tensor_as(DType::Float6E2M3, {5}, {1, 7.5, -7.5, 0, 1.25})});
  check_op(cast_to(DType::Float6E3M2), 28, {x}, {tensor_as(DType::Float6E3M2, {5}, {1, 28, -28, 0, 1.25})});
  check_op(cast_to(DType::String), 28, {tensor_as(DType::Float6E3M2, {2}, {0.0625, -20})},
           {str({2}, {"0.0625", "-20"})});
  check_op_fails(cast_to(DType::Float6E3M2), 25, {x}, ErrorCode::UnsupportedOperator, "no kernel");
}

TEST_CASE("Strings are read and written as numbers") {
  check_op(cast_to(DType::Float32), 9, {str({7}, {"3.14", "1e-5", "-INF", "+inf", "NaN", " 7 ", "1E8"})},
           {f32({7}, {3.14f, 1e-5f, -kInf, kInf, kNaN, 7, 1e8f})});
  check_op(cast_to(DType::Int64), 9, {str({4}, {"-9007199254740993", "+5", "100.5", "0"})},
           {i64({4}, {-9007199254740993, 5, 100, 0})});
  check_op(cast_to(DType::String), 9, {f32({5}, {3.14f, 1, kNaN, -kInf, 314.15926f})},
           {str({5}, {"3.14", "1", "NaN", "-INF", "314.15927"})});
  check_op(cast_to(DType::String), 9, {i64({2}, {INT64_MIN, 5})}, {str({2}, {"-9223372036854775808", "5"})});
  check_op_fails(cast_to(DType::Float32), 9, {str({1}, {"Hello"})}, ErrorCode::InvalidArgument, "'Hello' is no number");
}

TEST_CASE("Real numbers become the shortest text that reads back as the same number") {
  check_op(cast_to(DType::String), 13, {f64({9}, {0.1, 1, -0.0, 1e21, 1e15, 1e-7, 0.0001, 123456789.123, 5e-324})},
           {str({9}, {"0.1", "1", "-0", "1e+21", "1000000000000000", "1e-07", "0.0001", "123456789.123", "5e-324"})});
  check_op(cast_to(DType::String), 13, {f32({6}, {0.1f, 16777216.0f, 1e-7f, 3.4028235e38f, 0.33333334f, 1e16f})},
           {str({6}, {"0.1", "16777216", "1e-07", "3.4028235e+38", "0.33333334", "1e+16"})});
  check_op(
      "(double[2] X) => (Y) { k = Cast<to=8>(X) Y = ai.onnx.ml.LabelEncoder<keys_strings = [\"0.1\", \"3\"], "
      "values_int64s = [7, 8]>(k) }",
      17, {f64({2}, {0.1, 3})}, {i64({2}, {7, 8})});
}

TEST_CASE("Version 1 names the type") {
  check_op("(X) => (Y) { Y = Cast<to=\"INT32\">(X) }", 1, {f32({2}, {1.5, 2})}, {i32({2}, {1, 2})});
  check_op_fails("(X) => (Y) { Y = Cast<to=\"INT33\">(X) }", 1, {f32({1}, {1})}, ErrorCode::InvalidModel, "int33");
  check_op_fails("(X) => (Y) { Y = Cast<to=99>(X) }", 13, {f32({1}, {1})}, ErrorCode::InvalidModel, "99");
}

TEST_CASE("CastLike takes the type of another tensor") {
  check_op("(X, L) => (Y) { Y = CastLike(X, L) }", 15, {f32({2}, {1.5, 2}), i64({}, {0})}, {i64({2}, {1, 2})});
  check_op("(X, L) => (Y) { Y = CastLike<saturate=0>(X, L) }", 19,
           {f32({1}, {1}), tensor_as(DType::Float8E5M2, {1}, {0})}, {tensor_as(DType::Float8E5M2, {1}, {1})});
}

TEST_CASE("BitCast keeps the bits") {
  check_op("(X) => (Y) { Y = BitCast<to=6>(X) }", 26, {f32({2}, {1.0f, -2.0f})}, {i32({2}, {0x3f800000, -0x40000000})});
  check_op("(X) => (Y) { Y = BitCast<to=2>(X) }", 26, {i8({1}, {-1})}, {u8({1}, {255})});
  check_op_fails("(X) => (Y) { Y = BitCast<to=7>(X) }", 26, {f32({1}, {1})}, ErrorCode::InvalidArgument,
                 "differ in size");
}

TEST_CASE("Casts of shapes stay symbolic") {
  CHECK(infer_contents("(float[N,4] X) => (Y) { S = Shape(X) Y = Cast<to=6>(S) }", 13) == "[N,4]");
}

}  // namespace
}  // namespace infernode::test
