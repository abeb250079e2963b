#include "ops/ml/tree_ensemble.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using microkernels::kTreeLanes;
using microkernels::TreeRoot;
using tensor::Tensor;
using tensor::TypeTag;

constexpr std::uint32_t kUnseen = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kSmallTile = 16 << 10;   ///< rows that stay in the first cache together with a tree
constexpr std::size_t kLargeTile = 128 << 10;  ///< trees, and rows, that stay in the second

// Relations between an element and a split, and what Wide::answer adds to them.
constexpr std::uint32_t kBelow = 1, kEqual = 2, kAbove = 4, kNeither = 8, kMemberOf = 16;

/// Distance of each reached node from the leaf nearest below it, kUnseen for others. Throws InvalidModel on a cycle.
std::vector<std::uint32_t> nearest_leaves(const TreeModel& model) {
  constexpr std::uint32_t kOpen = kUnseen - 1;
  std::vector<std::uint32_t> nearest(model.nodes.size(), kUnseen), path;
  for (const std::uint32_t root : model.roots) {
    INFERNODE_CHECK(root < model.nodes.size(), ErrorCode::InvalidModel, "a tree's root is node ", root, " of ",
                    model.nodes.size());
    if (nearest[root] == kUnseen) path.push_back(root);
    while (!path.empty()) {
      const std::uint32_t at = path.back();
      const TreeModel::Node& node = model.nodes[at];
      if (node.mode == TreeMode::Leaf) {
        nearest[at] = 0;
      } else {
        nearest[at] = kOpen;
        bool waits = false;
        for (const std::uint32_t child : {node.on_true, node.on_false}) {
          INFERNODE_CHECK(child < model.nodes.size(), ErrorCode::InvalidModel, "a tree's node leads to node ", child,
                          " of ", model.nodes.size());
          INFERNODE_CHECK(nearest[child] != kOpen, ErrorCode::InvalidModel,
                          "the trees' nodes lead back to where they came from: the ensemble has a cycle");
          if (nearest[child] == kUnseen && !waits) {
            path.push_back(child);
            waits = true;
          }
        }
        if (waits) continue;
        nearest[at] = 1 + std::min(nearest[node.on_true], nearest[node.on_false]);
      }
      path.pop_back();
    }
  }
  return nearest;
}

/// A node whose question is x <= value or x < value.
struct Plain {
  std::uint32_t yes, no;
  bool less, missing_is_yes;
};

/// x > v is the opposite of x <= v for all but NaN, which goes to no in both.
Plain plain_question(const TreeModel::Node& node) {
  const bool turned = node.mode == TreeMode::Gte || node.mode == TreeMode::Gt;
  const bool less = node.mode == TreeMode::Lt || node.mode == TreeMode::Gte;
  if (turned) return {node.on_false, node.on_true, less, !node.missing_is_true};
  return {node.on_true, node.on_false, less, node.missing_is_true};
}

/// The split as T, such that elements of type T compare with it as with the double.
template <class T>
T rounded_split(const TreeModel::Node& node) {
  const T split = static_cast<T>(node.value);
  const double back = static_cast<double>(split);
  constexpr T kTop = std::numeric_limits<T>::infinity();
  switch (node.mode) {
    case TreeMode::Leq:
    case TreeMode::Gt:
      return back > node.value ? std::nextafter(split, -kTop) : split;
    case TreeMode::Lt:
    case TreeMode::Gte:
      return back < node.value ? std::nextafter(split, kTop) : split;
    default:
      return back == node.value ? split : std::numeric_limits<T>::quiet_NaN();
  }
}

std::uint32_t wide_answer(const TreeModel::Node& node, bool split_is_nan) {
  const std::uint32_t missing = node.missing_is_true ? kNeither : 0;
  if (node.mode == TreeMode::Member) return kMemberOf | missing;
  if (node.mode == TreeMode::Neq) return kNeither | kBelow | kAbove | (split_is_nan ? kEqual : 0);
  if (split_is_nan) return missing;
  switch (node.mode) {
    case TreeMode::Leq:
      return kBelow | kEqual | missing;
    case TreeMode::Lt:
      return kBelow | missing;
    case TreeMode::Gte:
      return kAbove | kEqual | missing;
    case TreeMode::Gt:
      return kAbove | missing;
    default:
      return kEqual | missing;
  }
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Deals out places for nodes so that neighbours in a tree share cache lines.
class Places {
 public:
  explicit Places(std::size_t line) : line_(line) {}
  std::size_t left() const { return line_ - next_ % line_; }
  void start_line() { next_ += next_ % line_ == 0 ? 0 : left(); }
  std::size_t take(std::size_t count) { return std::exchange(next_, next_ + count); }
  std::size_t size() const { return next_; }

 private:
  std::size_t line_, next_ = 0;
};

}  // namespace

template <class T>
TreeEnsemble<T>::TreeEnsemble(const TreeModel& model, TreeAggregate aggregate, const microkernels::KernelSet& kernels)
    : aggregate_(aggregate), targets_(model.targets) {
  INFERNODE_CHECK(model.nodes.size() < kUnseen / 4, ErrorCode::InvalidModel, "an ensemble of ", model.nodes.size(),
                  " nodes is too large");
  const std::vector<std::uint32_t> nearest = nearest_leaves(model);
  std::size_t reached = 0;
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    const TreeModel::Node& node = model.nodes[i];
    if (nearest[i] == kUnseen) continue;
    ++reached;
    if (node.mode == TreeMode::Leaf) continue;
    INFERNODE_CHECK(node.feature >= 0 && node.feature < (std::int64_t{1} << 28), ErrorCode::InvalidModel,
                    "a tree's node reads column ", node.feature);
    features_ = std::max(features_, static_cast<std::size_t>(node.feature) + 1);
  }
  for (const TreeModel::Weight& weight : model.weights) {
    INFERNODE_CHECK(weight.target < targets_, ErrorCode::InvalidModel, "a leaf's weight is for target ", weight.target,
                    " of ", targets_);
  }
  for (const std::uint32_t root : model.roots) roots_.push_back({root, nearest[root]});
  lay_out_weights(model, nearest);
  if (!lay_out_lean(model, nearest)) lay_out_wide(model, nearest);
  const auto& table = kernels.trees;
  bool less = false, missing = false;
  for (std::size_t i = 0; wide_.empty() && i < model.nodes.size(); ++i) {
    if (nearest[i] == kUnseen || model.nodes[i].mode == TreeMode::Leaf) continue;
    const Plain question = plain_question(model.nodes[i]);
    less = question.less;
    missing = missing || question.missing_is_yes;
  }
  if constexpr (kFloat) {
    loops_ = table.f32[less][missing];
  } else {
    loops_ = table.f64[less][missing];
  }
  const double per_tree = static_cast<double>(reached) / static_cast<double>(std::max<std::size_t>(1, trees()));
  walk_ns_ = std::log2(per_tree + 1) * (wide_.empty() ? 0.7 : 1.5);
}

template <class T>
void TreeEnsemble<T>::lay_out_weights(const TreeModel& model, std::span<const std::uint32_t> reached) {
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    const TreeModel::Node& node = model.nodes[i];
    if (node.mode != TreeMode::Leaf || reached[i] == kUnseen) continue;
    INFERNODE_CHECK(std::size_t{node.first_weight} + node.weight_count <= model.weights.size(), ErrorCode::Internal,
                    "a leaf's weights are outside the list");
    if (node.weight_count != 1) inline_weights_ = false;
  }
  // The target of each tree, where its leaves agree.
  std::vector<std::uint32_t> owner(model.nodes.size(), kUnseen), path;
  for (std::uint32_t tree = 0; inline_weights_ && tree < model.roots.size(); ++tree) {
    tree_target_.push_back(kUnseen);
    path.assign(1, model.roots[tree]);
    while (!path.empty() && inline_weights_) {
      const std::uint32_t at = path.back();
      path.pop_back();
      // Nodes of two trees could be of two targets.
      if (owner[at] != kUnseen && owner[at] != tree) inline_weights_ = false;
      if (owner[at] != kUnseen) continue;
      owner[at] = tree;
      const TreeModel::Node& node = model.nodes[at];
      if (node.mode != TreeMode::Leaf) {
        path.insert(path.end(), {node.on_true, node.on_false});
        continue;
      }
      const std::uint32_t target = model.weights[node.first_weight].target;
      if (tree_target_[tree] == kUnseen) tree_target_[tree] = target;
      if (tree_target_[tree] != target) inline_weights_ = false;
    }
  }
  if (inline_weights_) {
    spoken_of_.assign(targets_, 0);
    for (const std::uint32_t target : tree_target_) spoken_of_[target] = 1;
    return;
  }
  tree_target_.clear();
  first_.assign(1, 0);
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    const TreeModel::Node& node = model.nodes[i];
    const std::uint32_t count = node.mode == TreeMode::Leaf ? node.weight_count : 0;
    first_.push_back(first_.back() + count);
    if (count == 0) continue;
    const auto from = model.weights.begin() + node.first_weight;
    weights_.insert(weights_.end(), from, from + count);
  }
}

/// False where the nodes do not all ask one question, share children, or are too many for the short fields.
template <class T>
bool TreeEnsemble<T>::lay_out_lean(const TreeModel& model, std::span<const std::uint32_t> reached) {
  constexpr std::size_t kFeatureLimit = Lean::kMissingBit / kTreeLanes - 1;
  using Next = decltype(Lean::next);
  using Feature = decltype(Lean::feature);
  if (features_ > kFeatureLimit) return false;
  std::vector<std::uint8_t> parents(model.nodes.size(), 0);
  const auto lead_to = [&](std::uint32_t node) { return ++parents[node] == 1; };
  for (const std::uint32_t root : model.roots) {
    if (!lead_to(root)) return false;
  }
  int question = -1;
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    const TreeModel::Node& node = model.nodes[i];
    if (reached[i] == kUnseen || node.mode == TreeMode::Leaf) continue;
    if (node.mode > TreeMode::Gt || std::isnan(node.value)) return false;
    const int less = plain_question(node).less ? 1 : 0;
    if (question >= 0 && question != less) return false;
    question = less;
    if (!lead_to(node.on_true) || !lead_to(node.on_false)) return false;
  }

  // A line holds the children of one node and as many below them as fit.
  constexpr std::size_t kLine = kLineBytes / sizeof(Lean);
  Places places(kLine);
  std::vector<std::uint32_t> place(model.nodes.size(), kUnseen), later, line;
  std::vector<Lean> nodes;
  const auto is_leaf = [&](std::uint32_t id) { return model.nodes[id].mode == TreeMode::Leaf; };
  const auto put = [&](std::uint32_t id, std::size_t at) {
    place[id] = static_cast<std::uint32_t>(at);
    nodes.resize(std::max(nodes.size(), at + 1));
    if (is_leaf(id)) nodes[at] = {leaf_threshold(model, id), static_cast<Feature>(features_ * kTreeLanes), 0};
  };
  for (TreeRoot& root : roots_) {
    const std::uint32_t id = root.node;
    if (places.left() < std::min<std::size_t>(kLine, 7)) places.start_line();
    put(id, places.take(1));
    root.node = place[id];
    if (!is_leaf(id)) later.push_back(id);
    while (!later.empty()) {
      line.assign(1, later.back());
      later.pop_back();
      const TreeModel::Node& top = model.nodes[line[0]];
      const std::size_t wanted = is_leaf(top.on_true) && is_leaf(top.on_false) ? 2 : std::min<std::size_t>(kLine, 6);
      if (line[0] != id && places.left() < wanted) places.start_line();
      std::size_t left = std::max<std::size_t>(places.left(), 2);
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (left < 2) {
          later.push_back(line[i]);
          continue;
        }
        left -= 2;
        const TreeModel::Node& node = model.nodes[line[i]];
        const Plain ask = plain_question(node);
        const std::size_t pair = places.take(2), at = place[line[i]];
        if (pair - at > std::numeric_limits<Next>::max()) return false;
        const auto column = static_cast<std::uint32_t>(node.feature) * static_cast<std::uint32_t>(kTreeLanes);
        nodes[at] = {rounded_split<T>(node),
                     static_cast<Feature>(column | (ask.missing_is_yes ? Lean::kMissingBit : 0)),
                     static_cast<Next>(pair - at)};
        put(ask.no, pair);
        put(ask.yes, pair + 1);
        for (const std::uint32_t child : {ask.no, ask.yes}) {
          if (!is_leaf(child)) line.push_back(child);
        }
      }
    }
  }
  node_bytes_ = nodes.size() * sizeof(Lean);
  lean_ = tensor::host_allocator().allocate(node_bytes_);
  std::copy(nodes.begin(), nodes.end(), reinterpret_cast<Lean*>(lean_.data()));
  return true;
}

template <class T>
void TreeEnsemble<T>::lay_out_wide(const TreeModel& model, std::span<const std::uint32_t> reached) {
  for (const std::vector<double>& set : model.members) {
    std::vector<T>& own = members_.emplace_back();
    for (const double value : set) {
      if (static_cast<double>(static_cast<T>(value)) == value) own.push_back(static_cast<T>(value));
    }
    std::sort(own.begin(), own.end());
  }
  for (TreeRoot& root : roots_) root.depth = 0;
  wide_.resize(model.nodes.size());
  for (std::uint32_t i = 0; i < wide_.size(); ++i) {
    const TreeModel::Node& node = model.nodes[i];
    if (reached[i] == kUnseen) continue;
    if (node.mode == TreeMode::Leaf) {
      wide_[i] = {leaf_threshold(model, i), static_cast<std::uint32_t>(features_ * kTreeLanes), 0, {i, i}};
      continue;
    }
    T split = 0;
    if (node.mode == TreeMode::Member) {
      INFERNODE_CHECK(node.value >= 0 && node.value < static_cast<double>(members_.size()), ErrorCode::InvalidModel,
                      "membership_values holds no set for a BRANCH_MEMBER node");
      split = std::bit_cast<T>(static_cast<BitsOf<T>>(node.value));
    } else if (!std::isnan(node.value)) {
      split = rounded_split<T>(node);
    }
    const bool never = node.mode != TreeMode::Member && (std::isnan(node.value) || std::isnan(split));
    if (never) split = 0;
    const auto column = static_cast<std::uint32_t>(node.feature) * static_cast<std::uint32_t>(kTreeLanes);
    wide_[i] = {split, column, wide_answer(node, never), {node.on_false, node.on_true}};
  }
  node_bytes_ = wide_.size() * sizeof(Wide);
}

/// The leaf's one weight, or its index as bits.
template <class T>
T TreeEnsemble<T>::leaf_threshold(const TreeModel& model, std::uint32_t id) const {
  if (!inline_weights_) return std::bit_cast<T>(static_cast<BitsOf<T>>(id));
  return static_cast<T>(model.weights[model.nodes[id].first_weight].value);
}

template <class T>
bool TreeEnsemble<T>::is_member(T set, T value) const {
  const std::vector<T>& members = members_[static_cast<std::size_t>(std::bit_cast<BitsOf<T>>(set))];
  return std::binary_search(members.begin(), members.end(), value);
}

template <class T>
void TreeEnsemble<T>::walk_wide(const T* x, std::size_t apart, std::uint32_t (&at)[kTreeLanes]) const {
  std::uint32_t moved = 1;
  while (moved != 0) {
    moved = 0;
    for (std::size_t l = 0; l < kTreeLanes; ++l) {
      const Wide& node = wide_[at[l]];
      const T value = x[node.feature + l * apart];
      std::uint32_t relation = static_cast<std::uint32_t>(value < node.threshold) * kBelow |
                               static_cast<std::uint32_t>(value == node.threshold) * kEqual |
                               static_cast<std::uint32_t>(value > node.threshold) * kAbove |
                               static_cast<std::uint32_t>(value != value) * kNeither;
      if ((node.answer & kMemberOf) != 0) [[unlikely]] {
        relation = value != value ? kNeither : is_member(node.threshold, value) ? kMemberOf : 0;
      }
      const std::uint32_t next = node.next[(node.answer & relation) != 0 ? 1 : 0];
      moved |= next ^ at[l];
      at[l] = next;
    }
  }
}

/// Rows [begin, begin + count) as groups of columns; the last group is filled up with NaN.
template <class T>
void TreeEnsemble<T>::load_rows(const Tensor& x, std::size_t columns, std::size_t begin, std::size_t count,
                                T* block) const {
  tensor::dispatch<float, double, std::int64_t, std::int32_t, Float16>(
      x.dtype(), "a tree ensemble", [&]<class In>(TypeTag<In>) {
        const In* from = x.data<In>() + begin * columns;
        for (std::size_t group = 0; group * kTreeLanes < count; ++group, block += stride()) {
          std::fill_n(block + features_ * kTreeLanes, kTreeLanes, std::numeric_limits<T>::quiet_NaN());
          for (std::size_t l = 0; l < kTreeLanes; ++l) {
            const std::size_t row = group * kTreeLanes + l;
            for (std::size_t f = 0; f < features_; ++f) {
              block[f * kTreeLanes + l] =
                  row < count ? static_cast<T>(static_cast<tensor::ComputeTypeOf<In>>(from[row * columns + f]))
                              : std::numeric_limits<T>::quiet_NaN();
            }
          }
        }
      });
}

template <class T>
void TreeEnsemble<T>::find_leaves(std::size_t first_tree, std::size_t trees, const T* block, std::size_t groups,
                                  std::uint32_t* leaves) const {
  if (wide_.empty()) return loops_.rows(lean(), roots_.data() + first_tree, trees, block, stride(), groups, leaves);
  for (std::size_t t = first_tree; t < first_tree + trees; ++t) {
    for (std::size_t g = 0; g < groups; ++g, leaves += kTreeLanes) {
      std::uint32_t at[kTreeLanes];
      std::fill_n(at, kTreeLanes, roots_[t].node);
      walk_wide(block + g * stride(), 1, at);
      std::copy_n(at, kTreeLanes, leaves);
    }
  }
}

template <class T>
void TreeEnsemble<T>::find_leaves_of_row(std::size_t first_tree, std::size_t trees, const T* block,
                                         std::uint32_t* leaves) const {
  if (wide_.empty()) return loops_.trees(lean(), roots_.data() + first_tree, trees, block, leaves);
  for (std::size_t t = 0; t < trees; t += kTreeLanes) {
    const std::size_t count = std::min(kTreeLanes, trees - t);
    std::uint32_t at[kTreeLanes];
    for (std::size_t l = 0; l < kTreeLanes; ++l) at[l] = roots_[first_tree + t + (l < count ? l : 0)].node;
    walk_wide(block, 0, at);
    std::copy_n(at, count, leaves + t);
  }
}

template <class T>
void TreeEnsemble<T>::accumulate(double value, double& score, std::uint8_t& scored) const {
  if (aggregate_ == TreeAggregate::Min) {
    score = scored != 0 ? std::min(score, value) : value;
  } else if (aggregate_ == TreeAggregate::Max) {
    score = scored != 0 ? std::max(score, value) : value;
  } else {
    score += value;
  }
  scored = 1;
}

/// Adds what `tree` says of rows 0 to `rows` that reached `leaves`.
template <class T>
void TreeEnsemble<T>::add(std::size_t tree, const std::uint32_t* leaves, std::size_t rows, double* scores,
                          std::uint8_t* scored) const {
  if (inline_weights_) {
    scores += tree_target_[tree];
    scored += tree_target_[tree];
    const bool sum = aggregate_ == TreeAggregate::Sum || aggregate_ == TreeAggregate::Average;
    if (sum && wide_.empty()) {
      const Lean* nodes = lean();
      for (std::size_t r = 0; r < rows; ++r) scores[r * targets_] += static_cast<double>(nodes[leaves[r]].threshold);
      return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
      accumulate(static_cast<double>(threshold(leaves[r])), scores[r * targets_], scored[r * targets_]);
    }
    return;
  }
  for (std::size_t r = 0; r < rows; ++r) {
    const auto leaf = static_cast<std::size_t>(std::bit_cast<BitsOf<T>>(threshold(leaves[r])));
    for (std::size_t w = first_[leaf]; w < first_[leaf + 1]; ++w) {
      const std::size_t at = r * targets_ + weights_[w].target;
      accumulate(weights_[w].value, scores[at], scored[at]);
    }
  }
}

template <class T>
void TreeEnsemble<T>::finish_row(std::size_t row, double* scores, const std::uint8_t* scored, Finish finish) const {
  if (aggregate_ == TreeAggregate::Average && trees() > 0) {
    for (std::size_t t = 0; t < targets_; ++t) scores[t] /= static_cast<double>(trees());
  }
  finish(row, {scores, targets_}, inline_weights_ ? spoken_of_.data() : scored);
}

/// Few rows: the lanes of a walk are trees, and threads share the trees.
template <class T>
void TreeEnsemble<T>::score_few(KernelContext& ctx, const Tensor& x, std::size_t rows, std::size_t columns,
                                Finish finish) const {
  const tensor::Buffer memory = ctx.scratch(rows * stride() * sizeof(T) + rows * trees() * sizeof(std::uint32_t));
  T* const block = reinterpret_cast<T*>(memory.data());
  auto* const leaves = reinterpret_cast<std::uint32_t*>(block + rows * stride());
  for (std::size_t r = 0; r < rows; ++r) load_rows(x, columns, r, 1, block + r * stride());
  const double cost = walk_ns_ * 3 * static_cast<double>(kTreeLanes * rows);
  ctx.parallel_for(ceil_div(trees(), kTreeLanes), cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    const std::size_t first = begin * kTreeLanes, count = std::min(end * kTreeLanes, trees()) - first;
    for (std::size_t r = 0; r < rows; ++r) {
      find_leaves_of_row(first, count, block + r * stride(), leaves + r * trees() + first);
    }
  });
  std::vector<double> scores(targets_);
  std::vector<std::uint8_t> scored(targets_);
  for (std::size_t r = 0; r < rows; ++r) {
    std::fill(scores.begin(), scores.end(), 0.0);
    std::fill(scored.begin(), scored.end(), std::uint8_t{0});
    for (std::size_t t = 0; t < trees(); ++t) add(t, leaves + r * trees() + t, 1, scores.data(), scored.data());
    finish_row(r, scores.data(), scored.data(), finish);
  }
}

template <class T>
void TreeEnsemble<T>::score(KernelContext& ctx, const Tensor& x, std::size_t rows, std::size_t columns,
                            Finish finish) const {
  INFERNODE_CHECK(columns >= features_, ErrorCode::InvalidArgument, "X has ", columns,
                  " columns, but the trees read column ", features_ - 1);
  if (rows == 0) return;
  if (rows < kTreeLanes) return score_few(ctx, x, rows, columns, finish);

  // Tiles: all trees of a part that stays in the second cache meet all rows of a part that does too; within it, each
  // tree meets the rows that stay in the first cache.
  const std::size_t group_bytes = stride() * sizeof(T), groups = ceil_div(rows, kTreeLanes);
  const std::size_t score_bytes = checked_mul(targets_, kTreeLanes * (sizeof(double) + 1));
  const std::size_t tile = std::clamp<std::size_t>(kLargeTile / std::max(group_bytes, score_bytes), 1, 32);
  const std::size_t inner = std::clamp<std::size_t>(kSmallTile / group_bytes, 1, tile);
  const std::size_t per_tree = std::max<std::size_t>(1, node_bytes_ / std::max<std::size_t>(1, trees()));
  const std::size_t batch = std::clamp<std::size_t>(kLargeTile / per_tree, 1, std::max<std::size_t>(1, trees()));

  const std::size_t leaf_bytes = checked_mul(batch, inner * kTreeLanes * sizeof(std::uint32_t));
  const std::size_t need = checked_add(checked_mul(tile, checked_add(group_bytes, score_bytes)), leaf_bytes);
  const std::size_t apart = align_up(need, kLineBytes);
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads);
  const tensor::Buffer memory = ctx.scratch(checked_mul(apart, threads));
  const double cost = walk_ns_ * static_cast<double>(kTreeLanes * std::max<std::size_t>(1, trees()));
  ctx.parallel_for(groups, cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* const scores = reinterpret_cast<double*>(memory.data() + slot * apart);
    T* const block = reinterpret_cast<T*>(scores + tile * kTreeLanes * targets_);
    auto* const leaves = reinterpret_cast<std::uint32_t*>(block + tile * stride());
    auto* const scored = reinterpret_cast<std::uint8_t*>(leaves + batch * inner * kTreeLanes);
    for (std::size_t g = begin; g < end; g += tile) {
      ctx.run().check();
      const std::size_t here = std::min(tile, end - g), first_row = g * kTreeLanes;
      const std::size_t count = std::min(rows - first_row, here * kTreeLanes);
      load_rows(x, columns, first_row, count, block);
      std::fill_n(scores, here * kTreeLanes * targets_, 0.0);
      std::fill_n(scored, here * kTreeLanes * targets_, std::uint8_t{0});
      for (std::size_t t = 0; t < trees(); t += batch) {
        const std::size_t some = std::min(batch, trees() - t);
        for (std::size_t i = 0; i < here; i += inner) {
          const std::size_t few = std::min(inner, here - i), at = i * kTreeLanes * targets_;
          find_leaves(t, some, block + i * stride(), few, leaves);
          for (std::size_t k = 0; k < some; ++k) {
            add(t + k, leaves + k * few * kTreeLanes, few * kTreeLanes, scores + at, scored + at);
          }
        }
      }
      for (std::size_t r = 0; r < count; ++r) {
        finish_row(first_row + r, scores + r * targets_, scored + r * targets_, finish);
      }
    }
  });
}

template class TreeEnsemble<float>;
template class TreeEnsemble<double>;

}  // namespace infernode::ops
