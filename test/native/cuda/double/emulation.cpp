#include "emulation.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

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

std::vector<Block::Stack> Block::stacks(std::size_t threads) {
  std::vector<Stack> stacks(threads);
  for (Stack& stack : stacks) stack = std::make_unique_for_overwrite<char[]>(kStack);
  return stacks;
}

std::unique_ptr<Block::Fiber> Block::make_fiber(Index thread, const Stack& stack) {
  auto fiber = std::make_unique<Fiber>();
  fiber->thread = thread;
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = stack.get();
  fiber->context.uc_stack.ss_size = kStack;
  fiber->context.uc_link = &scheduler_;
  makecontext(&fiber->context, &Block::enter, 0);
  return fiber;
}

Block::Block(Index at, Index dims, const std::function<void()>& kernel, std::span<const Stack> stacks)
    : index(at), size(dims), kernel_(kernel) {
  for (unsigned i = 0; i < stacks.size(); ++i) {
    fibers_.push_back(make_fiber({i % dims.x, i / dims.x % dims.y, i / dims.x / dims.y}, stacks[i]));
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
  const std::vector<Block::Stack> stacks = Block::stacks(std::size_t{block[0]} * block[1] * block[2]);
  for (unsigned z = 0; z < grid[2]; ++z) {
    for (unsigned y = 0; y < grid[1]; ++y) {
      for (unsigned x = 0; x < grid[0]; ++x) Block({x, y, z}, {block[0], block[1], block[2]}, kernel, stacks).run();
    }
  }
}

}  // namespace infernode::cuda_double
