#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "microkernels/common/precision.h"
#include "passes/pipeline.h"
#include "provider/provider.h"
#include "session/config.h"
#include "tensor/buffer.h"

namespace infernode::session {

/// One entry of executionProviders.
struct ProviderChoice {
  std::string name{};  ///< "cpu", "cuda", "null", ...
  provider::ProviderOptions options{};
};

/// Settings of one session; the TypeScript layer has checked types and ranges.
struct SessionOptions {
  std::vector<ProviderChoice> providers{};  ///< in order of preference; the CPU is appended where missing
  std::size_t intra_op_threads = 0;         ///< 0: all of the Engine's pool
  std::size_t inter_op_threads = 0;         ///< parallel mode: nodes at once; 0: as many as threads
  passes::Level level = passes::Level::All;
  bool parallel = false;               ///< executionMode
  bool cpu_arena = true;               ///< keep freed activation memory for the next run
  bool memory_pattern = true;          ///< lay activations out by lifetime when shapes are known
  std::string optimized_model_path{};  ///< write the optimized model here; "" : do not
  std::string model_cache_dir{};       ///< keep packed weights there for later loads; "": do not
  bool profiling = false;
  std::string profile_prefix{};
  std::string log_id{};
  microkernels::Float32Precision float32_precision = microkernels::Float32Precision::kHighest;
  LogSeverity log_severity = LogSeverity::Warning;
  std::map<std::string, std::int64_t, std::less<>> free_dimensions{};  ///< freeDimensionOverrides: symbol -> size
  std::map<std::string, tensor::Buffer, std::less<>>
      external_data{};  ///< externalData: path as the model spells it -> bytes
  Config config{};
  std::size_t memory_limit = SIZE_MAX;  ///< bytes that one run may hold

  /// How many of a pool's threads the session uses.
  std::size_t threads_of(std::size_t pool) const {
    return intra_op_threads == 0 ? pool : std::min(intra_op_threads, pool);
  }
};

/// Settings of one run.
struct RunOptions {
  std::optional<LogSeverity> log_severity{};
  std::string tag{};
  bool terminate = false;  ///< ends the run at once
  std::optional<std::int64_t> timeout_ms{};
  Config config{};
};

}  // namespace infernode::session
