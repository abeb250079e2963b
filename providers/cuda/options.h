#pragma once

#include <optional>

#include "microkernels/common/precision.h"
#include "provider/provider.h"
#include "providers/cuda/device/memory.h"

namespace infernode::cuda {

/// The provider's options, by onnxruntime's names.
struct Options {
  int device_id = 0;
  MemoryOptions memory;
  bool capture = true;        ///< enable_cuda_graph: runs that repeat replay a captured graph; on unless switched off
  bool kernel_times = false;  ///< kernel_times: each plan that is captured is written to the log with what it takes
  /// use_tf32: float32 products round what they multiply; otherwise the session's float32MatmulPrecision counts.
  std::optional<microkernels::Float32Precision> precision;
};

/// Throws InvalidArgument for an option that there is not, or a value that it does not take.
Options read_options(const provider::ProviderOptions& given, const Logger& logger);

}  // namespace infernode::cuda
