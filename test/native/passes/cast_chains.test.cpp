#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string after(std::string_view text, bool asked = true) {
  graph::Model model = parse(text);
  passes::PassOptions options = pass_options(1);
  if (asked) options.enabled.emplace("CastChainElimination");
  passes::run_basic(model, options);
  graph::verify(*model.graph);
  return nodes(*model.graph);
}
}  // namespace

TEST_CASE("casts between floating types become one for who asks") {
  const char* chain =
      "(float[N] x) => (y) { a = Cast<to = 10>(x)  b = Cast<to = 16>(a)  c = Cast<to = 11>(b)  y = Neg(c) }";
  CHECK(after(chain) == "c = Cast <to = 11> (x)\ny = Neg (c)");
  CHECK(after("(float[N] x) => (y) { a = Cast<to = 10>(x)  b = Cast<to = 1>(a)  y = Neg(b) }") == "y = Neg (x)");
  CHECK(after(chain, false).find("a = Cast <to = 10> (x)") == 0);
}

TEST_CASE("a cast that others read stays for them") {
  CHECK(after("(float[N] x) => (y, a) { a = Cast<to = 10>(x)  b = Cast<to = 1>(a)  y = Neg(b) }") ==
        "a = Cast <to = 10> (x)\ny = Neg (x)");
}

TEST_CASE("casts through whole numbers, truth values and text mean something") {
  for (const char* to : {"7", "9", "8"}) {
    const std::string text = cat("(float[N] x) => (y) { a = Cast<to = ", to, ">(x)  y = Cast<to = 1>(a) }");
    CHECK(after(text).find("a = Cast") == 0);
  }
}
