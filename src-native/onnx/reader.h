#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/mapped_file.h"
#include "graph/graph.h"
#include "tensor/buffer.h"

namespace infernode::onnx {

/// Maps a file for reading; sessions over one file may share the mapping.
using FileMapper = std::function<std::shared_ptr<const MappedFile>(const std::string& path)>;

struct ReadOptions {
  /// externalData: path as the model spells it -> its bytes. Looked up before the file system.
  std::map<std::string, tensor::Buffer, std::less<>> external_data;
  /// Where external files of a model given as bytes are looked for; "": the current directory. A model file's own folder otherwise.
  std::string external_folder;
  FileMapper map;  ///< empty: every file is mapped anew
  const Logger* logger = nullptr;
};

/// Reads a model file (ONNX protobuf; told by its contents), mapped: initializers view the mapping and keep it alive. Model-local functions are
/// inlined, the graph is verified. Throws Error: Io (cannot be opened), InvalidModel (says what the file looks like), UnsupportedOperator never.
graph::Model read_model_file(const std::string& path, const ReadOptions& options = {});

/// The same from bytes; initializers view `bytes` and share its owner.
graph::Model read_model_bytes(const tensor::Buffer& bytes, const ReadOptions& options = {});

}  // namespace infernode::onnx
