#include <algorithm>

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

/// The spatial pads of a zero Pad in front of a convolution: begins, then ends. Empty where the Pad does something
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
  if (match.has("o_fill")) {
    const tensor::Tensor* fill = match.constant("o_fill");
    if (fill == nullptr || fill->numel() != 1 || tensor::to_float_scalar(*fill) != 0) return {};
  }
  if (pad.attributes.get_float("value", 0) != 0) return {};
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

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  std::vector<std::int64_t> pads = spatial_pads(match);
  graph::Node conv = match.node(1);
  const auto own = conv.attributes.get_ints("pads");
  for (std::size_t i = 0; i < own.size(); ++i) pads[i] += own[i];
  conv.attributes.set("pads", pads);
  conv.inputs[0] = match.value("x");
  return put(match, patch, std::move(conv));
}

}  // namespace

void register_pad_conv(FusionRegistry& registry) {
  registry.add({"PadFusion", 1,
                "(x, o_pads, o_fill, w, o_b) => (y) { t = Pad(x, o_pads, o_fill)  y = Conv(t, w, o_b) }", guard,
                replace});
}

}  // namespace infernode::fusions
