#pragma once
// Builds protobuf messages field by field, for tests of the reader.

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "onnx/fields.h"
#include "onnx/reader.h"

#ifndef protozero_assert
#define protozero_assert(x) static_cast<void>(0)
#endif
#include <protozero/pbf_writer.hpp>

namespace protos {

using infernode::Error;
using infernode::ErrorCode;
using protozero::pbf_writer;
namespace onnx = infernode::onnx;

inline std::string message(const std::function<void(pbf_writer&)>& fill) {
  std::string out;
  pbf_writer w(out);
  fill(w);
  return out;
}

inline std::string entry(std::string_view key, std::string_view value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, key.data(), key.size());
    w.add_string(2, value.data(), value.size());
  });
}

/// A TensorProto without data.
inline std::string tensor_proto(std::string_view name, int type, std::initializer_list<int64_t> dims,
                                const std::function<void(pbf_writer&)>& data = {}) {
  return message([&](pbf_writer& w) {
    w.add_packed_int64(onnx::tensor_field::kDims, dims.begin(), dims.end());
    w.add_int32(onnx::tensor_field::kDataType, type);
    w.add_string(onnx::tensor_field::kName, name.data(), name.size());
    if (data) data(w);
  });
}

inline std::string external(std::string_view name, int type, std::initializer_list<int64_t> dims,
                            std::string_view location, std::string_view offset = "", std::string_view length = "") {
  return tensor_proto(name, type, dims, [&](pbf_writer& w) {
    w.add_message(onnx::tensor_field::kExternalData, entry("location", location));
    if (!offset.empty()) w.add_message(onnx::tensor_field::kExternalData, entry("offset", offset));
    if (!length.empty()) w.add_message(onnx::tensor_field::kExternalData, entry("length", length));
    w.add_int32(onnx::tensor_field::kDataLocation, 1);
  });
}

inline std::string node(std::string_view op, std::initializer_list<const char*> inputs,
                        std::initializer_list<const char*> outputs,
                        std::initializer_list<std::string> attributes = {}) {
  return message([&](pbf_writer& w) {
    for (const char* i : inputs) w.add_string(onnx::node_field::kInput, i);
    for (const char* o : outputs) w.add_string(onnx::node_field::kOutput, o);
    w.add_string(onnx::node_field::kOpType, op.data(), op.size());
    for (const std::string& a : attributes) w.add_message(onnx::node_field::kAttribute, a);
  });
}

inline std::string value(std::string_view name, int elem = 1) {
  return message([&](pbf_writer& w) {
    w.add_string(onnx::value_field::kName, name.data(), name.size());
    w.add_message(onnx::value_field::kType, message([&](pbf_writer& t) {
                    t.add_message(onnx::type_field::kTensor, message([&](pbf_writer& e) {
                                    e.add_int32(onnx::tensor_type_field::kElemType, elem);
                                  }));
                  }));
  });
}

/// A ModelProto of IR version 8 and opset 17 around a graph.
inline std::string model(const std::function<void(pbf_writer&)>& graph,
                         const std::function<void(pbf_writer&)>& more = {}, int64_t ir_version = 8) {
  return message([&](pbf_writer& w) {
    w.add_int64(onnx::model_field::kIrVersion, ir_version);
    w.add_message(onnx::model_field::kGraph, message(graph));
    w.add_message(onnx::model_field::kOpsetImport, message([](pbf_writer& o) {
                    o.add_string(onnx::opset_field::kDomain, "");
                    o.add_int64(onnx::opset_field::kVersion, 17);
                  }));
    if (more) more(w);
  });
}

/// y = Identity(first of the tensors), all of them initializers.
inline std::string model_of(std::initializer_list<std::string> tensors, const char* first = "w") {
  return model([&](pbf_writer& g) {
    g.add_message(onnx::graph_field::kNode, node("Identity", {first}, {"y"}));
    g.add_string(onnx::graph_field::kName, "g");
    for (const std::string& t : tensors) g.add_message(onnx::graph_field::kInitializer, t);
    g.add_message(onnx::graph_field::kOutput, value("y"));
  });
}

/// The model in bytes that nothing owns.
inline infernode::graph::Model read(const std::string& bytes, const onnx::ReadOptions& options = {}) {
  return onnx::read_model_bytes(
      infernode::tensor::Buffer(const_cast<char*>(bytes.data()), bytes.size(), nullptr, {}, false), options);
}

inline infernode::tensor::Tensor constant(const infernode::graph::Model& model, std::string_view name) {
  return model.graph->value(model.graph->find_value(name)).constant.tensor();
}

/// The error that `f` throws; code Internal and no text where it throws none.
inline Error error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorCode::Internal, "");
}
inline Error read_error(const std::string& bytes, const onnx::ReadOptions& options = {}) {
  return error_of([&] { (void)read(bytes, options); });
}
inline bool contains(const Error& e, std::string_view part) { return e.message().find(part) != std::string::npos; }

/// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    for (int i = 0;; ++i) {
      path_ = std::filesystem::temp_directory_path() /
              infernode::cat("infernode-onnx-", i, "-", reinterpret_cast<uintptr_t>(this));
      if (std::filesystem::create_directory(path_)) return;
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
}

}  // namespace protos
