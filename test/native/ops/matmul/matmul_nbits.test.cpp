#include "ops/float_types.h"

namespace infernode::test {
namespace {

const std::string kHeader = "<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> g ";

TEST_CASE("MatMulNBits multiplies by the expanded weight") {
  constexpr std::int64_t kK = 40, kN = 70, kBlocks = 3, kBlockBytes = 8;  // blocks of 16 elements, the last one short
  Tensor codes = Tensor::make(DType::UInt8, {kN, kBlocks, kBlockBytes}), zeros = Tensor::make(DType::UInt8, {kN * 2});
  for (std::int64_t i = 0; i < codes.numel(); ++i)
    codes.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 + 11);
  for (std::int64_t i = 0; i < zeros.numel(); ++i)
    zeros.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 53 + 7);
  const Tensor scales = noise({kN * kBlocks}, 0.1f, 2), a = noise({3, kK}), bias = noise({kN}, 1, 3);
  for (const bool with_zeros : {false, true}) {
    CAPTURE(with_zeros);
    Tensor weight = Tensor::make(DType::Float32, {kN, kK});
    for (std::int64_t n = 0; n < kN; ++n) {
      for (std::int64_t k = 0; k < kK; ++k) {
        const std::int64_t block = k / 16, within = k % 16;
        const int byte = codes.data<std::uint8_t>()[(n * kBlocks + block) * kBlockBytes + within / 2];
        const int zero_byte = zeros.data<std::uint8_t>()[n * 2 + block / 2];
        const int zero = with_zeros ? (block % 2 ? zero_byte >> 4 : zero_byte & 15) : 8;
        weight.mutable_data<float>()[n * kK + k] =
            static_cast<float>((within % 2 ? byte >> 4 : byte & 15) - zero) * scales.data<float>()[n * kBlocks + block];
      }
    }
    const std::vector<Value> expected =
        run_op("(A, B, C) => (Y) { Y = Gemm<transB=1>(A, B, C) }", 17, {a, weight, bias});
    const std::string call =
        cat(kHeader, with_zeros ? "(A, B, S, C, Z) => (Y) { Y = com.microsoft.MatMulNBits<K=40, N=70, bits=4, "
                                  "block_size=16>(A, B, S, Z, , C) }"
                                : "(A, B, S, C) => (Y) { Y = com.microsoft.MatMulNBits<K=40, N=70, bits=4, "
                                  "block_size=16>(A, B, S, , , C) }");
    std::vector<Value> inputs{a, codes, scales, bias};
    if (with_zeros) inputs.push_back(zeros);
    check_op(call, 17, inputs, expected);
  }
}

TEST_CASE("MatMulNBits refuses what does not fit") {
  check_op_fails(cat(kHeader, "(A, B, S) => (Y) { Y = com.microsoft.MatMulNBits<K=16, N=1, block_size=16>(A, B, S) }"),
                 17, {noise({1, 16}), u8({1, 1, 2}, {1, 2}), noise({1})}, ErrorCode::ShapeMismatch, "do not fit N");
  check_op_fails(cat(kHeader, "(A, B, S) => (Y) { Y = com.microsoft.MatMulNBits<K=16, N=1, block_size=3>(A, B, S) }"),
                 17, {noise({1, 16}), u8({1, 1, 2}, {1, 2}), noise({1})}, ErrorCode::InvalidModel, "block_size 3");
}

}  // namespace
}  // namespace infernode::test
