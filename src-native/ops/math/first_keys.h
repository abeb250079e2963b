#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/charge.h"
#include "kernel/run_context.h"
#include "kernel/scratch.h"
#include "kernel/watch.h"
#include "ops/common/merge_sort.h"

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
  struct Earlier {
    bool operator()(const Entry& a, const Entry& b) const { return a.index < b.index; }
  };
  /// An order that looks whether the run is to end.
  template <class Order>
  struct Watched {
    kernel::Watch& watch;
    bool operator()(const Entry& a, const Entry& b) const {
      constexpr double kNsPerComparison = 10;
      watch.did(kNsPerComparison);
      return Order()(a, b);
    }
  };

 public:
  FirstKeys(const kernel::RunContext& run, std::size_t count, std::size_t k, bool sorted)
      : run_(run),
        count_(count),
        k_(k),
        few_(k_ <= count_ / 16),
        sorted_(sorted),
        charge_(run, sizeof(Entry) * (few_ ? k_ : count_)) {
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
                       Watched<Before>{watch});
      entries_.resize(k_);
    }
    if (sorted_) {
      sort<Before>();
    } else {
      sort<Earlier>();
    }
  }
  std::int64_t operator[](std::size_t i) const { return found_[i].index; }

 private:
  void replace_worst(Entry entry) {
    std::pop_heap(entries_.begin(), entries_.end(), Before());
    entries_.back() = entry;
    std::push_heap(entries_.begin(), entries_.end(), Before());
  }

  template <class Order>
  void sort() {
    constexpr std::size_t kMoment = std::size_t{1} << 15;  // as many are sorted without a look
    const std::size_t count = entries_.size();
    if (count <= kMoment) {
      std::sort(entries_.begin(), entries_.end(), Order());
      found_ = entries_.data();
      return;
    }
    if (merged_.size() < count) merged_ = kernel::Scratch<Entry>(run_, count);
    kernel::Watch watch(run_);
    found_ = merge_sort(run_, entries_.data(), merged_.data(), count, Watched<Order>{watch});
  }

  const kernel::RunContext& run_;
  std::size_t count_, k_;
  bool few_, sorted_;
  kernel::Charge charge_;
  std::vector<Entry> entries_;
  kernel::Scratch<Entry> merged_;
  const Entry* found_ = nullptr;  ///< the first of them in order
  std::size_t taken_ = 0;
};

}  // namespace infernode::ops
