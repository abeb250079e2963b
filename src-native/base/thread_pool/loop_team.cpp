#include "base/thread_pool/loop_team.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "base/float_mode.h"
#include "base/thread_pool/futex.h"

namespace infernode {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kInside = 0x7fff;
constexpr uint32_t kSeat = 0x8000;
constexpr uint32_t kSeats = kInside * kSeat;
constexpr uint32_t kCallerSleeps = 0x80000000u;

/// Waits in the processor until done() or `end`; true when done.
template <class F>
bool spin_until(Clock::time_point end, F done) {
  constexpr int kPausesPerLook = 32;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) return true;
      cpu_relax();
    }
  } while (Clock::now() < end);
  return false;
}

}  // namespace

LoopTeam::LoopTeam(size_t workers, uint32_t spin_us, const ThreadHooks& hooks)
    : spin_(std::min<uint32_t>(spin_us, 200)),
      loops_(std::make_unique<Loop[]>(kLoops)),
      workers_(std::make_unique<Worker[]>(workers)) {
  threads_.reserve(workers);
  for (size_t i = 0; i < workers; ++i) {
    workers_[i] = {this, i};
    try {
      OsThread thread;
      if (!thread.start(worker_entry, &workers_[i], &hooks)) break;
      threads_.push_back(std::move(thread));
    } catch (...) {
      break;  // no memory, or a hook that throws: work with the threads there are
    }
  }
}

LoopTeam::~LoopTeam() {
  stopping_.store(true);
  wake_word_.fetch_add(1);
  futex_wake(wake_word_, UINT32_MAX);
  for (OsThread& thread : threads_) thread.join();
}

void LoopTeam::run(size_t count, size_t block, size_t participants, size_t dynamic_block_base,
                   ThreadPool::LoopBody fn) {
  const size_t index = reserve_loop();
  if (index == kLoops) return fn(0, count, 0);
  Loop& loop = loops_[index];
  participants = std::min<size_t>(participants, kInside);
  loop.count = count;
  loop.block = block;
  loop.participants = participants;
  loop.dynamic_block_base = dynamic_block_base;
  loop.float_mode = float_mode();
  loop.fn = &fn;
  loop.next.store(0, std::memory_order_relaxed);

  const size_t seats = participants - 1;
  // Marked open before there are seats, so that the thread which takes the last seat clears a mark that is set.
  open_.fetch_or(bit_of(loop));
  loop.gate.store(static_cast<uint32_t>(seats) * kSeat);
  wake(seats);

  compute(loop, 0);
  wait_until_left(loop);

  Fault error;
  if (loop.failed.load(std::memory_order_relaxed)) {
    error = std::exchange(loop.error, {});
    loop.failed.store(false, std::memory_order_relaxed);
  }
  reserved_.fetch_and(~bit_of(loop), std::memory_order_release);
  if (error) std::move(error).rethrow();
}

size_t LoopTeam::reserve_loop() {
  uint64_t reserved = reserved_.load(std::memory_order_relaxed);
  for (;;) {
    if (reserved == UINT64_MAX) return kLoops;
    const uint64_t bit = ~reserved & (reserved + 1);
    if (reserved_.compare_exchange_weak(reserved, reserved | bit, std::memory_order_acquire, std::memory_order_relaxed))
      return static_cast<size_t>(std::countr_zero(bit));
  }
}

void LoopTeam::compute(Loop& loop, size_t slot) {
  size_t begin, end;
  try {
    while (take_block(loop, begin, end)) (*loop.fn)(begin, end, slot);
  } catch (...) {
    if (!loop.failed.exchange(true)) loop.error.note();
    loop.next.store(loop.count, std::memory_order_relaxed);
    stop_entry(loop);
  }
}

bool LoopTeam::take_block(Loop& loop, size_t& begin, size_t& end) {
  begin = loop.next.load(std::memory_order_relaxed);
  do {
    if (begin >= loop.count) return false;
    const size_t left = loop.count - begin;
    size_t block = loop.block;
    if (loop.dynamic_block_base != 0) block = std::max(block, left / loop.dynamic_block_base / loop.participants);
    end = begin + std::min(block, left);
  } while (!loop.next.compare_exchange_weak(begin, end, std::memory_order_relaxed));
  if (end == loop.count) stop_entry(loop);
  return true;
}

/// Called by a thread inside: nobody needs to enter any more.
void LoopTeam::stop_entry(Loop& loop) {
  loop.gate.fetch_and(~kSeats, std::memory_order_acq_rel);
  open_.fetch_and(~bit_of(loop), std::memory_order_relaxed);
}

bool LoopTeam::enter(Loop& loop, size_t& slot) {
  uint32_t gate = loop.gate.load(std::memory_order_relaxed);
  do {
    if ((gate & kSeats) == 0) return false;
  } while (
      !loop.gate.compare_exchange_weak(gate, gate - kSeat + 1, std::memory_order_acq_rel, std::memory_order_relaxed));
  const uint32_t seats = (gate & kSeats) / kSeat;
  slot = loop.participants - seats;
  if (seats == 1) open_.fetch_and(~bit_of(loop), std::memory_order_relaxed);
  return true;
}

void LoopTeam::leave(Loop& loop) {
  if (loop.gate.fetch_sub(1, std::memory_order_acq_rel) == (kCallerSleeps | 1)) futex_wake(loop.gate, 1);
}

void LoopTeam::wait_until_left(Loop& loop) {
  const auto left = [&] { return (loop.gate.load(std::memory_order_acquire) & kInside) == 0; };
  if (left() || spin_until(Clock::now() + spin_, left)) return;
  uint32_t gate = loop.gate.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  while ((gate & kInside) != 0) {
    futex_wait(loop.gate, gate);
    gate = loop.gate.load(std::memory_order_acquire);
  }
}

void LoopTeam::wake(size_t wanted) {
  // At most a few from here; those woken wake the rest, which spreads the cost of waking many.
  constexpr size_t kMostAtOnce = 2;
  const size_t searching = searching_.load();
  if (wanted <= searching) return;
  if (sleeping_.load() == 0) return;
  wake_word_.fetch_add(1);
  futex_wake(wake_word_, static_cast<uint32_t>(std::min(wanted - searching, kMostAtOnce)));
}

bool LoopTeam::help_somewhere(size_t& last_loop) {
  const uint64_t open = open_.load();
  if (open == 0) return false;
  // Starting after the loop helped last gives concurrent callers their turn.
  const int first = static_cast<int>((last_loop + 1) % kLoops);
  for (uint64_t turned = std::rotr(open, first); turned != 0; turned &= turned - 1) {
    const size_t index = (static_cast<size_t>(std::countr_zero(turned)) + static_cast<size_t>(first)) % kLoops;
    Loop& loop = loops_[index];
    size_t slot;
    if (!enter(loop, slot)) continue;
    last_loop = index;
    searching_.fetch_sub(1, std::memory_order_relaxed);
    wake(loop.participants - 1 - slot);
    if (loop.float_mode != float_mode()) set_float_mode(loop.float_mode);
    compute(loop, slot);
    leave(loop);
    searching_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void LoopTeam::worker_entry(void* raw) {
  const Worker& worker = *static_cast<Worker*>(raw);
  worker.team->work(worker.index);
}

void LoopTeam::work(size_t index) {
  const auto stirred = [&] { return open_.load() != 0 || stopping_.load(); };
  size_t last_loop = index;
  Clock::time_point awake_until{};
  searching_.fetch_add(1);
  for (;;) {
    if (help_somewhere(last_loop)) {
      awake_until = Clock::now() + spin_;
      continue;
    }
    if (stopping_.load()) return;
    if (Clock::now() < awake_until && spin_until(awake_until, stirred)) continue;
    // A caller marks its loop open before it looks for sleepers, and this thread counts as one before it looks for open
    // loops: one of the two sees the other.
    const uint32_t word = wake_word_.load();
    sleeping_.fetch_add(1);
    searching_.fetch_sub(1);
    if (!stirred()) futex_wait(wake_word_, word);
    searching_.fetch_add(1);
    sleeping_.fetch_sub(1);
  }
}

}  // namespace infernode
