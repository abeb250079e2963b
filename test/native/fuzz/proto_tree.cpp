#include "fuzz/proto_tree.h"

#include <stdexcept>

#include "onnx/fields.h"

namespace infernode::fuzz {
namespace {

Kind kind_in_attribute(std::uint32_t number) {
  using namespace onnx;
  switch (number) {
    case attribute_field::kT:
    case attribute_field::kTensors:
      return Kind::Tensor;
    case attribute_field::kG:
    case attribute_field::kGraphs:
      return Kind::Graph;
    case attribute_field::kTypeProto:
    case attribute_field::kTypeProtos:
      return Kind::Type;
    case attribute_field::kSparseTensor:
    case attribute_field::kSparseTensors:
      return Kind::Sparse;
    default:
      return Kind::Leaf;
  }
}

Kind kind_in_type(std::uint32_t number) {
  using namespace onnx;
  switch (number) {
    case type_field::kTensor:
    case type_field::kSparseTensor:
      return Kind::TensorType;
    case type_field::kSequence:
    case type_field::kOptional:
      return Kind::ElementType;
    case type_field::kMap:
      return Kind::MapType;
    default:
      return Kind::Leaf;
  }
}

Kind kind_of(Kind parent, std::uint32_t number) {
  using namespace onnx;
  switch (parent) {
    case Kind::Model:
      return number == model_field::kGraph         ? Kind::Graph
             : number == model_field::kOpsetImport ? Kind::Opset
             : number == model_field::kMetadata    ? Kind::Entry
             : number == model_field::kFunctions   ? Kind::Function
                                                   : Kind::Leaf;
    case Kind::Graph:
      switch (number) {
        case graph_field::kNode:
          return Kind::Node;
        case graph_field::kInitializer:
          return Kind::Tensor;
        case graph_field::kSparseInitializer:
          return Kind::Sparse;
        case graph_field::kInput:
        case graph_field::kOutput:
        case graph_field::kValueInfo:
          return Kind::ValueInfo;
        default:
          return Kind::Leaf;
      }
    case Kind::Function:
      switch (number) {
        case function_field::kNode:
          return Kind::Node;
        case function_field::kOpsetImport:
          return Kind::Opset;
        case function_field::kAttributeProto:
          return Kind::Attribute;
        case function_field::kValueInfo:
          return Kind::ValueInfo;
        default:
          return Kind::Leaf;
      }
    case Kind::Node:
      return number == node_field::kAttribute ? Kind::Attribute : Kind::Leaf;
    case Kind::Attribute:
      return kind_in_attribute(number);
    case Kind::Tensor:
      return number == tensor_field::kExternalData ? Kind::Entry : Kind::Leaf;
    case Kind::Sparse:
      return number == sparse_field::kDims ? Kind::Leaf : Kind::Tensor;
    case Kind::ValueInfo:
      return number == value_field::kType ? Kind::Type : Kind::Leaf;
    case Kind::Type:
      return kind_in_type(number);
    case Kind::TensorType:
      return number == tensor_type_field::kShape ? Kind::Shape : Kind::Leaf;
    case Kind::ElementType:
      return Kind::Type;
    case Kind::MapType:
      return number == map_type_field::kValueType ? Kind::Type : Kind::Leaf;
    case Kind::Shape:
      return Kind::Dim;
    default:
      return Kind::Leaf;
  }
}

enum class Packed : std::uint8_t { No, Varint, Fixed32, Fixed64 };

Packed packed_as(Kind parent, std::uint32_t number) {
  using namespace onnx;
  if (parent == Kind::Attribute)
    return number == attribute_field::kInts     ? Packed::Varint
           : number == attribute_field::kFloats ? Packed::Fixed32
                                                : Packed::No;
  if (parent == Kind::Sparse) return number == sparse_field::kDims ? Packed::Varint : Packed::No;
  if (parent != Kind::Tensor) return Packed::No;
  switch (number) {
    case tensor_field::kDims:
    case tensor_field::kInt32Data:
    case tensor_field::kInt64Data:
    case tensor_field::kUint64Data:
      return Packed::Varint;
    case tensor_field::kFloatData:
      return Packed::Fixed32;
    case tensor_field::kDoubleData:
      return Packed::Fixed64;
    default:
      return Packed::No;
  }
}

class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 127) << shift;
      if (byte < 128) break;
    }
    return value;
  }
  std::uint64_t fixed(std::size_t size) {
    const std::string_view bytes = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) throw std::runtime_error("a seed model is cut off");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

 private:
  std::string_view rest_;
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

}  // namespace

std::vector<Field> parse(std::string_view bytes, Kind kind) {
  using Wire = Field::Wire;
  std::vector<Field> out;
  for (Cursor at(bytes); !at.done();) {
    const std::uint64_t key = at.varint();
    Field field;
    field.number = static_cast<std::uint32_t>(key >> 3);
    field.wire = static_cast<Wire>(key & 7);
    if (field.wire != Wire::Bytes) {
      field.scalar = field.wire == Wire::Varint ? at.varint() : at.fixed(field.wire == Wire::Fixed32 ? 4 : 8);
      out.push_back(std::move(field));
      continue;
    }
    const std::string_view content = at.take(at.varint());
    const Packed packed = packed_as(kind, field.number);
    if (packed != Packed::No) {
      field.wire = packed == Packed::Varint ? Wire::Varint : packed == Packed::Fixed32 ? Wire::Fixed32 : Wire::Fixed64;
      for (Cursor item(content); !item.done();) {
        field.scalar = field.wire == Wire::Varint ? item.varint() : item.fixed(field.wire == Wire::Fixed32 ? 4 : 8);
        out.push_back(field);
      }
      continue;
    }
    field.kind = kind_of(kind, field.number);
    if (field.kind == Kind::Leaf) {
      field.bytes = content;
    } else {
      field.children = parse(content, field.kind);
    }
    out.push_back(std::move(field));
  }
  return out;
}

std::string write(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    put_varint(out, static_cast<std::uint64_t>(field.number) << 3 | static_cast<std::uint64_t>(field.wire));
    switch (field.wire) {
      case Field::Wire::Varint:
        put_varint(out, field.scalar);
        break;
      case Field::Wire::Fixed32:
      case Field::Wire::Fixed64:
        for (int i = 0; i < (field.wire == Field::Wire::Fixed32 ? 4 : 8); ++i)
          out += static_cast<char>(field.scalar >> (8 * i));
        break;
      case Field::Wire::Bytes: {
        const std::string content = field.kind == Kind::Leaf ? field.bytes : write(field.children);
        put_varint(out, content.size());
        out += content;
        break;
      }
    }
  }
  return out;
}

std::vector<Place> places(std::vector<Field>& fields, Kind kind) {
  std::vector<Place> out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    out.push_back({&fields, i, kind});
    if (fields[i].kind == Kind::Leaf) continue;
    for (const Place& inner : places(fields[i].children, fields[i].kind)) out.push_back(inner);
  }
  return out;
}

}  // namespace infernode::fuzz
