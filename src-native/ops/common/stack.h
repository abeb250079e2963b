#pragma once
// Joining tensors that operators gather in lists: scan outputs, sequences.

#include <span>
#include <vector>

#include "kernel/kernel.h"
#include "tensor/value.h"

namespace infernode::ops {

/// Output `o` = the parts joined along `axis`: an axis that all have (`stacked` false; their other dims agree), or a
/// new one (`stacked`; all dims agree). Parts may be empty tensors but not an empty list. Throws ShapeMismatch naming
/// `what`.
void join_parts(kernel::KernelContext& ctx, std::size_t o, std::span<const tensor::Tensor> parts, std::size_t axis,
                bool stacked, const char* what);

}  // namespace infernode::ops
