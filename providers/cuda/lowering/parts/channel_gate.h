#pragma once

#include "providers/cuda/lowering/products.h"

// Squeeze-and-excitation: the means of an image's pixels go through two 1x1 convolutions, and what comes out is
// multiplied with the image. Where the means wait, so does all of that. A 1x1 convolution that reads the product takes
// the image as it is, and weights that the kernel of the convolutions before has multiplied instead.
namespace infernode::cuda {

/// Whether an operator that may take means of pixels reads output 0.
bool wants_pixel_sums(const Builder& b);

/// Makes output 0 the means of input 0's pixels, for whoever reads them; false where nobody summed the pixels as they
/// were made, or the output has no dims for them.
bool defer_pixel_means(Builder& b);

/// Makes output 0 the product of an image and gates that wait; false where no input is such gates.
bool defer_gated(Builder& b);

/// Input 0 of a convolution waits as one of these.
bool waits_for_gate(const Builder& b);

/// Makes the convolution, whose input waits, a layer of the gates or of gated images; false where no kernel can.
bool convolve_gated(Builder& b, const ConvProblem& conv);

}  // namespace infernode::cuda
