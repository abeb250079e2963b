#include "kernel/op_registrar.h"
#include "ops/control/control_flow.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;

class If final : public kernel::Kernel {
 public:
  explicit If(KernelInfo& info) : then_(info.subgraph("then_branch")), else_(info.subgraph("else_branch")) {
    for (const auto* branch : {then_.get(), else_.get()}) {
      if (branch->input_count() != 0 || branch->output_count() != info.output_count()) {
        fail(ErrorCode::InvalidModel, cat("a branch of If takes ", branch->input_count(), " inputs and gives ",
                                          branch->output_count(), " outputs; expected 0 and ", info.output_count()));
      }
    }
  }

  void run(KernelContext& ctx) const override {
    const tensor::Tensor& condition = ctx.input(0);
    if (condition.numel() != 1)
      fail(ErrorCode::ShapeMismatch, cat("If's condition has ", condition.numel(), " elements, not one"));
    const auto& branch = condition.data<bool>()[0] ? then_ : else_;
    std::vector<tensor::Value> results = branch->run(ctx, {});
    for (std::size_t o = 0; o < results.size(); ++o) {
      if (ctx.wants_output(o)) ctx.set_output(o, std::move(results[o]));
    }
  }

 private:
  std::unique_ptr<kernel::SubgraphRunner> then_, else_;
};

void infer_if(InferContext& ctx) {
  const auto then_types = ctx.infer_subgraph("then_branch", {});
  const auto else_types = ctx.infer_subgraph("else_branch", {});
  const tensor::Tensor* condition = ctx.input_constant(0);
  const bool decided = condition != nullptr && condition->dtype() == tensor::DType::Bool && condition->numel() == 1;
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (o >= then_types.size() || o >= else_types.size() || !ctx.has_output(o)) continue;
    if (decided) {
      ctx.set_output_type(o, condition->data<bool>()[0] ? then_types[o] : else_types[o]);
    } else {
      ctx.set_output_type(o, merge_types(then_types[o], else_types[o]));
    }
  }
}

}  // namespace

void register_if(kernel::OpRegistrar& r) {
  const auto signature = [](const char* types) { return cat("cond:B -> outputs:V**; ", types, ", B = bool"); };
  r.op("If")
      .version(1, signature(kFlowTypes1))
      .version(11, signature(kFlowTypes1))
      .version(13, signature(kFlowTypes13))
      .version(16, signature(kFlowTypes16))
      .version(19, signature("V = all_ir9|seq(all_ir9)|optional(all_ir9)|optional(seq(all_ir4))"))
      .version(21, signature("V = all_ir10|seq(all_ir10)|optional(all_ir10)|optional(seq(all_ir4))"))
      .version(23, signature("V = all_ir11|seq(all_ir11)|optional(all_ir11)|optional(seq(all_ir4))"))
      .version(24, signature("V = all_ir12|seq(all_ir12)|optional(all_ir12)|optional(seq(all_ir4))"))
      .version(25, signature("V = all_ir13|seq(all_ir13)|optional(all_ir13)|optional(seq(all_ir4))"))
      .infer(infer_if)
      .kernel<If>();
}

}  // namespace infernode::ops
