#include "providers/cuda/plan/compiled_kernel.h"

#include <algorithm>

namespace infernode::cuda {

std::shared_ptr<DevicePlan> CompiledKernel::plan_for(std::vector<tensor::Shape> shapes) const {
  constexpr std::size_t kMostPlans = 16;
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(plans_.begin(), plans_.end(), [&](const Cached& cached) { return cached.shapes == shapes; });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return found->plan;
  }
  auto plan = std::make_shared<DevicePlan>(context_, shapes, precision_);
  plans_.push_front({std::move(shapes), plan});
  if (plans_.size() > kMostPlans) plans_.pop_back();
  return plan;
}

void CompiledKernel::run(kernel::KernelContext& ctx) const {
  auto& stream = static_cast<Stream&>(ctx.stream());
  std::vector<tensor::Shape> shapes;
  Addresses addresses;
  shapes.reserve(ctx.input_count());
  addresses.inputs.reserve(ctx.input_count());
  for (std::size_t i = 0; i < ctx.input_count(); ++i) {
    shapes.push_back(ctx.input(i).shape());
    addresses.inputs.push_back(address_of(ctx.input(i).buffer()));
  }
  const std::shared_ptr<DevicePlan> plan = plan_for(std::move(shapes));
  addresses.outputs.reserve(plan->output_count());
  for (std::size_t o = 0; o < plan->output_count(); ++o) {
    addresses.outputs.push_back(address_of(ctx.output(o, plan->output_dtype(o), plan->output_shape(o)).buffer()));
  }
  stream.hold(plan);
  plan->run(context_, addresses, stream);
}

}  // namespace infernode::cuda
