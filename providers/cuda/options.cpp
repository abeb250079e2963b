#include "providers/cuda/options.h"

#include <charconv>

#include "base/error.h"

namespace infernode::cuda {

namespace {

[[noreturn]] void refuse(std::string_view key, std::string_view value, std::string_view wanted) {
  fail(ErrorCode::InvalidArgument, cat("provider 'cuda': option '", key, "' is ", wanted, ", got '", value, "'"),
       {.expected = std::string(wanted), .actual = std::string(value)});
}

template <class T>
T number(std::string_view key, std::string_view value) {
  T out{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), out);
  if (error != std::errc() || end != value.data() + value.size()) refuse(key, value, "a number");
  return out;
}

bool flag(std::string_view key, std::string_view value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  refuse(key, value, "0 or 1");
}

/// Options that change nothing here, since what they choose is always so or has no counterpart.
constexpr std::string_view kWithoutEffect[] = {"do_copy_in_default_stream",
                                               "cudnn_conv_algo_search",
                                               "cudnn_conv_use_max_workspace",
                                               "cudnn_conv1d_pad_to_nc1d",
                                               "enable_cudnn",
                                               "prefer_nhwc",
                                               "prefer_nhwc_mode",
                                               "fuse_conv_bias",
                                               "enable_skip_layer_norm_strict_mode",
                                               "enable_skip_layer_norm",
                                               "use_ep_level_unified_stream",
                                               "tunable_op_enable",
                                               "tunable_op_tuning_enable",
                                               "tunable_op_max_tuning_duration_ms",
                                               "sdpa_kernel"};

/// Options that ask for what this provider cannot do yet.
constexpr std::string_view kMissing[] = {"has_user_compute_stream",  "user_compute_stream",
                                         "gpu_external_alloc",       "gpu_external_free",
                                         "gpu_external_empty_cache", "default_memory_arena_cfg"};

template <std::size_t kCount>
bool contains(const std::string_view (&names)[kCount], std::string_view name) {
  for (const std::string_view one : names) {
    if (one == name) return true;
  }
  return false;
}

}  // namespace

Options read_options(const provider::ProviderOptions& given, const Logger& logger) {
  Options options;
  for (const auto& [key, value] : given) {
    if (key == "device_id") {
      options.device_id = number<int>(key, value);
    } else if (key == "gpu_mem_limit") {
      options.memory.limit = number<std::size_t>(key, value);
    } else if (key == "arena_extend_strategy") {
      if (value != "kNextPowerOfTwo" && value != "kSameAsRequested")
        refuse(key, value, "kNextPowerOfTwo or kSameAsRequested");
      options.memory.next_power_of_two = value == "kNextPowerOfTwo";
    } else if (key == "enable_cuda_graph") {
      options.capture = flag(key, value);
    } else if (key == "kernel_times") {
      options.kernel_times = flag(key, value);
    } else if (key == "use_tf32") {
      if (flag(key, value)) options.precision = microkernels::Float32Precision::kMedium;
    } else if (contains(kMissing, key)) {
      if (value != "0" && !value.empty())
        fail(ErrorCode::InvalidArgument, cat("provider 'cuda' has no '", key, "' yet: leave it out"));
    } else if (contains(kWithoutEffect, key)) {
      logger.write(LogSeverity::Verbose, "cuda", "option '", key, "' has no effect");
    } else {
      fail(ErrorCode::InvalidArgument, cat("provider 'cuda' has no option '", key, "'"));
    }
  }
  return options;
}

}  // namespace infernode::cuda
