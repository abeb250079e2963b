#include "host_kernels.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace infernode::cuda_double {

const HostKernel* find_kernel(const std::string& name) {
  static const Table all = [] {
    Table table;
    add_simple_kernels(table);
    add_product_kernels(table);
    add_attention_kernels(table);
    return table;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

bool needs_device(const std::string& name) {
  constexpr std::string_view kFamilies[] = {"attention_", "conv_mma_", "gemm_block_", "gemm_mma_", "gemv_"};
  return std::any_of(std::begin(kFamilies), std::end(kFamilies),
                     [&](std::string_view family) { return name.starts_with(family); });
}

}  // namespace infernode::cuda_double
