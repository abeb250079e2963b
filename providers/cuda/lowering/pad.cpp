// Pad: with a constant, or with elements of the input again.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "providers/cuda/lowering/parts/moves.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;

bool can_pad(const NodeView& node) {
  const std::string mode = node.attributes().get_string("mode", "constant");
  const bool named = mode == "constant" || mode == "edge" || mode == "reflect" || mode == "wrap";
  // Before version 11 pads and value are attributes.
  const bool by_inputs = node.node().opset >= 11 || !node.node().domain.empty();
  return named && by_inputs && can_move_known(node);
}
std::uint64_t bits_of(const tensor::Tensor* value) {
  std::uint64_t bits = 0;
  if (value != nullptr && value->numel() > 0) std::memcpy(&bits, value->raw(), tensor::bit_size(value->dtype()) / 8);
  return bits;
}

/// Elements before and behind each axis.
struct Pads {
  std::vector<std::int64_t> before, behind;
};
Pads pads_of(Builder& b, std::size_t rank) {
  const std::vector<std::int64_t> given = tensor::to_int64_vector(*b.known(1));
  std::vector<std::int64_t> axes;
  for (std::size_t d = 0; d < rank; ++d) axes.push_back(static_cast<std::int64_t>(d));
  if (b.known(3) != nullptr) axes = tensor::to_int64_vector(*b.known(3));
  if (given.size() != 2 * axes.size()) {
    fail(ErrorCode::InvalidArgument, cat("pads has ", given.size(), " elements for ", axes.size(), " axes"));
  }
  Pads pads{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = tensor::normalize_axis(axes[i], rank);
    pads.before[axis] = given[i];
    pads.behind[axis] = given[i + axes.size()];
  }
  return pads;
}

/// Fills the output, then copies what there is of the input; negative pads cut.
void pad_constant(Builder& b, const DeviceTensor& x, const DeviceTensor& y, const Pads& pads) {
  const std::vector<std::int64_t> from = vector_of(x.shape.strides()), to = vector_of(y.shape.strides());
  b.launch(plan_fill(
      b.target(),
      {.to = y.at, .element_bytes = y.element_bytes(), .dims = y.shape, .to_stride = to, .bits = bits_of(b.known(2))}));
  Shape inside = x.shape;
  std::int64_t source = 0, sink = 0;
  for (std::size_t d = 0; d < x.shape.rank(); ++d) {
    const std::int64_t before = pads.before[d], behind = pads.behind[d];
    inside[d] =
        std::max<std::int64_t>(0, x.shape[d] + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(behind, 0));
    source += std::max<std::int64_t>(-before, 0) * from[d];
    sink += std::max<std::int64_t>(before, 0) * to[d];
  }
  b.launch(plan_strided_copy(b.target(), {.from = x.at + static_cast<DevicePtr>(source) * x.element_bytes(),
                                          .to = y.at + static_cast<DevicePtr>(sink) * y.element_bytes(),
                                          .element_bytes = y.element_bytes(),
                                          .dims = inside,
                                          .from_stride = from,
                                          .to_stride = to}));
}

/// Which element of an axis stands at each place of the padded one. Negative pads cut first.
std::vector<std::int64_t> repeated_places(std::int64_t dim, std::int64_t before, std::int64_t behind,
                                          std::string_view mode) {
  const std::int64_t first = std::max<std::int64_t>(-before, 0);
  const std::int64_t length = dim - first + std::min<std::int64_t>(behind, 0), period = 2 * (length - 1);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < dim + before + behind; ++i) {
    std::int64_t at = i - std::max<std::int64_t>(before, 0);
    if (mode == "edge") {
      at = std::clamp<std::int64_t>(at, 0, length - 1);
    } else if (mode == "wrap") {
      at = (at % length + length) % length;
    } else {
      at = period == 0 ? 0 : (at % period + period) % period;
      if (at >= length) at = period - at;
    }
    places.push_back(first + at);
  }
  return places;
}

/// One axis after the other.
void pad_repeating(Builder& b, const DeviceTensor& x, const Pads& pads, std::string_view mode) {
  std::vector<std::size_t> axes;
  for (std::size_t d = 0; d < x.shape.rank(); ++d) {
    if (pads.before[d] != 0 || pads.behind[d] != 0) axes.push_back(d);
  }
  if (axes.empty()) return b.view(0, x);
  DeviceTensor from = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t d = axes[i];
    if (x.shape[d] + std::min<std::int64_t>(pads.before[d], 0) + std::min<std::int64_t>(pads.behind[d], 0) <= 0) {
      fail(ErrorCode::InvalidArgument, cat("axis ", d, " has no elements to repeat"));
    }
    from =
        take_along(b, from, d, repeated_places(x.shape[d], pads.before[d], pads.behind[d], mode), i + 1 == axes.size());
  }
}

void lower_pad(Builder& b) {
  const DeviceTensor x = b.input(0);
  const Pads pads = pads_of(b, x.shape.rank());
  const std::string mode = b.attributes().get_string("mode", "constant");
  if (mode == "constant") return pad_constant(b, x, b.output(0), pads);
  if (b.output_shape(0).numel() == 0) {
    b.output(0);
    return;
  }
  pad_repeating(b, x, pads, mode);
}

}  // namespace

void register_pad(Lowerings& lowerings) {
  lowerings.push_back({"", "Pad", can_pad, lower_pad});
  lowerings.push_back({graph::kMicrosoft, "Pad", can_pad, lower_pad});
}

}  // namespace infernode::cuda
