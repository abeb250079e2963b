#include "ops/op_test.h"

#include <chrono>
#include <complex>
#include <map>
#include <optional>

#include "all_operators.h"
#include "base/packed.h"
#include "base/thread_pool.h"
#include "graph/text.h"
#include "graph/verifier.h"
#include "kernel/charge.h"
#include "kernel/inference.h"
#include "kernel/profile.h"
#include "ops/evaluate.h"
#include "ops/limits.h"
#include "tensor/dispatch.h"

namespace infernode::test {
namespace {

using graph::Dim;
using graph::Graph;
using graph::ValueType;

constexpr std::size_t kNoConstant = SIZE_MAX;

ThreadPool& pool() {
  static ThreadPool threads(3);
  return threads;
}

/// Operators of tests take little memory; what asks for more is refused, as by a session's memory limit.
class SmallHost final : public tensor::Allocator {
 public:
  tensor::Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t kMost = std::size_t{1} << 30;
    if (bytes > kMost) fail(ErrorCode::OutOfMemory, cat("the test's limit: ", bytes, " bytes were asked for"));
    return tensor::host_allocator().allocate(bytes);
  }
  tensor::Device device() const override { return tensor::host_allocator().device(); }
};

kernel::RunContext run_context() {
  kernel::RunContext run;
  run.pool = &pool();
  run.max_threads = 3;
  static SmallHost small;
  run.allocator = &small;
  run.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  return run;
}

/// Parses, completes missing input types from the inputs and turns inputs from `first_constant` on into initializers.
std::shared_ptr<Graph> parse(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                             std::size_t first_constant) {
  const std::string full = cat(text.starts_with("(") ? "g " : "", text);
  auto graph = graph::parse_model(full, opset).graph;
  std::vector<graph::ValueId> left;
  for (std::size_t i = 0; i < graph->inputs().size(); ++i) {
    const graph::ValueId id = graph->inputs()[i];
    graph::ValueInfo& value = graph->value(id);
    if (i < inputs.size() && !inputs[i].empty()) {
      if (inputs[i].is_tensor()) {
        const Tensor& t = inputs[i].tensor();
        if (value.type.kind == ValueType::Kind::Unknown)
          value.type = ValueType::tensor(t.dtype(), graph::to_sym(t.shape()));
        REQUIRE_MESSAGE(value.type.elem == t.dtype(), "input ", i, " is ", t.to_string(), " but declared ",
                        value.type.to_string());
      }
      if (i >= first_constant) {
        value.constant = inputs[i];
        value.is_input = false;
        continue;
      }
    }
    left.push_back(id);
  }
  graph->mutable_inputs() = left;
  graph::verify(*graph);
  return graph;
}

std::string shown(const ValueType& type) {
  return cat(type.to_string(), type.shape ? graph::to_string(*type.shape) : type.is_tensor() ? "[...]" : "");
}

/// Inferred types, and no function that has no kernel.
void prepare(Graph& graph) {
  kernel::infer_graph(graph, registry());
  if (kernel::expand_functions(graph, registry()) > 0) kernel::infer_graph(graph, registry());
}

/// The inputs that are not initializers.
std::vector<Value> feeds_of(const std::vector<Value>& inputs, std::size_t first_constant) {
  return {inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(std::min(first_constant, inputs.size()))};
}

using Symbols = std::map<std::string, std::int64_t, std::less<>>;

Symbols bind_symbols(const std::vector<ValueType>& declared, const std::vector<Value>& inputs) {
  Symbols out;
  for (std::size_t i = 0; i < declared.size() && i < inputs.size(); ++i) {
    if (!declared[i].shape || !inputs[i].is_tensor()) continue;
    const Tensor& t = inputs[i].tensor();
    REQUIRE_MESSAGE(declared[i].shape->size() == t.rank(), "input ", i, " is ", t.to_string(), " but declared ",
                    shown(declared[i]));
    for (std::size_t axis = 0; axis < t.rank(); ++axis) {
      const Dim& dim = (*declared[i].shape)[axis];
      if (const std::string name = dim.symbol_name(); !name.empty()) out[name] = t.dim(axis);
    }
  }
  return out;
}

bool agrees(const Dim& inferred, std::int64_t actual, const Symbols& symbols) {
  const auto value = inferred.evaluate([&](std::string_view name) -> std::optional<std::int64_t> {
    const auto found = symbols.find(name);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  });
  return !value || *value == actual;
}

/// Inferred types and contents against the values that came out.
void check_inferred(const Graph& graph, const std::vector<ValueType>& types,
                    const std::vector<std::optional<std::vector<Dim>>>& contents, const std::vector<Value>& actual,
                    const Symbols& symbols) {
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const auto id = static_cast<std::size_t>(graph.outputs()[o]);
    const ValueType& type = types[id];
    if (!actual[o].is_tensor()) {
      if (type.kind == ValueType::Kind::Sequence) CHECK_MESSAGE(actual[o].is_sequence(), "inferred ", shown(type));
      if (type.kind == ValueType::Kind::Tensor) FAIL_CHECK("inferred a tensor for ", actual[o].to_string());
      continue;
    }
    const Tensor& t = actual[o].tensor();
    CAPTURE(shown(type));
    CAPTURE(t.to_string());
    CHECK_MESSAGE(type.elem == t.dtype(), "inferred element type of output ", o);
    if (type.shape) {
      CHECK_MESSAGE(type.shape->size() == t.rank(), "inferred rank of output ", o);
      for (std::size_t axis = 0; axis < t.rank() && axis < type.shape->size(); ++axis)
        CHECK_MESSAGE(agrees((*type.shape)[axis], t.dim(axis), symbols), "inferred dim ", axis, " of output ", o);
    }
    if (!contents[id]) continue;
    const std::vector<std::int64_t> real = tensor::to_int64_vector(t);
    CHECK_MESSAGE(contents[id]->size() == real.size(), "inferred count of elements of output ", o);
    for (std::size_t i = 0; i < real.size() && i < contents[id]->size(); ++i)
      CHECK_MESSAGE(agrees((*contents[id])[i], real[i], symbols), "inferred element ", i, " of output ", o, ": ",
                    (*contents[id])[i].to_string());
  }
}

void check_run(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
               const std::vector<Value>& expected, double tolerance, std::size_t first_constant) {
  auto graph = parse(text, opset, inputs, first_constant);
  const std::vector<Value> feeds = feeds_of(inputs, first_constant);
  std::vector<ValueType> declared;
  for (graph::ValueId id : graph->inputs()) declared.push_back(graph->value(id).type);
  const Symbols symbols = bind_symbols(declared, feeds);
  prepare(*graph);

  std::vector<ValueType> given;
  for (std::size_t i = 0; i < graph->inputs().size() && first_constant > 0; ++i) {
    const bool tensor = i < feeds.size() && feeds[i].is_tensor();
    given.push_back(tensor ? ValueType::tensor(feeds[i].tensor().dtype(), graph::to_sym(feeds[i].tensor().shape()))
                           : declared[i]);
  }
  const auto order = graph->topological_order();
  const kernel::InferredGraph concrete = kernel::infer_values(*graph, order, given, {}, registry());
  const kernel::InferredGraph symbolic = kernel::infer_values(*graph, order, {}, {}, registry());

  const std::vector<Value> actual = evaluate(graph, feeds);
  REQUIRE(actual.size() == expected.size());
  check_inferred(*graph, concrete.types, concrete.contents, actual, symbols);
  check_inferred(*graph, symbolic.types, symbolic.contents, actual, symbols);
  for (std::size_t o = 0; o < actual.size(); ++o) {
    const std::string different = difference(actual[o], expected[o], tolerance_of(expected[o], tolerance));
    CHECK_MESSAGE(different.empty(), "output ", o, ": ", different);
  }
}

double float_at(const Tensor& t, std::int64_t i) {
  double out = 0;
  tensor::dispatch<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ,
                   Float8E8M0>(t.dtype(), "comparison", [&]<class T>(tensor::TypeTag<T>) {
    if constexpr (std::is_same_v<T, double>) {
      out = t.data<double>()[i];
    } else {
      out = static_cast<float>(t.data<T>()[i]);
    }
  });
  return out;
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

std::string tensor_difference(const Tensor& a, const Tensor& e, double tolerance) {
  if (a.dtype() != e.dtype() || !(a.shape() == e.shape())) return cat(a.to_string(), " instead of ", e.to_string());
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (a.dtype() == DType::String) {
      const std::string &x = a.data<std::string>()[i], &y = e.data<std::string>()[i];
      if (x != y) return cat("element ", i, " is '", x, "' instead of '", y, "'");
    } else if (tensor::is_sub_byte(a.dtype())) {
      const auto* x = static_cast<const std::uint8_t*>(a.raw());
      const auto* y = static_cast<const std::uint8_t*>(e.raw());
      const std::size_t bits = tensor::bit_size(a.dtype());
      const auto code = [&](const std::uint8_t* data) {
        return bits == 6 ? get_packed<6>(data, at) : bits == 4 ? get_packed<4>(data, at) : get_packed<2>(data, at);
      };
      const int p = code(x), q = code(y);
      if (p != q) return cat("element ", i, " has the bits ", p, " instead of ", q);
    } else if (a.dtype() == DType::Complex64 || a.dtype() == DType::Complex128) {
      const bool wide = a.dtype() == DType::Complex128;
      for (std::int64_t part = 2 * i; part < 2 * i + 2; ++part) {
        const double x = wide ? static_cast<const double*>(a.raw())[part] : static_cast<const float*>(a.raw())[part];
        const double y = wide ? static_cast<const double*>(e.raw())[part] : static_cast<const float*>(e.raw())[part];
        if (!close(x, y, tolerance)) return cat("element ", i, " has the part ", x, " instead of ", y);
      }
    } else if (tensor::is_floating(a.dtype())) {
      const double x = float_at(a, i), y = float_at(e, i);
      if (!close(x, y, tolerance)) return cat("element ", i, " is ", x, " instead of ", y);
    } else {
      const std::size_t bytes = tensor::bit_size(a.dtype()) / 8;
      const std::byte *x = static_cast<const std::byte*>(a.raw()) + at * bytes,
                      *y = static_cast<const std::byte*>(e.raw()) + at * bytes;
      if (!std::equal(x, x + bytes, y))
        return cat("element ", i, " is ", tensor::to_int64_vector(a)[at], " instead of ",
                   tensor::to_int64_vector(e)[at]);
    }
  }
  return {};
}

}  // namespace

std::vector<Value> evaluate_here(const Graph& graph, const std::vector<Value>& inputs) {
  kernel::RunContext run = run_context();
  return kernel::evaluate_graph(graph, inputs, {}, registry(), run);
}

const kernel::Registry& registry() {
  static const kernel::Registry all = all_operators();
  return all;
}

void check_op(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
              const std::vector<Value>& expected, double tolerance) {
  for (const std::size_t first_constant : first_constants()) {
    CAPTURE(text);
    CAPTURE(opset);
    CAPTURE(first_constant);
    try {
      check_run(text, opset, inputs, expected, tolerance, first_constant);
    } catch (const Error& error) {
      FAIL_CHECK(cat(to_string(error.code()), ": ", error.message()));
    }
  }
}

void check_op_fails(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, ErrorCode code,
                    std::string_view fragment) {
  for (const std::size_t first_constant : first_constants()) {
    CAPTURE(text);
    CAPTURE(opset);
    CAPTURE(first_constant);
    try {
      auto graph = parse(text, opset, inputs, first_constant);
      prepare(*graph);
      evaluate(graph, feeds_of(inputs, first_constant));
      if (must_refuse()) FAIL_CHECK("it ran, but should fail with '", fragment, "'");
    } catch (const Error& error) {
      if (!errors_are_the_kernels()) continue;
      CHECK_MESSAGE(error.code() == code, cat(to_string(error.code()), ": ", error.message()));
      CHECK_MESSAGE(error.message().find(fragment) != std::string::npos, error.message());
    }
  }
}

std::vector<Value> run_op(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                          bool as_constants) {
  const std::size_t first_constant = as_constants ? 0 : kNoConstant;
  auto graph = parse(text, opset, inputs, first_constant);
  prepare(*graph);
  return evaluate(graph, feeds_of(inputs, first_constant));
}

std::size_t looks_of(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, bool cancelled,
                     bool constant) {
  const std::size_t first_constant = constant ? 1 : kNoConstant;
  auto graph = parse(text, opset, inputs, first_constant);
  prepare(*graph);
  kernel::LoopProfile profile;
  kernel::CancelToken cancel;
  if (cancelled) cancel.cancel();
  kernel::RunContext run = run_context();
  run.pool = nullptr;
  run.max_threads = 1;
  run.cancel = &cancel;
  run.loops = &profile;
  try {
    kernel::evaluate_graph(*graph, feeds_of(inputs, first_constant), {}, registry(), run);
    CHECK_FALSE(cancelled);
  } catch (const Error& error) {
    CHECK_MESSAGE(cancelled, error.message());
    CHECK(error.code() == ErrorCode::Aborted);
  }
  return profile.looks();
}

namespace {

/// Host memory that counts against the budget of a run.
class CountedMemory final : public tensor::Allocator {
 public:
  explicit CountedMemory(kernel::MemoryBudget& budget) { run_.budget = &budget; }
  tensor::Buffer allocate(std::size_t bytes) override {
    const auto charge = std::make_shared<kernel::Charge>(run_, bytes);
    const auto block = std::make_shared<Block>(charge, tensor::host_allocator().allocate(bytes));
    return {block->second.data(), bytes, block};
  }
  tensor::Device device() const override { return {}; }

 private:
  using Block = std::pair<std::shared_ptr<kernel::Charge>, tensor::Buffer>;
  kernel::RunContext run_;
};

void check_ends(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs, std::size_t bytes,
                bool counts_allocator) {
  CAPTURE(text);
  auto graph = parse(text, opset, inputs, kNoConstant);
  prepare(*graph);
  kernel::MemoryBudget budget(bytes);
  kernel::RunContext run = run_context();
  run.budget = &budget;
  CountedMemory memory(budget);
  if (counts_allocator) run.allocator = &memory;
  try {
    kernel::evaluate_graph(*graph, inputs, {}, registry(), run);
    FAIL_CHECK("it ran");
  } catch (const Error& error) {
    CHECK_MESSAGE(error.code() == ErrorCode::OutOfMemory, error.message());
  }
  CHECK(budget.used() == 0);
}

}  // namespace

void check_beyond_budget(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                         std::size_t bytes) {
  check_ends(text, opset, inputs, bytes, false);
}

void check_beyond_limit(std::string_view text, std::int64_t opset, const std::vector<Value>& inputs,
                        std::size_t bytes) {
  check_ends(text, opset, inputs, bytes, true);
}

std::string infer_op(std::string_view text, std::int64_t opset, const std::vector<Value>& constants) {
  auto graph = parse(text, opset, constants, 0);
  prepare(*graph);
  return shown(graph->value(graph->outputs().at(0)).type);
}

std::string infer_contents(std::string_view text, std::int64_t opset, const std::vector<Value>& constants) {
  auto graph = parse(text, opset, constants, 0);
  prepare(*graph);
  const auto found = kernel::infer_values(*graph, graph->topological_order(), {}, {}, registry());
  const auto& contents = found.contents[static_cast<std::size_t>(graph->outputs().at(0))];
  return contents ? graph::to_string(*contents) : "?";
}

std::string difference(const Value& actual, const Value& expected, double tolerance) {
  if (actual.is_tensor() && expected.is_tensor())
    return tensor_difference(actual.tensor(), expected.tensor(), tolerance);
  if (actual.is_sequence() && expected.is_sequence()) {
    const auto &a = actual.sequence().items, &e = expected.sequence().items;
    if (a.size() != e.size()) return cat("a sequence of ", a.size(), " instead of ", e.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::string d = difference(a[i], e[i], tolerance); !d.empty()) return cat("item ", i, ": ", d);
    }
    return {};
  }
  if (actual.is_optional() && expected.is_optional()) {
    const auto &a = actual.optional().item, &e = expected.optional().item;
    if (a && e) return difference(*a, *e, tolerance);
    return !a == !e ? "" : a ? "a value instead of an empty optional" : "an empty optional instead of a value";
  }
  if (actual.is_map() && expected.is_map()) {
    if (std::string d = difference(actual.map().keys, expected.map().keys); !d.empty()) return cat("keys: ", d);
    for (std::size_t i = 0; i < expected.map().values.size(); ++i) {
      if (std::string d = difference(actual.map().values.at(i), expected.map().values[i], tolerance); !d.empty())
        return cat("value ", i, ": ", d);
    }
    return {};
  }
  return cat(actual.to_string(), " instead of ", expected.to_string());
}

Tensor tensor_as(DType type, const Shape& shape, const std::vector<double>& values) {
  Tensor out = Tensor::make(type, shape);
  REQUIRE(static_cast<std::size_t>(out.numel()) == values.size());
  if (tensor::is_sub_byte(type)) {
    auto* data = static_cast<std::uint8_t*>(out.mutable_raw());
    std::fill_n(data, out.bytes(), std::uint8_t{0});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int code = type == DType::Float4E2M1   ? Float4E2M1(values[i]).bits
                       : type == DType::Float6E2M3 ? Float6E2M3(values[i]).bits
                       : type == DType::Float6E3M2 ? Float6E3M2(values[i]).bits
                                                   : static_cast<int>(values[i]);
      const std::size_t bits = tensor::bit_size(type);
      bits == 6   ? set_packed<6>(data, i, code)
      : bits == 4 ? set_packed<4>(data, i, code)
                  : set_packed<2>(data, i, code);
    }
    return out;
  }
  tensor::dispatch<float, double, Float16, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ,
                   Float8E8M0, bool, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                   std::uint32_t, std::uint64_t>(type, "tensor_as", [&]<class T>(tensor::TypeTag<T>) {
    T* data = out.mutable_data<T>();
    for (double v : values) *data++ = static_cast<T>(v);
  });
  return out;
}

Tensor iota(DType type, const Shape& shape, double first, double step) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (double& v : values) {
    v = first;
    first += step;
  }
  return tensor_as(type, shape, values);
}

Tensor noise(const Shape& shape, float scale, std::uint32_t seed) {
  Tensor out = Tensor::make(DType::Float32, shape);
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& v : out.mutable_span<float>()) {
    state = state * 1664525u + 1013904223u;
    v = (static_cast<float>(state >> 8) * 0x1p-23f - 1.0f) * scale;
  }
  return out;
}

}  // namespace infernode::test
