// RNN, GRU and LSTM: what inputs give to the gates is one product, then a launch for each step.

#include "providers/cuda/kernels/params/recurrent.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "providers/cuda/kernels/simple/elementwise.h"
#include "providers/cuda/kernels/simple/movement.h"
#include "providers/cuda/lowering/products.h"

namespace infernode::cuda {
namespace {

using tensor::DType;
using tensor::Shape;

struct Named {
  const char* name;
  CellActivation activation;
};
constexpr Named kActivations[] = {
    {"Sigmoid", {UnaryOp::sigmoid, 0, 0}},
    {"Tanh", {UnaryOp::tanh, 0, 0}},
    {"Relu", {UnaryOp::relu, 0, 0}},
    {"Softsign", {UnaryOp::softsign, 0, 0}},
    {"Softplus", {UnaryOp::softplus, 0, 0}},
    {"HardSigmoid", {UnaryOp::hard_sigmoid, 0.2f, 0.5f}},
    {"LeakyRelu", {UnaryOp::leaky_relu, 0.01f, 0}},
    {"Elu", {UnaryOp::elu, 1, 0}},
};
std::optional<CellActivation> find_activation(const std::string& name) {
  for (const Named& item : kActivations) {
    if (name == item.name) return item.activation;
  }
  return std::nullopt;
}

constexpr std::int64_t gates_of(Cell cell) { return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1; }
/// Activations of one direction.
constexpr std::size_t activations_of(Cell cell) { return cell == Cell::lstm ? 3 : cell == Cell::gru ? 2 : 1; }

std::vector<std::string> activation_names(const graph::Attributes& attributes, Cell cell) {
  std::vector<std::string> names = attributes.get_strings("activations");
  if (!names.empty()) return names;
  const std::vector<std::string> usual = cell == Cell::rnn   ? std::vector<std::string>{"Tanh"}
                                         : cell == Cell::gru ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                                             : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  names = usual;
  names.insert(names.end(), usual.begin(), usual.end());
  return names;
}

/// Activations with parameters of their own are left to the CPU.
template <Cell cell>
bool can_recur(const NodeView& node) {
  const auto& attributes = node.attributes();
  const std::vector<std::string> names = activation_names(attributes, cell);
  const bool known = std::all_of(names.begin(), names.end(), [](const auto& name) { return find_activation(name); });
  const std::string direction = attributes.get_string("direction", "forward");
  const std::size_t directions = direction == "bidirectional" ? 2 : 1;
  return kProductTypes.contains(node.input_dtype(0)) && node.input_rank(0) == 3 && !node.is_empty(0) &&
         node.input_rank(1) == 3 && node.input_rank(2) == 3 && known &&
         (directions == 2 || direction == "forward" || direction == "reverse") &&
         names.size() >= directions * activations_of(cell) && attributes.get_floats("activation_alpha").empty() &&
         attributes.get_floats("activation_beta").empty() && node.node().opset >= 7;
}

struct Sizes {
  std::int64_t positions, batch, inputs, hidden, directions, gates;
  bool batch_first;
};
Sizes sizes_of(Builder& b, Cell cell) {
  const Shape x = b.input_shape(0), w = b.input_shape(1), r = b.input_shape(2);
  Sizes s{};
  s.batch_first = b.attributes().get_int("layout", 0) != 0;
  s.positions = x[s.batch_first ? 1 : 0];
  s.batch = x[s.batch_first ? 0 : 1];
  s.inputs = x[2];
  s.hidden = r[2];
  s.directions = w[0];
  s.gates = gates_of(cell);
  const Shape wanted_w{s.directions, s.gates * s.hidden, s.inputs},
      wanted_r{s.directions, s.gates * s.hidden, s.hidden};
  const bool both = b.attributes().get_string("direction", "forward") == "bidirectional";
  const bool fits = w == wanted_w && r == wanted_r && s.hidden > 0 && s.directions == (both ? 2 : 1) &&
                    b.attributes().get_int("hidden_size", s.hidden) == s.hidden;
  if (!fits) {
    fail(ErrorCode::ShapeMismatch,
         cat(b.node().op_type, ": W is ", w.to_string(), " and R ", r.to_string(), " for X ", x.to_string()));
  }
  return s;
}
void expect_elements(Builder& b, std::size_t i, std::int64_t count) {
  if (!b.has_input(i) || b.input_shape(i).numel() == count) return;
  fail(ErrorCode::ShapeMismatch,
       cat(b.node().op_type, ": input ", i, " is ", b.input_shape(i).to_string(), ", expected ", count, " elements"));
}

DevicePtr plus(DevicePtr at, std::int64_t elements, std::size_t bytes) {
  return at + static_cast<DevicePtr>(elements) * bytes;
}

/// What inputs give to the gates of a direction, float32 [rows][gates * hidden].
DevicePtr multiply_inputs(Builder& b, const Sizes& s, const DeviceTensor& x, const DeviceTensor& w,
                          std::int64_t direction) {
  GemmProblem p;
  p.m = s.positions * s.batch, p.n = s.gates * s.hidden, p.k = s.inputs;
  p.precision = precision_of(b);
  p.a = {.address = x.at, .type = element_of(x.dtype), .row_stride = s.inputs, .k_stride = 1};
  p.b = {.address = plus(w.at, direction * p.n * p.k, w.element_bytes()),
         .type = element_of(w.dtype),
         .row_stride = s.inputs,
         .k_stride = 1};
  p.b_constant = w.is_constant;
  p.epilogue.out = b.scratch(static_cast<std::size_t>(p.m * p.n) * sizeof(float));
  p.epilogue.out_type = Element::f32;
  p.epilogue.out_row = p.n;
  launch_gemm(b, p);
  return p.epilogue.out;
}

/// A direction's part [batch][hidden] of a state [directions][batch][hidden], or [batch][directions][hidden], and back.
struct States {
  const Sizes& s;
  Shape dims() const { return {s.batch, s.hidden}; }
  std::int64_t offset(std::int64_t direction) const {
    return direction * (s.batch_first ? s.hidden : s.batch * s.hidden);
  }
  std::vector<std::int64_t> strides() const { return {s.batch_first ? s.directions * s.hidden : s.hidden, 1}; }
};

/// The first state of a direction, as float32.
DevicePtr first_state(Builder& b, const Sizes& s, std::size_t input, std::int64_t direction) {
  const std::size_t count = static_cast<std::size_t>(s.batch * s.hidden);
  const DevicePtr to = b.scratch(count * sizeof(float));
  if (!b.has_input(input)) {
    b.launch(plan_fill(
        b.target(),
        {.to = to, .element_bytes = sizeof(float), .dims = Shape{s.batch * s.hidden}, .to_stride = {1}, .bits = 0}));
    return to;
  }
  const States states{s};
  b.launch(plan_strided_copy(b.target(), {.from = plus(b.input_floats(input), states.offset(direction), sizeof(float)),
                                          .to = to,
                                          .element_bytes = sizeof(float),
                                          .dims = states.dims(),
                                          .from_stride = states.strides(),
                                          .to_stride = {s.hidden, 1}}));
  return to;
}

/// A float32 state as a direction's part of an output.
void deliver_state(Builder& b, const Sizes& s, DevicePtr state, const DeviceTensor& y, std::int64_t direction) {
  const std::int64_t count = s.batch * s.hidden;
  DevicePtr from = state;
  if (y.dtype != DType::Float32) {
    from = b.scratch(static_cast<std::size_t>(count) * y.element_bytes());
    b.launch(plan_cast(b.target(), {state, DType::Float32, from, y.dtype, count}));
  }
  const States states{s};
  b.launch(plan_strided_copy(b.target(), {.from = from,
                                          .to = plus(y.at, states.offset(direction), y.element_bytes()),
                                          .element_bytes = y.element_bytes(),
                                          .dims = states.dims(),
                                          .from_stride = {s.hidden, 1},
                                          .to_stride = states.strides()}));
}

void launch_step(Builder& b, DType dtype, const RecurrentParams& p) {
  b.launch(launch_of_blocks(cat("recurrent_", kernel_suffix(dtype)), std::int64_t{p.batch} * p.hidden, 4, 128,
                            param_bytes(p)));
}

/// All steps of a direction, the last state in p.state.
void run_steps(Builder& b, DType dtype, const Sizes& s, RecurrentParams& p) {
  const auto state = [&] { return b.scratch(static_cast<std::size_t>(s.batch * s.hidden) * sizeof(float)); };
  p.next = state();
  const bool two_phases = p.kind == Cell::gru && !p.reset_after;
  if (two_phases) p.update = state(), p.reset = state();
  for (p.step = 0; p.step < s.positions; ++p.step) {
    for (p.phase = two_phases ? 0 : 1; p.phase < 2; ++p.phase) launch_step(b, dtype, p);
    std::swap(p.state, p.next);
  }
}

/// What all directions share.
RecurrentParams params_of(Builder& b, const Sizes& s, Cell cell, const DeviceTensor& lengths) {
  RecurrentParams p{};
  p.kind = cell;
  p.lengths = lengths ? lengths.at : 0;
  p.positions = static_cast<std::int32_t>(s.positions);
  p.batch = static_cast<std::int32_t>(s.batch);
  p.hidden = static_cast<std::int32_t>(s.hidden);
  p.batch_first = s.batch_first;
  p.reset_after = b.attributes().get_int("linear_before_reset", 0) != 0;
  p.couples = b.attributes().get_int("input_forget", 0) != 0;
  p.clip = b.attributes().get_float("clip", 0);
  p.y_position = s.batch_first ? s.directions * s.hidden : s.directions * s.batch * s.hidden;
  p.y_batch = s.batch_first ? s.positions * s.directions * s.hidden : s.hidden;
  return p;
}

template <Cell cell>
void lower_recur(Builder& b) {
  const Sizes s = sizes_of(b, cell);
  expect_elements(b, 3, s.directions * 2 * s.gates * s.hidden);
  expect_elements(b, 4, s.batch);
  for (const std::size_t i : {5, 6}) expect_elements(b, i, s.directions * s.batch * s.hidden);
  expect_elements(b, 7, s.directions * 3 * s.hidden);
  const DeviceTensor x = b.input(0), w = b.input(1), r = b.input(2), lengths = b.input(4);
  const DevicePtr bias = b.input_floats(3), peepholes = cell == Cell::lstm ? b.input_floats(7) : 0;
  DeviceTensor outputs[3];
  for (std::size_t o = 0; o < 3; ++o) {
    if (b.wants_output(o)) outputs[o] = b.output(o);
  }
  const std::vector<std::string> names = activation_names(b.attributes(), cell);
  const std::string direction = b.attributes().get_string("direction", "forward");
  RecurrentParams p = params_of(b, s, cell, lengths);
  for (std::int64_t d = 0; d < s.directions; ++d) {
    p.reverse = direction == "reverse" || d == 1;
    for (std::size_t i = 0; i < activations_of(cell); ++i) {
      p.activation[i] = find_activation(names[static_cast<std::size_t>(d) * activations_of(cell) + i]).value();
    }
    p.inputs = multiply_inputs(b, s, x, w, d);
    p.weights = plus(r.at, d * s.gates * s.hidden * s.hidden, r.element_bytes());
    p.bias = bias != 0 ? plus(bias, d * 2 * s.gates * s.hidden, sizeof(float)) : 0;
    p.peepholes = peepholes != 0 ? plus(peepholes, d * 3 * s.hidden, sizeof(float)) : 0;
    p.state = first_state(b, s, 5, d);
    if (cell == Cell::lstm) p.cell = first_state(b, s, 6, d);
    const std::int64_t before = d * (s.batch_first ? s.hidden : s.batch * s.hidden);
    p.y = outputs[0] ? plus(outputs[0].at, before, outputs[0].element_bytes()) : 0;
    run_steps(b, x.dtype, s, p);
    if (outputs[1]) deliver_state(b, s, p.state, outputs[1], d);
    if (outputs[2]) deliver_state(b, s, p.cell, outputs[2], d);
  }
}

}  // namespace

void register_recurrent(Lowerings& lowerings) {
  lowerings.push_back({"", "RNN", can_recur<Cell::rnn>, lower_recur<Cell::rnn>});
  lowerings.push_back({"", "GRU", can_recur<Cell::gru>, lower_recur<Cell::gru>});
  lowerings.push_back({"", "LSTM", can_recur<Cell::lstm>, lower_recur<Cell::lstm>});
}

}  // namespace infernode::cuda
