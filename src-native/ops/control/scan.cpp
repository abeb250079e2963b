#include <algorithm>

#include "kernel/op_registrar.h"
#include "ops/common/stack.h"
#include "ops/common/strided_copy.h"
#include "ops/control/control_flow.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::ValueType;
using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

/// Slice `index` of `t` along `axis`, without that axis.
Tensor slice_at(const KernelContext& ctx, const Tensor& t, std::size_t axis, std::int64_t index) {
  Shape dims;
  for (std::size_t d = 0; d < t.rank(); ++d) {
    if (d != axis) dims.push_back(t.dim(d));
  }
  Tensor out = Tensor::make(t.dtype(), dims, *ctx.run().allocator);
  const std::int64_t outer = t.shape().numel(0, axis), inner = t.shape().numel(axis + 1, t.rank());
  strided_copy(ctx.run(), Shape{outer, inner}, {t, index * inner, Shape{t.dim(axis) * inner, 1}},
               {out, 0, Shape{inner, 1}});
  return out;
}

/// The type of what is left of a tensor when one index of `axis` is taken.
ValueType without_dim(ValueType type, std::int64_t axis) {
  if (!type.shape) return type;
  const std::size_t at = tensor::normalize_axis(axis, type.shape->size(), "scan_input_axes");
  type.shape->erase(type.shape->begin() + static_cast<std::ptrdiff_t>(at));
  return type;
}

/// num_scan_inputs, at most the node's inputs that can be scanned.
std::size_t scan_count(const graph::Attributes& attributes, std::size_t inputs) {
  const std::int64_t count = attributes.get_int("num_scan_inputs");
  if (count < 1 || static_cast<std::uint64_t>(count) > inputs)
    fail(ErrorCode::InvalidModel, cat("Scan's num_scan_inputs is ", count, " with ", inputs, " inputs"));
  return static_cast<std::size_t>(count);
}

/// An attribute with one element for each scanned input or output; zeros where it is missing.
std::vector<std::int64_t> per_scan(const graph::Attributes& attributes, std::string_view name, std::size_t scans) {
  std::vector<std::int64_t> list = attributes.get_ints(name, std::vector<std::int64_t>(scans, 0));
  if (list.size() != scans)
    fail(ErrorCode::InvalidModel, cat("Scan's ", name, " has ", list.size(), " elements for ", scans, " values"));
  return list;
}

/// Attributes of either version; version 8 has a batch axis in front of everything and scans axis 1.
struct Layout {
  std::size_t scans = 0;  ///< inputs that are scanned
  std::vector<std::int64_t> input_axes, output_axes, input_reversed, output_reversed;

  Layout() = default;
  Layout(const graph::Attributes& attributes, bool batched, std::size_t inputs, std::size_t outputs)
      : scans(inputs),
        input_axes(batched ? std::vector<std::int64_t>(inputs, 0) : per_scan(attributes, "scan_input_axes", inputs)),
        output_axes(batched ? std::vector<std::int64_t>(outputs, 0)
                            : per_scan(attributes, "scan_output_axes", outputs)),
        input_reversed(per_scan(attributes, batched ? "directions" : "scan_input_directions", inputs)),
        output_reversed(batched ? std::vector<std::int64_t>(outputs, 0)
                                : per_scan(attributes, "scan_output_directions", outputs)) {}
};

class Scan final : public kernel::Kernel {
 public:
  explicit Scan(KernelInfo& info)
      : body_(info.subgraph("body")), batched_(info.since_version() < 9), first_(batched_ ? 1 : 0) {
    const std::size_t given = info.input_count() - std::min(info.input_count(), first_);
    const std::size_t scans = scan_count(info.attributes(), given);
    states_ = given - scans;
    if (body_->input_count() != given || body_->output_count() < states_ ||
        body_->output_count() < info.output_count()) {
      fail(ErrorCode::InvalidModel,
           cat("Scan has ", given, " inputs, of which ", scans, " are scanned, and ", info.output_count(),
               " outputs; its body takes ", body_->input_count(), " and gives ", body_->output_count()));
    }
    layout_ = Layout(info.attributes(), batched_, scans, body_->output_count() - states_);
  }

  void run(KernelContext& ctx) const override {
    if (batched_) return run_batched(ctx);
    std::vector<Value> state;
    std::vector<Tensor> scanned;
    for (std::size_t i = 0; i < states_; ++i) state.push_back(ctx.input_value(i));
    for (std::size_t i = 0; i < layout_.scans; ++i) scanned.push_back(ctx.input(states_ + i));
    std::vector<std::vector<Tensor>> outputs = iterate(ctx, state, scanned, -1);
    if (!outputs.empty() && outputs[0].empty()) {
      const std::vector<ValueType> types = output_types(ctx, state, scanned);
      for (std::size_t o = states_; o < types.size(); ++o) {
        if (ctx.wants_output(o)) give_none(ctx, o, types[o], layout_.output_axes[o - states_]);
      }
    }
    for (std::size_t i = 0; i < states_; ++i) {
      if (ctx.wants_output(i)) ctx.set_output(i, std::move(state[i]));
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!ctx.wants_output(states_ + o) || outputs[o].empty()) continue;
      const std::size_t axis =
          tensor::normalize_axis(layout_.output_axes[o], outputs[o][0].rank() + 1, "scan_output_axes");
      stack_parts(ctx, states_ + o, outputs[o], static_cast<std::int64_t>(axis), "Scan's output");
    }
  }

 private:
  /// What the body would give, where it never runs.
  std::vector<ValueType> output_types(KernelContext& ctx, const std::vector<Value>& state,
                                      const std::vector<Tensor>& scanned) const {
    std::vector<ValueType> inputs;
    for (const Value& value : state) inputs.push_back(kernel::type_of(value));
    for (std::size_t i = 0; i < scanned.size(); ++i)
      inputs.push_back(without_dim(kernel::type_of(scanned[i]), layout_.input_axes[i]));
    return body_->output_types(ctx, inputs);
  }

  /// Runs the body over the scanned inputs; leaves the last state in `state`. `length` -1: the inputs' own.
  std::vector<std::vector<Tensor>> iterate(KernelContext& ctx, std::vector<Value>& state,
                                           const std::vector<Tensor>& scanned, std::int64_t length) const {
    std::vector<std::size_t> axes;
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      axes.push_back(tensor::normalize_axis(layout_.input_axes[i], scanned[i].rank(), "scan_input_axes"));
      const std::int64_t dim = scanned[i].dim(axes[i]);
      if (i == 0 && length < 0) length = dim;
      if (dim < length || (!batched_ && dim != length)) {
        fail(ErrorCode::ShapeMismatch,
             cat("Scan's inputs have ", length, " and ", dim, " elements along their scan axes"));
      }
    }
    std::vector<std::vector<Tensor>> outputs(body_->output_count() - states_);
    for (std::int64_t t = 0; t < length; ++t) {
      ctx.run().check();
      std::vector<Value> inputs = std::move(state);
      for (std::size_t i = 0; i < scanned.size(); ++i) {
        inputs.emplace_back(slice_at(ctx, scanned[i], axes[i], layout_.input_reversed[i] != 0 ? length - 1 - t : t));
      }
      std::vector<Value> results = body_->run(ctx, std::move(inputs));
      state.assign(std::make_move_iterator(results.begin()),
                   std::make_move_iterator(results.begin() + static_cast<std::ptrdiff_t>(states_)));
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const Value& result = results[states_ + o];
        if (!result.is_tensor()) fail(ErrorCode::InvalidModel, "Scan's body gives a scan output that is no tensor");
        outputs[o].push_back(result.tensor());
      }
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (layout_.output_reversed[o] != 0) std::reverse(outputs[o].begin(), outputs[o].end());
    }
    return outputs;
  }

  /// Version 8: [batch, ...] states and [batch, sequence, ...] scans, each batch with a length of its own.
  void run_batched(KernelContext& ctx) const {
    const std::int64_t batches = ctx.input(1).rank() == 0 ? 0 : ctx.input(1).dim(0);
    if (batches == 0) return give_no_batches(ctx);
    const Tensor* lengths = ctx.optional_input(0);
    if (lengths != nullptr && lengths->numel() < batches)
      fail(ErrorCode::ShapeMismatch, "Scan's sequence_lens is shorter than the batch");
    std::vector<std::vector<Tensor>> last(states_), stacked(body_->output_count() - states_);
    for (std::int64_t b = 0; b < batches; ++b) {
      std::vector<Value> state;
      std::vector<Tensor> scanned;
      for (std::size_t i = 0; i < states_; ++i) state.emplace_back(slice_at(ctx, ctx.input(first_ + i), 0, b));
      for (std::size_t i = 0; i < layout_.scans; ++i)
        scanned.push_back(slice_at(ctx, ctx.input(first_ + states_ + i), 0, b));
      const std::int64_t length = lengths == nullptr ? -1 : lengths->data<std::int64_t>()[b];
      if (lengths != nullptr && length < 0)
        fail(ErrorCode::InvalidArgument, cat("Scan's sequence_lens has the element ", length));
      std::vector<std::vector<Tensor>> outputs = iterate(ctx, state, scanned, length);
      const bool none = !outputs.empty() && outputs[0].empty();
      const std::vector<ValueType> types = none ? output_types(ctx, state, scanned) : std::vector<ValueType>();
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const ValueType one = none ? types[states_ + o] : kernel::type_of(outputs[o][0]);
        stacked[o].push_back(stack(ctx, outputs[o], one, scanned[0].dim(0)));
      }
      for (std::size_t i = 0; i < states_; ++i) last[i].push_back(state[i].tensor());
    }
    for (std::size_t i = 0; i < states_; ++i) {
      if (ctx.wants_output(i)) stack_parts(ctx, i, last[i], 0, "Scan's state");
    }
    for (std::size_t o = 0; o < stacked.size(); ++o) {
      if (ctx.wants_output(states_ + o)) stack_parts(ctx, states_ + o, stacked[o], 0, "Scan's output");
    }
  }

  /// Version 8 over a batch of none.
  void give_no_batches(KernelContext& ctx) const {
    std::vector<ValueType> inputs;
    for (std::size_t i = 0; i < states_ + layout_.scans; ++i) {
      inputs.push_back(without_dim(kernel::type_of(ctx.input_value(first_ + i)), 0));
      if (i >= states_) inputs.back() = without_dim(std::move(inputs.back()), 0);
    }
    const Tensor& scanned = ctx.input(first_ + states_);
    const std::int64_t length = scanned.rank() > 1 ? scanned.dim(1) : 0;
    std::vector<ValueType> types = body_->output_types(ctx, inputs);
    for (std::size_t o = 0; o < types.size(); ++o) {
      if (!ctx.wants_output(o)) continue;
      give_none(ctx, o, o < states_ ? types[o] : with_leading_dim(std::move(types[o]), length), 0);
    }
  }

  /// The parts, each like `one`, on a new first axis of `length`; what lies beyond them is zero.
  static Tensor stack(const KernelContext& ctx, const std::vector<Tensor>& parts, const ValueType& one,
                      std::int64_t length) {
    Shape dims{length};
    for (const std::int64_t d : dims_of_none(one)) dims.push_back(d);
    Tensor out = Tensor::make(one.elem, dims, *ctx.run().allocator);
    if (out.dtype() != tensor::DType::String) fill_bytes(ctx.run(), out);
    const std::int64_t run = dims.numel(1, dims.rank());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!(parts[i].shape() == parts[0].shape()))
        fail(ErrorCode::ShapeMismatch,
             cat("Scan's body gives ", parts[i].to_string(), " after ", parts[0].to_string()));
      strided_copy(ctx.run(), Shape{run}, {parts[i], 0, Shape{1}}, {out, static_cast<std::int64_t>(i) * run, Shape{1}});
    }
    return out;
  }

  std::unique_ptr<kernel::SubgraphRunner> body_;
  bool batched_;
  std::size_t first_;
  Layout layout_;
  std::size_t states_ = 0;
};

ValueType without_leading_dims(ValueType type, std::size_t count) {
  if (!type.shape || type.shape->size() < count) {
    type.shape.reset();
  } else {
    type.shape->erase(type.shape->begin(), type.shape->begin() + static_cast<std::ptrdiff_t>(count));
  }
  return type;
}

/// Version 8: states are [batch, ...], what is scanned is [batch, sequence, ...].
void infer_batched_scan(InferContext& ctx) {
  const std::size_t given = ctx.input_count() - std::min<std::size_t>(ctx.input_count(), 1);
  const std::size_t states = given - scan_count(ctx.attributes(), given);
  std::vector<ValueType> inputs;
  Dim batch = Dim::unknown(), sequence = Dim::unknown();
  for (std::size_t i = 0; i < given; ++i) {
    const ValueType& type = ctx.input_type(1 + i);
    if (type.shape && !type.shape->empty()) batch = (*type.shape)[0];
    if (i >= states && type.shape && type.shape->size() > 1) sequence = (*type.shape)[1];
    inputs.push_back(without_leading_dims(type, i < states ? 1 : 2));
  }
  const std::vector<ValueType> outputs = ctx.infer_subgraph("body", inputs);
  for (std::size_t o = 0; o < ctx.output_count() && o < outputs.size(); ++o) {
    if (!ctx.has_output(o)) continue;
    const ValueType& type = outputs[o];
    ctx.set_output_type(
        o, o < states ? with_leading_dim(type, batch) : with_leading_dim(with_leading_dim(type, sequence), batch));
  }
}

void infer_scan(InferContext& ctx) {
  if (ctx.since_version() < 9) return infer_batched_scan(ctx);
  const std::size_t scans = scan_count(ctx.attributes(), ctx.input_count());
  const std::vector<std::int64_t> input_axes = per_scan(ctx.attributes(), "scan_input_axes", scans);
  const std::size_t states = ctx.input_count() - scans;
  std::vector<ValueType> inputs;
  Dim length = Dim::unknown();
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    ValueType type = ctx.input_type(i);
    if (i < states) {
      inputs.push_back(std::move(type));
      continue;
    }
    if (type.shape) {
      const std::size_t axis = tensor::normalize_axis(input_axes[i - states], type.shape->size(), "scan_input_axes");
      if (i == states) length = (*type.shape)[axis];
    }
    inputs.push_back(without_dim(std::move(type), input_axes[i - states]));
  }
  const std::vector<ValueType> outputs = ctx.infer_subgraph("body", inputs);
  if (outputs.size() < ctx.output_count() || outputs.size() < states) return;
  const std::vector<std::int64_t> output_axes = per_scan(ctx.attributes(), "scan_output_axes", outputs.size() - states);
  for (std::size_t o = 0; o < ctx.output_count(); ++o) {
    if (!ctx.has_output(o)) continue;
    if (o < states) {
      ctx.set_output_type(o, merge_types(inputs[o], outputs[o]));
      continue;
    }
    if (!outputs[o].shape) {
      ctx.set_output_type(o, outputs[o]);
      continue;
    }
    const std::size_t axis =
        tensor::normalize_axis(output_axes[o - states], outputs[o].shape->size() + 1, "scan_output_axes");
    ctx.set_output_type(o, with_leading_dim(outputs[o], length, axis));
  }
}

}  // namespace

void register_scan(kernel::OpRegistrar& r) {
  r.op("Scan")
      .version(
          8,
          "sequence_lens:I?, initial_state_and_scan_inputs:V** -> final_state_and_scan_outputs:V**; V = all, I = int64")
      .infer(infer_scan)
      .kernel<Scan>();
  const auto signature = [](const char* types) {
    return cat("initial_state_and_scan_inputs:V** -> final_state_and_scan_outputs:V**; V = ", types);
  };
  r.op("Scan")
      .version(9, signature("all"))
      .version(11, signature("all"))
      .version(16, signature("all_ir4"))
      .version(19, signature("all_ir9"))
      .version(21, signature("all_ir10"))
      .version(23, signature("all_ir11"))
      .version(24, signature("all_ir12"))
      .version(25, signature("all_ir13"))
      .infer(infer_scan)
      .kernel<Scan>();
}

}  // namespace infernode::ops
