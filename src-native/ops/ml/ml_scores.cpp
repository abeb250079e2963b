#include <algorithm>
#include <cmath>

#include "ops/ml/ml_scores.h"
#include "tensor/dispatch.h"

namespace infernode::ops {
namespace {

using tensor::DType;
using tensor::Tensor;
using tensor::TypeTag;

template <class T>
void softmax(std::span<T> row) {
  const T top = *std::max_element(row.begin(), row.end());
  T sum = 0;
  for (T& v : row) sum += v = std::exp(v - top);
  for (T& v : row) v /= sum;
}

/// Softmax over the scores that are not zero; zeros stay. A row of zeros becomes halves, as in the standard's
/// reference.
template <class T>
void softmax_zero(std::span<T> row) {
  const T top = *std::max_element(row.begin(), row.end());
  T sum = 0;
  for (T& v : row) sum += v = std::abs(v) > T(1e-7) ? std::exp(v - top) : v * std::exp(-top);
  for (T& v : row) v = sum == 0 ? T(0.5) : v / sum;
}

template <class T>
void transform_row(PostTransform transform, std::span<T> row) {
  if (row.empty()) return;
  switch (transform) {
    case PostTransform::None:
      return;
    case PostTransform::Softmax:
      return softmax(row);
    case PostTransform::Logistic:
      for (T& v : row) v = static_cast<T>(logistic(static_cast<double>(v)));
      return;
    case PostTransform::SoftmaxZero:
      return softmax_zero(row);
    case PostTransform::Probit:
      for (T& v : row) v = static_cast<T>(probit(static_cast<double>(v)));
      return;
  }
}

template <class To>
void read_as(const Tensor& x, std::size_t begin, std::size_t count, To* out) {
  tensor::dispatch<float, double, std::int64_t, std::int32_t, Float16>(
      x.dtype(), "ai.onnx.ml", [&]<class T>(TypeTag<T>) {
        const T* from = x.data<T>() + begin;
        for (std::size_t i = 0; i < count; ++i) {
          out[i] = static_cast<To>(static_cast<tensor::ComputeTypeOf<T>>(from[i]));
        }
      });
}

}  // namespace

PostTransform post_transform(const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("post_transform", "NONE");
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  INFERNODE_CHECK(found != std::end(kNames), ErrorCode::InvalidModel, "post_transform '", name,
                  "' is not one of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO and PROBIT");
  return static_cast<PostTransform>(found - std::begin(kNames));
}

double logistic(double x) {
  const double positive = 1 / (1 + std::exp(-std::abs(x)));
  return x < 0 ? 1 - positive : positive;
}

double probit(double p) {
  const double x = 2 * p - 1, a = 0.147, pi = 3.14159265358979323846;
  const double log = std::log((1 - x) * (1 + x));
  const double half = 2 / (pi * a) + log / 2;
  const double root = std::sqrt(-half + std::sqrt(half * half - log / a));
  return 1.41421356237309504880 * (x < 0 ? -root : root);
}

std::array<double, 2> binary_scores(double score, PostTransform transform, bool complement) {
  if (transform == PostTransform::Logistic) return {logistic(-score), logistic(score)};
  if (transform == PostTransform::Probit) return {-probit(score), probit(score)};
  return {complement ? 1 - score : -score, score};
}

void apply(PostTransform transform, std::span<float> row) { transform_row(transform, row); }
void apply(PostTransform transform, std::span<double> row) { transform_row(transform, row); }

ClassLabels::ClassLabels(const graph::Attributes& attributes, std::string_view ints, std::string_view strings)
    : ints_(attributes.get_ints(ints)), strings_(attributes.get_strings(strings)) {
  INFERNODE_CHECK(ints_.empty() != strings_.empty(), ErrorCode::InvalidModel, "exactly one of ", ints, " (",
                  ints_.size(), " elements) and ", strings, " (", strings_.size(), " elements) must be given");
}

void ClassLabels::write(const Tensor& out, std::size_t at, std::size_t index) const {
  if (strings_.empty()) {
    out.mutable_data<std::int64_t>()[at] = ints_[index];
  } else {
    out.mutable_data<std::string>()[at] = strings_[index];
  }
}

Tensor ClassLabels::tensor() const {
  const tensor::Shape shape{static_cast<std::int64_t>(size())};
  if (strings_.empty()) return Tensor::of<std::int64_t>(shape, std::span<const std::int64_t>(ints_));
  return Tensor::of<std::string>(shape, std::span<const std::string>(strings_));
}

MlMatrix ml_matrix(const Tensor& x, const char* op) {
  INFERNODE_CHECK(x.rank() == 1 || x.rank() == 2, ErrorCode::InvalidArgument, op, ": X is ", x.to_string(),
                  ", but must have one or two dims");
  const auto dim = [&](std::size_t axis) { return static_cast<std::size_t>(x.dim(axis)); };
  return x.rank() == 1 ? MlMatrix{1, dim(0)} : MlMatrix{dim(0), dim(1)};
}

std::int64_t stated_width(std::int64_t width, std::size_t held, std::string_view attribute) {
  const std::int64_t most = std::max(std::int64_t{1} << 24, static_cast<std::int64_t>(held));
  INFERNODE_CHECK(width >= 0 && width <= most, ErrorCode::InvalidModel, attribute, " asks for ", width,
                  " columns, more than the ", most, " that this model may have");
  return width;
}

void read_reals(const Tensor& x, std::size_t begin, std::size_t count, float* out) { read_as(x, begin, count, out); }
void read_reals(const Tensor& x, std::size_t begin, std::size_t count, double* out) { read_as(x, begin, count, out); }

template <class T>
std::vector<T> real_list(const graph::Attributes& attributes, std::string_view name) {
  const Tensor* t = attributes.get_tensor(cat(name, "_as_tensor"));
  if (t == nullptr) {
    const std::vector<float> list = attributes.get_floats(name);
    return {list.begin(), list.end()};
  }
  INFERNODE_CHECK(!attributes.has(name), ErrorCode::InvalidModel, "both ", name, " and ", name, "_as_tensor are given");
  INFERNODE_CHECK(t->dtype() == DType::Float32 || t->dtype() == DType::Float64, ErrorCode::InvalidModel, name,
                  "_as_tensor is ", t->to_string(), " instead of float or double");
  std::vector<T> out(static_cast<std::size_t>(t->numel()));
  read_reals(*t, 0, out.size(), out.data());
  return out;
}
template std::vector<float> real_list<float>(const graph::Attributes&, std::string_view);
template std::vector<double> real_list<double>(const graph::Attributes&, std::string_view);

graph::SymShape ml_batch(const kernel::InferContext& ctx) {
  const graph::SymShape* x = ctx.input_shape(0);
  if (x == nullptr) return {graph::Dim::unknown()};
  if (x->size() == 1) return {graph::Dim(1)};
  INFERNODE_CHECK(x->size() == 2, ErrorCode::ShapeMismatch, "X has ", x->size(), " dims, but must have one or two");
  return {(*x)[0]};
}

void infer_scores(kernel::InferContext& ctx, graph::Dim columns) {
  graph::SymShape shape = ml_batch(ctx);
  shape.push_back(std::move(columns));
  ctx.set_output_dtype(0, DType::Float32);
  ctx.set_output_shape(0, std::move(shape));
}

void infer_classifier(kernel::InferContext& ctx, std::string_view ints, std::string_view strings, graph::Dim columns) {
  const ClassLabels labels(ctx.attributes(), ints, strings);
  graph::SymShape batch = ml_batch(ctx);
  if (ctx.has_output(0)) {
    ctx.set_output_dtype(0, labels.dtype());
    ctx.set_output_shape(0, batch);
  }
  batch.push_back(columns);
  if (ctx.has_output(1)) {
    ctx.set_output_dtype(1, DType::Float32);
    ctx.set_output_shape(1, batch);
  }
}

}  // namespace infernode::ops
