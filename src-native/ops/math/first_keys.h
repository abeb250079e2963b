#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/charge.h"
#include "kernel/run_context.h"
#include "kernel/watch.h"

namespace infernode::ops {

/// The first k of a row of `count` keys, greatest first and equal ones by index. Few of many are kept in a heap that
/// most keys never enter.
class FirstKeys {
  struct Entry {
    std::int64_t key;
    std::int64_t index;
  };
  struct Before {
    bool operator()(const Entry& a, const Entry& b) const { return a.key != b.key ? a.key > b.key : a.index < b.index; }
  };
  /// Before, that looks whether the run is to end.
  struct WatchedBefore {
    kernel::Watch& watch;
    bool operator()(const Entry& a, const Entry& b) const {
      constexpr double kNsPerComparison = 10;
      watch.did(kNsPerComparison);
      return Before()(a, b);
    }
  };

 public:
  FirstKeys(const kernel::RunContext& run, std::size_t count, std::size_t k, bool sorted)
      : run_(run),
        count_(count),
        k_(k),
        few_(k_ <= count_ / 16),
        sorted_(sorted),
        charge_(run, 2 * sizeof(Entry) * (few_ ? k_ : count_)) {
    entries_.reserve(few_ ? k_ : count_);
  }

  void clear() {
    entries_.clear();
    taken_ = 0;
  }

  /// The next keys of the row.
  template <class Key>
  void take(const Key* keys, std::size_t n) {
    const std::size_t kept = few_ ? k_ : count_;
    std::size_t i = 0;
    for (; i < n && entries_.size() < kept; ++i) {
      entries_.push_back({keys[i], static_cast<std::int64_t>(taken_ + i)});
      if (few_ && entries_.size() == kept) std::make_heap(entries_.begin(), entries_.end(), Before());
    }
    for (; i < n; ++i) {
      auto worst = static_cast<Key>(entries_.front().key);
      while (i < n && keys[i] <= worst) ++i;  // an equal one stands behind it
      if (i < n) replace_worst({keys[i], static_cast<std::int64_t>(taken_ + i)});
    }
    taken_ += n;
  }

  /// Where few of many are kept: whether a key enters only in the place of the worst, and where that one stands.
  bool is_full() const { return few_ && entries_.size() == k_; }
  std::size_t worst() const { return static_cast<std::size_t>(entries_.front().index); }
  /// The next n keys stand behind the worst.
  void skip(std::size_t n) { taken_ += n; }

  /// Once all keys are taken: places in the row, k of them, in order of the keys or of the places.
  void finish() {
    if (!few_ && k_ < count_) {
      kernel::Watch watch(run_);
      std::nth_element(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(k_) - 1, entries_.end(),
                       WatchedBefore{watch});
      entries_.resize(k_);
    }
    if (sorted_) {
      sort();
    } else {
      std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.index < b.index; });
    }
  }
  std::int64_t operator[](std::size_t i) const { return entries_[i].index; }

 private:
  void replace_worst(Entry entry) {
    std::pop_heap(entries_.begin(), entries_.end(), Before());
    entries_.back() = entry;
    std::push_heap(entries_.begin(), entries_.end(), Before());
  }

  /// With looks in between whether the run is to end: sorts runs that take a moment, which are merged then.
  void sort() {
    constexpr std::size_t kRun = std::size_t{1} << 16;
    const std::size_t count = entries_.size();
    const auto at = [&](std::size_t i) { return entries_.begin() + static_cast<std::ptrdiff_t>(std::min(i, count)); };
    for (std::size_t i = 0; i < count; i += kRun) {
      if (i > 0) run_.check();
      std::sort(at(i), at(i + kRun), Before());
    }
    if (count <= kRun) return;
    kernel::Watch watch(run_);
    std::vector<Entry> merged(count);
    for (std::size_t width = kRun; width < count; width *= 2) {
      for (std::size_t i = 0; i < count; i += 2 * width) {
        std::merge(at(i), at(i + width), at(i + width), at(i + 2 * width),
                   merged.begin() + static_cast<std::ptrdiff_t>(i), WatchedBefore{watch});
      }
      entries_.swap(merged);
    }
  }

  const kernel::RunContext& run_;
  std::size_t count_, k_;
  bool few_, sorted_;
  kernel::Charge charge_;
  std::vector<Entry> entries_;
  std::size_t taken_ = 0;
};

}  // namespace infernode::ops
