#include "emulation.h"

#include <functional>
#include <memory>

namespace infernode::cuda_double {

namespace {
constexpr std::size_t kStack = 64 * 1024;
constexpr unsigned kWarp = 32;
Block*& current_block() {
  static thread_local Block* block = nullptr;
  return block;
}
}  // namespace

Block& Block::current() { return *current_block(); }

std::unique_ptr<Block::Fiber> Block::make_fiber(Index thread) {
  auto fiber = std::make_unique<Fiber>();
  fiber->thread = thread;
  fiber->stack.resize(kStack);
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.data();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = &scheduler_;
  makecontext(&fiber->context, &Block::enter, 0);
  return fiber;
}

Block::Block(Index at, Index dims, const std::function<void()>& kernel) : index(at), size(dims), kernel_(kernel) {
  for (unsigned i = 0; i < dims.x * dims.y * dims.z; ++i) {
    fibers_.push_back(make_fiber({i % dims.x, i / dims.x % dims.y, i / dims.x / dims.y}));
  }
}

void Block::enter() {
  Block& block = current();
  block.kernel_();
  block.fibers_[block.running_]->done = true;
}

void Block::run() {
  current_block() = this;
  live_ = fibers_.size();
  while (live_ > 0) {
    for (running_ = 0; running_ < fibers_.size(); ++running_) {
      Fiber& fiber = *fibers_[running_];
      if (fiber.done) continue;
      thread = fiber.thread;
      swapcontext(&scheduler_, &fiber.context);
      if (fiber.done) --live_;
    }
  }
  current_block() = nullptr;
}

void Block::yield() {
  const std::size_t self = running_;
  swapcontext(&fibers_[self]->context, &scheduler_);
}

/// Lanes of a warp come here in one round of the scheduler, so that each finds what the others gave in the round
/// before; two places each, as some have gone on to the next one by then.
std::uint32_t Block::shuffle(std::uint32_t value, unsigned lane_mask) {
  const std::size_t self = running_, warp = self / kWarp * kWarp;
  Fiber& fiber = *fibers_[self];
  const unsigned phase = fiber.phase++ & 1;
  fiber.given[phase] = value;
  yield();
  const std::size_t other = warp + ((self - warp) ^ lane_mask);
  return other < fibers_.size() ? fibers_[other]->given[phase] : value;
}

void Block::barrier() {
  const std::size_t own = barriers_;
  if (++waiting_ == live_) {
    waiting_ = 0;
    ++barriers_;
  }
  while (barriers_ == own) {
    yield();
    if (waiting_ == live_ && barriers_ == own) {  // the last one to come has ended instead
      waiting_ = 0;
      ++barriers_;
    }
  }
}

void run_grid(const unsigned grid[3], const unsigned block[3], const std::function<void()>& kernel) {
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) Block({x, y, z}, {block[0], block[1], block[2]}, kernel).run();
    }
  }
}

}  // namespace infernode::cuda_double
