#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"
#include "kernel/op_registrar.h"
#include "kernel/watch.h"
#include "ops/ml/ml_scores.h"

namespace infernode::ops {
namespace {

using kernel::InferContext;
using kernel::Kernel;
using kernel::KernelContext;
using kernel::KernelInfo;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

/// Sums f(i) over [0, n) in eight strands, so that the order is fixed and the loop is wide.
template <class F>
float strands(std::size_t n, F f) {
  float part[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t s = 0; s < 8; ++s) part[s] += f(i + s);
  }
  for (; i < n; ++i) part[i % 8] += f(i);
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

class SvmKernel {
 public:
  explicit SvmKernel(const graph::Attributes& attributes) {
    const std::string name = attributes.get_string("kernel_type", "LINEAR");
    constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const auto found = std::find(std::begin(kNames), std::end(kNames), name);
    INFERNODE_CHECK(found != std::end(kNames), ErrorCode::InvalidModel, "kernel_type '", name,
                    "' is not one of LINEAR, POLY, RBF and SIGMOID");
    type_ = static_cast<Type>(found - std::begin(kNames));
    const auto params = attributes.get_floats("kernel_params");
    INFERNODE_CHECK(params.empty() || params.size() == 3, ErrorCode::InvalidModel, "kernel_params has ", params.size(),
                    " elements instead of gamma, coef0 and degree");
    if (params.empty()) return;
    gamma_ = params[0];
    coef0_ = params[1];
    degree_ = params[2];
  }

  void make_linear() { type_ = Type::Linear; }

  float operator()(const float* a, const float* b, std::size_t n) const {
    if (type_ == Type::Rbf) {
      return std::exp(-gamma_ * strands(n, [&](std::size_t i) { return (a[i] - b[i]) * (a[i] - b[i]); }));
    }
    const float dot = strands(n, [&](std::size_t i) { return a[i] * b[i]; });
    switch (type_) {
      case Type::Poly:
        return std::pow(gamma_ * dot + coef0_, degree_);
      case Type::Sigmoid:
        return std::tanh(gamma_ * dot + coef0_);
      default:
        return dot;
    }
  }

 private:
  enum class Type : std::uint8_t { Linear, Poly, Rbf, Sigmoid } type_ = Type::Linear;
  float gamma_ = 0, coef0_ = 0, degree_ = 0;
};

/// Calls fn(row, kernel values, watch) over the rows of X; `vectors` lie one after another.
template <class Fn>
void for_each_row(KernelContext& ctx, const MlMatrix& x, const SvmKernel& svm, const std::vector<float>& vectors,
                  std::size_t count, Fn fn) {
  const double cost = 2 + 0.5 * static_cast<double>(vectors.size());
  ctx.parallel_for(x.rows, cost, [&](std::size_t begin, std::size_t end, std::size_t) {
    std::vector<float> row(x.columns), values(count);
    kernel::Watch watch(ctx.run());
    const double ns = 20 + static_cast<double>(x.columns);
    for (std::size_t r = begin; r < end; ++r) {
      read_reals(ctx.input(0), r * x.columns, x.columns, row.data());
      watch.did(ns);
      each_in_pieces(watch, count, ns,
                     [&](std::size_t v) { values[v] = svm(row.data(), vectors.data() + v * x.columns, x.columns); });
      fn(r, values, watch);
    }
  });
}

class SvmRegressor final : public Kernel {
 public:
  explicit SvmRegressor(KernelInfo& info)
      : kernel_(info.attributes()),
        transform_(post_transform(info.attributes())),
        one_class_(info.attributes().get_int("one_class", 0) != 0),
        vectors_(info.attributes().get_floats("support_vectors")),
        coefficients_(info.attributes().get_floats("coefficients")) {
    const auto rho = info.attributes().get_floats("rho");
    rho_ = rho.empty() ? 0 : rho[0];
    const std::int64_t supports = info.attributes().get_int("n_supports", 0);
    INFERNODE_CHECK(supports >= 0, ErrorCode::InvalidModel, "n_supports is ", supports);
    if (supports == 0) {
      // A linear model: one vector, the coefficients.
      kernel_.make_linear();
      vectors_ = std::exchange(coefficients_, {1.0f});
      supports_ = 1;
      return;
    }
    supports_ = static_cast<std::size_t>(supports);
    INFERNODE_CHECK(coefficients_.size() == supports_, ErrorCode::InvalidModel, "coefficients has ",
                    coefficients_.size(), " elements for ", supports_, " support vectors");
    INFERNODE_CHECK(vectors_.size() % supports_ == 0, ErrorCode::InvalidModel, "support_vectors has ", vectors_.size(),
                    " elements for ", supports_, " vectors");
  }

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "SVMRegressor");
    INFERNODE_CHECK(x.columns == vectors_.size() / supports_, ErrorCode::InvalidArgument, "SVMRegressor: X has ",
                    x.columns, " columns, the vectors have ", vectors_.size() / supports_);
    const Tensor out = ctx.output(0, DType::Float32, Shape{static_cast<std::int64_t>(x.rows), 1});
    float* const y = out.mutable_data<float>();
    for_each_row(ctx, x, kernel_, vectors_, supports_,
                 [&](std::size_t r, const std::vector<float>& values, kernel::Watch&) {
                   double sum = static_cast<double>(rho_);
                   for (std::size_t v = 0; v < supports_; ++v) {
                     sum += static_cast<double>(coefficients_[v]) * static_cast<double>(values[v]);
                   }
                   if (one_class_) {
                     y[r] = sum > 0 ? 1.0f : -1.0f;
                   } else {
                     y[r] = static_cast<float>(transform_ == PostTransform::Probit ? probit(sum) : sum);
                   }
                 });
  }

 private:
  SvmKernel kernel_;
  PostTransform transform_;
  bool one_class_;
  std::size_t supports_ = 1;
  std::vector<float> vectors_, coefficients_;
  float rho_ = 0;
};

/// Probabilities of k classes from those of the pairs, r[i * k + j] = P(i | i or j): the second method of T.-F. Wu,
/// C.-J. Lin, R. Weng, "Probability Estimates for Multi-class Classification by Pairwise Coupling" (2004).
void couple_pairs(kernel::Watch& watch, std::size_t k, const std::vector<double>& r, std::vector<double>& p) {
  std::vector<double> q(k * k, 0), qp(k);
  constexpr double kNs = 2;  // of an element of q
  const double ns_of_row = kNs * static_cast<double>(k);
  each_in_pieces(watch, k, ns_of_row, [&](std::size_t t) {
    for (std::size_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  });
  p.assign(k, 1 / static_cast<double>(k));
  for (std::size_t round = 0; round < std::max<std::size_t>(100, k); ++round) {
    double pqp = 0, worst = 0;
    each_in_pieces(watch, k, ns_of_row, [&](std::size_t t) {
      qp[t] = std::inner_product(p.begin(), p.end(), q.begin() + static_cast<std::ptrdiff_t>(t * k), 0.0);
      pqp += p[t] * qp[t];
    });
    for (std::size_t t = 0; t < k; ++t) worst = std::max(worst, std::abs(qp[t] - pqp));
    if (!(worst >= 0.005 / static_cast<double>(k))) break;
    each_in_pieces(watch, k, ns_of_row, [&](std::size_t t) {
      const double diff = (pqp - qp[t]) / q[t * k + t];
      p[t] += diff;
      pqp = (pqp + diff * (diff * q[t * k + t] + 2 * qp[t])) / ((1 + diff) * (1 + diff));
      for (std::size_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + diff * q[t * k + j]) / (1 + diff);
        p[j] /= 1 + diff;
      }
    });
  }
}

constexpr const char* kInts = "classlabels_ints";
constexpr const char* kStrings = "classlabels_strings";

class SvmClassifier final : public Kernel {
 public:
  explicit SvmClassifier(KernelInfo& info)
      : labels_(info.attributes(), kInts, kStrings),
        kernel_(info.attributes()),
        transform_(post_transform(info.attributes())),
        vectors_(info.attributes().get_floats("support_vectors")),
        coefficients_(info.attributes().get_floats("coefficients")),
        rho_(info.attributes().get_floats("rho")),
        prob_a_(info.attributes().get_floats("prob_a")),
        prob_b_(info.attributes().get_floats("prob_b")) {
    const std::size_t classes = labels_.size(), pairs = checked_mul(classes, classes - 1) / 2;
    for (const std::int64_t count : info.attributes().get_ints("vectors_per_class")) {
      INFERNODE_CHECK(count >= 0 && count <= INT32_MAX, ErrorCode::InvalidModel, "vectors_per_class holds ", count);
      first_.push_back(total_);
      total_ += static_cast<std::size_t>(count);
    }
    INFERNODE_CHECK(!rho_.empty(), ErrorCode::InvalidModel, "rho is empty");
    if (total_ == 0) {
      // A linear model: the vectors are the rows of coefficients.
      kernel_.make_linear();
      INFERNODE_CHECK(!coefficients_.empty() && coefficients_.size() % classes == 0, ErrorCode::InvalidModel,
                      "coefficients has ", coefficients_.size(), " elements for ", classes, " classes");
      return;
    }
    first_.push_back(total_);
    INFERNODE_CHECK(first_.size() == classes + 1, ErrorCode::InvalidModel, "vectors_per_class has ", first_.size() - 1,
                    " elements for ", classes, " classes");
    INFERNODE_CHECK(classes > 1, ErrorCode::InvalidModel, "a support vector machine of one class");
    INFERNODE_CHECK(vectors_.size() % total_ == 0, ErrorCode::InvalidModel, "support_vectors has ", vectors_.size(),
                    " elements for ", total_, " vectors");
    INFERNODE_CHECK(coefficients_.size() == checked_mul(classes - 1, total_), ErrorCode::InvalidModel,
                    "coefficients has ", coefficients_.size(), " elements for ", total_, " vectors and ", classes,
                    " classes");
    INFERNODE_CHECK(rho_.size() == pairs, ErrorCode::InvalidModel, "rho has ", rho_.size(), " elements for ", pairs,
                    " pairs of classes");
    INFERNODE_CHECK(prob_a_.size() == prob_b_.size() && (prob_a_.empty() || prob_a_.size() == pairs),
                    ErrorCode::InvalidModel, "prob_a has ", prob_a_.size(), " elements and prob_b ", prob_b_.size(),
                    " for ", pairs, " pairs of classes");
  }

  /// Columns of Z.
  static std::size_t columns(const graph::Attributes& attributes, std::size_t classes) {
    const auto counts = attributes.get_ints("vectors_per_class");
    const bool linear = std::all_of(counts.begin(), counts.end(), [](std::int64_t c) { return c == 0; });
    if (linear || !attributes.get_floats("prob_a").empty() || classes <= 2) return classes;
    return classes * (classes - 1) / 2;
  }

  void run(KernelContext& ctx) const override {
    const MlMatrix x = ml_matrix(ctx.input(0), "SVMClassifier");
    const std::size_t classes = labels_.size();
    const std::size_t width = total_ == 0 ? coefficients_.size() / classes : vectors_.size() / total_;
    INFERNODE_CHECK(x.columns == width, ErrorCode::InvalidArgument, "SVMClassifier: X has ", x.columns,
                    " columns, the model ", width);
    const std::size_t wide = total_ == 0 || !prob_a_.empty() || classes == 2 ? classes : classes * (classes - 1) / 2;
    const auto rows = static_cast<std::int64_t>(x.rows);
    const Tensor labels = ctx.output(0, labels_.dtype(), Shape{rows});
    const Tensor out = ctx.output(1, DType::Float32, Shape{rows, static_cast<std::int64_t>(wide)});
    float* const z = out.mutable_data<float>();
    const bool linear = total_ == 0;
    for_each_row(ctx, x, kernel_, linear ? coefficients_ : vectors_, linear ? classes : total_,
                 [&](std::size_t r, const std::vector<float>& values, kernel::Watch& watch) {
                   const std::span<float> row(z + r * wide, wide);
                   if (linear) return finish_linear(r, values, labels, row);
                   finish_votes(watch, r, values, labels, row);
                 });
  }

 private:
  void finish_linear(std::size_t r, const std::vector<float>& values, const Tensor& labels,
                     std::span<float> row) const {
    for (std::size_t c = 0; c < row.size(); ++c) row[c] = values[c] + rho_[0];
    labels_.write(labels, r, static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin()));
    apply(transform_, row);
  }

  void finish_votes(kernel::Watch& watch, std::size_t r, const std::vector<float>& values, const Tensor& labels,
                    std::span<float> row) const {
    const std::size_t classes = labels_.size();
    std::vector<double> scores;
    std::vector<int> votes(classes, 0);
    for (std::size_t i = 0; i < classes; ++i) {
      for (std::size_t j = i + 1; j < classes; ++j) {
        const double score = part(j - 1, i, values) + part(i, j, values) + static_cast<double>(rho_[scores.size()]);
        ++votes[score > 0 ? i : j];
        scores.push_back(score);
        watch.did(20 + 2 * static_cast<double>(first_[i + 1] - first_[i] + first_[j + 1] - first_[j]));
      }
    }
    labels_.write(labels, r, static_cast<std::size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin()));
    if (!prob_a_.empty()) {
      probabilities(watch, scores);
    } else if (classes == 2) {
      const bool soft = transform_ == PostTransform::Softmax || transform_ == PostTransform::SoftmaxZero;
      const auto both = binary_scores(scores[0], transform_, soft);
      std::copy(both.begin(), both.end(), row.begin());
      return;
    }
    std::copy(scores.begin(), scores.end(), row.begin());
    apply(transform_, row);
  }

  /// What the vectors of class `of` add to a decision, with the coefficients of row `against`.
  double part(std::size_t against, std::size_t of, const std::vector<float>& values) const {
    double sum = 0;
    for (std::size_t v = first_[of]; v < first_[of + 1]; ++v) {
      sum += static_cast<double>(coefficients_[against * total_ + v]) * static_cast<double>(values[v]);
    }
    return sum;
  }

  /// Scores of the pairs become probabilities of the classes.
  void probabilities(kernel::Watch& watch, std::vector<double>& scores) const {
    const std::size_t classes = labels_.size();
    std::vector<double> pairs(classes * classes, 0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      for (std::size_t j = i + 1; j < classes; ++j, ++at) {
        const double v = scores[at] * static_cast<double>(prob_a_[at]) + static_cast<double>(prob_b_[at]);
        const double p = std::clamp(1 - logistic(v), 1e-7, 1 - 1e-7);
        pairs[i * classes + j] = p;
        pairs[j * classes + i] = 1 - p;
      }
      watch.did(50 * static_cast<double>(classes - i));
    }
    couple_pairs(watch, classes, pairs, scores);
  }

  ClassLabels labels_;
  SvmKernel kernel_;
  PostTransform transform_;
  std::vector<float> vectors_, coefficients_, rho_, prob_a_, prob_b_;
  std::vector<std::size_t> first_;  ///< of each class, among the vectors; the total follows
  std::size_t total_ = 0;
};

void infer_svm_classifier(InferContext& ctx) {
  const ClassLabels labels(ctx.attributes(), kInts, kStrings);
  infer_classifier(ctx, kInts, kStrings,
                   static_cast<std::int64_t>(SvmClassifier::columns(ctx.attributes(), labels.size())));
}

void infer_svm_regressor(InferContext& ctx) { infer_scores(ctx, 1); }

}  // namespace

void register_ml_svm(kernel::OpRegistrar& r) {
  r.op("SVMClassifier", kMlDomain)
      .version(1, "X:T1 -> Y:T2, Z:float; T1 = float|double|int64|int32, T2 = string|int64")
      .infer(infer_svm_classifier)
      .kernel<SvmClassifier>();
  r.op("SVMRegressor", kMlDomain)
      .version(1, "X:T -> Y:float; T = float|double|int64|int32")
      .infer(infer_svm_regressor)
      .kernel<SvmRegressor>();
}

}  // namespace infernode::ops
