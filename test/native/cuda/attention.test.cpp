// Operators with attention in them: masks, caches, windows, projections.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {

constexpr const char* kMicrosoft = "com.microsoft.";

Value ints(const tensor::Shape& shape, std::initializer_list<std::int32_t> all) {
  return Tensor::of<std::int32_t>(shape, all);
}

}  // namespace

TEST_CASE("the standard's attention") {
  const OnDouble undo;
  const Value q = numbers({2, 4, 3, 8}), k = numbers({2, 2, 5, 8}, 2), v = numbers({2, 2, 5, 6}, 3);
  const char* header = "(float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,5,6] v) => (y) { y = Attention";
  for (const char* how : {"", "<is_causal=1>", "<scale=0.5, left_window_size=1, right_window_size=1>",
                          "<is_causal=1, left_window_size=1>", "<right_window_size=0>"}) {
    same_as_cpu(cat(header, how, "(q, k, v) }"), {q, k, v}, 1e-4, 25);
  }
  same_as_cpu(
      "(float[2,3,32] q, float[2,5,16] k, float[2,5,12] v) => (y) {"
      " y = Attention<q_num_heads=4, kv_num_heads=2>(q, k, v) }",
      {numbers({2, 3, 32}), numbers({2, 5, 16}, 2), numbers({2, 5, 12}, 3)}, 1e-4, 23);
  same_as_cpu(
      "(float[2,3,32] q, float[2,3,16] k, float[2,3,16] v, float[2,2,2,8] p, float[2,2,2,8] r) => (y, s, t) {"
      " y, s, t = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1>(q, k, v, , p, r) }",
      {numbers({2, 3, 32}), numbers({2, 3, 16}, 2), numbers({2, 3, 16}, 3), numbers({2, 2, 2, 8}, 4),
       numbers({2, 2, 2, 8}, 5)},
      1e-4, 23);
  for (const char* how : {"", "<is_causal=1>"}) {
    same_as_cpu(cat("(float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,5,6] v, int64[2] n) => (y) { y = Attention", how,
                    "(q, k, v, , , , n) }"),
                {q, k, v, Tensor::of<std::int64_t>({2}, {5, 2})}, 1e-4, 24);
  }
}

TEST_CASE("masks of the standard's attention, queries that see nothing") {
  const OnDouble undo;
  const Value q = numbers({2, 2, 3, 8}), k = numbers({2, 2, 4, 8}, 2), v = numbers({2, 2, 4, 8}, 3);
  const auto check = [&](const char* type, const Value& mask, const char* how) {
    same_as_cpu(cat("(float[2,2,3,8] q, float[2,2,4,8] k, float[2,2,4,8] v, ", type, " m) => (y) { y = Attention", how,
                    "(q, k, v, m) }"),
                {q, k, v, mask}, 1e-4, 25);
  };
  constexpr float kNo = -std::numeric_limits<float>::infinity();
  const Value open =
      Tensor::of<bool>({3, 4}, {true, false, true, true, false, false, false, false, false, true, true, false});
  const Value added = Tensor::of<float>({3, 4}, {0, kNo, 1, -1, kNo, kNo, kNo, kNo, 0.5f, kNo, 2, kNo});
  for (const char* how : {"", "<is_causal=1>", "<left_window_size=1, right_window_size=0>"}) {
    check("bool[3,4]", open, how);
    check("float[3,4]", added, how);
    check("float[2,1,3,4]", numbers({2, 1, 3, 4}, 4), how);
    check("bool[2,2,1,3]",
          Tensor::of<bool>({2, 2, 1, 3}, {true, false, true, true, true, false, false, false, false, true, true, true}),
          how);
  }
}

TEST_CASE("heads that are too large for one kernel") {
  const OnDouble undo;
  same_as_cpu(
      "(float[1,2,3,300] q, float[1,1,5,300] k, float[1,1,5,300] v) => (y) { y = Attention<is_causal=1>(q, k, v) }",
      {numbers({1, 2, 3, 300}), numbers({1, 1, 5, 300}, 2), numbers({1, 1, 5, 300}, 3)}, 1e-4, 23);
}

TEST_CASE("attention that projects its input") {
  const OnDouble undo;
  const Value x = numbers({2, 3, 8}), w = numbers({8, 24}, 2), bias = numbers({24}, 3);
  const auto check = [&](const char* attributes, const char* declared, const char* inputs, std::vector<Value> more,
                         const char* outputs = "y") {
    more.insert(more.begin(), {x, w, bias});
    same_as_cpu(cat("(float[2,3,8] x, float[8,24] w, float[24] b", declared, ") => (", outputs, ") { ", outputs, " = ",
                    kMicrosoft, "Attention<num_heads=2", attributes, ">(x, w, b", inputs, ") }"),
                more, 1e-4);
  };
  check("", "", "", {});
  check(", unidirectional=1, scale=0.7", "", "", {});
  check("", ", int32[2] m", ", m", {ints({2}, {3, 1})});
  check("", ", int32[4] m", ", m", {ints({4}, {3, 2, 1, 0})});
  check("", ", int32[8] m", ", m", {ints({8}, {3, 1, 0, 3, 3, 0, 3, 3})});
  check(", mask_filter_value=-5.0", ", int32[2,3] m", ", m", {ints({2, 3}, {1, 0, 1, 0, 1, 1})});
  check("", ", int32[2,3,3] m", ", m", {ints({2, 3, 3}, {1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 0})});
  check("", ", float[1,2,3,3] a", ", , , a", {numbers({1, 2, 3, 3}, 4)});
  check("", ", int32[2] m, float[2,1,3,3] a", ", m, , a", {ints({2}, {3, 1}), numbers({2, 1, 3, 3}, 4)});
  check(", unidirectional=1", ", float[2,2,2,2,4] p", ", , p", {numbers({2, 2, 2, 2, 4}, 4)}, "y, present");
  std::string elements = "0.5";
  for (int i = 1; i < 8 * 24; ++i) elements += i % 3 == 0 ? ", -1.0" : ", 0.25";
  same_as_cpu(cat("(float[2,3,8] x) => (y) <float[8,24] w = {", elements, "}> { y = ", kMicrosoft,
                  "Attention<num_heads=2>(x, w) }"),
              {x}, 1e-4);
}

TEST_CASE("masks of integers of heads side by side") {
  const OnDouble undo;
  const std::vector<Value> inputs{numbers({2, 3, 8}), numbers({2, 4, 8}, 2), numbers({2, 4, 8}, 3)};
  const auto check = [&](const char* type, const Value& mask) {
    std::vector<Value> all = inputs;
    all.push_back(mask);
    same_as_cpu(cat("(float[2,3,8] q, float[2,4,8] k, float[2,4,8] v, ", type, " m) => (y) { y = ", kMicrosoft,
                    "MultiHeadAttention<num_heads=2>(q, k, v, , m) }"),
                all, 1e-4);
  };
  check("int32[2]", ints({2}, {4, 2}));
  check("int32[2,4]", ints({2, 4}, {1, 1, 0, 1, 0, 1, 1, 1}));
  same_as_cpu(cat("(float[2,3,8] q, float[2,4,8] k, float[2,4,8] v) => (y) { y = ", kMicrosoft,
                  "MultiHeadAttention<num_heads=2, unidirectional=1>(q, k, v) }"),
              inputs, 1e-4);
}

TEST_CASE("a decoder's keys join a cache, each sequence's at its own place") {
  const OnDouble undo;
  const auto check = [&](std::int64_t rows, std::int64_t held, std::int32_t total,
                         std::initializer_list<std::int32_t> last, const char* how) {
    CAPTURE(rows);
    CAPTURE(total);
    const std::string r = std::to_string(rows), h = std::to_string(held);
    same_as_cpu(
        cat("(float[2,", r, ",16] q, float[2,", r, ",8] k, float[2,", r, ",8] v, float[2,2,", h, ",4] a, float[2,2,", h,
            ",4] c, int32[2] l, float[16,2] cos, float[16,2] sin) => (y, p, w) <int32 t = {", total, "}> { y, p, w = ",
            kMicrosoft, "GroupQueryAttention<num_heads=4, kv_num_heads=2", how, ">(q, k, v, a, c, l, t, cos, sin) }"),
        {numbers({2, rows, 16}), numbers({2, rows, 8}, 2), numbers({2, rows, 8}, 3), numbers({2, 2, held, 4}, 4),
         numbers({2, 2, held, 4}, 5), ints({2}, last), numbers({16, 2}, 6), numbers({16, 2}, 7)},
        1e-4);
  };
  for (const char* how : {"", ", do_rotary=1", ", do_rotary=1, rotary_interleaved=1, scale=0.3",
                          ", local_window_size=3", ", do_rotary=1, local_window_size=2", ", causal=0"}) {
    CAPTURE(how);
    check(1, 6, 7, {6, 3}, how);
    check(1, 9, 7, {5, 6}, how);  // room for more
    check(3, 6, 7, {6, 4}, how);
    check(3, 6, 7, {6, 0}, how);  // fewer tokens than queries
    check(4, 6, 4, {3, 1}, how);  // prompts
    check(4, 0, 4, {3, 3}, how);
  }
}

TEST_CASE("a cache as long as a mask says") {
  const OnDouble undo;
  same_as_cpu(
      cat("(float[1,1,8] q, float[1,1,8] k, float[1,1,8] v, float[1,2,P,4] a, float[1,2,P,4] c, int32[1] l, "
          "int64[1,T] m) => (y, p, w) <int64 i = {1}> { s = Shape(m)  n = Gather(s, i)  t = Cast<to=6>(n)  y, p, w = ",
          kMicrosoft, "GroupQueryAttention<num_heads=2, kv_num_heads=2>(q, k, v, a, c, l, t) }"),
      {numbers({1, 1, 8}), numbers({1, 1, 8}, 2), numbers({1, 1, 8}, 3), numbers({1, 2, 5, 4}, 4),
       numbers({1, 2, 5, 4}, 5), ints({1}, {5}), Tensor::make(DType::Int64, {1, 6})},
      1e-4);
}

TEST_CASE("packed queries, keys and values; norms of heads; a bias") {
  const OnDouble undo;
  same_as_cpu(
      cat("(float[2,1,32] q, float[2,2,3,4] a, float[2,2,3,4] c, int32[2] l, float[8,1] cos, float[8,1] sin) => "
          "(y, p, w) <int32 t = {4}> { y, p, w = ",
          kMicrosoft, "GroupQueryAttention<num_heads=4, kv_num_heads=2, do_rotary=1>(q, , , a, c, l, t, cos, sin) }"),
      {numbers({2, 1, 32}), numbers({2, 2, 3, 4}, 4), numbers({2, 2, 3, 4}, 5), ints({2}, {3, 1}), numbers({8, 1}, 6),
       numbers({8, 1}, 7)},
      1e-4);
  const std::vector<Value> prompt{numbers({1, 3, 16}), numbers({1, 3, 8}, 2), numbers({1, 3, 8}, 3), ints({1}, {2})};
  const auto with = [&](const char* declared, const char* inputs, std::vector<Value> more) {
    more.insert(more.begin(), prompt.begin(), prompt.end());
    same_as_cpu(cat("(float[1,3,16] q, float[1,3,8] k, float[1,3,8] v, int32[1] l", declared,
                    ") => (y) <int32 t = {3}> { y = ", kMicrosoft,
                    "GroupQueryAttention<num_heads=4, kv_num_heads=2>(q, k, v, , , l, t, ", inputs, ") }"),
                more, 1e-4);
  };
  with(", float[1,1,3,3] m", ", , , m", {numbers({1, 1, 3, 3}, 8)});
  with(", float[1,4,3,3] m", ", , , m", {numbers({1, 4, 3, 3}, 8)});
  with(", float[4] n, float[4] o", ", , , , , , , n, o", {numbers({4}, 8), numbers({4}, 9)});
}
