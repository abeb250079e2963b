#pragma once

#include <string_view>

#include "graph/attributes.h"
#include "microkernels/common/activation.h"

namespace infernode::ops {

/// An activation of microkernels/common/activations.inc.
struct KnownActivation {
  const char* name;
  microkernels::Activation kind;
  float a, b;              ///< where a node gives no `activation_params`
  const char* definition;  ///< in standard operators, in the words of activations.inc
};

/// nullptr where there is none of the name.
const KnownActivation* find_activation(std::string_view name);

/// The epilogue that com.microsoft's fused operators name: attributes `activation` and `activation_params`. None where
/// the node has no such attribute. Throws InvalidModel for names that are not known.
microkernels::ActivationArgs read_activation(const graph::Attributes& attributes);

}  // namespace infernode::ops
