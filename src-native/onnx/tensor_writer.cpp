#include "onnx/tensor_writer.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/path.h"
#include "onnx/fields.h"

namespace infernode::onnx {
namespace {

using protozero::pbf_writer;
using tensor::DType;
using tensor::Tensor;

/// Tensors are aligned for any element type; large ones to pages, so that their pages can be dropped alone.
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPageAlignment = 4096;
constexpr size_t kLarge = 1 << 20;

void write_entry(pbf_writer& out, const std::string& key, const std::string& value) {
  pbf_writer entry(out, tensor_field::kExternalData);
  entry.add_string(entry_field::kKey, key);
  entry.add_string(entry_field::kValue, value);
}

}  // namespace

ExternalSink::ExternalSink(std::string path, std::string location, size_t threshold)
    : path_(std::move(path)),
      temporary_(to_path(temporary_beside(path_))),
      location_(std::move(location)),
      threshold_(threshold) {
  out_.open(temporary_, std::ios::binary | std::ios::trunc);
  if (!out_) fail_write();
}

ExternalSink::~ExternalSink() {
  if (finished_) return;
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

bool ExternalSink::can_take(const Tensor& tensor) { return tensor.dtype() != DType::String && tensor.bytes() > 0; }

bool ExternalSink::takes(const Tensor& tensor) const { return can_take(tensor) && tensor.bytes() >= threshold_; }

uint64_t ExternalSink::write(const Tensor& tensor) {
  const uint64_t alignment = tensor.bytes() >= kLarge ? kPageAlignment : kAlignment;
  const uint64_t offset = (size_ + alignment - 1) / alignment * alignment;
  static constexpr char kZeros[kPageAlignment] = {};
  out_.write(kZeros, static_cast<std::streamsize>(offset - size_));
  out_.write(static_cast<const char*>(tensor.raw()), static_cast<std::streamsize>(tensor.bytes()));
  if (!out_) fail_write();
  size_ = offset + tensor.bytes();
  return offset;
}

void ExternalSink::finish() {
  out_.close();
  std::error_code error;
  if (out_) std::filesystem::rename(temporary_, to_path(path_), error);
  if (!out_ || error) fail_write();
  finished_ = true;
}

void ExternalSink::fail_write() const {
  fail(ErrorCode::Io, cat("open file ", path_, " failed: the external data of a model cannot be written"),
       {.path = path_});
}

void write_tensor(pbf_writer out, const std::string& name, const Tensor& tensor, ExternalSink* sink) {
  INFERNODE_CHECK(tensor.device().is_host(), ErrorCode::Internal, "tensor '", name,
                  "' cannot be written: it is not host memory");
  out.add_packed_int64(tensor_field::kDims, tensor.shape().begin(), tensor.shape().end());
  out.add_int32(tensor_field::kDataType, static_cast<int32_t>(tensor.dtype()));
  if (!name.empty()) out.add_string(tensor_field::kName, name);
  if (tensor.dtype() == DType::String) {
    for (const std::string& s : tensor.span<std::string>()) out.add_bytes(tensor_field::kStringData, s);
  } else if (sink && sink->takes(tensor)) {
    write_entry(out, "location", sink->location());
    write_entry(out, "offset", std::to_string(sink->write(tensor)));
    write_entry(out, "length", std::to_string(tensor.bytes()));
    out.add_int32(tensor_field::kDataLocation, 1);
  } else {
    out.add_bytes(tensor_field::kRawData, static_cast<const char*>(tensor.raw()), tensor.bytes());
  }
}

void write_sparse(pbf_writer out, const std::string& name, const tensor::Sparse& sparse) {
  write_tensor(pbf_writer(out, sparse_field::kValues), name, sparse.values, nullptr);
  write_tensor(pbf_writer(out, sparse_field::kIndices), "", sparse.indices, nullptr);
  out.add_packed_int64(sparse_field::kDims, sparse.shape.begin(), sparse.shape.end());
}

int64_t first_ir_version(DType type) {
  switch (type) {
    case DType::Float8E4M3FN:
    case DType::Float8E4M3FNUZ:
    case DType::Float8E5M2:
    case DType::Float8E5M2FNUZ:
      return 9;
    case DType::Int4:
    case DType::UInt4:
      return 10;
    case DType::Float4E2M1:
      return 11;
    case DType::Float8E8M0:
      return 12;
    case DType::Int2:
    case DType::UInt2:
      return 13;
    case DType::Float6E2M3:
    case DType::Float6E3M2:
      return 14;
    default:
      return 4;
  }
}

}  // namespace infernode::onnx
