// The provider for NVIDIA GPUs: needs the driver alone, brings its kernels along.

#include "provider/provider.h"

namespace infernode::provider {

void register_cuda(std::vector<ProviderFactory>& factories) { (void)factories; }

}  // namespace infernode::provider
