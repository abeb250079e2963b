#pragma once
// A protobuf message of onnx.proto as a tree that can be edited: lengths are worked out anew when it is written, so an
// edit changes what the model means instead of tearing its frame.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infernode::fuzz {

enum class Kind : std::uint8_t {
  Leaf,  ///< an integer, a float, text or bytes
  Model,
  Graph,
  Node,
  Attribute,
  Tensor,
  Sparse,
  ValueInfo,
  Type,
  TensorType,
  ElementType,
  MapType,
  Shape,
  Dim,
  Opset,
  Entry,
  Function
};

struct Field {
  std::uint32_t number = 0;
  enum class Wire : std::uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 } wire = Wire::Varint;
  Kind kind = Kind::Leaf;       ///< of a Bytes field: what message it is
  std::uint64_t scalar = 0;     ///< Varint, Fixed32, Fixed64
  std::string bytes;            ///< Bytes fields that are no message
  std::vector<Field> children;  ///< fields of a message
};

/// The fields of a well-formed message. Packed numbers become fields of their own.
std::vector<Field> parse(std::string_view bytes, Kind kind);
std::string write(const std::vector<Field>& fields);

/// A field and the message that it stands in.
struct Place {
  std::vector<Field>* siblings;
  std::size_t index;
  Kind parent;
  Field& field() const { return (*siblings)[index]; }
};
/// Every field of a tree, outer ones first.
std::vector<Place> places(std::vector<Field>& fields, Kind kind);

}  // namespace infernode::fuzz
