#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "microkernels/common/precision.h"
#include "passes/pipeline.h"
#include "provider/provider.h"
#include "session/config.h"
#include "tensor/buffer.h"

// The types that options have, for session/option_fields.h, which is written from the schema of the options.
namespace infernode::session {

/// One entry of executionProviders.
struct ProviderChoice {
  std::string name{};  ///< "cpu", "cuda", "null", ...
  provider::ProviderOptions options{};
};

/// Hears how far a load is, on any thread, one call at a time: "optimize" when the model has been read, then "build"
/// with how many nodes of how many have their kernels. It does not throw.
using ProgressSink = std::function<void(std::string_view phase, std::size_t done, std::size_t total)>;

/// The number that stands for an option that is not given: its member keeps the default.
struct Absent {
  double number;
};

}  // namespace infernode::session
