#include "runtime/plan/copy_kernels.h"

namespace infernode::runtime {

namespace {

class CopyKernel final : public kernel::Kernel {
 public:
  explicit CopyKernel(provider::Provider& provider) : provider_(provider) {}

  void run(kernel::KernelContext& ctx) const override {
    const tensor::Tensor& from = ctx.input(0);
    const tensor::Tensor to = ctx.output(0, from.dtype(), from.shape());
    provider_.copy(from, to, ctx.stream());
  }

 private:
  provider::Provider& provider_;
};

}  // namespace

std::unique_ptr<kernel::Kernel> make_copy_kernel(provider::Provider& provider) {
  return std::make_unique<CopyKernel>(provider);
}

}  // namespace infernode::runtime
