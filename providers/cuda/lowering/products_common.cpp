#include "providers/cuda/lowering/products.h"

#include "base/error.h"

namespace infernode::cuda {

namespace {

struct Named {
  const char* name;
  Activation activation;
};
constexpr Named kActivations[] = {
    {"Relu", Activation::relu},
    {"Gelu", Activation::gelu},
    {"GeluTanh", Activation::gelu_tanh},
    {"Silu", Activation::silu},
    {"Sigmoid", Activation::sigmoid},
    {"Tanh", Activation::tanh},
    {"HardSwish", Activation::hard_swish},
    {"HardSigmoid", Activation::hard_sigmoid},
    {"LeakyRelu", Activation::leaky_relu},
    {"Clip", Activation::clip},
};

const Named* find_activation(const graph::Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "");
  for (const Named& item : kActivations) {
    if (name == item.name) return &item;
  }
  return nullptr;
}

}  // namespace

Element element_of(tensor::DType dtype) {
  return dtype == tensor::DType::Float32   ? Element::f32
         : dtype == tensor::DType::Float16 ? Element::f16
                                           : Element::bf16;
}

Precision precision_of(const Builder& b) {
  switch (b.precision()) {
    case microkernels::Float32Precision::kHigh:
      return Precision::high;
    case microkernels::Float32Precision::kMedium:
      return Precision::medium;
    default:
      return Precision::highest;
  }
}

bool can_activate(const NodeView& node) {
  return !node.attributes().has("activation") || find_activation(node.attributes()) != nullptr;
}

void set_activation(const graph::Attributes& attributes, Epilogue& epilogue) {
  const Named* found = find_activation(attributes);
  if (found == nullptr) return;
  const std::vector<float> params = attributes.get_floats("activation_params");
  epilogue.activation = found->activation;
  const bool leaky = found->activation == Activation::leaky_relu, hard = found->activation == Activation::hard_sigmoid;
  epilogue.a = !params.empty() ? params[0] : leaky ? 0.01f : hard ? 0.2f : 0.0f;
  epilogue.b = params.size() > 1 ? params[1] : hard ? 0.5f : 0.0f;
}

void use_weights(Builder& b, std::size_t input, bool transposed, GemmProblem& problem, WeightLayout& layout) {
  const tensor::Tensor& host = *b.known(input);
  const Element type = element_of(host.dtype());
  layout = weight_layout(b.target(), type, problem.precision, problem.n, 1, problem.k);
  const std::string format = cat("rows ", problem.n, " ", problem.k, " ", static_cast<int>(layout.type), " ",
                                 layout.pieces, " ", layout.row, transposed ? " t" : "");
  problem.b_packed = &layout;
  problem.b_address = b.constants().pack(host, format, layout.bytes, [&](DevicePtr from, DevicePtr to) {
    const WeightSource source{.address = from,
                              .type = type,
                              .row_stride = transposed ? problem.k : 1,
                              .tap_stride = 0,
                              .channel_stride = transposed ? 1 : problem.n};
    return plan_pack_weight(layout, source, to);
  });
}

void launch_gemm(Builder& b, GemmProblem problem) {
  if (problem.m == 0 || problem.n == 0 || problem.batch[0] * problem.batch[1] == 0) return;
  if (const std::size_t bytes = gemm_workspace(b.target(), problem); bytes > 0) problem.workspace = b.scratch(bytes);
  b.launch(plan_gemm(b.target(), problem));
}

ConvProblem conv_problem(Builder& b, const DeviceTensor& x, const DeviceTensor& y, const tensor::Shape& kernel,
                         const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilations) {
  const std::size_t dims = x.shape.rank() - 2;
  ConvProblem p;
  p.images = x.shape[0];
  p.groups = b.attributes().get_int("group", 1);
  for (std::size_t d = 0; d < dims; ++d) {
    const std::size_t at = 3 - dims + d;
    p.in[at] = x.shape[d + 2];
    p.out[at] = y.shape[d + 2];
    p.kernel[at] = kernel[d + 2];
    p.stride[at] = strides[d];
    p.dilation[at] = dilations[d];
  }
  p.input = x.at;
  p.type = element_of(x.dtype);
  p.pixel = x.pitch;
  p.precision = precision_of(b);
  p.epilogue.out = y.at;
  p.epilogue.out_type = element_of(y.dtype);
  p.epilogue.out_row = y.pitch;
  if (b.has_input(2)) {
    p.epilogue.bias = b.input_floats(2);
    p.epilogue.columns_constant = b.known(2) != nullptr;
  }
  return p;
}

void launch_conv(Builder& b, ConvProblem problem) {
  if (const std::size_t bytes = conv_workspace(b.target(), problem); bytes > 0) problem.workspace = b.scratch(bytes);
  b.launch(plan_conv(b.target(), problem));
}

}  // namespace infernode::cuda
