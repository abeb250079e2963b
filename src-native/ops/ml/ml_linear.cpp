#include <algorithm>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "ops/matmul/product.h"
#include "ops/ml/ml_scores.h"

namespace infernode::ops {
namespace {

using graph::Dim;
using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// X times the transposed coefficients, plus the intercepts; in double where X is double, in float otherwise.
class LinearScores {
 public:
  explicit LinearScores(KernelInfo& info)
      : coefficients_(info.attributes().get_floats("coefficients")),
        intercepts_(info.attributes().get_floats("intercepts")),
        doubles_(coefficients_.begin(), coefficients_.end()),
        table_(info.kernels().gemm_float32) {
    if (info.input_type(0).elem != DType::Float64) doubles_ = {};
  }

  /// Scores of a row that `coefficients` holds for X with so many columns. Throws InvalidArgument where they do not
  /// fit.
  std::size_t count(std::size_t columns, const char* op) const {
    const std::size_t count = columns == 0 ? intercepts_.size() : coefficients_.size() / columns;
    INFERNODE_CHECK(count * columns == coefficients_.size(), ErrorCode::InvalidArgument, op, ": X has ", columns,
                    " columns, which do not divide ", coefficients_.size(), " coefficients");
    INFERNODE_CHECK(intercepts_.empty() || intercepts_.size() == count, ErrorCode::InvalidArgument, op, ": ",
                    intercepts_.size(), " intercepts for ", count, " rows of coefficients");
    return count;
  }

  /// Writes [rows, count] floats to `out`.
  void compute(KernelContext& ctx, const MlMatrix& x, std::size_t count, float* out) const {
    const Tensor& in = ctx.input(0);
    if (in.dtype() == DType::Float64) return compute_double(ctx, x, count, out);
    tensor::Buffer converted;
    const float* a = nullptr;
    if (in.dtype() == DType::Float32) {
      a = in.data<float>();
    } else {
      converted = ctx.scratch(checked_mul(static_cast<std::size_t>(in.numel()), sizeof(float)));
      auto* const to = reinterpret_cast<float*>(converted.data());
      ctx.parallel_for(static_cast<std::size_t>(in.numel()), 0.5, [&](std::size_t begin, std::size_t end, std::size_t) {
        read_reals(in, begin, end - begin, to + begin);
      });
      a = to;
    }
    microkernels::GemmArgs args;
    args.m = x.rows;
    args.n = count;
    args.k = x.columns;
    args.a = a;
    args.lda = x.columns;
    args.b = coefficients_.data();
    args.ldb = x.columns;
    args.trans_b = true;
    args.c = out;
    args.ldc = count;
    if (!intercepts_.empty()) args.epilogue.bias_n = intercepts_.data();
    run_gemm(ctx, table_, args);
  }

 private:
  void compute_double(KernelContext& ctx, const MlMatrix& x, std::size_t count, float* out) const {
    const std::size_t total = checked_mul(x.rows, count);
    const tensor::Buffer memory = ctx.scratch(checked_mul(total, sizeof(double)));
    auto* const scores = reinterpret_cast<double*>(memory.data());
    microkernels::DgemmArgs args;
    args.m = x.rows;
    args.n = count;
    args.k = x.columns;
    args.a = ctx.input(0).data<double>();
    args.lda = x.columns;
    args.b = doubles_.data();
    args.ldb = x.columns;
    args.trans_b = true;
    args.c = scores;
    args.ldc = count;
    run_dgemm(ctx, table_, args);
    ctx.parallel_for(total, 3, [&](std::size_t begin, std::size_t end, std::size_t) {
      for (std::size_t i = begin; i < end; ++i) {
        const double bias = intercepts_.empty() ? 0 : static_cast<double>(intercepts_[i % count]);
        out[i] = static_cast<float>(scores[i] + bias);
      }
    });
  }

  std::vector<float> coefficients_, intercepts_;
  std::vector<double> doubles_;
  const microkernels::GemmTable& table_;
};

/// Calls f(row) for rows of so many scores, in parallel.
template <class F>
void each_row(const KernelContext& ctx, std::size_t rows, std::size_t scores, F&& f) {
  ctx.parallel_for(rows, 20 + 10 * static_cast<double>(scores), [&](std::size_t begin, std::size_t end, std::size_t) {
    for (std::size_t r = begin; r < end; ++r) f(r);
  });
}

constexpr const char* kInts = "classlabels_ints";
constexpr const char* kStrings = "classlabels_strings";

class LinearClassifier final : public Kernel {
 public:
  explicit LinearClassifier(KernelInfo& info)
      : labels_(info.attributes(), kInts, kStrings), transform_(post_transform(info.attributes())), scores_(info) {}

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "LinearClassifier");
    const std::size_t count = scores_.count(x.columns, "LinearClassifier"), classes = labels_.size();
    const bool binary = count == 1 && classes == 2;
    INFERNODE_CHECK(binary || count == classes, ErrorCode::InvalidArgument, "LinearClassifier: ", count,
                    " rows of coefficients for ", classes, " labels");
    const auto rows = static_cast<std::int64_t>(x.rows);
    const Tensor labels = ctx.output(0, labels_.dtype(), Shape{rows});
    const Tensor out = ctx.output(1, DType::Float32, Shape{rows, static_cast<std::int64_t>(classes)});
    float* const z = out.mutable_data<float>();
    if (binary) {
      const tensor::Buffer memory = ctx.scratch(x.rows * sizeof(float));
      auto* const scores = reinterpret_cast<float*>(memory.data());
      scores_.compute(ctx, x, 1, scores);
      return each_row(ctx, x.rows, 2, [&](std::size_t r) {
        labels_.write(labels, r, scores[r] > 0 ? 1 : 0);
        const auto both = binary_scores(static_cast<double>(scores[r]), transform_, true);
        for (std::size_t c = 0; c < 2; ++c) z[2 * r + c] = static_cast<float>(both[c]);
      });
    }
    scores_.compute(ctx, x, classes, z);
    each_row(ctx, x.rows, classes, [&](std::size_t r) {
      const std::span<float> row(z + r * classes, classes);
      labels_.write(labels, r, static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin()));
      apply(transform_, row);
    });
  }

 private:
  ClassLabels labels_;
  PostTransform transform_;
  LinearScores scores_;
};

class LinearRegressor final : public Kernel {
 public:
  explicit LinearRegressor(KernelInfo& info)
      : targets_(info.attributes().get_int("targets", 1)),
        transform_(post_transform(info.attributes())),
        scores_(info) {
    INFERNODE_CHECK(targets_ > 0, ErrorCode::InvalidModel, "targets is ", targets_);
  }

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "LinearRegressor");
    const auto targets = static_cast<std::size_t>(targets_);
    const std::size_t count = scores_.count(x.columns, "LinearRegressor");
    INFERNODE_CHECK(count == targets, ErrorCode::InvalidArgument, "LinearRegressor: ", count,
                    " rows of coefficients for ", targets, " targets");
    const Tensor out = ctx.output(0, DType::Float32, Shape{static_cast<std::int64_t>(x.rows), targets_});
    float* const y = out.mutable_data<float>();
    scores_.compute(ctx, x, targets, y);
    if (targets == 1 && transform_ != PostTransform::Probit) return;
    each_row(ctx, x.rows, targets,
             [&](std::size_t r) { apply(transform_, std::span<float>(y + r * targets, targets)); });
  }

 private:
  std::int64_t targets_;
  PostTransform transform_;
  LinearScores scores_;
};

void infer_linear_classifier(InferContext& ctx) {
  const ClassLabels labels(ctx.attributes(), kInts, kStrings);
  infer_classifier(ctx, kInts, kStrings, static_cast<std::int64_t>(labels.size()));
}

void infer_linear_regressor(InferContext& ctx) { infer_scores(ctx, ctx.attributes().get_int("targets", 1)); }

}  // namespace

void register_ml_linear(kernel::OpRegistrar& r) {
  r.op("LinearClassifier", kMlDomain)
      .version(1, "X:T1 -> Y:T2, Z:float; T1 = float|double|int64|int32, T2 = string|int64")
      .infer(infer_linear_classifier)
      .kernel<LinearClassifier>();
  r.op("LinearRegressor", kMlDomain)
      .version(1, "X:T -> Y:float; T = float|double|int64|int32")
      .infer(infer_linear_regressor)
      .kernel<LinearRegressor>();
}

}  // namespace infernode::ops
