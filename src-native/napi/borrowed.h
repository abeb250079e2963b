#pragma once
// Tensors in JavaScript's memory.

#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "tensor/value.h"

namespace infernode::napi {

/// The owner of buffers that view JavaScript's memory: they are good until JavaScript runs again.
std::shared_ptr<const void> borrowed_owner();
bool is_borrowed(const tensor::Tensor& tensor);

/// Bytes of a block that copies of all borrowed tensors within fit into.
std::size_t borrowed_bytes(std::span<const tensor::Value> values);
/// Replaces all borrowed tensors within by copies in `block`, which has at least borrowed_bytes(). Up to `threads`, the
/// caller's among them, copy where there is much.
void own(std::span<tensor::Value> values, const tensor::Buffer& block, ThreadPool& pool, std::size_t threads);

}  // namespace infernode::napi
