#include <cmath>
#include <string>

#include "base/error.h"
#include "kernel/op_registrar.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;

/// com.microsoft's CDist: distances of the rows of A [m, n] from those of B [k, n], as [m, k].
class CDist final : public kernel::Kernel {
 public:
  explicit CDist(KernelInfo& info) {
    const std::string metric = info.attributes().get_string("metric", "sqeuclidean");
    if (metric != "euclidean" && metric != "sqeuclidean")
      fail(ErrorCode::UnsupportedOperator,
           cat("CDist with the metric '", metric, "'; euclidean and sqeuclidean exist"));
    root_ = metric == "euclidean";
  }

  void run(KernelContext& ctx) const override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() != 2 || b.rank() != 2 || a.dim(1) != b.dim(1))
      fail(ErrorCode::ShapeMismatch,
           cat("CDist takes matrices with rows of one length, got ", a.to_string(), " and ", b.to_string()));
    const Tensor c = ctx.output(0, Shape{a.dim(0), b.dim(0)});
    const auto n = static_cast<std::size_t>(a.dim(1)), columns = static_cast<std::size_t>(b.dim(0));
    tensor::dispatch<float, double>(a.dtype(), "CDist", [&]<class T>(tensor::TypeTag<T>) {
      const T *left = a.data<T>(), *right = b.data<T>();
      T* out = c.mutable_data<T>();
      ctx.parallel_for(static_cast<std::size_t>(c.numel()), static_cast<double>(n),
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         for (std::size_t i = begin; i < end; ++i) {
                           const T *x = left + i / columns * n, *y = right + i % columns * n;
                           T sum = 0;
                           for (std::size_t k = 0; k < n; ++k) sum += (x[k] - y[k]) * (x[k] - y[k]);
                           out[i] = root_ ? std::sqrt(sum) : sum;
                         }
                       });
    });
  }

 private:
  bool root_ = false;
};

void infer_cdist(InferContext& ctx) {
  const graph::SymShape *a = ctx.input_shape(0), *b = ctx.input_shape(1);
  if (a != nullptr && b != nullptr && a->size() == 2 && b->size() == 2)
    ctx.set_output_shape(0, graph::SymShape{(*a)[0], (*b)[0]});
}

}  // namespace

void register_cdist(kernel::OpRegistrar& r) {
  r.op("CDist", "com.microsoft").version(1, "A:T, B:T -> C:T; T = float|double").infer(infer_cdist).kernel<CDist>();
}

}  // namespace infernode::ops
