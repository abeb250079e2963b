#pragma once
// What an operator says of itself beside its signature, so that passes, fusions and providers need not know it by name.
// Its registration says it (kernel/op_registrar.h); `traits_of` gives a node's.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "tensor/dtype.h"

namespace infernode::kernel {

class Registry;

/// In which orders of axes an operator can work, and what says so. passes/transposes has a function for each of them.
enum class Axes : std::uint8_t {
  Fixed,             ///< in the standard's order only
  Elementwise,       ///< in any: input 0 and every output; other inputs do not hang on axes
  Broadcast,         ///< in any: every input, aligned at the last axis, and every output
  Channels,          ///< where axis 1 keeps its place
  BatchAndChannels,  ///< where axes 0 and 1 keep their places
  Along,             ///< attribute `axis` (OpTraits::default_axis without it): the one that it works along
  AlongInput,        ///< the same, said by input 1
  From,              ///< attribute `axis` and all after it are one
  Joined,            ///< all inputs are joined along attribute `axis`
  Scaled,            ///< attribute `axis` says where the scales of input 1 lie
  Reduced,           ///< attribute or input `axes`: those go, or become 1
  ReducedOne,        ///< attribute `axis`: that goes, or becomes 1
  Sliced,            ///< attribute or input 3 `axes`
  Padded,            ///< attribute or input 1 has two numbers for each axis, or for each of input 3
  Repeated,          ///< input 1 has a number for each axis
  Expanded,          ///< input 1 has a number for each of the last axes
  Gathered,          ///< those of input 1 take the place of attribute `axis`
  GatheredElements,  ///< attribute `axis`; input 1 has the same axes as input 0
  Squeezed,          ///< attribute or input 1 `axes`: those of dim 1 go
  Unsqueezed,        ///< attribute or input 1 `axes`: those come, with dim 1
  Reshaped,          ///< other dims for the same elements
  Dims,              ///< it gives the dims
  Count,             ///< it gives the number of elements
};

/// How the elements of input 0 become those of output 0, where none is computed.
enum class Moves : std::uint8_t {
  Nothing,   ///< they are computed, or it is not said how
  Views,     ///< all, in the same order: only dims change
  Converts,  ///< all, in the same places, as another type
  Permutes,  ///< all, in another order
  Selects,   ///< some
  Repeats,   ///< all, some of them several times
  Largest,   ///< the largest of each window
};

/// Whether the kernel works on images [N, C, H, W] whose channels lie in blocks, [N, C / 16, H, W, 16], as it is: of
/// all inputs with more than one element, elementwise or joined along the channels. What the last block is filled up
/// with may be anything.
enum class Blocks : std::uint8_t {
  None,
  Float,  ///< of float32; so does whatever is elementwise
  Any,    ///< of float32 or bfloat16, as fast as memory allows
};

/// What multiplies its first input by weights, its second.
enum class Product : std::uint8_t { None, Matrix, Convolution };

/// What is known of a node before it runs: its attributes and its constant inputs.
class NodeConstants {
 public:
  NodeConstants(const graph::Graph& graph, const graph::Node& node) : graph_(graph), node_(node) {}
  const graph::Attributes& attributes() const { return node_.attributes; }
  bool has_input(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != graph::kNoValue; }
  /// The one element of a constant floating-point input that no feed can change and that does not raise input 0's rank.
  std::optional<float> scalar(std::size_t i) const;

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
};

/// The activation of a fused operator: attributes `activation` and `activation_params` (ops/common/activation.h).
struct FusedActivation {
  std::string name;
  std::vector<float> params{};
  /// Leaves the attributes as they are where there is no activation.
  void set(graph::Attributes& attributes) const;
};
/// The activation that a node of the operator is; nullopt where fused operators cannot apply it.
using ActivationFn = std::optional<FusedActivation> (*)(const NodeConstants& node);

/// What an operator cuts its input off at, elementwise.
struct Bounds {
  float low = std::numeric_limits<float>::lowest(), high = std::numeric_limits<float>::max();
};
/// nullopt where they are not known before the run.
using BoundsFn = std::optional<Bounds> (*)(const NodeConstants& node);

/// The body of a function of standard operators that stands for a node: statements in ONNX's text form, which read
/// i0, i1, ... (the inputs that it has) and make y (its output) and p (its second one, where it has that).
using DefinitionFn = std::string (*)(const graph::Graph& graph, const graph::Node& node);

/// A number that leaves the operand beside it as it is.
struct Neutral {
  double value;
};

/// Of one version of an operator. Without a word in its registration an operator has none of them.
struct OpTraits {
  Axes axes = Axes::Fixed;
  std::int64_t default_axis = 0;  ///< for Axes::Along
  Moves moves = Moves::Nothing;
  Blocks blocks = Blocks::None;
  Product product = Product::None;
  bool commutative = false;           ///< the first two inputs may change places
  bool passes_one_on = false;         ///< of one input only, output 0 is that input
  std::optional<Neutral> neutral;     ///< of the second operand, of either where commutative
  BoundsFn bounds = nullptr;          ///< where it only cuts off
  ActivationFn activation = nullptr;  ///< where fused operators can apply it
  DefinitionFn definition = nullptr;  ///< of an operator that no other runtime knows
  const char* on_codes = nullptr;     ///< operator of com.microsoft that does it faster, on 8-bit codes of one scale

  /// Broadcasting included.
  bool is_elementwise() const { return axes == Axes::Elementwise || axes == Axes::Broadcast; }
};

/// None of them for a node without a schema.
const OpTraits& traits_of(const graph::Node& node, const Registry& registry);

}  // namespace infernode::kernel
