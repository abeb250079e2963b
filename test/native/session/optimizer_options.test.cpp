// Config entries that switch optimizers on and off, seen in the model that is written.

#include "onnx/reader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// The statements of the model that level basic writes.
std::string optimized(const std::string& text, const std::map<std::string, std::string, std::less<>>& config,
                      std::int64_t opset = 21) {
  const TemporaryFolder folder;
  const std::string path = folder / "optimized.onnx";
  open(text, {.level = passes::Level::Basic, .optimized_model_path = path, .config = config}, opset);
  return nodes(*onnx::read_model_file(path).graph);
}
constexpr const char* kQuantized =
    "(float[2,3] x) => (y) <float s = {0.5}, int8 z = {1}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, "
    "z)  "
    "t = Transpose(d)  p = QuantizeLinear(t, s, z)  e = DequantizeLinear(p, s, z)  y = Exp(e) }";
}  // namespace

TEST_CASE("session.disable_double_qdq_remover and session.disable_quant_qdq") {
  const std::string both = optimized(kQuantized, {});
  CHECK(both.find("DequantizeLinear") == both.rfind("DequantizeLinear"));
  const std::string pairs = optimized(kQuantized, {{"session.disable_double_qdq_remover", "1"}});
  CHECK(pairs.find("DequantizeLinear") != pairs.rfind("DequantizeLinear"));
  CHECK(pairs.find("Transpose (q)") != std::string::npos);
  const std::string none = optimized(kQuantized, {{"session.disable_quant_qdq", "1"}});
  CHECK(none.find(" QuantizeLinear") != none.rfind(" QuantizeLinear"));
  CHECK(optimized(kQuantized, {{"session.disable_quant_qdq", "0"}}) == both);
}

TEST_CASE("session.disable_qdq_constant_folding") {
  const char* text =
      "(float[2] x) => (y) <int8[2] q = {1,2}, float s = {0.5}> { w = DequantizeLinear(q, s)  y = Add(x, w) }";
  CHECK(optimized(text, {}) == "y = Add (x, w)");
  CHECK(optimized(text, {{"session.disable_qdq_constant_folding", "1"}}) ==
        "w = DequantizeLinear (q, s)\ny = Add (x, w)");
}

TEST_CASE("optimization.enable_cast_chain_elimination") {
  const char* text = "(float[2] x) => (y) { a = Cast<to = 10>(x)  b = Cast<to = 1>(a)  y = Exp(b) }";
  CHECK(optimized(text, {}).find("Cast") != std::string::npos);
  CHECK(optimized(text, {{"optimization.enable_cast_chain_elimination", "1"}}) == "y = Exp (x)");
}

TEST_CASE("session.enable_dq_matmulnbits_fusion") {
  const char* text =
      "(float[2,16] x) => (y) <uint4[16,1] q = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0}, float[1,1] s = {0.5}> { "
      "w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  y = MatMul(x, w) }";
  CHECK(optimized(text, {}) == "y = MatMul (x, w)");
  CHECK(optimized(text, {{"session.enable_dq_matmulnbits_fusion", "1"}}).find("com.microsoft.MatMulNBits") !=
        std::string::npos);
}

TEST_CASE("optimization.constant_folding_max_output_size_in_bytes") {
  constexpr const char* kKey = "optimization.constant_folding_max_output_size_in_bytes";
  const char* text =
      "(float[4096] x) => (y) <float[2] v = {0.5, 1.5}, int64[1] n = {2048}> { w = Tile(v, n)  y = Mul(x, w) }";
  CHECK(optimized(text, {{kKey, "16384"}}) == "y = Mul (x, w)");
  CHECK(optimized(text, {{kKey, "0"}}) == "y = Mul (x, w)");
  CHECK(optimized(text, {{kKey, "16383"}}).find("Tile") != std::string::npos);
  for (const char* wrong : {"", "-1", "many", "1k"}) {
    const Error error = error_of([&] { optimized(text, {{kKey, wrong}}); });
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(has(error.message(), "a number of bytes"));
  }
}
