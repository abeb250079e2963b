// Whatever a file holds, reading it ends in a graph or in an Error.
#include <doctest/doctest.h>

#include <random>

#include "graph/text.h"
#include "onnx/writer.h"
#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {
std::string sample() {
  graph::Model m = graph::parse_model(R"(
    <ir_version: 9, opset_import: ["" : 18, "l": 1], producer_name: "p", metadata_props: ["k": "v"]>
    g (float[N,4] x, bool c, seq(float[2]) s, int64[1] i = {3}) => (float[N,M] y, z)
    <float[2,2] w = {1, 2, 3, 4}, string[2] names = {"a", "b"}, int4[3] q = {1, -2, 3}>
    {
      t = MatMul <alpha = 0.5, k = [1, 2], l = [1.5], str = "v", ty = optional(float[2])> (x, w)
      u = Constant <value = float[3] {1, 2, 3}> ()
      y = If <then_branch = a () => (p) { p = Add(t, u) }, else_branch = b () => (r) <float[1] e = {1}> { r = Mul(t, e) }> (c)
      z = Gather(names, i)
    })");
  const auto bytes = onnx::write_model_bytes(m);
  std::string out(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  out += message([](pbf_writer& w) {
    w.add_message(onnx::model_field::kFunctions, message([](pbf_writer& f) {
                    f.add_string(1, "F");
                    f.add_string(10, "l");
                    f.add_string(4, "a");
                    f.add_string(5, "b");
                    f.add_message(7, node("Neg", {"a"}, {"b"}));
                  }));
  });
  return out;
}

bool survives(const std::string& bytes) {
  try {
    (void)read(bytes);
  } catch (const Error& e) {
    return !e.message().empty();
  }
  return true;
}
}  // namespace

TEST_CASE("the sample itself is read") {
  const graph::Model m = read(sample());
  CHECK(m.graph->node_count() == 4);
}

TEST_CASE("cut anywhere, a model is refused") {
  const std::string bytes = sample();
  size_t refused = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    REQUIRE(survives(bytes.substr(0, n)));
    refused += !read_error(bytes.substr(0, n)).message().empty();
  }
  // All cuts but those between the fields that follow the graph.
  CHECK(refused > bytes.size() * 9 / 10);
}

TEST_CASE("any byte changed to any of its neighbours ends in a graph or an error") {
  const std::string bytes = sample();
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x08, 0x7f, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      REQUIRE(survives(damaged));
    }
  }
}

TEST_CASE("random edits and random bytes") {
  const std::string bytes = sample();
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = bytes;
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(damaged.size());
      switch (below(4)) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + below(8));
          break;
        case 2:
          damaged.insert(at, std::string(1 + below(8), static_cast<char>(random())));
          break;
        default: {
          const std::string part = damaged.substr(below(damaged.size()), below(40));
          damaged.insert(at, part);
        }
      }
    }
    REQUIRE(survives(damaged));
    std::string noise(below(200), '\0');
    for (char& c : noise) c = static_cast<char>(random());
    REQUIRE(survives(noise));
  }
}

TEST_CASE("a structure beyond what it may take is refused while it is read") {
  const auto with = [](const std::string& graph, const std::string& rest = "") {
    return message([&](pbf_writer& w) {
             w.add_int64(onnx::model_field::kIrVersion, 8);
             w.add_message(onnx::model_field::kGraph, graph);
             w.add_message(onnx::model_field::kOpsetImport, message([](pbf_writer& o) { o.add_int64(2, 17); }));
           }) +
           rest;
  };
  const auto repeated = [](std::uint32_t field, const std::string& part) {
    std::string out;
    for (int i = 0; i < 1000; ++i) out += message([&](pbf_writer& w) { w.add_message(field, part); });
    return out;
  };
  const std::string entry = message([](pbf_writer& e) { e.add_string(1, "k"); });
  const std::string value = message([](pbf_writer& v) { v.add_string(1, "v"); });
  // One field again and again, in an attribute.
  const auto attribute_of = [](std::uint32_t field, const std::string& part, int times) {
    return message([&](pbf_writer& w) {
      w.add_string(onnx::attribute_field::kName, "a");
      for (int i = 0; i < times; ++i) w.add_string(field, part);
    });
  };
  const auto attribute = [](const std::string& of) {
    return message([&](pbf_writer& w) {
      w.add_message(onnx::graph_field::kNode, node("Neg", {"x"}, {"y"}, {of}));
      w.add_message(onnx::graph_field::kInput, protos::value("x"));
    });
  };
  const std::string strings = protos::tensor_proto("w", 8, {2000}, [](pbf_writer& w) {
    for (int i = 0; i < 2000; ++i) w.add_string(onnx::tensor_field::kStringData, "");
  });
  const std::string files[] = {
      with(repeated(onnx::graph_field::kNode, node("Neg", {"x"}, {}))),
      with(message([&](pbf_writer& w) { w.add_message(onnx::graph_field::kNode, repeated(1, "x")); })),
      with(repeated(onnx::graph_field::kValueInfo, value)),
      with(repeated(onnx::graph_field::kOutput, value)),
      with("", repeated(onnx::model_field::kMetadata, entry)),
      with("", repeated(onnx::model_field::kFunctions, value)),
      with(attribute(attribute_of(onnx::attribute_field::kStrings, "", 2000))),
      with(attribute(attribute_of(onnx::attribute_field::kInts, std::string(8000, '\1'), 1))),
      with(attribute(attribute_of(onnx::attribute_field::kTensors, "", 1000))),
      with(message([&](pbf_writer& w) { w.add_message(onnx::graph_field::kInitializer, strings); })),
  };
  for (const std::string& file : files) {
    onnx::ReadOptions options;
    options.max_structure_bytes = 50'000;
    const Error error = read_error(file, options);
    CHECK(error.code() == ErrorCode::InvalidModel);
    CHECK(error.message().find("would take more than 50000 bytes") != std::string::npos);
  }
  // What is not much more than its bytes in the file may be large.
  onnx::ReadOptions options;
  options.max_structure_bytes = 50'000;
  const auto model =
      read(with(attribute(attribute_of(onnx::attribute_field::kStrings, std::string(40, 'a'), 5000))), options);
  CHECK(model.graph->node_count() == 1);
}
