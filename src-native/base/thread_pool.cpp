#include "base/thread_pool.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/thread_pool/loop_team.h"
#include "base/thread_pool/task_runners.h"

namespace infernode {
namespace {

constexpr size_t kMostThreads = 1024;
// A thread is worth waking for this much work, and one that is awake for less; handing over one block costs well under
// a tenth of the smallest one.
constexpr double kLeastShareNs = 8000;
constexpr double kLeastAwakeShareNs = 2500;
constexpr double kLeastBlockNs = 2000;
// Blocks per thread: enough that unequal threads end together, few enough that neighbouring items stay together.
constexpr size_t kBlocksPerThread = 4;

}  // namespace

class ThreadPool::State {
 public:
  State(size_t threads, ThreadPoolOptions given)
      : options(std::move(given)),
        team(std::clamp<size_t>(threads, 1, kMostThreads) - 1, options.spin_us, options.hooks),
        runners(options) {}

  const ThreadPoolOptions options;
  // Tasks run loops, so the runners end before the team does.
  LoopTeam team;
  TaskRunners runners;
};

ThreadPool::ThreadPool(size_t threads, ThreadPoolOptions options)
    : state_(std::make_unique<State>(threads, std::move(options))) {}
// Tasks reach their pool by `state_`, which libc++ clears before it destroys the state.
ThreadPool::~ThreadPool() { state_->runners.end(); }

size_t ThreadPool::size() const noexcept { return state_->team.workers() + 1; }

void ThreadPool::parallel_for(size_t count, double cost_per_item_ns, size_t max_threads, LoopBody fn,
                              size_t dynamic_block_base) {
  if (count == 0) return;
  const double cost = cost_per_item_ns > 1e-3 ? std::min(cost_per_item_ns, 1e12) : 1e-3;
  const double share = state_->team.has_searchers() ? kLeastAwakeShareNs : kLeastShareNs;
  const double shares = std::min(static_cast<double>(count) * cost / share, static_cast<double>(kMostThreads));
  const size_t threads = std::min({count, max_threads, size(), static_cast<size_t>(shares)});
  if (threads < 2) return fn(0, count, 0);
  const size_t least_block = static_cast<size_t>(kLeastBlockNs / cost);
  // Rounded down: a few items more than blocks would become fewer blocks than threads share evenly.
  const size_t block = dynamic_block_base != 0 ? 1 : std::max<size_t>(1, count / (threads * kBlocksPerThread));
  state_->team.run(count, std::max(block, least_block), threads, dynamic_block_base, fn);
}

void ThreadPool::submit(Task task) { state_->runners.submit(std::move(task)); }

}  // namespace infernode
