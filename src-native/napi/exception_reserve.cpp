// Room for exceptions where memory has run out, in an addon that holds LLVM's C++ runtime, as those of packages do.
// That runtime has 512 bytes for all threads, which is one Error, and ends the process where another is thrown. (GCC's
// has 70 kB.) Its four functions that ask for memory stand in one member of its library
// (libcxxabi/src/fallback_malloc.cpp), which the linker leaves out since it finds them here.
#if defined(INFERNODE_LLVM_RUNTIME)

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

/// Slots that any thread takes and gives back without waiting. An Error with the runtime's header has 360 bytes.
class Reserve {
 public:
  /// Null where all are taken, or for what is larger than one.
  void* take(size_t bytes) noexcept {
    if (bytes > sizeof(Slot)) return nullptr;
    for (size_t i = 0; i < kSlots; ++i)
      if (!taken_[i].exchange(true, std::memory_order_acquire)) return &slots_[i];
    return nullptr;
  }

  bool owns(const void* memory) const noexcept {
    const auto at = reinterpret_cast<uintptr_t>(memory), first = reinterpret_cast<uintptr_t>(slots_);
    return at >= first && at < first + sizeof slots_;
  }

  void give_back(const void* memory) noexcept {
    taken_[static_cast<const Slot*>(memory) - slots_].store(false, std::memory_order_release);
  }

 private:
  static constexpr size_t kSlots = 256;
  struct alignas(std::max_align_t) Slot {
    std::byte bytes[512];
  };

  std::atomic<bool> taken_[kSlots]{};
  Slot slots_[kSlots]{};
};

constinit Reserve reserve;

void* allocate(size_t bytes) noexcept {
  void* const memory = std::malloc(bytes);
  return memory != nullptr ? memory : reserve.take(bytes);
}

void release(void* memory) noexcept {
  if (reserve.owns(memory))
    reserve.give_back(memory);
  else
    std::free(memory);
}

}  // namespace

namespace __cxxabiv1 {

void* __aligned_malloc_with_fallback(size_t size) { return allocate(size); }
void __aligned_free_with_fallback(void* memory) { release(memory); }
void __free_with_fallback(void* memory) { release(memory); }

void* __calloc_with_fallback(size_t count, size_t size) {
  void* const memory = allocate(count * size);
  if (memory != nullptr) std::memset(memory, 0, count * size);
  return memory;
}

}  // namespace __cxxabiv1

#endif
