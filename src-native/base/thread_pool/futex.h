#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// Sleeping on a word until it changes. Spurious wake-ups happen: callers re-check their condition.
namespace infernode {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `expected`.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#else
  word.wait(expected, std::memory_order_relaxed);
#endif
}

/// Wakes up to `count` sleepers.
inline void futex_wake(std::atomic<uint32_t>& word, uint32_t count) noexcept {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count < 0x7fffffffu ? count : 0x7fffffffu, nullptr, nullptr, 0);
#else
  if (count > 4) {
    word.notify_all();
  } else {
    for (uint32_t i = 0; i < count; ++i) word.notify_one();
  }
#endif
}

/// Tells the processor that this is a waiting loop.
inline void cpu_relax() noexcept {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

}  // namespace infernode
