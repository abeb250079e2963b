#include "ops/op_test.h"

namespace infernode::test {
namespace {

TEST_CASE("And, Or, Xor, Not") {
  const Tensor a = b8({2, 2}, {false, false, true, true}), b = b8({2}, {false, true});
  check_op("(A, B) => (C) { C = And(A, B) }", 7, {a, b}, {b8({2, 2}, {false, false, false, true})});
  check_op("(A, B) => (C) { C = Or(A, B) }", 7, {a, b}, {b8({2, 2}, {false, true, true, true})});
  check_op("(A, B) => (C) { C = Xor(A, B) }", 7, {a, b}, {b8({2, 2}, {false, true, true, false})});
  check_op("(A) => (C) { C = Not(A) }", 1, {a}, {b8({2, 2}, {true, true, false, false})});
  check_op("(A, B) => (C) { C = And<broadcast=1, axis=0>(A, B) }", 1, {a, b}, {b8({2, 2}, {false, false, true, true})});
}

TEST_CASE("Bytes other than 0 and 1 count as true") {
  const Tensor odd = u8({3}, {2, 0, 4}).reinterpreted(DType::Bool),
               one = u8({3}, {1, 1, 255}).reinterpreted(DType::Bool);
  check_op("(A, B) => (C) { C = And(A, B) }", 7, {odd, one}, {b8({3}, {true, false, true})});
  check_op("(A) => (C) { C = Not(A) }", 1, {odd}, {b8({3}, {false, true, false})});
}

TEST_CASE("Bitwise operators work in every integer type") {
  for (const DType type : {DType::Int8, DType::Int16, DType::Int32, DType::Int64, DType::UInt8, DType::UInt16,
                           DType::UInt32, DType::UInt64}) {
    CAPTURE(tensor::name(type));
    const Tensor a = tensor_as(type, {3}, {12, 7, 1}), b = tensor_as(type, {1}, {10});
    check_op("(A, B) => (C) { C = BitwiseAnd(A, B) }", 18, {a, b}, {tensor_as(type, {3}, {8, 2, 0})});
    check_op("(A, B) => (C) { C = BitwiseOr(A, B) }", 18, {a, b}, {tensor_as(type, {3}, {14, 15, 11})});
    check_op("(A, B) => (C) { C = BitwiseXor(A, B) }", 18, {a, b}, {tensor_as(type, {3}, {6, 13, 11})});
  }
  check_op("(A) => (C) { C = BitwiseNot(A) }", 18, {i32({2}, {0, 5})}, {i32({2}, {-1, -6})});
  check_op("(A) => (C) { C = BitwiseNot(A) }", 18, {u8({2}, {0, 5})}, {u8({2}, {255, 250})});
}

TEST_CASE("BitShift drops what leaves the width") {
  check_op("(A, B) => (C) { C = BitShift<direction=\"LEFT\">(A, B) }", 11,
           {u8({4}, {1, 255, 3, 1}), u8({4}, {3, 1, 8, 200})}, {u8({4}, {8, 254, 0, 0})});
  check_op("(A, B) => (C) { C = BitShift<direction=\"RIGHT\">(A, B) }", 11, {u8({3}, {16, 255, 3}), u8({3}, {2, 7, 8})},
           {u8({3}, {4, 1, 0})});
  check_op("(A, B) => (C) { C = BitShift<direction=\"RIGHT\">(A, B) }", 28,
           {i32({5}, {-8, -8, -8, 8, 8}), i32({5}, {1, 32, -1, 40, 2})}, {i32({5}, {-4, -1, -1, 0, 2})});
  check_op("(A, B) => (C) { C = BitShift<direction=\"LEFT\">(A, B) }", 28, {i8({3}, {64, -1, 1}), i8({3}, {1, 8, -3})},
           {i8({3}, {-128, 0, 0})});
  check_op_fails("(A, B) => (C) { C = BitShift<direction=\"UP\">(A, B) }", 11, {u8({1}, {1}), u8({1}, {1})},
                 ErrorCode::InvalidModel, "LEFT or RIGHT");
  check_op_fails("(A, B) => (C) { C = BitShift<direction=\"LEFT\">(A, B) }", 11, {i8({1}, {1}), i8({1}, {1})},
                 ErrorCode::InvalidModel, "int8");
}

}  // namespace
}  // namespace infernode::test
