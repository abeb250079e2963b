#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/ml/ml_scores.h"
#include "ops/ml/tree_ensemble.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

template <class List>
void check_length(const List& list, std::size_t length, std::string_view name, std::string_view other) {
  INFERNODE_CHECK(list.size() == length, ErrorCode::InvalidModel, name, " has ", list.size(), " elements, but ", other,
                  " has ", length);
}

TreeMode mode_of(const std::string& name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  INFERNODE_CHECK(found != std::end(kNames), ErrorCode::InvalidModel, "nodes_modes holds '", name,
                  "', which is not one of BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, BRANCH_GT, BRANCH_EQ, BRANCH_NEQ, LEAF");
  const auto index = static_cast<TreeMode>(found - std::begin(kNames));
  return index == TreeMode::Member ? TreeMode::Leaf : index;
}

/// Node ids of the older operators: a tree's and, within it, the node's.
struct NodeKey {
  std::int64_t tree, node;
  bool operator==(const NodeKey&) const = default;
};
struct NodeKeyHash {
  std::size_t operator()(const NodeKey& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.tree) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(key.node);
    h ^= h >> 32;
    return static_cast<std::size_t>(h * 0xd6e8feb86659fd93u);
  }
};
using NodeIndex = std::unordered_map<NodeKey, std::uint32_t, NodeKeyHash>;

/// The lists of TreeEnsembleClassifier and TreeEnsembleRegressor. `prefix`: "class" or "target".
TreeModel read_listed(const Attributes& attributes, const std::string& prefix, std::size_t targets) {
  TreeModel model;
  model.targets = targets;
  const auto trees = attributes.get_ints("nodes_treeids"), ids = attributes.get_ints("nodes_nodeids"),
             features = attributes.get_ints("nodes_featureids"), yes = attributes.get_ints("nodes_truenodeids"),
             no = attributes.get_ints("nodes_falsenodeids"),
             missing = attributes.get_ints("nodes_missing_value_tracks_true");
  const auto modes = attributes.get_strings("nodes_modes");
  const auto values = real_list<double>(attributes, "nodes_values");
  const std::size_t count = trees.size();
  INFERNODE_CHECK(count < (std::size_t{1} << 30), ErrorCode::InvalidModel, "an ensemble of ", count,
                  " nodes is too large");
  check_length(ids, count, "nodes_nodeids", "nodes_treeids");
  check_length(features, count, "nodes_featureids", "nodes_treeids");
  check_length(modes, count, "nodes_modes", "nodes_treeids");
  check_length(values, count, "nodes_values", "nodes_treeids");
  check_length(yes, count, "nodes_truenodeids", "nodes_treeids");
  check_length(no, count, "nodes_falsenodeids", "nodes_treeids");
  if (!missing.empty()) check_length(missing, count, "nodes_missing_value_tracks_true", "nodes_treeids");

  NodeIndex index;
  index.reserve(count);
  std::unordered_map<std::int64_t, bool> seen;
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool fresh = index.emplace(NodeKey{trees[i], ids[i]}, i).second;
    INFERNODE_CHECK(fresh, ErrorCode::InvalidModel, "node ", ids[i], " of tree ", trees[i], " is given twice");
    if (seen.emplace(trees[i], true).second) model.roots.push_back(i);
  }
  const auto find = [&](std::int64_t tree, std::int64_t node, std::string_view list) {
    const auto found = index.find({tree, node});
    INFERNODE_CHECK(found != index.end(), ErrorCode::InvalidModel, list, " names node ", node, " of tree ", tree,
                    ", which does not exist");
    return found->second;
  };
  model.nodes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    TreeModel::Node& node = model.nodes[i];
    node.mode = mode_of(modes[i]);
    if (node.mode == TreeMode::Leaf) continue;
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    node.feature = features[i];
    node.value = values[i];
    node.on_true = find(trees[i], yes[i], "nodes_truenodeids");
    node.on_false = find(trees[i], no[i], "nodes_falsenodeids");
  }

  const auto weight_trees = attributes.get_ints(prefix + "_treeids"),
             weight_nodes = attributes.get_ints(prefix + "_nodeids"),
             weight_targets = attributes.get_ints(prefix + "_ids");
  const auto weights = real_list<double>(attributes, prefix + "_weights");
  check_length(weight_nodes, weight_trees.size(), prefix + "_nodeids", prefix + "_treeids");
  check_length(weight_targets, weight_trees.size(), prefix + "_ids", prefix + "_treeids");
  check_length(weights, weight_trees.size(), prefix + "_weights", prefix + "_treeids");
  // Weights in the order of their leaves; those of nodes that are no leaves say nothing.
  std::vector<std::uint32_t> leaf(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    leaf[i] = find(weight_trees[i], weight_nodes[i], prefix + "_nodeids");
    INFERNODE_CHECK(weight_targets[i] >= 0 && static_cast<std::uint64_t>(weight_targets[i]) < targets,
                    ErrorCode::InvalidModel, prefix, "_ids holds ", weight_targets[i], ", but there are ", targets);
    ++model.nodes[leaf[i]].weight_count;
  }
  std::uint32_t next = 0;
  for (TreeModel::Node& node : model.nodes) {
    node.first_weight = next;
    next += std::exchange(node.weight_count, 0);
  }
  model.weights.resize(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    TreeModel::Node& node = model.nodes[leaf[i]];
    model.weights[node.first_weight + node.weight_count++] = {static_cast<std::uint32_t>(weight_targets[i]),
                                                              weights[i]};
  }
  return model;
}

/// Reads a float, double or float16 tensor attribute; empty where it is missing and not `required`.
std::vector<double> tensor_reals(const Attributes& attributes, std::string_view name, bool required) {
  const Tensor* t = attributes.get_tensor(name);
  INFERNODE_CHECK(t != nullptr || !required, ErrorCode::InvalidModel, "required attribute '", name, "' is missing");
  if (t == nullptr) return {};
  INFERNODE_CHECK(t->dtype() == DType::Float32 || t->dtype() == DType::Float64 || t->dtype() == DType::Float16,
                  ErrorCode::InvalidModel, name, " is ", t->to_string(), ", which is no list of reals");
  std::vector<double> out(static_cast<std::size_t>(t->numel()));
  read_reals(*t, 0, out.size(), out.data());
  return out;
}

std::size_t ensemble_targets(const Attributes& attributes, std::string_view ids) {
  std::int64_t targets = 1;
  if (attributes.has("n_targets")) {
    targets = attributes.get_int("n_targets");
  } else {
    for (const std::int64_t id : attributes.get_ints(ids)) targets = std::max(targets, id < INT32_MAX ? id + 1 : id);
  }
  INFERNODE_CHECK(targets > 0, ErrorCode::InvalidModel, "n_targets is ", targets);
  return static_cast<std::size_t>(stated_width(targets, attributes.get_ints(ids).size(), "n_targets"));
}

/// The lists of TreeEnsemble: interior nodes, then leaves.
TreeModel read_ensemble(const Attributes& attributes) {
  TreeModel model;
  model.targets = ensemble_targets(attributes, "leaf_targetids");
  const auto features = attributes.get_ints("nodes_featureids"), yes = attributes.get_ints("nodes_truenodeids"),
             no = attributes.get_ints("nodes_falsenodeids"), yes_leaf = attributes.get_ints("nodes_trueleafs"),
             no_leaf = attributes.get_ints("nodes_falseleafs"), targets = attributes.get_ints("leaf_targetids"),
             missing = attributes.get_ints("nodes_missing_value_tracks_true");
  const auto splits = tensor_reals(attributes, "nodes_splits", true),
             weights = tensor_reals(attributes, "leaf_weights", true),
             members = tensor_reals(attributes, "membership_values", false);
  const Tensor* modes = attributes.get_tensor("nodes_modes");
  INFERNODE_CHECK(modes != nullptr && modes->dtype() == DType::UInt8, ErrorCode::InvalidModel,
                  "nodes_modes must be a tensor of uint8");
  const std::size_t count = features.size();
  INFERNODE_CHECK(count + weights.size() < (std::size_t{1} << 30), ErrorCode::InvalidModel, "an ensemble of ", count,
                  " nodes is too large");
  check_length(splits, count, "nodes_splits", "nodes_featureids");
  check_length(modes->span<std::uint8_t>(), count, "nodes_modes", "nodes_featureids");
  check_length(yes, count, "nodes_truenodeids", "nodes_featureids");
  check_length(no, count, "nodes_falsenodeids", "nodes_featureids");
  check_length(yes_leaf, count, "nodes_trueleafs", "nodes_featureids");
  check_length(no_leaf, count, "nodes_falseleafs", "nodes_featureids");
  check_length(targets, weights.size(), "leaf_targetids", "leaf_weights");
  if (!missing.empty()) check_length(missing, count, "nodes_missing_value_tracks_true", "nodes_featureids");

  // Sets end with a NaN; the nodes that ask for membership take them in order.
  std::vector<double> set;
  for (const double value : members) {
    if (!std::isnan(value)) {
      set.push_back(value);
    } else {
      model.members.push_back(std::exchange(set, {}));
    }
  }
  if (!set.empty()) model.members.push_back(std::move(set));

  const auto child = [&](std::int64_t id, std::int64_t is_leaf, const char* list) {
    const std::size_t limit = is_leaf != 0 ? weights.size() : count;
    INFERNODE_CHECK(id >= 0 && static_cast<std::uint64_t>(id) < limit, ErrorCode::InvalidModel, list, " holds ", id,
                    ", but there are ", limit, is_leaf != 0 ? " leaves" : " nodes");
    return static_cast<std::uint32_t>((is_leaf != 0 ? count : 0) + static_cast<std::size_t>(id));
  };
  model.nodes.resize(count + weights.size());
  std::size_t sets = 0;
  for (std::size_t i = 0; i < count; ++i) {
    TreeModel::Node& node = model.nodes[i];
    const unsigned mode = modes->data<std::uint8_t>()[i];
    INFERNODE_CHECK(mode <= 6, ErrorCode::InvalidModel, "nodes_modes holds ", mode, ", which is no mode");
    node.mode = static_cast<TreeMode>(mode);
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    node.feature = features[i];
    node.value = node.mode == TreeMode::Member ? static_cast<double>(sets++) : splits[i];
    node.on_true = child(yes[i], yes_leaf[i], "nodes_truenodeids");
    node.on_false = child(no[i], no_leaf[i], "nodes_falsenodeids");
  }
  INFERNODE_CHECK(sets <= model.members.size(), ErrorCode::InvalidModel, sets,
                  " nodes ask for membership, but membership_values holds ", model.members.size(), " sets");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    INFERNODE_CHECK(targets[i] >= 0 && static_cast<std::uint64_t>(targets[i]) < model.targets, ErrorCode::InvalidModel,
                    "leaf_targetids holds ", targets[i], ", but there are ", model.targets, " targets");
    TreeModel::Node& leaf = model.nodes[count + i];
    leaf.first_weight = static_cast<std::uint32_t>(i);
    leaf.weight_count = 1;
    model.weights.push_back({static_cast<std::uint32_t>(targets[i]), weights[i]});
  }
  for (const std::int64_t root : attributes.get_ints("tree_roots")) {
    model.roots.push_back(child(root, 0, "tree_roots"));
  }
  return model;
}

TreeAggregate aggregate_named(const std::string& name) {
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  INFERNODE_CHECK(found != std::end(kNames), ErrorCode::InvalidModel, "aggregate_function '", name,
                  "' is not one of AVERAGE, SUM, MIN and MAX");
  return static_cast<TreeAggregate>(found - std::begin(kNames));
}

/// An ensemble over X: splits compared as doubles where X is double, as floats otherwise.
class AnyEnsemble {
 public:
  AnyEnsemble(KernelInfo& info, const TreeModel& model, TreeAggregate aggregate) {
    if (info.input_type(0).elem == DType::Float64) {
      wide_ = std::make_unique<TreeEnsemble<double>>(model, aggregate, info.kernels());
    } else {
      narrow_ = std::make_unique<TreeEnsemble<float>>(model, aggregate, info.kernels());
    }
  }
  void score(KernelContext& ctx, const MlMatrix& x, TreeEnsemble<float>::Finish finish) const {
    if (wide_) return wide_->score(ctx, ctx.input(0), x.rows, x.columns, finish);
    narrow_->score(ctx, ctx.input(0), x.rows, x.columns, finish);
  }

 private:
  std::unique_ptr<TreeEnsemble<float>> narrow_;
  std::unique_ptr<TreeEnsemble<double>> wide_;
};

/// Writes rows of results as float, double or float16.
class RowWriter {
 public:
  explicit RowWriter(const Tensor& out) : out_(out) {}
  void write(std::size_t row, std::span<const double> values) const {
    const std::size_t at = row * values.size();
    switch (out_.dtype()) {
      case DType::Float64:
        return copy(out_.mutable_data<double>() + at, values);
      case DType::Float16:
        for (std::size_t i = 0; i < values.size(); ++i) {
          out_.mutable_data<Float16>()[at + i] = Float16(static_cast<float>(values[i]));
        }
        return;
      default:
        return copy(out_.mutable_data<float>() + at, values);
    }
  }

 private:
  template <class T>
  static void copy(T* to, std::span<const double> values) {
    for (const double value : values) *to++ = static_cast<T>(value);
  }
  const Tensor& out_;
};

Shape matrix_shape(std::size_t rows, std::size_t columns) {
  return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)};
}

class TreeEnsembleRegressor final : public Kernel {
 public:
  explicit TreeEnsembleRegressor(KernelInfo& info)
      : targets_(ensemble_targets(info.attributes(), "target_ids")),
        transform_(post_transform(info.attributes())),
        base_(real_list<double>(info.attributes(), "base_values")),
        trees_(info, read_listed(info.attributes(), "target", targets_),
               aggregate_named(info.attributes().get_string("aggregate_function", "SUM"))) {
    INFERNODE_CHECK(base_.empty() || base_.size() == targets_, ErrorCode::InvalidModel, "base_values has ",
                    base_.size(), " elements for ", targets_, " targets");
  }

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "TreeEnsembleRegressor");
    const Tensor out = ctx.output(0, matrix_shape(x.rows, targets_));
    const RowWriter writer(out);
    trees_.score(ctx, x, [&](std::size_t row, std::span<double> scores, const std::uint8_t*) {
      for (std::size_t t = 0; t < base_.size(); ++t) scores[t] += base_[t];
      // One target has nothing to be weighed against, and converters count on it being left alone.
      if (targets_ > 1 || transform_ == PostTransform::Probit) apply(transform_, scores);
      writer.write(row, scores);
    });
  }

 private:
  std::size_t targets_;
  PostTransform transform_;
  std::vector<double> base_;
  AnyEnsemble trees_;
};

class TreeEnsembleOp final : public Kernel {
 public:
  explicit TreeEnsembleOp(KernelInfo& info)
      : targets_(ensemble_targets(info.attributes(), "leaf_targetids")),
        transform_(transform_of(info.attributes())),
        trees_(info, read_ensemble(info.attributes()), aggregate_of(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "TreeEnsemble");
    const Tensor out = ctx.output(0, matrix_shape(x.rows, targets_));
    const RowWriter writer(out);
    trees_.score(ctx, x, [&](std::size_t row, std::span<double> scores, const std::uint8_t*) {
      if (targets_ > 1 || transform_ == PostTransform::Probit) apply(transform_, scores);
      writer.write(row, scores);
    });
  }

 private:
  static PostTransform transform_of(const Attributes& attributes) {
    const std::int64_t code = attributes.get_int("post_transform", 0);
    INFERNODE_CHECK(code >= 0 && code <= 4, ErrorCode::InvalidModel, "post_transform is ", code, ", not 0 to 4");
    return static_cast<PostTransform>(code);
  }
  static TreeAggregate aggregate_of(const Attributes& attributes) {
    const std::int64_t code = attributes.get_int("aggregate_function", 1);
    INFERNODE_CHECK(code >= 0 && code <= 3, ErrorCode::InvalidModel, "aggregate_function is ", code, ", not 0 to 3");
    return static_cast<TreeAggregate>(code);
  }

  std::size_t targets_;
  PostTransform transform_;
  AnyEnsemble trees_;
};

/// Two classes whose leaves all speak of one of them are a binary model with a single score; see docs/differences.md
/// for how the labels follow from the scores.
class TreeEnsembleClassifier final : public Kernel {
 public:
  explicit TreeEnsembleClassifier(KernelInfo& info) : TreeEnsembleClassifier(info, labels_of(info.attributes())) {}

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "TreeEnsembleClassifier");
    const std::size_t classes = labels_.size();
    const Tensor labels = ctx.output(0, labels_.dtype(), Shape{static_cast<std::int64_t>(x.rows)});
    const Tensor out = ctx.output(1, DType::Float32, matrix_shape(x.rows, classes));
    const RowWriter writer(out);
    trees_.score(ctx, x, [&](std::size_t row, std::span<double> scores, const std::uint8_t* scored) {
      if (classes == 1) return finish_single(row, scores, labels, writer);
      if (classes == 2 && only_class_ >= 0) return finish_binary(row, scores, labels, writer);
      for (std::size_t c = 0; c < base_.size(); ++c) scores[c] += base_[c];
      std::size_t best = classes;
      for (std::size_t c = 0; c < classes; ++c) {
        const bool counts = classes == 2 || !base_.empty() || scored[c] != 0;
        if (counts && (best == classes || scores[c] > scores[best])) best = c;
      }
      labels_.write(labels, row, best == classes ? 0 : best);
      apply(transform_, scores);
      writer.write(row, scores);
    });
  }

 private:
  static ClassLabels labels_of(const Attributes& attributes) {
    return {attributes, "classlabels_int64s", "classlabels_strings"};
  }

  TreeEnsembleClassifier(KernelInfo& info, ClassLabels labels)
      : labels_(std::move(labels)),
        transform_(post_transform(info.attributes())),
        base_(real_list<double>(info.attributes(), "base_values")),
        trees_(info, read_listed(info.attributes(), "class", labels_.size()), TreeAggregate::Sum) {
    const std::size_t classes = labels_.size();
    INFERNODE_CHECK(base_.empty() || base_.size() == classes || (base_.size() == 1 && classes == 2),
                    ErrorCode::InvalidModel, "base_values has ", base_.size(), " elements for ", classes, " classes");
    INFERNODE_CHECK(classes > 1 || labels_.dtype() == DType::Int64, ErrorCode::InvalidModel,
                    "one label is too few for a classifier of strings");
    const auto ids = info.attributes().get_ints("class_ids");
    const auto weights = real_list<double>(info.attributes(), "class_weights");
    if (!ids.empty() && std::all_of(ids.begin(), ids.end(), [&](std::int64_t id) { return id == ids[0]; })) {
      only_class_ = ids[0];
    }
    all_positive_ = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
  }

  bool is_positive(double score) const { return score > (all_positive_ ? 0.5 : 0.0); }

  /// One class: whether its score is above 0.
  void finish_single(std::size_t row, std::span<double> scores, const Tensor& labels, const RowWriter& writer) const {
    if (!base_.empty()) scores[0] += base_[0];
    labels.mutable_data<std::int64_t>()[row] = scores[0] > 0 ? 1 : 0;
    if (transform_ == PostTransform::Probit) apply(transform_, scores);
    writer.write(row, scores);
  }

  void finish_binary(std::size_t row, std::span<double> scores, const Tensor& labels, const RowWriter& writer) const {
    double& score = scores[static_cast<std::size_t>(only_class_)];
    if (base_.size() == 1) score += base_[0];
    if (base_.size() == 2) score += base_[static_cast<std::size_t>(only_class_)];
    labels_.write(labels, row, is_positive(score) ? 1 : 0);
    if (only_class_ == 0) {
      writer.write(row, binary_scores(score, transform_, all_positive_));
    } else {
      apply(transform_, scores);
      writer.write(row, scores);
    }
  }

  ClassLabels labels_;
  PostTransform transform_;
  std::vector<double> base_;
  AnyEnsemble trees_;
  std::int64_t only_class_ = -1;  ///< that all weights are of; -1: of several
  bool all_positive_ = false;
};

void infer_tree_classifier(InferContext& ctx) {
  const ClassLabels labels(ctx.attributes(), "classlabels_int64s", "classlabels_strings");
  infer_classifier(ctx, "classlabels_int64s", "classlabels_strings", static_cast<std::int64_t>(labels.size()));
}

void infer_targets(InferContext& ctx, std::string_view ids) {
  SymShape shape = ml_batch(ctx);
  shape.push_back(static_cast<std::int64_t>(ensemble_targets(ctx.attributes(), ids)));
  ctx.set_output_shape(0, std::move(shape));
}

void infer_tree_regressor(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Float32);
  infer_targets(ctx, "target_ids");
}

void infer_tree_ensemble(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  infer_targets(ctx, "leaf_targetids");
}

}  // namespace

void register_ml_tree_ensemble(kernel::OpRegistrar& r) {
  // Deprecated in version 5, which still defines them.
  r.op("TreeEnsembleClassifier", kMlDomain)
      .version(1, "X:T1 -> Y:T2, Z:float; T1 = float|double|int64|int32, T2 = string|int64")
      .version(3, "X:T1 -> Y:T2, Z:float; T1 = float|double|int64|int32, T2 = string|int64")
      .version(5, "X:T1 -> Y:T2, Z:float; T1 = float|double|int64|int32, T2 = string|int64")
      .infer(infer_tree_classifier)
      .kernel<TreeEnsembleClassifier>();
  r.op("TreeEnsembleRegressor", kMlDomain)
      .version(1, "X:T -> Y:float; T = float|double|int64|int32")
      .version(3, "X:T -> Y:float; T = float|double|int64|int32")
      .version(5, "X:T -> Y:float; T = float|double|int64|int32")
      .infer(infer_tree_regressor)
      .kernel<TreeEnsembleRegressor>();
  r.op("TreeEnsemble", kMlDomain)
      .version(5, "X:T -> Y:T; T = float|double|float16")
      .infer(infer_tree_ensemble)
      .kernel<TreeEnsembleOp>();
}

}  // namespace infernode::ops
