#include "providers/cuda/device/images.h"

namespace infernode::cuda {

/// In place of the build's own: the double has all kernels, whatever image it is given.
std::span<const Image> images() {
  static const unsigned char nothing[] = {0};
  static const Image one[] = {{"double", nothing}};
  return one;
}

}  // namespace infernode::cuda
