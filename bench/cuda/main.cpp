#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/cuda/check.h"

// usage: kernels <folder of cubins> [problems of each family] [seed] [family]
int main(int argc, char** argv) {
  using namespace infernode::cuda::bench;
  if (argc < 2) return 2;
  const int problems = argc > 2 ? std::atoi(argv[2]) : 200;
  const auto seed = static_cast<std::uint32_t>(argc > 3 ? std::atoi(argv[3]) : 1);
  const std::string only = argc > 4 ? argv[4] : "";
  const auto wants = [&](const char* family) { return only.empty() || only == family; };
  Device device(argv[1]);
  Arena arena(device, std::size_t{3} << 30);
  bool right = true;
  if (wants("gemm")) right &= check_gemm(device, arena, problems, seed);
  if (wants("conv")) right &= check_conv(device, arena, problems, seed + 1);
  if (wants("attention")) right &= check_attention(device, arena, problems, seed + 2);
  if (wants("depthwise")) right &= check_depthwise(device, arena, problems, seed + 3);
  if (wants("depthwise")) time_depthwise(device, arena);
  if (wants("attention")) time_attention(device, arena);
  if (wants("gemm") || wants("conv")) time_products(device, arena);
  std::printf(right ? "all right\n" : "WRONG\n");
  return right ? 0 : 1;
}
