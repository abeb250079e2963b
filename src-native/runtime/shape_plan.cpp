#include <algorithm>
#include <numeric>

#include "runtime/execution_plan.h"

namespace infernode::runtime {

namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr std::size_t kCachedSignatures = 32;

std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

/// Dtype and dims of each input, so that equal signatures give equal plans.
void append_signature(std::vector<std::int64_t>& signature, const tensor::Value* value) {
  if (value == nullptr || !value->is_tensor()) {
    signature.push_back(-1 - static_cast<std::int64_t>(value != nullptr && !value->empty()));
    return;
  }
  const tensor::Tensor& t = value->tensor();
  signature.push_back(static_cast<std::int64_t>(t.dtype()));
  signature.push_back(static_cast<std::int64_t>(t.rank()));
  for (const std::int64_t dim : t.shape()) signature.push_back(dim);
}

std::vector<std::int64_t> signature_of(std::span<const tensor::Value* const> inputs,
                                       std::span<const tensor::Value* const> captures) {
  std::vector<std::int64_t> signature;
  signature.reserve(8 * (inputs.size() + captures.size()));
  for (const tensor::Value* value : inputs) append_signature(signature, value);
  for (const tensor::Value* value : captures) append_signature(signature, value);
  return signature;
}

graph::ValueType type_of(const tensor::Value* value, const graph::ValueType& declared) {
  if (value == nullptr || !value->is_tensor()) return declared;
  return graph::ValueType::tensor(value->tensor().dtype(), graph::to_sym(value->tensor().shape()));
}

/// Union-find over values that share one block of memory.
class Blocks {
 public:
  explicit Blocks(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0u); }
  std::uint32_t root(std::size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return static_cast<std::uint32_t>(v);
  }
  /// `child`'s block becomes part of `owner`'s.
  void join(std::size_t owner, std::size_t child) { parent_[root(child)] = root(owner); }

 private:
  std::vector<std::uint32_t> parent_;
};

}  // namespace

std::shared_ptr<const ShapePlan> ExecutionPlan::find_cached(const std::vector<std::int64_t>& signature) const {
  const std::lock_guard lock(cache_mutex_);
  const auto found = std::find_if(cache_.begin(), cache_.end(),
                                  [&](const CachedShape& cached) { return cached.signature == signature; });
  if (found == cache_.end()) return nullptr;
  std::rotate(cache_.begin(), found, found + 1);
  return cache_.front().plan;
}

std::shared_ptr<const ShapePlan> ExecutionPlan::find_specialised(std::span<const tensor::Value* const> inputs) const {
  return find_cached(signature_of(inputs, {}));
}

std::shared_ptr<const ShapePlan> ExecutionPlan::specialise(std::span<const tensor::Value* const> inputs,
                                                           std::span<const tensor::Value* const> captures) const {
  std::vector<std::int64_t> signature = signature_of(inputs, captures);
  if (auto cached = find_cached(signature)) return cached;
  auto plan = make_shape_plan(inputs, captures);
  const std::lock_guard lock(cache_mutex_);
  cache_.insert(cache_.begin(), {std::move(signature), plan});
  if (cache_.size() > kCachedSignatures) cache_.pop_back();
  return plan;
}

std::shared_ptr<const ShapePlan> ExecutionPlan::make_shape_plan(std::span<const tensor::Value* const> inputs,
                                                                std::span<const tensor::Value* const> captures) const {
  std::vector<graph::ValueType> input_types, capture_types;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    input_types.push_back(type_of(inputs[i], graph_->value(graph_->inputs()[i]).type));
  }
  for (std::size_t i = 0; i < captures.size(); ++i) {
    capture_types.push_back(type_of(captures[i], graph_->value(graph_->captures()[i].inner).type));
  }
  const kernel::InferredGraph inferred =
      kernel::infer_values(*graph_, order_, input_types, capture_types, *environment_.registry, schemas_);

  auto plan = std::make_shared<ShapePlan>();
  plan->skip.resize(steps_.size(), false);
  std::vector<bool> known(constants_.size(), false);
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (!step.foldable || step.outputs.empty()) continue;
    std::vector<std::pair<ValueId, tensor::Value>> values;
    for (const ValueId id : step.outputs) {
      if (id == kNoValue) continue;
      tensor::Tensor value = kernel::known_tensor(inferred, id);
      if (!value) break;
      values.emplace_back(id, std::move(value));
    }
    const auto produced =
        std::count_if(step.outputs.begin(), step.outputs.end(), [](ValueId id) { return id != kNoValue; });
    if (static_cast<std::ptrdiff_t>(values.size()) != produced) continue;
    plan->skip[s] = true;
    for (auto& value : values) {
      known[index(value.first)] = true;
      plan->known.push_back(std::move(value));
    }
  }
  for (const ValueId id : graph_->outputs()) plan->outputs.push_back(inferred.types[index(id)]);
  plan->offsets.assign(constants_.size(), ShapePlan::kNowhere);
  plan->sizes.assign(constants_.size(), 0);
  if (environment_.lay_out_memory) lay_out(inferred, *plan);
  return plan;
}

void ExecutionPlan::lay_out(const kernel::InferredGraph& inferred, ShapePlan& plan) const {
  const std::size_t count = constants_.size();
  std::vector<std::size_t> bytes(count, 0);
  std::vector<bool> placed(count, false);  // has a block of the arena, its own or shared
  std::vector<std::uint32_t> first(count, 0), last(count, 0);
  Blocks blocks(count);

  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const auto at = static_cast<std::uint32_t>(s);
    if (plan.skip[s]) continue;
    const auto read = [&](ValueId id) {
      if (id != kNoValue && placed[index(id)]) last[blocks.root(index(id))] = at;
    };
    for (const ValueId id : step.inputs) read(id);
    for (const ValueId id : step.implicit) read(id);
    for (std::size_t o = 0; o < step.outputs.size(); ++o) {
      const ValueId id = step.outputs[o];
      if (id == kNoValue || pinned_[index(id)]) continue;
      const auto alias =
          std::find_if(step.alias.begin(), step.alias.end(), [&](const kernel::IndexPair& p) { return p.output == o; });
      if (alias != step.alias.end()) {
        const ValueId input = alias->input < step.inputs.size() ? step.inputs[alias->input] : kNoValue;
        if (input == kNoValue || !placed[index(input)]) continue;
        placed[index(id)] = true;
        blocks.join(index(input), index(id));
        last[blocks.root(index(id))] = at;
        continue;
      }
      const graph::ValueType& type = inferred.types[index(id)];
      if (!type.is_tensor() || !type.shape || type.elem == tensor::DType::Undefined ||
          type.elem == tensor::DType::String)
        continue;
      const auto shape = graph::to_known(*type.shape);
      if (!shape) continue;
      bytes[index(id)] = tensor::byte_size(type.elem, shape->numel());
      placed[index(id)] = true;
      first[index(id)] = last[index(id)] = at;
    }
  }

  // A view that leaves the frame takes its whole block out of the arena.
  std::vector<bool> leaves(count, false);
  for (const Step& step : steps_) {
    for (const kernel::IndexPair& pair : step.alias) {
      if (pair.input >= step.inputs.size() || pair.output >= step.outputs.size()) continue;
      const ValueId input = step.inputs[pair.input], output = step.outputs[pair.output];
      if (input == kNoValue || output == kNoValue || !placed[index(input)]) continue;
      if (pinned_[index(output)]) leaves[blocks.root(index(input))] = true;
    }
  }

  // In place: an output takes over the block of an input that ends here.
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (plan.skip[s]) continue;
    for (const kernel::IndexPair& pair : step.in_place) {
      if (pair.input >= step.inputs.size() || pair.output >= step.outputs.size()) continue;
      const ValueId input = step.inputs[pair.input], output = step.outputs[pair.output];
      if (input == kNoValue || output == kNoValue || !placed[index(input)] || !placed[index(output)]) continue;
      const std::uint32_t from = blocks.root(index(input)), to = blocks.root(index(output));
      if (from == to || to != index(output) || leaves[from] || leaves[to] || last[from] != s || first[to] != s)
        continue;
      if (bytes[from] != bytes[to]) continue;
      const auto shares_block = [&](ValueId id) {
        return id != kNoValue && placed[index(id)] && blocks.root(index(id)) == from;
      };
      if (std::count_if(step.inputs.begin(), step.inputs.end(), shares_block) != 1) continue;
      const std::uint32_t end = last[to];
      blocks.join(from, to);
      last[from] = end;
    }
  }

  std::vector<Lifetime> lifetimes;
  std::vector<std::uint32_t> owners;
  for (std::size_t v = 0; v < count; ++v) {
    if (!placed[v] || blocks.root(v) != v || leaves[v]) continue;
    lifetimes.push_back({bytes[v], first[v], last[v]});
    owners.push_back(static_cast<std::uint32_t>(v));
  }
  const MemoryPlan memory = plan_memory(lifetimes);
  plan.arena_bytes = memory.arena_bytes;
  std::vector<std::size_t> offset_of(count, ShapePlan::kNowhere);
  for (std::size_t i = 0; i < owners.size(); ++i) offset_of[owners[i]] = memory.offsets[i];
  for (std::size_t v = 0; v < count; ++v) {
    if (!placed[v]) continue;
    const std::uint32_t root = blocks.root(v);
    plan.offsets[v] = offset_of[root];
    plan.sizes[v] = bytes[v];
  }
}

}  // namespace infernode::runtime
