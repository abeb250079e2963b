// Passes and fusions know operators by their traits: one that is registered here, and nowhere else, is optimized like
// those of ops/.
#include "fusions/graph_test.h"
#include "kernel/registry.h"
#include "passes/fusions.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// max(x, 0) by another name.
class Ramp final : public kernel::Kernel {
 public:
  explicit Ramp(kernel::KernelInfo&) {}
  void run(kernel::KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const Tensor out = ctx.output(0, in.shape());
    for (std::int64_t i = 0; i < in.numel(); ++i) out.mutable_data<float>()[i] = std::max(in.data<float>()[i], 0.0f);
  }
};

/// x + y by another name.
class Plus final : public kernel::Kernel {
 public:
  explicit Plus(kernel::KernelInfo&) {}
  void run(kernel::KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    const Tensor out = ctx.output(0, a.shape());
    for (std::int64_t i = 0; i < a.numel(); ++i)
      out.mutable_data<float>()[i] = a.data<float>()[i] + b.data<float>()[b.numel() == 1 ? 0 : i];
  }
};

/// All operators, and those.
const kernel::Registry& more_operators() {
  static const kernel::Registry all = [] {
    kernel::Registry out = registry();
    kernel::OpRegistrar r(out);
    r.op("Ramp")
        .version(1, "X:T -> Y:T; T = float")
        .infer(kernel::infer_same_as_first)
        .kernel<Ramp>()
        .elementwise()
        .bounds([](const kernel::NodeConstants&) { return std::optional(kernel::Bounds{.low = 0}); })
        .activation([](const kernel::NodeConstants&) { return std::optional(kernel::FusedActivation{"Relu"}); });
    r.op("Ramp", "com.example")
        .version(1, "X:T -> Y:T; T = float")
        .infer(kernel::infer_same_as_first)
        .kernel<Ramp>()
        .elementwise();
    r.op("Plus")
        .version(1, "X:T, Y:T -> Z:T; T = float")
        .infer(kernel::infer_same_as_first)
        .kernel<Plus>()
        .broadcasts()
        .commutative()
        .neutral(0);
    return out;
  }();
  return all;
}

/// The nodes that are left at a level; the answers stay.
std::string optimized(std::string_view text, int level) {
  CAPTURE(text);
  const auto load = [&] {
    graph::Model model = graph::parse_model(text, 17);
    kernel::infer_graph(*model.graph, more_operators());
    return model;
  };
  const graph::Model before = load();
  graph::Model after = load();
  passes::PassOptions options = pass_options(level);
  options.registry = &more_operators();
  options.kernels = &microkernels::kernel_set({});
  passes::run_basic(after, options);
  if (level >= 2) passes::run_extended(after, "", options);
  if (level >= 3) passes::run_layout(after, options);
  graph::verify(*after.graph);
  const auto run = [](const graph::Graph& graph, const std::vector<Value>& inputs) {
    kernel::RunContext run;
    run.allocator = &tensor::host_allocator();
    return kernel::evaluate_graph(graph, inputs, {}, more_operators(), run);
  };
  const std::vector<Value> inputs = feeds(*before.graph);
  check_same(run(*after.graph, inputs), run(*before.graph, inputs));
  return nodes(*after.graph);
}

}  // namespace

TEST_CASE("an operator that says that it is elementwise lets transposes through") {
  CHECK(optimized("(float[2,3,4] x) => (y) { t = Transpose<perm = [2,0,1]>(x)  u = Ramp(t) "
                  "y = Transpose<perm = [1,2,0]>(u) }",
                  1) == "y = Ramp (x)");
  CHECK(optimized("(float[2,3] x, float[3,2] z) => (y) { t = Transpose(x)  u = Plus(t, z)  v = Ramp(u) "
                  "w = Transpose(v)  k = Transpose(z)  y = Mul(w, k) }",
                  1) == "k = Transpose (z)\nu_turned = Plus (x, k)\nv_turned = Ramp (u_turned)\ny = Mul (v_turned, k)");
}

TEST_CASE("so does one of a domain that nobody else knows") {
  CHECK(optimized("(float[2,3,4] x) => (y) { t = Transpose<perm = [2,0,1]>(x)  u = com.example.Ramp(t) "
                  "y = Transpose<perm = [1,2,0]>(u) }",
                  1) == "y = com.example.Ramp (x)");
  CHECK(optimized("(float[2,3,4] x) => (y, z) { t = Transpose<perm = [2,0,1]>(x)  u = com.example.Ramp(t) "
                  "y = Transpose<perm = [1,2,0]>(u)  z = Abs(u) }",
                  1) == "y = com.example.Ramp (x)\nu = Transpose <perm = [2, 0, 1]> (y)\nz = Abs (u)");
}

TEST_CASE("an elementwise operator of any domain leaves channels in their blocks") {
  const auto weight = [](const char* name, std::int64_t in, std::int64_t kernel) {
    std::string out = cat("float[32,", in, ",", kernel, ",", kernel, "] ", name, " = {");
    for (std::int64_t i = 0; i < 32 * in * kernel * kernel; ++i)
      out += cat(i == 0 ? "" : ", ", (i * 7 % 11 - 5) * 0.0625);
    return out + "}";
  };
  const std::string made = optimized(cat("(float[1,32,24,24] x) => (y) <", weight("v", 32, 3), ", ", weight("w", 32, 3),
                                         "> { t = Conv<pads = [1,1,1,1]>(x, v)  r = com.example.Ramp(t) "
                                         "y = Conv<pads = [1,1,1,1]>(r, w) }"),
                                     3);
  CAPTURE(made);
  CHECK(made.find("r_blocked = com.example.Ramp (t_blocked)") != std::string::npos);
}

TEST_CASE("an activation joins convolutions and products") {
  CHECK(optimized("(float[1,2,5] x, float[3,2,1] w) => (y) { t = Conv(x, w)  y = Ramp(t) }", 2) ==
        "y = com.microsoft.FusedConv <activation = \"Relu\"> (x, w)");
  CHECK(optimized("(float[4,2] x, float[2,3] w) => (y) { t = MatMul(x, w)  y = Ramp(t) }", 2) ==
        "y = infernode.FusedMatMul <activation = \"Relu\"> (x, w)");
}

TEST_CASE("a neutral operand goes, and operands that may change places do so in patterns") {
  CHECK(optimized("(float[2,3] x) => (y) <float z = {0}> { t = Ramp(x)  u = Plus(t, z)  y = Abs(u) }", 1) ==
        "t = Ramp (x)\ny = Abs (t)");
  CHECK(optimized("(float[2,3] x, float[2,3] w) => (y) { t = Ramp(x)  y = Plus(t, w) }", 1) ==
        "t = Ramp (x)\ny = Plus (t, w)");
}

TEST_CASE("what cuts off before codes do goes with them") {
  CHECK(optimized("(uint8[1,3,4,4] q) => (y) <float s = {0.5}, uint8 z = {0}> { x = DequantizeLinear(q, s, z) "
                  "t = Sigmoid(x)  u = Ramp(t)  y = QuantizeLinear(u, s, z) }",
                  2) == "y = com.microsoft.QLinearSigmoid (q, s, z, s, z)");
}
