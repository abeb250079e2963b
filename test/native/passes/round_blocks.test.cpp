// Blocks between convolutions are kept as bfloat16 where all that read and make them take that.
#include "base/cpu_features.h"
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// A constant of noise, in text form.
std::string weight(const char* name, const Shape& shape, std::uint32_t seed) {
  std::string out = cat("float[");
  for (std::size_t i = 0; i < shape.rank(); ++i) out += cat(i == 0 ? "" : ",", shape[i]);
  out += cat("] ", name, " = {");
  const Tensor values = noise(DType::Float32, shape, seed);
  for (std::int64_t i = 0; i < values.numel(); ++i) out += cat(i == 0 ? "" : ", ", values.data<float>()[i]);
  return out + "}";
}

const std::string kFirst = weight("e", {32, 3, 3, 3}, 1), kDepthwise = weight("d", {32, 1, 3, 3}, 2),
                  kSquare = weight("p", {32, 32, 1, 1}, 3), kJoined = weight("j", {32, 64, 1, 1}, 4);

/// What the layout passes make of a model on a CPU that multiplies bfloat16; empty where this one does not.
std::string rounded(const std::string& text,
                    microkernels::Float32Precision precision = microkernels::Float32Precision::kMedium) {
  if (detect_cpu_rung() < CpuRung::Bf16) {
    MESSAGE("not run: this CPU does not multiply bfloat16 by vectors");
    return {};
  }
  graph::Model model = parse(text, 17);
  passes::PassOptions options = pass_options(99);
  options.kernels = &microkernels::kernel_set(CpuRung::Bf16, precision);
  passes::run_layout(model, options);
  graph::verify(*model.graph);
  for (const graph::ValueInfo& value : model.graph->values()) {
    const bool narrow = value.name.find("_bfloat16") != std::string::npos;
    CHECK((value.type.elem == DType::BFloat16) == narrow);
  }
  return nodes(*model.graph);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("blocks of a chain of convolutions are bfloat16, its ends are not") {
  const std::string chain = cat("(float[N,3,30,30] x) => (y) <", kFirst, ", ", kDepthwise, ", ", kSquare,
                                "> { t = Conv<strides = [2,2], pads = [1,1,1,1]>(x, e) "
                                "u = Conv<group = 32, pads = [1,1,1,1]>(t, d)  y = Conv(u, p) }");
  const std::string made = rounded(chain);
  if (made.empty()) return;
  CHECK(
      made ==
      "t_blocked_bfloat16 = infernode.BlockedConv <pads = [1, 1, 1, 1], strides = [2, 2], to = 16> (x, e)\n"
      "u_blocked_bfloat16 = infernode.BlockedConv <group = 32, pads = [1, 1, 1, 1], to = 16> (t_blocked_bfloat16, d)\n"
      "y_blocked_bfloat16 = infernode.BlockedConv <to = 16> (u_blocked_bfloat16, p)\n"
      "y = infernode.UnblockChannels <channels = 32> (y_blocked_bfloat16)");
  for (const auto precision : {microkernels::Float32Precision::kHighest, microkernels::Float32Precision::kHigh})
    CHECK_FALSE(has(rounded(chain, precision), "bfloat16"));
}

TEST_CASE("pools, sums and joined channels take bfloat16 together") {
  const std::string made =
      rounded(cat("(float[1,3,40,40] x) => (y) <", kFirst, ", ", kDepthwise, ", ", kSquare, ", ", kJoined,
                  "> { t = Conv<pads = [1,1,1,1]>(x, e) "
                  "m = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,0,1,2]>(t)  u = Conv(m, p) "
                  "v = Add(u, m)  c = Concat<axis = 1>(v, u)  y = Conv(c, j) }"));
  if (made.empty()) return;
  CAPTURE(made);
  CHECK(has(made,
            "m_blocked_bfloat16 = MaxPool <kernel_shape = [3, 3, 1], pads = [1, 0, 0, 1, 2, 0], "
            "strides = [2, 2, 1]> (t_blocked_bfloat16)"));
  CHECK(has(made, "v_blocked_bfloat16 = Add (u_blocked_bfloat16, m_blocked_bfloat16)"));
  CHECK(has(made, "c_blocked_bfloat16 = Concat <axis = 1> (v_blocked_bfloat16, u_blocked_bfloat16)"));
}

TEST_CASE("what any other operator reads stays float32, and what must be like it") {
  const std::string made =
      rounded(cat("(float[1,3,40,40] x) => (y) <", kFirst, ", ", kDepthwise, ", ", kSquare,
                  "> { t = Conv<pads = [1,1,1,1]>(x, e)  u = Conv<group = 32, pads = [1,1,1,1]>(t, d) "
                  "s = Tanh(u)  v = Conv(s, p)  y = Conv(v, p) }"));
  if (made.empty()) return;
  CAPTURE(made);
  CHECK(has(made, "t_blocked = infernode.BlockedConv"));  // the depthwise one makes float32 for Tanh
  CHECK(has(made, "u_blocked = infernode.BlockedConv"));
  CHECK(has(made, "s_blocked = Tanh (u_blocked)"));
  CHECK(has(made, "v_blocked_bfloat16 = infernode.BlockedConv <to = 16> (s_blocked, p)"));
}
