#pragma once
// What the classifiers and regressors of ai.onnx.ml share: class labels, post_transform, input conversion.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/infer_context.h"
#include "kernel/kernel.h"

namespace infernode::ops {

inline constexpr const char* kMlDomain = "ai.onnx.ml";

enum class PostTransform : std::uint8_t { None, Softmax, Logistic, SoftmaxZero, Probit };

/// Throws InvalidModel for a name that the standard does not know.
PostTransform post_transform(const graph::Attributes& attributes);

/// Transforms one row of scores in place. Probit takes the approximation of the inverse error function of
/// S. Winitzki (2008) with a = 0.147.
void apply(PostTransform transform, std::span<float> row);
void apply(PostTransform transform, std::span<double> row);

double logistic(double x);
double probit(double x);

/// Scores of both classes of a binary model that computes one, transformed: where neither Logistic nor Probit asks for
/// more, 1 - score (`complement`) or -score, and score.
std::array<double, 2> binary_scores(double score, PostTransform transform, bool complement);

/// The labels of a classifier: strings or int64s.
class ClassLabels {
 public:
  /// Throws InvalidModel unless exactly one of the two attributes has elements.
  ClassLabels(const graph::Attributes& attributes, std::string_view ints, std::string_view strings);
  std::size_t size() const { return strings_.empty() ? ints_.size() : strings_.size(); }
  tensor::DType dtype() const { return strings_.empty() ? tensor::DType::Int64 : tensor::DType::String; }
  /// Writes label `index` as element `at` of `out`.
  void write(const tensor::Tensor& out, std::size_t at, std::size_t index) const;
  /// The labels as a tensor of rank 1.
  tensor::Tensor tensor() const;

 private:
  std::vector<std::int64_t> ints_;
  std::vector<std::string> strings_;
};

/// `width`, a number of columns of a result that a model states; `held`: entries of the model that fill columns. Throws
/// InvalidModel where it is so large that only memory would stop it: negative, or more than 2^24 and than `held`.
std::int64_t stated_width(std::int64_t width, std::size_t held, std::string_view attribute);

/// Rows and columns of X: [N, C], or [C] as one row. Throws InvalidArgument for other ranks.
struct MlMatrix {
  std::size_t rows, columns;
};
MlMatrix ml_matrix(const tensor::Tensor& x, const char* op);

/// Elements [begin, begin + count) of a numeric tensor as float or double.
void read_reals(const tensor::Tensor& x, std::size_t begin, std::size_t count, float* out);
void read_reals(const tensor::Tensor& x, std::size_t begin, std::size_t count, double* out);

/// The list's elements as T, from `name` or, where the attribute `name` + "_as_tensor" is there, from that.
template <class T>
std::vector<T> real_list(const graph::Attributes& attributes, std::string_view name);

/// Shape of a classifier's or regressor's outputs: the batch of X, then `columns` where a matrix is asked for.
graph::SymShape ml_batch(const kernel::InferContext& ctx);
/// Output 0: float [N, columns].
void infer_scores(kernel::InferContext& ctx, graph::Dim columns);
/// Output 0: labels [N] of int64 or string as the attributes say; output 1: float [N, columns].
void infer_classifier(kernel::InferContext& ctx, std::string_view ints, std::string_view strings, graph::Dim columns);

}  // namespace infernode::ops
