#include <cmath>
#include <utility>
#include <vector>

#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/arguments.h"
#include "ops/common/arithmetic.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Shape;
using tensor::Tensor;
using tensor::TypeTag;

void infer_det(InferContext& ctx) {
  const graph::SymShape* in = ctx.input_shape(0);
  if (!in) return;
  INFERNODE_CHECK(in->size() >= 2, ErrorCode::ShapeMismatch, "the input has rank ", in->size(), "; it needs matrices");
  ctx.set_output_shape(0, graph::SymShape(in->begin(), in->end() - 2));
}

/// Determinant by elimination with partial pivoting; `m` is used up.
double determinant(std::vector<double>& m, std::size_t n, kernel::Watch& watch) {
  double det = 1;
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < n; ++r) {
      if (std::abs(m[r * n + c]) > std::abs(m[pivot * n + c])) pivot = r;
    }
    const double head = m[pivot * n + c];
    if (head == 0) return 0;
    if (pivot != c) {
      for (std::size_t k = c; k < n; ++k) std::swap(m[pivot * n + k], m[c * n + k]);
      det = -det;
    }
    det *= head;
    for (std::size_t r = c + 1; r < n; ++r) {
      watch.did(static_cast<double>(n - c));
      const double factor = m[r * n + c] / head;
      for (std::size_t k = c; k < n; ++k) m[r * n + k] -= factor * m[c * n + k];
    }
  }
  return det;
}

class Det : public Kernel {
 public:
  explicit Det(KernelInfo&) {}
  void run(KernelContext& ctx) const override {
    const Tensor& in = ctx.input(0);
    INFERNODE_CHECK(in.rank() >= 2 && in.dim(in.rank() - 1) == in.dim(in.rank() - 2), ErrorCode::ShapeMismatch,
                    "an input of shape ", in.shape().dims(), " holds no square matrices");
    const Tensor out = ctx.output(0, Shape(in.shape().dims().first(in.rank() - 2)));
    const auto n = static_cast<std::size_t>(in.shape().back());
    const auto cells = static_cast<double>(n);
    tensor::dispatch_floats(in.dtype(), "Det", [&]<class T>(TypeTag<T>) {
      ctx.parallel_for(static_cast<std::size_t>(out.numel()), 5.0 + cells * cells * cells,
                       [&](std::size_t begin, std::size_t end, std::size_t) {
                         const kernel::Charge charge(ctx.run(), n * n * sizeof(double));
                         std::vector<double> matrix(n * n);
                         kernel::Watch watch(ctx.run());
                         for (std::size_t i = begin; i < end; ++i) {
                           const T* from = in.data<T>() + i * n * n;
                           for (std::size_t k = 0; k < n * n; ++k) matrix[k] = static_cast<double>(widen(from[k]));
                           out.mutable_data<T>()[i] = convert<T>(determinant(matrix, n, watch));
                         }
                       });
    });
  }
};

}  // namespace

void register_det(kernel::OpRegistrar& r) {
  r.op("Det")
      .version(11, "X:T -> Y:T; T = floats")
      .version(22, "X:T -> Y:T; T = floats_bf16")
      .infer(infer_det)
      .kernel<Det>();
}

}  // namespace infernode::ops
