#pragma once

#include <cstdint>
#include <vector>

namespace infernode::passes::transposes {

/// A directed network with capacities, and its cheapest cut between a source and a sink (Dinic's algorithm).
class MinCut {
 public:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;  ///< the capacity of an arc that no cut may take
  static constexpr std::size_t kSource = 0, kSink = 1;

  std::size_t add_vertex();
  /// Cutting costs `capacity` where `from` ends on the source's side and `to` on the sink's.
  void add_arc(std::size_t from, std::size_t to, std::int64_t capacity);
  /// For every vertex whether it is on the source's side of the cheapest cut: of those, the one with the fewest there.
  /// Empty where that takes looks at more arcs than `budget`, from which what it takes is taken.
  std::vector<bool> solve(std::size_t& budget);

 private:
  struct Arc {
    std::size_t to;
    std::int64_t capacity;  // what is left; its reverse is the arc with the lowest bit of the index flipped
  };
  bool measure();
  std::int64_t push();
  bool look();

  std::vector<Arc> arcs_;
  std::vector<std::vector<std::size_t>> out_ = std::vector<std::vector<std::size_t>>(2);
  std::vector<int> distance_;
  std::vector<std::size_t> next_;
  std::size_t looks_ = 0;  // that are left
};

}  // namespace infernode::passes::transposes
