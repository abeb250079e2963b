// Layer normalization, with and without the mean, from the operators that older exporters write.

#include <algorithm>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// The standard has LayerNormalization from this version on.
constexpr std::int64_t kStandard = 17;

/// First of the axes that a mean runs over, where those are the last ones and are kept; nullopt otherwise.
std::optional<std::int64_t> first_axis(const Match& match, const std::string& name, std::size_t rank) {
  const graph::Node& mean = match.maker(name);
  const std::string input = "o_axes_of_" + name;
  if (mean.attributes.get_int("keepdims", 1) != 1) return std::nullopt;
  std::vector<std::int64_t> axes = mean.attributes.get_ints("axes");
  if (match.has(input)) {
    const tensor::Tensor* given = match.constant(input);
    if (given == nullptr) return std::nullopt;
    axes = tensor::to_int64_vector(*given);
  }
  const auto count = static_cast<std::int64_t>(axes.size()), dims = static_cast<std::int64_t>(rank);
  if (count == 0 || count > dims) return std::nullopt;
  std::vector<bool> reduced(rank, false);
  for (const std::int64_t axis : axes) {
    if (axis < -dims || axis >= dims) return std::nullopt;
    reduced[static_cast<std::size_t>(axis < 0 ? axis + dims : axis)] = true;
  }
  for (std::int64_t i = dims - count; i < dims; ++i) {
    if (!reduced[static_cast<std::size_t>(i)]) return std::nullopt;
  }
  return -count;
}

/// `x`, or what it was cast from inside the match.
graph::ValueId source(const Match& match) {
  const graph::NodeId maker = match.graph().value(match.value("x")).producer;
  const bool inside = std::find(match.nodes().begin(), match.nodes().end(), maker) != match.nodes().end();
  return inside ? match.maker("x").inputs[0] : match.value("x");
}

/// Axis of the normalization, where what is matched is one: both means run over the same last axes and the scale (and
/// the bias) have the shape of those.
std::optional<std::int64_t> axis_of(const Match& match, std::initializer_list<const char*> means,
                                    std::initializer_list<const char*> factors) {
  const graph::ValueType &x = match.type("x"), &from = match.graph().value(source(match)).type;
  if (!is_float(x) || !x.shape || from.elem != match.type("y").elem) return std::nullopt;
  std::optional<std::int64_t> axis;
  for (const char* mean : means) {
    const auto own = first_axis(match, mean, x.shape->size());
    if (!own || (axis && *axis != *own)) return std::nullopt;
    axis = own;
  }
  const graph::SymShape normalized(x.shape->end() + *axis, x.shape->end());
  for (const char* factor : factors) {
    const graph::ValueType& type = match.type(factor);
    if (type.elem != match.type("y").elem || !type.shape || *type.shape != normalized) return std::nullopt;
  }
  return axis;
}

std::optional<std::int64_t> layer_axis(const Match& match) {
  if (!scalar(match, "c_eps", "x")) return std::nullopt;
  return axis_of(match, {"mean", "variance"}, {"scale", "bias"});
}

std::optional<std::int64_t> rms_axis(const Match& match) {
  if (!scalar(match, "c_eps", "x")) return std::nullopt;
  return axis_of(match, {"variance"}, {"scale"});
}

bool squares(const Match& match) { return is_scalar(match, "c_two", "x", 2); }
bool guard_layer(const Match& match) { return layer_axis(match).has_value(); }
bool guard_layer_power(const Match& match) { return guard_layer(match) && squares(match); }
bool guard_standard(const Match& match) { return match.last().opset >= kStandard && guard_layer(match); }
bool guard_standard_power(const Match& match) { return guard_standard(match) && squares(match); }
bool guard_rms(const Match& match) { return rms_axis(match).has_value(); }
bool guard_rms_power(const Match& match) { return guard_rms(match) && squares(match); }
bool guard_rms_inverse(const Match& match) { return guard_rms(match) && is_scalar(match, "c_one", "x", 1); }
bool guard_rms_power_inverse(const Match& match) { return guard_rms_inverse(match) && squares(match); }

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch, const char* op, std::int64_t axis,
                                    std::vector<graph::ValueId> inputs) {
  graph::Node node = make_node(match, "", op, std::move(inputs));
  node.attributes.set("axis", axis);
  node.attributes.set("epsilon", *scalar(match, "c_eps", "x"));
  return put(match, patch, std::move(node));
}

std::vector<graph::ValueId> replace_layer(const Match& match, graph::GraphPatch& patch) {
  return replace(match, patch, "LayerNormalization", *layer_axis(match),
                 {source(match), match.value("scale"), match.value("bias")});
}

std::vector<graph::ValueId> replace_rms(const Match& match, graph::GraphPatch& patch) {
  return replace(match, patch, "SimplifiedLayerNormalization", *rms_axis(match), {source(match), match.value("scale")});
}

}  // namespace

void register_layer_norm(FusionRegistry& registry) {
  registry.describe({"LayerNormFusion"}, "LayerNormalization from its parts; level 1 from opset 17 on, else level 2",
                    "the means run over other than the same last axes; scale or bias have other dims");
  registry.describe({"SimplifiedLayerNormFusion"},
                    "x / sqrt(mean(x^2) + epsilon) * scale becomes `SimplifiedLayerNormalization`",
                    "the mean runs over other than the last axes");
  struct Casts {
    std::string input, before, after;  // free value, its cast, the result's cast
    std::string normal;                // what is multiplied by the scale
  };
  const Casts casts[] = {{"x", "", "", "n"}, {"w", "x = Cast(w)  ", "  k = Cast(n)", "k"}};
  for (const Casts& cast : casts) {
    const std::string inputs = "(" + cast.input + ", o_axes_of_variance, c_eps, scale";
    const std::string root = "variance = ReduceMean(p, o_axes_of_variance)  e = Add(variance, c_eps)  s = Sqrt(e)  ";
    const std::string scaled = cast.after + "  ";
    for (const bool power : {true, false}) {
      const std::string two = power ? ", c_two" : "";
      const auto square = [power](const std::string& v) {
        return "p = " + (power ? "Pow(" + v + ", c_two)  " : "Mul(" + v + ", " + v + ")  ");
      };
      const std::string layer = inputs + ", o_axes_of_mean, bias" + two + ") => (y) { " + cast.before +
                                "mean = ReduceMean(x, o_axes_of_mean)  d = Sub(x, mean)  " + square("d") + root +
                                "n = Div(d, s)" + scaled + "m = Mul(" + cast.normal + ", scale)  y = Add(m, bias) }";
      registry.add({"LayerNormFusion", 1, layer, power ? guard_standard_power : guard_standard, replace_layer});
      registry.add({"LayerNormFusion", 2, layer, power ? guard_layer_power : guard_layer, replace_layer});
      const std::string rms = ") => (y) { " + cast.before + square("x") + root;
      const std::string end = scaled + "y = Mul(" + cast.normal + ", scale) }";
      registry.add({"SimplifiedLayerNormFusion", 2, inputs + two + rms + "n = Div(x, s)" + end,
                    power ? guard_rms_power : guard_rms, replace_rms});
      registry.add({"SimplifiedLayerNormFusion", 2, inputs + two + rms + "r = Reciprocal(s)  n = Mul(x, r)" + end,
                    power ? guard_rms_power : guard_rms, replace_rms});
      registry.add({"SimplifiedLayerNormFusion", 2,
                    inputs + two + ", c_one" + rms + "r = Div(c_one, s)  n = Mul(x, r)" + end,
                    power ? guard_rms_power_inverse : guard_rms_inverse, replace_rms});
    }
  }
}

}  // namespace infernode::fusions
