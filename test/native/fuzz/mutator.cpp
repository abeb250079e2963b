#include "fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "onnx/fields.h"
#include "tensor/dtype.h"

namespace infernode::fuzz {
namespace {

using Wire = Field::Wire;

constexpr std::array<std::int64_t, 17> kEdges{std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::numeric_limits<std::int32_t>::min(),
                                              std::numeric_limits<std::int32_t>::max(),
                                              std::int64_t{1} << 32,
                                              std::int64_t{1} << 33,
                                              std::int64_t{1} << 40,
                                              std::int64_t{1} << 61,
                                              std::int64_t{1} << 62,
                                              -(std::int64_t{1} << 62),
                                              65536,
                                              1 << 20,
                                              255,
                                              128,
                                              -128,
                                              1000,
                                              64};
constexpr std::array<std::uint32_t, 10> kFloats{0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                                0xff800000, 0x7fc00000, 0x7f7fffff, 0x00000001, 0x5f000000};

Field varint(std::uint32_t number, std::uint64_t value) {
  Field out;
  out.number = number;
  out.scalar = value;
  return out;
}

bool is_name(const Place& at) {
  using namespace onnx;
  const std::uint32_t n = at.field().number;
  return (at.parent == Kind::Node && (n == node_field::kInput || n == node_field::kOutput)) ||
         (at.parent == Kind::ValueInfo && n == value_field::kName) ||
         (at.parent == Kind::Tensor && n == tensor_field::kName);
}

}  // namespace

void Mutator::learn(std::string_view model) {
  std::vector<Field> fields = parse(model, Kind::Model);
  for (const Place& at : places(fields, Kind::Model)) {
    const Kind kind = at.field().kind;
    if (kind == Kind::Attribute || kind == Kind::Tensor || kind == Kind::Type || kind == Kind::Node)
      samples_.push_back({at.parent, at.field()});
  }
}

std::int64_t Mutator::integer() {
  return once_in(3) ? kEdges[below(kEdges.size())] : static_cast<std::int64_t>(below(12)) - 4;
}

std::uint32_t Mutator::float_bits() {
  if (once_in(2)) return kFloats[below(kFloats.size())];
  const float value = static_cast<float>(integer()) / 2;
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

std::string Mutator::mutate(std::string_view model) {
  std::vector<Field> fields = parse(model, Kind::Model);
  for (std::size_t edits = 1 + below(3); edits > 0; --edits) edit(fields);
  std::string bytes = write(fields);
  if (once_in(50)) scramble(bytes);
  return bytes;
}

std::string Mutator::tear(std::string_view model) {
  std::string bytes(model);
  for (std::size_t edits = 1 + below(4); edits > 0 && !bytes.empty(); --edits) {
    const std::size_t at = below(bytes.size());
    const std::size_t count = std::min(1 + below(once_in(4) ? 64 : 4), bytes.size() - at);
    switch (below(12)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.erase(at, count);
        break;
      case 2:
        bytes.insert(below(bytes.size()), bytes.substr(at, count));
        break;
      case 3:  // long varints, and lengths that reach far
        for (std::size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(0xff);
        break;
      case 4:
        bytes[at] = static_cast<char>(below(256));
        break;
      default:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
    }
  }
  return bytes;
}

std::vector<Field> Mutator::attributes_of(std::string_view op) {
  std::vector<const Field*> nodes;
  for (const Sample& sample : samples_) {
    if (sample.field.kind != Kind::Node) continue;
    for (const Field& part : sample.field.children)
      if (part.number == onnx::node_field::kOpType && part.bytes == op) nodes.push_back(&sample.field);
  }
  std::vector<Field> out;
  if (nodes.empty()) return out;
  for (const Field& part : nodes[below(nodes.size())]->children)
    if (part.kind == Kind::Attribute) out.push_back(part);
  while (!out.empty() && once_in(3)) edit(out, Kind::Node);
  return out;
}

void Mutator::edit(std::vector<Field>& model, Kind kind) {
  const std::vector<Place> all = places(model, kind);
  if (all.empty()) return;
  // The fields of a large tensor would hide all others: one of each message's is as good as another.
  Place at = all[below(all.size())];
  if (at.parent == Kind::Tensor && !once_in(4)) at = all[below(all.size())];
  switch (below(10)) {
    case 0:
      at.siblings->erase(at.siblings->begin() + static_cast<std::ptrdiff_t>(at.index));
      return;
    case 1: {
      const Field copy = at.field();
      const auto to = static_cast<std::ptrdiff_t>(below(at.siblings->size() + 1));
      at.siblings->insert(at.siblings->begin() + to, copy);
      return;
    }
    case 2:
      std::swap(at.field(), (*at.siblings)[below(at.siblings->size())]);
      return;
    case 3:
      return graft(at);
    default:
      return change(at, model);
  }
}

/// Takes a part of another model: in place of one of the same kind, or (attributes of a node) beside it.
void Mutator::graft(const Place& place) {
  if (samples_.empty()) return;
  const Kind wanted = place.field().kind;
  for (int tries = 0; tries < 20; ++tries) {
    const Sample& sample = samples_[below(samples_.size())];
    if (wanted == Kind::Node && sample.field.kind == Kind::Attribute) {
      place.field().children.push_back(sample.field);
      return;
    }
    if (sample.field.kind != wanted || sample.parent != place.parent) continue;
    const std::uint32_t number = place.field().number;
    place.field() = sample.field;
    place.field().number = number;
    return;
  }
}

void Mutator::change(const Place& place, std::vector<Field>& model) {
  Field& field = place.field();
  switch (field.wire) {
    case Wire::Varint:
      if (place.parent == Kind::Tensor && field.number == onnx::tensor_field::kDims) return reshape(*place.siblings);
      if (once_in(3)) {
        field.scalar += below(2) * 2 - 1;
      } else {
        field.scalar = static_cast<std::uint64_t>(integer());
      }
      return;
    case Wire::Fixed32:
      field.scalar = float_bits();
      return;
    case Wire::Fixed64:
      field.scalar = static_cast<std::uint64_t>(float_bits()) << 32;
      return;
    case Wire::Bytes:
      break;
  }
  if (field.kind == Kind::Tensor) return once_in(4) ? externalise(field.children) : reshape(field.children);
  if (field.kind == Kind::Shape) {
    Field dim;
    dim.number = onnx::shape_field::kDim;
    dim.wire = Wire::Bytes;
    dim.kind = Kind::Dim;
    if (!once_in(3)) dim.children.push_back(varint(onnx::dim_field::kValue, static_cast<std::uint64_t>(integer())));
    if (once_in(2)) field.children.clear();
    for (std::size_t count = below(once_in(4) ? 10 : 3); count > 0; --count) field.children.push_back(dim);
    return;
  }
  if (field.kind == Kind::Node && !operators_.empty() && once_in(2)) {
    for (Field& part : field.children)
      if (part.number == onnx::node_field::kOpType) part.bytes = operators_[below(operators_.size())];
    return;
  }
  if (field.kind == Kind::Leaf) change_text(place, model);
}

void Mutator::change_text(const Place& place, std::vector<Field>& model) {
  Field& field = place.field();
  if (place.parent == Kind::Tensor && field.number == onnx::tensor_field::kRawData) return scramble(field.bytes);
  if (place.parent == Kind::Node && field.number == onnx::node_field::kOpType && !operators_.empty()) {
    field.bytes = operators_[below(operators_.size())];
    return;
  }
  if (is_name(place)) {
    std::vector<std::string> names{""};
    for (const Place& other : places(model, Kind::Model))
      if (is_name(other)) names.push_back(other.field().bytes);
    field.bytes = names[below(names.size())];
    return;
  }
  if (once_in(3)) {
    field.bytes.clear();
  } else {
    scramble(field.bytes);
  }
}

/// Other dims, and data that fits them where that takes little memory.
void Mutator::reshape(std::vector<Field>& tensor) {
  using namespace onnx;
  std::vector<std::int64_t> dims;
  std::int64_t type = 0;
  for (const Field& part : tensor) {
    if (part.number == tensor_field::kDims) dims.push_back(static_cast<std::int64_t>(part.scalar));
    if (part.number == tensor_field::kDataType) type = static_cast<std::int64_t>(part.scalar);
  }
  if (once_in(3)) {
    dims.assign(below(once_in(3) ? 9 : 4), 1);
    for (std::int64_t& dim : dims) dim = static_cast<std::int64_t>(below(4));
  } else if (!dims.empty()) {
    dims[below(dims.size())] = once_in(6) ? integer() : static_cast<std::int64_t>(below(6));
  }
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count = dim < 0 || dim > 4096 || count > 4096 ? -1 : count * dim;
  std::erase_if(tensor, [](const Field& part) { return part.number == tensor_field::kDims; });
  for (const std::int64_t dim : dims) tensor.push_back(varint(tensor_field::kDims, static_cast<std::uint64_t>(dim)));
  const auto dtype = tensor::dtype_from_code(type);
  if (!dtype || *dtype == tensor::DType::String || count < 0 || once_in(8)) return;
  Field raw;
  raw.number = tensor_field::kRawData;
  raw.wire = Wire::Bytes;
  raw.bytes.resize(tensor::byte_size(*dtype, count));
  for (char& byte : raw.bytes) byte = static_cast<char>(once_in(2) ? 0 : below(4));
  std::erase_if(tensor, [](const Field& part) {
    return (part.number >= tensor_field::kFloatData && part.number <= tensor_field::kInt64Data) ||
           (part.number >= tensor_field::kRawData && part.number <= tensor_field::kUint64Data);
  });
  tensor.push_back(std::move(raw));
}

/// Moves the data to a file, mostly the one there is, at an offset and of a length that may be anything.
void Mutator::externalise(std::vector<Field>& tensor) {
  using namespace onnx;
  constexpr std::array kFiles{kWeights, kWeights, kWeights, "", "absent", "../w", "/", "a/../w"};
  std::erase_if(tensor, [](const Field& part) {
    return part.number == tensor_field::kRawData || part.number == tensor_field::kExternalData ||
           part.number == tensor_field::kDataLocation;
  });
  const auto entry = [&](const char* key, std::string value) {
    Field out;
    out.number = tensor_field::kExternalData;
    out.wire = Wire::Bytes;
    out.kind = Kind::Entry;
    for (const std::uint32_t number : {entry_field::kKey, entry_field::kValue}) {
      Field part;
      part.number = number;
      part.wire = Wire::Bytes;
      part.bytes = number == entry_field::kKey ? key : value;
      out.children.push_back(std::move(part));
    }
    tensor.push_back(std::move(out));
  };
  entry("location", kFiles[below(kFiles.size())]);
  if (!once_in(3)) entry("offset", cat(integer()));
  if (!once_in(3)) entry("length", once_in(8) ? "99999999999999999999" : cat(integer()));
  tensor.push_back(varint(tensor_field::kDataLocation, once_in(8) ? 2 : 1));
}

/// Elements of 8, 4 or 1 bytes become odd ones; now and then the length changes.
void Mutator::scramble(std::string& bytes) {
  if (bytes.empty() || once_in(8)) {
    bytes.resize(bytes.size() + below(9), static_cast<char>(below(256)));
    return;
  }
  if (once_in(8)) {
    bytes.resize(below(bytes.size()));
    return;
  }
  for (std::size_t count = 1 + below(3); count > 0; --count) {
    const std::int64_t value = integer();
    const std::uint32_t real = float_bits();
    const std::size_t size = std::min<std::size_t>(bytes.size(), std::array{8, 4, 4, 1}[below(4)]);
    const std::size_t at = below(bytes.size() / size) * size;
    if (size == 4 && once_in(2)) {
      std::memcpy(bytes.data() + at, &real, size);
    } else {
      std::memcpy(bytes.data() + at, &value, size);
    }
  }
}

}  // namespace infernode::fuzz
