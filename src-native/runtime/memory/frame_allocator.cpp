#include "runtime/memory/frame_allocator.h"

#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <mutex>
#include <vector>

#include "runtime/memory/charged.h"

namespace infernode::runtime {

namespace {

/// Blocks that are left at a time: a kernel has few large ones.
constexpr std::size_t kMostLeft = 8;

}  // namespace

/// Shared with every block handed out: a block's end puts it back here, or frees it when the allocator is gone or full.
struct FrameAllocator::Pool {
  std::mutex mutex;
  std::map<std::size_t, std::vector<tensor::Buffer>> free;  // by exact size class
  std::size_t kept = 0;
  std::size_t limit = 0;
  std::vector<tensor::Buffer> left;  // has room beforehand

  void give_back(std::size_t bytes, tensor::Buffer block) noexcept {
    const std::lock_guard lock(mutex);
    if (!block) return;
    if (kept + bytes > limit) {
      if (bytes >= kSlowBytes && std::uncaught_exceptions() > 0 && left.size() < left.capacity())
        left.push_back(std::move(block));
      return;
    }
    try {
      free[bytes].push_back(std::move(block));
      kept += bytes;
    } catch (...) {  // no memory to note it: the block goes back to the system
    }
  }
};

namespace {

/// Four classes per power of two: at most a quarter is wasted.
std::size_t size_class(std::size_t bytes) {
  constexpr std::size_t kSmallest = 256;
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

FrameAllocator::FrameAllocator(std::size_t keep_bytes, tensor::Allocator& source)
    : pool_(std::make_shared<Pool>()), source_(source) {
  pool_->limit = keep_bytes;
  if (&source == &tensor::host_allocator()) pool_->left.reserve(kMostLeft);  // others may end before a thread is done
}

FrameAllocator::~FrameAllocator() {
  const std::lock_guard lock(pool_->mutex);
  pool_->limit = 0;
  pool_->free.clear();
  pool_->left = {};
  pool_->kept = 0;
}

tensor::Buffer FrameAllocator::allocate(std::size_t bytes) {
  if (bytes > SIZE_MAX / 2) return source_.allocate(bytes);  // fails there with its message
  struct Lease {
    std::shared_ptr<Pool> pool;
    std::size_t size;
    tensor::Buffer block;
    Lease(std::shared_ptr<Pool> p, std::size_t n) : pool(std::move(p)), size(n) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool->give_back(size, std::move(block)); }
  };
  const std::size_t size = size_class(bytes);
  auto lease = std::make_shared<Lease>(pool_, size);
  {
    const std::lock_guard lock(pool_->mutex);
    if (const auto found = pool_->free.find(size); found != pool_->free.end() && !found->second.empty()) {
      lease->block = std::move(found->second.back());
      found->second.pop_back();
      pool_->kept -= size;
    }
  }
  if (!lease->block) lease->block = source_.allocate(size);
  std::byte* data = lease->block.data();
  return tensor::Buffer(data, bytes, std::move(lease));
}

std::size_t FrameAllocator::kept_bytes() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->kept;
}

void FrameAllocator::trim() {
  std::map<std::size_t, std::vector<tensor::Buffer>> drop;
  const std::lock_guard lock(pool_->mutex);
  drop.swap(pool_->free);
  pool_->kept = 0;
  pool_->left.clear();
}

std::vector<tensor::Buffer> FrameAllocator::take_left() {
  std::vector<tensor::Buffer> left;
  left.reserve(kMostLeft);
  const std::lock_guard lock(pool_->mutex);
  left.swap(pool_->left);
  return left;
}

tensor::Buffer BudgetAllocator::allocate(std::size_t bytes) {
  auto charge = std::make_shared<Charged>(budget_, std::max(bytes, kLeastCost));
  charge->block = inner_.allocate(bytes);
  std::byte* data = charge->block.data();
  return tensor::Buffer(data, bytes, std::move(charge), inner_.device());
}

}  // namespace infernode::runtime
