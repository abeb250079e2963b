#include "tensor/dispatch.h"

namespace infernode::tensor {

void fail_dispatch(DType type, const char* what) {
  ErrorContext context;
  context.op_type = what;
  context.actual = name(type);
  fail(ErrorCode::UnsupportedOperator, cat(what, " has no implementation for elements of type ", name(type)),
       std::move(context));
}

}  // namespace infernode::tensor
