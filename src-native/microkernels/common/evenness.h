#pragma once

#include <cstddef>

// Whether convolutions may compute sums of weights and of inputs first: they are as exact as direct ones where many
// numbers matter, by (sum |x|)^2 / sum x^2, and none is near the ends of float32.
namespace infernode::microkernels {

// Of weights [out_channels][depth].
bool many_weights_matter(std::size_t out_channels, std::size_t depth, const float* weight) noexcept;

}  // namespace infernode::microkernels
