#pragma once

#include "kernel/op_registrar.h"

namespace infernode::ops {
void register_all(kernel::OpRegistrar& registrar);
}

namespace infernode::test {

/// A registry of all operators of ops/.
inline kernel::Registry all_operators() {
  kernel::Registry out;
  kernel::OpRegistrar registrar(out);
  ops::register_all(registrar);
  return out;
}

}  // namespace infernode::test
