#include "onnx/reader.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/path.h"
#include "graph/text.h"
#include "onnx/ort_writer.h"
#include "onnx/writer.h"
#include "protos.h"

using namespace infernode;
using namespace protos;
namespace g = onnx::graph_field;

namespace {
std::string opset(std::string_view domain, int64_t version) {
  return message([&](pbf_writer& w) {
    w.add_string(onnx::opset_field::kDomain, domain.data(), domain.size());
    w.add_int64(onnx::opset_field::kVersion, version);
  });
}
/// An AttributeProto with its type, or without where `type` is 0.
std::string attribute(const char* name, int type, const std::function<void(pbf_writer&)>& fill) {
  return message([&](pbf_writer& w) {
    w.add_string(onnx::attribute_field::kName, name);
    fill(w);
    if (type) w.add_int32(onnx::attribute_field::kType, type);
  });
}
std::string relu() {
  return model([](pbf_writer& w) {
    w.add_message(g::kNode, node("Relu", {"x"}, {"y"}));
    w.add_string(g::kName, "main");
    w.add_message(g::kInput, value("x"));
    w.add_message(g::kOutput, value("y"));
  });
}
}  // namespace

TEST_CASE("what a model says about itself") {
  const graph::Model m = read(model(
      [](pbf_writer& w) {
        w.add_message(g::kNode, node("Relu", {"x"}, {"y"}));
        w.add_string(g::kName, "main");
        w.add_message(g::kInput, value("x"));
        w.add_message(g::kOutput, value("y"));
      },
      [](pbf_writer& w) {
        w.add_string(onnx::model_field::kProducerName, "tester");
        w.add_string(onnx::model_field::kProducerVersion, "1.2");
        w.add_string(onnx::model_field::kDomain, "org");
        w.add_int64(onnx::model_field::kModelVersion, 5);
        w.add_string(onnx::model_field::kDoc, "doc");
        w.add_message(onnx::model_field::kOpsetImport, opset("ai.onnx.ml", 3));
        w.add_message(onnx::model_field::kMetadata, entry("k", "v"));
        w.add_message(onnx::model_field::kMetadata, entry("k", "v"));
        w.add_message(onnx::model_field::kMetadata, entry("names", "{0: 'cat'}"));
        w.add_string(99, "an unknown field");
      }));
  CHECK(m.info.ir_version == 8);
  CHECK(m.info.producer_name == "tester");
  CHECK(m.info.producer_version == "1.2");
  CHECK(m.info.domain == "org");
  CHECK(m.info.model_version == 5);
  CHECK(m.info.doc == "doc");
  CHECK(m.info.graph_name == "main");
  CHECK(m.info.opsets == std::map<std::string, int64_t>{{"", 17}, {"ai.onnx.ml", 3}});
  REQUIRE(m.info.metadata.size() == 2);
  CHECK(m.info.metadata[1].second == "{0: 'cat'}");
  CHECK(m.graph->node(0).opset == 17);
}

TEST_CASE("groups, which no field of ONNX is, are passed over") {
  using namespace std::string_literals;
  const auto with = [](const std::string& group) { return relu() + group; };
  const std::string begin = "\x9b\x06"s, end = "\x9c\x06"s;  // of field 99
  const std::string inside = "\x08\x05\x13\x0a\x02hi\x14\x1d\x01\x02\x03\x04"s;
  CHECK(read(with(begin + inside + end)).info.graph_name == "main");
  const auto refused = [&](const std::string& group, const char* part) {
    CHECK(contains(read_error(with(group)), part));
  };
  refused(end, "unknown wire type");
  refused(begin + inside, "truncated");
  refused(begin + "\x14"s, "a group that ends as another");
  std::string deep;
  for (int i = 0; i < 101; ++i) deep += begin;
  refused(deep, "groups within each other");
}

TEST_CASE("versions of the format") {
  for (int64_t version = 3; version <= 14; ++version) {
    std::string bytes = relu();
    bytes[1] = static_cast<char>(version);
    CHECK(read(bytes).info.ir_version == version);
  }
  std::string bytes = relu();
  bytes[1] = 15;
  const Error e = read_error(bytes);
  CHECK(e.code() == ErrorCode::InvalidModel);
  CHECK(contains(e, "Unsupported model IR version: 15, max supported IR version: 14"));
  CHECK(contains(read_error(bytes.substr(2)), "Missing model IR version"));
}

TEST_CASE("a model without imports is of opset 1 where its format is older than imports") {
  const auto make = [](int64_t ir) {
    return message([&](pbf_writer& w) {
      w.add_int64(onnx::model_field::kIrVersion, ir);
      w.add_message(onnx::model_field::kGraph, message([](pbf_writer& w2) {
                      w2.add_message(g::kNode, node("Relu", {"x"}, {"y"}));
                      w2.add_message(g::kInput, value("x"));
                      w2.add_message(g::kOutput, value("y"));
                    }));
    });
  };
  CHECK(read(make(2)).graph->node(0).opset == 1);
  CHECK(contains(read_error(make(8)), "Missing opset"));
}

TEST_CASE("attributes of every kind, with and without a stated type") {
  namespace a = onnx::attribute_field;
  for (const bool typed : {true, false}) {
    const auto t = [&](int type) { return typed ? type : 0; };
    const std::string n = node(
        "Op", {"x"}, {"y"},
        {attribute("f", t(1), [](pbf_writer& w) { w.add_float(a::kF, 0.5f); }),
         attribute("i", t(2), [](pbf_writer& w) { w.add_int64(a::kI, -3); }),
         attribute("s", t(3), [](pbf_writer& w) { w.add_string(a::kS, "text"); }),
         attribute("t", t(4),
                   [](pbf_writer& w) {
                     w.add_message(a::kT, tensor_proto("", 1, {1}, [](pbf_writer& d) { d.add_float(4, 2); }));
                   }),
         attribute("fs", t(6),
                   [](pbf_writer& w) {
                     w.add_float(a::kFloats, 1);
                     w.add_float(a::kFloats, 2);
                   }),
         attribute("is", t(7),
                   [](pbf_writer& w) {
                     const std::vector<int64_t> v{1, -2};
                     w.add_packed_int64(a::kInts, v.begin(), v.end());
                   }),
         attribute("ss", t(8), [](pbf_writer& w) { w.add_string(a::kStrings, "u"); }),
         attribute("tp", t(13), [](pbf_writer& w) {
           w.add_message(a::kTypeProto, message([](pbf_writer& p) {
                           p.add_message(onnx::type_field::kTensor, message([](pbf_writer& e) { e.add_int32(1, 7); }));
                         }));
         })});
    const graph::Model m = read(model([&](pbf_writer& w) {
      w.add_message(g::kNode, n);
      w.add_message(g::kInput, value("x"));
      w.add_message(g::kOutput, value("y"));
    }));
    const graph::Attributes& at = m.graph->node(0).attributes;
    CHECK(at.get_float("f") == 0.5f);
    CHECK(at.get_int("i") == -3);
    CHECK(at.get_string("s") == "text");
    CHECK(to_float_vector(*at.get_tensor("t")) == std::vector<float>{2});
    CHECK(at.get_floats("fs") == std::vector<float>{1, 2});
    CHECK(at.get_ints("is") == std::vector<int64_t>{1, -2});
    CHECK(at.get_strings("ss") == std::vector<std::string>{"u"});
    CHECK(at.get_type("tp")->to_string() == "tensor(int64)");
  }
}

TEST_CASE("a typed attribute whose field was left out has the default") {
  const graph::Model m = read(model([&](pbf_writer& w) {
    w.add_message(g::kNode, node("Op", {"x"}, {"y"},
                                 {attribute("axis", 2, [](pbf_writer&) {}), attribute("l", 7, [](pbf_writer&) {})}));
    w.add_message(g::kInput, value("x"));
    w.add_message(g::kOutput, value("y"));
  }));
  CHECK(m.graph->node(0).attributes.get_int("axis") == 0);
  CHECK(m.graph->node(0).attributes.get_ints("l", {1}).empty());
}

TEST_CASE("what real files do is accepted") {
  // Inputs that are initializers too, initializers that are none, nodes out of order, names with spaces, no value_info.
  const graph::Model m = read(model([](pbf_writer& w) {
    w.add_message(g::kNode, node("Neg", {"a b"}, {"y"}));
    w.add_message(g::kNode, node("Add", {"x", "w"}, {"a b"}));
    w.add_message(g::kInput, value("x"));
    w.add_message(g::kInput, value("w"));
    w.add_message(g::kInitializer, tensor_proto("w", 1, {1}, [](pbf_writer& d) { d.add_float(4, 2); }));
    w.add_message(g::kInitializer, tensor_proto("unused", 1, {0}));
    w.add_message(g::kOutput, value("y"));
    w.add_message(g::kValueInfo, value("nobody"));
  }));
  CHECK(m.graph->node(0).op_type == "Add");
  const graph::ValueInfo& w = m.graph->value(m.graph->find_value("w"));
  CHECK(w.is_input);
  CHECK(w.has_constant());
}

TEST_CASE("broken graphs are refused by name") {
  const auto broken = [](const std::function<void(pbf_writer&)>& fill) { return read_error(model(fill)); };
  const auto expect = [](const Error& e, std::string_view part) {
    CAPTURE(e.message());
    CHECK(e.code() == ErrorCode::InvalidModel);
    CHECK(contains(e, part));
  };
  expect(broken([](pbf_writer& w) {
           w.add_message(g::kNode, node("Relu", {"ghost"}, {"y"}));
           w.add_message(g::kOutput, value("y"));
         }),
         "'ghost'");
  expect(broken([](pbf_writer& w) {
           w.add_message(g::kNode, node("Relu", {"z"}, {"y"}));
           w.add_message(g::kNode, node("Relu", {"y"}, {"z"}));
           w.add_message(g::kOutput, value("y"));
         }),
         "cycle");
  expect(broken([](pbf_writer& w) {
           w.add_message(g::kInput, value("x"));
           w.add_message(g::kNode, node("Relu", {"x"}, {"y"}));
           w.add_message(g::kNode, node("Neg", {"x"}, {"y"}));
           w.add_message(g::kOutput, value("y"));
         }),
         "'y' is defined more than once");
  expect(broken([](pbf_writer& w) {
           w.add_message(g::kInput, value("x"));
           w.add_message(g::kInput, value("x"));
           w.add_message(g::kOutput, value("x"));
         }),
         "two inputs named 'x'");
  expect(broken([](pbf_writer& w) { w.add_message(g::kOutput, value("nothing")); }), "'nothing'");
  expect(broken([](pbf_writer& w) { w.add_message(g::kNode, node("", {}, {"y"})); }), "no operator");
  expect(broken([](pbf_writer& w) { w.add_message(g::kInput, value("x", 77)); }), "unknown element type 77");
  expect(broken([](pbf_writer& w) {
           const std::string twice = attribute("a", 2, [](pbf_writer&) {});
           w.add_message(g::kNode, node("Relu", {}, {"y"}, {twice, twice}));
         }),
         "more than once");
  expect(broken([](pbf_writer& w) {
           w.add_message(g::kNode,
                         node("Relu", {}, {"y"},
                              {attribute("t", 4, [](pbf_writer& a) { a.add_message(5, tensor_proto("", 1, {3})); })}));
         }),
         "node Relu 'y'");
}

TEST_CASE("deep nesting is refused before the stack ends") {
  std::string graph = message([](pbf_writer& w) { w.add_string(g::kName, "leaf"); });
  for (int i = 0; i < 500; ++i) {
    graph = message([&](pbf_writer& w) {
      w.add_message(g::kNode, node("If", {}, {"y"},
                                   {attribute("then_branch", 5, [&](pbf_writer& a) { a.add_message(6, graph); })}));
    });
  }
  const Error e = read_error(message([&](pbf_writer& w) {
    w.add_int64(1, 8);
    w.add_message(7, graph);
    w.add_message(8, opset("", 17));
  }));
  CHECK(e.code() == ErrorCode::InvalidModel);
  CHECK(contains(e, "nested deeper"));

  std::string type =
      message([](pbf_writer& w) { w.add_message(1, message([](pbf_writer& t) { t.add_int32(1, 1); })); });
  for (int i = 0; i < 200; ++i)
    type = message([&](pbf_writer& w) { w.add_message(4, message([&](pbf_writer& s) { s.add_message(1, type); })); });
  CHECK(contains(read_error(model([&](pbf_writer& w) {
                   w.add_message(g::kInput, message([&](pbf_writer& v) {
                                   v.add_string(1, "x");
                                   v.add_message(2, type);
                                 }));
                 })),
                 "type of value 'x'"));
}

TEST_CASE("subgraphs see values of the graph around them") {
  const std::string then_graph = message([](pbf_writer& w) {
    w.add_message(g::kNode, node("Neg", {"x"}, {"t"}));
    w.add_message(g::kOutput, value("t"));
  });
  const graph::Model m = read(model([&](pbf_writer& w) {
    w.add_message(g::kNode, node("If", {"c"}, {"y"},
                                 {attribute("then_branch", 5, [&](pbf_writer& a) { a.add_message(6, then_graph); })}));
    w.add_message(g::kInput, value("x"));
    w.add_message(g::kInput, value("c", 9));
    w.add_message(g::kOutput, value("y"));
  }));
  const auto captured = graph::implicit_inputs(m.graph->node(0));
  REQUIRE(captured.size() == 1);
  CHECK(m.graph->value(captured[0]).name == "x");
}

TEST_CASE("local functions are inlined, except kept domains") {
  const auto make = [](std::string_view domain) {
    return model(
        [&](pbf_writer& w) {
          std::string n = node("F", {"x"}, {"y"}, {attribute("a", 1, [](pbf_writer& at) { at.add_float(2, 3); })});
          pbf_writer(n).add_string(onnx::node_field::kDomain, domain.data(), domain.size());
          w.add_message(g::kNode, n);
          w.add_message(g::kInput, value("x"));
          w.add_message(g::kOutput, value("y"));
        },
        [&](pbf_writer& w) {
          w.add_message(onnx::model_field::kOpsetImport, opset(domain, 1));
          w.add_message(
              onnx::model_field::kFunctions, message([&](pbf_writer& f) {
                namespace ff = onnx::function_field;
                f.add_string(ff::kName, "F");
                f.add_string(ff::kDomain, domain.data(), domain.size());
                f.add_string(ff::kInput, "p");
                f.add_string(ff::kInput, "q");
                f.add_string(ff::kOutput, "r");
                f.add_string(ff::kAttribute, "a");
                f.add_message(ff::kAttributeProto, attribute("b", 2, [](pbf_writer& at) { at.add_int64(3, 9); }));
                f.add_message(ff::kOpsetImport, opset("", 15));
                const auto ref = [](const char* name, const char* source, int type) {
                  return message([&](pbf_writer& at) {
                    at.add_string(onnx::attribute_field::kName, name);
                    at.add_string(onnx::attribute_field::kRefAttrName, source);
                    at.add_int32(onnx::attribute_field::kType, type);
                  });
                };
                f.add_message(ff::kNode, node("Op", {"p", "q"}, {"r"},
                                              {ref("alpha", "a", 1), ref("beta", "b", 2), ref("gone", "c", 2)}));
              }));
        });
  };
  const graph::Model m = read(make("mine"));
  REQUIRE(m.graph->node_count() == 1);
  const graph::Node& n = m.graph->node(0);
  CHECK(n.op_type == "Op");
  CHECK(n.opset == 15);
  CHECK(n.inputs.size() == 1);
  CHECK(n.attributes.get_float("alpha") == 3.f);
  CHECK(n.attributes.get_int("beta") == 9);
  CHECK_FALSE(n.attributes.has("gone"));
  CHECK_FALSE(n.provenance.empty());
}

TEST_CASE("functions of one name are told apart by their overload") {
  namespace f = onnx::function_field;
  const auto call = [](const char* overload, const char* output) {
    std::string n = node("F", {"x"}, {output});
    pbf_writer w(n);
    w.add_string(onnx::node_field::kDomain, "mine");
    w.add_string(onnx::node_field::kOverload, overload);
    return n;
  };
  const auto function = [](const char* overload, const char* op) {
    return message([&](pbf_writer& w) {
      w.add_string(f::kName, "F");
      w.add_string(f::kDomain, "mine");
      w.add_string(f::kOverload, overload);
      w.add_string(f::kInput, "p");
      w.add_string(f::kOutput, "r");
      w.add_message(f::kOpsetImport, opset("", 18));
      w.add_message(f::kNode, node(op, {"p"}, {"r"}));
    });
  };
  const graph::Model m = read(model(
      [&](pbf_writer& w) {
        w.add_message(g::kNode, call("a", "y"));
        w.add_message(g::kNode, call("b", "z"));
        w.add_message(g::kInput, value("x"));
        w.add_message(g::kOutput, value("y"));
        w.add_message(g::kOutput, value("z"));
      },
      [&](pbf_writer& w) {
        w.add_message(onnx::model_field::kOpsetImport, opset("mine", 1));
        w.add_message(onnx::model_field::kFunctions, function("a", "Neg"));
        w.add_message(onnx::model_field::kFunctions, function("b", "Abs"));
      }));
  const auto maker = [&](const char* name) {
    return m.graph->node(m.graph->value(m.graph->find_value(name)).producer).op_type;
  };
  CHECK(maker("y") == "Neg");
  CHECK(maker("z") == "Abs");
}

TEST_CASE("a file is mapped, and what is large and aligned views the mapping") {
  const TemporaryFolder folder;
  const std::string data(1 << 20, '\2');
  const std::string path =
      folder.write("m.onnx", model_of({tensor_proto("w", 3, {1 << 20}, [&](pbf_writer& w) { w.add_bytes(9, data); })}));
  graph::Model m = onnx::read_model_file(path);
  REQUIRE(m.files.size() == 1);
  CHECK(m.files[0] == file_identity(path));
  const tensor::Tensor w = constant(m, "w");
  CHECK_FALSE(w.buffer().writable());
  m = {};
  CHECK(w.data<int8_t>()[(1 << 20) - 1] == 2);

  int mapped = 0;
  onnx::ReadOptions options;
  options.map = [&](const std::string& p) {
    ++mapped;
    return std::make_shared<const MappedFile>(p);
  };
  (void)onnx::read_model_file(path, options);
  CHECK(mapped == 1);
}

TEST_CASE("a missing file") {
  const Error e = error_of([] { (void)onnx::read_model_file("no/such/model.onnx"); });
  CHECK(e.code() == ErrorCode::Io);
  CHECK(contains(e, "Load model from no/such/model.onnx failed"));
  CHECK(contains(e, "File doesn't exist"));
  CHECK(contains(e, cat("(", to_utf8(std::filesystem::absolute("no/such/model.onnx")), ")")));
  CHECK(e.context().path == "no/such/model.onnx");
  const Error folder = error_of([] { (void)onnx::read_model_file("."); });
  CHECK(folder.code() == ErrorCode::Io);
  CHECK(contains(folder, "not a regular file"));
}

TEST_CASE("reading ends where the checkpoint throws, in either format") {
  std::string nodes;
  for (int i = 0; i < 20; ++i) nodes += infernode::cat("v", i + 1, " = Sin(v", i, ")  ");
  const graph::Model written = graph::parse_model(infernode::cat("(float v0) => (v20) { ", nodes, " }"));
  const onnx::OrtWriteOptions ort{.describe = [](const graph::Node& node) {
    onnx::OrtOperator op;
    op.since_version = node.opset;
    return op;
  }};
  for (const std::vector<std::byte>& bytes : {onnx::write_model_bytes(written), onnx::write_ort_bytes(written, ort)}) {
    const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes.size());
    std::ranges::copy(bytes, buffer.data());
    int calls = 0, last = -1;
    onnx::ReadOptions options;
    options.checkpoint = [&] {
      if (++calls == last) fail(ErrorCode::Aborted, "enough");
    };
    CHECK(onnx::read_model_bytes(buffer, options).graph->node_count() == 20);
    const int all = calls;
    CHECK(all >= 40);  // as they are read and as they become a graph
    for (last = 1; last <= all; ++last) {
      calls = 0;
      CHECK_THROWS_WITH_AS(onnx::read_model_bytes(buffer, options), "enough", Error);
      CHECK(calls == last);
    }
  }
}

TEST_CASE("of initializers that share a name the last counts, with a warning") {
  const auto number = [](const char* name, float x) {
    return tensor_proto(name, 1, {1}, [x](pbf_writer& d) { d.add_float(4, x); });
  };
  const auto twice = [number](const std::function<void(pbf_writer&)>& more) {
    return model([&](pbf_writer& w) {
      w.add_message(g::kNode, node("MatMul", {"x", "w"}, {"y"}));
      w.add_message(g::kInput, value("x"));
      more(w);
      w.add_message(g::kInitializer, number("w", 1));
      w.add_message(g::kInitializer, number("v", 3));
      w.add_message(g::kInitializer, number("w", 2));
      w.add_message(g::kOutput, value("y"));
    });
  };
  std::string heard;
  const Logger logger(LogSeverity::Warning, "",
                      [&](LogSeverity, std::string_view, std::string_view text) { heard += text; });
  onnx::ReadOptions options;
  options.logger = &logger;
  const std::string once = twice([](pbf_writer&) {});
  const graph::Model m = read(once, options);
  CHECK(tensor::to_float_vector(constant(m, "w")) == tensor::to_float_vector(constant(read(once), "w")));
  CHECK(tensor::to_float_vector(constant(m, "w"))[0] == 2);
  CHECK(heard == "initializer 'w' is given more than once; the last counts");
  const graph::Model fed = read(twice([](pbf_writer& w) { w.add_message(g::kInput, value("w")); }));
  CHECK(tensor::to_float_vector(fed.graph->value(fed.graph->find_value("w")).constant.tensor())[0] == 2);
}

TEST_CASE("of metadata that share a key the last counts, and their number does not matter") {
  const graph::Model m = read(model(
      [](pbf_writer& w) {
        w.add_message(g::kInput, value("x"));
        w.add_message(g::kOutput, value("x"));
      },
      [](pbf_writer& w) {
        for (int i = 0; i < 50000; ++i)
          w.add_message(onnx::model_field::kMetadata, entry(std::to_string(i % 40000), std::to_string(i)));
      }));
  REQUIRE(m.info.metadata.size() == 40000);
  CHECK(m.info.metadata[5] == std::pair<std::string, std::string>("5", "40005"));
  CHECK(m.info.metadata[39999].second == "39999");
}
