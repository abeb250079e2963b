#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

std::size_t size(std::int64_t v) { return static_cast<std::size_t>(v); }

struct Attributes {
  std::int64_t bits, block, gather_axis, quantize_axis;

  explicit Attributes(const graph::Attributes& attributes)
      : bits(attributes.get_int("bits", 4)),
        block(attributes.get_int("block_size", 128)),
        gather_axis(attributes.get_int("gather_axis", 0)),
        quantize_axis(attributes.get_int("quantize_axis", 1)) {
    if ((bits != 2 && bits != 4 && bits != 8) || block < 16 || (block & (block - 1)) != 0)
      fail(ErrorCode::InvalidModel, cat("GatherBlockQuantized: bits is ", bits, ", block_size ", block));
  }
  /// Elements that a byte of uint8 data holds along its last axis.
  std::int64_t per_byte(DType type) const { return type == DType::UInt8 ? 8 / bits : 1; }
};

/// com.microsoft's GatherBlockQuantized: slices of a tensor that is quantized in blocks along an axis. 4-bit types hold
/// an element each; bytes hold 8 / bits elements along the last axis.
class GatherBlockQuantized final : public kernel::Kernel {
 public:
  explicit GatherBlockQuantized(KernelInfo& info) : kernels_(info.kernels()), attributes_(info.attributes()) {}

  void run(KernelContext& ctx) const override {
    const Tensor &data = ctx.input(0), &indices = ctx.input(1), &scales = ctx.input(2);
    const Tensor* zeros = ctx.optional_input(3);
    Shape shape = data.shape();
    if (shape.rank() == 0) fail(ErrorCode::ShapeMismatch, "GatherBlockQuantized takes no scalars");
    const std::size_t rank = shape.rank(), axis = tensor::normalize_axis(attributes_.gather_axis, rank),
                      q_axis = tensor::normalize_axis(attributes_.quantize_axis, rank);
    shape[rank - 1] = checked_mul(shape[rank - 1], attributes_.per_byte(data.dtype()));
    if (data.dtype() == DType::UInt8 && (axis != 0 || q_axis != rank - 1))
      fail(ErrorCode::InvalidModel,
           "GatherBlockQuantized of bytes gathers along axis 0 what is quantized along the last");
    Shape blocks = shape;
    blocks[q_axis] = ceil_div(shape[q_axis], attributes_.block);
    if (scales.shape() != blocks) fail_shape(data, scales);
    const std::int64_t zero_row =
        data.dtype() == DType::UInt8 ? ceil_div(blocks[q_axis], 8 / attributes_.bits) : blocks[q_axis];
    if (zeros != nullptr) {
      Shape expected = blocks;
      expected[q_axis] = zero_row;
      if (zeros->shape() != expected) fail_shape(data, *zeros);
    }
    const kernel::Numbers<std::int64_t> picked(ctx.run(), indices);
    Shape out_shape(shape.dims().first(axis));
    for (const std::int64_t d : indices.shape()) out_shape.push_back(d);
    for (std::size_t i = axis + 1; i < rank; ++i) out_shape.push_back(shape[i]);
    const Tensor y = ctx.output(0, out_shape);
    if (y.numel() == 0) return;

    const RealInput<float> scale(ctx, kernels_, scales);
    const RealOutput<float> out(ctx, kernels_, y);
    const auto inner = size(shape.numel(axis + 1, rank)), bound = size(shape[axis]);
    // Of the quantized axis: elements within one step, and its length in elements and in blocks.
    const Blocks b{size(shape.numel(q_axis + 1, rank)), size(shape[q_axis]), size(blocks[q_axis]), size(zero_row)};
    constexpr double kNsPerElement = 15;
    ctx.parallel_for(size(y.numel()) / inner, static_cast<double>(inner) * kNsPerElement,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         const std::int64_t given = picked[i % picked.size()];
                         const std::int64_t index = given < 0 ? given + shape[axis] : given;
                         const bool outside = index < 0 || index >= shape[axis];  // zeros, as the operator is defined
                         const std::size_t row = outside ? 0 : i / picked.size() * bound + size(index);
                         in_pieces(watch, inner, kNsPerElement, [&](std::size_t first, std::size_t last) {
                           float* to = out + i * inner + first;
                           if (outside) {
                             std::fill_n(to, last - first, 0.0f);
                           } else {
                             expand(data, scale, zeros, b, row * inner + first, last - first, to);
                           }
                         });
                       }
                     });
    out.store();
  }

 private:
  struct Blocks {
    std::size_t inner, length, count, zero_row;
  };

  [[noreturn]] void fail_shape(const Tensor& data, const Tensor& t) const {
    fail(ErrorCode::ShapeMismatch, cat("GatherBlockQuantized: ", t.to_string(), " does not fit data ", data.to_string(),
                                       " of ", attributes_.bits, " bits in blocks of ", attributes_.block));
  }

  /// Element of codes: in bytes of `bits`, or of a 4-bit type.
  float code(const Tensor& t, std::size_t at) const {
    const auto* bytes = static_cast<const std::uint8_t*>(t.raw());
    if (t.dtype() == DType::Int4) return get_packed_signed<4>(bytes, at);
    if (t.dtype() == DType::UInt4 || attributes_.bits == 4) return get_packed<4>(bytes, at);
    return attributes_.bits == 8 ? bytes[at] : get_packed<2>(bytes, at);
  }

  void expand(const Tensor& data, const float* scales, const Tensor* zeros, const Blocks& b, std::size_t first,
              std::size_t count, float* out) const {
    const bool bytes = data.dtype() == DType::UInt8;
    const float middle = bytes ? static_cast<float>(1 << (attributes_.bits - 1)) : 0;
    const std::size_t per_byte = size(attributes_.per_byte(data.dtype())), block = size(attributes_.block);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = first + i, before = at / b.inner / b.length;
      const std::size_t within = at / b.inner % b.length / block, column = at % b.inner;
      // Rows of packed zero points begin at a byte; those of other types follow each other.
      const std::size_t zero_at =
          bytes ? before * b.zero_row * per_byte + within : (before * b.count + within) * b.inner + column;
      const float zero = zeros == nullptr ? middle : code(*zeros, zero_at);
      out[i] = (code(data, at) - zero) * scales[(before * b.count + within) * b.inner + column];
    }
  }

  const microkernels::KernelSet& kernels_;
  Attributes attributes_;
};

void infer_gather_block_quantized(InferContext& ctx) {
  ctx.set_output_dtype(0, ctx.input_dtype(2));
  const graph::SymShape *data = ctx.input_shape(0), *indices = ctx.input_shape(1);
  if (data == nullptr || indices == nullptr || data->empty()) return;
  const Attributes attributes(ctx.attributes());
  graph::SymShape shape = *data;
  shape.back() = shape.back() * graph::Dim(attributes.per_byte(ctx.input_dtype(0)));
  const auto axis = static_cast<std::ptrdiff_t>(tensor::normalize_axis(attributes.gather_axis, shape.size()));
  graph::SymShape out(shape.begin(), shape.begin() + axis);
  out.insert(out.end(), indices->begin(), indices->end());
  out.insert(out.end(), shape.begin() + axis + 1, shape.end());
  ctx.set_output_shape(0, std::move(out));
}

}  // namespace

void register_gather_block_quantized(kernel::OpRegistrar& r) {
  r.op("GatherBlockQuantized", "com.microsoft")
      .version(1,
               "data:T1, indices:Tind, scales:T2, zero_points:T1? -> output:T2; T1 = int4|uint4|uint8, "
               "T2 = float|float16|bfloat16, Tind = int32|int64")
      .infer(infer_gather_block_quantized)
      .kernel<GatherBlockQuantized>();
}

}  // namespace infernode::ops
