#pragma once

#include "providers/cuda/kernels/conv.h"
#include "providers/cuda/kernels/epilogue.h"
#include "providers/cuda/kernels/gemm.h"
#include "providers/cuda/lowering/lowering.h"

// What lowerings of matrix products, convolutions and attention share.
namespace infernode::cuda {

/// The types that products take.
inline constexpr tensor::TypeSet kProductTypes{tensor::DType::Float32, tensor::DType::Float16, tensor::DType::BFloat16};
Element element_of(tensor::DType dtype);
Precision precision_of(const Builder& b);

/// Whether `activation` and `activation_params` of a fused operator name something that epilogues have.
bool can_activate(const NodeView& node);
/// Sets what those attributes say.
void set_activation(const graph::Attributes& attributes, Epilogue& epilogue);

/// The problem's B is a known input [k, n], or [n, k] where `transposed`, packed once; `layout` is to live as long.
void use_weights(Builder& b, std::size_t input, bool transposed, GemmProblem& problem, WeightLayout& layout);

/// Plans the product with the scratch memory that it needs.
void launch_gemm(Builder& b, GemmProblem problem);

/// What every convolution of x into y, both channels last, says of itself: sizes, operands and the bias, input 2.
/// Channels, weights and padding are the caller's.
ConvProblem conv_problem(Builder& b, const DeviceTensor& x, const DeviceTensor& y, const tensor::Shape& kernel,
                         const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilations);
/// Plans the convolution with the scratch memory that it needs.
void launch_conv(Builder& b, ConvProblem problem);

}  // namespace infernode::cuda
