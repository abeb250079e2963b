#include <cmath>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

constexpr double kSqrt2 = 1.41421356237309504880;
constexpr double kSqrt2OverPi = 0.79788456080286535588;
/// The standard has Gelu from this version on.
constexpr std::int64_t kStandard = 20;

bool is_half(const Match& match) { return is_float(match.type("x")) && is_scalar(match, "c_half", "x", 0.5); }

/// x / 2 * (1 + erf(x / sqrt 2)).
bool guard_erf(const Match& match) {
  const bool divided = match.node(0).op_type == kDiv;
  return is_half(match) && is_scalar(match, "c_root", "x", divided ? kSqrt2 : 1 / kSqrt2) &&
         is_scalar(match, "c_one", "x", 1);
}

bool guard_standard(const Match& match) { return match.last().opset >= kStandard && guard_erf(match); }

/// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))).
bool guard_tanh(const Match& match) {
  return is_half(match) && is_scalar(match, "c_root", "x", kSqrt2OverPi) && is_scalar(match, "c_one", "x", 1) &&
         is_scalar(match, "c_cubic", "x", 0.044715);
}
bool guard_tanh_power(const Match& match) { return guard_tanh(match) && is_scalar(match, "c_three", "x", 3); }
/// x / 2 * (1 + tanh(sqrt(2 / pi) * x * (1 + 0.044715 * x^2))): the powers by products.
bool guard_tanh_product(const Match& match) { return guard_tanh(match) && is_scalar(match, "c_unit", "x", 1); }

std::vector<graph::ValueId> replace_erf(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, make_node(match, kMicrosoft, "Gelu", {match.value("x")}));
}

std::vector<graph::ValueId> replace_standard(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, make_node(match, "", "Gelu", {match.value("x")}));
}

std::vector<graph::ValueId> replace_tanh(const Match& match, graph::GraphPatch& patch) {
  return put(match, patch, make_node(match, kMicrosoft, "FastGelu", {match.value("x")}));
}

}  // namespace

void register_gelu(FusionRegistry& registry) {
  registry.describe({"GeluFusion"},
                    "x / 2 * (1 + erf(x / sqrt 2)) becomes Gelu, before opset 20 that of com.microsoft; level 1 from "
                    "opset 20 on, else level 2",
                    "other constants, or ones that raise the rank; neither float32 nor float16");
  registry.describe({"FastGeluFusion"}, "Gelu by tanh becomes `FastGelu`", "other constants");
  // The three factors x, 1 + f(x) and 1/2 in every order of multiplication.
  const char* products[] = {"u = Mul(x, s)  y = Mul(u, c_half)", "u = Mul(x, c_half)  y = Mul(u, s)",
                            "u = Mul(s, c_half)  y = Mul(x, u)"};
  for (const std::string product : products) {
    for (const std::string scale : {"d = Div(x, c_root)", "d = Mul(x, c_root)"}) {
      const std::string pattern =
          "(x, c_root, c_one, c_half) => (y) { " + scale + "  e = Erf(d)  s = Add(e, c_one)  " + product + " }";
      registry.add({"GeluFusion", 1, pattern, guard_standard, replace_standard});
      registry.add({"GeluFusion", 2, pattern, guard_erf, replace_erf});
    }
    registry.add({"FastGeluFusion", 2,
                  "(x, c_three, c_cubic, c_root, c_one, c_half) => (y) { p = Pow(x, c_three)  q = Mul(p, c_cubic)  "
                  "a = Add(x, q)  d = Mul(a, c_root)  e = Tanh(d)  s = Add(e, c_one)  " +
                      product + " }",
                  guard_tanh_power, replace_tanh});
    registry.add({"FastGeluFusion", 2,
                  "(x, c_cubic, c_unit, c_root, c_one, c_half) => (y) { w = Mul(x, x)  q = Mul(w, c_cubic)  "
                  "a = Add(q, c_unit)  r = Mul(x, c_root)  d = Mul(r, a)  e = Tanh(d)  s = Add(e, c_one)  " +
                      product + " }",
                  guard_tanh_product, replace_tanh});
    registry.add({"FastGeluFusion", 2,
                  "(x, c_cubic, c_root, c_one, c_half) => (y) { w = Mul(x, x)  v = Mul(x, w)  q = Mul(v, c_cubic)  "
                  "a = Add(x, q)  d = Mul(a, c_root)  e = Tanh(d)  s = Add(e, c_one)  " +
                      product + " }",
                  guard_tanh, replace_tanh});
    registry.add({"FastGeluFusion", 2,
                  "(x, c_cubic, c_root, c_one, c_half) => (y) { w = Mul(x, c_cubic)  v = Mul(x, w)  q = Mul(x, v)  "
                  "a = Add(x, q)  d = Mul(a, c_root)  e = Tanh(d)  s = Add(e, c_one)  " +
                      product + " }",
                  guard_tanh, replace_tanh});
  }
}

}  // namespace infernode::fusions
