// SpaceToDepth and DepthToSpace: blocks of pixels become channels, and back.

#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/strided_copy.h"

namespace infernode::ops {
namespace {

using graph::SymShape;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

std::int64_t block_size(const graph::Attributes& attributes) {
  const std::int64_t block = attributes.get_int("blocksize");
  INFERNODE_CHECK(block > 0 && block < (1 << 20), ErrorCode::InvalidModel, "blocksize ", block,
                  " is not a sensible size");
  return block;
}

/// True for DCR, where the block's position is the outer part of the channel; false for CRD.
bool depth_first(const graph::Attributes& attributes) {
  const std::string mode = attributes.get_string("mode", "DCR");
  INFERNODE_CHECK(mode == "DCR" || mode == "CRD", ErrorCode::InvalidModel, "unknown mode '", mode,
                  "'; known are DCR, CRD");
  return mode == "DCR";
}

void check_image(std::size_t rank) {
  INFERNODE_CHECK(rank == 4, ErrorCode::ShapeMismatch, "the input has rank ", rank, " instead of 4 [N, C, H, W]");
}

void check_divides(std::int64_t dim, std::int64_t by, const char* what) {
  INFERNODE_CHECK(dim % by == 0, ErrorCode::ShapeMismatch, what, " ", dim, " is no multiple of ", by);
}

template <bool ToDepth>
void infer_blocks(InferContext& ctx) {
  const SymShape* in = ctx.input_shape(0);
  if (!in) return ctx.set_output_shape(0, unknown_shape(4));
  check_image(in->size());
  const std::int64_t b = block_size(ctx.attributes());
  const SymShape& x = *in;
  if (ToDepth) {
    ctx.set_output_shape(0, SymShape{x[0], x[1] * (b * b), floor_div(x[2], b), floor_div(x[3], b)});
  } else {
    ctx.set_output_shape(0, SymShape{x[0], floor_div(x[1], b * b), x[2] * b, x[3] * b});
  }
}

/// Writes [d0, d1, ...] permuted from strides that are listed in the output's order.
class Blocks : public Kernel {
 public:
  explicit Blocks(KernelInfo& info)
      : block_(block_size(info.attributes())),
        depth_first_(depth_first(info.attributes())),
        table_(info.kernels().transpose) {}

 protected:
  std::int64_t block_;
  bool depth_first_;
  const microkernels::TransposeTable& table_;
};

class SpaceToDepth : public Blocks {
 public:
  using Blocks::Blocks;
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    check_image(in.rank());
    check_divides(in.dim(2), block_, "height");
    check_divides(in.dim(3), block_, "width");
    const std::int64_t n = in.dim(0), c = in.dim(1), h = in.dim(2) / block_, w = in.dim(3) / block_, b = block_;
    const std::int64_t row = w * b, plane = h * b * row;
    const Tensor out = ctx.output(0, Shape{n, c * b * b, h, w});
    const Shape dims = depth_first_ ? Shape{n, b, b, c, h, w} : Shape{n, c, b, b, h, w};
    const Shape from =
        depth_first_ ? Shape{c * plane, row, 1, plane, b * row, b} : Shape{c * plane, plane, row, 1, b * row, b};
    strided_copy(ctx.run(), dims, {in, 0, from}, {out, 0, dims.strides()}, &table_);
  }
};

class DepthToSpace : public Blocks {
 public:
  using Blocks::Blocks;
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    check_image(in.rank());
    check_divides(in.dim(1), block_ * block_, "the number of channels");
    const std::int64_t b = block_, n = in.dim(0), c = in.dim(1) / (b * b), h = in.dim(2), w = in.dim(3), plane = h * w;
    const Tensor out = ctx.output(0, Shape{n, c, h * b, w * b});
    const Shape dims{n, c, h, b, w, b};
    const Shape from = depth_first_ ? Shape{c * b * b * plane, plane, w, b * c * plane, 1, c * plane}
                                    : Shape{c * b * b * plane, b * b * plane, w, b * plane, 1, plane};
    strided_copy(ctx.run(), dims, {in, 0, from}, {out, 0, dims.strides()}, &table_);
  }
};

}  // namespace

void register_depth_space(kernel::OpRegistrar& r) {
  r.op("SpaceToDepth")
      .version(1, "input:T -> output:T; T = all")
      .version(13, "input:T -> output:T; T = all_ir4")
      .version(28, "input:T -> output:T; T = all_ir4")
      .infer(infer_blocks<true>)
      .kernel<SpaceToDepth>()
      .moves(kernel::Moves::Permutes);
  r.op("DepthToSpace")
      .version(1, "input:T -> output:T; T = all")
      .version(11, "input:T -> output:T; T = all")
      .version(13, "input:T -> output:T; T = all_ir4")
      .version(28, "input:T -> output:T; T = all_ir4")
      .infer(infer_blocks<false>)
      .kernel<DepthToSpace>()
      .moves(kernel::Moves::Permutes);
}

}  // namespace infernode::ops
