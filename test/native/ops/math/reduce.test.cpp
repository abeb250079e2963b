#include "ops/op_test.h"

#include <algorithm>
#include <functional>

namespace infernode::test {
namespace {

struct Operation {
  const char* name;
  std::function<double(const std::vector<double>&)> of;
};

double sum(const std::vector<double>& v, double (*f)(double)) {
  double out = 0;
  for (double x : v) out += f(x);
  return out;
}

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = {
      {"ReduceSum", [](const auto& v) { return sum(v, [](double x) { return x; }); }},
      {"ReduceMean", [](const auto& v) { return sum(v, [](double x) { return x; }) / static_cast<double>(v.size()); }},
      {"ReduceL1", [](const auto& v) { return sum(v, [](double x) { return std::abs(x); }); }},
      {"ReduceL2", [](const auto& v) { return std::sqrt(sum(v, [](double x) { return x * x; })); }},
      {"ReduceSumSquare", [](const auto& v) { return sum(v, [](double x) { return x * x; }); }},
      {"ReduceLogSum", [](const auto& v) { return std::log(sum(v, [](double x) { return x; })); }},
      {"ReduceLogSumExp", [](const auto& v) { return std::log(sum(v, [](double x) { return std::exp(x); })); }},
      {"ReduceMax", [](const auto& v) { return *std::max_element(v.begin(), v.end()); }},
      {"ReduceMin", [](const auto& v) { return *std::min_element(v.begin(), v.end()); }},
      {"ReduceProd", [](const auto& v) {
         double out = 1;
         for (double x : v) out *= x;
         return out;
       }}};
  return all;
}

/// The definition: gathers what falls on each output element.
Tensor reduced(const Tensor& x, const std::vector<bool>& axes, bool keep, const Operation& op) {
  Shape dims, full;
  for (std::size_t d = 0; d < x.rank(); ++d) {
    if (!axes[d]) dims.push_back(x.dim(d));
    if (!axes[d] || keep) full.push_back(axes[d] ? 1 : x.dim(d));
  }
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(dims.numel()));
  const Shape strides = x.shape().strides();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < x.rank(); ++d) {
      if (!axes[d]) at = at * x.dim(d) + i / strides[d] % x.dim(d);
    }
    groups[static_cast<std::size_t>(at)].push_back(static_cast<double>(x.data<float>()[i]));
  }
  std::vector<double> values;
  for (const auto& g : groups) values.push_back(op.of(g));
  return tensor_as(x.dtype(), full, values);
}

void check_reduction(const Tensor& x, const std::vector<std::int64_t>& axes, const Operation& op, double tolerance) {
  std::string dims, list;
  std::vector<bool> named(x.rank());
  for (std::size_t d = 0; d < x.rank(); ++d) dims += cat(d ? "," : "", "D", d);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    list += cat(i ? "," : "", axes[i]);
    named[tensor::normalize_axis(axes[i], x.rank())] = true;
  }
  for (const bool keep : {false, true}) {
    check_op(cat("(float[", dims, "] X) => (float Y) { Y = ", op.name, "<axes=[", list, "], keepdims=", keep ? 1 : 0,
                 ">(X) }"),
             11, {x}, {reduced(x, named, keep, op)}, tolerance);
  }
}

TEST_CASE("reductions over every set of axes agree with their definition") {
  Tensor x = noise({3, 4, 5, 2}, 0.5f);
  for (float& v : x.mutable_span<float>()) v += 0.75f;
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    for (unsigned set = 1; set < 16; ++set) {
      std::vector<std::int64_t> axes;
      for (std::int64_t d = 0; d < 4; ++d) {
        if (set >> d & 1) axes.push_back(d % 2 == 0 ? d : d - 4);
      }
      check_reduction(x, axes, op, 1e-4);
    }
  }
}

TEST_CASE("reductions of long rows and wide columns agree with their definition") {
  for (const Operation& op : operations()) {
    if (std::string_view(op.name) == "ReduceProd" || std::string_view(op.name) == "ReduceLogSum") continue;
    CAPTURE(op.name);
    check_reduction(noise({2, 100003}), {1}, op, 1e-3);
    check_reduction(noise({37, 301}), {0}, op, 1e-4);
    check_reduction(noise({5000, 6}), {0}, op, 1e-3);
    check_reduction(noise({5, 33, 200}), {1}, op, 1e-4);
    check_reduction(noise({3, 70, 40}), {0, 2}, op, 1e-4);
  }
}

TEST_CASE("reductions of many short rows agree with their definition") {
  for (const Operation& op : operations()) {
    CAPTURE(op.name);
    for (const std::int64_t n : {2, 3, 8, 15, 16, 17}) {
      Tensor x = noise({131, n}, 0.25f);
      for (float& v : x.mutable_span<float>()) v += 0.75f;
      check_reduction(x, {1}, op, 1e-4);
    }
  }
  std::vector<double> rows(300, 1), greatest(100, 1);
  rows[3 * 40 + 1] = greatest[40] = static_cast<double>(kNaN);
  rows[3 * 99 + 2] = greatest[99] = static_cast<double>(kInf);
  check_op("(float[A,B] X) => (float[A] Y) { Y = ReduceMax<axes=[1], keepdims=0>(X) }", 13,
           {tensor_as(DType::Float32, {100, 3}, rows)}, {tensor_as(DType::Float32, {100}, greatest)});
}

TEST_CASE("reductions take axes as an input and treat their absence") {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  check_op("(float[A,B] X, int64[1] a) => (float[C,D] Y) { Y = ReduceSum(X, a) }", 13, {x, i64({1}, {-1})},
           {f32({2, 1}, {3, 7})});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = ReduceSum(X) }", 13, {x}, {f32({1, 1}, {10})});
  check_op("(float[A,B] X, int64[0] a) => (float[C,D] Y) { Y = ReduceSum(X, a) }", 13, {x, i64({0}, {})},
           {f32({1, 1}, {10})});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = ReduceMax<noop_with_empty_axes=1>(X) }", 18, {x}, {x});
  check_op("(float[A,B] X) => (float[C,D] Y) { Y = ReduceSumSquare<noop_with_empty_axes=1>(X) }", 18, {x},
           {f32({2, 2}, {1, 4, 9, 16})});
  check_op("(float X) => (float Y) { Y = ReduceMean(X) }", 13, {f32({}, {3})}, {f32({}, {3})});
  check_op_fails("(float[A,B] X, int64[1] a) => (Y) { Y = ReduceSum(X, a) }", 13, {x, i64({1}, {2})},
                 ErrorCode::InvalidArgument, "axis");
}

TEST_CASE("reductions of nothing give their neutral element") {
  const Tensor x = f32({2, 0}, {});
  const auto both = [](float v) { return f32({2}, {v, v}); };
  const struct {
    const char* op;
    float value;
  } cases[] = {{"ReduceSum", 0},        {"ReduceProd", 1},         {"ReduceMax", -kInf}, {"ReduceMin", kInf},
               {"ReduceMean", kNaN},    {"ReduceL1", 0},           {"ReduceL2", 0},      {"ReduceSumSquare", 0},
               {"ReduceLogSum", -kInf}, {"ReduceLogSumExp", -kInf}};
  for (const auto& c : cases) {
    check_op(cat("(float[A,B] X) => (float[C] Y) { Y = ", c.op, "<axes=[1], keepdims=0>(X) }"), 11, {x},
             {both(c.value)});
  }
  check_op("(float[A,B] X, int64[1] a) => (float[C,D] Y) { Y = ReduceSum(X, a) }", 13, {f32({0, 3}, {}), i64({1}, {1})},
           {f32({0, 1}, {})});
  check_op("(int32[A] X) => (int32 Y) { Y = ReduceMax<keepdims=0>(X) }", 13, {i32({0}, {})}, {i32({}, {INT32_MIN})});
}

TEST_CASE("reductions compute in other types") {
  check_op("(double[A] X) => (double Y) { Y = ReduceL2<keepdims=0>(X) }", 13, {f64({2}, {3, 4})}, {f64({}, {5})});
  check_op("(int32[A] X) => (int32 Y) { Y = ReduceMean<keepdims=0>(X) }", 13, {i32({2}, {-3, -4})}, {i32({}, {-3})});
  check_op("(int64[A] X) => (int64 Y) { Y = ReduceProd<keepdims=0>(X) }", 13, {i64({3}, {2, 3, -4})}, {i64({}, {-24})});
  check_op("(int32[A] X) => (int32 Y) { Y = ReduceL1<keepdims=0>(X) }", 13, {i32({3}, {-2, 3, -4})}, {i32({}, {9})});
  check_op("(float16[A,B] X) => (float16 Y) { Y = ReduceSum<keepdims=0>(X) }", 1, {f16({2, 2}, {1, 2, 3, 4})},
           {f16({}, {10})});
  check_op("(bfloat16[A,B] X, int64[1] a) => (bfloat16[C] Y) { Y = ReduceMean<keepdims=0>(X, a) }", 18,
           {bf16({2, 2}, {1, 2, 3, 4}), i64({1}, {0})}, {bf16({2}, {2, 3})});
  check_op("(uint8[A] X) => (uint8 Y) { Y = ReduceMax<keepdims=0>(X) }", 12, {u8({3}, {1, 200, 3})}, {u8({}, {200})});
  check_op("(bool[A] X) => (bool Y) { Y = ReduceMin<keepdims=0>(X) }", 20, {b8({2}, {true, false})}, {b8({}, {false})});
}

TEST_CASE("reductions treat infinities and NaN") {
  check_op("(float[A] X) => (float Y) { Y = ReduceLogSumExp<keepdims=0>(X) }", 13, {f32({2}, {-kInf, -kInf})},
           {f32({}, {-kInf})});
  check_op("(float[A] X) => (float Y) { Y = ReduceLogSumExp<keepdims=0>(X) }", 13, {f32({2}, {kInf, 1})},
           {f32({}, {kInf})});
  check_op("(float[A] X) => (float Y) { Y = ReduceLogSumExp<keepdims=0>(X) }", 13, {f32({2}, {1000, 1000})},
           {f32({}, {1000.6931f})});
  check_op("(float[A] X) => (float Y) { Y = ReduceMax<keepdims=0>(X) }", 13, {f32({3}, {1, kNaN, 3})},
           {f32({}, {kNaN})});
  check_op("(double[A] X) => (double Y) { Y = ReduceMin<keepdims=0>(X) }", 13, {f64({3}, {1, double(kNaN), 3})},
           {f64({}, {double(kNaN)})});
}

TEST_CASE("reductions infer shapes and follow contents") {
  CHECK(infer_op("(float[N,C,H] X) => (Y) { Y = ReduceMean<axes=[1]>(X) }", 13) == "tensor(float)[N,1,H]");
  CHECK(infer_op("(float[N,C,H] X) => (Y) { Y = ReduceMean<axes=[1,-1], keepdims=0>(X) }", 13) == "tensor(float)[N]");
  CHECK(infer_contents("(int64[3] X) => (Y) { Y = ReduceProd<keepdims=0>(X) }", 13, {i64({3}, {2, 3, 4})}) == "[24]");
}

}  // namespace
}  // namespace infernode::test
