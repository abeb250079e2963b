#pragma once

#include <optional>
#include <vector>

#include "base/cpu_rung.h"
#include "base/function_ref.h"
#include "microkernels/timing.h"

namespace infernode::bench {

/// Takes times as calls have them within a network: other work lies between, so that a matrix unit has come to rest and
/// operands have left the nearest cache.
class NetworkClock {
 public:
  explicit NetworkClock(CpuRung rung);

  /// Nanoseconds of a call, the lower quartile of many. Those during which other programs disturbed a matrix unit do
  /// not count; after a second of only such ones they do.
  double nanoseconds(FunctionRef<void()> call);

  /// From now on so much memory is used between calls that their operands come from far away, as those of a conversion
  /// do: what one node wrote, and where another one wrote before.
  void pass_over_memory();

 private:
  /// A product of fixed size, by the loops of one rung.
  class Work {
   public:
    explicit Work(CpuRung rung);
    void operator()();

   private:
    static constexpr std::size_t kRows = 32, kColumns = 256, kDepth = 256;
    CpuRung rung_;
    Buffer a_{kRows * kDepth}, b_, c_{kRows * kColumns}, scratch_;
  };

  /// Whether a product of the unit takes much longer than the quickest one so far.
  bool is_disturbed();

  Work other_;
  std::optional<Work> unit_;
  std::vector<float> memory_;  ///< that is passed over
  double quickest_ = 1e18;     ///< nanoseconds of unit_
};

}  // namespace infernode::bench
