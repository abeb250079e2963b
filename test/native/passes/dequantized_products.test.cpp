// Products with weights of few bits: MatMulNBits reads them as they are.
#include <cstring>

#include "base/half.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
/// Codes of any integer type, pseudo-random bits.
Tensor codes(DType type, const Shape& shape, std::uint32_t seed = 1) {
  const Tensor t(type, shape, tensor::zeroed_host_buffer(tensor::byte_size(type, shape.numel())));
  auto* bytes = static_cast<std::uint8_t*>(t.mutable_raw());
  for (std::size_t i = 0; i < t.bytes(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    bytes[i] = static_cast<std::uint8_t>(seed >> 24);
  }
  return t;
}
Tensor scales(const Shape& shape) {
  const Tensor t = noise(DType::Float32, shape, 5);
  for (float& v : t.mutable_span<float>()) v = 0.01f + std::abs(v) / 8;
  return t;
}
using Constants = std::map<std::string, Tensor>;

/// A model whose constants come from here: text has no room for weights of real sizes.
graph::Model model_of(const std::string& text, const Constants& constants, std::int64_t opset) {
  graph::Model model = graph::parse_model(text, opset);
  for (const auto& [name, tensor] : constants) {
    graph::Graph& g = *model.graph;
    const graph::ValueId id = g.find_value(name);
    if (id == graph::kNoValue) continue;
    g.value(id).constant = Value(tensor);
    g.value(id).is_input = false;
    g.value(id).type = graph::ValueType::tensor(tensor.dtype(), graph::to_sym(tensor.shape()));
    std::erase(g.mutable_inputs(), id);
  }
  kernel::infer_graph(*model.graph, registry());
  return model;
}
/// The operators after: level basic with the fusion asked for (and folding off), or level extended.
std::string check(const std::string& text, const Constants& constants, bool basic = true, double tolerance = 1e-5,
                  std::int64_t opset = 25) {
  CAPTURE(text);
  const graph::Model before = model_of(text, constants, opset);
  graph::Model after = model_of(text, constants, opset);
  passes::PassOptions options = pass_options(basic ? 1 : 2, {"ConstantFolding"});
  if (basic) options.enabled.emplace("DQMatMulNBitsFusion");
  passes::run_basic(after, options);
  if (!basic) passes::run_extended(after, "cpu", options);
  graph::verify(*after.graph);
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), tolerance);
  return nodes(*after.graph);
}
/// The attributes of the MatMulNBits that makes y.
std::string fused(std::int64_t bits, std::int64_t block, std::int64_t k, std::int64_t n, const std::string& inputs) {
  return cat("y = com.microsoft.MatMulNBits <K = ", k, ", N = ", n, ", accuracy_level = 4, bits = ", bits,
             ", block_size = ", block, "> (", inputs, ")");
}
}  // namespace

TEST_CASE("weights in blocks along K, of every type") {
  struct Case {
    DType type;
    const char* name;
    std::int64_t bits;
  };
  for (const Case& c : {Case{DType::UInt4, "uint4", 4}, Case{DType::Int4, "int4", 4}, Case{DType::UInt2, "uint2", 2},
                        Case{DType::Int2, "int2", 2}, Case{DType::UInt8, "uint8", 8}, Case{DType::Int8, "int8", 8}}) {
    CAPTURE(c.name);
    const Constants constants{{"q", codes(c.type, {70, 5})}, {"s", scales({3, 5})}, {"z", codes(c.type, {3, 5}, 9)}};
    const std::string head =
        cat("(float[B,S,70] x, ", c.name, "[70,5] q, float[3,5] s, ", c.name, "[3,5] z) => (y) { ");
    CHECK(check(head + "w = DequantizeLinear<axis = 0, block_size = 32>(q, s, z)  y = MatMul(x, w) }", constants) ==
          fused(c.bits, 32, 70, 5, "x, q_blocks, q_scales, q_zeros"));
    const bool is_signed = c.name[0] == 'i';
    CHECK(check(head + "w = DequantizeLinear<axis = 0, block_size = 32>(q, s)  y = MatMul(x, w) }", constants) ==
          fused(c.bits, 32, 70, 5, is_signed ? "x, q_blocks, q_scales" : "x, q_blocks, q_scales, q_zeros"));
  }
}

TEST_CASE("weights that are reshaped, transposed and cast") {
  const Constants constants{{"q", codes(DType::UInt4, {6, 4, 16})},
                            {"s", scales({6, 4, 1})},
                            {"z", codes(DType::UInt4, {6, 4, 1}, 9)},
                            {"n", Tensor::of<std::int64_t>(Shape{2}, {6, 64})}};
  const std::string head =
      "(float[M,64] x, float[6] c, uint4[6,4,16] q, float[6,4,1] s, uint4[6,4,1] z, int64[2] n) => (y) { "
      "d = DequantizeLinear<axis = 2, block_size = 16>(q, s, z)  ";
  const std::string wanted = fused(4, 16, 64, 6, "x, q_blocks, q_scales, q_zeros");
  CHECK(check(head + "r = Reshape(d, n)  w = Transpose<perm = [1,0]>(r)  y = MatMul(x, w) }", constants) == wanted);
  CHECK(check(head + "r = Reshape(d, n)  y = Gemm<transB = 1>(x, r) }", constants) == wanted);
  CHECK(check(head + "r = Reshape(d, n)  y = Gemm<transB = 1>(x, r, c) }", constants) ==
        fused(4, 16, 64, 6, "x, q_blocks, q_scales, q_zeros, \"\", c"));
  // The scale is half as long a float as the product's.
  Constants half = constants;
  const Tensor narrow = Tensor::make(DType::Float16, {6, 4, 1});
  for (std::size_t i = 0; i < 24; ++i) narrow.mutable_data<Float16>()[i] = Float16(constants.at("s").data<float>()[i]);
  half["s"] = narrow;
  std::string text = head;
  text.replace(text.find("float[6,4,1] s"), 14, "float16[6,4,1] s");
  CHECK(check(text + "r = Reshape(d, n)  k = Cast<to = 1>(r)  w = Transpose<perm = [1,0]>(k)  y = MatMul(x, w) }", half,
              true, 2e-3) == wanted);
}

TEST_CASE("one scale, and one for each column") {
  const Constants constants{{"q", codes(DType::Int4, {40, 6})},
                            {"p", codes(DType::Int4, {6, 40})},
                            {"s", scales({})},
                            {"each", scales({6})},
                            {"rows", scales({40})},
                            {"b", codes(DType::Int8, {40, 6})}};
  const std::string head =
      "(float[M,40] x, int4[40,6] q, int4[6,40] p, int8[40,6] b, float s, float[6] each, float[40] rows) => (y) { ";
  const auto wanted = [](const std::string& q) {
    return fused(4, 32, 40, 6, cat("x, ", q, "_blocks, ", q, "_scales"));
  };
  CHECK(check(head + "w = DequantizeLinear(q, s)  y = MatMul(x, w) }", constants) == wanted("q"));
  CHECK(check(head + "w = DequantizeLinear(q, each)  y = MatMul(x, w) }", constants) == wanted("q"));
  CHECK(check(head + "w = DequantizeLinear<axis = 0>(p, each)  y = Gemm<transB = 1>(x, w) }", constants) ==
        wanted("p"));
  // One for each row; 8 bits, for which FusedMatMul is there.
  CHECK(check(head + "w = DequantizeLinear<axis = 0>(q, rows)  y = MatMul(x, w) }", constants).find("NBits") ==
        std::string::npos);
  CHECK(check(head + "w = DequantizeLinear(b, s)  y = MatMul(x, w) }", constants).find("NBits") == std::string::npos);
}

TEST_CASE("products that share weights go on sharing them, and so do other readers") {
  const Constants constants{{"q", codes(DType::UInt4, {32, 4})}, {"s", scales({2, 4})}};
  const std::string head =
      "(float[M,32] x, uint4[32,4] q, float[2,4] s) => (y) { w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  ";
  const std::string two = check(head + "u = MatMul(x, w)  n = Neg(x)  v = MatMul(n, w)  y = Sub(u, v) }", constants);
  CHECK(two.find("MatMul (") == std::string::npos);
  CHECK(two.find("(x, q_blocks, q_scales, q_zeros)") != std::string::npos);
  CHECK(two.find("(n, q_blocks, q_scales, q_zeros)") != std::string::npos);
  const std::string other = check(head + "u = MatMul(x, w)  v = ReduceSum(w)  y = Sub(u, v) }", constants);
  CHECK(other.find("NBits") != std::string::npos);
  CHECK(other.find("DequantizeLinear") != std::string::npos);
}

TEST_CASE("level extended does so unasked, level basic does not") {
  const Constants constants{{"q", codes(DType::UInt4, {32, 4})}, {"s", scales({2, 4})}};
  const std::string text =
      "(float[M,32] x, uint4[32,4] q, float[2,4] s) => (y) { w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  "
      "y = MatMul(x, w) }";
  CHECK(check(text, constants, false) == fused(4, 16, 32, 4, "x, q_blocks, q_scales, q_zeros"));
  graph::Model model = model_of(text, constants, 25);
  passes::run_basic(model, pass_options(1, {"ConstantFolding"}));
  CHECK(nodes(*model.graph).find("NBits") == std::string::npos);
}

TEST_CASE("other products stay") {
  Constants constants{{"q", codes(DType::UInt4, {32, 4})},
                      {"s", scales({2, 4})},
                      {"k", codes(DType::UInt4, {32, 32})},
                      {"t", scales({32, 2})},
                      {"small", scales({4, 4})}};
  const auto stays = [&](const std::string& inputs, const std::string& statements) {
    CHECK(check(cat("(float[M,32] x, uint4[32,4] q, uint4[32,32] k, float[32,2] t, float[4,4] small", inputs,
                    ") => (y) { ", statements, " }"),
                constants)
              .find("NBits") == std::string::npos);
  };
  const std::string s = ", float[2,4] s";
  stays(s, "w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  y = Gemm<alpha = 0.5>(x, w)");
  stays(s + ", float[M,4] c", "w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  y = Gemm(x, w, c)");
  stays(s + ", float[32,M] u", "w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  y = Gemm<transA = 1>(u, w)");
  stays("", "w = DequantizeLinear<axis = 1, block_size = 16>(k, t)  y = MatMul(x, w)");  // blocks along N
  stays("", "w = DequantizeLinear<axis = 0, block_size = 8>(q, small)  y = MatMul(x, w)");
  constants["few"] = codes(DType::UInt4, {3, 4});
  constants["one"] = scales({1, 4});
  stays(", float[M,3] l, uint4[3,4] few, float[1,4] one",
        "w = DequantizeLinear<axis = 0, block_size = 4096>(few, one)  y = MatMul(l, w)");  // blocks of padding
  constants.erase("s");
  stays(s, "w = DequantizeLinear<axis = 0, block_size = 16>(q, s)  y = MatMul(x, w)");  // scales that are fed
}

TEST_CASE("options say how large blocks are where weights have none, and what is said of the input") {
  const auto made = [](std::int64_t k, std::int64_t block, std::int64_t accuracy = 4) {
    const Constants constants{{"q", codes(DType::UInt4, {k, 5})}, {"s", scales({5})}};
    const std::string text = cat("(float[M,", k, "] x, uint4[", k, ",5] q, float[5] s) => (y) { ",
                                 "w = DequantizeLinear<axis = 1>(q, s)  y = MatMul(x, w) }");
    const graph::Model before = model_of(text, constants, 25);
    graph::Model after = model_of(text, constants, 25);
    passes::PassOptions options = pass_options(2, {"ConstantFolding"});
    options.block_size = block;
    options.accuracy_level = accuracy;
    passes::run_basic(after, options);
    passes::run_extended(after, "cpu", options);
    graph::verify(*after.graph);
    const std::vector<Value> inputs = feeds(*before.graph);
    check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), 1e-5);
    const std::string text_after = nodes(*after.graph);
    const std::size_t from = text_after.find("accuracy_level");
    return from == std::string::npos ? text_after : text_after.substr(from, text_after.find('>') - from);
  };
  CHECK(made(64, 32) == "accuracy_level = 4, bits = 4, block_size = 32");
  CHECK(made(64, 128, 0) == "accuracy_level = 0, bits = 4, block_size = 128");
  CHECK(made(100, 16, 1) == "accuracy_level = 1, bits = 4, block_size = 16");
  const std::pair<std::int64_t, std::int64_t> largest[] = {{64, 64}, {100, 16}, {1024, 256}, {48, 16}, {96, 32}};
  for (const auto& [k, block] : largest) CHECK(made(k, 0) == cat("accuracy_level = 4, bits = 4, block_size = ", block));
}
