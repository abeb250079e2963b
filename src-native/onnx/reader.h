#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "graph/definition.h"
#include "graph/graph.h"
#include "tensor/buffer.h"

namespace infernode::onnx {

/// Maps a file for reading; sessions over one file may share the mapping.
using FileMapper = std::function<std::shared_ptr<const MappedFile>(const std::string& path)>;

/// What a model's bytes are: told by their contents, or stated.
enum class FileFormat : std::uint8_t { Detect, Onnx, Ort };

inline constexpr std::size_t kMaxStructureBytes = 80'000'000;

struct ReadOptions {
  /// externalData: path as the model spells it -> its bytes. Where any are given, all that the model needs must be.
  std::map<std::string, tensor::Buffer, std::less<>> external_data;
  /// Where external files are looked for; "": a model file's own folder, the current directory for a model given as
  /// bytes.
  std::string external_folder;
  FileMapper map;  ///< empty: every file is mapped anew
  const Logger* logger = nullptr;
  /// Sparse initializers and the sparse values of Constants become dense tensors, of at most this many bytes in all.
  std::size_t max_dense_bytes = std::size_t{2} << 30;
  /// What nodes, values and properties may take until they are checked: StructureBudget.
  std::size_t max_structure_bytes = kMaxStructureBytes;
  FileFormat format = FileFormat::Detect;
  std::function<void()> checkpoint{};  ///< called at each node; throws where reading is to end
};

inline FunctionRef<void()> checkpoint_of(const ReadOptions& options) {
  return options.checkpoint ? FunctionRef<void()>(options.checkpoint) : FunctionRef<void()>();
}

/// Keeps the last of initializers that share a name, as the files of old converters have them, with a warning.
void keep_last_initializers(graph::GraphDef& def, const Logger* logger);

/// Newest version of the format that is read.
inline constexpr std::int64_t kMaxIrVersion = 14;

/// Reads a model file (ONNX protobuf or ORT format), mapped: initializers that are large and aligned view the
/// mapping and keep it alive, others are copied. Model-local functions are
/// inlined, the graph is verified. Throws Error: Io (cannot be opened), InvalidModel (says what the file looks like),
/// UnsupportedOperator never.
graph::Model read_model_file(const std::string& path, const ReadOptions& options = {});

/// The same from bytes; initializers view `bytes` and share its owner.
graph::Model read_model_bytes(const tensor::Buffer& bytes, const ReadOptions& options = {});

/// A lone TensorProto, such as the standard's test vectors. The tensor owns its memory.
tensor::Tensor read_tensor(std::span<const std::byte> bytes);

}  // namespace infernode::onnx
