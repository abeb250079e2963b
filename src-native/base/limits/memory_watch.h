#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace infernode {

/// Compares what is granted with what the system has left, for systems that grant what is not there and kill who uses
/// it: for each large block, and once for many small ones.
class MemoryWatch {
 public:
  /// What is granted between two looks at most, in bytes.
  static constexpr std::uint64_t kUnseen = std::uint64_t{64} << 20;
  /// A block of more than this part of what is left has to be there before anything else is granted.
  static constexpr std::uint64_t kPart = 8;

  /// What is left for others: Node.js ends the process where it gets no memory.
  static constexpr std::uint64_t kOthers = std::uint64_t{32} << 20;

  /// `available` is asked what is left, by one thread at a time.
  explicit MemoryWatch(std::uint64_t (*available)()) : available_(available) {}

  /// Throws OutOfMemory where less than `bytes` is left beside kOthers. A granted block takes nothing from the system
  /// before its pages are written. So where little is left the result holds a lock, and others wait: the caller may
  /// write to each page before it lets go. Those that will not write at once let go at once.
  std::unique_lock<std::mutex> expect(std::uint64_t bytes);

 private:
  std::uint64_t (*const available_)();
  std::atomic<std::uint64_t> unseen_{0};      ///< granted since the last look
  std::atomic<std::uint64_t> look_after_{0};  ///< so much
  std::mutex mutex_;
};

/// expect_available() with the lock of the process's watch, which compares with available_memory().
std::unique_lock<std::mutex> take_available(std::uint64_t bytes);

/// Writes to each page of memory that holds zeros.
void touch_zeroed_pages(void* data, std::size_t bytes) noexcept;

}  // namespace infernode
