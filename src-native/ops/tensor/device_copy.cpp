#include "kernel/op_registrar.h"

namespace infernode::ops {

/// Schemas of the steps that move a value between devices (inserted by provider/partitioner.h; the plan makes their
/// kernels from the provider).
void register_device_copy(kernel::OpRegistrar& r) {
  for (const char* name : {"CopyToDevice", "CopyToHost"}) {
    r.op(name, "infernode").version(1, "input:T -> output:T; T = all_ir14").infer(kernel::infer_same_as_first);
  }
}

}  // namespace infernode::ops
