#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"
#include "ops/conv/window.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Puts each element back at the place that MaxPool's Indices name, among zeros. Places count in the shape that the
/// window gives; a greater output_shape surrounds that with zeros behind each axis.
class MaxUnpool final : public kernel::Kernel {
 public:
  explicit MaxUnpool(KernelInfo& info) : window_(info.attributes()), output_shape_(info, "", 2) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& places = ctx.input(1);
    if (x.rank() < 3) fail(ErrorCode::ShapeMismatch, cat("MaxUnpool takes X [N,C,...], got ", x.to_string()));
    if (places.shape() != x.shape())
      fail(ErrorCode::ShapeMismatch, cat("MaxUnpool: I ", places.to_string(), " does not fit X ", x.to_string()));
    Window window = window_;
    window.complete(x.rank() - 2, {});
    Shape natural{x.dim(0), x.dim(1)};
    for (std::size_t i = 0; i + 2 < x.rank(); ++i) {
      const std::int64_t spread = checked_mul(x.dim(i + 2) - 1, window.strides[i]);
      const std::int64_t rest = window.kernel[i] - window.pads[i] - window.pads[i + window.kernel.size()];
      natural.push_back(checked_add(spread, rest));
    }
    Shape shape = natural;
    if (const auto given = output_shape_.read(ctx)) {
      shape = Shape(given->span());
      bool fits = shape.rank() == natural.rank();
      for (std::size_t i = 0; fits && i < shape.rank(); ++i) fits = shape[i] >= natural[i];
      if (!fits) {
        fail(ErrorCode::ShapeMismatch,
             cat("MaxUnpool: output_shape ", shape.to_string(), " does not hold ", natural.to_string()));
      }
    }
    const Tensor y = ctx.output(0, shape);
    const bool direct = shape == natural;
    const Tensor target = direct ? y : Tensor::make(x.dtype(), natural, *ctx.run().allocator);
    fill_bytes(ctx.run(), target);
    const std::int64_t* at = places.data<std::int64_t>();
    dispatch_elements(x.dtype(), "MaxUnpool", [&]<class T>(tensor::TypeTag<T>) {
      const T* from = elements<T>(x);
      T* to = mutable_elements<T>(target);
      kernel::Watch watch(ctx.run());
      for (std::int64_t i = 0; i < x.numel(); ++i) {
        watch.did(2);
        const std::int64_t place = at[i];
        if (place < 0 || place >= target.numel()) {
          fail(ErrorCode::InvalidArgument, cat("MaxUnpool: index ", place, " lies outside ", natural.to_string()));
        }
        to[place] = from[i];
      }
    });
    if (direct) return;
    fill_bytes(ctx.run(), y);
    strided_copy(ctx.run(), natural, {target, 0, natural.strides()}, {y, 0, shape.strides()});
  }

 private:
  Window window_;
  IntsArgument output_shape_;
};

void infer_max_unpool(InferContext& ctx) {
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  if (ctx.has_input(2)) {
    const auto contents = ctx.input_contents(2);
    ctx.set_output_shape(0, contents ? *contents : unknown_shape(x->size()));
    return;
  }
  if (x->size() < 3) return;
  Window window(ctx.attributes());
  window.complete(x->size() - 2, {});
  graph::SymShape out{(*x)[0], (*x)[1]};
  for (std::size_t i = 0; i + 2 < x->size(); ++i) {
    const std::int64_t rest = window.kernel[i] - window.pads[i] - window.pads[i + window.kernel.size()];
    out.push_back(((*x)[i + 2] - Dim(1)) * Dim(window.strides[i]) + Dim(rest));
  }
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_max_unpool(kernel::OpRegistrar& r) {
  r.op("MaxUnpool")
      .version(9, "X:T1, I:T2, output_shape:T2? -> output:T1; T1 = floats, T2 = int64")
      .version(11, "X:T1, I:T2, output_shape:T2? -> output:T1; T1 = floats, T2 = int64")
      .version(22, "X:T1, I:T2, output_shape:T2? -> output:T1; T1 = floats_bf16, T2 = int64")
      .infer(infer_max_unpool)
      .kernel<MaxUnpool>();
}

}  // namespace infernode::ops
