#include "kernel/run_context.h"

#include "base/error.h"
#include "kernel/profile.h"

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
  if (cancel && cancel->cancelled()) fail(ErrorCode::Aborted, "the run was cancelled");
  if (deadline && std::chrono::steady_clock::now() > *deadline)
    fail(ErrorCode::Aborted, "the run took longer than its timeout");
}

void RunContext::parallel_for(std::size_t count, double cost_ns,
                              FunctionRef<void(std::size_t, std::size_t, std::size_t)> fn) const {
  if (count == 0) return;
  const auto share = [&](FunctionRef<void(std::size_t, std::size_t, std::size_t)> body) {
    if (!pool || max_threads <= 1) return body(0, count, 0);
    pool->parallel_for(count, cost_ns, max_threads, body, dynamic_block_base);
  };
  const auto checked = [&](std::size_t begin, std::size_t end, std::size_t slot) {
    check();
    fn(begin, end, slot);
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
