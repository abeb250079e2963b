#pragma once

#include <cstdint>
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

/// The number that stands for an option that is not given: its member keeps the default.
struct Absent {
  double number;
};

}  // namespace infernode::session
