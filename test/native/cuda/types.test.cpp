// Elements of types that have one kernel for all of them, and functions that few models have.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Whole numbers from -3 to 4, or from 0 to 7 where the type has no others.
template <class T>
Value whole(const tensor::Shape& shape, unsigned seed = 1) {
  std::mt19937 random(seed);
  const Tensor t = Tensor::make(tensor::kDTypeOf<T>, shape);
  for (T& v : t.mutable_span<T>()) v = static_cast<T>(static_cast<int>(random() % 8) - (std::is_signed_v<T> ? 3 : 0));
  return t;
}

template <class T>
Value numbers_of(std::initializer_list<float> all) {
  const Tensor t = Tensor::make(tensor::kDTypeOf<T>, {static_cast<std::int64_t>(all.size())});
  std::transform(all.begin(), all.end(), t.mutable_data<T>(), [](float x) { return T(x); });
  return t;
}

template <class T>
void check_whole(const char* type) {
  CAPTURE(type);
  const std::vector<Value> two{whole<T>({2, 3, 4}), whole<T>({3, 1}, 2)};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal", "Less", "GreaterOrEqual"}) {
    if (std::string_view(op) == "Div" || std::string_view(op) == "Mod") continue;  // zeros: undefined
    same_as_cpu(cat("(", type, "[2,3,4] x, ", type, "[3,1] z) => (y) { y = ", op, "(x, z) }"), two);
  }
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
    same_as_cpu(cat("(", type, "[2,3,4] x, ", type, "[3,1] z) => (y) { y = ", op, "(x, z) }"), two, 0, 18);
  }
  for (const char* op : {"Abs", "Sign"}) {
    same_as_cpu(cat("(", type, "[2,3,4] x) => (y) { y = ", op, "(x) }"), {two[0]});
  }
  same_as_cpu(cat("(", type, "[2,3,4] x) => (y) { y = BitwiseNot(x) }"), {two[0]}, 0, 18);
  same_as_cpu(cat("(", type, "[2,3,4] x, ", type, " low, ", type, " high) => (y) { y = Clip(x, low, high) }"),
              {two[0], whole<T>({}, 3), whole<T>({}, 4)});
}

}  // namespace

TEST_CASE("integers of all sizes") {
  const OnDouble undo;
  check_whole<std::int8_t>("int8");
  check_whole<std::uint8_t>("uint8");
  check_whole<std::int16_t>("int16");
  check_whole<std::uint16_t>("uint16");
  check_whole<std::int32_t>("int32");
  check_whole<std::uint32_t>("uint32");
  check_whole<std::int64_t>("int64");
  check_whole<std::uint64_t>("uint64");
}

TEST_CASE("uint64 beyond the signed integers") {
  const OnDouble undo;
  constexpr std::uint64_t kLarge = ~std::uint64_t{0};
  const std::vector<Value> two{Tensor::of<std::uint64_t>({3}, {kLarge, 5, kLarge - 1}),
                               Tensor::of<std::uint64_t>({3}, {2, kLarge, kLarge})};
  for (const char* op : {"Less", "Max", "Div", "Mod", "Add"}) {
    same_as_cpu(cat("(uint64[3] x, uint64[3] z) => (y) { y = ", op, "(x, z) }"), two);
  }
  same_as_cpu("(uint64[3] x, uint64[3] z) => (y) { y = BitShift<direction=\"RIGHT\">(x, z) }", two);
}

TEST_CASE("float64") {
  const OnDouble undo;
  const Value x = numbers<double>({3, 5}), z = numbers<double>({5}, 2);
  for (const char* op : {"Exp", "Erf", "Sin", "Tanh", "Sigmoid", "Softplus", "Elu", "Round", "Mish", "Cosh", "Atan"}) {
    same_as_cpu(cat("(double[3,5] x) => (y) { y = ", op, "(x) }"), {x}, 1e-6, 22);
  }
  for (const char* op : {"Add", "Div", "Pow", "PRelu", "Less", "Min"}) {
    same_as_cpu(cat("(double[3,5] x, double[5] z) => (y) { y = ", op, "(x, z) }"), {x, z}, 1e-6);
  }
  same_as_cpu("(double[3,5] x) => (y) { y = IsNaN(x) }", {x});
}

/// Signs of remainders, NaN among two numbers, both zeros.
template <class T>
void check_special(const char* type) {
  CAPTURE(type);
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();
  const Value x = numbers_of<T>({5, -5, 5, -5, 6, -6, kNaN, 1, kInfinity, -1, -0.0f, 2.5f}),
              z = numbers_of<T>({3, 3, -3, -3, 3, 3, 1, kNaN, 2, kInfinity, 4, -1});
  for (const char* op : {"Mod<fmod=1>", "Mul", "Div", "Max", "Min", "Pow", "PRelu", "Less", "Equal"}) {
    same_as_cpu(cat("(", type, "[12] x, ", type, "[12] z) => (y) { y = ", op, "(x, z) }"), {x, z}, 1e-6);
  }
}

TEST_CASE("special numbers are the same to every kernel") {
  const OnDouble undo;
  check_special<float>("float");
  check_special<double>("double");
  check_special<Float16>("float16");
  const std::vector<Value> signs{Tensor::of<std::int32_t>({4}, {5, -5, 5, -5}),
                                 Tensor::of<std::int32_t>({4}, {3, 3, -3, -3})};
  same_as_cpu("(int32[4] x, int32[4] z) => (y) { y = Pow(x, z) }", signs);
  for (const char* op : {"Mod", "Mod<fmod=1>", "Div"}) {
    same_as_cpu(cat("(int32[4] x, int32[4] z) => (y) { y = ", op, "(x, z) }"), signs);
    same_as_cpu(cat("(int32[4] x, int32[4] z) => (y) { p = Cast<to=3>(x)  q = Cast<to=3>(z)  y = ", op, "(p, q) }"),
                signs);
  }
}

TEST_CASE("functions that few models have") {
  const OnDouble undo;
  for (const char* op : {"Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "IsNaN", "Shrink"}) {
    same_as_cpu(cat("(float[3,5] x) => (y) { y = ", op, "(x) }"), {numbers({3, 5})}, 1e-4, 20);
  }
  same_as_cpu("(float[3,5] x) => (y) { y = Swish<alpha=0.5>(x) }", {numbers({3, 5})}, 1e-4, 24);
  same_as_cpu("(float[3,5] x, float[3,5] z) => (y) { q = Div(x, z)  y = IsInf<detect_negative=0>(q) }",
              {numbers({3, 5}), Tensor::make(DType::Float32, {3, 5})}, 0, 20);
  same_as_cpu("(float[3,5] x, float[5] b) => (y) { y = com.microsoft.BiasGelu(x, b) }",
              {numbers({3, 5}), numbers({5}, 2)}, 1e-4);
  same_as_cpu("(float[3,5] x, float[5] b) => (y) { y = com.microsoft.FastGelu(x, b) }",
              {numbers({3, 5}), numbers({5}, 2)}, 1e-4);
}

TEST_CASE("bounds, sums and exponents that are data") {
  const OnDouble undo;
  same_as_cpu("(float[8] x, float low, float high) => (y) { y = Clip(x, low, high) }",
              {numbers({8}), Tensor::of<float>({}, {-0.5f}), Tensor::of<float>({}, {1})});
  same_as_cpu(
      "(float[2,3] a, float[3] b, float[2,1] c) => (s, m, l) { s = Sum(a, b, c)  m = Mean(a, b, c)  l = Max(a, b, c) }",
      {numbers({2, 3}), numbers({3}, 2), numbers({2, 1}, 3)});
  same_as_cpu("(float[6] x, int64[6] z) => (y) { y = Pow(x, z) }", {numbers({6}), whole<std::int64_t>({6})}, 1e-4);
  same_as_cpu("(int32[6] x, int64[1] z) => (y) { y = Pow(x, z) }",
              {whole<std::int32_t>({6}), Tensor::of<std::int64_t>({1}, {3})});
}
