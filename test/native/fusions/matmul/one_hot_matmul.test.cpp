#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
// Numbers from -3 to 6, of which 0 to 3 are rows.
void check(std::string_view text, bool fires) {
  CAPTURE(std::string(text));
  const graph::Model before = parse(text);
  graph::Model after = parse(text);
  const auto applied = optimize(after, 1, {"ConstantFolding"});
  CHECK((std::find(applied.begin(), applied.end(), "OneHotMatMulFusion") != applied.end()) == fires);
  std::vector<Value> inputs = feeds(*before.graph);
  const auto spread = [](auto numbers) {
    int at = 0;
    for (auto& number : numbers) number = static_cast<std::remove_reference_t<decltype(number)>>(at++ % 10 - 3);
  };
  const tensor::Tensor& x = inputs[0].tensor();
  if (x.dtype() == tensor::DType::Int32)
    spread(x.mutable_span<std::int32_t>());
  else
    spread(x.mutable_span<std::int64_t>());
  check_same(evaluate(*after.graph, inputs), evaluate(*before.graph, inputs));
}
constexpr const char* kTable = "float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> ";
}  // namespace

TEST_CASE("products of one-hot rows look rows up") {
  check(cat("(int32[2,7,1] x) => (y) <int32[1,1,4] n = {0,1,2,3}, ", kTable,
            "{ e = Equal(x, n)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        true);
  check(cat("(int64[11,1] x) => (y) <int64[4] n = {0,1,2,3}, ", kTable,
            "{ e = Equal(n, x)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        true);
}

TEST_CASE("other comparisons and tables stay products") {
  check(cat("(int32[2,7,1] x) => (y) <int32[1,1,4] n = {0,1,3,2}, ", kTable,
            "{ e = Equal(x, n)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        false);
  check(cat("(int32[2,7,4] x) => (y) <int32[1,1,4] n = {0,1,2,3}, ", kTable,
            "{ e = Equal(x, n)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        false);
  check(cat("(int32[7,1] x) => (y) <int32[1,1,4] n = {0,1,2,3}, ", kTable,
            "{ e = Equal(x, n)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        false);
  check(cat("(int32[2,7,1] x) => (y, f) <int32[1,1,4] n = {0,1,2,3}, ", kTable,
            "{ e = Equal(x, n)  f = Cast<to = 1>(e)  y = MatMul(f, w) }"),
        false);
}
