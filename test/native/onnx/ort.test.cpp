// ORT format: what is written is read again, and whatever a file holds ends in a graph or in an Error.
#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "graph/text.h"
#include "onnx/flatbuffer.h"
#include "onnx/ort_reader.h"
#include "onnx/ort_schema.h"
#include "onnx/ort_writer.h"
#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {

constexpr const char* kSample = R"(
    <ir_version: 9, opset_import: ["" : 18, "l": 1], producer_name: "p", producer_version: "1.2", doc_string: "d",
     model_version: 7, metadata_props: ["k": "v", "k2": ""]>
    graph (float[N,4] x, bool c, seq(float[2]) s, int64[1] i = {3}, float u, float[] r) => (float[N,M] y, z)
    <float[2,2] w = {1, 2, 3, 4}, string[2] names = {"a b/c", ""}, int4[3] q = {1, -2, 3}, bool[2] f = {0, 1},
     float[0] nothing = {}>
    {
      [a_node] t = MatMul <alpha = 0.5, k = [1, 2], l = [1.5], str = "v", strs = ["a", "b"], zero = 0> (x, w)
      v = Constant <value = float[3] {1, 2, 3}> ()
      y = If <then_branch = graph () => (p) { p = Add(t, v) }, else_branch = graph () => (o) <float[1] e = {1}>
        { m = Mul(t, e)  o = If <then_branch = graph () => (p2) { p2 = Sub(m, x) }, else_branch = graph () => (o2) { o2 = Neg(t) }> (c) }>
        (c)
      z = Gather(names, i)
      g, , h = l.Op(q, , f, nothing)
    })";

graph::Model sample() { return graph::parse_model(kSample); }

onnx::OrtWriteOptions options() {
  return {.describe = [](const graph::Node& node) {
    onnx::OrtOperator op;
    op.since_version = node.opset;
    op.input_count = node.inputs.size();
    op.types = {{"T", {0}, {0}}, {"B", {1}, {}}};
    return op;
  }};
}

std::string written(const graph::Model& model) {
  const auto bytes = onnx::write_ort_bytes(model, options());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string with_version(std::string bytes, char version) {
  // The string "6" with its length before it: the version is the only one of one character.
  const size_t at =
      bytes.find(std::string("\x01\0\0\0"
                             "6\0",
                             6));
  REQUIRE(at != std::string::npos);
  bytes[at + 4] = version;
  return bytes;
}

bool survives(const std::string& bytes) {
  try {
    (void)read(bytes);
  } catch (const Error& e) {
    return e.code() == ErrorCode::InvalidModel && !e.message().empty();
  }
  return true;
}

}  // namespace

TEST_CASE("a model in ORT format is read as it was written") {
  const graph::Model before = sample();
  const graph::Model after = read(written(before));
  CHECK(graph::to_text(*after.graph, true) == graph::to_text(*before.graph, true));
  CHECK(after.info.ir_version == 9);
  CHECK(after.info.opsets == before.info.opsets);
  CHECK(after.info.producer_name == "p");
  CHECK(after.info.producer_version == "1.2");
  CHECK(after.info.doc == "d");
  CHECK(after.info.model_version == 7);
  CHECK(after.info.metadata == before.info.metadata);
}

TEST_CASE("tensors' data lies aligned; what is large is viewed in a mapped file, and copied from memory") {
  graph::Model model = graph::parse_model("(float[N] x, float[64,128] w) => (y) { y = Add(x, w) }", 18);
  const tensor::Tensor w = tensor::Tensor::make(tensor::DType::Float32, {64, 128});
  for (int i = 0; i < 64 * 128; ++i) w.mutable_data<float>()[i] = static_cast<float>(i);
  model.graph->value(model.graph->find_value("w")).constant = w;
  const auto bytes = onnx::write_ort_bytes(model, options());
  const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes.size());
  std::memcpy(buffer.data(), bytes.data(), bytes.size());
  const auto owner = std::make_shared<const tensor::Buffer>(buffer);
  for (const bool mapped : {true, false}) {
    const graph::Model again = onnx::read_model_bytes({buffer.data(), buffer.size(), owner, {}, !mapped});
    const tensor::Tensor& read_w = again.graph->value(again.graph->find_value("w")).constant.tensor();
    CHECK(read_w.data<float>()[8191] == 8191);
    CHECK(reinterpret_cast<uintptr_t>(read_w.raw()) % 64 == 0);
    const auto* const at = static_cast<const std::byte*>(read_w.raw());
    CHECK((at >= buffer.data() && at < buffer.data() + buffer.size()) == mapped);
  }
}

TEST_CASE("older versions of the format are read, newer ones are refused with their number") {
  const std::string bytes = written(sample());
  for (const char version : {'1', '4', '5'}) CHECK(read(with_version(bytes, version)).graph->node_count() == 5);
  CHECK(read_error(with_version(bytes, '7')).message().find("[7] is newer") != std::string::npos);
  CHECK(read_error(with_version(bytes, 'x')).message().find("[x]") != std::string::npos);
}

TEST_CASE("the format may be stated") {
  onnx::ReadOptions as_ort, as_onnx;
  as_ort.format = onnx::FileFormat::Ort;
  as_onnx.format = onnx::FileFormat::Onnx;
  const auto open = [](const std::string& bytes, const onnx::ReadOptions& options) {
    const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes.size());
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return onnx::read_model_bytes(buffer, options);
  };
  CHECK(open(written(sample()), as_ort).graph->node_count() == 5);
  CHECK_THROWS_WITH_AS(open("no model", as_ort), doctest::Contains("no model in ORT format"), Error);
  CHECK_THROWS_AS(open(written(sample()), as_onnx), Error);
}

TEST_CASE("nodes keep the versions of their operators") {
  graph::Model model = graph::parse_model("(float[2] x) => (y) { a = Exp(x)  y = Neg(a) }", 18);
  model.graph->node(0).opset = 13;
  const graph::Model again = read(written(model));
  CHECK(again.graph->node(0).opset == 13);
  CHECK(again.graph->node(1).opset == 18);
}

TEST_CASE("what the format cannot hold is named") {
  const graph::Model model = graph::parse_model("(float[2] x) => (y) { y = Optional <type = float[2]> (x) }", 18);
  CHECK_THROWS_WITH_AS(written(model), doctest::Contains("attribute 'type'"), Error);
}

TEST_CASE("types' names of each operator are written once, sorted") {
  const std::string bytes = written(sample());
  const onnx::flat::Source source(bytes);
  namespace ort = onnx::ort;
  const auto names = onnx::flat::Table::root(source).table(ort::session::kTypeNames);
  REQUIRE(names);
  const auto operators = names->offsets(ort::type_names::kOperators);
  std::string last;
  for (size_t i = 0; i < operators.size(); ++i) {
    const std::string id(operators.table(i).text(ort::type_names::kOperator));
    CHECK(last < id);
    last = id;
    const auto types = operators.table(i).offsets(ort::type_names::kNames);
    REQUIRE(types.size() == 2);
    CHECK(types.table(0).text(ort::type_names::kName) == "B");
    CHECK(types.table(1).text(ort::type_names::kName) == "T");
    CHECK(types.table(1).offsets(ort::type_names::kArguments).table(1).scalar<int8_t>(ort::type_names::kDirection) ==
          ort::type_names::kOutput);
  }
  CHECK(last == "l:Op:1");
  CHECK(operators.size() == 9);
}

TEST_CASE("cut anywhere, a model in ORT format is refused") {
  const std::string bytes = written(sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    CAPTURE(n);
    REQUIRE(survives(bytes.substr(0, n)));
  }
}

TEST_CASE("no byte of a model in ORT format can do harm") {
  const std::string bytes = written(sample());
  std::mt19937 random(1);
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned value : {0u, 1u, 0x7fu, 0x80u, 0xffu, static_cast<unsigned>(random() & 0xff)}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(value);
      CAPTURE(at);
      CAPTURE(value);
      REQUIRE(survives(changed));
    }
  }
}

TEST_CASE("neither can its numbers, alone or several at once") {
  const std::string bytes = written(sample());
  std::mt19937 random(2);
  const uint32_t special[] = {0, 1, 4, 8, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffc, 0x10000};
  for (int trial = 0; trial < 20000; ++trial) {
    std::string changed = bytes;
    const int edits = 1 + static_cast<int>(random() % 4);
    for (int e = 0; e < edits; ++e) {
      const size_t at = random() % (changed.size() / 4) * 4;
      uint32_t value =
          random() % 2 ? special[random() % std::size(special)] : static_cast<uint32_t>(random() % changed.size());
      if (random() % 4 == 0) {  // lead to another part of the file
        std::memcpy(&value, changed.data() + at, 4);
        value += static_cast<uint32_t>(random() % 64) * 4 - 128;
      }
      std::memcpy(changed.data() + at, &value, 4);
    }
    CAPTURE(trial);
    REQUIRE(survives(changed));
  }
}

TEST_CASE("tables that contain themselves or one another many times end in an error") {
  namespace ort = onnx::ort;
  onnx::flat::Builder out;
  using onnx::flat::Position;
  using onnx::flat::TableFields;
  // Each graph holds 16 times the one before it: 16^40 of them, if each were read.
  TableFields first;
  Position graph = out.table(std::move(first));
  for (int level = 0; level < 40; ++level) {
    TableFields attribute, node, next;
    attribute.offset(ort::attribute::kName, out.text("g"));
    attribute.scalar(ort::attribute::kType, static_cast<int32_t>(ort::AttributeCode::Graphs));
    const std::vector<Position> same(16, graph);
    attribute.offset(ort::attribute::kGraphs, out.offsets(same));
    const Position attributes[] = {out.table(std::move(attribute))};
    node.offset(ort::node::kOpType, out.text("If"));
    node.offset(ort::node::kAttributes, out.offsets(attributes));
    const Position nodes[] = {out.table(std::move(node))};
    next.offset(ort::graph::kNodes, out.offsets(nodes));
    graph = out.table(std::move(next));
  }
  TableFields import, model, session;
  import.offset(ort::pair::kFirst, out.text(""));
  import.scalar(ort::pair::kSecond, int64_t{18});
  const Position imports[] = {out.table(std::move(import))};
  model.scalar(ort::model::kIrVersion, int64_t{9});
  model.offset(ort::model::kOpsetImport, out.offsets(imports));
  model.offset(ort::model::kGraph, graph);
  session.offset(ort::session::kVersion, out.text("6"));
  session.offset(ort::session::kModel, out.table(std::move(model)));
  const auto bytes = out.finish(out.table(std::move(session)), ort::kIdentifier);
  const Error error = read_error({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  CHECK(error.message().find("without end") != std::string::npos);
}
