// BatchNormalization that no convolution took in: a factor and a summand for each channel.

#include <cmath>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/lowering/lowering.h"

namespace infernode::cuda {
namespace {

using tensor::Shape;
using tensor::Tensor;

constexpr tensor::TypeSet kReals{tensor::DType::Float32, tensor::DType::Float16, tensor::DType::BFloat16};

bool can_normalize(const NodeView& node) {
  bool known = !node.has_output(1) && node.attributes().get_int("training_mode", 0) == 0;
  for (std::size_t i = 1; i < 5; ++i) known = known && node.has_input(i) && node.is_known(i);
  return known && node.all_of(kReals) && node.input_rank(0).value_or(0) >= 2 &&
         node.input_rank(0).value_or(9) <= kElementwiseRank && node.node().opset >= 9;
}

/// A tensor of one number for each channel, in x's type, that broadcasts to x.
DeviceTensor along_channels(Builder& b, const std::vector<float>& numbers, const DeviceTensor& x) {
  Shape shape{static_cast<std::int64_t>(numbers.size())};
  shape.resize(x.shape.rank() - 1, 1);
  Tensor host = Tensor::make(x.dtype, shape);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (x.dtype == tensor::DType::Float32) host.mutable_data<float>()[i] = numbers[i];
    if (x.dtype == tensor::DType::Float16) host.mutable_data<Float16>()[i] = Float16(numbers[i]);
    if (x.dtype == tensor::DType::BFloat16) host.mutable_data<BFloat16>()[i] = BFloat16(numbers[i]);
  }
  return {.dtype = x.dtype, .shape = shape, .at = b.constants().upload(host), .storage = SIZE_MAX, .is_constant = true};
}

void lower_batch_norm(Builder& b) {
  const DeviceTensor x = b.input_as_it_is(0);
  for (std::size_t i = 1; i < 5; ++i) {
    if (b.known(i)->numel() == x.shape[1]) continue;
    fail(ErrorCode::ShapeMismatch, cat("BatchNormalization: ", b.known(i)->to_string(), " does not fit the ",
                                       x.shape[1], " channels of X ", x.shape.to_string()));
  }
  std::vector<float> factor = tensor::to_float_vector(*b.known(1)), summand = tensor::to_float_vector(*b.known(2));
  const std::vector<float> mean = tensor::to_float_vector(*b.known(3)), variance = tensor::to_float_vector(*b.known(4));
  const float epsilon = b.attributes().get_float("epsilon", 1e-5f);
  for (std::size_t i = 0; i < factor.size(); ++i) {
    factor[i] /= std::sqrt(variance[i] + epsilon);
    summand[i] -= mean[i] * factor[i];
  }
  const DeviceTensor y = b.output(0, x.order);
  if (y.numel() == 0) return;
  const std::string kernel = cat("binary_", kernel_suffix(x.dtype));
  b.launch(plan_elementwise(b.target(), {.kernel = kernel,
                                         .op = static_cast<std::uint32_t>(BinaryOp::mul),
                                         .inputs = {x, along_channels(b, factor, x)},
                                         .out = y}));
  b.launch(plan_elementwise(b.target(), {.kernel = kernel,
                                         .op = static_cast<std::uint32_t>(BinaryOp::add),
                                         .inputs = {y, along_channels(b, summand, x)},
                                         .out = y}));
}

}  // namespace

void register_batch_norm(Lowerings& lowerings) {
  lowerings.push_back({"", "BatchNormalization", can_normalize, lower_batch_norm});
}

}  // namespace infernode::cuda
