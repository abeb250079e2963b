#include "onnx/writer.h"

#include <doctest/doctest.h>

#include "graph/patch.h"
#include "graph/text.h"
#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {
graph::Model read_back(const std::vector<std::byte>& bytes) {
  return onnx::read_model_bytes(tensor::Buffer(const_cast<std::byte*>(bytes.data()), bytes.size(), nullptr, {}, false));
}
graph::Model round_trip(const graph::Model& m, const onnx::WriteOptions& options = {}) {
  return read_back(onnx::write_model_bytes(m, options));
}
}  // namespace

TEST_CASE("what is written reads back equal") {
  graph::Model m = graph::parse_model(R"(
    <ir_version: 10, opset_import: ["" : 18, "com.microsoft": 1], producer_name: "p", producer_version: "1", domain: "d", model_version: 7,
     doc_string: "text", metadata_props: ["k": "v", "l": "w"]>
    g (float[N,4,?] x, bool c, seq(float[2]) s, optional(int64) o, map(string, float) mp, float[] anyrank, int64[1] i = {3}, untyped)
      => (float[N,M] y, z)
    <float[2,2] w = {1, 2, 3, 4}, string[2] names = {"a", "b"}, int4[3] q = {1, -2, 3}, float16[1] h = {0.5}, uint8 scalar = {9},
     complex64[1] cx = {1, 2}, float8e4m3fn[1] f8 = {1.5}, float[0] none = {}>
    {
      ["first"] t = MatMul <alpha = 0.5, k = [1, 2], l = [1.5], str = "v", strs = ["a", "b"], ty = optional(float[2]), e: ints = []> (x, w)
      "", u = Constant <value = float[3] {1, 2, 3}, many = [float[1] {1}, int8[1] {2}]> ()
      y = If <then_branch = a () => (p) { p = Add(t, u) },
              else_branch = b () => (r) <float[1] e = {1}> { r = Mul(t, e) }> (c)
      z = com.microsoft.Foo(names, "", i)
    })");
  const graph::Model back = round_trip(m);
  CHECK(to_text(*back.graph, true) == to_text(*m.graph, true));
  CHECK(back.info.ir_version == 10);
  CHECK(back.info.opsets == m.info.opsets);
  CHECK(back.info.metadata == m.info.metadata);
  CHECK(back.info.producer_name == "p");
  CHECK(back.info.producer_version == "1");
  CHECK(back.info.domain == "d");
  CHECK(back.info.model_version == 7);
  CHECK(back.info.doc == "text");
  CHECK(back.info.graph_name == "g");
  for (size_t n = 0; n < m.graph->node_count(); ++n) {
    const auto& node = m.graph->node(static_cast<graph::NodeId>(n));
    if (graph::subgraphs(node).empty())
      CHECK(back.graph->node(static_cast<graph::NodeId>(n)).attributes == node.attributes);
  }
}

TEST_CASE("intermediate types are kept") {
  graph::Model m = graph::parse_model("g (float[2] x) => (y) <float[2] t> { t = Relu(x) y = Neg(t) }");
  const graph::Model back = round_trip(m);
  CHECK(back.graph->value(back.graph->find_value("t")).type.to_string() == "tensor(float)");
}

TEST_CASE("the format's version fits what is used") {
  CHECK(round_trip(graph::parse_model(
                       "<ir_version: 3, opset_import: [\"\": 9]> g (x) => (y) <float[1] w = {1}> { y = Add(x, w) }"))
            .info.ir_version == 4);
  CHECK(round_trip(graph::parse_model(
                       "<ir_version: 4, opset_import: [\"\": 21]> g (x) => (y) <int4[1] w = {1}> { y = Cast(w) }"))
            .info.ir_version == 10);
}

TEST_CASE("large tensors go to a file beside the model") {
  const TemporaryFolder folder;
  graph::Model m = graph::parse_model("g (x) => (y) <float[1] small = {7}> { t = Add(x, small) y = Neg(t) }");
  std::vector<float> values(1000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const auto big = tensor::Tensor::of<float>({1000}, values);
  m.graph->add_constant("big", big);
  m.graph->add_constant("bigger", tensor::Tensor::of<float>({1000}, values));
  const std::string path = folder.path("m.onnx");
  onnx::WriteOptions options;
  options.external_threshold = 1024;
  onnx::write_model_file(m, path, options);
  CHECK(std::filesystem::file_size(path) < 1000);
  CHECK(std::filesystem::file_size(path + ".data") >= 8000);
  const graph::Model back = onnx::read_model_file(path);
  CHECK(to_float_vector(constant(back, "big")) == values);
  CHECK(to_float_vector(constant(back, "bigger")) == values);
  CHECK(to_float_vector(constant(back, "small")) == std::vector<float>{7});
  // Over itself, while it is mapped.
  onnx::write_model_file(back, path, options);
  CHECK(to_float_vector(constant(onnx::read_model_file(path), "bigger")) == values);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("")))
    CHECK(entry.path().extension() != ".tmp");
}

TEST_CASE("external data takes smaller tensors too where the model would be too large") {
  const TemporaryFolder folder;
  graph::Model m = graph::parse_model("g (x) => (y) { y = Neg(x) }");
  for (int i = 1; i <= 4; ++i)  // of 4000, 8000, 12000 and 16000 bytes
    m.graph->add_constant(cat("w", i), tensor::Tensor::of<float>({1000 * i}, std::vector<float>(1000 * i, 1)));
  const std::string path = folder.path("m.onnx");
  for (const size_t threshold : {size_t{14000}, size_t{1} << 40, SIZE_MAX}) {
    CAPTURE(threshold);
    // 24,000 bytes are below the first threshold and 40,000 below the others; 16,000 may stay inside.
    const onnx::WriteOptions options{.external_threshold = threshold, .most_bytes = 16000};
    onnx::write_model_file(m, path, options);
    CHECK(std::filesystem::file_size(path) <= 16000);
    CHECK((std::filesystem::file_size(path) > 12000) == (threshold != SIZE_MAX));
    const graph::Model back = onnx::read_model_file(path);
    for (int i = 1; i <= 4; ++i) CHECK(to_float_vector(constant(back, cat("w", i))) == std::vector<float>(1000 * i, 1));
  }
  m.graph->add_constant("s", tensor::Tensor::of<std::string>({1000}, std::vector<std::string>(1000, "fourteen bytes")));
  const Error e = error_of([&] { onnx::write_model_file(m, path, {.external_threshold = 1, .most_bytes = 16000}); });
  CHECK(e.code() == ErrorCode::InvalidModel);
  CHECK(contains(e, "2 GB"));
}

TEST_CASE("a folder that does not exist") {
  const graph::Model m = graph::parse_model("g (x) => (y) { y = Neg(x) }");
  for (const size_t threshold : {SIZE_MAX, size_t{1}}) {
    onnx::WriteOptions options;
    options.external_threshold = threshold;
    const Error e = error_of([&] { onnx::write_model_file(m, "no/such/folder/m.onnx", options); });
    CHECK(e.code() == ErrorCode::Io);
    CHECK(contains(e, "open file no/such/folder/m.onnx"));
    CHECK(contains(e, "failed"));
  }
}

TEST_CASE("more than protobuf can hold is refused in memory") {
  graph::Model m = graph::parse_model("g (x) => (y) { y = Neg(x) }");
  const int64_t half = int64_t{1} << 30;
  const tensor::Tensor huge(tensor::DType::Int8, {half}, tensor::zeroed_host_buffer(static_cast<size_t>(half)));
  for (int i = 0; i < 3; ++i) m.graph->add_constant(cat("w", i), huge);
  const Error e = error_of([&] { (void)onnx::write_model_bytes(m); });
  CHECK(e.code() == ErrorCode::InvalidModel);
  CHECK(contains(e, "2 GB"));
}

TEST_CASE("a node of another version is written through a function") {
  graph::Model m = graph::parse_model(
      "<ir_version: 8, opset_import: [\"\": 17]> g (x) => (y) { t = Foo <axis = 2> (x) y = Neg(t) }");
  m.graph->node(0).opset = 12;
  const auto bytes = onnx::write_model_bytes(m);
  const std::string_view raw(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(raw.find("infernode.versions") != std::string_view::npos);
  const graph::Model back = read_back(bytes);
  const graph::Node& foo = back.graph->node(back.graph->topological_order()[0]);
  CHECK(foo.op_type == "Foo");
  CHECK(foo.opset == 12);
  CHECK(foo.attributes.get_int("axis") == 2);
  CHECK(back.graph->node(back.graph->topological_order()[1]).opset == 17);
  onnx::WriteOptions same;
  same.means_the_same = [](const graph::Node&, int64_t) { return true; };
  CHECK(round_trip(m, same).graph->node(0).opset == 17);
}

TEST_CASE("definitions of foreign operators travel with the model") {
  const graph::Model m = graph::parse_model(
      "<ir_version: 8, opset_import: [\"\": 17, \"infernode\": 1]> g (x) => (y) { y = infernode.F <a = 2.0> (x) }");
  onnx::WriteOptions options;
  options.functions = {
      graph::parse_function("<domain: \"infernode\", opset_import: [\"\": 17]> F <a: float = 1.0> (p) => (r) "
                            "{ r = LeakyRelu <alpha: float = @a, k = 3> (p) }")};
  const graph::Model back = round_trip(m, options);
  CHECK(back.graph->node(0).op_type == "LeakyRelu");
  CHECK(back.graph->node(0).attributes.get_float("alpha") == 2.f);
  CHECK(back.graph->node(0).attributes.get_int("k") == 3);
}

TEST_CASE("a captured value is written under its outer name") {
  graph::Model m = graph::parse_model("g (c, x) => (y) { a = Abs(x) y = If <t = h () => (p) { p = Neg(a) }> (c) }");
  graph::GraphPatch patch(*m.graph);
  patch.replace_uses(m.graph->find_value("a"), m.graph->find_value("x"));
  patch.apply();
  m.graph->compact();
  const graph::Model back = round_trip(m);
  const graph::Node& branch = back.graph->node(back.graph->topological_order().back());
  REQUIRE(graph::implicit_inputs(branch).size() == 1);
  CHECK(back.graph->value(graph::implicit_inputs(branch)[0]).name == "x");
}
