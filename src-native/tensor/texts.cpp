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

std::size_t outside_bytes(const Tensor& tensor, FunctionRef<void()> look) {
  if (tensor.dtype() != DType::String) return 0;
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  const std::size_t inside = std::string().capacity();
  const std::span<const std::string> texts = tensor.span<std::string>();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i % kPiece == kPiece - 1) look();
    if (texts[i].capacity() > inside) bytes += texts[i].capacity() + 1;
  }
  return bytes;
}

void free_texts(const Tensor& tensor, FunctionRef<void()> look) {
  constexpr std::int64_t kPiece = std::int64_t{1} << 14;
  if (tensor.dtype() != DType::String || tensor.numel() < kPiece || !tensor.buffer().held_alone()) return;
  std::int64_t left = kPiece;
  for (std::string& text : tensor.mutable_span<std::string>()) {
    std::string().swap(text);
    if (--left > 0) continue;
    look();
    left = kPiece;
  }
}

}  // namespace infernode::tensor
