#pragma once

#include "providers/cuda/lowering/products.h"

// Squeeze-and-excitation: the means of an image's pixels go through two 1x1 convolutions. Where the means wait, so does
// the first convolution, and the second one launches a kernel for all three.
namespace infernode::cuda {

/// Makes output 0 the means of input 0's pixels, for whoever reads them; false where nobody summed the pixels as they
/// were made, or the output has no dims for them.
bool defer_pixel_means(Builder& b);

/// Whether an operator that may take means of pixels reads output 0.
bool wants_pixel_sums(const Builder& b);

/// Input 0 of a convolution waits, as means or as the first layer over them, and this one may be the next.
bool waits_for_gate(const Builder& b);

/// Makes the convolution, whose input waits, the next layer; false where no kernel has it as one.
bool add_gate_layer(Builder& b, const ConvProblem& conv);

}  // namespace infernode::cuda
