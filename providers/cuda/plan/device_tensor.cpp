#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

std::vector<std::int64_t> strides_of(const DeviceTensor& t) {
  if (!t.strides.empty()) return t.strides;
  const tensor::Shape plain = t.shape.strides();
  std::vector<std::int64_t> strides(plain.begin(), plain.end());
  if (t.order == Order::Plain) return strides;
  std::int64_t step = t.pitch;
  for (std::size_t d = t.shape.rank(); d-- > 2;) strides[d] = step, step *= t.shape[d];
  strides[0] = step;
  strides[1] = 1;
  return strides;
}

std::optional<std::vector<std::int64_t>> reshaped_strides(const tensor::Shape& from,
                                                          const std::vector<std::int64_t>& strides,
                                                          const tensor::Shape& to) {
  if (from.numel() == 0) return std::nullopt;
  std::vector<std::int64_t> sizes, steps;  // without dims of one
  for (std::size_t d = 0; d < from.rank(); ++d) {
    if (from[d] != 1) sizes.push_back(from[d]), steps.push_back(strides[d]);
  }
  std::vector<std::int64_t> result(to.rank(), 0);
  std::size_t at = sizes.size();
  std::size_t d = to.rank();
  while (at > 0 && d > 0) {
    // The smallest run of dims on either side that has the same number of elements.
    std::size_t first = at - 1, begin = d - 1;
    std::int64_t old_count = sizes[first], new_count = to[begin];
    while (old_count != new_count) {
      if (old_count < new_count) {
        if (first == 0) return std::nullopt;
        --first;
        if (steps[first] != steps[first + 1] * sizes[first + 1]) return std::nullopt;
        old_count *= sizes[first];
      } else {
        if (begin == 0) return std::nullopt;
        --begin;
        new_count *= to[begin];
      }
    }
    std::int64_t step = steps[at - 1];
    for (std::size_t i = d; i-- > begin;) result[i] = to[i] == 1 ? 0 : step, step *= to[i];
    at = first;
    d = begin;
  }
  return result;
}

}  // namespace infernode::cuda
