#include "ops/conv/methods/derived.h"

#include <limits>

namespace infernode::ops {

namespace {

/// The node, but with the derived weight in the place of its own.
class DerivedInfo final : public kernel::KernelInfo {
 public:
  DerivedInfo(kernel::KernelInfo& node, const std::string& name, const tensor::Tensor& weight)
      : node_(node), weight_(weight), packer_(node, name, weight) {}

  const graph::Node& node() const override { return node_.node(); }
  std::int64_t since_version() const override { return node_.since_version(); }
  const graph::ValueType& input_type(std::size_t i) const override { return node_.input_type(i); }
  const graph::ValueType& output_type(std::size_t o) const override { return node_.output_type(o); }
  const tensor::Tensor* constant(std::size_t i) const override { return i == 1 ? &weight_ : node_.constant(i); }
  void release_constant(std::size_t) override {}
  kernel::WeightPacker& packer() override { return packer_; }
  const microkernels::KernelSet& kernels() const override { return node_.kernels(); }
  std::unique_ptr<kernel::SubgraphRunner> subgraph(std::string_view name) override { return node_.subgraph(name); }

 private:
  /// Packs for the node, under another name.
  class Packer final : public kernel::WeightPacker {
   public:
    Packer(kernel::KernelInfo& node, const std::string& name, const tensor::Tensor& weight)
        : node_(node), name_(name), weight_(weight) {}
    tensor::Buffer pack(const graph::Node& node, std::size_t input, std::string_view format,
                        FunctionRef<tensor::Buffer(const tensor::Tensor&)> make) override {
      return node_.packer().pack(node, input, cat(format, ".", name_),
                                 [&](const tensor::Tensor&) { return make(weight_); });
    }
    void look() override { node_.packer().look(); }

   private:
    kernel::KernelInfo& node_;
    const std::string& name_;
    const tensor::Tensor& weight_;
  };

  kernel::KernelInfo& node_;
  const tensor::Tensor& weight_;
  Packer packer_;
};

double expected(const ConvSite& site, ConvLayout layout) {
  const std::optional<ConvChoice> choice = quickest_conv(site, layout);
  return choice ? choice->nanoseconds : std::numeric_limits<double>::max();
}

/// The method for a site, which becomes one of the method's rung.
const ConvMethod& choose(ConvSite& site, ConvLayout layout) {
  const std::optional<ConvChoice> choice = quickest_conv(site, layout);
  if (!choice) fail(ErrorCode::Internal, "no method can run a derived convolution");
  site.rung = choice->rung;
  return *choice->method;
}

}  // namespace

double DerivedConv::nanoseconds(const ConvSite& site) { return expected(site, ConvLayout::Planar); }

double DerivedBlockedConv::nanoseconds(const ConvSite& site) { return expected(site, ConvLayout::Blocked); }

DerivedConv::DerivedConv(kernel::KernelInfo& info, ConvSite site, std::string name, tensor::Tensor weight)
    : groups_(static_cast<std::int64_t>(site.groups)), weight_(std::move(weight)) {
  site.weight = &weight_;
  const ConvMethod& method = choose(site, ConvLayout::Planar);
  DerivedInfo derived(info, name, weight_);
  runner_ = method.make(derived, site);
  if (!runner_->reads_weight()) weight_ = {};
}

DerivedBlockedConv::DerivedBlockedConv(kernel::KernelInfo& info, ConvSite site, const std::string& name,
                                       const tensor::Tensor& weight) {
  site.weight = &weight;
  const ConvMethod& method = choose(site, ConvLayout::Blocked);
  DerivedInfo derived(info, name, weight);
  runner_ = method.make_blocked(derived, site);
}

void DerivedConv::run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::int64_t images,
                      const float* x, const float* bias, float* y) const {
  run(ctx, shape, images, {x, nullptr, bias, nullptr, y}, {});
}

void DerivedConv::run(kernel::KernelContext& ctx, const microkernels::ConvShape& shape, std::int64_t images,
                      ConvOperands operands, const microkernels::ActivationArgs& activation) const {
  ConvProblem problem;
  problem.images = images;
  problem.groups = groups_;
  problem.channels = groups_ * static_cast<std::int64_t>(shape.in_channels);
  problem.out_channels = groups_ * static_cast<std::int64_t>(shape.out_channels);
  problem.shape = shape;
  operands.w = weight_ ? weight_.data<float>() : nullptr;
  runner_->run(ctx, problem, operands, activation);
}

}  // namespace infernode::ops
