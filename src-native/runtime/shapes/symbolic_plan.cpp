#include "runtime/shapes/symbolic_plan.h"

#include "runtime/memory/memory_plan.h"
#include "runtime/shapes/shape_plan.h"

namespace infernode::runtime {

void place_blocks(const ArenaLayout& layout, std::span<const std::size_t> bytes, ShapePlan& plan) {
  std::vector<Lifetime> lifetimes(layout.blocks.size());
  for (std::size_t b = 0; b < lifetimes.size(); ++b) {
    lifetimes[b] = {bytes[b], layout.blocks[b].first, layout.blocks[b].last};
  }
  const MemoryPlan memory = plan_memory(lifetimes);
  plan.arena_bytes = memory.arena_bytes;
  for (const ArenaLayout::Place& place : layout.places) {
    const auto v = static_cast<std::size_t>(place.value);
    plan.offsets[v] = memory.offsets[place.block];
    plan.sizes[v] = place.is_view ? 0 : bytes[place.block];
  }
}

SymbolicPlan::SymbolicPlan(SymbolicSignature signature, std::unique_ptr<const SymbolicShapes> shapes,
                           std::shared_ptr<const ShapePlan> outline, ArenaLayout layout,
                           std::span<const graph::ValueId> outputs, std::size_t value_count)
    : signature_(std::move(signature)),
      shapes_(std::move(shapes)),
      outline_(std::move(outline)),
      layout_(std::move(layout)),
      outputs_(outputs.begin(), outputs.end()),
      value_count_(value_count) {
  for (std::size_t i = 0; shapes_ && i < outline_->known.size(); ++i) {
    if (shapes_->known_varies(outline_->known[i].first)) varying_.push_back(i);
  }
}

std::shared_ptr<const ShapePlan> SymbolicPlan::at(std::span<const std::int64_t> symbols) const {
  const auto sizes = shapes_ ? shapes_->at(symbols) : std::nullopt;
  if (!sizes) return nullptr;
  auto plan = std::make_shared<ShapePlan>();
  plan->skip = outline_->skip;
  plan->control_flow = outline_->control_flow;
  plan->data_decides = outline_->data_decides;
  plan->any_size = outline_->any_size;
  if (outline_->short_steps) plan->short_steps = std::make_unique<ShortSteps>(plan->skip.size());
  plan->known = outline_->known;
  for (const std::size_t i : varying_) plan->known[i].second = shapes_->known_tensor(plan->known[i].first, *sizes);
  plan->outputs.reserve(outputs_.size());
  for (const graph::ValueId id : outputs_) plan->outputs.push_back(shapes_->type(id, *sizes));
  plan->offsets.assign(value_count_, ShapePlan::kNowhere);
  plan->sizes.assign(value_count_, 0);
  std::vector<std::size_t> bytes(shapes_->bytes_count()), block_bytes(layout_.blocks.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = shapes_->bytes(i, *sizes);
  for (std::size_t b = 0; b < block_bytes.size(); ++b) block_bytes[b] = bytes[layout_.blocks[b].size];
  place_blocks(layout_, block_bytes, *plan);
  return plan;
}

}  // namespace infernode::runtime
