#include "runtime/run/frame_pool.h"

namespace infernode::runtime {

void Frame::shrink() {
  arena = {};
  allocator.trim();
  devices.trim();
}

std::unique_ptr<Frame> FramePool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto frame = std::move(idle_.back());
      idle_.pop_back();
      ++taken_;
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>(keep_memory_);
  const std::lock_guard lock(mutex_);
  idle_.reserve(idle_.size() + taken_ + 1);  // giving back takes no memory
  ++taken_;
  return frame;
}

void FramePool::give_back(std::unique_ptr<Frame> frame) noexcept {
  for (tensor::Value& value : frame->values) value = {};
  if (!keep_memory_ || frame->lacked_memory) frame->shrink();
  frame->lacked_memory = false;
  const std::lock_guard lock(mutex_);
  --taken_;
  idle_.push_back(std::move(frame));
}

std::size_t FramePool::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& frame : idle_) total += frame->bytes();
  return total;
}

void FramePool::clear() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

}  // namespace infernode::runtime
