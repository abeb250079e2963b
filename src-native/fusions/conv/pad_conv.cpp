#include <algorithm>
#include <limits>
#include <string>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

constexpr const char* kAveragePool = "AveragePool";

/// What a Pad in front of a window fills in: zero for a convolution or a mean, what never is the largest for a maximum.
bool fits(const graph::Node& window, float fill) {
  return window.op_type == kMaxPool ? fill <= std::numeric_limits<float>::lowest() : fill == 0;
}

/// Pads of some axes as those of all; empty where that is not known.
std::vector<std::int64_t> all_axes(const Match& match, const std::vector<std::int64_t>& pads) {
  const tensor::Tensor* given = match.constant("o_axes");
  const auto rank = rank_of(match.type("x"));
  if (given == nullptr || !rank || pads.size() != 2 * static_cast<std::size_t>(given->numel())) return {};
  std::vector<std::int64_t> out(2 * *rank, 0);
  std::size_t i = 0;
  for (std::int64_t axis : tensor::to_int64_vector(*given)) {
    if (axis < 0) axis += static_cast<std::int64_t>(*rank);
    if (axis < 0 || axis >= static_cast<std::int64_t>(*rank)) return {};
    out[static_cast<std::size_t>(axis)] = pads[i];
    out[*rank + static_cast<std::size_t>(axis)] = pads[pads.size() / 2 + i++];
  }
  return out;
}

/// The spatial pads of a Pad in front of a convolution or pool: begins, then ends. Empty where the Pad does something
/// else.
std::vector<std::int64_t> spatial_pads(const Match& match) {
  const graph::Node &pad = match.node(0), &conv = match.node(1);
  if (pad.attributes.get_string("mode", "constant") != "constant") return {};
  if (conv.attributes.get_string("auto_pad", "NOTSET") != "NOTSET") return {};
  std::vector<std::int64_t> pads = pad.attributes.get_ints("pads");
  if (match.has("o_pads")) {
    const tensor::Tensor* given = match.constant("o_pads");
    if (given == nullptr) return {};
    pads = tensor::to_int64_vector(*given);
  }
  float value = pad.attributes.get_float("value", 0);
  if (match.has("o_fill")) {
    const tensor::Tensor* fill = match.constant("o_fill");
    if (fill == nullptr || fill->numel() != 1) return {};
    value = tensor::to_float_scalar(*fill);
  }
  if (!fits(conv, value)) return {};
  if (match.has("o_axes")) pads = all_axes(match, pads);
  const std::size_t rank = pads.size() / 2;
  if (rank < 3 || pads.size() % 2 != 0) return {};
  if (std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p < 0; })) return {};
  if (pads[0] != 0 || pads[1] != 0 || pads[rank] != 0 || pads[rank + 1] != 0) return {};
  std::vector<std::int64_t> out(pads.begin() + 2, pads.begin() + static_cast<std::ptrdiff_t>(rank));
  out.insert(out.end(), pads.begin() + static_cast<std::ptrdiff_t>(rank) + 2, pads.end());
  return out;
}

bool guard(const Match& match) {
  const auto pads = spatial_pads(match);
  const auto own = match.node(1).attributes.get_ints("pads");
  return !pads.empty() && (own.empty() || own.size() == pads.size());
}

/// Pads count as elements of a mean afterwards as before; windows that a pool adds at the end may lie in one kind of
/// pad only.
bool guard_pool(const Match& match) {
  const graph::Node& pool = match.node(1);
  if (!is_float(match.type("x")) || pool.outputs.size() > 1 || pool.attributes.get_int("ceil_mode", 0) != 0)
    return false;
  const auto own = pool.attributes.get_ints("pads"), kernel = pool.attributes.get_ints("kernel_shape");
  const bool padded = std::any_of(own.begin(), own.end(), [](std::int64_t p) { return p != 0; });
  if (padded && pool.op_type == kAveragePool && pool.attributes.get_int("count_include_pad", 0) == 0) return false;
  // count_include_pad came with version 7, and a window must not lie in pads only.
  if (pool.op_type == kAveragePool && pool.opset < 7) return false;
  if (!guard(match)) return false;
  const auto pads = spatial_pads(match);
  for (std::size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] + (own.empty() ? 0 : own[i]) >= kernel.at(i % kernel.size())) return false;
  }
  return true;
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  std::vector<std::int64_t> pads = spatial_pads(match);
  graph::Node conv = match.node(1);
  const auto own = conv.attributes.get_ints("pads");
  for (std::size_t i = 0; i < own.size(); ++i) pads[i] += own[i];
  conv.attributes.set("pads", pads);
  conv.inputs[0] = match.value("x");
  if (conv.op_type == kAveragePool) conv.attributes.set("count_include_pad", std::int64_t{1});
  return put(match, patch, std::move(conv));
}

}  // namespace

void register_pad_conv(FusionRegistry& registry) {
  registry.describe({"PadFusion"}, "a Pad with zeros goes into the pads of a Conv or pool",
                    "another mode or value, automatic pads");
  const std::string pad = "{ t = Pad(x, o_pads, o_fill, o_axes)  y = ";
  registry.add(
      {"PadFusion", 1, "(x, o_pads, o_fill, o_axes, w, o_b) => (y) " + pad + "Conv(t, w, o_b) }", guard, replace});
  for (const std::string pool : {kMaxPool, kAveragePool}) {
    registry.add({"PadFusion", 1, "(x, o_pads, o_fill, o_axes) => (y) " + pad + pool + "(t) }", guard_pool, replace});
  }
}

}  // namespace infernode::fusions
