#include <algorithm>
#include <limits>

#include "kernel/op_registrar.h"
#include "ops/common/stack.h"
#include "ops/control/control_flow.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::ValueType;
using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;
using tensor::Value;

constexpr std::size_t kFirstCarried = 2;  // inputs: trip count, condition, loop-carried values

class Loop final : public kernel::Kernel {
 public:
  explicit Loop(KernelInfo& info)
      : body_(info.subgraph("body")), carried_(info.input_count() - std::min(info.input_count(), kFirstCarried)) {
    if (body_->input_count() != carried_ + 2 || body_->output_count() < carried_ + 1 ||
        body_->output_count() - 1 < info.output_count()) {
      fail(ErrorCode::InvalidModel,
           cat("Loop carries ", carried_, " values; its body takes ", body_->input_count(), " inputs and gives ",
               body_->output_count(), " outputs for the node's ", info.output_count()));
    }
    scans_ = body_->output_count() - 1 - carried_;
  }

  void run(KernelContext& ctx) const override {
    const Tensor* limit = ctx.optional_input(0);
    const Tensor* condition = ctx.optional_input(1);
    const std::int64_t trips =
        limit != nullptr ? tensor::to_int64_scalar(*limit) : std::numeric_limits<std::int64_t>::max();
    bool go_on = condition == nullptr || tensor::to_int64_scalar(*condition) != 0;
    std::vector<Value> state;
    for (std::size_t i = 0; i < carried_; ++i) state.push_back(ctx.input_value(kFirstCarried + i));
    std::vector<std::vector<Tensor>> scans(scans_);
    if (trips <= 0 || !go_on) give_no_scans(ctx, state);
    for (std::int64_t i = 0; i < trips && go_on; ++i) {
      ctx.run().check();
      std::vector<Value> inputs{Tensor::scalar<std::int64_t>(i), Tensor::scalar<bool>(go_on)};
      for (Value& value : state) inputs.push_back(std::move(value));
      std::vector<Value> outputs = body_->run(ctx, std::move(inputs));
      go_on = tensor::to_int64_scalar(outputs[0].tensor()) != 0;
      for (std::size_t c = 0; c < carried_; ++c) state[c] = std::move(outputs[1 + c]);
      for (std::size_t s = 0; s < scans_; ++s) {
        const Value& scan = outputs[1 + carried_ + s];
        INFERNODE_CHECK(scan.is_tensor(), ErrorCode::InvalidModel, "Loop's scan output ", s, " is ", scan.to_string(),
                        ", which cannot be stacked");
        scans[s].push_back(scan.tensor());
      }
    }
    for (std::size_t c = 0; c < carried_; ++c) {
      if (ctx.wants_output(c)) ctx.set_output(c, std::move(state[c]));
    }
    for (std::size_t s = 0; s < scans_; ++s) {
      if (ctx.wants_output(carried_ + s) && !scans[s].empty())
        stack_parts(ctx, carried_ + s, scans[s], 0, "Loop's scan output");
    }
  }

 private:
  /// The scan outputs of a body that never ran.
  void give_no_scans(KernelContext& ctx, const std::vector<Value>& state) const {
    if (scans_ == 0) return;
    std::vector<ValueType> inputs{ValueType::tensor(tensor::DType::Int64, graph::SymShape{}),
                                  ValueType::tensor(tensor::DType::Bool, graph::SymShape{})};
    for (const Value& value : state) inputs.push_back(kernel::type_of(value));
    const std::vector<ValueType> types = body_->output_types(ctx, inputs);
    for (std::size_t s = 0; s < scans_; ++s) {
      if (ctx.wants_output(carried_ + s)) give_none(ctx, carried_ + s, types[1 + carried_ + s], 0);
    }
  }

  std::unique_ptr<kernel::SubgraphRunner> body_;
  std::size_t carried_, scans_ = 0;
};

void infer_loop(InferContext& ctx) {
  const std::size_t carried = ctx.input_count() - std::min(ctx.input_count(), kFirstCarried);
  std::vector<ValueType> inputs{ValueType::tensor(tensor::DType::Int64, graph::SymShape{}),
                                ValueType::tensor(tensor::DType::Bool, graph::SymShape{})};
  for (std::size_t i = 0; i < carried; ++i) inputs.push_back(ctx.input_type(kFirstCarried + i));
  std::vector<ValueType> outputs = ctx.infer_subgraph("body", inputs);
  // A carried value whose shape changes from one iteration to the next: infer again with what holds of both. Ranks can
  // only be lost, so this ends.
  for (int round = 0; round < 3 && outputs.size() > carried; ++round) {
    bool changed = false;
    for (std::size_t c = 0; c < carried; ++c) {
      const ValueType& before = inputs[kFirstCarried + c];
      const ValueType merged = merge_types(before, outputs[1 + c]);
      if (says_as_much(merged, before)) continue;
      inputs[kFirstCarried + c] = round < 2 ? merged : ValueType::tensor(merged.elem);
      changed = true;
    }
    if (!changed) break;
    outputs = ctx.infer_subgraph("body", inputs);
  }
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (!ctx.has_output(o) || o + 1 >= outputs.size()) continue;
    if (o < carried) {
      ctx.set_output_type(o, merge_types(inputs[kFirstCarried + o], outputs[1 + o]));
    } else {
      ctx.set_output_type(o, with_leading_dim(outputs[1 + o], Dim::unknown()));
    }
  }
}

}  // namespace

void register_loop(kernel::OpRegistrar& r) {
  const auto signature = [](const char* types) {
    return cat("M:I?, cond:B?, v_initial:V** -> v_final_and_scan_outputs:V**; ", types, ", I = int64, B = bool");
  };
  r.op("Loop")
      .version(1, signature(kFlowTypes1))
      .version(11, signature(kFlowTypes1))
      .version(13, signature(kFlowTypes13))
      .version(16, signature(kFlowTypes16))
      .version(19, signature("V = all_ir9|seq(all_ir9)|optional(all_ir9)|optional(seq(all_ir4))"))
      .version(21, signature("V = all_ir10|seq(all_ir10)|optional(all_ir10)|optional(seq(all_ir4))"))
      .version(23, signature("V = all_ir11|seq(all_ir11)|optional(all_ir11)|optional(seq(all_ir4))"))
      .version(24, signature("V = all_ir12|seq(all_ir12)|optional(all_ir12)|optional(seq(all_ir4))"))
      .version(25, signature("V = all_ir13|seq(all_ir13)|optional(all_ir13)|optional(seq(all_ir4))"))
      .infer(infer_loop)
      .kernel<Loop>();
}

}  // namespace infernode::ops
