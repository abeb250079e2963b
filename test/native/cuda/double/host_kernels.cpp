#include "host_kernels.h"

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

}  // namespace infernode::cuda_double
