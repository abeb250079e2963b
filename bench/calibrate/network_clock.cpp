#include "calibrate/network_clock.h"

#include <algorithm>
#include <chrono>

#include "microkernels/gemm/gemm.h"
#include "microkernels/kernel_set.h"

namespace infernode::bench {

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double, std::nano>(Clock::now() - start).count(); }
/// Of products whose B is packed as the unit multiplies it, so that it does little else.
const microkernels::GemmTable& table_of(CpuRung rung) {
  return microkernels::kernel_set(rung, microkernels::Float32Precision::kMedium).gemm;
}

}  // namespace

NetworkClock::Work::Work(CpuRung rung)
    : rung_(rung),
      b_(table_of(rung).weights.bytes(kColumns, kDepth) / sizeof(float)),
      scratch_(table_of(rung).scratch_floats) {
  const Buffer numbers(kColumns * kDepth);
  table_of(rung).weights.pack(kColumns, kDepth, numbers.data(), microkernels::FloatType::kF32, kColumns, false,
                              b_.data(), 0, kColumns);
}

void NetworkClock::Work::operator()() {
  const microkernels::GemmTable& table = table_of(rung_);
  microkernels::GemmArgs args{.m = kRows, .n = kColumns, .k = kDepth, .epilogue = {}};
  args.a = a_.data();
  args.lda = kDepth;
  args.packed_b = table.weights.packed(kColumns, kDepth, b_.data());
  args.c = c_.data();
  args.ldc = kColumns;
  table.gemm(args, {0, kRows, 0, kColumns}, scratch_.data());
}

NetworkClock::NetworkClock(CpuRung rung) : other_(std::min(rung, CpuRung::Avx512)) {
  if (rung == CpuRung::Amx) unit_.emplace(rung);
}

bool NetworkClock::is_disturbed() {
  if (!unit_) return false;
  constexpr double kMost = 1.8;  // four times as long is what is to be told apart
  (*unit_)();                    // a unit at rest takes some microseconds to start
  const Clock::time_point start = Clock::now();
  (*unit_)();
  const double taken = since(start);
  quickest_ = std::min(quickest_, taken);
  return taken > kMost * quickest_;
}

void NetworkClock::pass_over_memory() {
  constexpr std::size_t kFloats = std::size_t{1} << 21;  // more than a core's own cache
  memory_.assign(kFloats, 0.0f);
}

double NetworkClock::nanoseconds(FunctionRef<void()> call) {
  constexpr double kEnough = 4e6, kPatience = 1e9;
  constexpr std::size_t kLeast = 7, kMost = 40;
  std::vector<double> good, all;
  double total = 0;
  const Clock::time_point begin = Clock::now();
  while (good.size() < kMost && (good.size() < kLeast || total < kEnough) && since(begin) < kPatience) {
    for (float& number : memory_) number += 1;
    other_();
    const Clock::time_point start = Clock::now();
    call();
    const double taken = since(start);
    all.push_back(taken);
    if (is_disturbed()) continue;
    good.push_back(taken);
    total += taken;
  }
  std::vector<double>& times = good.empty() ? all : good;
  const auto quartile = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 4);
  std::nth_element(times.begin(), quartile, times.end());
  return *quartile;
}

}  // namespace infernode::bench
