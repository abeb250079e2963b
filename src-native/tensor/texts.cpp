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

}  // namespace infernode::tensor
