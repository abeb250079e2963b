#pragma once

#include "graph/attributes.h"
#include "microkernels/common/activation.h"

namespace infernode::ops {

/// The epilogue that com.microsoft's fused operators name: attributes `activation` ("Relu", "LeakyRelu", "Clip",
/// "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", and here also "Gelu", "GeluTanh", "Silu") and `activation_params`.
/// None where the node has no such attribute. Throws InvalidModel for others.
microkernels::ActivationArgs read_activation(const graph::Attributes& attributes);

}  // namespace infernode::ops
