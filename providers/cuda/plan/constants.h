#pragma once

#include <map>
#include <string_view>

#include "base/function_ref.h"
#include "providers/cuda/device/memory.h"
#include "providers/cuda/device/stream.h"
#include "tensor/tensor.h"

namespace infernode::cuda {

/// Constants on the device: what a session's plans need, each made once and shared with other sessions by content.
/// Thread-safe.
class Constants {
 public:
  Constants(std::shared_ptr<Device> device, std::shared_ptr<Memory> memory);

  /// The tensor's bytes.
  DevicePtr upload(const tensor::Tensor& host);
  /// What `pack`, given the address of the tensor's bytes and that of the result, makes of them. `format` names it.
  DevicePtr pack(const tensor::Tensor& host, std::string_view format, std::size_t bytes,
                 FunctionRef<std::vector<Launch>(DevicePtr from, DevicePtr to)> pack);
  std::size_t bytes() const;  ///< held

 private:
  /// The held constant, or what `make` gives, under a key of content and format.
  DevicePtr find_or_make(const tensor::Tensor& host, std::string_view format, FunctionRef<tensor::Buffer()> make);
  tensor::Buffer copy_of(const tensor::Tensor& host);

  std::shared_ptr<Device> device_;
  std::shared_ptr<Memory> memory_;
  Stream stream_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const tensor::Buffer>, std::less<>> held_;
  /// Keys by where the bytes lie, of tensors that are kept here so that nothing else can lie there.
  std::map<std::pair<const void*, std::size_t>, std::pair<tensor::Tensor, std::string>> contents_;
};

}  // namespace infernode::cuda
