#pragma once

#include <optional>

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/elementwise.h"
#include "providers/cuda/plan/device_tensor.h"

namespace infernode::cuda {

/// One operator on elements, with numpy's broadcasting. Tensors may have channels last where all of them that are not
/// scalars or along channels do; `shape` is that of the output.
struct ElementwiseProblem {
  std::string kernel;  ///< "unary_f16", "binary_f32", "compare_i64", "where_2", ... without the pack's size
  std::uint32_t op = 0;
  std::vector<DeviceTensor> inputs;
  DeviceTensor out;
  float a = 0, b = 0;
};
Launch plan_elementwise(const Target& target, const ElementwiseProblem& problem);
/// The same for one or two inputs of any types of numbers, `kernel` unused: slower for those that have kernels.
Launch plan_wide(const Target& target, const ElementwiseProblem& problem);

struct CastProblem {
  DevicePtr from = 0;
  tensor::DType from_type{};
  DevicePtr to = 0;
  tensor::DType to_type{};
  std::int64_t count = 0;
};
Launch plan_cast(const Target& target, const CastProblem& problem);

/// The type's name in kernels: "f16"; "" where they have none.
std::string_view kernel_suffix(tensor::DType dtype);
/// The type in conversions; nullopt where they do not take it.
std::optional<Number> number_of(tensor::DType dtype);

}  // namespace infernode::cuda
