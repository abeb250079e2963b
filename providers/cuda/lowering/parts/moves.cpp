#include "providers/cuda/lowering/parts/moves.h"

#include "providers/cuda/lowering/parts/elements.h"

namespace infernode::cuda {

DeviceTensor take_along(Builder& b, const DeviceTensor& x, std::size_t axis, std::span<const std::int64_t> places,
                        bool last) {
  tensor::Shape shape = x.shape;
  shape[axis] = static_cast<std::int64_t>(places.size());
  const DeviceTensor y = last ? b.output(0) : scratch_tensor(b, x.dtype, shape);
  const tensor::Shape count{shape[axis]};
  b.launch(plan_gather(b.target(), {.from = x.at,
                                    .index = b.constants().upload(tensor::Tensor::of<std::int64_t>(count, places)),
                                    .to = y.at,
                                    .index_is_64 = true,
                                    .element_bytes = x.element_bytes(),
                                    .outer = x.shape.numel(0, axis),
                                    .axis = x.shape[axis],
                                    .inner = x.shape.numel(axis + 1, x.shape.rank()),
                                    .indices = shape[axis]}));
  return y;
}

}  // namespace infernode::cuda
