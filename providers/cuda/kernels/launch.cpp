#include "providers/cuda/kernels/launch.h"

#include "base/error.h"

namespace infernode::cuda {

std::uint32_t blocks_of(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  if (blocks > INT32_MAX) fail(ErrorCode::Internal, cat("cuda: ", count, " items are too many for one launch"));
  return static_cast<std::uint32_t>(blocks);
}

Launch launch_of_blocks(std::string kernel, std::int64_t count, std::int64_t per_block, std::uint32_t threads,
                        std::vector<std::byte> params) {
  return {.kernel = std::move(kernel),
          .grid = {blocks_of(count, per_block)},
          .block = {threads},
          .cluster = {},
          .programmatic = true,
          .params = std::move(params)};
}

Launch launch_of_threads(std::string kernel, std::int64_t threads, std::vector<std::byte> params) {
  return launch_of_blocks(std::move(kernel), threads, 256, 256, std::move(params));
}

}  // namespace infernode::cuda
