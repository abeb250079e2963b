#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/thread_pool.h"

namespace infernode {

/// Tasks on their way to a ThreadPool's runners: a bounded number of them runs at a time, and those that wait are taken
/// in turn from the lanes that they stand in, so that who has many waits for his own. Thread-safe, and only submit()
/// takes memory. Must live longer than the tasks, and its pool's runners.
class TaskLanes {
 public:
  class Lane;

  /// A task, which its owner keeps until over() is called. One that has been over may be submitted again.
  class Entry {
   public:
    virtual ~Entry() = default;

   protected:
    /// On a runner. Must not throw.
    virtual void work() noexcept = 0;
    /// On the runner, after work(): neither the entry nor its lane is touched any more.
    virtual void over() noexcept = 0;

   private:
    friend class TaskLanes;
    Lane* lane_ = nullptr;
    Entry* next_ = nullptr;
    bool waits_ = false;
    bool first_ = false;
  };

  /// One of those who take turns. Must outlive its entries.
  class Lane {
   public:
    /// At most `most` of its entries run at a time.
    explicit Lane(std::size_t most = SIZE_MAX) : most_(most) {}
    /// While it has no entries.
    void set_most(std::size_t most) { most_ = most; }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

   private:
    friend class TaskLanes;
    std::size_t most_;
    std::size_t running_ = 0;
    Entry* first_ = nullptr;
    Entry* last_ = nullptr;
    Lane* next_ = nullptr;  ///< in the ring of lanes where somebody waits
  };

  /// Where in its lane an entry waits: behind all, or before all but those that came to be before all earlier.
  enum class Place { First, Last };

  /// At most `most` entries run at a time, and of one lane one less where that is 2 or more: one who has many that
  /// never end leaves room for others.
  TaskLanes(ThreadPool& pool, std::size_t most) : pool_(pool), most_(most) {}
  TaskLanes(const TaskLanes&) = delete;
  TaskLanes& operator=(const TaskLanes&) = delete;

  /// Runs the entry when its turn comes. Throws where no thread can be started that would; it does not run then.
  void submit(Lane& lane, Entry& entry, Place place = Place::Last);
  /// Takes an entry out that has not begun: false where it has, or was not there.
  bool remove(Entry& entry) noexcept;
  /// Whether an entry that is submitted now waits for others.
  bool is_full(const Lane& lane) const;

  std::size_t most() const;
  /// Entries that run already are not stopped. At least 1.
  void set_most(std::size_t most);

 private:
  void run() noexcept;
  bool start_runner_locked(std::unique_lock<std::mutex>& lock) noexcept;
  bool may_begin_locked(const Lane& lane) const;
  bool any_may_begin_locked() const;
  Entry* take_locked();
  void unlink_locked(Lane& lane, Lane& before);

  ThreadPool& pool_;
  mutable std::mutex mutex_;
  std::size_t most_;
  std::size_t runners_ = 0;
  Lane* turn_ = nullptr;  ///< the lane before the one whose turn it is; null where nobody waits
};

}  // namespace infernode
