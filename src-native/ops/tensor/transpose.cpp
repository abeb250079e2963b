#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;

/// The permutation that the attribute asks for; all axes reversed where it is missing.
Ints permutation(std::span<const std::int64_t> perm, bool given, std::size_t rank) {
  Ints out;
  if (given) {
    INFERNODE_CHECK(perm.size() == rank, ErrorCode::InvalidArgument, "perm ", perm, " has ", perm.size(),
                    " entries for an input of rank ", rank);
    out = normalize_axes(perm, rank, "perm entry");
  } else {
    for (std::size_t i = rank; i-- > 0;) out.push_back(static_cast<std::int64_t>(i));
  }
  return out;
}

void infer_transpose(InferContext& ctx) {
  const graph::SymShape* in = ctx.input_shape(0);
  const auto perm = ctx.attributes().get_ints("perm");
  const bool given = ctx.attributes().has("perm");
  if (!in) {
    if (given) ctx.set_output_shape(0, unknown_shape(perm.size()));
    return;
  }
  graph::SymShape out;
  for (std::int64_t axis : permutation(perm, given, in->size())) out.push_back((*in)[static_cast<std::size_t>(axis)]);
  ctx.set_output_shape(0, std::move(out));
  infer_same_contents(ctx);
}

class Transpose : public Kernel {
 public:
  explicit Transpose(KernelInfo& info)
      : perm_(info.attributes().get_ints("perm")),
        given_(info.attributes().has("perm")),
        table_(info.kernels().transpose) {}
  void run(KernelContext& ctx) const override {
    const tensor::Tensor& in = ctx.input(0);
    const Shape in_strides = in.shape().strides();
    Shape dims, strides;
    for (std::int64_t axis : permutation(perm_, given_, in.rank())) {
      dims.push_back(in.dim(static_cast<std::size_t>(axis)));
      strides.push_back(in_strides[static_cast<std::size_t>(axis)]);
    }
    const tensor::Tensor out = ctx.output(0, dims);
    strided_copy(ctx.run(), dims, {in, 0, strides}, {out, 0, dims.strides()}, &table_);
  }

 private:
  std::vector<std::int64_t> perm_;
  bool given_;
  const microkernels::TransposeTable& table_;
};

}  // namespace

void register_transpose(kernel::OpRegistrar& r) {
  r.op("Transpose")
      .version(1, "data:T -> transposed:T; T = all")
      .version(13, "data:T -> transposed:T; T = all_ir4")
      .version(21, "data:T -> transposed:T; T = all_ir10")
      .version(23, "data:T -> transposed:T; T = all_ir11")
      .version(24, "data:T -> transposed:T; T = all_ir12")
      .version(25, "data:T -> transposed:T; T = all_ir13")
      .infer(infer_transpose)
      .kernel<Transpose>()
      .moves(kernel::Moves::Permutes);
}

}  // namespace infernode::ops
