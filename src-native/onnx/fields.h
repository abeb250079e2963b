#pragma once
// Field numbers and enums of onnx.proto, for reader and writer.

#include <cstdint>

namespace infernode::onnx {

namespace model_field {
enum : uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kDomain = 4,
  kModelVersion = 5,
  kDoc = 6,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14,
  kFunctions = 25
};
}
namespace opset_field {
enum : uint32_t { kDomain = 1, kVersion = 2 };
}
namespace entry_field {  // StringStringEntryProto
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace graph_field {
enum : uint32_t {
  kNode = 1,
  kName = 2,
  kInitializer = 5,
  kDoc = 10,
  kInput = 11,
  kOutput = 12,
  kValueInfo = 13,
  kSparseInitializer = 15
};
}
namespace value_field {  // ValueInfoProto
enum : uint32_t { kName = 1, kType = 2 };
}
namespace node_field {
enum : uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDoc = 6,
  kDomain = 7,
  kOverload = 8
};
}
namespace attribute_field {
enum : uint32_t {
  kName = 1,
  kF = 2,
  kI = 3,
  kS = 4,
  kT = 5,
  kG = 6,
  kFloats = 7,
  kInts = 8,
  kStrings = 9,
  kTensors = 10,
  kGraphs = 11,
  kTypeProto = 14,
  kTypeProtos = 15,
  kType = 20,
  kRefAttrName = 21,
  kSparseTensor = 22,
  kSparseTensors = 23
};
}
enum class AttributeType : int32_t {
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
  SparseTensor = 11,
  SparseTensors = 12,
  TypeProto = 13,
  TypeProtos = 14
};
namespace tensor_field {
enum : uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDoc = 12,
  kExternalData = 13,
  kDataLocation = 14
};
}
namespace sparse_field {
enum : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
}
namespace type_field {
enum : uint32_t { kTensor = 1, kSequence = 4, kMap = 5, kSparseTensor = 8, kOptional = 9 };
}
namespace tensor_type_field {  // and TypeProto.SparseTensor
enum : uint32_t { kElemType = 1, kShape = 2 };
}
namespace element_type_field {  // TypeProto.Sequence and TypeProto.Optional
enum : uint32_t { kElemType = 1 };
}
namespace map_type_field {
enum : uint32_t { kKeyType = 1, kValueType = 2 };
}
namespace shape_field {
enum : uint32_t { kDim = 1 };
}
namespace dim_field {
enum : uint32_t { kValue = 1, kParam = 2 };
}
namespace function_field {
enum : uint32_t {
  kName = 1,
  kInput = 4,
  kOutput = 5,
  kAttribute = 6,
  kNode = 7,
  kDoc = 8,
  kOpsetImport = 9,
  kDomain = 10,
  kAttributeProto = 11,
  kValueInfo = 12,
  kOverload = 13
};
}

}  // namespace infernode::onnx
