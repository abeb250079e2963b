#include "onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <tuple>

#include "base/checked.h"
#include "base/error.h"
#include "base/packed.h"
#include "onnx/fields.h"
#include "tensor/dispatch.h"

namespace infernode::onnx {

using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

/// Tensors below this are copied even where they could be viewed, so that they do not keep a file mapped.
constexpr size_t kViewFrom = 16 << 10;
/// Pages of the file that were copied from are dropped for tensors from here on.
constexpr size_t kDropFrom = 1 << 20;
constexpr size_t kMaxRank = 1024;

/// The field of TensorProto that holds elements of a type when raw_data does not.
uint32_t typed_field(DType type) {
  switch (type) {
    case DType::Float32:
    case DType::Complex64:
      return tensor_field::kFloatData;
    case DType::Float64:
    case DType::Complex128:
      return tensor_field::kDoubleData;
    case DType::Int64:
      return tensor_field::kInt64Data;
    case DType::UInt32:
    case DType::UInt64:
      return tensor_field::kUint64Data;
    case DType::String:
      return tensor_field::kStringData;
    default:
      return tensor_field::kInt32Data;
  }
}

size_t alignment_of(DType type) {
  const size_t bytes = tensor::bit_size(type) / 8;
  return std::clamp<size_t>(bytes, 1, 8);
}

uint64_t parse_unsigned(const std::string& name, const char* key, std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail_tensor(name, cat("external data has the ", key, " '", text, "', which is no number"));
  return value;
}

/// A byte of a bool tensor that is neither 0 nor 1 must never be read as a bool.
bool has_odd_bools(std::string_view bytes) {
  return std::ranges::any_of(bytes, [](char c) { return static_cast<unsigned char>(c) > 1; });
}

/// Of more dims than any tensor may have, one more than those are kept: the name, by which they are refused, may
/// follow.
void read_dims(const Message& m, Shape& to) {
  m.each_varint([&](uint64_t d) {
    if (to.rank() <= kMaxRank) to.push_back(static_cast<int64_t>(d));
  });
}

}  // namespace

void fail_tensor(const std::string& name, const std::string& what) {
  ErrorContext context;
  context.input = name;
  fail(ErrorCode::InvalidModel, cat("tensor '", name, "': ", what), std::move(context));
}

TensorHeader make_header(std::string name, int64_t type_code, Shape shape) {
  const auto type = tensor::dtype_from_code(type_code);
  if (!type)
    fail_tensor(name, type_code == 0 ? std::string("its data type is missing") : cat("unknown data type ", type_code));
  if (shape.rank() > kMaxRank) fail_tensor(name, cat("a rank of more than ", kMaxRank));
  for (int64_t d : shape)
    if (d < 0) fail_tensor(name, cat("a negative dimension in ", shape.dims()));
  TensorHeader out{std::move(name), *type, std::move(shape), 0};
  try {
    out.bytes = tensor::byte_size(out.type, out.shape.numel());
  } catch (const Error&) {
    fail_tensor(out.name, cat("dims ", out.shape.dims(), " have a product that overflows"));
  }
  return out;
}

struct TensorReader::Header : TensorHeader {
  int64_t type_code = 0;
  std::optional<std::string_view> raw;
  bool is_external = false;
  bool has_segment = false;
  ExternalLocation external;
  std::optional<uint64_t> external_length;
  std::string offset_text, length_text;
};

std::pair<std::string, Tensor> TensorReader::read(Message proto) const {
  Header h;
  for (Message m = proto; m.next();) {
    switch (m.field()) {
      case tensor_field::kDims:
        read_dims(m, h.shape);
        break;
      case tensor_field::kDataType:
        h.type_code = m.integer();
        break;
      case tensor_field::kSegment:
        h.has_segment = true;
        break;
      case tensor_field::kName:
        h.name = m.text();
        break;
      case tensor_field::kRawData:
        h.raw = m.bytes();
        break;
      case tensor_field::kDataLocation:
        h.is_external = m.integer() == 1;
        break;
      case tensor_field::kExternalData: {
        std::string_view key, value;
        for (Message entry = m.message(); entry.next();) {
          if (entry.field() == entry_field::kKey) key = entry.bytes();
          if (entry.field() == entry_field::kValue) value = entry.bytes();
        }
        if (key == "location") h.external.location = value;
        if (key == "offset") h.offset_text = value;
        if (key == "length") h.length_text = value;
        break;
      }
      default:
        break;
    }
  }
  static_cast<TensorHeader&>(h) = make_header(std::move(h.name), h.type_code, std::move(h.shape));
  if (h.has_segment) fail_tensor(h.name, "it is stored in segments, which no exporter writes and no runtime reads");

  Tensor out;
  if (h.is_external) {
    if (!external_) fail_tensor(h.name, "external data is not allowed here");
    if (h.type == DType::String) fail_tensor(h.name, "strings cannot be external data");
    if (h.external.location.empty()) fail_tensor(h.name, "external data without a location");
    if (!h.offset_text.empty()) h.external.offset = parse_unsigned(h.name, "offset", h.offset_text);
    if (!h.length_text.empty()) {
      const uint64_t length = parse_unsigned(h.name, "length", h.length_text);
      if (length != 0 && length != h.bytes)
        fail_tensor(h.name, cat("external data of ", length, " bytes does not fit ", name(h.type), h.shape.dims(),
                                ", which takes ", h.bytes));
    }
    out = view_or_copy(h, external_->fetch(h.name, h.external, h.bytes));
  } else if (h.raw) {
    if (h.type == DType::String) fail_tensor(h.name, "strings cannot be raw data");
    if (h.raw->size() != h.bytes)
      fail_tensor(h.name, cat("raw data of ", h.raw->size(), " bytes does not fit ", name(h.type), h.shape.dims(),
                              ", which takes ", h.bytes));
    SourceBytes bytes = source_;
    bytes.data = h.raw->data();
    bytes.size = h.raw->size();
    budget_.hold(bytes.size);
    out = view_or_copy(h, bytes);
  } else {
    out = read_fields(h, proto);
  }
  return {std::move(h.name), std::move(out)};
}

Tensor view_or_copy(const TensorHeader& h, const SourceBytes& bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data) % alignment_of(h.type) == 0;
  const bool odd = h.type == DType::Bool && has_odd_bools({bytes.data, bytes.size});
  const bool mapped = bytes.holder.owner() && !bytes.holder.writable();
  if (mapped && bytes.size >= kViewFrom && aligned && !odd) {
    const auto offset = static_cast<size_t>(bytes.data - reinterpret_cast<const char*>(bytes.holder.data()));
    return Tensor(h.type, h.shape, bytes.holder.slice(offset, bytes.size));
  }
  Tensor out = Tensor::make(h.type, h.shape);
  auto* to = static_cast<char*>(out.mutable_raw());
  if (bytes.size > 0) std::memcpy(to, bytes.data, bytes.size);
  if (odd) std::transform(to, to + bytes.size, to, [](char c) { return static_cast<char>(c != 0); });
  if (bytes.file && bytes.size >= kDropFrom)
    bytes.file->drop(static_cast<size_t>(reinterpret_cast<const std::byte*>(bytes.data) - bytes.file->data()),
                     bytes.size);
  return out;
}

Tensor TensorReader::read_fields(const Header& h, Message proto) const {
  const uint32_t field = typed_field(h.type);
  const bool is_complex = h.type == DType::Complex64 || h.type == DType::Complex128;
  // Elements of 2 and 4 bits are stored as the packed bytes, one in each int32; those of 6 bits one in each int32.
  const bool six = tensor::bit_size(h.type) == 6;
  const size_t expected = tensor::is_sub_byte(h.type) && !six ? h.bytes
                          : is_complex                        ? checked_mul(static_cast<size_t>(h.shape.numel()), 2)
                                                              : static_cast<size_t>(h.shape.numel());
  size_t count = 0, text = 0;
  for (Message m = proto; m.next();) {
    if (m.field() != field) continue;
    if (field == tensor_field::kFloatData)
      m.each_fixed<float>([&](float) { ++count; });
    else if (field == tensor_field::kDoubleData)
      m.each_fixed<double>([&](double) { ++count; });
    else if (field == tensor_field::kStringData)
      ++count, text += StructureBudget::string_bytes(m.bytes().size());
    else
      m.each_varint([&](uint64_t) { ++count; });
  }
  if (count != expected)
    fail_tensor(h.name, cat("it holds ", count, " values where ", name(h.type), h.shape.dims(), " needs ", expected));

  budget_.hold(field == tensor_field::kStringData ? text : h.bytes);
  Tensor out = Tensor::make(h.type, h.shape);
  size_t i = 0;
  const auto fill = [&]<class T>(T* to, auto&& convert) {
    for (Message m = proto; m.next();) {
      if (m.field() != field) continue;
      if constexpr (std::is_same_v<T, std::string>)
        to[i++] = m.text();
      else if constexpr (std::is_floating_point_v<T>)
        m.each_fixed<T>([&](T v) { to[i++] = v; });
      else
        m.each_varint([&](uint64_t v) { to[i++] = convert(v); });
    }
  };
  void* raw = out.mutable_raw();
  if (field == tensor_field::kStringData)
    fill(out.mutable_data<std::string>(), 0);
  else if (field == tensor_field::kFloatData)
    fill(static_cast<float*>(raw), 0);
  else if (field == tensor_field::kDoubleData)
    fill(static_cast<double*>(raw), 0);
  else if (six) {
    auto* to = static_cast<uint8_t*>(raw);
    std::fill_n(to, h.bytes, uint8_t{0});
    for (Message m = proto; m.next();) {
      if (m.field() != field) continue;
      m.each_varint([&](uint64_t v) {
        if (v > 63) fail_tensor(h.name, cat("the value ", v, " is no code of ", name(h.type)));
        set_packed<6>(to, i++, static_cast<int>(v));
      });
    }
  } else if (h.type == DType::Bool)
    fill(static_cast<uint8_t*>(raw), [](uint64_t v) { return static_cast<uint8_t>(v != 0); });
  else
    tensor::dispatch_size(std::max<size_t>(1, tensor::bit_size(h.type) / 8), "initializer",
                          [&]<class T>(tensor::TypeTag<T>) {
                            if constexpr (std::is_integral_v<T>)
                              fill(static_cast<T*>(raw), [](uint64_t v) { return static_cast<T>(v); });
                          });
  return out;
}

std::pair<std::string, tensor::Sparse> TensorReader::read_sparse(Message proto) const {
  tensor::Sparse out;
  std::string name;
  for (Message m = proto; m.next();) {
    if (m.field() == sparse_field::kValues) std::tie(name, out.values) = read(m.message());
    if (m.field() == sparse_field::kIndices) out.indices = read(m.message()).second;
    if (m.field() == sparse_field::kDims) read_dims(m, out.shape);
  }
  if (out.values && !out.indices) out.indices = Tensor::make(DType::Int64, {0});
  check_sparse(name, out);
  return {std::move(name), std::move(out)};
}

void check_sparse(const std::string& name, const tensor::Sparse& sparse) {
  const size_t rank = sparse.shape.rank();
  if (rank == 0) fail_tensor(name, "a sparse tensor without dims");
  if (rank > kMaxRank) fail_tensor(name, cat("a rank of more than ", kMaxRank));
  int64_t count = 0;
  try {
    count = sparse.shape.numel();
    if (sparse.values) (void)tensor::byte_size(sparse.values.dtype(), count);
  } catch (const Error&) {
    fail_tensor(name, cat("impossible dims ", sparse.shape.dims(), " of a sparse tensor"));
  }
  if (!sparse.values || sparse.values.rank() != 1) fail_tensor(name, "values of a sparse tensor must be a list");
  if (sparse.indices.dtype() != DType::Int64) fail_tensor(name, "indices of a sparse tensor must be int64");
  const int64_t entries = sparse.values.numel();
  const Shape& index_shape = sparse.indices.shape();
  const bool linear = index_shape == Shape{entries};
  if (!linear && index_shape != Shape{entries, static_cast<int64_t>(rank)})
    fail_tensor(name, cat("indices of shape ", index_shape.dims(), " for ", entries,
                          " values of a sparse tensor of rank ", rank));
  const int64_t* index = sparse.indices.data<int64_t>();
  for (int64_t e = 0; e < entries; ++e) {
    for (size_t axis = 0; axis < (linear ? 1 : rank); ++axis) {
      const int64_t at = linear ? index[e] : index[e * static_cast<int64_t>(rank) + static_cast<int64_t>(axis)];
      const int64_t limit = linear ? count : sparse.shape[axis];
      if (at < 0 || at >= limit)
        fail_tensor(name, cat("index ", at, " of a sparse tensor is outside of [0, ", limit, ")"));
    }
  }
}

void DenseBudget::take(const std::string& name, size_t bytes) {
  if (bytes > left_)
    fail_tensor(name, cat("as a dense tensor it takes ", bytes, " bytes, more than is left of the limit of ", bytes_,
                          " for all sparse tensors of a model"));
  left_ -= bytes;
}

Tensor to_dense(const std::string& name, const tensor::Sparse& sparse, DenseBudget& budget, FunctionRef<void()> look) {
  const DType type = sparse.values.dtype();
  if (type == DType::String || tensor::is_sub_byte(type))
    fail_tensor(name, cat("sparse tensors of ", tensor::name(type), " are not supported"));
  const size_t bytes = tensor::byte_size(type, sparse.shape.numel());
  budget.take(name, bytes);
  const Tensor out(type, sparse.shape, tensor::zeroed_host_buffer(bytes));
  const size_t size = tensor::bit_size(type) / 8;
  const Shape strides = sparse.shape.strides();
  const bool linear = sparse.indices.rank() == 1;
  const int64_t* index = sparse.indices.data<int64_t>();
  const auto* from = static_cast<const char*>(sparse.values.raw());
  auto* to = static_cast<char*>(out.mutable_raw());
  constexpr int64_t kLookEvery = 1 << 14;
  for (int64_t e = 0; e < sparse.values.numel(); ++e) {
    if (look && e % kLookEvery == 0) look();
    int64_t at = 0;
    if (linear)
      at = *index++;
    else
      for (size_t axis = 0; axis < sparse.shape.rank(); ++axis) at += *index++ * strides[axis];
    std::memcpy(to + static_cast<size_t>(at) * size, from + static_cast<size_t>(e) * size, size);
  }
  return out;
}

}  // namespace infernode::onnx
