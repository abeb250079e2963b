// Operators that ONNX tried out before opset 10 and dropped, and that old exporters' files still hold. Most are
// functions of what replaced them.

#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::Attributes;
using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// Cuts `border` (left, top, right, bottom) off images [batch, channels, height, width]; with `scale` (height, width)
/// what remains has that size, whatever right and bottom say.
struct CropWindow {
  std::vector<std::int64_t> border, scale;

  explicit CropWindow(const Attributes& attributes)
      : border(attributes.get_ints("border")), scale(attributes.get_ints("scale")) {
    const auto negative = [](std::int64_t n) { return n < 0; };
    if (border.size() != 4 || std::any_of(border.begin(), border.end(), negative))
      fail(ErrorCode::InvalidModel, "Crop's border has four elements of 0 or more: left, top, right, bottom");
    if (!scale.empty() && (scale.size() != 2 || std::any_of(scale.begin(), scale.end(), negative)))
      fail(ErrorCode::InvalidModel, "Crop's scale has two elements of 0 or more: height, width");
  }
  /// The size of axis 0 (height) or 1 (width) of `given`.
  std::int64_t size(std::size_t axis, std::int64_t given) const {
    const std::int64_t before = border[axis == 0 ? 1 : 0], after = border[axis == 0 ? 3 : 2];
    const std::int64_t size = !scale.empty() ? scale[axis] : given - std::min(given, checked_add(before, after));
    if (checked_add(before, size) > given) {
      fail(ErrorCode::ShapeMismatch, cat("Crop takes ", size, " elements from ", before, " on of an axis of ", given));
    }
    return size;
  }
};

class Crop final : public Kernel {
 public:
  explicit Crop(KernelInfo& info) : window_(info.attributes()) {}
  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 4) fail(ErrorCode::ShapeMismatch, cat("Crop takes images of rank 4, got ", x.to_string()));
    const Shape dims{x.dim(0), x.dim(1), window_.size(0, x.dim(2)), window_.size(1, x.dim(3))};
    const Tensor y = ctx.output(0, dims);
    if (y.numel() == 0) return;
    strided_copy(ctx.run(), dims, {x, window_.border[1] * x.dim(3) + window_.border[0], x.shape().strides()},
                 {y, 0, dims.strides()});
  }

 private:
  CropWindow window_;
};

void infer_crop(InferContext& ctx) {
  const CropWindow window(ctx.attributes());
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  if (x->size() != 4) fail(ErrorCode::ShapeMismatch, "Crop takes images of rank 4");
  graph::SymShape shape = *x;
  for (const std::size_t axis : {0u, 1u}) {
    Dim& dim = shape[axis + 2];
    if (dim.known()) {
      dim = Dim(window.size(axis, dim.value()));
    } else {
      dim = window.scale.empty() ? Dim::unknown() : Dim(window.scale[axis]);
    }
  }
  ctx.set_output_shape(0, std::move(shape));
}

/// Rank and, where axes are known, nothing more: the dims come with the expanded Slice.
void infer_dynamic_slice(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(0));
  if (const graph::SymShape* x = ctx.input_shape(0)) ctx.set_output_shape(0, unknown_shape(x->size()));
}

void infer_image_scaler(InferContext& ctx) {
  kernel::infer_same_as_first(ctx);
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return;
  const auto bias = static_cast<std::int64_t>(ctx.attributes().get_floats("bias").size());
  if (x->size() != 4 || ((*x)[1].known() && (*x)[1].value() != bias))
    fail(ErrorCode::ShapeMismatch,
         cat("ImageScaler takes images [N,", bias, ",H,W], a channel for each bias, got ", graph::to_string(*x)));
}

void unary(kernel::OpRegistrar& r, const char* name, const char* body) {
  r.op(name).version(1, "X:T -> Y:T; T = floats").infer(kernel::infer_same_as_first).function(body);
}

}  // namespace

void register_legacy(kernel::OpRegistrar& r) {
  unary(r, "Affine",
        "<opset_import: [\"\" : 19]> Affine <alpha: float = 1.0, beta: float = 0.0> (X) => (Y) {"
        "  a = Constant <value_float: float = @alpha> ()"
        "  b = Constant <value_float: float = @beta> ()"
        "  at = CastLike(a, X)"
        "  bt = CastLike(b, X)"
        "  scaled = Mul(X, at)"
        "  Y = Add(scaled, bt)"
        "}");
  unary(r, "Scale",
        "<opset_import: [\"\" : 19]> Scale <scale: float = 1.0> (X) => (Y) {"
        "  s = Constant <value_float: float = @scale> ()"
        "  st = CastLike(s, X)"
        "  Y = Mul(X, st)"
        "}");
  unary(r, "ScaledTanh",
        "<opset_import: [\"\" : 19]> ScaledTanh <alpha: float = 1.0, beta: float = 1.0> (X) => (Y) {"
        "  a = Constant <value_float: float = @alpha> ()"
        "  b = Constant <value_float: float = @beta> ()"
        "  at = CastLike(a, X)"
        "  bt = CastLike(b, X)"
        "  inner = Mul(X, bt)"
        "  tanh = Tanh(inner)"
        "  Y = Mul(tanh, at)"
        "}");
  unary(r, "ParametricSoftplus",
        "<opset_import: [\"\" : 19]> ParametricSoftplus <alpha: float = 1.0, beta: float = 1.0> (X) => (Y) {"
        "  a = Constant <value_float: float = @alpha> ()"
        "  b = Constant <value_float: float = @beta> ()"
        "  at = CastLike(a, X)"
        "  bt = CastLike(b, X)"
        "  inner = Mul(X, bt)"
        "  soft = Softplus(inner)"
        "  Y = Mul(soft, at)"
        "}");
  r.op("ImageScaler")
      .version(1, "X:T -> Y:T; T = floats")
      .infer(infer_image_scaler)
      .function(
          "<opset_import: [\"\" : 19]> ImageScaler <scale: float = 1.0, bias> (X) => (Y) {"
          "  s = Constant <value_float: float = @scale> ()"
          "  b = Constant <value_floats: floats = @bias> ()"
          "  axes = Constant <value_ints = [1, 2]> ()"
          "  st = CastLike(s, X)"
          "  bt = CastLike(b, X)"
          "  channels = Unsqueeze(bt, axes)"
          "  scaled = Mul(X, st)"
          "  Y = Add(scaled, channels)"
          "}");
  r.op("Crop").version(1, "input:T -> output:T; T = floats").infer(infer_crop).kernel<Crop>();
  r.op("DynamicSlice")
      .version(1, "data:T, starts:Tind, ends:Tind, axes:Tind? -> output:T; T = all, Tind = int32|int64")
      .infer(infer_dynamic_slice)
      .function(
          "<opset_import: [\"\" : 10]> DynamicSlice (data, starts, ends, axes) => (output) {"
          "  output = Slice(data, starts, ends, axes)"
          "}");
}

}  // namespace infernode::ops
