#pragma once
// Fields of the tables of the ORT format (ONNX Runtime's flatbuffers), by position in their table. As laid down in its
// published schema; fields that are deprecated there are left out.

#include <cstdint>
#include <string_view>

namespace infernode::onnx::ort {

/// Bytes 4 to 8 of every file.
inline constexpr std::string_view kIdentifier = "ORTM";
/// Versions of the format: the oldest and newest read; the newest is written.
inline constexpr std::int64_t kOldestVersion = 1;
inline constexpr std::int64_t kNewestVersion = 6;

namespace session {
inline constexpr int kVersion = 0, kModel = 1, kTypeNames = 3;
}
namespace model {
inline constexpr int kIrVersion = 0, kOpsetImport = 1, kProducerName = 2, kProducerVersion = 3, kDomain = 4,
                     kModelVersion = 5, kDoc = 6, kGraph = 7, kGraphDoc = 8, kMetadata = 9;
}
namespace graph {
inline constexpr int kInitializers = 0, kValues = 1, kNodes = 2, kMaxNodeIndex = 3, kEdges = 4, kInputs = 5,
                     kOutputs = 6, kSparseInitializers = 7;
}
namespace node {
inline constexpr int kName = 0, kDoc = 1, kDomain = 2, kSinceVersion = 3, kIndex = 4, kOpType = 5, kType = 6,
                     kProvider = 7, kInputs = 8, kOutputs = 9, kAttributes = 10, kInputCounts = 11,
                     kImplicitInputs = 12;
}
namespace edges {
inline constexpr int kNode = 0, kInputs = 1, kOutputs = 2;
}
namespace value {
inline constexpr int kName = 0, kDoc = 1, kType = 2;
}
namespace type {
inline constexpr int kKind = 1, kValue = 2;
/// What the union holds.
inline constexpr std::uint8_t kTensor = 1, kSequence = 2, kMap = 3;
}  // namespace type
namespace tensor_type {
inline constexpr int kElement = 0, kShape = 1;
}
namespace sequence_type {
inline constexpr int kElement = 0;
}
namespace map_type {
inline constexpr int kKey = 0, kValue = 1;
}
namespace shape {
inline constexpr int kDims = 0;
}
namespace dim {
inline constexpr int kValue = 0;
}
namespace dim_value {
inline constexpr int kKind = 0, kSize = 1, kSymbol = 2;
inline constexpr std::int8_t kIsSize = 1, kIsSymbol = 2;
}  // namespace dim_value
namespace tensor {
inline constexpr int kName = 0, kDoc = 1, kDims = 2, kType = 3, kRaw = 4, kStrings = 5, kExternalOffset = 6;
}
namespace sparse {
inline constexpr int kValues = 0, kIndices = 1, kDims = 2;
}
namespace attribute {
inline constexpr int kName = 0, kDoc = 1, kType = 2, kFloat = 3, kInt = 4, kString = 5, kTensor = 6, kGraph = 7,
                     kFloats = 8, kInts = 9, kStrings = 10, kTensors = 11, kGraphs = 12;
}
/// Domain and version of an operator set; key and value of metadata.
namespace pair {
inline constexpr int kFirst = 0, kSecond = 1;
}
namespace type_names {
inline constexpr int kOperators = 0;              // of the table itself
inline constexpr int kOperator = 0, kNames = 1;   // of an operator's entry
inline constexpr int kName = 0, kArguments = 1;   // of a type's name
inline constexpr int kDirection = 0, kIndex = 1;  // of an argument
inline constexpr std::int8_t kInput = 0, kOutput = 1;
}  // namespace type_names

/// Codes of an attribute's type that differ from nothing in ONNX's: FLOAT 1, INT 2, ... GRAPHS 10.
enum class AttributeCode : std::int32_t {
  Undefined = 0,
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
};

}  // namespace infernode::onnx::ort
