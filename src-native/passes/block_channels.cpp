#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "graph/patch.h"
#include "graph/walks.h"
#include "microkernels/blocked/blocked.h"
#include "ops/conv/methods/method.h"
#include "passes/operators.h"
#include "passes/pattern_passes.h"
#include "passes/transposes/min_cut.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using microkernels::kChannelBlock;
using tensor::DType;
using tensor::Tensor;
using transposes::MinCut;

constexpr auto kBlock = static_cast<std::int64_t>(kChannelBlock);
/// An input of few channels is better read plane by plane: a block of it would be empty for the most part.
constexpr auto kFewChannels = static_cast<std::int64_t>(microkernels::kMostPlanes);
/// Where positions are fewer, all stays in plain order. The costs are too close there: by `bench_calibrate compare
/// highest SHAPES` on a Xeon, of 42 convolutions on 2 to 6 positions they would have 25 in blocks with AVX-512 and 14
/// with AMX, of which 11 and 6 are slower there by more than a tenth.
constexpr std::int64_t kLeastPositions = 8;

/// A height or width counts as this much at most.
constexpr std::int64_t kLargest = 1 << 16;

/// Channels, height and width of a value; where sizes are symbols, what they are taken to be when times are weighed.
struct Image {
  std::int64_t channels, height, width;
  std::int64_t positions() const { return height * width; }
  std::int64_t blocked_elements() const { return (channels + kBlock - 1) / kBlock * kBlock * positions(); }
};

std::optional<Image> image_of(const Graph& graph, ValueId id) {
  if (id == kNoValue) return std::nullopt;
  const graph::ValueType& type = graph.value(id).type;
  if (type.elem != DType::Float32 || !type.shape || type.shape->size() != 4) return std::nullopt;
  constexpr std::int64_t kMostChannels = 1 << 20;  // times fit 64 bits
  const auto size = [&](std::size_t axis) {
    return (*type.shape)[axis].is(0) ? 0 : ops::usual_length((*type.shape)[axis], 2);
  };
  if (!(*type.shape)[1].known() || (*type.shape)[1].value() < 1 || (*type.shape)[1].value() > kMostChannels ||
      size(2) < 1 || size(3) < 1)
    return std::nullopt;
  return Image{(*type.shape)[1].value(), size(2), size(3)};
}

/// Whether two images have the same dim there, for certain.
bool same_dim(const Graph& graph, ValueId a, ValueId b, std::size_t axis) {
  return (*graph.value(a).type.shape)[axis] == (*graph.value(b).type.shape)[axis];
}
bool same_shape(const Graph& graph, ValueId a, ValueId b) {
  return same_dim(graph, a, b, 0) && same_dim(graph, a, b, 1) && same_dim(graph, a, b, 2) && same_dim(graph, a, b, 3);
}
/// Whether it has one position, for certain.
bool is_vector(const Graph& graph, ValueId id) {
  const graph::SymShape& shape = *graph.value(id).type.shape;
  return shape[2].is(1) && shape[3].is(1);
}

/// How a node reads a value, where it works on blocks.
enum class Reads : std::uint8_t {
  Plain,    ///< as it is in either case: weights, scalars
  Blocked,  ///< in blocks
  Either,   ///< in blocks or as it is
};

/// A node that can work on blocks.
struct Candidate {
  NodeId node = kNoNode;
  std::vector<Reads> inputs;
  bool blocked_output = true;
  std::int64_t gain = 0;  ///< picoseconds that it saves
  bool exact = false;     ///< a convolution that is computed in float32 whatever precision is asked for
};

/// In picoseconds.
std::int64_t picoseconds(double nanoseconds) {
  constexpr double kMost = 1e15;  // sums of them fit 64 bits
  return static_cast<std::int64_t>(1e3 * std::min(nanoseconds, kMost));
}

class Blocking {
 public:
  Blocking(Graph& graph, const PassOptions& options)
      : graph_(graph),
        options_(options),
        table_(options.kernels->blocked_conv),
        pairs_(table_.takes_bf16),
        consumers_(graph::consumers(graph, options)),
        outputs_(graph.outputs().begin(), graph.outputs().end()) {}

  bool run() {
    for (const NodeId id : graph::topological_order(graph_, options_)) {
      options_.check();
      if (std::optional<Candidate> candidate = admit(id)) {
        candidate->node = id;
        places_[id] = candidates_.size();
        candidates_.push_back(std::move(*candidate));
      }
    }
    constexpr std::size_t kMost = 20'000;  // a bound on time for graphs that no exporter writes
    if (candidates_.size() > kMost ||
        std::none_of(candidates_.begin(), candidates_.end(), [](const Candidate& c) { return c.gain > 0; }))
      return false;
    choose();
    if (std::none_of(chosen_.begin(), chosen_.end(), [](bool c) { return c; })) return false;
    apply();
    return true;
  }

 private:
  std::optional<Candidate> admit(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!runs_on_cpu(node) || node.outputs.size() != 1 || node.outputs[0] == kNoValue || node.inputs.empty())
      return std::nullopt;
    const std::optional<Image> out = image_of(graph_, node.outputs[0]), in = image_of(graph_, node.inputs[0]);
    if (!out) return std::nullopt;
    if (!node.domain.empty() && node.domain != kMicrosoft && node.domain != kOwn) return admit_elementwise(node, *out);
    const bool conv = is(node, kConv) || node.op_type == kFusedConv;
    const bool mean = node.op_type == kGlobalAveragePool || node.op_type == kReduceMean;
    if (conv || mean) return !in ? std::nullopt : conv ? admit_conv(node, *in, *out) : admit_mean(node, *in, *out);
    if (node.op_type == kConcat) return admit_concat(node);
    if (node.op_type == kMaxPool) return !in ? std::nullopt : admit_pool(node, *out);
    return admit_elementwise(node, *out);
  }

  std::optional<Candidate> admit_conv(const Node& node, const Image& in, const Image& out) const {
    const Tensor* w = constant(graph_, node.inputs.at(1));
    const std::int64_t groups = node.attributes.get_int("group", 1);
    if (w == nullptr || w->dtype() != DType::Float32 || w->rank() != 4 || w->numel() == 0 ||
        out.positions() < kLeastPositions || groups < 1 || in.channels % groups != 0 ||
        w->dim(1) != in.channels / groups || w->dim(0) % groups != 0)
      return std::nullopt;
    if (in.width == 1 && out.width == 1) return std::nullopt;  // all positions would be one row
    if (node.inputs.size() > 3 && node.inputs[3] != kNoValue &&
        (!image_of(graph_, node.inputs[3]) || !same_shape(graph_, node.inputs[3], node.outputs[0])))
      return std::nullopt;
    std::optional<ops::ConvSite> site = ops::conv_site(node, graph_.value(node.inputs[0]).type, w->shape(),
                                                       options_.kernels->rung, options_.kernels->precision);
    if (!site) return std::nullopt;
    site->weight = w;
    const std::optional<ops::ConvChoice> planar = ops::quickest_conv(*site, ops::ConvLayout::Planar);
    Candidate candidate;
    site->planes = groups == 1 && in.channels <= kFewChannels;
    site->exact = candidate.exact = pairs_ && groups == 1 && !fits_any_width(node, *site);
    const std::optional<ops::ConvChoice> blocked = ops::quickest_conv(*site, ops::ConvLayout::Blocked);
    if (!planar || !blocked) return std::nullopt;
    candidate.inputs.assign(node.inputs.size(), Reads::Plain);
    candidate.inputs[0] = site->planes ? Reads::Either : Reads::Blocked;
    if (node.inputs.size() > 3 && node.inputs[3] != kNoValue) candidate.inputs[3] = Reads::Blocked;
    candidate.gain = picoseconds(cost::kPlainConvMargin * planar->nanoseconds) - picoseconds(blocked->nanoseconds);
    return candidate;
  }

  /// Whether the loops of bfloat16 pairs take the window however wide the image turns out to be.
  bool fits_any_width(const Node& node, const ops::ConvSite& site) const {
    microkernels::ConvShape widest = site.shape;
    if (!(*graph_.value(node.outputs[0]).type.shape)[3].known()) widest.in_w = widest.out_w = kLargest;
    return table_.fits(widest);
  }

  std::optional<Candidate> admit_mean(const Node& node, const Image& in, const Image& out) const {
    if (!node.domain.empty() || in.channels != out.channels || !is_vector(graph_, node.outputs[0]) ||
        in.positions() < kLeastPositions || !same_dim(graph_, node.inputs[0], node.outputs[0], 0))
      return std::nullopt;
    Candidate candidate;
    candidate.inputs.assign(node.inputs.size(), Reads::Plain);
    candidate.inputs[0] = Reads::Blocked;
    candidate.blocked_output = false;
    return candidate;
  }

  /// Windows over images become windows over a third axis too, of one channel each.
  std::optional<Candidate> admit_pool(const Node& node, const Image& out) const {
    const std::vector<std::int64_t> window = node.attributes.get_ints("kernel_shape");
    if (!node.domain.empty() || window.size() != 2) return std::nullopt;
    const ops::PoolSite site{static_cast<double>(out.channels), static_cast<double>(out.positions()),
                             static_cast<double>(window[0]) * static_cast<double>(window[1])};
    const auto time = [&](ops::ConvLayout layout) {
      return picoseconds(ops::pool_time(options_.kernels->rung, options_.kernels->precision, site, layout));
    };
    return Candidate{.inputs = {Reads::Blocked},
                     .gain = time(ops::ConvLayout::Planar) - time(ops::ConvLayout::Blocked)};
  }

  std::optional<Candidate> admit_concat(const Node& node) const {
    const std::int64_t axis = node.attributes.get_int("axis", 1);
    if (!node.domain.empty() || (axis != 1 && axis != -3)) return std::nullopt;
    for (const ValueId input : node.inputs) {
      const std::optional<Image> image = image_of(graph_, input);
      if (!image || image->channels % kBlock != 0) return std::nullopt;
    }
    return Candidate{.inputs = std::vector<Reads>(node.inputs.size(), Reads::Blocked)};
  }

  /// Whether the value is one number, or absent.
  bool is_number(ValueId id) const {
    if (id == kNoValue) return true;
    const Tensor* t = constant(graph_, id);
    return t != nullptr && t->numel() == 1 && t->rank() <= 4;
  }

  std::optional<Candidate> admit_elementwise(const Node& node, const Image& out) const {
    const kernel::OpTraits& traits = kernel::traits_of(node, *options_.registry);
    const bool binary = traits.axes == kernel::Axes::Broadcast && node.inputs.size() == 2;
    if (traits.axes != kernel::Axes::Elementwise && !binary) return std::nullopt;
    if (traits.blocks == kernel::Blocks::None || out.positions() < kLeastPositions) return std::nullopt;
    Candidate candidate;
    bool whole = false;
    for (const ValueId input : node.inputs) {
      if (is_number(input)) {
        candidate.inputs.push_back(Reads::Plain);
        continue;
      }
      const std::optional<Image> image = image_of(graph_, input);
      if (!image || image->channels != out.channels || graph_.value(input).is_constant()) return std::nullopt;
      const bool same = same_shape(graph_, input, node.outputs[0]);
      if (!same && !is_vector(graph_, input)) return std::nullopt;
      whole = whole || same;
      candidate.inputs.push_back(Reads::Blocked);
    }
    if (!whole) return std::nullopt;
    return candidate;
  }

  /// Chooses the nodes that work on blocks, so that the whole graph takes the least time, by a minimum cut. They are on
  /// the source's side.
  void choose() {
    MinCut cut;
    std::vector<std::size_t> vertices;
    for (const Candidate& candidate : candidates_) {
      vertices.push_back(cut.add_vertex());
      if (candidate.gain > 0) cut.add_arc(MinCut::kSource, vertices.back(), candidate.gain);
      if (candidate.gain < 0) cut.add_arc(vertices.back(), MinCut::kSink, -candidate.gain);
    }
    for (std::size_t v = 0; v < graph_.values().size(); ++v) {
      options_.check();
      const auto id = static_cast<ValueId>(v);
      const std::optional<Image> image = image_of(graph_, id);
      if (!image) continue;
      const Candidate* const maker = maker_of(id);
      const std::size_t made = maker == nullptr ? MinCut::kSink : vertices[place(*maker)];
      const std::int64_t cost = picoseconds(ops::block_conversion_time(
          options_.kernels->rung, options_.kernels->precision, static_cast<double>(image->blocked_elements())));
      std::size_t blocked = 0, plain = 0;  // vertices of the two versions, once there is one
      const auto version = [&](std::size_t& vertex) {
        if (vertex == 0) {
          vertex = cut.add_vertex();
          if (&vertex == &blocked) cut.add_arc(vertex, made, cost);
          if (&vertex == &plain) cut.add_arc(made, vertex, cost);
        }
        return vertex;
      };
      for_each_reader(id, [&](const Candidate* reader, Reads how) {
        if (reader == nullptr || how == Reads::Plain) {
          if (maker != nullptr) cut.add_arc(version(plain), MinCut::kSink, MinCut::kNever);
          return;
        }
        const std::size_t reads = vertices[place(*reader)];
        if (maker != nullptr) cut.add_arc(version(plain), reads, MinCut::kNever);
        if (how == Reads::Blocked) cut.add_arc(reads, version(blocked), MinCut::kNever);
      });
    }
    std::size_t looks = std::size_t{1} << 27;  // a bound on time for graphs that no exporter writes
    const std::vector<bool> sides = cut.solve(looks);
    for (const std::size_t vertex : vertices) chosen_.push_back(!sides.empty() && sides[vertex]);
  }

  std::size_t place(const Candidate& candidate) const {
    return static_cast<std::size_t>(&candidate - candidates_.data());
  }
  const Candidate* candidate(NodeId id) const {
    const auto at = places_.find(id);
    return at == places_.end() ? nullptr : &candidates_[at->second];
  }
  const Candidate* made_by(ValueId id) const {
    const NodeId producer = graph_.value(id).producer;
    return producer == kNoNode ? nullptr : candidate(producer);
  }
  /// The candidate that makes the value, where it may make it in blocks.
  const Candidate* maker_of(ValueId id) const {
    const Candidate* const maker = made_by(id);
    return maker != nullptr && maker->blocked_output ? maker : nullptr;
  }

  /// Calls `visit(candidate or null, how)` for each use of the value; null: by what is no candidate.
  template <class Visit>
  void for_each_reader(ValueId id, const Visit& visit) const {
    if (outputs_.contains(id)) visit(nullptr, Reads::Plain);
    std::vector<NodeId> readers = consumers_[static_cast<std::size_t>(id)];
    std::sort(readers.begin(), readers.end());
    readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
    for (const NodeId node : readers) {
      const Candidate* const reader = candidate(node);
      if (reader == nullptr) {
        visit(nullptr, Reads::Plain);
        continue;
      }
      const std::vector<ValueId>& inputs = graph_.node(node).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == id) visit(reader, reader->inputs[i]);
      }
    }
  }

  bool is_chosen(const Candidate* candidate) const { return candidate != nullptr && chosen_[place(*candidate)]; }

  void apply() {
    graph::GraphPatch patch(graph_);
    std::map<ValueId, ValueId> blocked;  // values in blocks
    const auto blocked_value = [&](ValueId id) {
      const auto [at, fresh] = blocked.try_emplace(id, kNoValue);
      if (fresh) at->second = patch.add_value(graph_.value(id).name + "_blocked", blocked_type(id));
      return at->second;
    };
    std::map<ValueId, NodeId> converted;
    const auto in_blocks = [&](ValueId id) {
      const ValueId to = blocked_value(id);
      if (!is_chosen(made_by(id)) && converted.try_emplace(id, kNoNode).second) {
        Node node;
        node.op_type = kBlockChannels;
        add(patch, std::move(node), {id}, to, kNoNode);
      }
      return to;
    };
    for (const Candidate& candidate : candidates_) {
      if (!is_chosen(&candidate)) continue;
      const Node old = graph_.node(candidate.node);
      std::vector<ValueId> inputs = old.inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (candidate.inputs[i] == Reads::Blocked ||
            (candidate.inputs[i] == Reads::Either && is_chosen(maker_of(inputs[i]))))
          inputs[i] = in_blocks(inputs[i]);
      }
      const ValueId out = old.outputs[0], to = blocked_value(out);
      add_blocked(patch, old, std::move(inputs), to, candidate.node);
      patch.remove_node(candidate.node);
      if (!candidate.blocked_output || needs_plain(out)) {
        Node node;
        node.op_type = kUnblockChannels;
        node.attributes.set("channels", image_of(graph_, out)->channels);
        add(patch, std::move(node), {to}, out, candidate.node);
      }
    }
    patch.apply();
  }

  bool needs_plain(ValueId id) const {
    bool needed = false;
    for_each_reader(
        id, [&](const Candidate* reader, Reads how) { needed = needed || !is_chosen(reader) || how == Reads::Plain; });
    return needed;
  }

  graph::ValueType blocked_type(ValueId id) const {
    graph::ValueType type = graph_.value(id).type;
    const graph::SymShape& shape = *type.shape;
    type.shape = graph::SymShape{shape[0], graph::Dim((shape[1].value() + kBlock - 1) / kBlock), shape[2], shape[3],
                                 graph::Dim(kBlock)};
    return type;
  }

  /// A node of our own domain.
  void add(graph::GraphPatch& patch, Node node, std::vector<ValueId> inputs, ValueId output, NodeId from) const {
    node.domain = kOwn;
    node.opset = 1;
    add_as_is(patch, std::move(node), std::move(inputs), output, from);
  }
  void add_as_is(graph::GraphPatch& patch, Node node, std::vector<ValueId> inputs, ValueId output, NodeId from) const {
    node.provider = "cpu";
    node.inputs = std::move(inputs);
    node.outputs = {output};
    if (from == kNoNode) {
      patch.add_node(std::move(node));
    } else {
      patch.add_node(std::move(node), std::array{from});
    }
  }

  void add_blocked(graph::GraphPatch& patch, const Node& old, std::vector<ValueId> inputs, ValueId output,
                   NodeId from) const {
    Node node;
    node.name = old.name;
    node.attributes = old.attributes;
    if (old.op_type == kConv || old.op_type == kFusedConv) {
      node.op_type = kBlockedConv;
      if (candidate(from)->exact) node.attributes.set("exact", std::int64_t{1});
      return add(patch, std::move(node), std::move(inputs), output, from);
    }
    node.op_type = old.op_type;
    node.domain = old.domain;
    node.opset = old.opset;
    if (node.op_type == kConcat) node.attributes.set("axis", std::int64_t{1});
    if (node.op_type == kMaxPool) {
      for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
        std::vector<std::int64_t> values = node.attributes.get_ints(name);
        if (values.empty()) continue;
        const bool pads = values.size() == 4;  // of both ends
        if (pads) values.insert(values.begin() + 2, 0);
        values.push_back(pads ? 0 : 1);
        node.attributes.set(name, std::move(values));
      }
    }
    if (node.op_type == kGlobalAveragePool || node.op_type == kReduceMean) {
      const std::vector<std::int64_t> axes{2, 3};
      node.op_type = kReduceMean;
      node.attributes = {};
      inputs.resize(1);
      constexpr std::int64_t kAxesAreInput = 18;
      if (node.opset >= kAxesAreInput) {
        inputs.push_back(patch.add_constant("axes", Tensor::of<std::int64_t>(tensor::Shape{2}, std::span(axes))));
      } else {
        node.attributes.set("axes", axes);
      }
    }
    add_as_is(patch, std::move(node), std::move(inputs), output, from);
  }

  Graph& graph_;
  const PassOptions& options_;
  const microkernels::BlockedConvTable& table_;
  bool pairs_;  ///< its products are of pairs of bfloat16 numbers
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> outputs_;
  std::vector<Candidate> candidates_;
  std::map<NodeId, std::size_t> places_;  // in candidates_
  std::vector<bool> chosen_;
};

}  // namespace

bool block_channels(Graph& graph, const PassOptions& options) { return Blocking(graph, options).run(); }

}  // namespace infernode::passes
