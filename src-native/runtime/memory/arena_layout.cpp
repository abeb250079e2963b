#include "runtime/memory/arena_layout.h"

#include <algorithm>
#include <numeric>

#include "runtime/plan/execution_plan.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;
using kernel::IndexPair;

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

class Layouter {
 public:
  Layouter(std::span<const Step> steps, const std::vector<bool>& skip, const std::vector<bool>& pinned,
           std::span<const std::size_t> sizes)
      : steps_(steps),
        skip_(skip),
        pinned_(pinned),
        sizes_(sizes),
        owner_(sizes.size()),
        placed_(sizes.size(), false),
        is_view_(sizes.size(), false),
        leaves_(sizes.size(), false),
        first_(sizes.size(), 0),
        last_(sizes.size(), 0) {
    std::iota(owner_.begin(), owner_.end(), 0u);
  }

  ArenaLayout run() {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!skip_[s]) find_lifetimes(steps_[s], static_cast<std::uint32_t>(s));
    }
    find_leaving();
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (!skip_[s]) take_over(steps_[s], static_cast<std::uint32_t>(s));
    }
    return collect();
  }

 private:
  /// Values that share one block form a tree: a union-find.
  std::uint32_t root(std::size_t v) {
    while (owner_[v] != v) v = owner_[v] = owner_[owner_[v]];
    return static_cast<std::uint32_t>(v);
  }
  std::uint32_t root(ValueId id) { return root(index(id)); }
  bool is_placed(ValueId id) const { return id != kNoValue && placed_[index(id)]; }

  void find_lifetimes(const Step& step, std::uint32_t at) {
    const auto read = [&](ValueId id) {
      if (is_placed(id)) last_[root(id)] = at;
    };
    for (const ValueId id : step.inputs) read(id);
    for (const ValueId id : step.implicit) read(id);
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      const ValueId id = step.outputs[o];
      if (id == kNoValue || pinned_[index(id)]) continue;
      const auto alias = std::ranges::find(step.alias, o, &IndexPair::output);
      if (alias != step.alias.end()) {
        const ValueId input = alias->input < step.inputs.size() ? step.inputs[alias->input] : kNoValue;
        if (!is_placed(input)) continue;
        placed_[index(id)] = is_view_[index(id)] = true;
        owner_[root(index(id))] = root(input);
        last_[root(input)] = at;
      } else if (sizes_[index(id)] != ArenaLayout::kNoSize) {
        placed_[index(id)] = true;
        first_[index(id)] = last_[index(id)] = at;
      }
    }
  }

  /// A view that leaves the frame takes its whole block out of the arena.
  void find_leaving() {
    for (const Step& step : steps_) {
      for (const IndexPair& pair : step.alias) {
        if (pair.input >= step.inputs.size() || pair.output >= step.outputs.size()) continue;
        const ValueId input = step.inputs[pair.input], output = step.outputs[pair.output];
        if (output != kNoValue && is_placed(input) && pinned_[index(output)]) leaves_[root(input)] = true;
      }
    }
  }

  /// In place: an output takes over the block of an input that ends here.
  void take_over(const Step& step, std::uint32_t at) {
    for (const IndexPair& pair : step.in_place) {
      if (pair.input >= step.inputs.size() || pair.output >= step.outputs.size()) continue;
      const ValueId input = step.inputs[pair.input], output = step.outputs[pair.output];
      if (!is_placed(input) || !is_placed(output)) continue;
      const std::uint32_t from = root(input), to = root(output);
      if (from == to || to != index(output) || leaves_[from] || leaves_[to] || last_[from] != at || first_[to] != at)
        continue;
      if (sizes_[from] != sizes_[to]) continue;
      const auto shares = [&](ValueId id) { return is_placed(id) && root(id) == from; };
      if (std::ranges::count_if(step.inputs, shares) != 1) continue;
      const std::uint32_t end = last_[to];
      owner_[to] = from;
      last_[from] = end;
    }
  }

  ArenaLayout collect() {
    constexpr std::uint32_t kNone = UINT32_MAX;
    ArenaLayout layout;
    std::vector<std::uint32_t> block_of(owner_.size(), kNone);
    for (std::size_t v = 0; v < owner_.size(); ++v) {
      if (!placed_[v] || root(v) != v || leaves_[v]) continue;
      block_of[v] = static_cast<std::uint32_t>(layout.blocks.size());
      layout.blocks.push_back({sizes_[v], first_[v], last_[v]});
    }
    for (std::size_t v = 0; v < owner_.size(); ++v) {
      const std::uint32_t block = block_of[root(v)];
      if (placed_[v] && block != kNone) layout.places.push_back({static_cast<ValueId>(v), block, is_view_[v]});
    }
    return layout;
  }

  std::span<const Step> steps_;
  const std::vector<bool>&skip_, &pinned_;
  std::span<const std::size_t> sizes_;
  std::vector<std::uint32_t> owner_;
  std::vector<bool> placed_;  // has a block of the arena, its own or shared
  std::vector<bool> is_view_, leaves_;
  std::vector<std::uint32_t> first_, last_;
};

}  // namespace

ArenaLayout lay_out_arena(std::span<const Step> steps, const std::vector<bool>& skip, const std::vector<bool>& pinned,
                          std::span<const std::size_t> sizes) {
  return Layouter(steps, skip, pinned, sizes).run();
}

}  // namespace infernode::runtime
