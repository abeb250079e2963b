// Pooling, channels last.

#include "providers/cuda/kernels/simple/pool.h"

#include <algorithm>

#include "providers/cuda/lowering/parts/channel_gate.h"

namespace infernode::cuda {
namespace {

constexpr tensor::TypeSet kReals{tensor::DType::Float32, tensor::DType::Float16, tensor::DType::BFloat16};

bool can_pool(const NodeView& node) {
  const std::size_t rank = node.input_rank(0).value_or(0);
  const std::string pad = node.attributes().get_string("auto_pad", "NOTSET");
  return kReals.contains(node.input_dtype(0)) && (rank == 3 || rank == 4) && !node.is_empty(0) && !node.has_output(1) &&
         (pad == "NOTSET" || pad == "VALID");
}

template <bool average>
void lower_pool(Builder& b) {
  const DeviceTensor x = b.input_channels_last(0);
  const DeviceTensor y = b.output(0, Order::ChannelsLast);
  if (y.numel() == 0) return;
  const std::size_t dims = x.shape.rank() - 2;
  const std::vector<std::int64_t> ones(dims, 1), zeros(dims * 2, 0);
  std::vector<std::int64_t> kernel = b.attributes().get_ints("kernel_shape");
  std::vector<std::int64_t> strides = b.attributes().get_ints("strides", ones);
  std::vector<std::int64_t> dilations = b.attributes().get_ints("dilations", ones);
  std::vector<std::int64_t> pads = b.attributes().get_ints("pads", zeros);
  if (pads.empty()) pads = zeros;
  const auto of = [dims](const std::vector<std::int64_t>& list, std::size_t from_end, std::int64_t none) {
    return from_end < dims ? static_cast<std::int32_t>(list[dims - 1 - from_end]) : static_cast<std::int32_t>(none);
  };
  const std::vector<std::int64_t> behind(pads.begin() + static_cast<std::ptrdiff_t>(dims), pads.end());
  PoolParams p{};
  p.kernel_w = of(kernel, 0, 1);
  p.kernel_h = of(kernel, 1, 1);
  p.stride_w = of(strides, 0, 1);
  p.stride_h = of(strides, 1, 1);
  p.dilation_w = of(dilations, 0, 1);
  p.dilation_h = of(dilations, 1, 1);
  p.pad_w = of(pads, 0, 0);
  p.pad_h = of(pads, 1, 0);
  p.pad_end_w = of(behind, 0, 0);
  p.pad_end_h = of(behind, 1, 0);
  p.average = average;
  p.count_padding = average && b.attributes().get_int("count_include_pad", 0) != 0;
  b.launch(plan_pool(b.target(), x, y, p));
}

bool can_global(const NodeView& node) {
  return kReals.contains(node.input_dtype(0)) && node.input_rank(0).value_or(0) >= 3 && !node.is_empty(0);
}
template <bool average>
void lower_global(Builder& b) {
  if (average && defer_pixel_means(b)) return;
  const DeviceTensor x = b.input_channels_last(0);
  const DeviceTensor y = b.output(0);
  if (y.numel() > 0) b.launch(plan_global_pool(b.target(), x, y, average));
}

}  // namespace

void register_pool(Lowerings& lowerings) {
  lowerings.push_back({"", "MaxPool", can_pool, lower_pool<false>});
  lowerings.push_back({"", "AveragePool", can_pool, lower_pool<true>});
  lowerings.push_back({"", "GlobalAveragePool", can_global, lower_global<true>});
  lowerings.push_back({"", "GlobalMaxPool", can_global, lower_global<false>});
}

}  // namespace infernode::cuda
