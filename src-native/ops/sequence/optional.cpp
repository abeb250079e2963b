#include "kernel/op_registrar.h"

namespace infernode::ops {
namespace {

using graph::ValueType;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Value;

class MakeOptional final : public Kernel {
 public:
  explicit MakeOptional(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    tensor::Optional out;
    if (ctx.has_input(0)) out.item = std::make_shared<const Value>(ctx.input_value(0));
    ctx.set_output(0, std::move(out));
  }
};

/// The value in an optional; tensors and sequences count as optionals that have one. Null where there is none.
const Value* held(const KernelContext& ctx) {
  if (!ctx.has_input(0)) return nullptr;
  const Value& value = ctx.input_value(0);
  return value.is_optional() ? value.optional().item.get() : &value;
}

class OptionalHasElement final : public Kernel {
 public:
  explicit OptionalHasElement(KernelInfo&) {}
  void run(KernelContext& ctx) const override { ctx.set_output(0, tensor::Tensor::scalar(held(ctx) != nullptr)); }
};

class OptionalGetElement final : public Kernel {
 public:
  explicit OptionalGetElement(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Value* value = held(ctx);
    if (value == nullptr) fail(ErrorCode::InvalidArgument, "OptionalGetElement: the optional is empty");
    ctx.set_output(0, *value);
  }
};

void infer_make(InferContext& ctx) {
  if (ctx.has_input(0)) {
    ctx.set_output_type(0, ValueType::optional(ctx.input_type(0)));
  } else if (const ValueType* type = ctx.attributes().get_type("type")) {
    ctx.set_output_type(0, ValueType::optional(*type));
  } else {
    fail(ErrorCode::InvalidModel, "Optional has neither an input nor the attribute 'type'");
  }
}

void infer_has(InferContext& ctx) {
  ctx.set_output_dtype(0, tensor::DType::Bool);
  ctx.set_output_shape(0, graph::SymShape{});
}

void infer_get(InferContext& ctx) {
  const ValueType& type = ctx.input_type(0);
  if (type.kind == ValueType::Kind::Optional && type.inner) {
    ctx.set_output_type(0, *type.inner);
  } else if (type.kind != ValueType::Kind::Unknown && type.kind != ValueType::Kind::Optional) {
    ctx.set_output_type(0, type);
  }
}

}  // namespace

void register_optional(kernel::OpRegistrar& r) {
  r.op("Optional")
      .version(15, "input:V? -> output:O; V = all|seq(all), O = optional(all)|optional(seq(all))")
      .version(28, "input:V? -> output:O; V = all_ir14|seq(all_ir14), O = optional(all_ir14)|optional(seq(all_ir14))")
      .infer(infer_make)
      .kernel<MakeOptional>();
  r.op("OptionalHasElement")
      .version(15, "input:O -> output:B; O = optional(all)|optional(seq(all)), B = bool")
      .version(18, "input:O? -> output:B; O = optional(all)|optional(seq(all))|all|seq(all), B = bool")
      .version(28,
               "input:O? -> output:B; O = optional(all_ir14)|optional(seq(all_ir14))|all_ir14|seq(all_ir14), B = bool")
      .infer(infer_has)
      .kernel<OptionalHasElement>();
  r.op("OptionalGetElement")
      .version(15, "input:O -> output:V; O = optional(all)|optional(seq(all)), V = all|seq(all)")
      .version(18, "input:O -> output:V; O = optional(all)|optional(seq(all))|all|seq(all), V = all|seq(all)")
      .version(28,
               "input:O -> output:V; O = optional(all_ir14)|optional(seq(all_ir14))|all_ir14|seq(all_ir14), V = "
               "all_ir14|seq(all_ir14)")
      .infer(infer_get)
      .kernel<OptionalGetElement>()
      .alias(0, 0);
}

}  // namespace infernode::ops
