// Operators on 8-bit tensors that a table of 256 entries answers: QLinearSigmoid, QLinearLeakyRelu, and QLinearConcat
// and QLinearWhere, which bring their inputs to the output's scale.

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/broadcast.h"
#include "ops/common/stack.h"
#include "ops/quant/qlinear.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr double kByteCost = 0.6;

/// `to` may be `from`.
void look_up(const ByteTable& table, const std::uint8_t* from, std::uint8_t* to, std::size_t n) {
  for (; n >= 4; n -= 4, from += 4, to += 4) {  // all reads before the writes, which might change what is read
    const std::uint8_t a = table[from[0]], b = table[from[1]], c = table[from[2]], d = table[from[3]];
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
  }
  for (std::size_t i = 0; i < n; ++i) to[i] = table[from[i]];
}

class QLinearUnary final : public kernel::Kernel {
 public:
  explicit QLinearUnary(KernelInfo& info)
      : sigmoid_(info.node().op_type == "QLinearSigmoid"), slope_(info.attributes().get_float("alpha", 0.01f)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor y = ctx.output(0, x.shape());
    const Quantized8 from(ctx.input(1), ctx.optional_input(2), x.dtype()),
        to(ctx.input(3), ctx.optional_input(4), y.dtype());
    const ByteTable table = byte_table(from, to, [&](float v) {
      if (sigmoid_) return 1 / (1 + std::exp(-v));
      return v < 0 ? v * slope_ : v;
    });
    ctx.parallel_for(static_cast<std::size_t>(x.numel()), kByteCost,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       look_up(table, bytes_of(x) + begin, mutable_bytes_of(y) + begin, end - begin);
                     });
  }

 private:
  bool sigmoid_;
  float slope_;
};

/// Y_scale, Y_zero_point, then tensor, scale and zero point of each input.
class QLinearConcat final : public kernel::Kernel {
 public:
  explicit QLinearConcat(KernelInfo& info) : axis_(info.attributes().get_int("axis")) {
    check_count(info.input_count());
  }

  static void check_count(std::size_t inputs) {
    if (inputs < 5 || inputs % 3 != 2)
      fail(ErrorCode::InvalidModel, cat("QLinearConcat takes two inputs and then triples, not ", inputs, " inputs"));
  }

  void run(KernelContext& ctx) const override {
    const auto shape = [&](std::size_t i) -> const Shape& { return ctx.input(2 + 3 * i).shape(); };
    const Join join = plan_join((ctx.input_count() - 2) / 3, shape, axis_, "QLinearConcat");
    const Shape& dims = join.dims;
    const std::size_t axis = join.axis;
    const Tensor y = ctx.output(0, ctx.input(2).dtype(), dims);
    const Quantized8 to(ctx.input(0), &ctx.input(1), y.dtype());
    const auto outer = static_cast<std::size_t>(dims.numel(0, axis));
    const auto inner = static_cast<std::size_t>(dims.numel(axis + 1, dims.rank()));
    const std::size_t row = static_cast<std::size_t>(dims[axis]) * inner;
    std::uint8_t* out = mutable_bytes_of(y);
    for (std::size_t i = 2; i < ctx.input_count(); i += 3) {
      const Tensor& x = ctx.input(i);
      if (x.dtype() != y.dtype() || ctx.input(i + 1).dtype() != DType::Float32 || ctx.input(i + 2).dtype() != y.dtype())
        fail(ErrorCode::InvalidModel, cat("QLinearConcat: inputs ", i, " to ", i + 2, " are of the wrong types"));
      const Quantized8 from(ctx.input(i + 1), &ctx.input(i + 2), x.dtype());
      const ByteTable table = requantization(from, to);
      const std::size_t part = join.takes(x.shape()) ? static_cast<std::size_t>(x.dim(axis)) * inner : 0;
      if (part == 0) continue;  // however many rows of nothing there are
      ctx.parallel_for(outer, static_cast<double>(part) * kByteCost,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         kernel::Watch watch(ctx.run());
                         for (std::size_t r = begin; r < end; ++r) {
                           in_pieces(watch, part, kByteCost, [&](std::size_t first, std::size_t last) {
                             const std::uint8_t* source = bytes_of(x) + r * part + first;
                             std::uint8_t* target = out + r * row + first;
                             if (from == to) {
                               std::copy_n(source, last - first, target);
                             } else {
                               look_up(table, source, target, last - first);
                             }
                           });
                         }
                       });
      out += part;
    }
  }

 private:
  std::int64_t axis_;
};

void infer_qlinear_concat(InferContext& ctx) {
  QLinearConcat::check_count(ctx.input_count());
  ctx.set_output_dtype(0, ctx.input_dtype(2));
  std::vector<const graph::SymShape*> parts;
  for (std::size_t i = 2; i < ctx.input_count(); i += 3) parts.push_back(ctx.input_shape(i));
  if (auto out = infer_join(parts, ctx.attributes().get_int("axis"), "QLinearConcat"))
    ctx.set_output_shape(0, std::move(*out));
}

/// condition, X, x_scale, x_zero_point, Y, y_scale, y_zero_point, z_scale, z_zero_point.
class QLinearWhere final : public kernel::Kernel {
 public:
  explicit QLinearWhere(KernelInfo&) {}

  void run(KernelContext& ctx) const override {
    const Tensor &condition = ctx.input(0), &x = ctx.input(1), &y = ctx.input(4);
    const Tensor z = ctx.output(0, tensor::broadcast(condition.shape(), tensor::broadcast(x.shape(), y.shape())));
    const Quantized8 to(ctx.input(7), &ctx.input(8), z.dtype());
    const ByteTable of_x = requantization(Quantized8(ctx.input(2), &ctx.input(3), x.dtype()), to),
                    of_y = requantization(Quantized8(ctx.input(5), &ctx.input(6), y.dtype()), to);
    const BroadcastPlan plan(z.shape(), {&condition.shape(), &x.shape(), &y.shape()});
    const std::uint8_t *c = bytes_of(condition), *a = bytes_of(x), *b = bytes_of(y);
    std::uint8_t* out = mutable_bytes_of(z);
    const auto step = [&](std::size_t k) { return plan.still(k) ? std::size_t{0} : std::size_t{1}; };
    const std::size_t cs = step(0), as = step(1), bs = step(2);
    plan.for_each_run(ctx.run(), 2 * kByteCost, [&](std::size_t o, const std::size_t* in, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i)
        out[o + i] = c[in[0] + i * cs] != 0 ? of_x[a[in[1] + i * as]] : of_y[b[in[2] + i * bs]];
    });
  }
};

void infer_qlinear_where(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(1));
  const graph::SymShape* const shapes[] = {ctx.input_shape(0), ctx.input_shape(1), ctx.input_shape(4)};
  for (const graph::SymShape* shape : shapes) {
    if (shape == nullptr) return;
  }
  ctx.set_output_shape(0, kernel::broadcast_shapes(shapes));
}

}  // namespace

void register_qlinear_table(kernel::OpRegistrar& r) {
  for (const char* name : {"QLinearSigmoid", "QLinearLeakyRelu"}) {
    r.op(name, "com.microsoft")
        .version(1, "X:T, X_scale:float, X_zero_point:T?, Y_scale:float, Y_zero_point:T? -> Y:T; T = int8|uint8")
        .infer(kernel::infer_same_as_first)
        .kernel<QLinearUnary>()
        .in_place(0, 0);
  }
  r.op("QLinearConcat", "com.microsoft")
      .version(1, "Y_scale:float, Y_zero_point:T8, inputs:TV** -> Y:T8; T8 = int8|uint8, TV = int8|uint8|float")
      .infer(infer_qlinear_concat)
      .kernel<QLinearConcat>();
  r.op("QLinearWhere", "com.microsoft")
      .version(1,
               "condition:bool, X:T, x_scale:float, x_zero_point:T, Y:T, y_scale:float, y_zero_point:T, z_scale:float, "
               "z_zero_point:T -> Z:T; T = int8|uint8")
      .infer(infer_qlinear_where)
      .kernel<QLinearWhere>();
}

}  // namespace infernode::ops
