#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace infernode::onnx {

struct WriteOptions {
  /// Tensors of at least this many bytes go to `<file name>.data` next to the model; SIZE_MAX: none, unless the model would exceed 2 GB.
  std::size_t external_threshold = SIZE_MAX;
};

/// ONNX protobuf bytes; throws InvalidModel where they would exceed 2 GB.
std::vector<std::byte> write_model_bytes(const graph::Model& model);
/// Writes atomically (temporary file, then rename). Throws Io ("open file ... failed") naming the path.
void write_model_file(const graph::Model& model, const std::string& path, const WriteOptions& options = {});

}  // namespace infernode::onnx
