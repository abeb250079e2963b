#pragma once
// A model in ORT format as a list of the places that give it its shape. Flatbuffers are changed where they lie: tables
// refer to one another by distances, so nothing can be taken out.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace infernode::fuzz {

enum class OrtKind : std::uint8_t {
  Session,
  Model,
  Graph,
  Node,
  Edges,
  Value,
  Type,
  TensorType,
  SequenceType,
  MapType,
  Shape,
  Dim,
  DimValue,
  Tensor,
  Sparse,
  Attribute,
  Opset,
  Metadata,
  TypeNames,
  OperatorNames,
  TypeName,
  Argument,
  None  ///< what an offset leads to is no table
};

struct OrtSpot {
  enum class What : std::uint8_t {
    Scalar,   ///< a number in a table, of `size` bytes
    Offset,   ///< leads to a table of kind `leads`
    Text,     ///< an offset that leads to a string
    Numbers,  ///< an offset that leads to a vector of numbers, each of `size` bytes
    List,     ///< an offset that leads to a vector of offsets
    Count,    ///< of a vector or a string
    Element,  ///< a number of a vector, of `size` bytes
    Layout,   ///< a table's distance to its vtable
    Entry     ///< a field's place in a vtable
  } what;
  std::size_t at;     ///< in the file
  std::size_t size;   ///< in bytes
  OrtKind owner;      ///< the kind of the table that it belongs to
  int field;          ///< of that table
  std::size_t table;  ///< where that table is
  OrtKind leads = OrtKind::None;
};

/// Every place of a well-formed file, each table's once.
std::vector<OrtSpot> ort_spots(std::string_view file);

}  // namespace infernode::fuzz
