#include "kernel/run_context.h"

#include <algorithm>

#include "base/error.h"
#include "kernel/profile.h"
#include "kernel/watch.h"

namespace infernode::kernel {

void MemoryBudget::reserve(std::size_t bytes) {
  std::size_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes)
      fail(ErrorCode::OutOfMemory, cat("the run asked for ", bytes, " bytes while ", used, " of the ", limit_,
                                       " bytes of its memoryLimit are in use"));
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

void RunContext::check() const {
  if (loops != nullptr) loops->looked();
  if (cancel && cancel->cancelled()) fail(ErrorCode::Aborted, "the run was cancelled");
  if (deadline && std::chrono::steady_clock::now() > *deadline)
    fail(ErrorCode::Aborted, "the run took longer than its timeout");
}

namespace {

/// Computes [begin, end) in slices, with a look between two whether the run is to end. Estimates of a loop's cost may
/// be wrong by much: the first slice is short, and the clock says how long the next ones are.
template <class Compute>
void compute_in_slices(const RunContext& run, std::size_t begin, std::size_t end, double cost_ns,
                       const Compute& compute) {
  using Clock = std::chrono::steady_clock;
  constexpr double kFirstNs = kLookEveryNs / 8;
  const double cost = std::max(cost_ns, 1e-3);
  auto slice = static_cast<std::size_t>(std::clamp(kFirstNs / cost, 1.0, 1e15));
  while (end - begin > slice) {
    run.check();
    const auto began = Clock::now();
    compute(begin, begin + slice);
    begin += slice;
    const double took = std::chrono::duration<double, std::nano>(Clock::now() - began).count();
    if (took < kLookEveryNs / 2) {
      slice *= 2;
    } else if (took > kLookEveryNs) {
      slice = std::max<std::size_t>(1, static_cast<std::size_t>(static_cast<double>(slice) * kLookEveryNs / took));
    }
  }
  run.check();
  compute(begin, end);
}

}  // namespace

void RunContext::parallel_for(std::size_t count, double cost_ns,
                              FunctionRef<void(std::size_t, std::size_t, std::size_t)> fn) const {
  if (count == 0) return;
  const auto share = [&](FunctionRef<void(std::size_t, std::size_t, std::size_t)> body) {
    if (!pool || max_threads <= 1) return body(0, count, 0);
    pool->parallel_for(count, cost_ns, max_threads, body, dynamic_block_base);
  };
  const auto checked = [&](std::size_t begin, std::size_t end, std::size_t slot) {
    if (cancel == nullptr && !deadline) return fn(begin, end, slot);
    compute_in_slices(*this, begin, end, cost_ns, [&](std::size_t from, std::size_t to) { fn(from, to, slot); });
  };
  if (loops == nullptr) return share(checked);
  const LoopProfile::Loop loop(*loops);
  const auto timed = [&](std::size_t begin, std::size_t end, std::size_t slot) {
    const LoopProfile::Block block(loop, end - begin);
    checked(begin, end, slot);
  };
  share(timed);
}

}  // namespace infernode::kernel
