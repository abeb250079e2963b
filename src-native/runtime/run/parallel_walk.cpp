#include "runtime/run/parallel_walk.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/float_mode.h"
#include "base/thread_pool/fault.h"
#include "runtime/run/end_apart.h"
#include "runtime/run/step_runner.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

/// Which steps wait for which, and who reads each value.
class Walk {
 public:
  explicit Walk(const Execution& execution) : execution_(execution) {
    const auto& steps = execution.plan.steps();
    waiting_.resize(steps.size(), 0);
    followers_.resize(steps.size());
    readers_.resize(execution.plan.value_count(), 0);
    std::vector<std::int64_t> producer(execution.plan.value_count(), -1);
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto need = [&](ValueId id) {
        if (id == kNoValue) return;
        ++readers_[static_cast<std::size_t>(id)];
        const std::int64_t from = producer[static_cast<std::size_t>(id)];
        if (from < 0) return;
        followers_[static_cast<std::size_t>(from)].push_back(s);
        ++waiting_[s];
      };
      for (const ValueId id : steps[s].inputs) need(id);
      for (const ValueId id : steps[s].implicit) need(id);
      for (const ValueId id : steps[s].outputs) {
        if (id != kNoValue) producer[static_cast<std::size_t>(id)] = static_cast<std::int64_t>(s);
      }
    }
    for (const ValueId id : execution.plan.graph().outputs()) ++readers_[static_cast<std::size_t>(id)];
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (waiting_[s] == 0) ready_.push_back(s);
    }
    left_ = steps.size();
  }

  /// Called by each participating thread; returns when no step is left or one has failed.
  void work() noexcept {
    try {
      take_steps();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      fault_.note();
      changed_.notify_all();
    }
  }

  /// A helper thread's part. One that comes too late finds the walk closed and touches nothing else.
  void help() {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      ++helpers_;
    }
    struct Leave {
      Walk& walk;
      ~Leave() {
        const std::lock_guard lock(walk.mutex_);
        --walk.helpers_;
        walk.changed_.notify_all();
      }
    } leave{*this};
    const FloatModeScope float_mode(true);
    work();
  }

  /// Waits for the helpers that have come; those that have not shall not.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    changed_.wait(lock, [&] { return helpers_ == 0; });
    if (fault_) std::move(fault_).rethrow();
  }

 private:
  void take_steps() {
    StepRunner runner(execution_, false);
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return left_ == 0 || fault_ || !ready_.empty(); });
      if (left_ == 0 || fault_) return;
      const std::size_t step = ready_.front();
      ready_.pop_front();
      lock.unlock();
      if (execution_.runs(step)) runner.run(step);
      lock.lock();
      finish(step);
    }
  }
  void finish(std::size_t step) {
    --left_;
    for (const std::size_t next : followers_[step]) {
      if (--waiting_[next] == 0) ready_.push_back(next);
    }
    const Step& done = execution_.plan.steps()[step];
    for (const ValueId id : done.inputs) drop(id);
    for (const ValueId id : done.implicit) drop(id);
    changed_.notify_all();
  }
  void drop(ValueId id) {
    if (id == kNoValue || --readers_[static_cast<std::size_t>(id)] > 0) return;
    tensor::Value& value = execution_.frame.values[static_cast<std::size_t>(id)];
    if (are_freed_slowly({&value, 1}, false)) end_apart(*execution_.run.pool, std::move(value));  // others wait
    value = {};
  }

  const Execution& execution_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> ready_;
  std::vector<std::size_t> waiting_, readers_;
  std::vector<std::vector<std::size_t>> followers_;
  std::size_t left_ = 0, helpers_ = 0;
  bool closed_ = false;
  Fault fault_;
};

}  // namespace

void walk_parallel(const Execution& execution) {
  const auto walk = std::make_shared<Walk>(execution);
  const std::size_t most = std::min(execution.inter_op_threads, execution.plan.steps().size());
  for (std::size_t i = 1; i < most; ++i) {
    try {
      execution.run.pool->submit([walk] { walk->help(); });
    } catch (...) {
      break;  // no thread or memory to be had: the threads there are do the work
    }
  }
  walk->work();
  walk->close();
}

}  // namespace infernode::runtime
