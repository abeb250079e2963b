#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "graph/value_type.h"

namespace infernode::passes::transposes {

/// Bits that the elements of a tensor of known rank take.
graph::Dim bits_of(const graph::ValueType& type);
/// The same in bytes for symbols of a usual size, at most 2^38.
std::int64_t usual_bytes(const graph::ValueType& type);

/// Less where transposes of values of these sizes are fewer or smaller than those before, and neither more nor larger,
/// whatever the symbols stand for; equal where they are the same ones; greater otherwise. Sizes of the same kind are
/// set against each other, what is left is tried with small and large dims.
std::strong_ordering compare(std::vector<graph::Dim> now, std::vector<graph::Dim> before);

}  // namespace infernode::passes::transposes
