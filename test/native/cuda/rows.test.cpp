// Which elements of rows come first, normalization over groups, and images of other sizes.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("where the largest and the smallest stand") {
  const OnDouble undo;
  for (const char* op : {"ArgMax", "ArgMin"}) {
    for (const char* how : {"axis=1", "axis=0, keepdims=0", "axis=2, select_last_index=1"}) {
      same_as_cpu(cat("(float[2,40,3] x) => (y) { y = ", op, "<", how, ">(x) }"), {numbers({2, 40, 3})});
      same_as_cpu(cat("(int64[2,40,3] x) => (y) { y = ", op, "<", how, ">(x) }"),
                  {Tensor::of<std::int64_t>({2, 40, 3}, std::vector<std::int64_t>(240, INT64_MAX))});
    }
    same_as_cpu(cat("(float[3,1500] x) => (y) { y = ", op, "<axis=1>(x) }"), {numbers({3, 1500})});
  }
  same_as_cpu("(float[2,5,3] x) => (y) { y = Hardmax<axis=1>(x) }", {numbers({2, 5, 3})});
}

TEST_CASE("the first k") {
  const OnDouble undo;
  for (const char* how : {"axis=1", "axis=1, largest=0", "axis=0", "axis=1, sorted=0"}) {
    same_as_cpu(cat("(float[7,50,2] x) => (v, i) <int64[1] k = {5}> { v, i = TopK<", how, ">(x, k) }"),
                {numbers({7, 50, 2})});
    same_as_cpu(cat("(int64[7,9] x) => (v, i) <int64[1] k = {3}> { v, i = TopK<", how, ">(x, k) }"),
                {Tensor::of<std::int64_t>({7, 9}, std::vector<std::int64_t>(63, -4))});
  }
  same_as_cpu("(float16[3,40] x) => (v, i) <int64[1] k = {40}> { v, i = TopK(x, k) }", {numbers<Float16>({3, 40})});
}

TEST_CASE("groups of channels are normalized") {
  const OnDouble undo;
  const std::vector<Value> inputs{numbers({2, 6, 3, 5}), numbers({6}, 2), numbers({6}, 3)};
  same_as_cpu("(float[2,6,3,5] x, float[6] s, float[6] b) => (y) { y = InstanceNormalization(x, s, b) }", inputs, 1e-4);
  same_as_cpu(
      "(float[2,6,3,5] x, float[6] s, float[6] b) => (y) { r = MaxPool<kernel_shape=[1,1]>(x)  y = "
      "InstanceNormalization(r, s, b) }",
      inputs, 1e-4);
  same_as_cpu("(float[2,6,3,5] x, float[6] s, float[6] b) => (y) { y = GroupNormalization<num_groups=2>(x, s, b) }",
              inputs, 1e-4, 21);
  same_as_cpu(
      "(float[2,3,5,6] x, float[6] s, float[6] b, float[2,1,1,6] z, float[6] a) => (y, t) { y, t = "
      "com.microsoft.SkipGroupNorm<groups=3, activation=1>(x, s, b, z, a) }",
      {numbers({2, 3, 5, 6}), inputs[1], inputs[2], numbers({2, 1, 1, 6}, 4), numbers({6}, 5)}, 1e-4);
  same_as_cpu("(float[2,3,4,5] x) => (y) { y = MeanVarianceNormalization(x) }", {numbers({2, 3, 4, 5})}, 1e-4);
  same_as_cpu("(float[2,5,3] x) => (y) { y = LpNormalization<axis=1>(x) }", {numbers({2, 5, 3})}, 1e-4);
  same_as_cpu("(float[2,5,3] x) => (y) { y = LpNormalization<p=1>(x) }", {numbers({2, 5, 3})}, 1e-4);
  same_as_cpu("(float[2,7,3] x) => (y) { y = LRN<size=4, alpha=0.5>(x) }", {numbers({2, 7, 3})}, 1e-4);
}

TEST_CASE("images of other sizes") {
  const OnDouble undo;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* places : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      const std::string how = cat("<mode=\"", mode, "\", coordinate_transformation_mode=\"", places, "\">");
      same_as_cpu(cat("(float[1,2,4,6] x) => (y) <float[4] s = {1, 1, 2, 0.5}> { y = Resize", how, "(x, , s) }"),
                  {numbers({1, 2, 4, 6})}, 1e-4);
      same_as_cpu(cat("(float[1,2,4,6] x) => (y) <int64[4] s = {1, 2, 7, 9}> { y = Resize", how, "(x, , , s) }"),
                  {numbers({1, 2, 4, 6})}, 1e-4);
    }
  }
  same_as_cpu(
      "(float[1,2,8,6] x) => (y) <int64[4] s = {1, 2, 3, 5}> { y = Resize<mode=\"linear\", antialias=1>(x, , , s) }",
      {numbers({1, 2, 8, 6})}, 1e-4, 18);
  same_as_cpu("(float[1,2,4,6] x) => (y) <float[4] s = {1, 1, 2, 3}> { y = Upsample(x, s) }", {numbers({1, 2, 4, 6})},
              0, 9);
}

TEST_CASE("transposed convolutions") {
  const OnDouble undo;
  std::string weights;
  for (int i = 0; i < 4 * 3 * 2 * 3; ++i) weights += cat(i == 0 ? "" : ", ", i % 7 - 3);
  for (const char* how : {"strides=[2,1]", "pads=[1,0,0,1], dilations=[1,2]", "output_padding=[1,0], strides=[2,2]",
                          "auto_pad=\"SAME_UPPER\", strides=[2,2]", "output_shape=[9,14], strides=[2,2]"}) {
    same_as_cpu(cat("(float[2,4,4,5] x, float[3] b) => (y) <float[4,3,2,3] w = {", weights, "}> { y = ConvTranspose<",
                    how, ">(x, w, b) }"),
                {numbers({2, 4, 4, 5}), numbers({3}, 3)}, 1e-4);
    same_as_cpu(cat("(float[2,4,4,5] x) => (y) <float[4,3,2,3] w = {", weights, "}> { y = ConvTranspose<group=2, ", how,
                    ">(x, w) }"),
                {numbers({2, 4, 4, 5})}, 1e-4);
  }
}
