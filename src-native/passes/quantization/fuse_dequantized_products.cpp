#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "base/half.h"
#include "base/packed.h"
#include "graph/patch.h"
#include "graph/walks.h"
#include "passes/pattern_passes.h"
#include "tensor/dispatch.h"

namespace infernode::passes {

namespace {

using graph::Graph;
using graph::kNoNode;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr const char* kProduct = "MatMulNBits";
std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

bool is_signed(DType type) { return type == DType::Int2 || type == DType::Int4 || type == DType::Int8; }
std::size_t bits_of(DType type) {
  const bool code = is_signed(type) || type == DType::UInt2 || type == DType::UInt4 || type == DType::UInt8;
  return code ? tensor::bit_size(type) : 0;
}

/// A matrix [K, N] of codes as a DequantizeLinear and what follows it say it.
struct Codes {
  Tensor codes, scales, zeros;  ///< zeros: may be none
  std::size_t k = 0, n = 0;
  bool rows = false;                     ///< the codes lie as [N, K]
  std::size_t length = 1, inner = 1;     ///< of the axis that scales go along; of what is inside of it
  std::size_t in_block = 0, blocks = 0;  ///< elements that share a scale (0: no blocks), blocks of an axis
  std::size_t block = 0;                 ///< elements that share a scale in what is made
  std::vector<NodeId> from;              ///< nodes that are replaced, the product excepted

  std::size_t bits() const { return bits_of(codes.dtype()); }
  std::size_t at(std::size_t row, std::size_t column) const { return rows ? column * k + row : row * n + column; }
  /// The scale of the code at a place in memory.
  std::size_t scale_at(std::size_t flat) const {
    if (scales.numel() == 1) return 0;
    if (in_block == 0) return flat / inner % length;
    return (flat / (inner * length) * blocks + flat / inner % length / in_block) * inner + flat % inner;
  }
  /// Along K, scales change at blocks' borders only.
  bool fits_blocks() const {
    if (block > 4 * k) return false;  // blocks are stored whole: mostly padding
    if (scales.numel() == 1) return true;
    if (in_block == 0) return rows ? inner % k == 0 : inner == 1 && length == n;
    if (inner != (rows ? 1 : n)) return false;
    return length == k || (length % block == 0 && k % block == 0);
  }
};

/// Fills in how scales lie; false where the node's inputs are not constants of a kind that MatMulNBits knows.
bool read_scales(const Graph& graph, const Node& node, Codes& out) {
  const bool has_zeros = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
  const Tensor *codes = constant(graph, node.inputs[0]), *scales = constant(graph, node.inputs[1]);
  const Tensor* zeros = has_zeros ? constant(graph, node.inputs[2]) : nullptr;
  if (codes == nullptr || scales == nullptr || bits_of(codes->dtype()) == 0 || !tensor::is_floating(scales->dtype()) ||
      tensor::bit_size(scales->dtype()) < 16)
    return false;
  if (has_zeros && (zeros == nullptr || zeros->dtype() != codes->dtype() || zeros->numel() != scales->numel()))
    return false;
  out.codes = *codes;
  out.scales = *scales;
  if (has_zeros) out.zeros = *zeros;
  const std::int64_t block = node.attributes.get_int("block_size", 0);
  if (out.scales.numel() == 1 && block == 0) return true;
  const Shape& shape = out.codes.shape();
  std::int64_t axis = node.attributes.get_int("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(shape.rank());
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.rank())) return false;
  out.length = size(shape[size(axis)]);
  out.inner = size(shape.numel(size(axis) + 1, shape.rank()));
  if (block == 0) return out.scales.rank() == 1 && size(out.scales.dim(0)) == out.length;
  if (block < 16 || block > 65536 || (block & (block - 1)) != 0) return false;
  out.in_block = out.block = size(block);
  out.blocks = (out.length + out.block - 1) / out.block;
  Shape expected = shape;
  expected[size(axis)] = static_cast<std::int64_t>(out.blocks);
  return out.scales.shape() == expected;
}

std::size_t block_for(std::size_t k) {
  std::size_t block = 256;
  while (block > 16 && k % block != 0) block /= 2;
  return block;
}

/// Goes back from a product's second factor [K, N] ([N, K] where `transposed`) through casts, transposes and a reshape.
/// `block` as in PassOptions.
std::optional<Codes> trace(const Graph& graph, ValueId factor, bool transposed, std::int64_t block) {
  const auto& type = graph.value(factor).type;
  const auto shape = type.shape ? graph::to_known(*type.shape) : std::nullopt;
  if (!shape || shape->rank() != 2 || shape->numel() == 0) return std::nullopt;
  Codes out;
  out.rows = transposed;
  out.k = size((*shape)[transposed ? 1 : 0]);
  out.n = size((*shape)[transposed ? 0 : 1]);
  out.block = block == 0 ? block_for(out.k) : size(block);
  bool reshaped = false;
  for (ValueId value = factor;;) {
    const NodeId id = graph.value(value).producer;
    if (id == kNoNode || graph.node(id).inputs.empty() || graph.node(id).inputs[0] == kNoValue) return std::nullopt;
    const Node& node = graph.node(id);
    out.from.push_back(id);
    if (is_dequantizer(node)) {
      if (!read_scales(graph, node, out) || size(out.codes.numel()) != out.k * out.n) return std::nullopt;
      // One scale or one for each column: products of 8 bits have a form of their own.
      if (out.bits() == 8 && out.in_block == 0) return std::nullopt;
      return out.fits_blocks() ? std::optional(out) : std::nullopt;
    }
    value = node.inputs[0];
    if (is(node, kCast)) {
      if (!tensor::is_floating(graph.value(value).type.elem)) return std::nullopt;
    } else if (is(node, kTranspose) && !reshaped) {
      const auto perm = node.attributes.get_ints("perm");
      if (!perm.empty() && perm != std::vector<std::int64_t>{1, 0} && perm != std::vector<std::int64_t>{0, 1})
        return std::nullopt;
      if (perm.empty() || perm[0] == 1) out.rows = !out.rows;
    } else if (is(node, kReshape)) {
      reshaped = true;
    } else {
      return std::nullopt;
    }
  }
}

std::uint8_t code(const Tensor& t, std::size_t i) {
  const auto* data = static_cast<const std::uint8_t*>(t.raw());
  switch (bits_of(t.dtype())) {
    case 2:
      return get_packed<2>(data, i);
    case 4:
      return get_packed<4>(data, i);
    default:
      return data[i];
  }
}
/// Signed codes are moved up so that the least one is 0.
std::uint8_t raised(const Tensor& t, std::size_t i) {
  const auto middle = static_cast<std::uint8_t>(is_signed(t.dtype()) ? 1u << (bits_of(t.dtype()) - 1) : 0u);
  return code(t, i) ^ middle;
}

/// What MatMulNBits reads: codes [N, blocks, bytes of a block], scales [N, blocks], zero points [N, bytes].
struct Packed {
  Tensor codes, scales, zeros;  ///< zeros: none where the middle of the range is meant
};

Packed pack(const Codes& in, DType type) {
  const std::size_t bits = in.bits(), blocks = (in.k + in.block - 1) / in.block, block_bytes = in.block * bits / 8;
  const std::size_t zero_bytes = (blocks * bits + 7) / 8;
  const auto shape = [](std::initializer_list<std::size_t> dims) {
    Shape out;
    for (const std::size_t dim : dims) out.push_back(static_cast<std::int64_t>(dim));
    return out;
  };
  const auto zeroed = [&](const Shape& dims) {
    return Tensor(DType::UInt8, dims, tensor::zeroed_host_buffer(size(dims.numel())));
  };
  Packed out{zeroed(shape({in.n, blocks, block_bytes})), Tensor::make(type, shape({in.n, blocks})), {}};
  if (in.zeros || !is_signed(in.codes.dtype())) out.zeros = zeroed(shape({in.n, zero_bytes}));
  auto* codes = static_cast<std::uint8_t*>(out.codes.mutable_raw());
  for (std::size_t n = 0; n < in.n; ++n, codes += blocks * block_bytes) {
    for (std::size_t k = 0; k < in.k; ++k)
      codes[k * bits / 8] |= static_cast<std::uint8_t>(raised(in.codes, in.at(k, n)) << (k * bits % 8));
  }
  const std::vector<float> scales = tensor::to_float_vector(in.scales);
  tensor::dispatch<float, Float16, BFloat16>(type, kProduct, [&]<class T>(tensor::TypeTag<T>) {
    T* to = out.scales.mutable_data<T>();
    for (std::size_t n = 0; n < in.n; ++n) {
      for (std::size_t b = 0; b < blocks; ++b) {
        const std::size_t s = in.scale_at(in.at(b * in.block, n));
        *to++ = static_cast<T>(scales[s]);
        if (!in.zeros) continue;
        const std::size_t bit = b * bits;
        auto* zeros = static_cast<std::uint8_t*>(out.zeros.mutable_raw()) + n * zero_bytes;
        zeros[bit / 8] |= static_cast<std::uint8_t>(raised(in.zeros, s) << (bit % 8));
      }
    }
  });
  return out;
}

class Fuser {
 public:
  Fuser(Graph& graph, const PassOptions& options) : graph_(graph), options_(options) {}

  bool run() {
    bool changed = false;
    for (const NodeId id : graph::topological_order(graph_, options_)) {
      options_.check();
      changed = fuse(id) || changed;
    }
    return changed;
  }

 private:
  struct Constants {
    ValueId codes, scales, zeros;
  };

  bool fuse(NodeId id) {
    const Node& product = graph_.node(id);
    const bool gemm = is(product, kGemm);
    if ((!gemm && !is(product, kMatMul)) || product.inputs.size() < 2 || !runs_on_cpu(product)) return false;
    const DType type = graph_.value(product.inputs[0]).type.elem;
    if (type != DType::Float32 && type != DType::Float16 && type != DType::BFloat16) return false;
    if (gemm && !is_plain(product)) return false;
    const auto codes =
        trace(graph_, product.inputs[1], gemm && product.attributes.get_int("transB", 0) != 0, options_.block_size);
    if (!codes) return false;
    const ValueId bias = product.inputs.size() > 2 ? product.inputs[2] : kNoValue;
    if (bias != kNoValue) {
      const auto& shape = graph_.value(bias).type.shape;
      if (!shape || shape->size() != 1 || !shape->front().is(static_cast<std::int64_t>(codes->n))) return false;
    }
    graph::GraphPatch patch(graph_);
    const Constants made = constants(patch, *codes, product.inputs[1], type);
    Node node;
    const Node& old = graph_.node(id);
    node.name = old.name;
    node.op_type = kProduct;
    node.domain = kMicrosoft;
    node.opset = 1;
    node.provider = old.provider;
    node.inputs = {old.inputs[0], made.codes, made.scales, made.zeros, kNoValue, bias};
    while (node.inputs.back() == kNoValue) node.inputs.pop_back();
    node.outputs = old.outputs;
    node.attributes.set("K", static_cast<std::int64_t>(codes->k));
    node.attributes.set("N", static_cast<std::int64_t>(codes->n));
    node.attributes.set("bits", static_cast<std::int64_t>(codes->bits()));
    node.attributes.set("block_size", static_cast<std::int64_t>(codes->block));
    node.attributes.set("accuracy_level", options_.accuracy_level);
    std::vector<NodeId> from(codes->from.rbegin(), codes->from.rend());
    from.push_back(id);
    patch.add_node(std::move(node), from);
    patch.remove_node(id);
    patch.apply();
    return true;
  }

  /// C is added as it is, A is not transposed.
  static bool is_plain(const Node& gemm) {
    return gemm.attributes.get_int("transA", 0) == 0 && gemm.attributes.get_float("alpha", 1) == 1 &&
           gemm.attributes.get_float("beta", 1) == 1 && gemm.opset >= 7;
  }

  /// Products that share their weights go on sharing them.
  Constants constants(graph::GraphPatch& patch, const Codes& codes, ValueId factor, DType type) {
    const auto [at, added] = made_.try_emplace({factor, codes.rows, type});
    if (!added) return at->second;
    const Packed packed = pack(codes, type);
    const std::string name = graph_.value(graph_.node(codes.from.back()).inputs[0]).name;
    at->second = {patch.add_constant(name + "_blocks", packed.codes),
                  patch.add_constant(name + "_scales", packed.scales),
                  packed.zeros ? patch.add_constant(name + "_zeros", packed.zeros) : kNoValue};
    return at->second;
  }

  Graph& graph_;
  const PassOptions& options_;
  std::map<std::tuple<ValueId, bool, DType>, Constants> made_;
};

}  // namespace

bool fuse_dequantized_products(Graph& graph, const PassOptions& options) { return Fuser(graph, options).run(); }

}  // namespace infernode::passes
