#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernel/charge.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/common/reals.h"

namespace infernode::ops {
namespace {

using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::Tensor;

/// Inverse of the matrix `m` [n, n], which is used up, by Gauss-Jordan elimination with partial pivoting.
/// Throws InvalidArgument where it is singular.
void invert(std::vector<double>& m, std::vector<double>& inverse, std::size_t n, kernel::Watch& watch) {
  std::fill(inverse.begin(), inverse.end(), 0.0);
  for (std::size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < n; ++r) {
      if (std::abs(m[r * n + c]) > std::abs(m[pivot * n + c])) pivot = r;
    }
    const double head = m[pivot * n + c];
    if (head == 0) fail(ErrorCode::InvalidArgument, "Inverse: the matrix is singular");
    for (std::vector<double>* rows : {&m, &inverse}) {
      for (std::size_t k = 0; k < n; ++k) {
        std::swap((*rows)[pivot * n + k], (*rows)[c * n + k]);
        (*rows)[c * n + k] /= head;
      }
    }
    for (std::size_t r = 0; r < n; ++r) {
      watch.did(2.0 * static_cast<double>(n));
      const double factor = m[r * n + c];
      if (r == c || factor == 0) continue;
      for (std::vector<double>* rows : {&m, &inverse}) {
        for (std::size_t k = 0; k < n; ++k) (*rows)[r * n + k] -= factor * (*rows)[c * n + k];
      }
    }
  }
}

/// com.microsoft's Inverse of each matrix of a stack.
class Inverse final : public kernel::Kernel {
 public:
  explicit Inverse(KernelInfo& info) : kernels_(info.kernels()) {}

  void run(KernelContext& ctx) const override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 2 || x.dim(x.rank() - 1) != x.dim(x.rank() - 2))
      fail(ErrorCode::ShapeMismatch, cat("Inverse takes square matrices, got ", x.to_string()));
    const Tensor y = ctx.output(0, x.shape());
    if (x.numel() == 0) return;
    const auto n = static_cast<std::size_t>(x.shape().back()), cells = n * n;
    const RealInput<double> in(ctx, kernels_, x);
    const RealOutput<double> out(ctx, kernels_, y);
    ctx.parallel_for(static_cast<std::size_t>(x.numel()) / cells, static_cast<double>(cells * n) * 2,
                     [&](std::size_t begin, std::size_t end, std::size_t) {
                       const kernel::Charge charge(ctx.run(), 2 * cells * sizeof(double));
                       std::vector<double> matrix(cells), inverse(cells);
                       kernel::Watch watch(ctx.run());
                       for (std::size_t i = begin; i < end; ++i) {
                         std::copy_n(in + i * cells, cells, matrix.data());
                         invert(matrix, inverse, n, watch);
                         std::copy_n(inverse.data(), cells, out + i * cells);
                       }
                     });
    out.store();
  }

 private:
  const microkernels::KernelSet& kernels_;
};

}  // namespace

void register_inverse(kernel::OpRegistrar& r) {
  r.op("Inverse", "com.microsoft")
      .version(1, "X:T -> Y:T; T = floats")
      .infer(kernel::infer_same_as_first)
      .kernel<Inverse>();
}

}  // namespace infernode::ops
