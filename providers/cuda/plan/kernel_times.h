#pragma once

#include <span>

#include "base/log.h"
#include "providers/cuda/device/stream.h"

namespace infernode::cuda {

/// Writes a line for every launch of a plan, in order: how long it takes in a chain of itself, us, with its kernel,
/// grid and shared memory; then their sum and how long one replay of all takes. For finding where a run's time goes.
/// Writes to the plan's memory: what runs next has to begin anew.
void log_kernel_times(const std::shared_ptr<Device>& device, std::span<const ReadyLaunch> launches,
                      const Logger& logger);

}  // namespace infernode::cuda
