#include <algorithm>

#include "base/checked.h"
#include "ops/conv/conv_winograd.h"

namespace infernode::ops {

namespace {

using microkernels::ConvShape;
using microkernels::WinogradSplit;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

bool is_plain(const Window& window) {
  const auto all = [](const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::all_of(values.begin(), values.end(), [=](std::int64_t v) { return v == value; });
  };
  return all(window.kernel, 3) && all(window.strides, 1) && all(window.dilations, 1);
}

/// Where the output's shape is known and its tiles are too few.
bool known_small(const graph::ValueType& type, const microkernels::WinogradTable& table, ConvShape shape) {
  if (!type.shape || type.shape->size() != 4 || !(*type.shape)[2].known() || !(*type.shape)[3].known()) return false;
  shape.out_h = size((*type.shape)[2].value());
  shape.out_w = size((*type.shape)[3].value());
  return !microkernels::winograd_pays(table, shape);
}

}  // namespace

ConvWinograd::ConvWinograd(kernel::KernelInfo& info, std::int64_t groups) {
  const tensor::Tensor* w = info.constant(1);
  if (w == nullptr || groups != 1 || w->rank() != 4 || w->dtype() != tensor::DType::Float32 || w->dim(2) != 3 ||
      w->dim(3) != 3 || !is_plain(Window(info.attributes())))
    return;
  // The matrix unit multiplies faster than this saves multiplications.
  if (info.cpu_rung() == CpuRung::Amx) return;
  const microkernels::WinogradTable& table = microkernels::winograd_table(info.cpu_rung());
  const std::size_t out_channels = size(w->dim(0)), in_channels = size(w->dim(1));
  ConvShape shape;
  shape.in_channels = in_channels;
  shape.out_channels = out_channels;
  shape.out_h = shape.out_w = 1 << 12;
  if (!microkernels::winograd_pays(table, shape) || known_small(info.output_type(0), table, shape) ||
      !microkernels::winograd_holds(out_channels, in_channels, w->data<float>()))
    return;
  table_ = &table;
  packed_ = info.packer().pack(info.node(), 1, cat("winograd.", table.name), [&](const tensor::Tensor& weight) {
    tensor::Buffer packed = tensor::host_allocator().allocate(
        checked_mul(table.packed_weight_floats(out_channels, in_channels), sizeof(float)));
    table.pack_weight(out_channels, in_channels, weight.data<float>(), reinterpret_cast<float*>(packed.data()));
    return packed;
  });
  info.release_constant(1);
}

void ConvWinograd::run(kernel::KernelContext& ctx, const ConvProblem& p, const ConvOperands& o,
                       const microkernels::ActivationArgs& activation) const {
  const ConvShape& s = p.shape;
  const std::size_t threads = std::max<std::size_t>(1, ctx.run().max_threads), images = size(p.images);
  const auto* packed = reinterpret_cast<const float*>(packed_.data());
  tensor::Buffer hold;
  float* transformed = nullptr;
  if (microkernels::winograd_pays(*table_, s)) {
    hold = ctx.scratch(checked_mul(table_->transformed_floats(s.out_channels, s.in_channels), sizeof(float)));
    transformed = reinterpret_cast<float*>(hold.data());
    ctx.parallel_for(s.out_channels, static_cast<double>(s.in_channels),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       table_->transform_weight(s.out_channels, s.in_channels, packed, begin, end, transformed);
                     });
  }
  const WinogradSplit split = split_winograd(*table_, s, ceil_div(threads, std::min(images, threads)));
  const std::size_t stride = align_up(checked_mul(table_->scratch_floats(s, split.block(0)), sizeof(float)), 64);
  const tensor::Buffer scratch = ctx.scratch(checked_mul(stride, threads));
  const std::size_t in_size = s.in_channels * s.in_h * s.in_w, out_size = s.out_channels * s.positions();
  constexpr double kFlopsPerNs = 80;
  const double cost = 2.0 * static_cast<double>(out_size) * static_cast<double>(s.depth()) /
                      static_cast<double>(split.count()) / kFlopsPerNs;
  ctx.parallel_for(images * split.count(), cost, [&](std::size_t begin, std::size_t end, std::size_t slot) {
    auto* memory = reinterpret_cast<float*>(scratch.data() + slot * stride);
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t image = i / split.count();
      const microkernels::ConvArgs args{
          .shape = s,
          .input = o.x + image * in_size,
          .packed_weight = packed,
          .bias = o.bias,
          .residual = o.residual == nullptr ? nullptr : o.residual + image * out_size,
          .activation = activation,
          .output = o.y + image * out_size,
      };
      table_->conv(args, transformed, split.block(i % split.count()), memory);
    }
  });
}

}  // namespace infernode::ops
