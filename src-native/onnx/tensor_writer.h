#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "tensor/value.h"

#ifndef protozero_assert
#define protozero_assert(x) static_cast<void>(0)
#endif
#include <protozero/pbf_writer.hpp>

namespace infernode::onnx {

/// The file that large tensors go to: written beside its final name, put in place by finish().
class ExternalSink {
 public:
  /// Throws Io naming the path.
  ExternalSink(std::string path, std::string location, std::size_t threshold);
  ~ExternalSink();
  ExternalSink(const ExternalSink&) = delete;
  ExternalSink& operator=(const ExternalSink&) = delete;

  /// Whether external data can hold it, whatever its size.
  static bool can_take(const tensor::Tensor& tensor);
  bool takes(const tensor::Tensor& tensor) const;
  /// Offset at which the tensor's bytes were written.
  std::uint64_t write(const tensor::Tensor& tensor);
  /// The name that models refer to it by.
  const std::string& location() const { return location_; }
  void finish();

 private:
  [[noreturn]] void fail_write() const;
  std::string path_;
  std::filesystem::path temporary_;  ///< made beforehand: the destructor takes no memory
  std::string location_;
  std::size_t threshold_;
  std::ofstream out_;
  std::uint64_t size_ = 0;
  bool finished_ = false;
};

/// Fields of a TensorProto. `sink` may be null: then everything goes inside.
void write_tensor(protozero::pbf_writer out, const std::string& name, const tensor::Tensor& tensor, ExternalSink* sink);
void write_sparse(protozero::pbf_writer out, const std::string& name, const tensor::Sparse& sparse);

/// Version of the format from which on an element type exists.
std::int64_t first_ir_version(tensor::DType type);

}  // namespace infernode::onnx
