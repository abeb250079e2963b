// Blocks of pixels to channels and back, spelt as a reshape to six dims, a transpose and a reshape to four.

#include "fusions/rewrite.h"

namespace infernode::fusions {
namespace {

using Axes = std::vector<std::int64_t>;

/// DepthToSpace knows its modes from this version on.
constexpr std::int64_t kHasModes = 11;

const graph::SymShape* dims(const Match& match, const char* name, std::size_t rank) {
  const auto& shape = match.type(name).shape;
  return shape && shape->size() == rank ? &*shape : nullptr;
}

/// Where the six dims have the block's height and width, by the order that the transpose gives them.
struct Form {
  const char* op;
  const char* mode;  ///< nullptr: has none
  Axes perm;
  std::size_t channels, height, width, block_height, block_width;  ///< places in the six dims
};

std::optional<Form> fit(const Match& match) {
  const Form forms[] = {{"DepthToSpace", "DCR", {0, 3, 4, 1, 5, 2}, 3, 4, 5, 1, 2},
                        {"DepthToSpace", "CRD", {0, 1, 4, 2, 5, 3}, 1, 4, 5, 2, 3},
                        {"SpaceToDepth", nullptr, {0, 3, 5, 1, 2, 4}, 1, 2, 4, 3, 5}};
  const Form* form = nullptr;
  for (const Form& candidate : forms) {
    if (candidate.perm == match.maker("t").attributes.get_ints("perm")) form = &candidate;
  }
  const graph::SymShape *x = dims(match, "x", 4), *r = dims(match, "r", 6), *y = dims(match, "y", 4);
  if (form == nullptr || !x || !r || !y || !is_float(match.type("x")) || match.last().opset < kHasModes) return {};
  const auto at = [&](std::size_t place) -> const graph::Dim& { return (*r)[place]; };
  const graph::Dim& block = at(form->block_height);
  if (!block.known() || block.value() < 2 || !(at(form->block_width) == block)) return {};
  const graph::Dim channels = at(form->channels), height = at(form->height), width = at(form->width);
  const bool spreads = form->mode != nullptr;
  const graph::SymShape deep{at(0), channels * block * block, height, width};
  const graph::SymShape wide{at(0), channels, height * block, width * block};
  return *x == (spreads ? deep : wide) && *y == (spreads ? wide : deep) ? std::optional(*form) : std::nullopt;
}

bool guard(const Match& match) { return fit(match).has_value(); }

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  const Form form = *fit(match);
  graph::Node node = make_node(match, "", form.op, {match.value("x")});
  node.attributes.set("blocksize", (*match.type("r").shape)[form.block_height].value());
  if (form.mode != nullptr) node.attributes.set("mode", std::string(form.mode));
  return put(match, patch, std::move(node));
}

}  // namespace

void register_depth_space(FusionRegistry& registry) {
  registry.describe({"DepthToSpaceFusion"}, "sees DepthToSpace and SpaceToDepth in Reshape, Transpose, Reshape",
                    "the permutation is another");
  registry.add({"DepthToSpaceFusion", 1,
                "(x, c_a, c_b) => (y) { r = Reshape(x, c_a)  t = Transpose(r)  y = Reshape(t, c_b) }", guard, replace});
}

}  // namespace infernode::fusions
