#include "ops/float_types.h"

namespace infernode::test {
namespace {

TEST_CASE("RNN feeds its state back") {
  // H = relu(x + 2 H + 1), one feature, one unit.
  const std::string head = "(X, W, R, B) => (Y, H) { Y, H = RNN<hidden_size=1, activations=[\"Relu\"]";
  const std::vector<Value> inputs{f32({3, 1, 1}, {1, -9, 3}), f32({1, 1, 1}, {1}), f32({1, 1, 1}, {2}),
                                  f32({1, 2}, {1, 0})};
  check_op(cat(head, ">(X, W, R, B) }"), 7, inputs, {f32({3, 1, 1, 1}, {2, 0, 4}), f32({1, 1, 1}, {4})});
  check_op(cat(head, ", direction=\"reverse\">(X, W, R, B) }"), 14, inputs,
           {f32({3, 1, 1, 1}, {2, 0, 4}), f32({1, 1, 1}, {2})});
  check_op(cat(head, ", layout=1>(X, W, R, B) }"), 14, {f32({1, 3, 1}, {1, -9, 3}), inputs[1], inputs[2], inputs[3]},
           {f32({1, 3, 1, 1}, {2, 0, 4}), f32({1, 1, 1}, {4})});
}

TEST_CASE("Sequences of a batch end where sequence_lens says") {
  const Tensor w = f32({2, 1, 1}, {1, 1}), r = f32({2, 1, 1}, {1, 1}), x = f32({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  // Running sums, forward and from each sequence's own end backward.
  check_op(
      "(X, W, R, L) => (Y, H) { Y, H = RNN<hidden_size=1, direction=\"bidirectional\", activations=[\"Affine\", "
      "\"Affine\"]>"
      "(X, W, R, , L) }",
      7, {x, w, r, i32({2}, {3, 1})},
      {f32({3, 2, 2, 1}, {1, 10, 6, 10, 3, 0, 5, 0, 6, 0, 3, 0}), f32({2, 2, 1}, {6, 10, 6, 10})});
  check_op_fails("(X, W, R, L) => (Y) { Y = RNN<hidden_size=1, direction=\"bidirectional\">(X, W, R, , L) }", 7,
                 {x, w, r, i32({2}, {4, 1})}, ErrorCode::InvalidArgument, "sequence_lens[0]");
}

TEST_CASE("Recurrent operators agree in all floating types, forward, backward and both") {
  struct Case {
    const char* op;
    std::int64_t gates;
    const char* attributes;
  };
  const Case cases[] = {
      {"RNN", 1, ""},
      {"RNN", 1, "clip=0.5,"},
      {"RNN", 1, "layout=1,"},
      {"GRU", 3, ""},
      {"GRU", 3, "linear_before_reset=1,"},
      {"GRU", 3, "layout=1, clip=0.3,"},
      {"LSTM", 4, ""},
      {"LSTM", 4, "input_forget=1, clip=0.4,"},
      {"LSTM", 4, "layout=1,"},
  };
  constexpr std::int64_t kSteps = 4, kBatch = 3, kInput = 5, kHidden = 19;
  for (const Case& c : cases) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const std::int64_t d = std::string_view(direction) == "bidirectional" ? 2 : 1;
      const bool batch_first = std::string_view(c.attributes).starts_with("layout");
      const std::string text = cat("(X, W, R, B, L, H0) => (Y, H) { Y, H = ", c.op, "<", c.attributes, " direction=\"",
                                   direction, "\", hidden_size=", kHidden, ">(X, W, R, B, L, H0) }");
      CAPTURE(text);
      const std::vector<Value> inputs{
          noise(batch_first ? Shape{kBatch, kSteps, kInput} : Shape{kSteps, kBatch, kInput}),
          noise({d, c.gates * kHidden, kInput}, 0.6f, 2),
          noise({d, c.gates * kHidden, kHidden}, 0.4f, 3),
          noise({d, 2 * c.gates * kHidden}, 0.5f, 4),
          i32({kBatch}, {4, 2, 0}),
          noise(batch_first ? Shape{kBatch, d, kHidden} : Shape{d, kBatch, kHidden}, 1, 5)};
      check_float_types(text, 22, inputs);
      check_threads(text, 22, inputs);
    }
  }
}

TEST_CASE("Recurrent operators refuse what does not fit") {
  const Tensor x = noise({2, 1, 3}), r = noise({1, 4, 4});
  check_op_fails("(X, W, R) => (Y) { Y = RNN<hidden_size=4>(X, W, R) }", 14, {x, noise({1, 4, 2}), r},
                 ErrorCode::ShapeMismatch, "do not fit X");
  check_op_fails("(X, W, R) => (Y) { Y = RNN<hidden_size=5>(X, W, R) }", 14, {x, noise({1, 4, 3}), r},
                 ErrorCode::ShapeMismatch, "hidden_size is 5");
  check_op_fails("(X, W, R) => (Y) { Y = RNN<direction=\"sideways\">(X, W, R) }", 14, {x, noise({1, 4, 3}), r},
                 ErrorCode::InvalidModel, "sideways");
  check_op_fails("(X, W, R) => (Y) { Y = RNN<activations=[\"Wave\"]>(X, W, R) }", 14, {x, noise({1, 4, 3}), r},
                 ErrorCode::InvalidModel, "'Wave'");
  check_op_fails("(X, W, R, B) => (Y) { Y = RNN(X, W, R, B) }", 14, {x, noise({1, 4, 3}), r, noise({1, 4})},
                 ErrorCode::ShapeMismatch, "B is [1,4], expected [1,8]");
  check_op_fails("(X, W, R, H) => (Y) { Y = RNN(X, W, R, , , H) }", 14, {x, noise({1, 4, 3}), r, noise({1, 2, 4})},
                 ErrorCode::ShapeMismatch, "initial_h");
}

}  // namespace
}  // namespace infernode::test
