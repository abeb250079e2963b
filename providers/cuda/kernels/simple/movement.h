#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/movement.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

/// Elements of any shape from one set of strides to another. Axes are merged, elements widened, and exchanges of two
/// axes go through shared memory.
struct StridedCopy {
  DevicePtr from = 0, to = 0;
  std::size_t element_bytes = 0;
  tensor::Shape dims;
  std::vector<std::int64_t> from_stride, to_stride;  ///< elements, one for each of dims; may be 0 or negative
};
std::vector<Launch> plan_strided_copy(const Target& target, const StridedCopy& copy);
/// The same for copies that do not read what another one writes, in fewer launches.
std::vector<Launch> plan_strided_copies(const Target& target, const std::vector<StridedCopy>& copies);
/// Adds the copies of another launch, which are known not to meet. False, and nothing changed, where there is no room,
/// or either copies nothing.
bool add_copies(Launch& first, const Launch& second);
/// Adds the copies of a launch that follows to the one before it, where none of them touches what another one writes.
/// False, and nothing changed, where that cannot be, or either copies nothing.
bool join_copies(Launch& first, const Launch& second);

/// Fills elements with one value, whose bytes are the low ones of `bits`.
struct StridedFill {
  DevicePtr to = 0;
  std::size_t element_bytes = 0;
  tensor::Shape dims;
  std::vector<std::int64_t> to_stride;
  std::uint64_t bits = 0;
};
std::vector<Launch> plan_fill(const Target& target, const StridedFill& fill);

/// The same tensor in another order (or the same one, elsewhere). Channels beyond the last become zeros.
std::vector<Launch> plan_reorder(const Target& target, const DeviceTensor& from, const DeviceTensor& to);

/// out[o][k][i] = from[o][index[k]][i].
struct GatherProblem {
  DevicePtr from = 0, index = 0, to = 0;
  bool index_is_64 = true;
  std::size_t element_bytes = 0;
  std::int64_t outer = 1, axis = 0, inner = 1, indices = 0;
};
std::vector<Launch> plan_gather(const Target& target, const GatherProblem& problem);

}  // namespace infernode::cuda
