#include "ops/common/activation.h"

#include <string>

#include "base/error.h"

namespace infernode::ops {

microkernels::ActivationArgs read_activation(const graph::Attributes& attributes) {
  using microkernels::Activation;
  struct Known {
    const char* name;
    Activation kind;
    float a, b;  // defaults of activation_params
  };
  constexpr Known kKnown[] = {
      {"Relu", Activation::kRelu, 0, 0},
      {"LeakyRelu", Activation::kLeakyRelu, 0.01f, 0},
      {"Clip", Activation::kClip, -3.402823466e38f, 3.402823466e38f},
      {"Sigmoid", Activation::kSigmoid, 0, 0},
      {"Tanh", Activation::kTanh, 0, 0},
      {"HardSigmoid", Activation::kHardSigmoid, 0.2f, 0.5f},
      {"HardSwish", Activation::kHardSwish, 0, 0},
      {"Gelu", Activation::kGelu, 0, 0},
      {"GeluTanh", Activation::kGeluTanh, 0, 0},
      {"Silu", Activation::kSilu, 0, 0},
  };
  const std::string name = attributes.get_string("activation", "");
  if (name.empty()) return {};
  const std::vector<float> params = attributes.get_floats("activation_params");
  for (const Known& known : kKnown) {
    if (name != known.name) continue;
    return {known.kind, !params.empty() ? params[0] : known.a, params.size() > 1 ? params[1] : known.b};
  }
  fail(ErrorCode::InvalidModel, cat("unknown activation '", name, "'"));
}

}  // namespace infernode::ops
