#pragma once
// What If, Loop and Scan share.

#include <span>
#include <vector>

#include "graph/value_type.h"
#include "kernel/inference.h"
#include "kernel/kernel.h"

namespace infernode::ops {

/// What holds of a value that is one of two: equal dims are kept, others unknown; no shape where the ranks differ.
graph::ValueType merge_types(const graph::ValueType& a, const graph::ValueType& b);
/// Whether two shapes agree, dims that neither knows left out.
bool says_as_much(const graph::ValueType& a, const graph::ValueType& b);
/// A tensor type with one more dim in front.
graph::ValueType with_leading_dim(graph::ValueType type, const graph::Dim& dim, std::size_t axis = 0);

/// Dims of one of the tensors that a body would have given, 0 where its type does not tell. Throws InvalidModel for
/// what cannot be stacked.
tensor::Shape dims_of_none(const graph::ValueType& one);
/// Output `o` stacked of what a body gave, where it never ran: none along `axis` (from the end where negative), other
/// dims as far as the type of one tells. Throws InvalidModel for what cannot be stacked.
void give_none(kernel::KernelContext& ctx, std::size_t o, const graph::ValueType& one, std::int64_t axis);

/// Value types of control flow by the version of the standard: the operators' constraint V.
inline constexpr const char* kFlowTypes1 = "V = all";
inline constexpr const char* kFlowTypes13 = "V = all|seq(all)";
inline constexpr const char* kFlowTypes16 = "V = all_ir4|seq(all_ir4)|optional(all_ir4)|optional(seq(all_ir4))";

}  // namespace infernode::ops
