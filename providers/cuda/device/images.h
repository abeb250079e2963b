#pragma once

#include <span>
#include <string_view>

namespace infernode::cuda {

/// Device code of one kernels/*.cu, for all architectures it was built for: what cuModuleLoadData takes.
struct Image {
  std::string_view name;  ///< the file's, without .cu
  const unsigned char* data;
};

/// All that this build brings; none where it was made without nvcc.
std::span<const Image> images();

}  // namespace infernode::cuda
