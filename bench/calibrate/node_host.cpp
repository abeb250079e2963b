#include "calibrate/node_host.h"

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

double NodeHost::time(NetworkClock& clock, FunctionRef<void(kernel::KernelContext&)> run) const {
  runtime::FrameAllocator memory(std::size_t{1} << 30);
  kernel::RunContext context;
  context.allocator = &memory;
  NoOutputs sink;
  kernel::KernelContext ctx(context, {}, {}, {}, {}, {}, sink);
  return clock.nanoseconds([&] { run(ctx); });
}

}  // namespace infernode::bench
