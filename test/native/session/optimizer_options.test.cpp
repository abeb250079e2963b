// Config entries that switch optimizers on and off, seen in the model that is written.

#include "onnx/reader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// The statements of the model that a level writes.
std::string optimized(const std::string& text, const std::map<std::string, std::string, std::less<>>& config,
                      std::int64_t opset = 21, passes::Level level = passes::Level::Basic) {
  const TemporaryFolder folder;
  const std::string path = folder / "optimized.onnx";
  open(text, {.level = level, .optimized_model_path = path, .config = config}, opset);
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

TEST_CASE("what switches off that nodes run on codes") {
  constexpr const char* kSum =
      "(float[2,3] x) => (y) <float s = {0.5}, int8 z = {1}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, "
      "z)  t = Add(d, d)  y = QuantizeLinear(t, s, z) }";
  const auto extended = [&](const std::string& key, const std::string& value) {
    return optimized(kSum, {{key, value}}, 21, passes::Level::Extended);
  };
  CHECK(has(extended("session.disable_quant_qdq", "0"), "y = com.microsoft.QLinearAdd (q, s, z, q, s, z, s, z)"));
  CHECK(has(extended("session.disable_quant_qdq", "1"), "t = Add (d, d)"));
  CHECK(has(extended("optimization.disable_specified_optimizers", "QDQSelectorActionTransformer"), "t = Add (d, d)"));
  CHECK(has(optimized(kSum, {}), "t = Add (d, d_own)"));
}

TEST_CASE("what switches off that a file shows what may run on codes") {
  constexpr const char* kWhere =
      "(float[2,3] x, bool[3] m) => (y) <float s = {0.5}, int8 z = {1}, float c = {2}> { q = QuantizeLinear(x, s, z)  "
      "d = DequantizeLinear(q, s, z)  t = Where(m, d, c)  u = Add(t, d)  p = QuantizeLinear(t, s, z)  "
      "w = Where(m, c, d)  y = QuantizeLinear(w, s, z) }";
  const std::string on = optimized(kWhere, {});
  CHECK(has(on, "w = Where (m, c_dequantized, d"));
  const auto off = [&](const char* key, const char* value) { return optimized(kWhere, {{key, value}}); };
  constexpr const char* kNames = "optimization.disable_specified_optimizers";
  CHECK(has(off(kNames, "WhereDummyDq"), "w = Where (m, c, d"));
  CHECK(has(off(kNames, "EnsureUniqueDQForNodeUnit"), "w = Where (m, c_dequantized, d)"));
  CHECK(has(off("session.disable_quant_qdq", "1"), "w = Where (m, c, d)"));
}

TEST_CASE("weights that are codes stay so in a file where their floats would be rounded again") {
  const auto unit = [](const char* constants, const char* weights) {
    return cat("(float[2,2] x) => (y) <float s = {0.5}, int8 z = {1}, ", constants,
               "> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  ", weights,
               "t = Gemm(d, w)  y = QuantizeLinear(t, s, z) }");
  };
  const std::string coded = unit("int8[2,2] c = {1,2,3,4}, float[2] e = {0.5,0.001}", "w = DequantizeLinear(c, e)  ");
  CHECK(has(optimized(coded, {}), "w = DequantizeLinear (c, e)"));
  const std::string floats = unit("float[2,2] w = {1,2,3,4}", "");
  CHECK(has(optimized(floats, {}), "w_rounded = DequantizeLinear (w_codes, w_scale, w_zero)"));
  for (const char* key : {"session.disable_quant_qdq", "optimization.disable_specified_optimizers"}) {
    const std::string off = optimized(floats, {{key, key[0] == 's' ? "1" : "WeightBiasQuantization"}});
    CHECK(has(off, "t = Gemm (d, w)"));
  }
  for (const std::string& text : {coded, floats}) {  // what is read again is what was written
    const TemporaryFolder folder;
    const std::string path = folder / "saved.onnx";
    const auto session = open(text, {.level = passes::Level::Extended, .optimized_model_path = path}, 21);
    const std::vector<Value> inputs = {Value(noise(DType::Float32, {2, 2}, 1))};
    check_same(run(*Session::create(engine(), {.path = path}, {}), inputs), run(*session, inputs), 0);
  }
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

TEST_CASE("session.qdq_matmulnbits_accuracy_level and session.qdq_matmulnbits_block_size") {
  const char* text =
      "(float[2,16] x) => (y) <uint4[16,1] q = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0}, float s = {0.5}> { "
      "w = DequantizeLinear(q, s)  y = MatMul(x, w) }";
  const auto made = [&](const std::string& key, const std::string& value) {
    return optimized(text, {{"session.enable_dq_matmulnbits_fusion", "1"}, {"session.qdq_matmulnbits_" + key, value}});
  };
  CHECK(has(made("block_size", "0"), "accuracy_level = 4, bits = 4, block_size = 32"));
  CHECK(has(made("block_size", "16"), "accuracy_level = 4, bits = 4, block_size = 16"));
  CHECK(has(made("block_size", "-1"), "accuracy_level = 4, bits = 4, block_size = 16"));
  CHECK(has(made("accuracy_level", "1"), "accuracy_level = 1, bits = 4, block_size = 32"));
  const std::pair<const char*, const char*> wrong[] = {
      {"block_size", "8"},     {"block_size", "24"},     {"block_size", "512"},   {"block_size", "-2"},
      {"block_size", ""},      {"block_size", "16 "},    {"accuracy_level", "5"}, {"accuracy_level", "-1"},
      {"accuracy_level", "x"}, {"accuracy_level", "1.0"}};
  for (const auto& [key, value] : wrong) {
    const Error error = error_of([&] { made(key, value); });
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(has(error.message(), cat("session.qdq_matmulnbits_", key, " is '", value, "'")));
  }
}

TEST_CASE("session.enable_quant_qdq_cleanup") {
  const char* text =
      "(float[2] x) => (y, w) <float s = {0.5}, int8 z = {1}> { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, "
      "s, "
      "z)  y = Exp(d)  p = QuantizeLinear(x, s)  w = DequantizeLinear(p, s) }";
  const std::vector<Value> inputs = {Value(Tensor::of<float>(Shape{2}, {0.3f, 0.8f}))};
  const auto first = [&](const char* value) {
    const auto session =
        open(text, {.level = passes::Level::Extended, .config = {{"session.enable_quant_qdq_cleanup", value}}}, 21);
    const auto answers = run(*session, inputs);
    return std::pair{tensor::to_float_vector(answers[0].tensor())[0], tensor::to_float_vector(answers[1].tensor())[0]};
  };
  CHECK(first("0").first == doctest::Approx(std::exp(0.5)));
  CHECK(first("1").first == doctest::Approx(std::exp(0.3)));
  CHECK(first("1").second == doctest::Approx(0.3));
}

TEST_CASE("optimization.disable_specified_optimizers takes the names of onnxruntime") {
  const char* text = "(float[2] x) => (y) { a = Cast<to = 1>(x)  y = Exp(a) }";
  constexpr const char* kKey = "optimization.disable_specified_optimizers";
  CHECK(optimized(text, {}) == "y = Exp (x)");
  CHECK(has(optimized(text, {{kKey, "GeluFusionL1;CastElimination"}}), "Cast"));
  CHECK(has(optimized(text, {{kKey, "EliminateNoops"}}), "Cast"));
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
