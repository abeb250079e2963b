#pragma once

#include <map>
#include <string>

#include "double.h"
#include "emulation.h"

namespace infernode::cuda_double {

using Table = std::map<std::string, HostKernel>;

template <class P, void (*kKernel)(P)>
HostKernel host_kernel() {
  return {[](const void* params, const unsigned grid[3], const unsigned block[3]) {
            const P& p = *static_cast<const P*>(params);
            run_grid(grid, block, [&p] { kKernel(p); });
          },
          sizeof(P)};
}

/// Adds kernels by their names, for a function that has `using namespace` of where they are.
#define ADD(name, params) table.emplace(#name, host_kernel<cuda::params, name>());

void add_simple_kernels(Table& table);
void add_product_kernels(Table& table);
void add_attention_kernels(Table& table);

}  // namespace infernode::cuda_double
