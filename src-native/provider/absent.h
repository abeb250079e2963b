#pragma once

#include <vector>

#include "provider/provider.h"

namespace infernode::provider {

/// Adds a factory for every name that executionProviders knows and `factories` does not have yet: it throws
/// ProviderUnavailable saying that this build has no kernels for it, and whether the vendor's library is here.
void add_absent(std::vector<ProviderFactory>& factories);

}  // namespace infernode::provider
