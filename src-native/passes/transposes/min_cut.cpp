#include "passes/transposes/min_cut.h"

#include <algorithm>

namespace infernode::passes::transposes {

std::size_t MinCut::add_vertex() {
  out_.emplace_back();
  return out_.size() - 1;
}

void MinCut::add_arc(std::size_t from, std::size_t to, std::int64_t capacity) {
  out_[from].push_back(arcs_.size());
  arcs_.push_back({to, capacity});
  out_[to].push_back(arcs_.size());
  arcs_.push_back({from, 0});
}

/// Counts a look at an arc; false where there may be no more.
bool MinCut::look() {
  if (looks_ > 0) --looks_;
  return looks_ > 0;
}

/// Distances from the source through arcs with capacity left; false where none leads to the sink.
bool MinCut::measure() {
  distance_.assign(out_.size(), -1);
  distance_[kSource] = 0;
  std::vector<std::size_t> open{kSource};
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const std::size_t arc : out_[open[i]]) {
      if (!look()) return false;
      const std::size_t to = arcs_[arc].to;
      if (arcs_[arc].capacity == 0 || distance_[to] >= 0) continue;
      distance_[to] = distance_[open[i]] + 1;
      open.push_back(to);
    }
  }
  return distance_[kSink] >= 0;
}

/// Fills one shortest path that has room, and returns by how much: 0 where there is none any more. The path is kept in
/// a vector, as one through a long chain of nodes would take the stack's room.
std::int64_t MinCut::push() {
  std::vector<std::size_t> path;
  std::size_t at = kSource;
  while (at != kSink) {
    std::size_t& i = next_[at];
    const auto open = [&](std::size_t arc) {
      return arcs_[arc].capacity > 0 && distance_[arcs_[arc].to] == distance_[at] + 1;
    };
    while (i < out_[at].size() && !open(out_[at][i])) ++i;
    if (!look()) return 0;
    if (i < out_[at].size()) {
      path.push_back(out_[at][i]);
      at = arcs_[path.back()].to;
    } else if (path.empty()) {
      return 0;
    } else {
      at = arcs_[path.back() ^ 1].to;
      path.pop_back();
      ++next_[at];
    }
  }
  std::int64_t room = kNever;
  for (const std::size_t arc : path) room = std::min(room, arcs_[arc].capacity);
  for (const std::size_t arc : path) {
    arcs_[arc].capacity -= room;
    arcs_[arc ^ 1].capacity += room;
  }
  return room;
}

std::vector<bool> MinCut::solve(std::size_t& budget) {
  looks_ = budget;
  while (measure()) {
    next_.assign(out_.size(), 0);
    while (push() > 0) {
    }
  }
  budget = looks_;
  std::vector<bool> side;
  if (looks_ == 0) return side;
  for (const int distance : distance_) side.push_back(distance >= 0);
  return side;
}

}  // namespace infernode::passes::transposes
