// optimizedModelFilePath: what is written loads again, here and elsewhere.

#include "onnx/reader.h"
#include "session/session_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
constexpr const char* kModel =
    "(float[N,S,4] x, float[N,S,3] r) => (y, z, c) <float[4,3] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3}, float[3] b = "
    "{0.5,-1,2}, float[4,3] w2 = {3,2,1,6,5,4,9,8,7,-3,-2,-1}, "
    "float root = {1.4142135}, float one = {1}, float half = {0.5}, float scale = {0.25}, float[1,1,1,1] k = {2}, "
    "int64[2] ax = {0, 1}> {"
    "t = MatMul(x, w)  u = Add(b, t)  d = Div(u, root)  e = Erf(d)  s = Add(e, one)  v = Mul(u, s)  g = Mul(v, half) "
    "y = Softmax(g)  q = MatMul(x, w2)  o = Add(q, r)  h = Sigmoid(o)  m = Mul(o, h)  p = Transpose<perm = [0, 2, "
    "1]>(r) "
    "n = MatMul(m, p)  z = Mul(n, scale)  i = Unsqueeze(z, ax)  f = Squeeze(i, ax)  j = Unsqueeze(f, c1)  "
    "l = Conv(j, k)  a = Sigmoid(l)  c = Mul(l, a) }";
std::string model() {
  std::string text = kModel;
  text.replace(text.find("Unsqueeze(f, c1)"), 16, "Unsqueeze(f, ax1)");
  text.insert(text.find("int64[2] ax"), "int64[1] ax1 = {1}, ");
  return text;
}

std::string write(const TemporaryFolder& folder, passes::Level level) {
  const std::string path = folder / "optimized.onnx";
  open(model(), {.level = level, .optimized_model_path = path});
  return path;
}
}  // namespace

TEST_CASE("a saved model gives the same answers at every level, loaded at every level") {
  const std::vector<Value> inputs{noise(DType::Float32, {2, 3, 4}, 1), noise(DType::Float32, {2, 3, 3}, 2)};
  const auto expected = run(*open(model(), {.level = passes::Level::Disabled}), inputs);
  for (const auto level : {passes::Level::Disabled, passes::Level::Basic, passes::Level::All}) {
    const TemporaryFolder folder;
    const std::string path = write(folder, level);
    for (const auto again : {passes::Level::Disabled, passes::Level::All}) {
      const auto s = Session::create(engine(), {.path = path}, {.level = again});
      check_same(run(*s, inputs), expected, 1e-5);
    }
  }
}

TEST_CASE("a saved model keeps to the standard: own operators are functions over it") {
  const TemporaryFolder folder;
  const graph::Model saved = onnx::read_model_file(write(folder, passes::Level::All));
  bool gelu = false;
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(saved.graph->node_count()); ++id) {
    const graph::Node& node = saved.graph->node(id);
    if (node.removed) continue;
    CHECK(node.domain != "infernode");
    gelu = gelu || node.op_type == "Erf";  // from the function's body
  }
  CHECK(gelu);
}

TEST_CASE("integer products and attention whose probabilities are read are saved, too") {
  const std::string text =
      "(float[N,3,4] x) => (y, p, z) <int8[4,4] w = {1,2,3,4,5,6,7,8,9,-1,-2,-3,7,7,7,7}, int8 wz = {2}, float ws = "
      "{0.25}, float[4] b = {1,2,3,4}> { q, xs, xz = DynamicQuantizeLinear(x)  i = MatMulInteger(q, w, xz, wz)  f = "
      "Cast<to = 1>(i)  s = Mul(xs, ws)  t = Mul(f, s)  u = Add(t, b)  r = Add(u, x)  a = Relu(r)  "
      "q2, xs2, xz2 = DynamicQuantizeLinear(a)  i2 = MatMulInteger(q2, w, xz2)  f2 = Cast<to = 1>(i2)  z = Mul(f2, "
      "xs2) "
      "j2 = MatMulInteger(q2, w, xz2, wz)  g2 = Cast<to = 1>(j2)  v = Mul(g2, xs2)  k = Transpose<perm = [0, 2, 1]>(x) "
      " "
      "m = MatMul(a, k)  p = Softmax<axis = -1>(m)  y = MatMul(p, v) }";
  const std::vector<Value> inputs{noise(DType::Float32, {2, 3, 4}, 1)};
  const auto expected = run(*open(text, {.level = passes::Level::Disabled}), inputs);
  const TemporaryFolder folder;
  const std::string path = folder / "optimized.onnx";
  open(text, {.level = passes::Level::All, .optimized_model_path = path});
  const graph::Model saved = onnx::read_model_file(path);
  for (graph::NodeId id = 0; id < static_cast<graph::NodeId>(saved.graph->node_count()); ++id)
    CHECK(saved.graph->node(id).domain != "infernode");
  for (const auto again : {passes::Level::Disabled, passes::Level::All})
    check_same(run(*Session::create(engine(), {.path = path}, {.level = again}), inputs), expected, 1e-5);
}

TEST_CASE("level disabled saves the model as it is") {
  const TemporaryFolder folder;
  const graph::Model saved = onnx::read_model_file(write(folder, passes::Level::Disabled));
  CHECK(graph::to_text(*saved.graph, true) == graph::to_text(*parse(model()).graph, true));
}

TEST_CASE("a folder that does not exist") {
  const TemporaryFolder folder;
  const Error error = error_of([&] { open(model(), {.optimized_model_path = folder / "no/model.onnx"}); });
  CHECK(error.code() == ErrorCode::Io);
  CHECK(has(error.message(), "no/model.onnx"));
}
