#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/executor.h"

namespace infernode::runtime {

/// A step whose inputs' or outputs' sizes do not follow from the shapes of its plan's inputs (ShapePlan::any_size). In
/// a run that shall be brief it goes on only where it was short with inputs of these shapes before, and where its size
/// follows from them; in others that is noted.
class WatchedStep {
 public:
  /// Just before the kernel runs. Throws Error(Aborted).
  WatchedStep(const Execution& execution, std::size_t index, std::span<const tensor::Value* const> inputs);
  /// Just after it.
  void ended(std::span<const tensor::Value* const> inputs) const;

 private:
  using Clock = std::chrono::steady_clock;
  const Execution& execution_;
  const std::size_t index_;
  const std::optional<std::uint64_t> key_;
  const bool brief_;
  const Clock::time_point begin_;
};

}  // namespace infernode::runtime
