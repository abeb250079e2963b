#include "calibrate/node_host.h"

#include <algorithm>

#include "microkernels/timing.h"

namespace infernode::bench {

namespace {

class NoOutputs final : public kernel::OutputSink {
 public:
  tensor::Tensor allocate_output(std::size_t, tensor::DType, const tensor::Shape&) override { return {}; }
};

}  // namespace

NodeHost::NodeHost(graph::Node node, std::vector<Input> inputs, CpuRung rung, microkernels::Float32Precision precision)
    : node_(std::move(node)), inputs_(std::move(inputs)), kernels_(microkernels::kernel_set(rung, precision)) {}

const graph::ValueType& NodeHost::input_type(std::size_t i) const {
  return i < inputs_.size() ? inputs_[i].type : none_;
}
const tensor::Tensor* NodeHost::constant(std::size_t i) const {
  return i < inputs_.size() ? inputs_[i].constant.get() : nullptr;
}

double NodeHost::time(FunctionRef<void(kernel::KernelContext&)> run) const {
  runtime::FrameAllocator memory(std::size_t{1} << 30);
  kernel::RunContext context;
  context.allocator = &memory;
  NoOutputs sink;
  kernel::KernelContext ctx(context, {}, {}, {}, {}, {}, sink);
  constexpr double kEnough = 0.012;
  constexpr int kMost = 400, kLeast = 3;
  double best = 1e9, total = 0;
  for (int i = 0; i < kMost && (total < kEnough || i < kLeast); ++i) {
    const double start = thread_seconds();
    run(ctx);
    const double seconds = thread_seconds() - start;
    best = std::min(best, seconds);
    total += seconds;
  }
  return 1e9 * best;
}

}  // namespace infernode::bench
