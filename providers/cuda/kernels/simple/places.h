#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/places.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

/// One thread for each of P's elements, by the kernel of this name for elements of so many bytes (1, 2, 4 or 8).
template <class P>
Launch plan_by_size(std::string_view name, std::size_t element_bytes, std::int64_t threads, const P& params) {
  std::string kernel(name);
  kernel += '_';
  kernel += std::to_string(element_bytes);
  return launch_of_threads(std::move(kernel), threads, param_bytes(params));
}

}  // namespace infernode::cuda
