// YOLO's focus layer: every second row and column, four ways, as channels.
#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kConstants =
    "int64[2] s00 = {0,0}, int64[2] s10 = {1,0}, int64[2] s01 = {0,1}, int64[2] s11 = {1,1}, "
    "int64[2] e = {9223372036854775807,9223372036854775807}, int64[2] a = {2,3}, int64[2] t = {2,2}";
/// Slices with both axes in the order given, such as "00 10 01 11".
std::string focus(const std::string& x, const std::string& order, const std::string& rest = "y = Relu(j)",
                  const std::string& outputs = "y", const std::string& constants = "") {
  std::string out = cat("(", x, " x) => (", outputs, ") <", kConstants, constants, "> { ");
  std::string joined;
  for (std::size_t i = 0; i < order.size(); i += 3) {
    const std::string which = order.substr(i, 2);
    out += cat("p", which, " = Slice(x, s", which, ", e, a, t)  ");
    joined += (joined.empty() ? "p" : ", p") + which;
  }
  return cat(out, "j = Concat<axis = 1>(", joined, ")  ", rest, " }");
}
}  // namespace

TEST_CASE("slices in SpaceToDepth's order") {
  check_optimized(focus("float[1,3,4,6]", "00 01 10 11"), 1, "j = SpaceToDepth <blocksize = 2> (x)\ny = Relu (j)", 17,
                  0);
  check_optimized(focus("float[N,C,H,W]", "00 01 10 11"), 1, "j = SpaceToDepth <blocksize = 2> (x)\ny = Relu (j)", 11,
                  0, {{"H", 4}, {"W", 2}});
}

TEST_CASE("another order is gathered") {
  check_optimized(focus("float[N,3,H,W]", "00 10 01 11"), 1,
                  "j_depth = SpaceToDepth <blocksize = 2> (x)\nj = Gather <axis = 1> (j_depth, j_order)\ny = Relu (j)",
                  17, 0, {{"H", 4}, {"W", 2}});
}

TEST_CASE("another order goes into the weights of a convolution") {
  const std::string weights =
      ", float[2,4,1,1] w = {1,2,3,4,-5,-6,7,8}, float[4,1,1,1] g = {1,2,3,4}, float[4,4,1,1] deep = {"
      "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}";
  check_optimized(focus("float[1,1,4,4]", "11 10 01 00", "y = Conv(j, w)", "y", weights), 1,
                  "j = SpaceToDepth <blocksize = 2> (x)\ny = Conv (j, w_reordered)");
  // One that looks at groups of channels, and one that is not alone.
  check_optimized(focus("float[1,1,4,4]", "11 10 01 00", "y = Conv<group = 4>(j, g)", "y", weights), 1,
                  "j_depth = SpaceToDepth <blocksize = 2> (x)\nj = Gather <axis = 1> (j_depth, j_order)\n"
                  "y = Conv <group = 4> (j, g)");
  check_optimized(focus("float[1,1,4,4]", "11 10 01 00", "v = Conv(j, deep)  y = Add(v, j)", "y", weights), 1,
                  "j_depth = SpaceToDepth <blocksize = 2> (x)\nj = Gather <axis = 1> (j_depth, j_order)\n"
                  "v = Conv (j, deep)\ny = Add (v, j)");
}

TEST_CASE("rows are sliced before columns") {
  const auto chain = [](const char* outputs) {
    return cat(
        "(float[1,2,4,H] x) => (", outputs,
        ") <int64[1] z = {0}, int64[1] o = {1}, int64[1] e = {2147483647}, int64[1] r = {-2}, "
        "int64[1] c = {3}, int64[1] t = {2}> { "
        "u = Slice(x, z, e, r, t)  v = Slice(x, o, e, r, t)  p = Slice(u, z, e, c, t)  q = Slice(v, z, e, c, t)  "
        "m = Slice(u, o, e, c, t)  n = Slice(v, o, e, c, t)  j = Concat<axis = -3>(p, q, m, n)  y = Relu(j) }");
  };
  check_optimized(chain("y"), 1,
                  "j_depth = SpaceToDepth <blocksize = 2> (x)\nj = Gather <axis = 1> (j_depth, j_order)\ny = Relu (j)",
                  17, 0, {{"H", 6}});
  graph::Model shared = parse(chain("y, u"));
  CHECK(optimize(shared, 1).empty());
}

TEST_CASE("other slices stay") {
  const auto stays = [](const std::string& text, std::int64_t opset = 17) {
    CAPTURE(text);
    graph::Model model = parse(text, opset);
    const std::string before = nodes(*model.graph);
    optimize(model, 1);
    CHECK(nodes(*model.graph).find("SpaceToDepth") == std::string::npos);
  };
  stays(focus("float[1,3,4,6]", "00 01 10 11", "y = Relu(j)", "y, p01"));              // an output
  stays(focus("float[1,3,4,6]", "00 01 10 11", "k = Neg(p01)  y = Relu(j)", "y, k"));  // another reader
  stays(focus("double[1,3,4,6]", "00 01 10 11"));                                      // a type
  stays(focus("float[1,C,4,6]", "00 10 01 11"));    // channels that no order can be said for
  stays(focus("float[1,3,4,6,1]", "00 01 10 11"));  // a rank
  std::string text = focus("float[1,3,4,6]", "00 01 10 11");
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string out = text;
    out.replace(out.find(from), from.size(), to);
    return out;
  };
  stays(with("(p00, p01, p10, p11)", "(p00, p01, p10, p10)"));
  stays(with("a = {2,3}", "a = {1,3}"));
  stays(with("axis = 1", "axis = 0"));
  stays(with("{9223372036854775807,9223372036854775807}", "{2,9223372036854775807}"));
}

TEST_CASE("slices whose places can be fed stay") {
  std::string text = focus("float[1,3,4,6]", "00 01 10 11");
  text.replace(text.find("int64[2] s11 = {1,1}, "), 22, "");
  text.insert(text.find(" x)") + 2, ", int64[2] s11 = {1,1}");
  CAPTURE(text);
  graph::Model model = parse(text);
  CHECK(optimize(model, 1).empty());
}
