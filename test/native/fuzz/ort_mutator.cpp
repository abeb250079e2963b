// Changes of models in ORT format.
#include <array>
#include <cstring>

#include "fuzz/mutator.h"
#include "fuzz/ort_tree.h"
#include "onnx/ort_schema.h"
#include "tensor/dtype.h"

namespace infernode::fuzz {
namespace {

using What = OrtSpot::What;
namespace ort = onnx::ort;

template <class T>
T load(const std::string& file, std::size_t at) {
  T value{};
  std::memcpy(&value, file.data() + at, std::min(sizeof value, file.size() - at));
  return value;
}

/// The low `size` bytes of a number.
void store(std::string& file, std::size_t at, std::uint64_t value, std::size_t size) {
  std::memcpy(file.data() + at, &value, std::min(size, file.size() - at));
}

void lead(std::string& file, std::size_t at, std::size_t to) { store(file, at, to - at, 4); }

/// A vector at the end of the file, where offsets from everywhere can reach it.
std::size_t append(std::string& file, std::string_view data, std::size_t count) {
  file.resize((file.size() + 3) / 4 * 4, '\0');
  const std::size_t at = file.size();
  file.append(4, '\0');
  store(file, at, count, 4);
  file.append(data);
  file += '\0';
  return at;
}

bool is_float(const OrtSpot& spot) {
  return spot.owner == OrtKind::Attribute &&
         (spot.field == ort::attribute::kFloat || spot.field == ort::attribute::kFloats);
}

/// What an offset leads to: only things of a kind take one another's place without breaking the frame.
bool alike(const OrtSpot& a, const OrtSpot& b) { return a.what == b.what && a.leads == b.leads && a.size == b.size; }

}  // namespace

std::string Mutator::bend(std::string_view model) {
  std::string file(model);
  const std::vector<OrtSpot> spots = ort_spots(model);
  for (std::size_t edits = 1 + below(3); edits > 0; --edits) bend_at(file, spots);
  if (once_in(50)) scramble(file);
  return file;
}

void Mutator::bend_at(std::string& file, const std::vector<OrtSpot>& spots) {
  // Places in vtables are the most numerous, and what they break is mostly refused at once.
  constexpr std::array kWanted{What::Scalar,  What::Scalar,  What::Offset, What::Text,    What::Text,
                               What::Text,    What::Text,    What::List,   What::Numbers, What::Numbers,
                               What::Element, What::Element, What::Count,  What::Layout,  What::Entry};
  const What wanted = kWanted[below(kWanted.size())];
  std::vector<const OrtSpot*> choice;
  for (const OrtSpot& spot : spots)
    if (spot.what == wanted) choice.push_back(&spot);
  if (choice.empty()) return;
  const OrtSpot& spot = *choice[below(choice.size())];
  // Another place like this one, whose content may take its place.
  const auto peer = [&]() -> const OrtSpot& {
    for (int tries = 0; tries < 20; ++tries) {
      const OrtSpot& other = *choice[below(choice.size())];
      if (alike(spot, other) || once_in(40)) return other;
    }
    return spot;
  };
  const auto target = [&](const OrtSpot& at) { return at.at + load<std::uint32_t>(file, at.at); };
  switch (spot.what) {
    case What::Scalar:
    case What::Element:
      if (is_float(spot)) return store(file, spot.at, float_bits(), 4);
      if (once_in(3)) return store(file, spot.at, load<std::uint64_t>(file, spot.at) + below(2) * 2 - 1, spot.size);
      return store(file, spot.at, static_cast<std::uint64_t>(integer()), spot.size);
    case What::Count:
      return store(
          file, spot.at,
          once_in(2) ? static_cast<std::uint64_t>(integer()) : load<std::uint32_t>(file, spot.at) + below(2) * 2 - 1,
          4);
    case What::Entry:
      return store(file, spot.at,
                   once_in(2)   ? 0
                   : once_in(2) ? load<std::uint16_t>(file, peer().at)
                                : static_cast<std::uint64_t>(integer()),
                   2);
    case What::Layout:
      return store(file, spot.at, once_in(4) ? static_cast<std::uint64_t>(integer()) : spot.at - layout(file, peer()),
                   4);
    case What::Offset:
    case What::List:
      if (once_in(12)) return store(file, spot.at, static_cast<std::uint64_t>(integer()), 4);
      if (once_in(6)) return store(file, spot.at, 0, 4);
      return lead(file, spot.at, target(peer()));
    case What::Text:
      return bend_text(file, spot, target(peer()));
    case What::Numbers:
      return bend_numbers(file, spot, spots);
  }
}

/// Where a layout is for a table: that of a table like `like`, or one at the end of the file that has other fields.
std::size_t Mutator::layout(std::string& file, const OrtSpot& like) {
  const std::size_t old = like.at - static_cast<std::size_t>(load<std::int32_t>(file, like.at));
  if (once_in(2) || old + 4 > file.size()) return old;
  const std::size_t size = std::min<std::size_t>(load<std::uint16_t>(file, old), file.size() - old);
  std::string fields = file.substr(old, size / 2 * 2);
  fields.append(2 * below(6), '\0');  // fields that the table lacks
  store(fields, 0, fields.size(), 2);
  for (std::size_t at = 4; at < fields.size(); at += 2)
    if (once_in(4)) store(fields, at, once_in(3) ? 0 : 4 + 4 * below(12), 2);
  if (once_in(4)) store(fields, 2, below(256), 2);
  return append(file, fields, 0) + 4;
}

/// Another operator, another value (an edge), another text.
void Mutator::bend_text(std::string& file, const OrtSpot& spot, std::size_t other) {
  const bool op = spot.owner == OrtKind::Node && spot.field == ort::node::kOpType;
  std::string text;
  if (op && !operators_.empty() && once_in(2)) {
    text = operators_[below(operators_.size())];
  } else if (other > spot.at && once_in(2)) {
    return lead(file, spot.at, other);
  } else {
    const std::size_t size = std::min<std::size_t>(load<std::uint32_t>(file, other), 64);
    if (other + 4 <= file.size()) text = file.substr(other + 4, size);
    if (once_in(4)) scramble(text);
    if (once_in(8)) text.clear();
  }
  lead(file, spot.at, append(file, text, text.size()));
}

/// Other numbers, and for the dims of a tensor data that fits them.
void Mutator::bend_numbers(std::string& file, const OrtSpot& spot, const std::vector<OrtSpot>& spots) {
  std::string data;
  const std::size_t count = below(once_in(4) ? 10 : 4);
  std::int64_t product = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t value = once_in(8) ? integer() : static_cast<std::int64_t>(below(5));
    product = value < 0 || value > 4096 || product > 4096 ? -1 : product * value;
    const std::uint64_t bits = is_float(spot) ? float_bits() : static_cast<std::uint64_t>(value);
    data.append(reinterpret_cast<const char*>(&bits), std::min<std::size_t>(spot.size, 8));
    if (spot.size > 8) data.append(spot.size - 8, '\0');
  }
  lead(file, spot.at, append(file, data, count));
  if (spot.owner != OrtKind::Tensor || spot.field != ort::tensor::kDims || product < 0 || product > 4096) return;
  std::int64_t type = 0;
  const OrtSpot* raw = nullptr;
  for (const OrtSpot& other : spots) {
    if (other.table != spot.table) continue;
    if (other.what == What::Scalar && other.field == ort::tensor::kType) type = load<std::int32_t>(file, other.at);
    if (other.what == What::Numbers && other.field == ort::tensor::kRaw) raw = &other;
  }
  const auto dtype = tensor::dtype_from_code(type);
  if (raw == nullptr || !dtype || *dtype == tensor::DType::String) return;
  std::string bytes(tensor::byte_size(*dtype, product), '\0');
  for (char& byte : bytes) byte = static_cast<char>(once_in(2) ? 0 : below(4));
  lead(file, raw->at, append(file, bytes, bytes.size()));
}

}  // namespace infernode::fuzz
