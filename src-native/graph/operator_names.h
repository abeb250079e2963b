#pragma once
// Names that several folders know: domains, and operators that both fusions and passes are about.

namespace infernode::graph {

/// Domains beside ONNX's own, whose name is empty.
inline constexpr const char *kMicrosoft = "com.microsoft", *kOwn = "infernode";

/// A convolution with an activation and a residual, of either domain.
inline constexpr const char* kFusedConv = "FusedConv";
inline constexpr const char* kMaxPool = "MaxPool";

}  // namespace infernode::graph
