#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "graph/definition.h"
#include "graph/graph.h"

namespace infernode::onnx {

struct WriteOptions {
  /// Tensors of at least this many bytes go to `<file name>.data` next to the model, smaller ones too where the model
  /// would exceed `most_bytes`; SIZE_MAX: none, unless it would.
  std::size_t external_threshold = SIZE_MAX;
  /// Of the model itself: what protobuf's own parsers accept.
  std::size_t most_bytes = (std::size_t{1} << 31) - 1;
  /// Its name there; "": `<file name>.data`.
  std::string external_name{};
  /// Model-local functions to add: definitions of operators that other runtimes do not know.
  std::vector<graph::FunctionDef> functions{};
  /// A model imports one version of each domain, but a node may come from another one (a function's body). Where this
  /// says that the node means the same in the imported version, it is written as it is; otherwise (and where empty)
  /// through a function that imports the node's own version.
  std::function<bool(const graph::Node& node, std::int64_t imported)> means_the_same{};
  std::function<void()> checkpoint{};  ///< called at each node and each tensor; throws where writing is to end
};

/// ONNX protobuf bytes; throws InvalidModel where they would exceed 2 GB.
std::vector<std::byte> write_model_bytes(const graph::Model& model, const WriteOptions& options = {});
/// Writes atomically (temporary file, then rename). Says whether there is external data, too. Throws Io ("open file ...
/// failed") naming the path.
bool write_model_file(const graph::Model& model, const std::string& path, const WriteOptions& options = {});

}  // namespace infernode::onnx
