// The provider for NVIDIA GPUs: needs the driver alone, brings its kernels along.

#include "passes/pipeline.h"
#include "provider/provider.h"
#include "providers/cuda/claim.h"
#include "providers/cuda/device/images.h"
#include "providers/cuda/merge_products.h"
#include "providers/cuda/options.h"
#include "providers/cuda/plan/compiled_kernel.h"

namespace infernode::cuda {

namespace {

using tensor::Tensor;

class CudaProvider final : public provider::Provider {
 public:
  CudaProvider(std::shared_ptr<Device> device, const Options& options, const Logger& logger)
      : options_(options),
        logger_(logger),
        device_(std::move(device)),
        memory_(Memory::create(device_, options.memory)),
        pinned_(Memory::create(device_, {.kind = MemoryKind::PinnedHost})),
        constants_(std::make_shared<Constants>(device_, memory_)) {}

  std::string_view name() const override { return "cuda"; }
  tensor::Device device() const override { return device_->device(); }

  std::vector<provider::Claim> claim(const provider::GraphView& view) override {
    registry_ = &view.registry;
    return {{.nodes = claimed_nodes(view, lowerings_), .compile = true}};
  }

  std::unique_ptr<kernel::Kernel> compile(std::shared_ptr<const graph::Graph> subgraph,
                                          microkernels::Float32Precision precision) override {
    std::shared_ptr<const graph::Graph> graph = fused(*subgraph);
    std::vector<graph::NodeId> order = graph->topological_order();
    if (!can_lower_all(*graph, order, *registry_, lowerings_)) {
      graph = std::move(subgraph);
      order = graph->topological_order();
    }
    return std::make_unique<CompiledKernel>(PlanContext{.device = device_,
                                                        .memory = memory_,
                                                        .constants = constants_,
                                                        .lowerings = lowerings_,
                                                        .registry = *registry_,
                                                        .graph = std::move(graph),
                                                        .order = std::move(order),
                                                        .capture = options_.capture,
                                                        .kernel_times = kernel_times()},
                                            options_.precision.value_or(precision));
  }

  tensor::Allocator& allocator() override { return *memory_; }
  tensor::Allocator& host_allocator() override { return *pinned_; }
  std::unique_ptr<provider::Stream> make_stream() override { return std::make_unique<Stream>(device_); }

  void copy(const Tensor& from, const Tensor& to, provider::Stream& stream) override {
    if (from.dtype() != to.dtype() || from.bytes() != to.bytes()) {
      fail(ErrorCode::Internal, cat("cuda: copy of ", from.to_string(), " to ", to.to_string()));
    }
    if (from.bytes() == 0) return;
    const driver::Api& api = device_->api();
    const driver::StreamHandle queue = static_cast<Stream&>(stream).handle();
    device_->use();
    if (from.device().is_host()) {
      device_->check(api.copy_to_device(address_of(to.buffer()), from.raw(), from.bytes(), queue),
                     "a copy to the device");
    } else if (to.device().is_host()) {
      device_->check(api.copy_to_host(to.mutable_raw(), address_of(from.buffer()), from.bytes(), queue),
                     "a copy to the host");
    } else {
      device_->check(api.copy_on_device(address_of(to.buffer()), address_of(from.buffer()), from.bytes(), queue),
                     "a copy on the device");
    }
  }

 private:
  std::optional<Logger> kernel_times() const { return options_.kernel_times ? std::optional(logger_) : std::nullopt; }
  /// A copy of the graph after the fusions of level 2 and the provider's own.
  std::shared_ptr<const graph::Graph> fused(const graph::Graph& graph) const {
    graph::Model model;
    model.graph = graph.clone();
    passes::run_extended(model, name(),
                         {.level = passes::Level::Extended,
                          .registry = registry_,
                          .allocator = &tensor::host_allocator(),
                          .disabled = {},
                          .cpu_only = false});
    merge_products(*model.graph);
    return model.graph;
  }

  const Options options_;
  const Logger logger_;
  const LoweringTable lowerings_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Memory> memory_, pinned_;
  std::shared_ptr<Constants> constants_;
  const kernel::Registry* registry_ = nullptr;
};

}  // namespace

}  // namespace infernode::cuda

namespace infernode::provider {

namespace {

std::vector<DeviceDescription> devices_of_cuda() {
  std::vector<DeviceDescription> devices;
  if (cuda::images().empty()) return devices;
  try {
    for (const cuda::DeviceInfo& info : cuda::list_devices(*cuda::driver::open())) {
      devices.push_back({.device = cat("cuda:", info.id),
                         .name = info.name,
                         .memory_bytes = info.memory_bytes,
                         .compute_capability = cat(info.major, ".", info.minor),
                         .driver = cat(info.driver_version / 1000, ".", info.driver_version % 1000 / 10)});
    }
  } catch (const Error&) {  // no driver, or none that can be used
  }
  return devices;
}

}  // namespace

void register_cuda(std::vector<ProviderFactory>& factories) {
  factories.push_back({"cuda", !cuda::images().empty(),
                       [devices = std::make_shared<cuda::Devices>()](
                           const ProviderOptions& given, const Logger& logger) -> std::shared_ptr<Provider> {
                         const cuda::Options options = cuda::read_options(given, logger);
                         if (cuda::images().empty()) {
                           fail(ErrorCode::ProviderUnavailable,
                                "provider 'cuda' cannot start: this build has no CUDA kernels. Use 'cpu'.");
                         }
                         return std::make_shared<cuda::CudaProvider>(devices->open(options.device_id), options, logger);
                       },
                       devices_of_cuda});
}

}  // namespace infernode::provider
