#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "runtime/memory/frame_allocator.h"
#include "runtime/run/device_work.h"
#include "tensor/value.h"

namespace infernode::runtime {

/// One run's mutable state: the values of a plan's edges and the memory of its activations.
struct Frame {
  explicit Frame(bool keep_memory) : allocator(keep_memory ? kKeep : 0), devices(keep_memory ? kKeep : 0) {}
  static constexpr std::size_t kKeep = std::size_t{256} << 20;

  std::vector<tensor::Value> values;  ///< by ValueId
  tensor::Buffer arena;
  FrameAllocator allocator;  ///< for what is not laid out beforehand
  DeviceWork devices;
  bool lacked_memory = false;  ///< a run that failed so: the pool keeps none of the frame's memory

  /// Host bytes that it keeps.
  std::size_t bytes() const { return arena.size() + allocator.kept_bytes() + devices.kept_bytes(); }
  /// Returns them to the system.
  void shrink();
};

/// Frames that no run uses at the moment, with room for those that are in use. Thread-safe.
class FramePool {
 public:
  explicit FramePool(bool keep_memory) : keep_memory_(keep_memory) {}
  std::unique_ptr<Frame> take();
  void give_back(std::unique_ptr<Frame> frame) noexcept;
  std::size_t bytes() const;
  /// Frees the frames that no run uses.
  void clear();

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;
  std::size_t taken_ = 0;
  bool keep_memory_;
};

/// A frame taken for the duration of a scope.
class FrameLease {
 public:
  explicit FrameLease(FramePool& pool) : pool_(pool), frame_(pool.take()) {}
  ~FrameLease() { pool_.give_back(std::move(frame_)); }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;
  Frame& operator*() const { return *frame_; }
  /// Calls compute(), and notes where it throws Error(OutOfMemory).
  template <class F>
  auto watch(F&& compute) const {
    try {
      return compute();
    } catch (const Error& error) {
      frame_->lacked_memory = error.code() == ErrorCode::OutOfMemory;
      throw;
    }
  }

 private:
  FramePool& pool_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace infernode::runtime
