// Codes of few bits.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
template <class T>
Value codes(const tensor::Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  const Tensor t = Tensor::make(tensor::kDTypeOf<T>, shape);
  for (T& v : t.mutable_span<T>()) v = static_cast<T>(random());
  return t;
}
}  // namespace

TEST_CASE("numbers become codes, and back") {
  const OnDouble undo;
  same_as_cpu("(float[3,4] x) => (y) <float s = {0.02}, uint8 z = {100}> { y = QuantizeLinear(x, s, z) }",
              {numbers({3, 4})});
  same_as_cpu(
      "(float[3,4] x) => (y) <float[4] s = {0.02, 0.5, 1, 0.1}, int8[4] z = {1, 2, 3, -4}> { y = "
      "QuantizeLinear<axis=1>(x, s, z) }",
      {numbers({3, 4})});
  same_as_cpu(
      "(int8[2,3,4] x) => (y) <float[3] s = {0.02, 0.5, 1}, int8[3] z = {1, 2, 3}> { y = "
      "DequantizeLinear<axis=1>(x, s, z) }",
      {codes<std::int8_t>({2, 3, 4})}, 1e-5);
  same_as_cpu(
      "(uint8[2,4] x) => (y) <float[1,4] s = {0.02, 0.5, 1, 2}> { y = DequantizeLinear<axis=0, "
      "block_size=2>(x, s) }",
      {codes<std::uint8_t>({2, 4})}, 1e-5, 21);
  same_as_cpu("(float[3,40] x) => (y, s, z) { y, s, z = DynamicQuantizeLinear(x) }", {numbers({3, 40})}, 1e-6);
}

TEST_CASE("products of bytes") {
  const OnDouble undo;
  same_as_cpu("(uint8[5,40] a, int8[40,35] b) => (y) { y = MatMulInteger(a, b) }",
              {codes<std::uint8_t>({5, 40}), codes<std::int8_t>({40, 35}, 2)});
  same_as_cpu(
      "(uint8[2,5,7] a, uint8[7,3] b) => (y) <uint8 p = {100}, uint8[3] q = {1, 200, 30}> { y = "
      "MatMulInteger(a, b, p, q) }",
      {codes<std::uint8_t>({2, 5, 7}), codes<std::uint8_t>({7, 3}, 2)});
}

TEST_CASE("slices of codes in blocks") {
  const OnDouble undo;
  const Value index = Tensor::of<std::int64_t>({2, 2}, {2, -1, 0, 5});
  std::string bytes = "7";
  for (int i = 1; i < 3 * 32; ++i) bytes += cat(", ", i * 37 % 256);
  const std::string scales = "0.5, 0.25, 2.0, 1.0, 0.1, 0.3", many = cat(scales, ", ", scales);
  const auto check = [&](int bits, const std::string& shape, const std::string& given, const std::string& zeros) {
    same_as_cpu(cat("(int64[2,2] i) => (y) <uint8[3,32] d = {", bytes, "}, float", shape, " s = {", given, "}",
                    zeros.empty() ? "" : ", uint8[3,1] z = {18, 52, 200}",
                    "> { y = com.microsoft.GatherBlockQuantized<bits=", bits, ", block_size=32>(d, i, s", zeros, ") }"),
                {index}, 1e-5, 21);
  };
  check(8, "[3,1]", "0.5, 0.25, 2.0", "");
  check(8, "[3,1]", "0.5, 0.25, 2.0", ", z");
  check(4, "[3,2]", scales, "");
  check(4, "[3,2]", scales, ", z");
  check(2, "[3,4]", many, ", z");
}

TEST_CASE("products by codes of the bitsandbytes project") {
  const OnDouble undo;
  std::string bytes = "7";
  for (int i = 1; i < 5 * 32 / 2; ++i) bytes += cat(", ", i * 37 % 256);
  for (const char* type : {"0", "1"}) {
    for (const char* turned : {"0", "1"}) {
      same_as_cpu(cat("(float[2,3,32] a) => (y) <uint8[80] b = {", bytes,
                      "}, float[5] m = {0.5, 0.25, 2.0, 1.0, 0.1}> { y = com.microsoft.MatMulBnb4<K=32, N=5, "
                      "block_size=32, quant_type=",
                      type, ", transB=", turned, ">(a, b, m) }"),
                  {numbers({2, 3, 32})}, 1e-4);
    }
  }
}
