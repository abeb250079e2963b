#include "base/limits/memory_watch.h"

#include <algorithm>
#include <cstddef>

#include "base/error.h"
#include "base/system.h"

namespace infernode {

std::unique_lock<std::mutex> MemoryWatch::expect(std::uint64_t bytes) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (bytes < kUnseen && unseen_.fetch_add(bytes, kRelaxed) + bytes <= look_after_.load(kRelaxed)) return {};
  std::unique_lock lock(mutex_);
  const std::uint64_t all = available_(), available = all - std::min(all, kOthers);
  const bool enough = bytes <= available;
  look_after_.store(std::min(kUnseen, (enough ? available - bytes : available) / kPart), kRelaxed);
  unseen_.store(0, kRelaxed);
  INFERNODE_CHECK(enough, ErrorCode::OutOfMemory, bytes, " bytes of memory are needed, and the system has ", all,
                  " left, of which ", kOthers, " are for others");
  if (bytes <= available / kPart) lock.unlock();
  return lock;
}

void touch_zeroed_pages(void* data, std::size_t bytes) noexcept {
  auto* const at = static_cast<volatile char*>(data);
  const std::size_t page = page_size();
  for (std::size_t i = 0; i < bytes; i += page) at[i] = 0;
}

}  // namespace infernode
