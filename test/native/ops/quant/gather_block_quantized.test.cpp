#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("GatherBlockQuantized gives zeros for indices out of range and refuses scales that do not fit") {
  const std::string call = "(D, I, S) => (Y) { Y = com.microsoft.GatherBlockQuantized<bits=8, block_size=";
  const Tensor data = iota(DType::UInt8, {2, 2}, 128), scales = f32({2, 1}, {1, 2});
  check_op(cat(kHeader, call, "16>(D, I, S) }"), 21, {data, i64({3}, {-1, 2, 0}), scales},
           {f32({3, 2}, {4, 6, 0, 0, 0, 1})});
  check_op_fails(cat(kHeader, call, "16>(D, I, S) }"), 21, {data, i64({1}, {0}), f32({2, 2}, {1, 2, 3, 4})},
                 ErrorCode::ShapeMismatch, "does not fit data");
  check_op_fails(cat(kHeader, call, "3>(D, I, S) }"), 21, {data, i64({1}, {0}), scales}, ErrorCode::InvalidModel,
                 "block_size 3");
  check_op_fails(cat(kHeader, "(D, I, S) => (Y) { Y = com.microsoft.GatherBlockQuantized<gather_axis=5>(D, I, S) }"),
                 21, {data, i64({1}, {0}), scales}, ErrorCode::InvalidArgument, "");
}

}  // namespace
}  // namespace infernode::test
