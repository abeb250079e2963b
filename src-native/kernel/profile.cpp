#include "kernel/profile.h"

#include <algorithm>

#include "base/error.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#elif defined(_WIN32)
#include <windows.h>
#endif

namespace infernode::kernel {

std::uint64_t thread_id() {
#if defined(__linux__)
  return static_cast<std::uint64_t>(syscall(SYS_gettid));  // gettid() came with glibc 2.30
#elif defined(__APPLE__)
  std::uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  return id;
#elif defined(_WIN32)
  return GetCurrentThreadId();
#else
  return 0;
#endif
}

int current_core() {
#if defined(__linux__)
  return sched_getcpu();
#elif defined(_WIN32)
  return static_cast<int>(GetCurrentProcessorNumber());
#else
  return -1;
#endif
}

using Clock = ProfileSink::Clock;

LoopProfile::LoopProfile() : main_thread_(thread_id()) {
  block_sizes_.reserve(kMostSizes);
  helpers_.reserve(kMostHelpers);
}

LoopProfile::Loop::Loop(LoopProfile& profile)
    : profile_(profile), outermost_(!profile.in_loop_.exchange(true)), begin_(Clock::now()) {
  if (!outermost_) return;
  const std::lock_guard lock(profile_.mutex_);
  profile_.main_took_part_ = false;
}

LoopProfile::Loop::~Loop() {
  if (!outermost_) return;
  const std::lock_guard lock(profile_.mutex_);
  profile_.total_ += Clock::now() - begin_;
  profile_.in_loop_ = false;
}

LoopProfile::Block::Block(const Loop& loop, std::size_t items) : loop_(loop), items_(items), begin_(Clock::now()) {}

LoopProfile::Block::~Block() {
  if (!loop_.outermost_) return;
  LoopProfile& profile = loop_.profile_;
  const auto end = Clock::now();
  const std::uint64_t thread = thread_id();
  const std::lock_guard lock(profile.mutex_);
  if (thread == profile.main_thread_) {
    if (!profile.main_took_part_) profile.distribution_ += begin_ - loop_.begin_;
    profile.main_took_part_ = true;
    profile.run_ += end - begin_;
    std::vector<std::size_t>& sizes = profile.block_sizes_;
    if (sizes.size() < kMostSizes && std::find(sizes.begin(), sizes.end(), items_) == sizes.end())
      sizes.push_back(items_);
    return;
  }
  auto helper = std::find_if(profile.helpers_.begin(), profile.helpers_.end(),
                             [&](const Helper& known) { return known.thread == thread; });
  if (helper == profile.helpers_.end()) {
    if (profile.helpers_.size() == kMostHelpers) return;
    helper = profile.helpers_.insert(helper, {thread, 0, -1});
  }
  ++helper->blocks;
  helper->core = current_core();
}

std::string LoopProfile::json() const {
  const auto us = [](Clock::duration d) { return std::chrono::duration_cast<std::chrono::microseconds>(d).count(); };
  const std::lock_guard lock(mutex_);
  std::string sizes;
  for (const std::size_t size : block_sizes_) sizes += cat(sizes.empty() ? "" : ",", size);
  std::string helpers;
  for (const Helper& helper : helpers_) {
    helpers += cat(helpers.empty() ? "" : ",", "\"", helper.thread, "\":{\"num_run\":", helper.blocks,
                   ",\"core\":", helper.core, "}");
  }
  // Waking the pool is part of Distribution and taking back blocks part of Wait: no DistributionEnqueue, no WaitRevoke.
  return cat("{\"main_thread\":{\"thread_pool_name\":\"infernode\",\"thread_id\":\"", main_thread_,
             "\",\"block_size\":[", sizes, "],\"core\":", current_core(), ",\"Distribution\":", us(distribution_),
             ",\"Run\":", us(run_), ",\"Wait\":", us(total_ - run_ - distribution_), "},\"sub_threads\":{", helpers,
             "}}");
}

}  // namespace infernode::kernel
