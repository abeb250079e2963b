#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <list>
#include <mutex>

#include "base/os_thread.h"
#include "base/task.h"
#include "base/thread_pool.h"

namespace infernode {

/// The task half of ThreadPool: threads that come when tasks wait and go when there are none for a while.
class TaskRunners {
 public:
  /// `options` must outlive this object.
  explicit TaskRunners(const ThreadPoolOptions& options) : options_(options) {}
  ~TaskRunners() { end(); }
  TaskRunners(const TaskRunners&) = delete;
  TaskRunners& operator=(const TaskRunners&) = delete;

  void submit(Task task);
  /// Finishes the tasks submitted, then ends and joins all threads; nothing may be submitted any more, but by a task.
  void end();

 private:
  struct Runner {
    TaskRunners* owner;
    OsThread thread;
    std::list<Runner>::iterator self;
  };

  static void runner_entry(void* runner);
  void run(Runner& runner);
  bool start_runner();
  static void join_all(std::list<Runner>& runners);

  const ThreadPoolOptions& options_;
  std::mutex mutex_;
  std::condition_variable task_waits_;
  std::condition_variable runner_ended_;
  std::deque<Task> queue_;
  std::list<Runner> live_;
  std::list<Runner> ended_;  ///< to be joined by another thread
  size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace infernode
