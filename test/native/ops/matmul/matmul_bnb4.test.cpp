#include "ops/op_test.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g ";

TEST_CASE("MatMulBnb4 refuses sizes that do not fit") {
  const std::string call = "(A, B, M) => (Y) { Y = com.microsoft.MatMulBnb4<K=16, N=1, block_size=";
  check_op(cat(kHeader, call, "16, quant_type=1>(A, B, M) }"), 21,
           {tensor_as(DType::Float32, {1, 16}, std::vector<double>(16, 1)),
            u8({8}, {0xF0, 0xF0, 0xF0, 0xF0, 0x77, 0x77, 0x77, 0x7F}), f32({1}, {3})},
           {f32({1, 1}, {3})});  // four pairs of 1 and -1, zeros, and a last 1
  check_op_fails(cat(kHeader, call, "16, quant_type=1>(A, B, M) }"), 21,
                 {noise({1, 16}), u8({2}, {1, 2}), f32({1}, {1})}, ErrorCode::ShapeMismatch, "do not fit K");
  check_op_fails(cat(kHeader, call, "16, quant_type=2>(A, B, M) }"), 21,
                 {noise({1, 16}), u8({2}, {1, 2}), f32({1}, {1})}, ErrorCode::InvalidModel, "quant_type is 2");
  check_op_fails(cat(kHeader, call, "7, quant_type=0>(A, B, M) }"), 21,
                 {noise({1, 16}), u8({2}, {1, 2}), f32({1}, {1})}, ErrorCode::InvalidModel, "block_size 7");
}

}  // namespace
}  // namespace infernode::test
