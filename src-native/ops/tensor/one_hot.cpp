#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernel/numbers.h"
#include "kernel/op_registrar.h"
#include "ops/common/arguments.h"
#include "ops/common/mover.h"
#include "ops/common/strided_copy.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void infer_one_hot(InferContext& ctx) {
  const graph::SymShape* indices = ctx.input_shape(0);
  if (!indices) return;
  graph::Dim depth = graph::Dim::unknown();
  if (const Tensor* constant = ctx.input_constant(1)) {
    depth = tensor::to_int64_scalar(*constant);
  } else if (const auto contents = ctx.input_contents(1); contents && contents->size() == 1) {
    depth = (*contents)[0];
  }
  graph::SymShape out = *indices;
  const std::size_t axis = tensor::normalize_axis(ctx.attributes().get_int("axis", -1), out.size() + 1);
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  ctx.set_output_shape(0, std::move(out));
}

class OneHot : public Kernel {
 public:
  explicit OneHot(KernelInfo& info) : axis_(info.attributes().get_int("axis", -1)) {}
  void run(KernelContext& ctx) const override {
    const Tensor &indices = ctx.input(0), &values = ctx.input(2);
    INFERNODE_CHECK(ctx.input(1).numel() == 1, ErrorCode::InvalidArgument, "depth has ", ctx.input(1).numel(),
                    " elements");
    const std::int64_t depth = tensor::to_int64_scalar(ctx.input(1));
    INFERNODE_CHECK(depth > 0, ErrorCode::InvalidArgument, "depth ", depth, " is not positive");
    INFERNODE_CHECK(values.numel() == 2, ErrorCode::InvalidArgument, "values has ", values.numel(),
                    " elements instead of 2");
    const std::size_t axis = tensor::normalize_axis(axis_, indices.rank() + 1);
    Shape dims(indices.shape().dims().first(axis));
    dims.push_back(depth);
    for (std::size_t d = axis; d < indices.rank(); ++d) dims.push_back(indices.dim(d));
    const Tensor out = ctx.output(0, values.dtype(), dims);
    if (out.numel() == 0) return;
    const kernel::Numbers<std::int64_t> hot(ctx.run(), indices);
    const auto outer = static_cast<std::size_t>(dims.numel(0, axis));
    const std::int64_t inner = dims.numel(axis + 1, dims.rank());
    dispatch_elements(values.dtype(), "OneHot", [&]<class T>(TypeTag<T>) {
      const T off = elements<T>(values)[0], on = elements<T>(values)[1];
      T* to = mutable_elements<T>(out);
      ctx.parallel_for(
          outer, static_cast<double>(depth * inner) * 0.3, [&](std::size_t begin, std::size_t end, std::size_t) {
            Mover mover(ctx.run());
            for (std::size_t o = begin; o < end; ++o) {
              T* plane = to + static_cast<std::int64_t>(o) * depth * inner;
              mover.fill(plane, depth * inner, off);
              for (std::int64_t i = 0; i < inner; ++i) {
                const std::size_t place = o * static_cast<std::size_t>(inner) + static_cast<std::size_t>(i);
                const std::int64_t at = hot[place] < 0 ? hot[place] + depth : hot[place];
                if (at >= 0 && at < depth && !is_nan(indices, place)) mover.set(plane[at * inner + i], on);
                mover.did(kNsPerIndex);
              }
            }
          });
    });
  }

 private:
  static constexpr double kNsPerIndex = 3;

  /// NaN is like every index out of range: all off.
  static bool is_nan(const Tensor& indices, std::size_t i) {
    if (!tensor::is_floating(indices.dtype())) return false;
    bool nan = false;
    tensor::dispatch<float, double, Float16, BFloat16>(indices.dtype(), "OneHot", [&]<class T>(TypeTag<T>) {
      nan = std::isnan(static_cast<tensor::ComputeTypeOf<T>>(indices.data<T>()[i]));
    });
    return nan;
  }

  std::int64_t axis_;
};

}  // namespace

void register_one_hot(kernel::OpRegistrar& r) {
  r.op("OneHot")
      .version(9, "indices:T1, depth:T2, values:T3 -> output:T3; T1 = numeric, T2 = numeric, T3 = all")
      .version(11, "indices:T1, depth:T2, values:T3 -> output:T3; T1 = numeric, T2 = numeric, T3 = all")
      .version(28, "indices:T1, depth:T2, values:T3 -> output:T3; T1 = numeric, T2 = numeric, T3 = all_ir4")
      .infer(infer_one_hot)
      .kernel<OneHot>();
}

}  // namespace infernode::ops
