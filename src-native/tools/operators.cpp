// Prints docs/operators.md.

#include "tools/operator_table.h"

#include <cstdio>

namespace infernode::ops {
void register_all(kernel::OpRegistrar& registrar);
}

int main() {
  infernode::kernel::Registry registry;
  infernode::kernel::OpRegistrar registrar(registry);
  infernode::ops::register_all(registrar);
  std::fputs(infernode::tools::operator_table(registry).c_str(), stdout);
}
