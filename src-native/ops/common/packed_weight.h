#pragma once

#include <string_view>

#include "kernel/kernel.h"

namespace infernode::ops {

/// The constant `input` of the node that is being built as `make` packs it into `bytes` bytes (see WeightPacker). A
/// packed weight that comes from a file is taken only where it has as many: kernels read all of it.
inline tensor::Buffer packed_weight(kernel::KernelInfo& info, std::size_t input, std::string_view format,
                                    std::size_t bytes, FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) {
  tensor::Buffer packed = info.packer().pack(info.node(), input, format, make);
  return packed.size() >= bytes ? packed : make(*info.constant(input));
}

}  // namespace infernode::ops
