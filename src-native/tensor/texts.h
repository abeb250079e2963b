#pragma once

#include <cstddef>

#include "tensor/tensor.h"

namespace infernode::tensor {

/// Bytes of the longest element of a tensor of strings; 0 for every other type, and without elements.
std::size_t longest_text(const Tensor& tensor);
/// Bytes that the elements of a tensor of strings take outside of its own block; 0 for every other type. Calls `look`
/// now and then, which may throw.
std::size_t outside_bytes(const Tensor& tensor, FunctionRef<void()> look);
/// Frees the text of a tensor of very many strings that nobody else holds; others are as they were. Calls `look` now
/// and then, which may throw.
void free_texts(const Tensor& tensor, FunctionRef<void()> look);

}  // namespace infernode::tensor
