#pragma once
// A few operators, so that the machinery is tested without those of ops/.

#include "kernel/inference.h"
#include "kernel/op_registrar.h"

namespace infernode::test {

/// Adds float or int64 tensors of one shape.
class AddKernel final : public kernel::Kernel {
 public:
  explicit AddKernel(kernel::KernelInfo&) {}
  void run(kernel::KernelContext& ctx) const override {
    const tensor::Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (!(a.shape() == b.shape())) fail(ErrorCode::ShapeMismatch, "shapes differ");
    const tensor::Tensor out = ctx.output(0, a.shape());
    for (std::int64_t i = 0; i < a.numel(); ++i) {
      if (a.dtype() == tensor::DType::Float32)
        out.mutable_data<float>()[i] = a.data<float>()[i] + b.data<float>()[i];
      else
        out.mutable_data<std::int64_t>()[i] = a.data<std::int64_t>()[i] + b.data<std::int64_t>()[i];
    }
  }
};

class ShapeKernel final : public kernel::Kernel {
 public:
  explicit ShapeKernel(kernel::KernelInfo&) {}
  void run(kernel::KernelContext& ctx) const override {
    const tensor::Shape& shape = ctx.input(0).shape();
    const tensor::Tensor out = ctx.output(0, {static_cast<std::int64_t>(shape.rank())});
    for (std::size_t i = 0; i < shape.rank(); ++i) out.mutable_data<std::int64_t>()[i] = shape[i];
  }
};

/// Runs its subgraph on its input.
class CallKernel final : public kernel::Kernel {
 public:
  explicit CallKernel(kernel::KernelInfo& info) : body_(info.subgraph("body")) {}
  void run(kernel::KernelContext& ctx) const override {
    std::vector<tensor::Value> results = body_->run(ctx, {ctx.input_value(0)});
    ctx.set_output(0, std::move(results.at(0)));
  }

 private:
  std::unique_ptr<kernel::SubgraphRunner> body_;
};

inline void infer_shape(kernel::InferContext& ctx) {
  if (const auto* shape = ctx.input_shape(0)) {
    ctx.set_output_shape(0, tensor::Shape{static_cast<std::int64_t>(shape->size())});
    ctx.set_output_contents(0, *shape);
  }
}

inline void infer_call(kernel::InferContext& ctx) {
  const graph::ValueType in = ctx.input_type(0);
  const auto types = ctx.infer_subgraph("body", {&in, 1});
  if (!types.empty()) ctx.set_output_type(0, types[0]);
}

inline kernel::Registry make_registry() {
  kernel::Registry registry;
  kernel::OpRegistrar r(registry);
  r.op("Add").version(7, "A:T, B:T -> C:T; T = float|int64").infer(kernel::infer_broadcast).kernel<AddKernel>();
  r.op("Shape").version(1, "data:T -> shape:int64; T = all").infer(infer_shape).kernel<ShapeKernel>();
  r.op("Call").version(1, "X:V -> Y:V2; V = any, V2 = any").infer(infer_call).kernel<CallKernel>();
  r.op("Mystery").version(1, "X:T -> Y:T; T = float");
  return registry;
}

}  // namespace infernode::test
