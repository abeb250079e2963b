// Constant, ConstantOfShape, EyeLike.

#include <algorithm>

#include "base/packed.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

template <class T>
Tensor list_of(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<std::int64_t>(values.size())}, std::span<const T>(values));
}

/// The value that one of the attributes holds; readers give a sparse one as `value`.
Tensor constant_value(const Attributes& attributes) {
  if (const Tensor* value = attributes.get_tensor("value")) return *value;
  if (attributes.has("value_int")) return Tensor::scalar(attributes.get_int("value_int"));
  if (attributes.has("value_float")) return Tensor::scalar(attributes.get_float("value_float"));
  if (attributes.has("value_string")) return Tensor::scalar(attributes.get_string("value_string"));
  if (attributes.has("value_ints")) return list_of(attributes.get_ints("value_ints"));
  if (attributes.has("value_floats")) return list_of(attributes.get_floats("value_floats"));
  if (attributes.has("value_strings")) return list_of(attributes.get_strings("value_strings"));
  fail(ErrorCode::InvalidModel, "Constant has none of the attributes that hold its value");
}

class Constant final : public Kernel {
 public:
  explicit Constant(KernelInfo& info) : value_(constant_value(info.attributes())) {}
  void run(KernelContext& ctx) const override {
    copy_all(ctx.run(), value_, ctx.output(0, value_.dtype(), value_.shape()));
  }

 private:
  Tensor value_;
};

void infer_constant(InferContext& ctx) {
  const Tensor value = constant_value(ctx.attributes());
  ctx.set_output_dtype(0, value.dtype());
  ctx.set_output_shape(0, value.shape());
}

/// The one element that fills a ConstantOfShape: float 0 where the node names none.
Tensor fill_value(const Attributes& attributes) {
  const Tensor* value = attributes.get_tensor("value");
  if (!value) return Tensor::scalar(0.0f);
  if (value->numel() != 1)
    fail(ErrorCode::InvalidModel, cat("ConstantOfShape: its value has ", value->numel(), " elements instead of one"));
  return *value;
}

void check_dim(std::int64_t dim) {
  if (dim < 0) fail(ErrorCode::InvalidArgument, cat("ConstantOfShape: its shape has the negative dim ", dim));
}

void check_shape_rank(std::size_t rank) {
  if (rank > 1)
    fail(ErrorCode::ShapeMismatch, cat("ConstantOfShape takes a list of dims, not a tensor of rank ", rank));
}

class ConstantOfShape final : public Kernel {
 public:
  explicit ConstantOfShape(KernelInfo& info) : value_(fill_value(info.attributes())) {}
  void run(KernelContext& ctx) const override {
    check_shape_rank(ctx.input(0).rank());
    const Shape shape{read_ints(ctx.input(0)).span()};
    for (std::int64_t dim : shape) check_dim(dim);
    const Tensor out = ctx.output(0, value_.dtype(), shape);
    if (tensor::is_sub_byte(out.dtype())) {
      const std::size_t bits = tensor::bit_size(out.dtype());
      auto code = static_cast<unsigned>(*static_cast<const std::uint8_t*>(value_.raw())) & ((1u << bits) - 1);
      for (std::size_t filled = bits; filled < 8; filled *= 2) code |= code << filled;
      return fill_bytes(ctx.run(), out, static_cast<unsigned char>(code));
    }
    dispatch_elements(out.dtype(), "ConstantOfShape", [&]<class T>(TypeTag<T>) {
      const T value = *elements<T>(value_);
      T* to = mutable_elements<T>(out);
      ctx.parallel_for(static_cast<std::size_t>(out.numel()), 0.2,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         Mover(ctx.run()).fill(to + begin, static_cast<std::int64_t>(end - begin), value);
                       });
    });
  }

 private:
  Tensor value_;
};

void infer_constant_of_shape(InferContext& ctx) {
  const Tensor value = fill_value(ctx.attributes());
  ctx.set_output_dtype(0, value.dtype());
  const graph::SymShape* shape = ctx.input_shape(0);
  if (shape) check_shape_rank(shape->size());
  if (auto dims = ctx.input_contents(0)) {
    const bool vector = dims->size() == 1 && (*dims)[0].known() && (*dims)[0].value() <= 64;
    for (const Dim& dim : *dims) {
      if (dim.known()) check_dim(dim.value());
    }
    ctx.set_output_shape(0, *dims);
    if (vector && value.dtype() == DType::Int64 && (*dims)[0].value() >= 0)
      ctx.set_output_contents(
          0, std::vector<Dim>(static_cast<std::size_t>((*dims)[0].value()), Dim(*value.data<std::int64_t>())));
    return;
  }
  if (shape && shape->size() == 1 && (*shape)[0].known() && (*shape)[0].value() <= 64)
    ctx.set_output_shape(0, unknown_shape(static_cast<std::size_t>((*shape)[0].value())));
}

/// Element type of EyeLike's output: attribute `dtype`, or the input's.
DType eye_type(const Attributes& attributes, DType input) {
  if (!attributes.has("dtype")) return input;
  const auto type = tensor::dtype_from_code(attributes.get_int("dtype"));
  if (!type) fail(ErrorCode::InvalidModel, "EyeLike: dtype is no element type");
  return *type;
}

/// Ones on diagonal k of a matrix, zeros elsewhere.
class EyeLike final : public Kernel {
 public:
  explicit EyeLike(KernelInfo& info) : attributes_(info.attributes()), k_(info.attributes().get_int("k", 0)) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 2) fail(ErrorCode::ShapeMismatch, cat("EyeLike needs a matrix, got ", in.shape().to_string()));
    const Tensor out = ctx.output(0, eye_type(attributes_, in.dtype()), in.shape());
    const std::int64_t rows = in.dim(0), columns = in.dim(1);
    const std::int64_t k = std::clamp(k_, -rows, columns);
    tensor::dispatch<float, double, Float16, BFloat16, std::int64_t, std::int32_t, bool, std::uint8_t, std::int8_t,
                     std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t>(
        out.dtype(), "EyeLike", [&]<class T>(TypeTag<T>) {
          T one;
          if constexpr (std::is_arithmetic_v<T>)
            one = T(1);
          else
            one = T(1.0f);
          fill_bytes(ctx.run(), out);
          T* to = out.mutable_data<T>();
          const std::int64_t first = std::max<std::int64_t>(0, -k), last = std::min(rows, columns - k);
          kernel::Watch watch(ctx.run());
          for (std::int64_t row = first; row < last; ++row) {
            to[row * columns + row + k] = one;
            watch.did(5);
          }
        });
  }

 private:
  Attributes attributes_;
  std::int64_t k_;
};

void infer_eye_like(InferContext& ctx) {
  ctx.set_output_dtype(0, eye_type(ctx.attributes(), ctx.input_dtype(0)));
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

}  // namespace

void register_constant(kernel::OpRegistrar& r) {
  r.op("Constant")
      .version(1, " -> output:T; T = floats")
      .version(9, " -> output:T; T = all")
      .version(11, " -> output:T; T = all")
      .version(12, " -> output:T; T = all")
      .version(13, " -> output:T; T = all_ir4")
      .version(19, " -> output:T; T = all_ir9")
      .version(21, " -> output:T; T = all_ir10")
      .version(23, " -> output:T; T = all_ir11")
      .version(24, " -> output:T; T = all_ir12")
      .version(25, " -> output:T; T = all_ir13")
      .infer(infer_constant)
      .kernel<Constant>();
  r.op("ConstantOfShape")
      .version(9, "input:T1 -> output:T2; T1 = int64, T2 = numeric|bool")
      .version(20, "input:T1 -> output:T2; T1 = int64, T2 = numeric_bf16|bool|float8")
      .version(21, "input:T1 -> output:T2; T1 = int64, T2 = all_ir10-complex-string")
      .version(23, "input:T1 -> output:T2; T1 = int64, T2 = all_ir11-complex-string")
      .version(24, "input:T1 -> output:T2; T1 = int64, T2 = all_ir12-complex-string")
      .version(25, "input:T1 -> output:T2; T1 = int64, T2 = all_ir13-complex-string")
      .infer(infer_constant_of_shape)
      .kernel<ConstantOfShape>();
  r.op("EyeLike")
      .version(9, "input:T1 -> output:T2; T1 = numeric|bool, T2 = numeric|bool")
      .version(22, "input:T1 -> output:T2; T1 = numeric_bf16|bool, T2 = numeric_bf16|bool")
      .infer(infer_eye_like)
      .kernel<EyeLike>();
}

}  // namespace infernode::ops
