#include "ops/float_types.h"

#include <cstring>

#include "base/thread_pool.h"
#include "graph/text.h"
#include "kernel/inference.h"

namespace infernode::test {
namespace {

std::vector<double> values(const Tensor& t) {
  if (t.dtype() == DType::Float64) {
    const auto span = t.span<double>();
    return {span.begin(), span.end()};
  }
  const std::vector<float> floats = tensor::to_float_vector(t);
  return {floats.begin(), floats.end()};
}

std::vector<Value> cast(const std::vector<Value>& list, DType from, DType to) {
  std::vector<Value> out;
  for (const Value& v : list) {
    const bool convert = v.is_tensor() && v.tensor().dtype() == from;
    out.push_back(convert ? Value(as_type(v.tensor(), to)) : v);
  }
  return out;
}

/// `constant`: all inputs but the first are initializers.
std::vector<Value> run_with(std::string_view text, std::int64_t opset, std::vector<Value> inputs, std::size_t threads,
                            bool constant) {
  auto graph = graph::parse_model(cat("g ", text), opset).graph;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor();
    graph->value(graph->inputs()[i]).type = graph::ValueType::tensor(t.dtype(), graph::to_sym(t.shape()));
  }
  for (std::size_t i = 1; constant && i < inputs.size(); ++i) {
    graph::ValueInfo& value = graph->value(graph->inputs()[i]);
    value.constant = inputs[i];
    value.is_input = false;
  }
  if (constant) {
    graph->mutable_inputs().resize(1);
    inputs.resize(1);
  }
  kernel::infer_graph(*graph, registry());
  ThreadPool pool(threads);
  kernel::RunContext run;
  run.pool = &pool;
  run.max_threads = threads;
  run.allocator = &tensor::host_allocator();
  return kernel::evaluate_graph(*graph, inputs, {}, registry(), run);
}

}  // namespace

Tensor as_type(const Tensor& t, DType type) { return tensor_as(type, t.shape(), values(t)); }

void check_float_types(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                       std::initializer_list<DType> narrow, double tolerance) {
  std::vector<DType> types{DType::Float32};
  types.insert(types.end(), narrow.begin(), narrow.end());
  for (const DType type : types) {
    CAPTURE(tensor::name(type));
    const std::vector<Value> given = cast(inputs, DType::Float32, type);
    const std::vector<Value> exact = run_op(text, opset, cast(given, type, DType::Float64));
    const double allowed = type == DType::Float32 ? tolerance : type == DType::Float16 ? 2e-3 : 1.6e-2;
    check_op(text, opset, given, cast(exact, DType::Float64, type), allowed);
  }
}

void check_threads(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs) {
  for (const bool constant : {false, true}) {
    CAPTURE(constant);
    const std::vector<Value> one = run_with(text, opset, inputs, 1, constant),
                             three = run_with(text, opset, inputs, 3, constant);
    REQUIRE(one.size() == three.size());
    for (std::size_t o = 0; o < one.size(); ++o) {
      const Tensor &a = one[o].tensor(), &b = three[o].tensor();
      REQUIRE(a.to_string() == b.to_string());
      CHECK_MESSAGE(std::memcmp(a.raw(), b.raw(), a.bytes()) == 0, text, ": output ", o, " depends on the threads");
    }
  }
}

}  // namespace infernode::test
