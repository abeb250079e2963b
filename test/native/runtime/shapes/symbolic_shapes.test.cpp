#include "runtime/shapes/symbolic_shapes.h"

#include "runtime/plan_test.h"

using namespace infernode;
using namespace infernode::test;
using runtime::SymbolicShapes;

namespace {

struct Inferred {
  explicit Inferred(std::string_view text, const std::vector<Value>& first)
      : graph(parse(text, 17).graph),
        order(graph->topological_order()),
        fed(pointers(first)),
        signature(*graph, {fed}) {
    for (const graph::NodeId id : order) {
      for (const graph::ValueId output : graph->node(id).outputs) needed.push_back(output);
    }
    shapes = SymbolicShapes::infer(*graph, order, needed, signature, registry(), {});
    REQUIRE(shapes);
  }
  static std::vector<const Value*> pointers(const std::vector<Value>& values) {
    std::vector<const Value*> out;
    for (const Value& value : values) out.push_back(&value);
    return out;
  }
  std::optional<kernel::InferredGraph> at(const std::vector<Value>& inputs) const {
    const auto symbols = signature.bind(runtime::signature_of({pointers(inputs)}));
    const auto sizes = symbols ? shapes->at(*symbols) : std::nullopt;
    return sizes ? std::optional(shapes->inferred(*sizes)) : std::nullopt;
  }
  kernel::InferredGraph directly(const std::vector<Value>& inputs) const {
    return kernel::infer_values(*graph, order, runtime::types_of(*graph, {pointers(inputs)}), {}, registry());
  }
  /// Substitution gives the types that inference gives, and known values only as inference knows them.
  void check(const std::vector<Value>& inputs) const {
    const auto found = at(inputs);
    const auto expected = directly(inputs);
    REQUIRE(found);
    for (const graph::ValueId id : needed) {
      const auto i = static_cast<std::size_t>(id);
      CAPTURE(graph->value(id).name);
      CHECK(found->types[i] == expected.types[i]);
      const Tensor a = kernel::known_tensor(*found, id), b = kernel::known_tensor(expected, id);
      if (!a) continue;
      REQUIRE(b);
      CHECK(tensor::to_int64_vector(a) == tensor::to_int64_vector(b));
    }
  }

  std::shared_ptr<graph::Graph> graph;
  std::vector<graph::NodeId> order;
  std::vector<graph::ValueId> needed;
  std::vector<const Value*> fed;
  runtime::SymbolicSignature signature;
  std::unique_ptr<const SymbolicShapes> shapes;
};

Value floats(const Shape& shape) { return Tensor::make(DType::Float32, shape); }

}  // namespace

TEST_CASE("what inference says of sizes never seen follows from what it says of symbols") {
  const auto inputs = [](std::int64_t batch, std::int64_t side) {
    return std::vector{floats({batch, 3, side, side + 9}), floats({8, 3, 3, 3})};
  };
  const Inferred model(
      "(float[batch,3,height,width] x, float[8,3,3,3] w) => (y, n) <int64[1] one = {1}, int64[2] to = {0, -1}> {"
      "  c = Conv<strides=[2,2], pads=[1,1,1,1]>(x, w)  p = MaxPool<kernel_shape=[2,2]>(c)  flat = Reshape(p, to)"
      "  all = Shape(flat)  n = Gather(all, one)  y = Concat<axis=1>(flat, flat) }",
      inputs(3, 20));
  for (const std::int64_t batch : {1, 2, 5}) {
    for (const std::int64_t side : {4, 7, 224, 1000}) model.check(inputs(batch, side));
  }
}

/// The shapes of a decoder's step: positions from the end of a mask's sum, a causal mask, the past and what joins it.
constexpr const char* kDecoderStep =
    "(float[batch,seq,8] x, int64[batch,total] mask, float[batch,2,past,4] key) => (present, scores) "
    "<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] axis = {1}, int64[1] first = {0}, "
    " int64[1] most = {9223372036854775807}, int64[4] heads = {0, 0, 2, 4}, int64[1] minus = {-1}, "
    " int64[2] rows = {0, 1}, int64[2] columns = {0, 2}, float low = {-1000}> {"
    "  xs = Shape(x)  seq = Gather(xs, one)  ks = Shape(key)  past = Gather(ks, two)  end = Add(past, seq)"
    "  back = Neg(seq)  from = Unsqueeze(back, first)  sum = CumSum(mask, one)"
    "  positions = Slice(sum, from, most, axis, axis)"
    "  p = Cast<to=1>(positions)  p3 = Unsqueeze(p, minus)  moved = Add(x, p3)"
    "  q4 = Reshape(moved, heads)  q = Transpose<perm=[0,2,1,3]>(q4)  present = Concat<axis=2>(key, q)"
    "  columns_at = Range(zero, end, one)  rows_at = Range(past, end, one)"
    "  rows1 = Unsqueeze(rows_at, axis)  causal = LessOrEqual(columns_at, rows1)"
    "  kt = Transpose<perm=[0,1,3,2]>(present)  s = MatMul(q, kt)  scores = Where(causal, s, low) }";

TEST_CASE("a decoder's step has symbols for its past and for what is new") {
  const auto inputs = [](std::int64_t batch, std::int64_t seq, std::int64_t past) {
    return std::vector<Value>{floats({batch, seq, 8}), Tensor::make(DType::Int64, {batch, past + seq}),
                              floats({batch, 2, past, 4})};
  };
  const Inferred model(kDecoderStep, inputs(1, 1, 7));
  for (const std::int64_t batch : {1, 3}) {
    for (const std::int64_t seq : {1, 2, 40}) {
      for (const std::int64_t past : {1, 2, 63, 64, 1000}) model.check(inputs(batch, seq, past));
    }
  }
  const Inferred prefill(kDecoderStep, inputs(1, 5, 0));
  for (const std::int64_t seq : {1, 2, 40}) prefill.check(inputs(2, seq, 0));
  CHECK(!prefill.at(inputs(1, 5, 1)));
  CHECK(!model.at(inputs(1, 5, 0)));
}

TEST_CASE("signatures of another kind, and sizes that come to 0, are left to inference") {
  const Inferred model("(float[N,4] a, float[N,4] b) => (y) { y = Add(a, b) }", {floats({2, 4}), floats({2, 4})});
  CHECK(model.at({floats({3, 4}), floats({3, 4})}));
  CHECK(!model.at({floats({3, 4}), floats({1, 4})}));
  CHECK(!model.at({floats({3, 5}), floats({3, 5})}));
  CHECK(!model.at({floats({3, 4, 1}), floats({3, 4, 1})}));
  CHECK(!model.at({Tensor::make(DType::Float16, {3, 4}), floats({3, 4})}));
  CHECK(!model.at({floats({3, 4})}));
  CHECK(!model.at({floats({0, 4}), floats({0, 4})}));
  const Inferred halved("(float[1,1,N] a) => (y) { y = AveragePool<kernel_shape=[2], strides=[2]>(a) }",
                        {floats({1, 1, 6})});
  CHECK(halved.at({floats({1, 1, 5})}));
  CHECK(!halved.at({floats({1, 1, 1})}));
}

TEST_CASE("inputs that disagree on a symbol have one each") {
  const Inferred model("(float[N] a, float[N] b) => (y) { y = Concat<axis=0>(a, b) }", {floats({2}), floats({5})});
  model.check({floats({3}), floats({1})});
  model.check({floats({3}), floats({3})});
}

TEST_CASE("dims that data decides stay unknown") {
  const Inferred model("(float[N,M] x) => (y) { n = NonZero(x)  y = Concat<axis=1>(n, n)  z = Relu(x) }",
                       {floats({2, 3})});
  const auto at = model.at({floats({4, 5})});
  REQUIRE(at);
  const auto& type = at->types[static_cast<std::size_t>(model.graph->find_value("y"))];
  CHECK((*type.shape)[0].is(2));
  CHECK(!(*type.shape)[1].known());
}

TEST_CASE("a model's own names of dims are never taken for symbols") {
  const Inferred model("(float[N] x, float[M] y) => (int64[K] z) { n = NonZero(x)  z = Squeeze(n) }",
                       {floats({2}), floats({3})});
  const auto at = model.at({floats({4}), floats({5})});
  REQUIRE(at);
  const auto& type = at->types[static_cast<std::size_t>(model.graph->find_value("z"))];
  CHECK((!type.shape || !(*type.shape)[0].known()));
  CHECK(runtime::symbol_index(runtime::symbol_name(12)) == 12);
  for (const char* name : {"", "0", "N", "12", "\x1f",
                           "\x1f"
                           "1x",
                           "\x1f-1"}) {
    CHECK(runtime::symbol_index(name) == SIZE_MAX);
  }
}

TEST_CASE("a plan for the second shape and those after it gives what the first would") {
  const Planned p(
      "(float[N,M] x) => (y, s) <int64[1] flat = {-1}> { a = Relu(x)  b = Reshape(a, flat)  s = Shape(b)  "
      "y = Add(b, b) }");
  for (const std::int64_t n : {1, 5, 2, 9, 0, 3}) {
    const std::vector<Value> inputs{Tensor::make(DType::Float32, {n, 2 * n + 1})};
    std::fill_n(inputs[0].tensor().mutable_data<float>(), n * (2 * n + 1), 1.5f);
    const auto outputs = p.run(inputs);
    REQUIRE(outputs[0].tensor().numel() == n * (2 * n + 1));
    for (const float y : outputs[0].tensor().span<float>()) CHECK(y == 3.0f);
    CHECK(outputs[1].tensor().data<std::int64_t>()[0] == n * (2 * n + 1));
  }
}

TEST_CASE("a decoder's steps with a growing past give what each would alone") {
  const Planned p(kDecoderStep);
  runtime::Frame frame(true);
  const auto graph = parse(kDecoderStep, 17).graph;
  for (const std::int64_t seq : {1, 3, 2}) {
    for (const std::int64_t past : {0, 1, 2, 9, 10, 11}) {
      const auto seed = static_cast<std::uint32_t>(10 * past + seq);
      const Tensor mask = Tensor::make(DType::Int64, {2, past + seq});
      std::ranges::fill(mask.mutable_span<std::int64_t>(), 1);
      const std::vector<Value> inputs{noise(DType::Float32, {2, seq, 8}, seed), mask,
                                      noise(DType::Float32, {2, 2, past, 4}, seed + 1)};
      check_same(p.run(inputs, {.frame = &frame}), evaluate(*graph, inputs));
    }
  }
}

TEST_CASE("a declared size that is wrong does not pass for a substituted one") {
  const Planned p(
      "(float[N] x) => (float[3] y, s) <int64[1] three = {3}, int64[1] most = {9223372036854775807}> {"
      "  n = Shape(x)  from = Sub(n, three)  y = Slice(x, from, most)  s = Shape(y) }");
  for (const std::int64_t n : {6, 7, 8, 2, 1}) {
    const auto results = p.run({noise(DType::Float32, {n}, 1)});
    const std::int64_t length = n > 2 ? 3 : 1;  // of the last element on, where n - 3 is below 0
    CHECK(results[0].tensor().shape() == Shape{length});
    CHECK(results[1].tensor().data<std::int64_t>()[0] == length);
  }
}
