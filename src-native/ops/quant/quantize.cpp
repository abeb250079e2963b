#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "microkernels/convert/convert.h"
#include "ops/common/reals.h"
#include "ops/common/strided_copy.h"
#include "ops/quant/dynamic_quantize.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

constexpr std::size_t kPiece = 1024;  // elements that are treated at a time

/// Calls f(low, high) with the integers that a quantized type holds.
std::pair<std::int32_t, std::int32_t> integer_range(DType type) {
  switch (type) {
    case DType::Int8:
      return {-128, 127};
    case DType::UInt8:
      return {0, 255};
    case DType::Int16:
      return {-32768, 32767};
    case DType::UInt16:
      return {0, 65535};
    case DType::Int4:
      return {-8, 7};
    case DType::UInt4:
      return {0, 15};
    case DType::Int2:
      return {-2, 1};
    case DType::UInt2:
      return {0, 3};
    default:
      tensor::fail_dispatch(type, "quantization");
  }
}

/// Value of a low-bits code of a packed type.
float code_value(DType type, std::uint8_t code) {
  switch (type) {
    case DType::Int4:
      return sign_extend<4>(code);
    case DType::Int2:
      return sign_extend<2>(code);
    case DType::Float4E2M1:
      return static_cast<float>(Float4E2M1::from_bits(code));
    case DType::Float6E2M3:
      return static_cast<float>(Float6E2M3::from_bits(code));
    case DType::Float6E3M2:
      return static_cast<float>(Float6E3M2::from_bits(code));
    default:
      return code;
  }
}

/// Elements of a quantized tensor (packed ones unpacked) as values.
void load_values(DType type, const void* data, std::size_t first, std::size_t count, float* out) {
  if (tensor::is_sub_byte(type)) {  // unpacked before: one code a byte
    const auto* codes = static_cast<const std::uint8_t*>(data) + first;
    for (std::size_t i = 0; i < count; ++i) out[i] = code_value(type, codes[i]);
    return;
  }
  tensor::dispatch<std::uint8_t, std::int8_t, std::int32_t, std::uint16_t, std::int16_t, Float8E4M3FN, Float8E4M3FNUZ,
                   Float8E5M2, Float8E5M2FNUZ>(type, "DequantizeLinear", [&]<class T>(tensor::TypeTag<T>) {
    const T* x = static_cast<const T*>(data) + first;
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(x[i]);
  });
}

/// Zero points from one on, `step` apart.
struct Zeros {
  const std::int32_t* first;
  std::size_t step;
  std::int32_t operator[](std::size_t i) const { return first[i * step]; }
};

/// Zero points, one a scale, or 0 for all; those of the 8-, 6- and 4-bit floats are 0 by the standard.
class ZeroPoints {
 public:
  ZeroPoints(const KernelContext& ctx, const Tensor* t) : given_(ctx.run(), t), all_zero_(t == nullptr) {}
  /// Of scales from `scale` on, `step` apart.
  Zeros from(std::size_t scale, std::size_t step) const {
    static constexpr std::int32_t kZero = 0;
    return all_zero_ ? Zeros{&kZero, 0} : Zeros{given_.data() + scale, step};
  }

 private:
  kernel::Numbers<std::int32_t> given_;
  bool all_zero_;
};

/// Which scale belongs to which element: one for all, one for each index along an axis, or one for each block of
/// indices along an axis.
class ScaleLayout {
 public:
  ScaleLayout(const Shape& x, const Shape& scale, std::int64_t axis_attribute, std::int64_t block, const char* what)
      : total_(size(x.numel())) {
    if (block < 0) fail(ErrorCode::InvalidModel, cat(what, ": block_size is ", block));
    // A vector of one element may also be the scale of an axis of one element: the same.
    if (scale.rank() == 0 || (block == 0 && scale.numel() == 1)) {
      runs_ = 1;
      run_length_ = total_;
      return;
    }
    const std::size_t axis = tensor::normalize_axis(axis_attribute, x.rank());
    outer_ = size(x.numel(0, axis));
    n_ = size(x[axis]);
    inner_ = size(x.numel(axis + 1, x.rank()));
    if (block == 0) {
      if (scale.rank() != 1 || scale[0] != x[axis]) fail_shape(x, scale, what);
      kind_ = inner_ == 1 ? Kind::AxisLast : Kind::Axis;
      runs_ = inner_ == 1 ? outer_ : outer_ * n_;
      run_length_ = inner_ == 1 ? n_ : inner_;
      return;
    }
    block_ = size(block);
    blocks_ = ceil_div(n_, block_);
    Shape expected = x;
    expected[axis] = static_cast<std::int64_t>(blocks_);
    if (scale != expected) fail_shape(x, scale, what);
    kind_ = inner_ == 1 ? Kind::BlockLast : Kind::Block;
    runs_ = inner_ == 1 ? outer_ * blocks_ : outer_ * n_;
    run_length_ = inner_ == 1 ? std::min(block_, n_) : inner_;
  }

  /// f(first element, count, first scale, scale's step) over all elements, in parallel, at most kPiece at a time.
  template <class F>
  void for_pieces(const KernelContext& ctx, double cost_ns, F f) const {
    if (total_ == 0) return;
    const std::size_t pieces = ceil_div(run_length_, kPiece);
    ctx.parallel_for(runs_ * pieces, cost_ns * static_cast<double>(std::min(run_length_, kPiece)),
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::size_t run = i / pieces, skip = i % pieces * kPiece;
                         const Run r = at(run);
                         if (skip < r.count) {
                           const std::size_t step = kind_ == Kind::AxisLast || kind_ == Kind::Block ? 1 : 0;
                           f(r.first + skip, std::min(kPiece, r.count - skip), r.scale + skip * step, step);
                         }
                       }
                     });
  }

 private:
  enum class Kind : std::uint8_t { Whole, Axis, AxisLast, Block, BlockLast };
  struct Run {
    std::size_t first, count, scale;
  };
  static std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }
  [[noreturn]] static void fail_shape(const Shape& x, const Shape& scale, const char* what) {
    fail(ErrorCode::ShapeMismatch, cat(what, ": scale ", scale.to_string(), " does not fit x ", x.to_string()));
  }
  Run at(std::size_t run) const {
    switch (kind_) {
      case Kind::Axis:
        return {run * inner_, inner_, run % n_};
      case Kind::AxisLast:
        return {run * n_, n_, 0};
      case Kind::Block:
        return {run * inner_, inner_, (run / n_ * blocks_ + run % n_ / block_) * inner_};
      case Kind::BlockLast: {
        const std::size_t within = run % blocks_ * block_;
        return {run / blocks_ * n_ + within, std::min(block_, n_ - within), run};
      }
      default:
        return {0, total_, 0};
    }
  }

  Kind kind_ = Kind::Whole;
  std::size_t total_, outer_ = 1, n_ = 1, inner_ = 1, block_ = 1, blocks_ = 1, runs_ = 0, run_length_ = 0;
};

void check_zero_point(const Tensor* zero, const Tensor& scale, const char* what) {
  if (zero != nullptr && zero->numel() != scale.numel()) {
    fail(ErrorCode::ShapeMismatch,
         cat(what, ": zero point ", zero->to_string(), " does not fit scale ", scale.to_string()));
  }
}

/// y = saturate(round_even(x / scale) + zero); 8-bit and 4-bit floats: the nearest to x / scale.
class QuantizeLinear final : public kernel::Kernel {
 public:
  explicit QuantizeLinear(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.convert),
        axis_(info.attributes().get_int("axis", 1)),
        block_(info.attributes().get_int("block_size", 0)),
        saturate_(info.attributes().get_int("saturate", 1) != 0) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& scale = ctx.input(1);
    const Tensor* zero = ctx.optional_input(2);
    check_zero_point(zero, scale, "QuantizeLinear");
    const ScaleLayout layout(x.shape(), scale.shape(), axis_, block_, "QuantizeLinear");
    const Tensor y = ctx.output(0, x.shape());
    const kernel::Numbers<float> scales(ctx.run(), scale);
    const ZeroPoints zero_points(ctx, zero);
    const bool packed = tensor::is_sub_byte(y.dtype());
    const Tensor target = packed ? Tensor::make(DType::UInt8, x.shape(), *ctx.run().allocator) : y;
    layout.for_pieces(ctx, 0.5, [&](std::size_t first, std::size_t count, std::size_t s, std::size_t step) {
      float piece[kPiece];
      const float* from = load(x, first, count, piece);
      const Zeros zeros = zero_points.from(s, step);
      if (step == 0 && y.dtype() == DType::UInt8)
        return table_.quantize_u8(from, y.mutable_data<std::uint8_t>() + first, count, scales[s], zeros[0]);
      if (step == 0 && y.dtype() == DType::Int8)
        return table_.quantize_s8(from, y.mutable_data<std::int8_t>() + first, count, scales[s], zeros[0]);
      for (std::size_t i = 0; i < count; ++i) piece[i] = from[i] / scales[s + i * step];
      if (tensor::is_floating(y.dtype())) {
        store_floats(y.dtype(), piece, target, first, count);
      } else {
        store_integers(y.dtype(), piece, zeros, target, first, count);
      }
    });
    if (packed) pack_sub_byte(ctx.run(), target, y);
  }

 private:
  const float* load(const Tensor& x, std::size_t first, std::size_t count, float* piece) const {
    switch (x.dtype()) {
      case DType::Float32:
        return x.data<float>() + first;
      case DType::Float16:
        table_.f16_to_f32(static_cast<const std::uint16_t*>(x.raw()) + first, piece, count);
        break;
      case DType::BFloat16:
        table_.bf16_to_f32(static_cast<const std::uint16_t*>(x.raw()) + first, piece, count);
        break;
      default:
        table_.s32_to_f32(x.data<std::int32_t>() + first, piece, count);
    }
    return piece;
  }

  static void store_integers(DType type, const float* values, Zeros zeros, const Tensor& target, std::size_t first,
                             std::size_t count) {
    const auto [low, high] = integer_range(type);
    const auto store = [&, low = low, high = high]<class T>(T* to) {
      for (std::size_t i = 0; i < count; ++i) {
        const std::int32_t zero = zeros[i];
        const float q = std::isnan(values[i]) ? 0.0f : std::nearbyint(values[i]);
        const float least = static_cast<float>(low - zero), most = static_cast<float>(high - zero);
        to[i] = static_cast<T>(static_cast<std::int32_t>(std::clamp(q, least, most)) + zero);
      }
    };
    if (tensor::bit_size(type) == 16) {
      store(static_cast<std::uint16_t*>(target.mutable_raw()) + first);
    } else {
      store(static_cast<std::uint8_t*>(target.mutable_raw()) + first);
    }
  }

  void store_floats(DType type, const float* values, const Tensor& target, std::size_t first, std::size_t count) const {
    if (tensor::is_sub_byte(type)) {
      auto* to = static_cast<std::uint8_t*>(target.mutable_raw()) + first;
      const std::uint32_t mantissa = type == DType::Float6E2M3 ? 3 : 2;
      for (std::size_t i = 0; i < count; ++i) {
        const float value = values[i] + 0.0f;  // no -0
        to[i] = type == DType::Float4E2M1 ? encode_float4(value) : encode_float6(value, mantissa);
      }
      return;
    }
    tensor::dispatch<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>(
        type, "QuantizeLinear", [&]<class T>(tensor::TypeTag<T>) {
          T* to = target.mutable_data<T>() + first;
          for (std::size_t i = 0; i < count; ++i) to[i] = T::from_float(values[i], saturate_);
        });
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ConvertTable& table_;
  std::int64_t axis_, block_;
  bool saturate_;
};

/// y = (x - zero) * scale.
class DequantizeLinear final : public kernel::Kernel {
 public:
  explicit DequantizeLinear(KernelInfo& info)
      : kernels_(info.kernels()),
        table_(kernels_.convert),
        axis_(info.attributes().get_int("axis", 1)),
        block_(info.attributes().get_int("block_size", 0)) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor& scale = ctx.input(1);
    const Tensor* zero = ctx.optional_input(2);
    check_zero_point(zero, scale, "DequantizeLinear");
    const ScaleLayout layout(x.shape(), scale.shape(), axis_, block_, "DequantizeLinear");
    const Tensor y = ctx.output(0, x.shape());
    const kernel::Numbers<float> scales(ctx.run(), scale);
    const ZeroPoints zero_points(ctx, zero);
    const Tensor from = tensor::is_sub_byte(x.dtype()) ? unpack_sub_byte(ctx.run(), x) : x;
    layout.for_pieces(ctx, 0.5, [&](std::size_t first, std::size_t count, std::size_t s, std::size_t step) {
      float piece[kPiece];
      const bool direct = y.dtype() == DType::Float32;
      float* to = direct ? y.mutable_data<float>() + first : piece;
      dequantize(x.dtype(), from.raw(), first, count, scales.data() + s, zero_points.from(s, step), step, to);
      if (direct) return;
      (y.dtype() == DType::Float16 ? table_.f32_to_f16 : table_.f32_to_bf16)(
          piece, static_cast<std::uint16_t*>(y.mutable_raw()) + first, count);
    });
  }

 private:
  void dequantize(DType type, const void* x, std::size_t first, std::size_t count, const float* scales, Zeros zeros,
                  std::size_t step, float* y) const {
    if (step == 0 && type == DType::UInt8)
      return table_.dequantize_u8(static_cast<const std::uint8_t*>(x) + first, y, count, *scales, zeros[0]);
    if (step == 0 && type == DType::Int8)
      return table_.dequantize_s8(static_cast<const std::int8_t*>(x) + first, y, count, *scales, zeros[0]);
    if (type == DType::Int32) {
      const std::int32_t* from = static_cast<const std::int32_t*>(x) + first;
      if (step == 0) return table_.dequantize_s32(from, y, count, *scales, zeros[0]);
      for (std::size_t i = 0; i < count; ++i) {
        const auto difference = static_cast<std::int64_t>(from[i]) - zeros[i];
        y[i] = static_cast<float>(difference) * scales[i * step];
      }
      return;
    }
    load_values(type, x, first, count, y);
    for (std::size_t i = 0; i < count; ++i) y[i] = (y[i] - static_cast<float>(zeros[i])) * scales[i * step];
  }

  const microkernels::KernelSet& kernels_;
  const microkernels::ConvertTable& table_;
  std::int64_t axis_, block_;
};

/// Quantizes to uint8 with the range of the input itself, widened to hold 0.
class DynamicQuantizeLinear final : public kernel::Kernel {
 public:
  explicit DynamicQuantizeLinear(KernelInfo& info) : table_(info.kernels().convert) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    const Tensor y = ctx.output(0, x.shape()), scale_out = ctx.output(1, Shape{}), zero_out = ctx.output(2, Shape{});
    const auto count = static_cast<std::size_t>(x.numel());
    const DynamicScale range = dynamic_scale(ctx, table_, x.data<float>(), count);
    quantize_dynamically(ctx, table_, x.data<float>(), count, range, y.mutable_data<std::uint8_t>());
    *scale_out.mutable_data<float>() = range.scale;
    *zero_out.mutable_data<std::uint8_t>() = static_cast<std::uint8_t>(range.zero);
  }

 private:
  const microkernels::ConvertTable& table_;
};

void infer_same_shape(InferContext& ctx) {
  if (const graph::SymShape* x = ctx.input_shape(0)) ctx.set_output_shape(0, *x);
}

DType stated_dtype(const InferContext& ctx, DType fallback) {
  const std::int64_t code = ctx.attributes().get_int("output_dtype", 0);
  if (code == 0) return fallback;
  const auto type = tensor::dtype_from_code(code);
  if (!type) fail(ErrorCode::InvalidModel, cat("output_dtype ", code, " is no known type"));
  return *type;
}

void infer_quantize(InferContext& ctx) {
  if (ctx.has_input(2)) {
    ctx.set_output_dtype(0, ctx.input_dtype(2));
  } else {
    ctx.set_output_dtype(0, stated_dtype(ctx, DType::UInt8));
  }
  infer_same_shape(ctx);
}

void infer_dequantize(InferContext& ctx) {
  const DType scale = ctx.input_dtype(1);
  ctx.set_output_dtype(0, stated_dtype(ctx, scale == DType::Float8E8M0 ? DType::Float32 : scale));
  infer_same_shape(ctx);
}

void infer_dynamic_quantize(InferContext& ctx) {
  ctx.set_output_dtype(0, DType::UInt8);
  ctx.set_output_dtype(1, DType::Float32);
  ctx.set_output_dtype(2, DType::UInt8);
  infer_same_shape(ctx);
  ctx.set_output_shape(1, graph::SymShape{});
  ctx.set_output_shape(2, graph::SymShape{});
}

}  // namespace

void register_quantize(kernel::OpRegistrar& r) {
  r.op("QuantizeLinear")
      .version(10, "x:T1, y_scale:float, y_zero_point:T2? -> y:T2; T1 = float|int32, T2 = int8|uint8")
      .version(13, "x:T1, y_scale:float, y_zero_point:T2? -> y:T2; T1 = float|int32, T2 = int8|uint8")
      .version(19,
               "x:T1, y_scale:T1, y_zero_point:T2? -> y:T2; T1 = float|float16|bfloat16|int32, T2 = int8|uint8|float8")
      .version(21,
               "x:T1, y_scale:T1, y_zero_point:T2? -> y:T2; T1 = float|float16|bfloat16|int32, "
               "T2 = int8|uint8|int16|uint16|int4|uint4|float8")
      .version(23,
               "x:T1, y_scale:T2, y_zero_point:T3? -> y:T3; T1 = float|float16|bfloat16|int32, "
               "T2 = float|float16|bfloat16|int32, T3 = int8|uint8|int16|uint16|int4|uint4|float8|float4e2m1")
      .version(24,
               "x:T1, y_scale:T2, y_zero_point:T3? -> y:T3; T1 = float|float16|bfloat16|int32, "
               "T2 = float|float16|bfloat16|int32|float8e8m0, "
               "T3 = int8|uint8|int16|uint16|int4|uint4|float8|float4e2m1")
      .version(25,
               "x:T1, y_scale:T2, y_zero_point:T3? -> y:T3; T1 = float|float16|bfloat16|int32, "
               "T2 = float|float16|bfloat16|int32|float8e8m0, "
               "T3 = int8|uint8|int16|uint16|int4|uint4|int2|uint2|float8|float4e2m1")
      .version(28,
               "x:T1, y_scale:T2, y_zero_point:T3? -> y:T3; T1 = float|float16|bfloat16|int32, "
               "T2 = float|float16|bfloat16|int32|float8e8m0, "
               "T3 = int8|uint8|int16|uint16|int4|uint4|int2|uint2|float8|float4e2m1|float6e2m3|float6e3m2")
      .infer(infer_quantize)
      .kernel<QuantizeLinear>()
      .axes(kernel::Axes::Scaled);
  r.op("DequantizeLinear")
      .version(10, "x:T, x_scale:float, x_zero_point:T? -> y:float; T = int8|uint8|int32")
      .version(13, "x:T, x_scale:float, x_zero_point:T? -> y:float; T = int8|uint8|int32")
      .version(19,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T2; T1 = int8|uint8|int32|float8, T2 = float|float16|bfloat16")
      .version(21,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T2; T1 = int8|uint8|int16|uint16|int32|int4|uint4|float8, "
               "T2 = float|float16|bfloat16")
      .version(23,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T3; "
               "T1 = int8|uint8|int16|uint16|int32|int4|uint4|float8|float4e2m1, T2 = float|float16|bfloat16, "
               "T3 = float|float16|bfloat16")
      .version(24,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T3; "
               "T1 = int8|uint8|int16|uint16|int32|int4|uint4|float8|float4e2m1, "
               "T2 = float|float16|bfloat16|float8e8m0, T3 = float|float16|bfloat16")
      .version(25,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T3; "
               "T1 = int8|uint8|int16|uint16|int32|int4|uint4|int2|uint2|float8|float4e2m1, "
               "T2 = float|float16|bfloat16|float8e8m0, T3 = float|float16|bfloat16")
      .version(28,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T3; "
               "T1 = int8|uint8|int16|uint16|int32|int4|uint4|int2|uint2|float8|float4e2m1|float6e2m3|float6e3m2, "
               "T2 = float|float16|bfloat16|float8e8m0, T3 = float|float16|bfloat16")
      .infer(infer_dequantize)
      .kernel<DequantizeLinear>()
      .axes(kernel::Axes::Scaled);
  // The forms that quantization tools wrote for onnxruntime before the standard had 16-bit types.
  r.op("QuantizeLinear", "com.microsoft")
      .version(1,
               "x:T1, y_scale:T1, y_zero_point:T2? -> y:T2; T1 = float|float16, "
               "T2 = int8|uint8|int16|uint16|int4|uint4")
      .infer(infer_quantize)
      .kernel<QuantizeLinear>();
  r.op("DequantizeLinear", "com.microsoft")
      .version(1,
               "x:T1, x_scale:T2, x_zero_point:T1? -> y:T2; T1 = int8|uint8|int16|uint16|int32|int4|uint4, "
               "T2 = float|float16")
      .infer(infer_dequantize)
      .kernel<DequantizeLinear>();
  r.op("DynamicQuantizeLinear")
      .version(11, "x:T1 -> y:T2, y_scale:float, y_zero_point:T2; T1 = float, T2 = uint8")
      .infer(infer_dynamic_quantize)
      .kernel<DynamicQuantizeLinear>();
}

}  // namespace infernode::ops
