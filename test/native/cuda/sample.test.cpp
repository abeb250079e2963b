// Images read at places that data names, and rows of tables.

#include "cuda_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("images are sampled by a grid") {
  const OnDouble undo;
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const char* align : {"0", "1"}) {
      for (const char* mode : {"nearest", "linear", "cubic"}) {
        const std::string how = cat("<mode=\"", mode, "\", padding_mode=\"", padding, "\", align_corners=", align, ">");
        same_as_cpu(cat("(float[2,3,5,4] x, float[2,3,2,2] g) => (y) { y = GridSample", how, "(x, g) }"),
                    {numbers({2, 3, 5, 4}), numbers({2, 3, 2, 2}, 2)}, 1e-3, 20);
      }
      same_as_cpu(cat("(float[1,2,3,4,2] x, float[1,2,2,3,3] g) => (y) { y = GridSample<padding_mode=\"", padding,
                      "\", align_corners=", align, ">(x, g) }"),
                  {numbers({1, 2, 3, 4, 2}), numbers({1, 2, 2, 3, 3}, 2)}, 1e-3, 20);
    }
  }
  same_as_cpu("(float16[1,2,3,4] x, float[1,2,2,2] g) => (y) { y = GridSample<mode=\"nearest\">(x, g) }",
              {numbers<Float16>({1, 2, 3, 4}), numbers({1, 2, 2, 2}, 2)}, 0, 20);
  same_as_cpu("(float[1,2,3,4] x, float[1,2,2,2] g) => (y) { y = com.microsoft.GridSample(x, g) }",
              {numbers({1, 2, 3, 4}), numbers({1, 2, 2, 2}, 2)}, 1e-3);
}

TEST_CASE("regions of images are pooled to one size") {
  const OnDouble undo;
  const Value x = numbers({2, 3, 8, 9}), batches = Tensor::of<std::int64_t>({3}, {1, 0, 1}),
              regions = Tensor::of<float>({3, 4}, {0.5f, 1, 6, 7, -3, -2, 4, 5, 2, 2, 2, 2});
  for (const char* how : {"", ", mode=\"max\"", ", sampling_ratio=2", ", spatial_scale=0.5"}) {
    for (const char* coordinates : {"half_pixel", "output_half_pixel"}) {
      same_as_cpu(cat("(float[2,3,8,9] x, float[3,4] r, int64[3] i) => (y) { y = RoiAlign<output_height=3, "
                      "output_width=2, coordinate_transformation_mode=\"",
                      coordinates, "\"", how, ">(x, r, i) }"),
                  {x, regions, batches}, 1e-4, 16);
    }
  }
}

TEST_CASE("rows of tables are added and normalized") {
  const OnDouble undo;
  const Value ids = Tensor::of<std::int32_t>({2, 3}, {4, 0, 2, 1, 1, 3}), words = numbers({5, 8}),
              places = numbers({4, 8}, 2), segments = numbers({2, 8}, 3), scale = numbers({8}, 4),
              bias = numbers({8}, 5);
  const char* tables = "float[5,8] w, float[4,8] p, float[2,8] t, float[8] g, float[8] b";
  same_as_cpu(
      cat("(int32[2,3] i, int32[2,3] s, ", tables,
          ", int32[2,3] m) => (y, n, e) { y, n, e = com.microsoft.EmbedLayerNormalization(i, s, w, p, t, g, b, m) }"),
      {ids, Tensor::of<std::int32_t>({2, 3}, {0, 1, 1, 0, 0, 1}), words, places, segments, scale, bias,
       Tensor::of<std::int32_t>({2, 3}, {1, 1, 0, 7, 0, 0})},
      1e-4);
  same_as_cpu(
      "(int32[2,3] i, float[5,8] w, float[4,8] p, float[8] g, float[8] b, int32[1,3] o) => (y) {"
      " y = com.microsoft.EmbedLayerNormalization<epsilon=0.01>(i, , w, p, , g, b, , o) }",
      {ids, words, places, scale, bias, Tensor::of<std::int32_t>({1, 3}, {3, 1, 0})}, 1e-4);
  same_as_cpu(
      "(int32[2,3] i, float[5,8] w, float[4,8] p, float[8] g, float[8] b) => (y, n) {"
      " y, n = com.microsoft.EmbedLayerNormalization<mask_index_type=0>(i, , w, p, , g, b) }",
      {ids, words, places, scale, bias}, 1e-4);
}
