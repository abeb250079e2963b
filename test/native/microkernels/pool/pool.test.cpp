#include "microkernels/pool/pool.h"

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

struct Reference {
  double greatest = -INFINITY, sum = 0;
  std::size_t inside = 0, with_pads = 0;
};

Reference window(const PoolShape& s, const float* x, std::size_t oh, std::size_t ow) {
  Reference r;
  for (std::size_t i = 0; i < s.kernel_h; ++i) {
    for (std::size_t j = 0; j < s.kernel_w; ++j) {
      const auto h = static_cast<std::ptrdiff_t>(oh * s.stride_h + i * s.dilation_h) - s.pad_top;
      const auto w = static_cast<std::ptrdiff_t>(ow * s.stride_w + j * s.dilation_w) - s.pad_left;
      const auto in_h = static_cast<std::ptrdiff_t>(s.in_h), in_w = static_cast<std::ptrdiff_t>(s.in_w);
      if (h < in_h + s.pad_bottom && w < in_w + s.pad_right) ++r.with_pads;
      if (h < 0 || h >= in_h || w < 0 || w >= in_w) continue;
      const float v = x[static_cast<std::size_t>(h) * s.in_w + static_cast<std::size_t>(w)];
      r.greatest = std::isnan(v) || std::isnan(r.greatest) ? std::nan("") : std::max<double>(r.greatest, v);
      r.sum += v;
      ++r.inside;
    }
  }
  return r;
}

const PoolShape kShapes[] = {
    {14, 14, 7, 7, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0},     {112, 113, 56, 57, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
    {13, 40, 13, 40, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},   {10, 35, 8, 12, 3, 3, 1, 3, 1, 1, 0, 1, 0, 1},
    {9, 30, 5, 26, 3, 3, 1, 1, 2, 2, 0, 0, 0, 0},     {7, 7, 4, 4, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0},  // ceil mode
    {1, 9000, 1, 4500, 1, 3, 1, 2, 1, 1, 0, 1, 0, 1}, {3, 9000, 1, 1, 3, 9000, 1, 1, 1, 1, 0, 0, 0, 0},
    {57, 14, 57, 14, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   {56, 57, 9, 9, 7, 7, 7, 7, 1, 1, 3, 3, 3, 3},
    {19, 47, 7, 12, 4, 5, 3, 4, 1, 2, 1, 3, 2, 4},    {2, 4000, 1, 3998, 2, 3, 1, 1, 1, 1, 0, 0, 0, 0},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},       {5, 5, 6, 6, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1},
};

TEST_CASE("max and average pooling agree with the definition") {
  for_each_target([](CpuRung rung) {
    const PoolTable& table = kernel_set(rung).pool;
    std::size_t index = 0;
    for (const PoolShape& s : kShapes) {
      CAPTURE(index);
      ++index;
      Guarded<float> x(s.in_h * s.in_w), greatest(s.out_h * s.out_w), mean(greatest.size()), mean_pads(greatest.size());
      Random random(index);
      random.fill(x);
      table.max(s, x.data(), greatest.data());
      table.average(s, false, x.data(), mean.data());
      table.average(s, true, x.data(), mean_pads.data());
      double worst = 0;
      for (std::size_t h = 0; h < s.out_h; ++h) {
        for (std::size_t w = 0; w < s.out_w; ++w) {
          const Reference r = window(s, x.data(), h, w);
          const std::size_t at = h * s.out_w + w;
          worst = std::max({worst, std::abs(greatest[at] - r.greatest),
                            std::abs(mean[at] - r.sum / static_cast<double>(r.inside)),
                            std::abs(mean_pads[at] - r.sum / static_cast<double>(r.with_pads))});
        }
      }
      CHECK(worst < 1e-5);
    }
  });
}

TEST_CASE("max pooling of places gives what it gives of each plane") {
  for_each_target([](CpuRung rung) {
    const PoolTable& table = kernel_set(rung).pool;
    std::size_t index = 0;
    for (const PoolShape& s : kShapes) {
      CAPTURE(index);
      ++index;
      const std::size_t in = s.in_h * s.in_w, out = s.out_h * s.out_w;
      std::vector<float> planes(in * kPlace), expected(out * kPlace);
      Random random(index);
      random.fill(planes);
      for (float& x : planes) x = rounded(x);
      planes[planes.size() / 2] = std::nanf("");
      planes[planes.size() / 3] = -INFINITY;
      Guarded<float> x(planes.size()), y(expected.size());
      Guarded<std::uint16_t> x16(x.size()), y16(y.size());
      for (std::size_t c = 0; c < kPlace; ++c) {
        table.max(s, planes.data() + c * in, expected.data() + c * out);
        for (std::size_t i = 0; i < in; ++i) {
          x[i * kPlace + c] = planes[c * in + i];
          x16[i * kPlace + c] = BFloat16(planes[c * in + i]).bits;
        }
      }
      table.max_places(s, x.data(), y.data());
      table.max_places_bf16(s, x16.data(), y16.data());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < out * kPlace; ++i) {
        const float value = expected[i % kPlace * out + i / kPlace];
        const auto narrow = static_cast<float>(BFloat16::from_bits(y16[i]));
        const bool right =
            std::isnan(value) ? std::isnan(y[i]) && std::isnan(narrow) : y[i] == value && narrow == value;
        wrong += right ? 0 : 1;
      }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("a NaN wins every maximum whose window holds it") {
  for_each_target([](CpuRung rung) {
    const PoolShape s = kShapes[2];
    std::vector<float> x(s.in_h * s.in_w, 1.0f), y(s.out_h * s.out_w);
    x[5 * s.in_w + 20] = std::nanf("");
    kernel_set(rung).pool.max(s, x.data(), y.data());
    std::size_t wrong = 0;
    for (std::size_t h = 0; h < s.out_h; ++h) {
      for (std::size_t w = 0; w < s.out_w; ++w) {
        wrong += std::isnan(y[h * s.out_w + w]) != std::isnan(window(s, x.data(), h, w).greatest);
      }
    }
    CHECK(wrong == 0);
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
