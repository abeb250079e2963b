#include "napi/plan_description.h"

#include "napi/metadata.h"
#include "runtime/plan/execution_plan.h"

namespace infernode::napi {

namespace {

/// Ids of values; -1 for one that is left out.
Napi::Value ids(Napi::Env env, const std::vector<graph::ValueId>& values) {
  const Napi::Array array = Napi::Array::New(env, values.size());
  std::uint32_t i = 0;
  for (const graph::ValueId id : values) {
    array.Set(i++, id == graph::kNoValue ? -1.0 : static_cast<double>(id));
  }
  return array;
}

Napi::Value describe_step(Napi::Env env, const graph::Node& node, const runtime::Step& step,
                          const runtime::StepMemory& memory) {
  const Napi::Object entry = Napi::Object::New(env);
  entry.Set("name", node.name);
  entry.Set("domain", node.domain);
  entry.Set("opType", node.op_type);
  entry.Set("provider", step.provider == nullptr ? "cpu" : std::string(step.provider->name()));
  entry.Set("inputs", ids(env, node.inputs));
  entry.Set("outputs", ids(env, node.outputs));
  const Napi::Array made_from = Napi::Array::New(env, node.provenance.size());
  for (std::uint32_t i = 0; i < node.provenance.size(); ++i) made_from.Set(i, node.provenance[i]);
  entry.Set("madeFrom", made_from);
  entry.Set("estimatedBytes", static_cast<double>(memory.estimated));
  entry.Set("outputBytes", memory.measured ? static_cast<double>(memory.outputs) : -1.0);
  entry.Set("scratchBytes", memory.measured ? static_cast<double>(memory.scratch) : -1.0);
  return entry;
}

/// Bytes of each constant; -1 for what is none.
Napi::Value constant_bytes(Napi::Env env, const runtime::ExecutionPlan& plan) {
  const std::vector<graph::ValueInfo>& values = plan.graph().values();
  const Napi::Array array = Napi::Array::New(env, values.size());
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const tensor::Value& kept = plan.constant(static_cast<graph::ValueId>(i));
    const tensor::Value& constant = kept.empty() ? values[i].constant : kept;
    array.Set(i, constant.is_tensor() ? static_cast<double>(constant.tensor().bytes()) : -1.0);
  }
  return array;
}

}  // namespace

Napi::Value describe_plan(Napi::Env env, const runtime::ExecutionPlan& plan, const session::Session::Memory& memory) {
  const graph::Graph& graph = plan.graph();
  const Napi::Object description = Napi::Object::New(env);
  const Napi::Array nodes = Napi::Array::New(env);
  const std::vector<runtime::StepMemory> taken = plan.memory();
  for (std::size_t i = 0; i < plan.steps().size(); ++i) {
    const runtime::Step& step = plan.steps()[i];
    if (step.node != graph::kNoNode)
      nodes.Set(nodes.Length(), describe_step(env, graph.node(step.node), step, taken[i]));
  }
  std::vector<session::ValueMetadata> values;
  values.reserve(graph.values().size());
  for (const graph::ValueInfo& value : graph.values()) values.push_back({value.name, value.type});
  description.Set("nodes", nodes);
  description.Set("values", value_infos(env, values));
  description.Set("constantBytes", constant_bytes(env, plan));
  description.Set("weightBytes", static_cast<double>(memory.weights));
  description.Set("keptBytes", static_cast<double>(memory.kept));
  description.Set("arenaBytes", static_cast<double>(memory.arena));
  return description;
}

}  // namespace infernode::napi
