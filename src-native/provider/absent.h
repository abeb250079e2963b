#pragma once

#include <vector>

#include "provider/provider.h"

namespace infernode::provider {

/// Adds a factory for every name that executionProviders knows and `factories` does not have yet: it looks for the
/// vendor's library and throws ProviderUnavailable saying what is missing, or that this build has no kernels for it.
void add_absent(std::vector<ProviderFactory>& factories);

}  // namespace infernode::provider
