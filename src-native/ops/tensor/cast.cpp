// Cast, CastLike, BitCast.

#include "kernel/op_registrar.h"
#include "ops/common/convert.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Tensor;

/// Attribute `to`: an ONNX code, in version 1 its name ("FLOAT").
DType target_of(const graph::Attributes& attributes, std::int64_t version, const char* op) {
  if (version >= 6 || !attributes.find("to") || std::holds_alternative<std::int64_t>(*attributes.find("to"))) {
    const std::int64_t code = attributes.get_int("to");
    const auto type = tensor::dtype_from_code(code);
    if (!type) fail(ErrorCode::InvalidModel, cat(op, ": there is no element type ", code));
    return *type;
  }
  std::string name = attributes.get_string("to");
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  const auto type = tensor::dtype_from_name(name);
  if (!type) fail(ErrorCode::InvalidModel, cat(op, ": there is no element type '", name, "'"));
  return *type;
}

E8M0Rounding rounding_of(const graph::Attributes& attributes) {
  const std::string mode = attributes.get_string("round_mode", "up");
  if (mode == "up") return E8M0Rounding::Up;
  if (mode == "down") return E8M0Rounding::Down;
  if (mode == "nearest") return E8M0Rounding::Nearest;
  fail(ErrorCode::InvalidModel, cat("Cast: round_mode must be up, down or nearest, not '", mode, "'"));
}

class Cast final : public Kernel {
 public:
  explicit Cast(KernelInfo& info) : table_(info.kernels().convert) {
    options_.saturate = info.attributes().get_int("saturate", 1) != 0;
    options_.e8m0_rounding = rounding_of(info.attributes());
    if (info.node().op_type == "Cast") target_ = target_of(info.attributes(), info.since_version(), "Cast");
  }
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    const DType target = target_ ? *target_ : ctx.input(1).dtype();
    convert_elements(ctx.run(), table_, in, ctx.output(0, target, in.shape()), options_);
  }

 private:
  const microkernels::ConvertTable& table_;
  ConvertOptions options_;
  std::optional<DType> target_;
};

bool is_wide_integer(DType type) { return type == DType::Int64 || type == DType::Int32; }

void infer_to(InferContext& ctx, DType target) {
  ctx.set_output_dtype(0, target);
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
  if (!is_wide_integer(target) || !is_wide_integer(ctx.input_dtype(0))) return;
  if (auto contents = ctx.input_contents(0)) ctx.set_output_contents(0, std::move(*contents));
}

void infer_cast(InferContext& ctx) { infer_to(ctx, target_of(ctx.attributes(), ctx.since_version(), "Cast")); }

void infer_cast_like(InferContext& ctx) {
  if (ctx.input_dtype(1) != DType::Undefined) return infer_to(ctx, ctx.input_dtype(1));
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

/// The same bits under another type.
class BitCast final : public Kernel {
 public:
  explicit BitCast(KernelInfo& info) : target_(target_of(info.attributes(), info.since_version(), "BitCast")) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    if (tensor::bit_size(in.dtype()) != tensor::bit_size(target_) || in.dtype() == DType::String)
      fail(ErrorCode::InvalidArgument,
           cat("BitCast: ", tensor::name(in.dtype()), " and ", tensor::name(target_), " differ in size"));
    ctx.set_output(0, in.reinterpreted(target_));
  }

 private:
  DType target_;
};

void infer_bit_cast(InferContext& ctx) {
  ctx.set_output_dtype(0, target_of(ctx.attributes(), ctx.since_version(), "BitCast"));
  if (const auto* shape = ctx.input_shape(0)) ctx.set_output_shape(0, *shape);
}

}  // namespace

void register_cast(kernel::OpRegistrar& r) {
  r.op("Cast")
      .version(1, "input:T1 -> output:T2; T1 = numeric|bool, T2 = numeric|bool")
      .version(6, "input:T1 -> output:T2; T1 = numeric|bool, T2 = numeric|bool")
      .version(9, "input:T1 -> output:T2; T1 = all-complex, T2 = all-complex")
      .version(13, "input:T1 -> output:T2; T1 = all_ir4-complex, T2 = all_ir4-complex")
      .version(19, "input:T1 -> output:T2; T1 = all_ir9-complex, T2 = all_ir9-complex")
      .version(21, "input:T1 -> output:T2; T1 = all_ir10-complex, T2 = all_ir10-complex")
      .version(23, "input:T1 -> output:T2; T1 = all_ir11-complex, T2 = all_ir11-complex")
      .version(24, "input:T1 -> output:T2; T1 = all_ir12-complex, T2 = all_ir12-complex")
      .version(25, "input:T1 -> output:T2; T1 = all_ir13-complex, T2 = all_ir13-complex")
      .version(28, "input:T1 -> output:T2; T1 = all_ir14-complex, T2 = all_ir14-complex")
      .infer(infer_cast)
      .kernel<Cast>()
      .elementwise()
      .moves(kernel::Moves::Converts);
  r.op("CastLike")
      .version(15, "input:T1, target_type:T2 -> output:T2; T1 = all_ir4-complex, T2 = all_ir4-complex")
      .version(19, "input:T1, target_type:T2 -> output:T2; T1 = all_ir9-complex, T2 = all_ir9-complex")
      .version(21, "input:T1, target_type:T2 -> output:T2; T1 = all_ir10-complex, T2 = all_ir10-complex")
      .version(23, "input:T1, target_type:T2 -> output:T2; T1 = all_ir11-complex, T2 = all_ir11-complex")
      .version(24, "input:T1, target_type:T2 -> output:T2; T1 = all_ir12-complex, T2 = all_ir12-complex")
      .version(25, "input:T1, target_type:T2 -> output:T2; T1 = all_ir13-complex, T2 = all_ir13-complex")
      .infer(infer_cast_like)
      .kernel<Cast>()
      .elementwise()
      .moves(kernel::Moves::Converts);
  r.op("BitCast")
      .version(26, "input:T1 -> output:T2; T1 = all_ir13-string, T2 = all_ir13-string")
      .infer(infer_bit_cast)
      .kernel<BitCast>()
      .alias(0, 0);
}

}  // namespace infernode::ops
