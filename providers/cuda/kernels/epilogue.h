#pragma once

#include "providers/cuda/kernels/launch.h"
#include "providers/cuda/kernels/params/epilogue.h"

namespace infernode::cuda {

/// What follows a product: out = act(alpha scale[n] sum + bias[n] + residual).
struct Epilogue {
  DevicePtr out = 0;
  Element out_type = Element::f16;
  std::int64_t out_row = 0;  ///< elements between rows
  std::int64_t out_batch[2] = {0, 0};
  DevicePtr bias = 0;   ///< float32 [n], or 0
  DevicePtr scale = 0;  ///< float32 [n], or 0
  /// Bias and scale are constants: kernels read them before they wait for the kernel before.
  bool columns_constant = true;
  DevicePtr residual = 0;
  Element residual_type = Element::f16;
  std::int64_t residual_row = 0;  ///< 0: one row for all
  std::int64_t residual_batch[2] = {0, 0};
  bool residual_last = false;  ///< added after the activation
  Activation activation = Activation::none;
  float alpha = 1, a = 0, b = 0;
};

/// What kernels read. `column_batch`: elements of bias and scale between batch parts 0.
EpilogueParams epilogue_params(const Epilogue& e, std::int32_t column_batch);

/// Whether kernels will do that know (WholeEpilogue): eight columns are words of 16 bytes everywhere, and the elements
/// of the output and the residual are of this type. For outputs of a multiple of eight columns.
bool is_whole(const EpilogueParams& e, Element type);

}  // namespace infernode::cuda
