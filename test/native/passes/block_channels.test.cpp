// Convolutions work on channels in blocks where that pays.
#include "base/cpu_features.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Whether this CPU runs the loops of a rung, which the layout pass asks what they can; says so where it does not.
bool runs(CpuRung rung) {
  if (rung <= detect_cpu_rung()) return true;
  MESSAGE("not run: this CPU lacks ", std::string(to_string(rung)));
  return false;
}

/// What the layout pass makes of a model; the answers stay.
std::string blocked(const std::string& text, std::int64_t opset = 17, CpuRung rung = {},
                    const std::map<std::string, std::int64_t>& symbols = {}) {
  CAPTURE(text);
  const graph::Model before = parse(text, opset);
  graph::Model after = parse(text, opset);
  passes::PassOptions options = pass_options(99);
  options.kernels = &microkernels::kernel_set(rung);
  passes::run_layout(after, options);
  graph::verify(*after.graph);
  const std::vector<Value> inputs = feeds(*before.graph, symbols);
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs), 1e-5);
  return nodes(*after.graph);
}

/// A constant of noise, in text form.
std::string weight(const char* name, const Shape& shape, std::uint32_t seed) {
  std::string out = cat("float[");
  for (std::size_t i = 0; i < shape.rank(); ++i) out += cat(i == 0 ? "" : ",", shape[i]);
  out += cat("] ", name, " = {");
  const Tensor values = noise(DType::Float32, shape, seed);
  for (std::int64_t i = 0; i < values.numel(); ++i) out += cat(i == 0 ? "" : ", ", values.data<float>()[i]);
  return out + "}";
}

const std::string kExpand = weight("e", {32, 3, 3, 3}, 1), kDepthwise = weight("d", {32, 1, 3, 3}, 2),
                  kProject = weight("p", {32, 32, 1, 1}, 3), kBias = weight("b", {32}, 4);

}  // namespace

TEST_CASE("a chain of convolutions works on blocks from end to end") {
  const std::string chain = cat("(float[N,3,30,30] x) => (y) <", kExpand, ", ", kDepthwise, ", ", kProject, ", ", kBias,
                                "> { t = Conv<strides = [2,2], pads = [1,1,1,1]>(x, e, b)  r = Relu(t) "
                                "u = Conv<group = 32, pads = [1,1,1,1]>(r, d)  s = Sigmoid(u)  y = Conv(s, p) }");
  CHECK(blocked(chain) ==
        "t_blocked = infernode.BlockedConv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, e, b)\n"
        "r_blocked = Relu (t_blocked)\n"
        "u_blocked = infernode.BlockedConv <group = 32, pads = [1, 1, 1, 1]> (r_blocked, d)\n"
        "s_blocked = Sigmoid (u_blocked)\n"
        "y_blocked = infernode.BlockedConv (s_blocked, p)\n"
        "y = infernode.UnblockChannels <channels = 32> (y_blocked)");
}

TEST_CASE("rows that may be too long for pairs of bfloat16 numbers are multiplied in float32") {
  if (!runs(CpuRung::Bf16)) return;
  const auto made = [](const std::string& width) {
    graph::Model model = parse(cat("(float[N,32,30,", width, "] x) => (y) <", weight("w", {32, 32, 3, 3}, 1),
                                   "> { y = Conv<pads = [1,1,1,1]>(x, w) }"),
                               17);
    passes::PassOptions options = pass_options(99);
    options.kernels = &microkernels::kernel_set(CpuRung::Bf16, microkernels::Float32Precision::kMedium);
    passes::run_layout(model, options);
    return nodes(*model.graph);
  };
  CHECK(made("30").find("BlockedConv <pads = [1, 1, 1, 1], to = 16>") != std::string::npos);
  for (const char* width : {"W", "60000"}) {
    const std::string all = made(width);
    CAPTURE(all);
    CHECK((all.find("exact = 1") != std::string::npos || all.find("BlockedConv") == std::string::npos));
  }
  CHECK(made("W").find("exact = 1") != std::string::npos);
}

TEST_CASE("the matrix unit gets no convolution into few channels") {
  if (!runs(CpuRung::Amx)) return;
  const auto made = [](std::int64_t channels) {
    graph::Model model =
        parse(cat("(float[1,32,40,40] x) => (y) <", weight("w", {channels, 32, 3, 3}, 1), "> { y = Conv(x, w) }"), 17);
    passes::PassOptions options = pass_options(99);
    options.kernels = &microkernels::kernel_set(CpuRung::Amx);
    passes::run_layout(model, options);
    return nodes(*model.graph).find("BlockedConv") != std::string::npos;
  };
  CHECK(made(32));
  CHECK_FALSE(made(8));
  CHECK_FALSE(made(1));
}

TEST_CASE("sizes may be symbols, of which residuals and readers must agree") {
  const std::string text =
      cat("(float[N,3,H,W] x) => (y, z) <", kExpand, ", ", kDepthwise, ", ", kProject,
          "> { t = Conv<strides = [2,2], pads = [1,1,1,1]>(x, e)  u = Conv<group = 32, pads = [1,1,1,1]>(t, d) "
          "v = Conv(u, p)  s = Add(v, t)  y = Conv<group = 32>(s, d)  m = GlobalAveragePool(y)  z = Mul(y, m) }");
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{9, 11}, {40, 7}, {5, 5}}) {
    const std::string made = blocked(text, 17, {}, {{"N", 2}, {"H", height}, {"W", width}});
    CAPTURE(made);
    CHECK(made.find("t_blocked = infernode.BlockedConv") != std::string::npos);
    CHECK(made.find("s_blocked = Add (v_blocked, t_blocked)") != std::string::npos);
  }
}

TEST_CASE("what is squeezed out of blocks is multiplied with them") {
  const std::string squeeze = cat("(float[1,3,40,40] x) => (y) <", kExpand, ", ", kDepthwise, ", ", kProject, ", ",
                                  weight("q", {32, 32, 1, 1}, 5),
                                  "> { t = Conv<pads = [1,1,1,1]>(x, e) "
                                  "u = Conv<group = 32, pads = [1,1,1,1], strides = [2,2]>(t, d) "
                                  "m = GlobalAveragePool(u)  k = Conv(m, q)  s = Mul(u, k)  y = Conv(s, p) }");
  for (const std::int64_t opset : {13, 18}) {
    const std::string made = blocked(squeeze, opset);
    CAPTURE(made);
    CHECK(made.find("ReduceMean") != std::string::npos);
    CHECK(made.find("m = infernode.UnblockChannels <channels = 32> (m_blocked)") != std::string::npos);
    CHECK(made.find("k = Conv (m, q)") != std::string::npos);
    CHECK(made.find("k_blocked = infernode.BlockChannels (k)") != std::string::npos);
    CHECK(made.find("s_blocked = Mul (u_blocked, k_blocked)") != std::string::npos);
  }
}

TEST_CASE("windows of 3x3 between others stay in blocks") {
  const std::string made =
      blocked(cat("(float[1,32,24,24] x) => (y) <", kProject, ", ", weight("w", {32, 32, 3, 3}, 7), ", ",
                  weight("d", {32, 1, 3, 3}, 2), ", ", kBias,
                  "> { t = Conv<group = 32, pads = [1,1,1,1]>(x, d)  u = Conv<pads = [1,1,1,1]>(t, w, b) "
                  "v = Relu(u)  y = Conv(v, p) }"));
  CAPTURE(made);
  CHECK(made.find("u_blocked = infernode.BlockedConv <pads = [1, 1, 1, 1]> (t_blocked, w, b)") != std::string::npos);
  CHECK(made.find("y_blocked = infernode.BlockedConv (v_blocked, p)") != std::string::npos);
}

TEST_CASE("a mean over the batch, too, reads no blocks") {
  for (const auto& [axes, reads_blocks] : {std::pair("[2,3]", true), std::pair("[0,2,3]", false)}) {
    const std::string made = blocked(cat("(float[3,3,40,40] x) => (y) <", kExpand, ", ", kDepthwise, ", ", kProject,
                                         "> { t = Conv<pads = [1,1,1,1]>(x, e) "
                                         "u = Conv<group = 32, pads = [1,1,1,1], strides = [2,2]>(t, d) "
                                         "v = Conv(u, p)  y = ReduceMean<axes = ",
                                         axes, ">(v) }"));
    CAPTURE(made);
    CHECK(made.find("u_blocked = infernode.BlockedConv") != std::string::npos);
    CHECK((made.find("y_blocked = ReduceMean") != std::string::npos) == reads_blocks);
  }
}

TEST_CASE("residuals and joined channels stay in blocks, other readers get their order") {
  const std::string joined = cat("(float[1,64,20,20] x) => (y, n) <", weight("d", {64, 1, 3, 3}, 2), ", ",
                                 weight("q", {64, 64, 3, 3}, 5), ", ", weight("w", {64, 128, 1, 1}, 6),
                                 "> { t = Conv<group = 64, pads = [1,1,1,1]>(x, d)  u = Conv<pads = [1,1,1,1]>(t, q) "
                                 "v = Add(u, t)  c = Concat<axis = -3>(t, v)  y = Conv(c, w) "
                                 "n = Transpose<perm = [0,2,3,1]>(v) }");
  const std::string made = blocked(joined);
  CAPTURE(made);
  CHECK(made.find("x_blocked = infernode.BlockChannels (x)") != std::string::npos);
  CHECK(made.find("v_blocked = Add (u_blocked, t_blocked)") != std::string::npos);
  CHECK(made.find("c_blocked = Concat <axis = 1> (t_blocked, v_blocked)") != std::string::npos);
  CHECK(made.find("v = infernode.UnblockChannels <channels = 64> (v_blocked)") != std::string::npos);
  CHECK(made.find("n = Transpose <perm = [0, 2, 3, 1]> (v)") != std::string::npos);
}

TEST_CASE("nothing works on blocks where that would not pay or is not known to") {
  const auto unchanged = [](const std::string& text, CpuRung rung = {},
                            const std::map<std::string, std::int64_t>& symbols = {}) {
    CHECK(blocked(text, 17, rung, symbols) == nodes(*parse(text).graph));
  };
  const auto one = [](const char* x, const char* conv, const std::string& weights) {
    return cat("(", x, " x) => (y) <", weights, "> { y = ", conv, " }");
  };
  // Conversions would take longer.
  if (runs(CpuRung::Avx512)) unchanged(one("float[1,32,40,40]", "Conv(x, p)", kProject), CpuRung::Avx512);
  // Sizes are not known, or are those of a vector.
  unchanged(one("float[1,C,30,30]", "Conv<strides = [2,2]>(x, e)", kExpand), {}, {{"C", 3}});
  unchanged(one("float[1,3,5,5]", "Conv<strides = [2,2]>(x, e)", kExpand));
  // Groups of more than one channel.
  unchanged(one("float[1,6,40,40]", "Conv<group = 2>(x, e)", kExpand));
  // Images of one column.
  unchanged(one("float[1,3,8100,1]", "Conv<strides = [2,1], pads = [0,1,0,1]>(x, e)", kExpand));
}

TEST_CASE("pools stay in blocks between convolutions") {
  if (!runs(CpuRung::Avx512)) return;
  const std::string made = blocked(cat("(float[N,3,30,30] x) => (y) <", kExpand, ", ", kProject,
                                       "> { t = Conv<pads = [1,1,1,1]>(x, e)  "
                                       "u = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,0,0]>(t)  "
                                       "y = Conv(u, p) }"),
                                   17, CpuRung::Avx512);
  CHECK(made.find("u_blocked = MaxPool <kernel_shape = [3, 3, 1], pads = [1, 1, 0, 0, 0, 0], strides = [2, 2, 1]> "
                  "(t_blocked)") != std::string::npos);
}
