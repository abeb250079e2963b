#include "base/thread_pool/task_lanes.h"

#include <algorithm>
#include <utility>

namespace infernode {

void TaskLanes::submit(Lane& lane, Entry& entry, Place place) {
  std::unique_lock lock(mutex_);
  entry.lane_ = &lane;
  entry.waits_ = true;
  if (lane.first_ == nullptr) {  // the last in the ring
    if (turn_ == nullptr) turn_ = lane.next_ = &lane;
    lane.next_ = std::exchange(turn_->next_, &lane);
    turn_ = &lane;
  }
  entry.first_ = place == Place::First;
  Entry* before = lane.first_ == nullptr || place == Place::First ? nullptr : lane.last_;
  if (place == Place::First) {
    for (Entry* at = lane.first_; at != nullptr && at->first_; at = at->next_) before = at;
  }
  entry.next_ = std::exchange(before == nullptr ? lane.first_ : before->next_, &entry);
  if (entry.next_ == nullptr) lane.last_ = &entry;
  if (runners_ >= most_ || !may_begin_locked(lane)) return;
  ++runners_;
  lock.unlock();
  try {
    pool_.submit([this] { run(); });
  } catch (...) {
    lock.lock();
    if (--runners_ > 0) return;  // those that run will come to it
    lock.unlock();
    if (remove(entry)) throw;
  }
}

bool TaskLanes::remove(Entry& entry) noexcept {
  const std::lock_guard lock(mutex_);
  if (!entry.waits_) return false;
  entry.waits_ = false;
  Lane& lane = *entry.lane_;
  Entry* before = nullptr;
  for (Entry* at = lane.first_; at != &entry; at = at->next_) before = at;
  (before == nullptr ? lane.first_ : before->next_) = entry.next_;
  if (lane.last_ == &entry) lane.last_ = before;
  if (lane.first_ != nullptr) return true;
  Lane* previous = turn_;
  while (previous->next_ != &lane) previous = previous->next_;
  unlink_locked(lane, *previous);
  return true;
}

bool TaskLanes::is_full(const Lane& lane) const {
  const std::lock_guard lock(mutex_);
  return runners_ >= most_ || !may_begin_locked(lane);
}

std::size_t TaskLanes::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

void TaskLanes::set_most(std::size_t most) {
  std::unique_lock lock(mutex_);
  most_ = std::max<std::size_t>(most, 1);
  while (runners_ < most_ && any_may_begin_locked() && start_runner_locked(lock)) continue;
}

/// Releases the lock for the time that takes. False where no thread is to be had.
bool TaskLanes::start_runner_locked(std::unique_lock<std::mutex>& lock) noexcept {
  ++runners_;
  lock.unlock();
  bool started = true;
  try {
    pool_.submit([this] { run(); });
  } catch (...) {
    started = false;
  }
  lock.lock();
  if (!started) --runners_;
  return started;
}

void TaskLanes::run() noexcept {
  std::unique_lock lock(mutex_);
  while (runners_ <= most_) {
    Entry* const entry = take_locked();
    if (entry == nullptr) break;
    // An end of the lane's may have let two begin, and another thread for the second was not to be had before.
    if (runners_ < most_ && any_may_begin_locked()) start_runner_locked(lock);
    lock.unlock();
    entry->work();
    lock.lock();
    --entry->lane_->running_;
    lock.unlock();
    entry->over();
    lock.lock();
  }
  --runners_;
}

bool TaskLanes::may_begin_locked(const Lane& lane) const {
  return lane.running_ < std::min(lane.most_, std::max<std::size_t>(most_ - 1, 1));
}

bool TaskLanes::any_may_begin_locked() const {
  const Lane* lane = turn_;
  if (lane == nullptr) return false;
  do {
    if (may_begin_locked(*lane)) return true;
    lane = lane->next_;
  } while (lane != turn_);
  return false;
}

/// The first entry of the next lane that may begin one; null where there is none.
TaskLanes::Entry* TaskLanes::take_locked() {
  Lane* before = turn_;
  if (before == nullptr) return nullptr;
  do {
    Lane& lane = *before->next_;
    if (!may_begin_locked(lane)) {
      before = &lane;
      continue;
    }
    Entry* const entry = std::exchange(lane.first_, lane.first_->next_);
    entry->waits_ = false;
    ++lane.running_;
    turn_ = &lane;
    if (lane.first_ == nullptr) unlink_locked(lane, *before);
    return entry;
  } while (before != turn_);
  return nullptr;
}

void TaskLanes::unlink_locked(Lane& lane, Lane& before) {
  if (&before == &lane) {
    turn_ = nullptr;
    return;
  }
  before.next_ = lane.next_;
  if (turn_ == &lane) turn_ = &before;
}

}  // namespace infernode
