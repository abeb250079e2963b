#pragma once

#include <initializer_list>

#include "providers/cuda/kernels/params/attention_mask.h"
#include "providers/cuda/lowering/parts/attention.h"

// What lowerings of operators with masks and caches share.
namespace infernode::cuda {

/// Whether all inputs but these, and all outputs, have the first one's type, which products take.
bool has_one_type(const NodeView& node, std::initializer_list<std::size_t> but);

/// A tensor that broadcasts to [batch, heads, queries, keys]; nothing where there is none. Throws ShapeMismatch where
/// it does not.
MaskSource mask_source(const DeviceTensor& t, const tensor::Shape& scores);

/// All keys in sight, nothing added.
AttentionMaskParams open_mask(std::int64_t keys);
/// The mask that this describes for scores [batch, heads, queries, keys], of which heads and queries may be 1. Sets
/// what follows from them.
Operand4 make_mask(Builder& b, AttentionMaskParams p, const tensor::Shape& scores);

/// Zeros for queries that see no key, where attention of `how` had this mask.
void clear_shut_queries(Builder& b, const Operand4& q, const Operand4& k, const Operand4& mask, const Operand4& y,
                        const Attending& how);

/// com.microsoft's masks of integers, input `mask`, and numbers that are added, input `added`, for scores of these
/// sizes: lengths, ends and starts, or zeros and ones. Nothing where both are absent.
Operand4 microsoft_mask(Builder& b, std::size_t mask, std::size_t added, const tensor::Shape& scores);
/// com.microsoft's factor of the scores of heads of so many elements.
float microsoft_scale(const Builder& b, std::int64_t head);

/// Rows of the past [batch, heads, rows, columns], where there is one, then new ones, as `all`, which has the same
/// dims.
Operand4 join_rows(Builder& b, const DeviceTensor& past, const Operand4& fresh, const DeviceTensor& all);

}  // namespace infernode::cuda
