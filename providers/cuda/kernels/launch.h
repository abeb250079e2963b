#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace infernode::cuda {

namespace driver {
struct Api;
}

/// An address in the device's memory.
using DevicePtr = std::uint64_t;

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// What planners need to know of the GPU.
struct Target {
  int sm = 0;  ///< compute capability: 75, 80, 86, 89, 90
  int sm_count = 0;
  std::size_t shared_per_block = 0;  ///< bytes that a block may ask for (opt-in limit)
  std::size_t l2_bytes = 0;
  const driver::Api* api = nullptr;  ///< for the tensor-map encoders (driver/api.h); null in tests of plans alone
};

/// One kernel launch, ready to be enqueued or captured. Each kernel takes one `const __grid_constant__ P` struct.
struct Launch {
  std::string kernel;              ///< extern "C" name in the embedded image
  Dim3 grid, block, cluster;       ///< cluster 1,1,1: none
  std::uint32_t shared_bytes = 0;  ///< dynamic
  /// Carries PROGRAMMATIC_STREAM_SERIALIZATION: the kernel itself waits for what came before it (griddepcontrol.wait).
  bool programmatic = false;
  std::vector<std::byte> params;  ///< the struct, copied
};

/// The bytes of a kernel's parameter struct, for Launch::params.
template <class P>
std::vector<std::byte> param_bytes(const P& params) {
  static_assert(std::is_trivially_copyable_v<P> && sizeof(P) <= 4096);
  std::vector<std::byte> bytes(sizeof(P));
  std::memcpy(bytes.data(), &params, sizeof(P));
  return bytes;
}

/// How many blocks hold `count` items, `per_block` in each. Throws where they are too many for a grid.
std::uint32_t blocks_of(std::int64_t count, std::int64_t per_block);

/// A launch of those blocks, each of so many threads.
Launch launch_of_blocks(std::string kernel, std::int64_t count, std::int64_t per_block, std::uint32_t threads,
                        std::vector<std::byte> params);

/// A launch of one thread for each of `threads`, in blocks of 256.
Launch launch_of_threads(std::string kernel, std::int64_t threads, std::vector<std::byte> params);

}  // namespace infernode::cuda
