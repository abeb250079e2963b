#include "bench/cuda/models/feeds.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"

namespace infernode::bench {

using tensor::DType;
using tensor::Tensor;

namespace {

std::int64_t size_of(const graph::Dim& dim, const std::string& input, std::size_t axis,
                     const std::map<std::string, std::int64_t>& sizes) {
  if (dim.known()) return dim.value();
  for (const std::string& key : {cat(input, ":", axis), dim.symbol_name()}) {
    if (const auto at = sizes.find(key); at != sizes.end()) return at->second;
  }
  fail(ErrorCode::InvalidArgument,
       cat("say how large ", input, ":", axis, " (", dim.to_string(), ") is, as in ", dim.to_string(), "=1"));
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

Tensor make_feed(const session::ValueMetadata& input, const std::map<std::string, std::int64_t>& sizes,
                 std::uint32_t seed) {
  tensor::Shape shape;
  for (std::size_t d = 0; d < input.type.shape->size(); ++d)
    shape.push_back(size_of((*input.type.shape)[d], input.name, d, sizes));
  std::mt19937 random(seed);
  const Tensor t = Tensor::make(input.type.elem, shape);
  if (t.dtype() == DType::Int64) {
    const auto vocabulary = sizes.contains("vocabulary") ? sizes.at("vocabulary") : 1000;
    std::int64_t i = 0;
    for (std::int64_t& v : t.mutable_span<std::int64_t>()) {
      v = has(input.name, "mask")       ? 1
          : has(input.name, "type")     ? 0
          : has(input.name, "position") ? i % shape.back()
                                        : static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(vocabulary));
      ++i;
    }
    return t;
  }
  std::uniform_real_distribution<float> numbers(-1, 1);
  const Tensor floats = Tensor::make(DType::Float32, shape);
  for (float& v : floats.mutable_span<float>()) v = numbers(random);
  return convert(floats, t.dtype());
}

Tensor convert(const Tensor& from, DType to) {
  if (from.dtype() == to || !tensor::is_floating(from.dtype())) return from;
  const std::vector<float> numbers = tensor::to_float_vector(from);
  const Tensor out = Tensor::make(to, from.shape());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (to == DType::Float32) out.mutable_data<float>()[i] = numbers[i];
    if (to == DType::Float16) out.mutable_data<Float16>()[i] = Float16(numbers[i]);
    if (to == DType::BFloat16) out.mutable_data<BFloat16>()[i] = BFloat16(numbers[i]);
  }
  return out;
}

Difference compare(const Tensor& result, const Tensor& reference) {
  if (result.shape() != reference.shape()) {
    fail(ErrorCode::ShapeMismatch, cat(result.to_string(), " against ", reference.to_string()));
  }
  const std::vector<float> a = tensor::to_float_vector(result), b = tensor::to_float_vector(reference);
  double worst = 0, largest = 0, apart = 0, whole = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    apart += d * d;
    whole += static_cast<double>(b[i]) * b[i];
  }
  return {worst / std::max(largest, 1e-30), std::sqrt(apart / std::max(whole, 1e-30))};
}

}  // namespace infernode::bench
