#include "fuzz/memory_watch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INFERNODE_FUZZ_HOOKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(INFERNODE_FUZZ_HOOKS)
#include <atomic>
#include <cstddef>

// Of <sanitizer/allocator_interface.h>, which not every compiler's package brings.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, std::size_t),
                                                         void (*freed)(const volatile void*));
extern "C" std::size_t __sanitizer_get_allocated_size(const volatile void* memory);

namespace infernode::fuzz {
namespace {

std::atomic<std::int64_t> held{0}, most{0};

void allocated(const volatile void* memory, std::size_t size) {
  if (memory == nullptr) return;
  const std::int64_t now =
      held.fetch_add(static_cast<std::int64_t>(size), std::memory_order_relaxed) + static_cast<std::int64_t>(size);
  std::int64_t seen = most.load(std::memory_order_relaxed);
  while (now > seen && !most.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

void freed(const volatile void* memory) {
  if (memory == nullptr) return;
  held.fetch_sub(static_cast<std::int64_t>(__sanitizer_get_allocated_size(memory)), std::memory_order_relaxed);
}

}  // namespace

MemoryWatch::MemoryWatch() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed);
  (void)installed;
  held.store(0, std::memory_order_relaxed);
  most.store(0, std::memory_order_relaxed);
}

std::int64_t MemoryWatch::peak() const { return most.load(std::memory_order_relaxed); }

}  // namespace infernode::fuzz
#else
namespace infernode::fuzz {

MemoryWatch::MemoryWatch() = default;
std::int64_t MemoryWatch::peak() const { return 0; }

}  // namespace infernode::fuzz
#endif
