#pragma once

#include <string>
#include <vector>

namespace infernode::test {

/// A case ran these nodes on the device. At the end of the tests all operators that the provider has are listed, each
/// with the number of such cases.
void count_on_device(const std::vector<std::string>& operators);

}  // namespace infernode::test
