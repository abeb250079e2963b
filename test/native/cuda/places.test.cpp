// Elements that indices name, and those that are repeated or put elsewhere.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("indices name elements and slices") {
  const OnDouble undo;
  const Value x = numbers({3, 4}), i = Tensor::of<std::int64_t>({2, 4}, {0, -1, 2, 1, 1, 1, 0, -3});
  same_as_cpu("(float[3,4] x, int64[2,4] i) => (y) { y = GatherElements(x, i) }", {x, i});
  same_as_cpu("(float[3,4] x, int32[3,2] i) => (y) { y = GatherElements<axis=1>(x, i) }",
              {x, Tensor::of<std::int32_t>({3, 2}, {0, -1, 2, 1, 3, 3})});
  same_as_cpu("(float[2,3,4] x, int64[3,2] i) => (y) { y = GatherND(x, i) }",
              {numbers({2, 3, 4}), Tensor::of<std::int64_t>({3, 2}, {0, 1, 1, -1, 0, 0})});
  same_as_cpu("(float16[2,3,4] x, int64[2,1] i) => (y) { y = GatherND<batch_dims=1>(x, i) }",
              {numbers<Float16>({2, 3, 4}), Tensor::of<std::int64_t>({2, 1}, {2, 0})});
}

TEST_CASE("updates are scattered, the last one wins") {
  const OnDouble undo;
  const std::vector<Value> inputs{numbers({3, 4}), Tensor::of<std::int64_t>({2, 4}, {0, -1, 2, 1, 0, 2, 2, -3}),
                                  numbers({2, 4}, 2)};
  same_as_cpu("(float[3,4] x, int64[2,4] i, float[2,4] u) => (y) { y = ScatterElements(x, i, u) }", inputs);
  const std::vector<Value> slices{numbers({4, 3}), Tensor::of<std::int64_t>({3, 1}, {2, 0, 2}), numbers({3, 3}, 2)};
  same_as_cpu("(float[4,3] x, int64[3,1] i, float[3,3] u) => (y) { y = ScatterND(x, i, u) }", slices);
  for (const char* how : {"add", "mul", "max", "min"}) {
    same_as_cpu(cat("(float[3,4] x, int64[2,4] i, float[2,4] u) => (y) { y = ScatterElements<reduction=\"", how,
                    "\">(x, i, u) }"),
                inputs, 1e-5, 18);
    same_as_cpu(
        cat("(float[4,3] x, int64[3,1] i, float[3,3] u) => (y) { y = ScatterND<reduction=\"", how, "\">(x, i, u) }"),
        slices, 1e-5, 18);
  }
}

TEST_CASE("many updates of one place are taken in order, each place by itself") {
  const OnDouble undo;
  std::mt19937 random(3);
  const Tensor index = Tensor::make(DType::Int64, {500, 1});
  for (std::int64_t& i : index.mutable_span<std::int64_t>()) i = static_cast<std::int64_t>(random() % 8) - 4;
  for (const char* how : {"add", "mul", "max"}) {
    same_as_cpu(cat("(float16[4,3] x, int64[500,1] i, float16[500,3] u) => (y) { y = ScatterND<reduction=\"", how,
                    "\">(x, i, u) }"),
                {numbers<Float16>({4, 3}), index, numbers<Float16>({500, 3}, 2)}, 0, 18);
  }
}

TEST_CASE("rows of a cache are written, each batch's at its own place") {
  const OnDouble undo;
  const Value cache = numbers({2, 2, 4, 3}), rows = numbers({2, 2, 2, 3}, 2);
  same_as_cpu("(float[2,2,4,3] x, float[2,2,2,3] u, int64[2] w) => (y) { y = TensorScatter(x, u, w) }",
              {cache, rows, Tensor::of<std::int64_t>({2}, {2, 0})}, 0, 24);
  same_as_cpu(
      "(float[2,2,4,3] x, float[2,2,2,3] u, int64[2] w) => (y) { y = TensorScatter<mode=\"circular\">(x, u, w) }",
      {cache, rows, Tensor::of<std::int64_t>({2}, {3, 1})}, 0, 24);
  same_as_cpu("(float[2,2,4,3] x, float[2,2,2,3] u) => (y) { y = TensorScatter(x, u) }", {cache, rows}, 0, 24);
}

TEST_CASE("one-hot vectors") {
  const OnDouble undo;
  for (const char* axis : {"-1", "0", "1"}) {
    same_as_cpu(cat("(int64[2,3] i, float[2] v) => (y) <int64 d = {4}> { y = OneHot<axis=", axis, ">(i, d, v) }"),
                {Tensor::of<std::int64_t>({2, 3}, {0, 3, -1, 4, 2, -5}), Tensor::of<float>({2}, {-1, 5})});
  }
}

TEST_CASE("elements are repeated") {
  const OnDouble undo;
  same_as_cpu("(float[2,3] x) => (y) <int64[2] r = {2, 3}> { y = Tile(x, r) }", {numbers({2, 3})});
  same_as_cpu("(float[2,1,3,2] x) => (y) <int64[4] r = {2, 2, 3, 2}> { y = Tile(x, r) }", {numbers({2, 1, 3, 2})});
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    same_as_cpu(cat("(float[3,4] x) => (y) <int64[4] p = {2, 1, 0, 3}> { y = Pad<mode=\"", mode, "\">(x, p) }"),
                {numbers({3, 4})}, 0, 19);
    same_as_cpu(cat("(float16[3,4] x) => (y) <int64[4] p = {1, -1, 2, 0}> { y = Pad<mode=\"", mode, "\">(x, p) }"),
                {numbers<Float16>({3, 4})}, 0, 19);
  }
}

TEST_CASE("blocks of pixels become channels, and back") {
  const OnDouble undo;
  same_as_cpu("(float[2,3,4,6] x) => (y) { y = SpaceToDepth<blocksize=2>(x) }", {numbers({2, 3, 4, 6})});
  for (const char* mode : {"DCR", "CRD"}) {
    same_as_cpu(cat("(float[2,8,2,3] x) => (y) { y = DepthToSpace<blocksize=2, mode=\"", mode, "\">(x) }"),
                {numbers({2, 8, 2, 3})});
  }
}

TEST_CASE("triangles, diagonals and sequences turned round") {
  const OnDouble undo;
  for (const char* k : {"0", "2", "-2", "4", "-9223372036854775808"}) {
    same_as_cpu(cat("(float[3,4] x) => (y) { y = EyeLike<k=", k, ">(x) }"), {numbers({3, 4})}, 0, 22);
    same_as_cpu(cat("(int64[4,3] x) => (y) { y = EyeLike<k=", k, ", dtype=10>(x) }"),
                {Tensor::make(DType::Int64, {4, 3})}, 0, 22);
  }
  for (const char* upper : {"0", "1"}) {
    same_as_cpu(cat("(float[2,3,4] x) => (y) <int64 k = {-1}> { y = Trilu<upper=", upper, ">(x, k) }"),
                {numbers({2, 3, 4})});
    same_as_cpu(cat("(float16[3,3] x) => (y) { y = Trilu<upper=", upper, ">(x) }"), {numbers<Float16>({3, 3})});
  }
  const Value lengths = Tensor::of<std::int64_t>({3}, {1, 4, 2});
  same_as_cpu("(float[4,3,2] x, int64[3] l) => (y) { y = ReverseSequence(x, l) }", {numbers({4, 3, 2}), lengths});
  same_as_cpu("(float[3,4] x, int64[3] l) => (y) { y = ReverseSequence<batch_axis=0, time_axis=1>(x, l) }",
              {numbers({3, 4}), lengths});
}
