#include "tensor/texts.h"

#include <algorithm>
#include <string>

namespace infernode::tensor {

std::size_t longest_text(const Tensor& tensor) {
  if (tensor.dtype() != DType::String) return 0;
  std::size_t longest = 0;
  for (const std::string& text : tensor.span<std::string>()) longest = std::max(longest, text.size());
  return longest;
}

std::size_t outside_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::String) return 0;
  const std::size_t inside = std::string().capacity();
  std::size_t bytes = 0;
  for (const std::string& text : tensor.span<std::string>()) {
    if (text.capacity() > inside) bytes += text.capacity() + 1;
  }
  return bytes;
}

}  // namespace infernode::tensor
