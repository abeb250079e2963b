#include "base/thread_pool/task_lanes.h"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

using namespace infernode;

namespace {

/// What entries tell of themselves.
class Record {
 public:
  void note(char name) {
    const std::lock_guard lock(mutex_);
    order_ += name;
    changed_.notify_all();
  }
  std::string wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() >= count; });
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string order_;
};

class Noted final : public TaskLanes::Entry {
 public:
  Noted(Record& record, char name, std::function<void()> body = {})
      : record_(record), name_(name), body_(std::move(body)) {}

 private:
  void work() noexcept override {
    if (body_) body_();
  }
  void over() noexcept override { record_.note(name_); }

  Record& record_;
  char name_;
  std::function<void()> body_;
};

/// Holds those who pass until it is opened.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ >= count; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

struct Scene {
  Record record;
  Gate gate;
  std::deque<Noted> entries;
  TaskLanes::Lane a, b, c;
  ThreadPool pool{1};
  TaskLanes lanes{pool, 1};

  Noted& add(TaskLanes::Lane& lane, char name, TaskLanes::Place place = TaskLanes::Place::Last) {
    lanes.submit(lane, entries.emplace_back(record, name), place);
    return entries.back();
  }
  void hold(TaskLanes::Lane& lane, char name) {
    lanes.submit(lane, entries.emplace_back(record, name, [this] { gate.pass(); }));
  }
};

}  // namespace

TEST_CASE("lanes take turns, each in its own order") {
  Scene scene;
  scene.hold(scene.a, '1');
  scene.gate.wait_for(1);
  for (const char name : {'2', '3', '4'}) scene.add(scene.a, name);
  for (const char name : {'x', 'y'}) scene.add(scene.b, name);
  scene.add(scene.c, 'C');
  for (const char name : {'0', '9'}) scene.add(scene.a, name, TaskLanes::Place::First);
  scene.gate.open();
  CHECK(scene.record.wait_for(9) == "10xC9y234");
}

TEST_CASE("an entry that waits is taken out, one that has begun is not") {
  Scene scene;
  scene.hold(scene.a, '1');
  scene.gate.wait_for(1);
  Noted &two = scene.add(scene.a, '2'), &three = scene.add(scene.a, '3'), &x = scene.add(scene.b, 'x');
  CHECK(scene.lanes.remove(three));
  CHECK_FALSE(scene.lanes.remove(three));
  CHECK(scene.lanes.remove(x));
  CHECK_FALSE(scene.lanes.remove(scene.entries.front()));
  scene.add(scene.b, 'y');
  CHECK(scene.lanes.remove(two));
  scene.lanes.submit(scene.a, three);
  scene.gate.open();
  CHECK(scene.record.wait_for(3) == "1y3");
}

TEST_CASE("bounds hold, of all and of one lane, and may change") {
  Record record;
  Gate gate;
  std::atomic<int> at_once = 0, most_at_once = 0, in_lane = 0, most_in_lane = 0;
  const auto count = [](std::atomic<int>& now, std::atomic<int>& most) {
    const int there = ++now;
    for (int seen = most; seen < there && !most.compare_exchange_weak(seen, there);) continue;
  };
  std::deque<Noted> entries;
  TaskLanes::Lane narrow(2), wide;
  ThreadPool pool(1);
  TaskLanes lanes(pool, 3);
  const auto body = [&](bool is_narrow) {
    return [&, is_narrow] {
      count(at_once, most_at_once);
      if (is_narrow) count(in_lane, most_in_lane);
      gate.pass();
      if (is_narrow) --in_lane;
      --at_once;
    };
  };
  for (int i = 0; i < 20; ++i) lanes.submit(narrow, entries.emplace_back(record, 'n', body(true)));
  gate.wait_for(2);
  for (int i = 0; i < 20; ++i) lanes.submit(wide, entries.emplace_back(record, 'w', body(false)));
  gate.wait_for(3);
  CHECK(lanes.is_full(wide));
  lanes.set_most(5);
  gate.wait_for(5);
  CHECK(lanes.most() == 5);
  CHECK(most_at_once == 5);
  gate.open();
  record.wait_for(40);
  CHECK(most_at_once == 5);
  CHECK(most_in_lane == 2);
}

TEST_CASE("one lane leaves room for the others") {
  Record record;
  Gate gate;
  std::deque<Noted> entries;
  TaskLanes::Lane endless, other;
  ThreadPool pool(1);
  TaskLanes lanes(pool, 3);
  for (int i = 0; i < 5; ++i) lanes.submit(endless, entries.emplace_back(record, 'e', [&] { gate.pass(); }));
  gate.wait_for(2);
  CHECK(lanes.is_full(endless));
  while (lanes.is_full(other)) std::this_thread::yield();  // a runner that found nothing to do is on its way out
  lanes.submit(other, entries.emplace_back(record, 'o'));
  CHECK(record.wait_for(1) == "o");
  gate.open();
  record.wait_for(6);
}

TEST_CASE("an entry is not run where no thread can be started for it") {
  ThreadPoolOptions options;
  options.hooks.create = [](void (*)(void*), void*) -> void* { return nullptr; };
  options.hooks.join = [](void*) {};
  ThreadPool pool(1, std::move(options));
  TaskLanes lanes(pool, 2);
  TaskLanes::Lane lane;
  Record record;
  Noted entry(record, '1');
  CHECK_THROWS_AS(lanes.submit(lane, entry), Error);
  CHECK_FALSE(lanes.remove(entry));
}
