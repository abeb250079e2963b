#include "onnx/diagnose.h"

#include <doctest/doctest.h>

#include "protos.h"

using namespace infernode;
using namespace protos;

namespace {
struct Foreign {
  const char* part;
  std::string bytes;
};
std::string relu() {
  return model([](pbf_writer& w) {
    w.add_message(onnx::graph_field::kNode, node("Relu", {"x"}, {"y"}));
    w.add_message(onnx::graph_field::kInput, value("x"));
    w.add_message(onnx::graph_field::kOutput, value("y"));
  });
}
}  // namespace

TEST_CASE("files that are no models are called by their name") {
  std::string tar(512, 'a');
  tar.replace(257, 5, "ustar");
  const Foreign all[] = {
      {"empty", ""},
      {"HTML page", "<!DOCTYPE html><html><body>404</body></html>"},
      {"HTML page", "\n  <html lang='en'>"},
      {"XML document", "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"},
      {"git lfs pull", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"},
      {"12345 bytes", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"},
      {"zip archive", std::string("PK\x03\x04", 4) + "model.onnx"},
      {"torch.onnx.export", std::string("PK\x03\x04", 4) + "archive/data.pkl"},
      {"gzip archive", "\x1f\x8b\x08 rest"},
      {"safetensors", std::string("\x10\0\0\0\0\0\0\0", 8) + "{\"w\":{\"dtype\":1}} and data"},
      {"GGUF", "GGUF\x03 rest"},
      {"TensorFlow Lite", std::string("\x1c\0\0\0TFL3 rest", 13)},
      {"JSON", " {\"error\": \"not found\"}"},
      {"plain text", "Not found"},
      {"plain text", "n\u00e3o encontrado \u2014 \u65e0"},
      {"pickle", std::string("\x80\x02}q\x01.", 6)},
      {"HDF5", "\x89HDF\r\n\x1a\n"},
      {"tar archive", tar},
      {"zeros", std::string(4096, '\0')},
      {"TensorFlow graph", message([](pbf_writer& w) { w.add_message(1, node("Relu", {"x"}, {"y"})); })},
  };
  for (const Foreign& f : all) {
    const Error e = read_error(f.bytes);
    CAPTURE(f.part);
    CAPTURE(e.message());
    CHECK(e.code() == ErrorCode::InvalidModel);
    CHECK(e.message().starts_with("Failed to load model because protobuf parsing failed."));
    CHECK(contains(e, f.part));
  }
}

TEST_CASE("the message names the file") {
  const TemporaryFolder folder;
  const std::string path = folder.write("m.onnx", "<html>");
  const Error e = error_of([&] { (void)onnx::read_model_file(path); });
  CHECK(e.message().starts_with(cat("Load model from ", path, " failed:Protobuf parsing failed.")));
  CHECK(contains(e, "HTML page"));
  CHECK(e.context().path == path);
}

TEST_CASE("a truncated model says where it ends") {
  const std::string bytes = relu();
  const Error e = read_error(bytes.substr(0, 20));
  CHECK(e.code() == ErrorCode::InvalidModel);
  CHECK(contains(e, "protobuf parsing failed"));
  CHECK(contains(e, "truncated at byte 20"));
}

TEST_CASE("damage inside says near which byte") {
  std::string bytes = relu();
  const size_t at = bytes.find("Relu");
  bytes[at - 1] = 127;  // length of the operator's name
  const Error e = read_error(bytes);
  CHECK(contains(e, "protobuf parsing failed"));
  CHECK(contains(e, cat("damaged near byte ", at - 2)));
}

TEST_CASE("a model without a graph") {
  CHECK(contains(read_error(message([](pbf_writer& w) { w.add_int64(1, 8); })), "holds no graph"));
}
