#include "kernel/kernel.h"

#include "base/error.h"

namespace infernode::kernel {

const tensor::Value& KernelContext::input_value(std::size_t i) const {
  if (!has_input(i)) fail(ErrorCode::Internal, cat("a kernel asked for input ", i, ", which is absent"));
  return *inputs_[i];
}

Stream& KernelContext::stream() const {
  if (stream_ == nullptr) fail(ErrorCode::Internal, "a kernel of the CPU asked for a device's queue");
  return *stream_;
}

tensor::Tensor KernelContext::output(std::size_t o, tensor::DType dtype, const tensor::Shape& shape) {
  if (o >= outputs_.size()) fail(ErrorCode::Internal, cat("a kernel asked for output ", o, " of ", outputs_.size()));
  if (dtype == tensor::DType::Undefined)
    fail(ErrorCode::Internal, cat("the element type of output ", o, " is not known"));
  tensor::Tensor out = sink_.allocate_output(o, dtype, shape);
  outputs_[o] = out;
  return out;
}

}  // namespace infernode::kernel
