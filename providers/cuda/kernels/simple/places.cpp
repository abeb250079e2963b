#include "providers/cuda/kernels/simple/places.h"

#include "base/error.h"

namespace infernode::cuda {

Launch launch_of_threads(std::string kernel, std::int64_t threads, std::vector<std::byte> params) {
  const std::int64_t blocks = (threads + 255) / 256;
  if (blocks > INT32_MAX) fail(ErrorCode::Internal, cat("cuda: ", threads, " threads are too many for one launch"));
  return {.kernel = std::move(kernel),
          .grid = {static_cast<std::uint32_t>(blocks)},
          .block = {256},
          .cluster = {},
          .programmatic = true,
          .params = std::move(params)};
}

}  // namespace infernode::cuda
