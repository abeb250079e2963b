#pragma once

#include <algorithm>
#include <cstddef>

#include "ops/op_test.h"

namespace infernode::test {

/// How often a run on one thread looks whether it is to end; `cancelled`: in one that was to end before it began, which
/// must be Aborted. `constant`: inputs but the first are constants of the graph.
std::size_t looks_of(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                     bool cancelled = false, bool constant = false);

/// `value` everywhere, quickly however many there are; of types of whole bytes.
inline Tensor repeated(DType type, const Shape& shape, double value) {
  const Tensor one = tensor_as(type, {}, {value}), out = Tensor::make(type, shape);
  auto* const to = static_cast<std::byte*>(out.mutable_raw());
  const std::size_t all = out.bytes();
  if (all > 0) std::copy_n(static_cast<const std::byte*>(one.raw()), one.bytes(), to);
  for (std::size_t made = one.bytes(); made < all; made *= 2) std::copy_n(to, std::min(made, all - made), to + made);
  return out;
}

/// A run that may hold so many bytes beside what its allocator gives ends with OutOfMemory.
void check_beyond_budget(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                         std::size_t bytes);
/// The same for one that may hold so many bytes with what its allocator gives, its outputs among them.
void check_beyond_limit(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, std::size_t bytes);

}  // namespace infernode::test
