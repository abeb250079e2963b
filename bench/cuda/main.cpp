#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/cuda/check.h"

// usage: kernels <folder of cubins> [problems of each family] [seed]
int main(int argc, char** argv) {
  using namespace infernode::cuda::bench;
  if (argc < 2) return 2;
  const int problems = argc > 2 ? std::atoi(argv[2]) : 200;
  const auto seed = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 1);
  Device device(argv[1]);
  Arena arena(device, std::size_t{3} << 30);
  bool right = check_gemm(device, arena, problems, seed);
  right &= check_conv(device, arena, problems, seed + 1);
  right &= check_attention(device, arena, problems, seed + 2);
  right &= check_depthwise(device, arena, problems, seed + 3);
  time_depthwise(device, arena);
  time_attention(device, arena);
  time_products(device, arena);
  std::printf(right ? "all right\n" : "WRONG\n");
  return right ? 0 : 1;
}
