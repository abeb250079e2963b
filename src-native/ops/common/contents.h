#pragma once
// Shape arithmetic: what elementwise operators say of the elements of small integer tensors when some are symbolic.
// Where all are known the kernel itself is run by inference, so these functions then say nothing.

#include "kernel/infer_context.h"

namespace infernode::ops {

/// Result of one element; nullopt where nothing is known of it.
using DimFunction = std::optional<graph::Dim> (*)(const graph::Dim& a, const graph::Dim& b);

/// Contents of output 0 from those of inputs `a` and `b`, broadcast. No more than what ranks 0 and 1 allow.
void infer_binary_contents(kernel::InferContext& ctx, DimFunction f, std::size_t a = 0, std::size_t b = 1);

/// Whether a dim follows from numbers and named symbols alone.
bool is_told(const graph::Dim& dim);

/// Whether a dim is above, or not below, zero when all its symbols are positive.
bool is_positive(const graph::Dim& dim);
bool is_non_negative(const graph::Dim& dim);

/// Symbolic division as integer Div does it: only where both are sure not to be negative.
std::optional<graph::Dim> divide_dims(const graph::Dim& a, const graph::Dim& b);
/// 1, 0 or nothing.
std::optional<graph::Dim> equal_dims(const graph::Dim& a, const graph::Dim& b);

}  // namespace infernode::ops
