#pragma once

#include <memory>

#include "kernel/kernel.h"
#include "provider/provider.h"

namespace infernode::runtime {

/// The kernel of a copy step between the host and a provider's device: puts the copy into the run's stream.
std::unique_ptr<kernel::Kernel> make_copy_kernel(provider::Provider& provider);

}  // namespace infernode::runtime
