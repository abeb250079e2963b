// Reshape, Flatten, Squeeze, Unsqueeze: other dims over the same bytes.

#include <algorithm>

#include "base/checked.h"

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;

// ---- Reshape

void check_request(std::span<const std::int64_t> request, bool allow_zero) {
  const auto inferred = std::count(request.begin(), request.end(), -1);
  INFERNODE_CHECK(std::all_of(request.begin(), request.end(), [](std::int64_t d) { return d >= -1; }),
                  ErrorCode::InvalidArgument, "requested shape ", request, " has a negative dim other than -1");
  INFERNODE_CHECK(inferred <= 1, ErrorCode::InvalidArgument, "requested shape ", request, " has more than one -1");
  INFERNODE_CHECK(!allow_zero || inferred == 0 || std::count(request.begin(), request.end(), 0) == 0,
                  ErrorCode::InvalidArgument, "requested shape ", request, " has both 0 and -1 with allowzero");
}

[[noreturn]] void fail_reshape(const Shape& in, std::span<const std::int64_t> request) {
  fail(ErrorCode::ShapeMismatch, cat("The input tensor cannot be reshaped to the requested shape. Input shape: ",
                                     in.dims(), ", requested shape: ", request));
}

/// Dims copied by a 0 cancel out, so that -1 also has an answer where one of them is zero.
Shape reshape(const Shape& in, std::span<const std::int64_t> request, bool allow_zero) {
  check_request(request, allow_zero);
  Shape out(request);
  Shape rest = in;  // dims of the input that no 0 copies
  std::int64_t explicit_count = 1;
  std::size_t inferred = request.size();
  for (std::size_t i = 0; i < request.size(); ++i) {
    if (request[i] == -1) {
      inferred = i;
    } else if (request[i] == 0 && !allow_zero) {
      INFERNODE_CHECK(i < in.rank(), ErrorCode::InvalidArgument, "requested shape ", request, " copies dim ", i,
                      ", which the input shape ", in.dims(), " lacks");
      out[i] = in[i];
      rest[i] = 1;
    } else if (mul_overflows<std::int64_t>(explicit_count, request[i], explicit_count)) {
      fail_reshape(in, request);
    }
  }
  if (inferred < request.size()) {
    const std::int64_t count = rest.numel();
    if (explicit_count == 0 || count % explicit_count != 0) fail_reshape(in, request);
    out[inferred] = count / explicit_count;
  } else if (explicit_count != rest.numel()) {
    if (out.numel() != in.numel()) fail_reshape(in, request);
  }
  return out;
}

SymShape reshape(const SymShape* in, const std::vector<Dim>& request, bool allow_zero) {
  SymShape out(request);
  SymShape rest = in ? *in : SymShape{};
  Dim explicit_count = 1;
  std::size_t inferred = request.size();
  for (std::size_t i = 0; i < request.size(); ++i) {
    if (request[i].is(-1)) {
      inferred = i;
    } else if (request[i].is(0) && !allow_zero) {
      out[i] = in && i < in->size() ? (*in)[i] : Dim::unknown();
      if (in && i < in->size()) rest[i] = 1;
    } else {
      explicit_count = explicit_count * request[i];
    }
  }
  if (inferred < request.size()) {
    out[inferred] = in && !explicit_count.is(0) ? floor_div(numel(rest), explicit_count) : Dim::unknown();
  }
  return out;
}

void infer_reshape(InferContext& ctx) {
  const bool allow_zero = ctx.attributes().get_int("allowzero", 0) != 0;
  const SymShape* in = ctx.input_shape(0);
  std::optional<std::vector<Dim>> request;
  if (ctx.attributes().has("shape")) {
    const auto values = ctx.attributes().get_ints("shape");
    request.emplace(values.begin(), values.end());
  } else {
    request = ctx.input_contents(1);
  }
  if (!request) {
    const SymShape* shape = ctx.input_shape(1);
    if (shape && shape->size() == 1 && (*shape)[0].known() && (*shape)[0].value() < 64) {
      ctx.set_output_shape(0, unknown_shape(static_cast<std::size_t>((*shape)[0].value())));
    }
    return;
  }
  const bool known = std::all_of(request->begin(), request->end(), [](const Dim& d) { return d.known(); });
  Ints values;
  if (known) {
    for (const Dim& d : *request) values.push_back(d.value());
    check_request(values, allow_zero);
  }
  const auto known_in = in ? graph::to_known(*in) : std::nullopt;
  if (known && known_in) {
    ctx.set_output_shape(0, reshape(*known_in, values, allow_zero));
  } else {
    ctx.set_output_shape(0, reshape(in, *request, allow_zero));
  }
  if (request->size() <= 1) infer_same_contents(ctx);
}

class Reshape : public Kernel {
 public:
  explicit Reshape(KernelInfo& info)
      : allow_zero_(info.attributes().get_int("allowzero", 0) != 0), shape_(info, "shape", 1) {}
  void run(KernelContext& ctx) const override {
    const Ints request = shape_.required(ctx, "shape");
    ctx.forward(0, 0, reshape(ctx.input(0).shape(), request.span(), allow_zero_));
  }

 private:
  bool allow_zero_;
  IntsArgument shape_;
};

// ---- Flatten

std::size_t flatten_axis(std::int64_t axis, std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  INFERNODE_CHECK(axis >= -r && axis <= r, ErrorCode::InvalidArgument, "axis ", axis, " is outside [", -r, ", ", r,
                  "]");
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

void infer_flatten(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return ctx.set_output_shape(0, unknown_shape(2));
  const auto middle =
      in->begin() + static_cast<std::ptrdiff_t>(flatten_axis(ctx.attributes().get_int("axis", 1), in->size()));
  ctx.set_output_shape(0, SymShape{numel(SymShape(in->begin(), middle)), numel(SymShape(middle, in->end()))});
}

class Flatten : public Kernel {
 public:
  explicit Flatten(KernelInfo& info) : axis_(info.attributes().get_int("axis", 1)) {}
  void run(KernelContext& ctx) const override {
    const Shape& in = ctx.input(0).shape();
    const std::size_t axis = flatten_axis(axis_, in.rank());
    ctx.forward(0, 0, Shape{in.numel(0, axis), in.numel(axis, in.rank())});
  }

 private:
  std::int64_t axis_;
};

// ---- Squeeze and Unsqueeze

/// `dims` without those at `axes`.
template <class Dims>
Dims without(const Dims& dims, std::size_t rank, const Ints& axes) {
  Dims out;
  for (std::size_t i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end()) out.push_back(dims[i]);
  }
  return out;
}

/// `dims` with ones so that they stand at `axes` of the result.
template <class Dims>
Dims with_ones(const Dims& dims, std::size_t rank, const Ints& axes) {
  Dims out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < rank + axes.size(); ++i) {
    const bool added = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (added) {
      out.push_back(1);
    } else {
      out.push_back(dims[next++]);
    }
  }
  return out;
}

void check_one(std::int64_t dim, std::int64_t axis) {
  INFERNODE_CHECK(dim == 1, ErrorCode::ShapeMismatch, "dim ", axis, " must be 1 instead of ", dim);
}

void infer_squeeze(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  const InferredInts asked = infer_ints(ctx, "axes", 1);
  if (!in || asked.unknown()) return;
  Ints axes;
  if (asked.given) {
    axes = normalize_axes(asked.values->span(), in->size());
    for (std::int64_t a : axes) {
      const Dim& dim = (*in)[static_cast<std::size_t>(a)];
      if (dim.known()) check_one(dim.value(), a);
    }
  } else {
    for (std::size_t i = 0; i < in->size(); ++i) {
      if (!(*in)[i].known()) return;
      if ((*in)[i].is(1)) axes.push_back(static_cast<std::int64_t>(i));
    }
  }
  ctx.set_output_shape(0, without(*in, in->size(), axes));
  infer_same_contents(ctx);
}

class Squeeze : public Kernel {
 public:
  explicit Squeeze(KernelInfo& info) : axes_(info, "axes", 1) {}
  void run(KernelContext& ctx) const override {
    const Shape& in = ctx.input(0).shape();
    const auto asked = axes_.read(ctx);
    Ints axes;
    if (asked) {
      axes = normalize_axes(asked->span(), in.rank());
      for (std::int64_t a : axes) check_one(in[static_cast<std::size_t>(a)], a);
    } else {
      for (std::size_t i = 0; i < in.rank(); ++i) {
        if (in[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
      }
    }
    ctx.forward(0, 0, without(in, in.rank(), axes));
  }

 private:
  IntsArgument axes_;
};

void infer_unsqueeze(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  const InferredInts asked = infer_ints(ctx, "axes", 1);
  if (!in) return;
  if (!asked.values) {
    const SymShape* axes = ctx.input_shape(1);
    if (axes && axes->size() == 1 && (*axes)[0].known() && (*axes)[0].value() < 64) {
      ctx.set_output_shape(0, unknown_shape(in->size() + static_cast<std::size_t>((*axes)[0].value())));
    }
    return;
  }
  const SymShape out =
      with_ones(*in, in->size(), normalize_axes(asked.values->span(), in->size() + asked.values->size()));
  ctx.set_output_shape(0, out);
  if (out.size() <= 1) infer_same_contents(ctx);
}

class Unsqueeze : public Kernel {
 public:
  explicit Unsqueeze(KernelInfo& info) : axes_(info, "axes", 1) {}
  void run(KernelContext& ctx) const override {
    const Shape& in = ctx.input(0).shape();
    const Ints axes = axes_.required(ctx, "axes");
    ctx.forward(0, 0, with_ones(in, in.rank(), normalize_axes(axes.span(), in.rank() + axes.size())));
  }

 private:
  IntsArgument axes_;
};

}  // namespace

void register_views(kernel::OpRegistrar& r) {
  r.op("Reshape")
      .version(1, "data:T -> reshaped:T; T = floats")
      .version(5, "data:T, shape:int64 -> reshaped:T; T = all")
      .version(13, "data:T, shape:int64 -> reshaped:T; T = all_ir4")
      .version(14, "data:T, shape:int64 -> reshaped:T; T = all_ir4")
      .version(19, "data:T, shape:int64 -> reshaped:T; T = all_ir9")
      .version(21, "data:T, shape:int64 -> reshaped:T; T = all_ir10")
      .version(23, "data:T, shape:int64 -> reshaped:T; T = all_ir11")
      .version(24, "data:T, shape:int64 -> reshaped:T; T = all_ir12")
      .version(25, "data:T, shape:int64 -> reshaped:T; T = all_ir13")
      .infer(infer_reshape)
      .kernel<Reshape>()
      .alias(0, 0)
      .axes(kernel::Axes::Reshaped, 5)
      .moves(kernel::Moves::Views);
  r.op("Flatten")
      .version(1, "input:T -> output:T; T = floats")
      .version(9, "input:T -> output:T; T = all")
      .version(11, "input:T -> output:T; T = all")
      .version(13, "input:T -> output:T; T = all_ir4")
      .version(21, "input:T -> output:T; T = all_ir10")
      .version(23, "input:T -> output:T; T = all_ir11")
      .version(24, "input:T -> output:T; T = all_ir12")
      .version(25, "input:T -> output:T; T = all_ir13")
      .infer(infer_flatten)
      .kernel<Flatten>()
      .alias(0, 0)
      .axes(kernel::Axes::Reshaped)
      .moves(kernel::Moves::Views);
  r.op("Squeeze")
      .version(1, "data:T -> squeezed:T; T = all")
      .version(11, "data:T -> squeezed:T; T = all")
      .version(13, "data:T, axes:int64? -> squeezed:T; T = all_ir4")
      .version(21, "data:T, axes:int64? -> squeezed:T; T = all_ir10")
      .version(23, "data:T, axes:int64? -> squeezed:T; T = all_ir11")
      .version(24, "data:T, axes:int64? -> squeezed:T; T = all_ir12")
      .version(25, "data:T, axes:int64? -> squeezed:T; T = all_ir13")
      .infer(infer_squeeze)
      .kernel<Squeeze>()
      .alias(0, 0)
      .axes(kernel::Axes::Squeezed)
      .moves(kernel::Moves::Views);
  r.op("Unsqueeze")
      .version(1, "data:T -> expanded:T; T = all")
      .version(11, "data:T -> expanded:T; T = all")
      .version(13, "data:T, axes:int64 -> expanded:T; T = all_ir4")
      .version(21, "data:T, axes:int64 -> expanded:T; T = all_ir10")
      .version(23, "data:T, axes:int64 -> expanded:T; T = all_ir11")
      .version(24, "data:T, axes:int64 -> expanded:T; T = all_ir12")
      .version(25, "data:T, axes:int64 -> expanded:T; T = all_ir13")
      .infer(infer_unsqueeze)
      .kernel<Unsqueeze>()
      .alias(0, 0)
      .axes(kernel::Axes::Unsqueezed)
      .moves(kernel::Moves::Views);
}

}  // namespace infernode::ops
