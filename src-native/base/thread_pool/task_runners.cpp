#include "base/thread_pool/task_runners.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace infernode {

void TaskRunners::end() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  task_waits_.notify_all();
  runner_ended_.wait(lock, [&] { return live_.empty(); });
  join_all(ended_);
}

void TaskRunners::submit(Task task) {
  std::list<Runner> ended;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
    if (idle_ >= queue_.size()) {
      task_waits_.notify_one();
    } else if (live_.size() < std::max<size_t>(1, options_.max_runners) && !start_runner() && live_.empty()) {
      queue_.pop_back();
      fail(ErrorCode::OutOfMemory, "the system refuses to start a thread: too many threads or too little memory");
    }
    ended.swap(ended_);
  }
  join_all(ended);
}

bool TaskRunners::start_runner() {
  try {
    live_.push_back({this, {}, {}});
    Runner& runner = live_.back();
    runner.self = std::prev(live_.end());
    // The new thread waits for the lock held here before it touches its runner.
    if (runner.thread.start(runner_entry, &runner, &options_.hooks)) return true;
    live_.pop_back();
  } catch (...) {
    if (!live_.empty() && !live_.back().thread.started()) live_.pop_back();
  }
  return false;
}

void TaskRunners::runner_entry(void* raw) {
  Runner& runner = *static_cast<Runner*>(raw);
  runner.owner->run(runner);
}

void TaskRunners::run(Runner& runner) {
  std::unique_lock lock(mutex_);
  const auto stirred = [&] { return stopping_ || !queue_.empty(); };
  for (;;) {
    if (!queue_.empty()) {
      Task task = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      try {
        task();
      } catch (...) {
        // The contract forbids it; ending the process would be worse than going on.
      }
      task = Task();
      lock.lock();
      continue;
    }
    if (stopping_) break;
    ++idle_;
    const bool more = task_waits_.wait_for(lock, std::chrono::milliseconds(options_.runner_idle_ms), stirred);
    --idle_;
    if (!more) break;
  }
  ended_.splice(ended_.end(), live_, runner.self);
  // Under the lock: once it is released, the destructor may end.
  runner_ended_.notify_all();
}

void TaskRunners::join_all(std::list<Runner>& runners) {
  for (Runner& runner : runners) runner.thread.join();
  runners.clear();
}

}  // namespace infernode
