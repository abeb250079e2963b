#include <algorithm>

#include "base/checked.h"
#include "kernel/counted.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/stack.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::ValueType;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Sequence;
using tensor::Shape;
using tensor::Tensor;
using tensor::Value;

/// A position in a sequence: negative ones count from the end. `end_allowed`: one past the last element is a position
/// too.
std::size_t position(const Tensor& t, std::size_t count, bool end_allowed) {
  const std::int64_t at = tensor::to_int64_scalar(t), size = static_cast<std::int64_t>(count);
  const std::int64_t last = end_allowed ? size : size - 1;
  if (at < -size || at > last) {
    fail(ErrorCode::InvalidArgument,
         cat("position ", at, " is outside a sequence of ", size, " elements (valid: ", -size, " to ", last, ")"));
  }
  return static_cast<std::size_t>(at < 0 ? at + size : at);
}

/// What a sequence's elements are known to be.
ValueType element_type(const ValueType& type) { return type.inner ? *type.inner : ValueType::tensor(DType::Undefined); }

/// Of elements that may differ: the dtype only.
ValueType any_shape(const ValueType& element) { return ValueType::tensor(element.elem); }

DType empty_dtype(const graph::Attributes& attributes) {
  const std::int64_t code = attributes.get_int("dtype", static_cast<std::int64_t>(DType::Float32));
  const auto dtype = tensor::dtype_from_code(code);
  if (!dtype) fail(ErrorCode::InvalidModel, cat("SequenceEmpty: dtype ", code, " is no element type"));
  return *dtype;
}

class SequenceEmpty final : public Kernel {
 public:
  explicit SequenceEmpty(KernelInfo& info) : dtype_(empty_dtype(info.attributes())) {}
  void run(KernelContext& ctx) const override { ctx.set_output(0, Sequence{.elem = dtype_, .items = {}}); }

 private:
  DType dtype_;
};

class SequenceConstruct final : public Kernel {
 public:
  explicit SequenceConstruct(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    Sequence out{.elem = ctx.input(0).dtype(), .items = {}};
    for (std::size_t i = 0; i < ctx.input_count(); ++i) {
      INFERNODE_CHECK(ctx.input(i).dtype() == out.elem, ErrorCode::InvalidArgument,
                      "SequenceConstruct: inputs of types ", tensor::name(out.elem), " and ",
                      tensor::name(ctx.input(i).dtype()));
      out.items.emplace_back(ctx.input(i));
    }
    ctx.set_output(0, std::move(out));
  }
};

class SequenceInsert final : public Kernel {
 public:
  explicit SequenceInsert(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    Sequence out = ctx.input_value(0).sequence();
    const Tensor& element = ctx.input(1);
    INFERNODE_CHECK(out.items.empty() || out.elem == element.dtype(), ErrorCode::InvalidArgument, "SequenceInsert: a ",
                    tensor::name(element.dtype()), " tensor into a sequence of ", tensor::name(out.elem));
    out.elem = element.dtype();
    const Tensor* at = ctx.optional_input(2);
    const std::size_t index = at == nullptr ? out.items.size() : position(*at, out.items.size(), true);
    out.items.insert(out.items.begin() + static_cast<std::ptrdiff_t>(index), Value(element));
    ctx.set_output(0, std::move(out));
  }
};

class SequenceErase final : public Kernel {
 public:
  explicit SequenceErase(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    Sequence out = ctx.input_value(0).sequence();
    INFERNODE_CHECK(!out.items.empty(), ErrorCode::InvalidArgument, "SequenceErase: the sequence is empty");
    const Tensor* at = ctx.optional_input(1);
    const std::size_t index = at == nullptr ? out.items.size() - 1 : position(*at, out.items.size(), false);
    out.items.erase(out.items.begin() + static_cast<std::ptrdiff_t>(index));
    ctx.set_output(0, std::move(out));
  }
};

class SequenceAt final : public Kernel {
 public:
  explicit SequenceAt(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Sequence& in = ctx.input_value(0).sequence();
    ctx.set_output(0, in.items[position(ctx.input(1), in.items.size(), false)]);
  }
};

class SequenceLength final : public Kernel {
 public:
  explicit SequenceLength(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    ctx.set_output(0, Tensor::scalar(static_cast<std::int64_t>(ctx.input_value(0).sequence().items.size())));
  }
};

/// Elements [begin, begin + length) of `t` along `axis`; the axis itself goes where `drop` (length is 1 then).
Tensor part_of(const KernelContext& ctx, const Tensor& t, std::size_t axis, std::int64_t begin, std::int64_t length,
               bool drop) {
  Shape dims;
  for (std::size_t d = 0; d < t.rank(); ++d) {
    if (d != axis) {
      dims.push_back(t.dim(d));
    } else if (!drop) {
      dims.push_back(length);
    }
  }
  Tensor out = Tensor::make(t.dtype(), dims, *ctx.run().allocator);
  const std::int64_t outer = t.shape().numel(0, axis), inner = t.shape().numel(axis + 1, t.rank());
  strided_copy(ctx.run(), Shape{outer, length * inner}, {t, begin * inner, Shape{t.dim(axis) * inner, 1}},
               {out, 0, Shape{length * inner, 1}});
  return out;
}

class SplitToSequence final : public Kernel {
 public:
  explicit SplitToSequence(KernelInfo& info)
      : axis_(info.attributes().get_int("axis", 0)), keep_(info.attributes().get_int("keepdims", 1) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const std::size_t axis = tensor::normalize_axis(axis_, in.rank());
    const std::int64_t dim = in.dim(axis);
    const Tensor* split = ctx.optional_input(1);
    Sequence out{.elem = in.dtype(), .items = {}};
    std::int64_t at = 0;
    constexpr std::int64_t kMostEmpty = 1 << 20;
    INFERNODE_CHECK(dim <= std::max(in.numel(), kMostEmpty), ErrorCode::OutOfMemory,
                    "SplitToSequence: too many tensors without elements: ", in.to_string());
    const kernel::CountedVector<std::int64_t> sizes = lengths(ctx.run(), split, dim);
    const kernel::Charge items(ctx.run(), checked_mul(sizes.size(), sizeof(Value)));
    out.items.reserve(sizes.size());
    for (const std::int64_t length : sizes) {
      out.items.emplace_back(part_of(ctx, in, axis, at, length, split == nullptr && !keep_));
      at += length;
    }
    ctx.set_output(0, std::move(out));
  }

 private:
  static kernel::CountedVector<std::int64_t> lengths(const kernel::RunContext& run, const Tensor* split,
                                                     std::int64_t dim) {
    kernel::CountedVector<std::int64_t> sizes(run);
    if (split == nullptr) {
      sizes.assign(static_cast<std::size_t>(dim), 1);
      return sizes;
    }
    const kernel::Numbers<std::int64_t> given(run, *split);
    sizes.assign(given.begin(), given.end());
    if (split->rank() == 0) {
      const std::int64_t size = sizes[0];
      INFERNODE_CHECK(size > 0, ErrorCode::InvalidArgument, "SplitToSequence: a split of ", size);
      sizes.assign(static_cast<std::size_t>(dim / size), size);
      if (dim % size != 0) sizes.push_back(dim % size);
      return sizes;
    }
    std::int64_t sum = 0;
    bool valid = true;
    for (const std::int64_t s : sizes) valid = valid && s >= 0 && !add_overflows<std::int64_t>(sum, s, sum);
    INFERNODE_CHECK(valid && sum == dim, ErrorCode::InvalidArgument, "SplitToSequence: sizes ", sizes,
                    " do not split a dim of ", dim);
    return sizes;
  }

  std::int64_t axis_;
  bool keep_;
};

class ConcatFromSequence final : public Kernel {
 public:
  explicit ConcatFromSequence(KernelInfo& info)
      : axis_(info.attributes().get_int("axis")), stacked_(info.attributes().get_int("new_axis", 0) != 0) {}

  void run(KernelContext& ctx) const override {
    const Sequence& in = ctx.input_value(0).sequence();
    INFERNODE_CHECK(!in.items.empty(), ErrorCode::InvalidArgument, "ConcatFromSequence: the sequence is empty");
    std::vector<Tensor> parts;
    for (const Value& item : in.items) parts.push_back(item.tensor());
    const auto join = stacked_ ? stack_parts : join_parts;
    join(ctx, 0, parts, axis_, "ConcatFromSequence");
  }

 private:
  std::int64_t axis_;
  bool stacked_;
};

/// Runs its body once per element of the first sequence; other sequences give their element, tensors go in as they are.
class SequenceMap final : public Kernel {
 public:
  explicit SequenceMap(KernelInfo& info) : body_(info.subgraph("body")) {
    if (body_->input_count() != info.input_count() || body_->output_count() != info.output_count()) {
      fail(ErrorCode::InvalidModel,
           cat("SequenceMap's body takes ", body_->input_count(), " inputs and gives ", body_->output_count(),
               " outputs; the node has ", info.input_count(), " and ", info.output_count()));
    }
  }

  void run(KernelContext& ctx) const override {
    const std::size_t count = ctx.input_value(0).sequence().items.size();
    std::vector<Sequence> out(ctx.output_count());
    for (std::size_t o = 0; o < out.size(); ++o) out[o].elem = body_->output_type(o).elem;
    for (std::size_t i = 0; i < count; ++i) {
      ctx.run().check();
      std::vector<Value> inputs;
      for (std::size_t k = 0; k < ctx.input_count(); ++k) {
        const Value& input = ctx.input_value(k);
        if (!input.is_sequence()) {
          inputs.push_back(input);
          continue;
        }
        INFERNODE_CHECK(input.sequence().items.size() == count, ErrorCode::InvalidArgument,
                        "SequenceMap: sequences of ", count, " and ", input.sequence().items.size(), " elements");
        inputs.push_back(input.sequence().items[i]);
      }
      std::vector<Value> results = body_->run(ctx, std::move(inputs));
      for (std::size_t o = 0; o < out.size(); ++o) out[o].items.push_back(std::move(results.at(o)));
    }
    for (std::size_t o = 0; o < out.size(); ++o) {
      for (const Value& item : out[o].items) {
        INFERNODE_CHECK(item.is_tensor() && item.tensor().dtype() == out[o].items[0].tensor().dtype(),
                        ErrorCode::InvalidModel, "SequenceMap: its body gave ", item.to_string(), " after ",
                        out[o].items[0].to_string());
        out[o].elem = item.tensor().dtype();
      }
      ctx.set_output(o, std::move(out[o]));
    }
  }

 private:
  std::unique_ptr<kernel::SubgraphRunner> body_;
};

void infer_empty(InferContext& ctx) {
  ctx.set_output_type(0, ValueType::sequence(ValueType::tensor(empty_dtype(ctx.attributes()))));
}

void infer_construct(InferContext& ctx) {
  ValueType element = ctx.input_type(0);
  for (std::size_t i = 1; i < ctx.input_count(); ++i) {
    if (!(element.shape == ctx.input_type(i).shape)) element.shape.reset();
  }
  ctx.set_output_type(0, ValueType::sequence(element));
}

/// The sequence may be empty: what is known of its elements holds for the new one too, or for none.
void infer_insert(InferContext& ctx) {
  ValueType element = ctx.input_type(1);
  if (!(element.shape == element_type(ctx.input_type(0)).shape)) element.shape.reset();
  ctx.set_output_type(0, ValueType::sequence(std::move(element)));
}

void infer_erase(InferContext& ctx) { ctx.set_output_type(0, ctx.input_type(0)); }

void infer_at(InferContext& ctx) { ctx.set_output_type(0, element_type(ctx.input_type(0))); }

void infer_length(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::Int64);
  ctx.set_output_shape(0, graph::SymShape{});
}

void infer_split(InferContext& ctx) {
  ValueType element = ctx.input_type(0);
  if (element.shape) {
    const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", 0), element.shape->size());
    const bool drop = !ctx.has_input(1) && ctx.attributes().get_int("keepdims", 1) == 0;
    if (drop) {
      element.shape->erase(element.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    } else {
      (*element.shape)[axis] = ctx.has_input(1) ? Dim::unknown() : Dim(1);
    }
  }
  ctx.set_output_type(0, ValueType::sequence(std::move(element)));
}

void infer_concat(InferContext& ctx) {
  ValueType element = element_type(ctx.input_type(0));
  const bool stacked = ctx.attributes().get_int("new_axis", 0) != 0;
  if (element.shape) {
    const std::size_t axis =
        tensor::normalize_axis(ctx.attributes().get_int("axis"), element.shape->size() + (stacked ? 1 : 0));
    if (stacked) {
      element.shape->insert(element.shape->begin() + static_cast<std::ptrdiff_t>(axis), Dim::unknown());
    } else {
      (*element.shape)[axis] = Dim::unknown();
    }
  }
  ctx.set_output_type(0, std::move(element));
}

void infer_map(InferContext& ctx) {
  std::vector<ValueType> inputs;
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    const ValueType& type = ctx.input_type(i);
    inputs.push_back(type.kind == ValueType::Kind::Sequence ? element_type(type) : type);
  }
  const auto outputs = ctx.infer_subgraph("body", inputs);
  for (std::size_t o = 0; o < ctx.output_count() && o < outputs.size(); ++o) {
    if (ctx.has_output(o)) ctx.set_output_type(o, ValueType::sequence(any_shape(outputs[o])));
  }
}

}  // namespace

void register_sequence(kernel::OpRegistrar& r) {
  r.op("SequenceEmpty").version(11, "-> output:S; S = seq(all)").infer(infer_empty).kernel<SequenceEmpty>();
  r.op("SequenceConstruct")
      .version(11, "inputs:T* -> output_sequence:S; T = all, S = seq(all)")
      .infer(infer_construct)
      .kernel<SequenceConstruct>();
  r.op("SequenceInsert")
      .version(11,
               "input_sequence:S, tensor:T, position:I? -> output_sequence:S; T = all, S = seq(all), I = int32|int64")
      .infer(infer_insert)
      .kernel<SequenceInsert>();
  r.op("SequenceErase")
      .version(11, "input_sequence:S, position:I? -> output_sequence:S; S = seq(all), I = int32|int64")
      .infer(infer_erase)
      .kernel<SequenceErase>();
  r.op("SequenceAt")
      .version(11, "input_sequence:S, position:I -> tensor:T; S = seq(all), T = all, I = int32|int64")
      .infer(infer_at)
      .kernel<SequenceAt>();
  r.op("SequenceLength")
      .version(11, "input_sequence:S -> length:I; S = seq(all), I = int64")
      .infer(infer_length)
      .kernel<SequenceLength>();
  r.op("SplitToSequence")
      .version(11, "input:T, split:I? -> output_sequence:S; T = all, I = int32|int64, S = seq(all)")
      .version(24, "input:T, split:I? -> output_sequence:S; T = all_ir4, I = int32|int64, S = seq(all_ir4)")
      .infer(infer_split)
      .kernel<SplitToSequence>();
  r.op("ConcatFromSequence")
      .version(11, "input_sequence:S -> concat_result:T; S = seq(all), T = all")
      .infer(infer_concat)
      .kernel<ConcatFromSequence>();
  r.op("SequenceMap")
      .version(17, "input_sequence:S, additional_inputs:V** -> out_sequence:S**; S = seq(all), V = all|seq(all)")
      .infer(infer_map)
      .kernel<SequenceMap>();
}

}  // namespace infernode::ops
