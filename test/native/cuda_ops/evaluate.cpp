// The cases of test/native/ops in sessions with the providers cuda and cpu.

#include "ops/evaluate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cuda_ops/counts.h"
#include "onnx/writer.h"
#include "ops/op_test.h"
#include "session/prepared_run.h"
#include "session/session.h"

namespace infernode::test {

namespace {

using graph::Graph;
using session::Session;

/// Of the operators in a graph and in the bodies of its nodes, the latest versions.
void collect_opsets(const Graph& graph, std::map<std::string, std::int64_t>& opsets) {
  for (const graph::NodeId id : graph.topological_order()) {
    const graph::Node& node = graph.node(id);
    std::int64_t& version = opsets[node.domain];
    version = std::max(version, node.opset);
    for (const auto& body : graph::subgraphs(node)) collect_opsets(*body, opsets);
  }
}

/// Whether a sequence's tensors have the rank that the graph says. Cases that say none have rank 0 there.
bool has_ranks(const graph::ValueType& type, const Value& value) {
  if (!value.is_sequence() || type.inner == nullptr || !type.inner->shape) return true;
  const auto& items = value.sequence().items;
  return std::all_of(items.begin(), items.end(), [&](const Value& item) {
    return !item.is_tensor() || item.tensor().rank() == type.inner->shape->size();
  });
}

/// Whether a model's file can say all of it, and a session be fed by it.
bool fits_a_file(const Graph& graph, const std::vector<Value>& inputs) {
  if (inputs.empty() || graph.inputs().size() != inputs.size()) return false;
  for (const graph::ValueInfo& value : graph.values()) {
    if (value.is_constant() && !value.constant.is_tensor()) return false;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const graph::ValueType& type = graph.value(graph.inputs()[i]).type;
    const bool known = type.is_tensor() ? type.elem != DType::Undefined : type.kind != graph::ValueType::Kind::Unknown;
    if (inputs[i].empty() || !known || !has_ranks(type, inputs[i])) return false;
  }
  return true;
}

session::ModelSource written(const std::shared_ptr<Graph>& graph) {
  constexpr std::int64_t kNewestIr = 13;
  graph::Model model;
  model.info.ir_version = kNewestIr;
  model.graph = graph;
  collect_opsets(*graph, model.info.opsets);
  const std::vector<std::byte> bytes = onnx::write_model_bytes(model);
  const tensor::Buffer buffer = tensor::host_allocator().allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return {.bytes = buffer};
}

std::shared_ptr<Session> open(session::ModelSource source) {
  static const auto engine = session::Engine::create(2);
  session::SessionOptions options;
  options.level = passes::Level::Disabled;
  // Shapes of 2^33 elements shall be refused, also where there is room for them: to fill their results takes minutes.
  options.providers = {{"cuda", {{"gpu_mem_limit", "1073741824"}}}};
  options.memory_limit = std::size_t{1} << 30;
  options.provider_fallback = false;
  options.log_severity = LogSeverity::Error;
  auto session = Session::create(engine, std::move(source), options);
  static const auto first = session;  // the device stays open as long
  return session;
}

std::vector<Value> run(Session& session, const std::vector<Value>& inputs) {
  session::PreparedRun run = session.prepare(inputs);
  for (std::size_t o = 0; o < session.outputs().size(); ++o) run.want(o);
  return run.execute();
}

/// The device's nodes of the case before.
std::vector<std::string>& on_device() {
  static std::vector<std::string> operators;
  return operators;
}

bool has_attention() {
  static const std::set<std::string> kOperators{"Attention", "MultiHeadAttention", "GroupQueryAttention"};
  return std::any_of(on_device().begin(), on_device().end(), [](const auto& op) { return kOperators.contains(op); });
}

bool exceeds_sums(const Value& value) {
  constexpr float kMost = 1e37f;
  if (!value.is_tensor() || value.tensor().dtype() != DType::Float32) return false;
  const auto numbers = value.tensor().span<float>();
  return !std::all_of(numbers.begin(), numbers.end(), [](float x) { return x <= kMost; });
}
/// Whether there are numbers that attention's kernels do not add up: they divide sums, where the CPU adds shares.
bool exceeds_sums(const Graph& graph, const std::vector<Value>& inputs) {
  const auto& values = graph.values();
  return std::any_of(inputs.begin(), inputs.end(), [](const Value& value) { return exceeds_sums(value); }) ||
         std::any_of(values.begin(), values.end(),
                     [](const graph::ValueInfo& value) { return value.is_constant() && exceeds_sums(value.constant); });
}

/// Whether an operator of them looks at contents that it may refuse: places out of range, a division by zero.
bool reads_contents() {
  static const std::set<std::string> kOperators{"Gather",
                                                "GatherElements",
                                                "GatherND",
                                                "Scatter",
                                                "ScatterElements",
                                                "ScatterND",
                                                "TensorScatter",
                                                "Div",
                                                "Mod",
                                                "Pow",
                                                "ReverseSequence",
                                                "RotaryEmbedding",
                                                "Attention",
                                                "GroupQueryAttention",
                                                "EmbedLayerNormalization",
                                                "RoiAlign",
                                                "GRU",
                                                "LSTM",
                                                "RNN"};
  return std::any_of(on_device().begin(), on_device().end(), [](const auto& op) { return kOperators.contains(op); });
}

}  // namespace

std::span<const std::size_t> first_constants() {
  static constexpr std::size_t kNoneThenAllButOne[] = {SIZE_MAX, 1};
  return kNoneThenAllButOne;
}

std::vector<Value> evaluate(const std::shared_ptr<Graph>& graph, const std::vector<Value>& inputs) {
  on_device().clear();
  if (!fits_a_file(*graph, inputs)) return evaluate_here(*graph, inputs);
  const auto session = open(written(graph));
  for (const provider::Placement& placement : session->placements()) {
    if (placement.provider == "cuda") on_device().push_back(placement.op_type);
  }
  std::vector<Value> results = run(*session, inputs);
  if (on_device().empty()) return results;
  if (has_attention() && exceeds_sums(*graph, inputs)) return evaluate_here(*graph, inputs);
  count_on_device(on_device());
  for (int pass = 1; pass < 3; ++pass) {  // again, then replayed
    const std::vector<Value> again = run(*session, inputs);
    for (std::size_t o = 0; o < results.size(); ++o) {
      const std::string different = difference(again[o], results[o], 0);
      CHECK_MESSAGE(different.empty(), "run ", pass, ", output ", o, ": ", different);
    }
  }
  return results;
}

/// There are tens of thousands, and a session for each takes milliseconds.
std::size_t step_of_changed_cases() { return 8; }

double tolerance_of(const Value& expected, double given) {
  if (on_device().empty() || !expected.is_tensor()) return given;
  switch (expected.tensor().dtype()) {
    case DType::Float16:
      return std::max(given, 2e-3);
    case DType::BFloat16:
      return std::max(given, 1.6e-2);
    default:
      // Masks of -10000 leave scores three digits.
      return std::max(given, has_attention() ? 1e-3 : 1e-4);
  }
}

bool must_refuse() { return !reads_contents(); }
bool errors_are_the_kernels() { return false; }

}  // namespace infernode::test
