// Cancellation reaches into one long line of every type: a row, a reduction, a dot product, an output that is filled.

#include "ops/looks/looks.h"

using namespace infernode;
using namespace infernode::test;

namespace {

/// Elements of a long line, and those between two looks at most.
constexpr std::int64_t kLong = std::int64_t{1} << 23, kBetween = std::int64_t{1} << 22;

using Inputs = std::vector<Value> (*)(DType type, std::int64_t n);

/// Where the lines' texts go while they are asked for; null: they are checked.
CountedGraphs::Texts* texts_asked_for = nullptr;

/// The operator looks more often in a line of kLong elements than in one of few, by what the line is longer.
void check_line(const std::string& text, std::int64_t opset, DType type, Inputs inputs, std::int64_t n = kLong,
                std::int64_t between = kBetween) {
  std::string typed = text;
  for (std::size_t at; (at = typed.find('@')) != std::string::npos;) typed.replace(at, 1, tensor::onnx_name(type));
  if (texts_asked_for != nullptr) {
    texts_asked_for->push_back(typed);
    return;
  }
  CAPTURE(typed);
  const std::size_t few = looks_of(typed, opset, inputs(type, 16));
  const std::vector<Value> line = inputs(type, n);
  CHECK(looks_of(typed, opset, line) >= few + static_cast<std::size_t>(n / between));
  CHECK(looks_of(typed, opset, line, true) == 1);
}

Tensor line(DType type, const Shape& shape) { return repeated(type, shape, 1); }
Tensor one(DType type) { return line(type, {1}); }
std::vector<Value> row(DType type, std::int64_t n) { return {line(type, {1, n})}; }
std::vector<Value> plane(DType type, std::int64_t n) { return {line(type, {1, 1, n})}; }

constexpr DType kWide[] = {DType::Float64, DType::Int32, DType::Int64, DType::UInt32, DType::UInt64};
constexpr DType kSmall[] = {DType::Int8, DType::UInt8};
constexpr DType kFloats[] = {DType::Float16, DType::Float32, DType::Float64};

void reductions() {
  const char* kAll[] = {"Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"};
  for (const std::string name : kAll) {
    const std::string text =
        "(@[n,m] X) => (@[n,1] Y) { A = Constant<value_ints = [1]>() Y = Reduce" + name + "(X, A) }";
    for (const DType type : kWide) check_line(text, 18, type, row);
    if (name == "LogSumExp") check_line(text, 18, DType::Float32, row);
    if (name == "Sum" || name == "Max" || name == "LogSumExp") {
      // Columns of several images, which are not cut for threads.
      check_line("(@[2,n,c] X) => (@[2,1,c] Y) { A = Constant<value_ints = [1]>() Y = Reduce" + name + "(X, A) }", 18,
                 DType::Float32, [](DType type, std::int64_t n) -> std::vector<Value> {
                   return {line(type, {2, std::max<std::int64_t>(1, n / 8), 16})};
                 });
    }
    if (name != "Max" && name != "Min") continue;
    for (const DType type : kSmall) check_line(text, 18, type, row);
    check_line(text, 20, DType::Bool, row);
  }
  for (const std::string name : {"ArgMax", "ArgMin"}) {
    const std::string text = "(@[n,m] X) => (int64[n,1] Y) { Y = " + name + "<axis = 1>(X) }";
    for (const DType type : kWide) check_line(text, 13, type, row);
    for (const DType type : kSmall) check_line(text, 13, type, row);
    check_line(text, 13, DType::Float16, row);
    // The loop of vectors takes a fifth of the time.
    check_line(text, 13, DType::Float32, row, 4 * kLong, 4 * kBetween);
  }
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool"}) {
    const std::string text = cat("(@[1,1,n] X) => (@[1,1,1] Y) { Y = ", name, "(X) }");
    check_line(text, 17, DType::Float64, plane);
    check_line(text, 17, DType::Float32, plane, 4 * kLong, 4 * kBetween);
  }
}

void normalizations() {
  for (const std::string name : {"Softmax", "LogSoftmax", "Hardmax"}) {
    for (const DType type : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64})
      check_line("(@[n,m] X) => (@[n,m] Y) { Y = " + name + "(X) }", 13, type, row);
    check_line("(@[n,c] X) => (@[n,c] Y) { Y = " + name + "<axis = 0>(X) }", 13, DType::Float32,
               [](DType type, std::int64_t n) -> std::vector<Value> {
                 return {line(type, {std::max<std::int64_t>(1, n / 16), 16})};
               });
  }
  const auto scaled = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, n}), line(type, {n})};
  };
  for (const DType type : {DType::Float16, DType::Float32, DType::Float64}) {
    check_line("(@[n,m] X, @[m] S) => (@[n,m] Y) { Y = LayerNormalization(X, S) }", 17, type, scaled);
    check_line("(@[n,m] X, @[m] S) => (@[n,m] Y) { Y = RMSNormalization(X, S) }", 23, type, scaled);
  }
  const auto channel = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, 1, n}), one(type), one(type)};
  };
  for (const DType type : {DType::Float32, DType::Float64}) {
    check_line("(@[1,1,n] X, @[1] S, @[1] B) => (@[1,1,n] Y) { Y = InstanceNormalization(X, S, B) }", 17, type,
               channel);
    check_line("(@[1,1,n] X, @[1] S, @[1] B) => (@[1,1,n] Y) { Y = GroupNormalization<num_groups = 1>(X, S, B) }", 21,
               type, channel);
  }
  check_line(
      "(@[1,1,1,n] X, @[1] S, @[1] B) => (@[1,1,1,n] Y) { Y = com.microsoft.GroupNorm<activation = 0, channels_last = "
      "0, groups = "
      "1>(X, S, B) }",
      17, DType::Float32, [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {1, 1, 1, n}), one(type), one(type)};
      });
  const auto batch = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, 1, n}), one(type), one(type), one(type), one(type)};
  };
  check_line("(@[1,1,n] X, @[1] S, @[1] B, @[1] M, @[1] V) => (@[1,1,n] Y) { Y = BatchNormalization(X, S, B, M, V) }",
             15, DType::Float64, batch);
  check_line(
      "(@[1,1,n] X, @[1] S, @[1] B, @[1] M, @[1] V) => (@[1,1,n] Y, @[1] R, @[1] W) { Y, R, W = "
      "BatchNormalization<training_mode = 1>(X, S, B, M, V) }",
      15, DType::Float32, batch);
  for (const DType type : kFloats) {
    for (const char* p : {"1", "2"})
      check_line(cat("(@[n,m] X) => (@[n,m] Y) { Y = LpNormalization<p = ", p, ">(X) }"), 17, type, row);
    check_line("(@[n,m] X) => (@[n,m] Y) { Y = MeanVarianceNormalization<axes = [1]>(X) }", 13, type, row);
  }
  for (const char* norm : {"MAX", "L1", "L2"}) {
    for (const DType type : {DType::Float32, DType::Float64, DType::Int64, DType::Int32})
      check_line(cat("(@[n,m] X) => (float[n,m] Y) { Y = ai.onnx.ml.Normalizer<norm = \"", norm, "\">(X) }"), 17, type,
                 row);
  }
  for (const DType type : kSmall) {
    check_line("(@[n,m] X, float S, @ Z) => (@[n,m] Y) { Y = com.microsoft.QLinearSoftmax<opset = 13>(X, S, Z, S, Z) }",
               17, type, [](DType type, std::int64_t n) -> std::vector<Value> {
                 return {line(type, {1, n}), f32({}, {1}), line(type, {})};
               });
  }
  for (const DType type : kFloats) {
    check_line("(@[n,c] X, int64[n] T) => (@ L) { L = SoftmaxCrossEntropyLoss(X, T) }", 13, type,
               [](DType type, std::int64_t n) -> std::vector<Value> {
                 return {line(type, {1, n}), i64({1}, {0})};
               });
    check_line("(@[n,c] X) => (int32[n,1] Y) { Y = Multinomial<sample_size = 1, seed = 1.0>(X) }", 15, type, row);
  }
}

void products() {
  const auto vectors = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, n}), line(type, {n, 1})};
  };
  for (const DType type : kFloats)
    check_line("(@[1,n] A, @[n,1] B) => (@[1,1] C) { C = MatMul(A, B) }", 17, type, vectors);
  const auto lines = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {n}), line(type, {n})};
  };
  for (const DType type : kFloats)
    check_line("(@[n] A, @[n] B) => (@ C) { C = Einsum<equation = \"i,i->\">(A, B) }", 17, type, lines);
  for (const DType type : kWide) {
    check_line("(@[n] A) => (@ C) { C = Einsum<equation = \"i->\">(A) }", 17, type,
               [](DType type, std::int64_t n) -> std::vector<Value> { return {line(type, {n})}; });
  }
}

void many_keys() {
  const auto keys = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, 1, 1, 1}), line(type, {1, 1, n, 1})};
  };
  const auto masked = [](DType type, std::int64_t n) -> std::vector<Value> {
    return {line(type, {1, 1, 1, 1}), line(type, {1, 1, n, 1}), line(type, {1, n})};
  };
  for (const DType type : kFloats) {
    check_line("(@[1,h,s,d] Q, @[1,h,n,d] K) => (@[1,h,s,d] Y) { Y = Attention(Q, K, K) }", 23, type, keys);
    check_line("(@[1,h,s,d] Q, @[1,h,n,d] K, @[s,n] M) => (@[1,h,s,d] Y) { Y = Attention<softcap = 2.0>(Q, K, K, M) }",
               23, type, masked);
  }
}

void long_outputs() {
  // Bytes are filled in a tenth of a nanosecond each.
  constexpr std::int64_t kBytes = std::int64_t{1} << 26, kBytesBetween = std::int64_t{1} << 25;
  const auto count = [](DType, std::int64_t n) -> std::vector<Value> { return {i64({1}, {n})}; };
  check_line("(int64[1] S) => (int4[n] Y) { Y = ConstantOfShape<value = int4[1] {3}>(S) }", 21, DType::Int4, count,
             2 * kBytes, 2 * kBytesBetween);
  for (const DType type : {DType::Float32, DType::Float64, DType::Int32, DType::Int64}) {
    check_line(
        "(@ A, @ B, @ D) => (@[n] Y) { Y = Range(A, B, D) }", 11, type,
        [](DType type, std::int64_t n) -> std::vector<Value> {
          return {tensor_as(type, {}, {0}), tensor_as(type, {}, {static_cast<double>(n)}), tensor_as(type, {}, {1})};
        });
  }
  check_line(
      "(@[n] X) => (float[n,m] Z) { Z = ai.onnx.ml.OneHotEncoder<cats_int64s = [0, 1, 2, 3, 4, 5, 6, 7]>(X) }", 17,
      DType::Int64, [](DType type, std::int64_t n) -> std::vector<Value> { return {line(type, {n / 32})}; }, kBytes,
      kBytesBetween);
  // Loops of AVX-512 convert twice as many in the time.
  check_line("(@[n,m] X) => (float[n,m] Y) { Y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [8388608]>(X) }", 17,
             DType::Float64, row, kLong, 2 * kBetween);
  // Rows that are copied one after another, from one place to another.
  check_line(
      "(@[n,m] X) => (@[n,k] Y) { A = Constant<value_ints = [1]>() B = Constant<value_ints = [999999999]>() "
      "Y = Slice(X, A, B, A) }",
      13, DType::UInt8,
      [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {2, n / 2})};
      },
      kBytes, kBytesBetween);
  check_line(
      "(@[n,m] X) => (float[n,m] Y) { Y = EyeLike<dtype = 1>(X) }", 9, DType::UInt8,
      [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {4, n / 16})};
      },
      kBytes, kBytesBetween);
  check_line(
      "(@[1,1,n] X, int64[1,1,n] I, int64[3] S) => (@[1,1,m] Y) { Y = MaxUnpool<kernel_shape = [1]>(X, I, S) }", 11,
      DType::Float64,
      [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {1, 1, 1}), i64({1, 1, 1}, {0}), i64({3}, {1, 1, n / 8})};
      },
      kBytes, kBytesBetween);
  check_line(
      "(@[n,k] A, @[k,m] B) => (@[n,m] C) { C = MatMul(A, B) }", 17, DType::Int64,
      [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {1, 0}), line(type, {0, n / 8})};
      },
      kBytes, kBytesBetween);
  check_line(
      "(@[n,k] X, @[k] S) => (@[n,k] Y, float[n,1] M) { Y, M = LayerNormalization(X, S) }", 17, DType::Float32,
      [](DType type, std::int64_t n) -> std::vector<Value> {
        return {line(type, {n / 4, 0}), line(type, {0})};
      },
      kBytes, kBytesBetween);
}

const CountedGraphs kGraphs([] {
  CountedGraphs::Texts texts;
  texts_asked_for = &texts;
  reductions();
  normalizations();
  products();
  many_keys();
  long_outputs();
  texts_asked_for = nullptr;
  return texts;
});

}  // namespace

TEST_CASE("reductions look within a long line of each type") { reductions(); }
TEST_CASE("normalizations look within a long line of each type") { normalizations(); }
TEST_CASE("products look within a long sum of each type") { products(); }
TEST_CASE("attention looks within a row of very many keys") { many_keys(); }
TEST_CASE("what fills or copies a long output looks") { long_outputs(); }

TEST_CASE("attention over very many keys is what it is over few that say the same") {
  constexpr std::int64_t kKeys = (std::int64_t{1} << 20) + 99;
  // Keys and values that repeat leave each key's share, and so the result, as it is.
  const auto attend = [](DType type, std::int64_t keys) {
    const Tensor q = tensor_as(type, {1, 1, 1, 2}, {0.5, -1});
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < 2 * keys; ++i) numbers.push_back(static_cast<double>(i % 66 * 7 % 11) / 8);
    const Tensor k = tensor_as(type, {1, 1, keys, 2}, numbers);
    const std::string name(tensor::onnx_name(type));
    return run_op(
        cat("(", name, "[1,h,s,d] Q, ", name, "[1,h,n,d] K) => (", name, "[1,h,s,d] Y) { Y = Attention(Q, K, K) }"), 23,
        {q, k})[0];
  };
  const auto check = [&](DType type, double tolerance) {
    CHECK(difference(attend(type, kKeys / 33 * 33), attend(type, 33), tolerance) == "");
  };
  check(DType::Float32, 5e-3);  // sums of a million products
  check(DType::Float64, 1e-9);
}

TEST_CASE("rows that are longer than one call takes are normalized as others") {
  // As float64, whose loops go by in pieces whatever the length; elements far from 0 tell how means are taken.
  constexpr std::int64_t kRow = (std::int64_t{1} << 21) + 77;
  const auto check = [](const std::vector<Value>& given, const std::string& operation, std::int64_t opset,
                        double tolerance) {
    CAPTURE(operation);
    const bool scaled = given.size() == 2;
    const std::string head = scaled ? "(float[n,m] X, float[m] S)" : "(float[n,m] X)";
    const auto run = [&](const std::string& body) {
      return run_op(head + " => (float[n,m] Y) { " + body + " }", opset, given)[0];
    };
    const Value floats = run("Y = " + operation + (scaled ? "(X, S)" : "(X)"));
    const Value doubles = run("D = Cast<to = 11>(X) " + std::string(scaled ? "T = Cast<to = 11>(S) " : "") +
                              "Z = " + operation + (scaled ? "(D, T)" : "(D)") + " Y = Cast<to = 1>(Z)");
    CHECK(difference(floats, doubles, tolerance) == "");
  };
  const Tensor rows = noise({3, kRow});
  const std::span<float> elements = rows.mutable_span<float>();
  for (float& v : elements) v = 3 * v + 50;
  check({rows, noise({kRow})}, "LayerNormalization", 17, 1e-5);
  check({rows, noise({kRow})}, "RMSNormalization", 23, 1e-6);
  elements[5] = -kInf;
  elements[2 * kRow - 5] = kNaN;
  std::fill(elements.end() - kRow, elements.end(), -kInf);
  check({rows}, "Softmax", 13, 1e-10);
  check({rows}, "LogSoftmax", 13, 1e-5);
}
