#pragma once
// What guards ask and replacements do again and again.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusions/fusion.h"
#include "graph/operator_names.h"

namespace infernode::fusions {

using graph::kFusedConv;
using graph::kMaxPool;
using graph::kMicrosoft;
using graph::kOwn;
/// Operators that several fusions make, and one that patterns have in the place of Mul.
inline constexpr const char *kFusedMatMul = "FusedMatMul", *kDiv = "Div";

/// The value's one element where it is a floating constant of one element that cannot raise the rank of `beside`.
std::optional<float> scalar(const Match& match, std::string_view name, std::string_view beside);
/// Whether that element is `wanted`, as exactly as its type can say it.
bool is_scalar(const Match& match, std::string_view name, std::string_view beside, double wanted);

/// Whether a node of the match is this operator of the standard.
bool contains(const Match& match, std::string_view op);

/// Element type float32 or float16.
bool is_float(const graph::ValueType& type);
/// Whether a fused operator may make the value without rounding what the operators in it give each other. float32 is as
/// exact either way; of 16-bit floats the CPU's results are those of single operators, while devices keep wider sums.
bool may_fuse_sums(const Match& match, std::string_view value);
/// Both shapes are known, and equal whatever the symbols stand for.
bool same_shape(const graph::ValueType& a, const graph::ValueType& b);
std::optional<std::size_t> rank_of(const graph::ValueType& type);
/// A vector [n] where n is the last dim of `like`.
bool is_row(const graph::ValueType& type, const graph::ValueType& like);

/// A node of the same version as the match's last one where it is of the standard, of version 1 otherwise. Trailing
/// absent inputs are left out.
graph::Node make_node(const Match& match, const char* domain, const char* op, std::vector<graph::ValueId> inputs);
/// Adds the node in place of the match: it makes the value that the match's last node made.
std::vector<graph::ValueId> put(const Match& match, graph::GraphPatch& patch, graph::Node node);

}  // namespace infernode::fusions
