#include <algorithm>
#include <utility>

#include "base/error.h"
#include "runtime/plan/execution_plan.h"
#include "runtime/shapes/shape_check.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr std::size_t kCachedSignatures = 32;
/// Kinds of signatures with a plan over symbols: they differ in which sizes are 0 or equal.
constexpr std::size_t kMostSymbolic = 8;

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

bool may_be_a_tensor_of_any_size(const graph::ValueType& type) {
  if (!type.is_tensor()) return type.kind == graph::ValueType::Kind::Unknown;
  return !type.shape || !graph::to_known(*type.shape);
}

std::size_t bytes_of(const graph::ValueType& type) {
  if (!type.is_tensor() || !type.shape || type.elem == tensor::DType::Undefined || type.elem == tensor::DType::String) {
    return ArenaLayout::kNoSize;
  }
  const auto shape = graph::to_known(*type.shape);
  return shape ? tensor::byte_size(type.elem, shape->numel()) : ArenaLayout::kNoSize;
}

}  // namespace

std::shared_ptr<const ShapePlan> ExecutionPlan::find_cached(const Signature& signature) const {
  const std::lock_guard lock(cache_mutex_);
  const auto found = std::find_if(cache_.begin(), cache_.end(),
                                  [&](const CachedShape& cached) { return cached.signature == signature; });
  if (found == cache_.end()) return nullptr;
  std::rotate(cache_.begin(), found, found + 1);
  return cache_.front().plan;
}

std::shared_ptr<const ShapePlan> ExecutionPlan::find_specialised(std::span<const tensor::Value* const> inputs,
                                                                 std::span<const tensor::Value* const> captures) const {
  return find_cached(signature_of({inputs, captures}));
}

std::shared_ptr<const ShapePlan> ExecutionPlan::specialise(std::span<const tensor::Value* const> inputs,
                                                           std::span<const tensor::Value* const> captures) const {
  const Feeds feeds{inputs, captures};
  Signature signature = signature_of(feeds);
  if (auto cached = find_cached(signature)) return cached;
  auto plan = make_shape_plan(feeds, signature);
  const std::lock_guard lock(cache_mutex_);
  cache_.insert(cache_.begin(), {std::move(signature), plan});
  if (cache_.size() > kCachedSignatures) cache_.pop_back();
  return plan;
}

std::shared_ptr<const ShapePlan> ExecutionPlan::make_shape_plan(const Feeds& feeds, const Signature& signature) const {
  std::vector<std::shared_ptr<const SymbolicPlan>> symbolic;
  bool is_covered = false;  // nothing to add
  {
    const std::lock_guard lock(cache_mutex_);
    symbolic = symbolic_;
    const bool is_first = cache_.empty() && environment_.check_shapes == ShapeCheck::Off;
    is_covered = is_first || symbolic_tries_ >= kMostSymbolic;
  }
  for (const auto& candidate : symbolic) {
    const auto symbols = candidate->bind(signature);
    if (!symbols) continue;
    if (auto plan = candidate->at(*symbols)) return plan;
    is_covered = true;
    break;
  }
  const std::vector<graph::ValueType> types = types_of(*graph_, feeds);
  const std::span<const graph::ValueType> all = types;
  const kernel::InferredGraph inferred =
      kernel::infer_values(*graph_, order_, all.first(feeds.inputs.size()), all.subspan(feeds.inputs.size()),
                           *environment_.registry, schemas_);
  if (!is_covered) add_symbolic(feeds, inferred);
  const auto plan = outline(inferred);
  if (!environment_.lay_out_memory) return plan;
  std::vector<std::size_t> bytes(constants_.size(), ArenaLayout::kNoSize), block_bytes;
  for (const Step& step : steps_) {
    for (const ValueId id : step.outputs) {
      if (id != kNoValue) bytes[index(id)] = bytes_of(inferred.types[index(id)]);
    }
  }
  const ArenaLayout layout = lay_out_arena(steps_, plan->skip, pinned_, bytes);
  for (const ArenaLayout::Block& block : layout.blocks) block_bytes.push_back(block.size);
  place_blocks(layout, block_bytes, *plan);
  return plan;
}

/// The plan for one more kind of signature, unless substitution says anything else than inference.
void ExecutionPlan::add_symbolic(const Feeds& feeds, const kernel::InferredGraph& inferred) const {
  const std::vector<ValueId> needed = needed_values();
  SymbolicSignature signature(*graph_, feeds);
  auto shapes = SymbolicShapes::infer(*graph_, order_, needed, signature, *environment_.registry, schemas_);
  std::shared_ptr<const ShapePlan> outline;
  ArenaLayout layout;
  const auto sizes = shapes ? shapes->at(signature.first()) : std::nullopt;
  if (sizes) {
    const kernel::InferredGraph substituted = shapes->inferred(*sizes);
    if (std::ranges::all_of(needed, [&](ValueId id) { return says_the_same(inferred, substituted, id); })) {
      outline = this->outline(substituted);
      std::vector<std::size_t> bytes(constants_.size(), ArenaLayout::kNoSize);
      for (const ValueId id : needed) bytes[index(id)] = shapes->bytes_index(id);
      if (environment_.lay_out_memory) layout = lay_out_arena(steps_, outline->skip, pinned_, bytes);
    }
  }
  if (environment_.check_shapes != ShapeCheck::Off) check_symbolic(feeds, signature, shapes.get(), outline != nullptr);
  const bool unusual = shapes && !sizes;  // feeds of other sizes may have a plan by symbols
  if (!outline) shapes.reset();
  auto plan = std::make_shared<const SymbolicPlan>(std::move(signature), std::move(shapes), std::move(outline),
                                                   std::move(layout), graph_->outputs(), constants_.size());
  const std::lock_guard lock(cache_mutex_);
  ++symbolic_tries_;
  if (!unusual) symbolic_.push_back(std::move(plan));
}

void ExecutionPlan::check_symbolic(const Feeds& feeds, const SymbolicSignature& signature, const SymbolicShapes* shapes,
                                   bool complete) const {
  const kernel::Registry& registry = *environment_.registry;
  const std::vector<ValueId> needed = needed_values();
  if (shapes != nullptr) check_substitution(*graph_, order_, needed, signature, *shapes, registry, schemas_);
  const SymbolicSignature free(*graph_, feeds, SymbolicSignature::Declared::Free);
  const auto of_any_size = SymbolicShapes::infer(*graph_, order_, needed, free, registry, schemas_);
  if (of_any_size) check_substitution(*graph_, order_, needed, free, *of_any_size, registry, schemas_);
  if (!complete && environment_.check_shapes == ShapeCheck::Complete)
    fail(ErrorCode::Internal, "inference knows more about sizes than substitution");
}

std::vector<graph::ValueType> ExecutionPlan::infer(std::span<const graph::ValueType> inputs) const {
  return kernel::infer_values(*without_sizes(*graph_, true), order_, inputs, {}, *environment_.registry, schemas_)
      .types;
}

std::vector<ValueId> ExecutionPlan::needed_values() const {
  std::vector<ValueId> needed = graph_->outputs();
  for (const Step& step : steps_) std::ranges::remove_copy(step.outputs, std::back_inserter(needed), kNoValue);
  return needed;
}

/// The plan but for the memory.
std::shared_ptr<ShapePlan> ExecutionPlan::outline(const kernel::InferredGraph& inferred) const {
  auto plan = std::make_shared<ShapePlan>();
  plan->skip.resize(steps_.size(), false);
  std::vector<tensor::Tensor> known(constants_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (!step.foldable || step.outputs.empty()) continue;
    const auto find = [&](ValueId id) {
      if (id == kNoValue) return true;
      return static_cast<bool>(known[index(id)] = kernel::known_tensor(inferred, id));
    };
    plan->skip[s] = std::ranges::all_of(step.outputs, find);
    if (plan->skip[s]) continue;
    for (const ValueId id : step.outputs) {
      if (id != kNoValue) known[index(id)] = {};
    }
  }
  const auto keep = [&](ValueId id) {
    if (id != kNoValue && known[index(id)]) plan->known.emplace_back(id, std::exchange(known[index(id)], {}));
  };
  for (const ValueId id : graph_->outputs()) keep(id);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (plan->skip[s]) continue;
    for (const ValueId id : steps_[s].inputs) keep(id);
    for (const ValueId id : steps_[s].implicit) keep(id);
  }
  find_uncertain(inferred, *plan);
  for (const ValueId id : graph_->outputs()) plan->outputs.push_back(inferred.types[index(id)]);
  plan->offsets.assign(constants_.size(), ShapePlan::kNowhere);
  plan->sizes.assign(constants_.size(), 0);
  return plan;
}

void ExecutionPlan::find_uncertain(const kernel::InferredGraph& inferred, ShapePlan& plan) const {
  std::vector<bool> any_size(constants_.size(), false);
  plan.any_size.resize(steps_.size(), false);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (plan.skip[s]) continue;
    bool makes = false;
    for (const ValueId id : step.outputs) {
      if (id == kNoValue || !may_be_a_tensor_of_any_size(inferred.types[index(id)])) continue;
      makes = any_size[index(id)] = true;
    }
    const bool reads = std::any_of(step.inputs.begin(), step.inputs.end(),
                                   [&](ValueId id) { return id != kNoValue && any_size[index(id)]; });
    if (step.control_flow) {
      plan.control_flow = true;
    } else if (reads) {
      plan.any_size[s] = true;
      if (!plan.short_steps) plan.short_steps = std::make_unique<ShortSteps>(steps_.size());
    } else if (makes) {
      plan.data_decides = true;
    }
  }
}

}  // namespace infernode::runtime
