#pragma once

#include "kernel/run_context.h"

namespace infernode::kernel {

/// About how long a thread computes between two looks at whether its run is to end, in nanoseconds.
inline constexpr double kLookEveryNs = 2e6;

/// Looks whether a run is to end, once in so much work, for loops that run long without parallel_for: within one of its
/// items, in a sort's comparisons. One to a thread.
class Watch {
 public:
  explicit Watch(const RunContext& run) : run_(run) {}

  /// `ns`: rough time of what has been done since the last call. Throws Aborted.
  void did(double ns) {
    left_ns_ -= ns;
    if (left_ns_ < 0) look();
  }

 private:
  void look() {
    run_.check();
    left_ns_ = kLookEveryNs;
  }

  const RunContext& run_;
  double left_ns_ = kLookEveryNs;
};

}  // namespace infernode::kernel
