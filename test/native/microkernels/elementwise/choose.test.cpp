#include <bit>

#include "microkernels/elementwise/elementwise.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

bool holds(Relation relation, float x, float y) {
  return relation == Relation::kEqual ? x == y : relation == Relation::kLess ? x < y : x <= y;
}

// Every length around the vectors', every side still or not: check(n, still_x, still_y).
template <typename Check>
void for_each_form(Check check) {
  for (std::size_t n = 0; n < 70; ++n) {
    for (const bool still_x : {false, true}) {
      for (const bool still_y : {false, true}) {
        CAPTURE(n);
        CAPTURE(still_x);
        CAPTURE(still_y);
        check(n, still_x, still_y);
      }
    }
  }
}

// Numbers of which many are equal, with NaN, infinities and zeros of both signs among them.
void fill_with_specials(Guarded<float>& x, Random& random) {
  const float specials[] = {std::nanf(""), INFINITY, -INFINITY, 0.0f, -0.0f, 1.0f, -1.0f, 2.0f};
  for (float& v : x) v = specials[random.bits() % std::size(specials)];
}

TEST_CASE("comparisons hold as in C, in every form") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    for_each_form([&](std::size_t n, bool still_x, bool still_y) {
      Guarded<float> x(still_x ? 1 : n), y(still_y ? 1 : n);
      Guarded<std::uint8_t> out(n);
      Random random(n + 1);
      fill_with_specials(x, random);
      fill_with_specials(y, random);
      for (std::size_t r = 0; r < static_cast<std::size_t>(Relation::kCount); ++r) {
        table.compare[r](x.data(), still_x, y.data(), still_y, out.data(), n);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i)
          wrong += out[i] != (holds(static_cast<Relation>(r), x[still_x ? 0 : i], y[still_y ? 0 : i]) ? 1 : 0);
        CHECK(wrong == 0);
      }
    });
  });
}

template <typename T>
void check_choose(ChooseLoop<T> loop) {
  for_each_form([&](std::size_t n, bool still_x, bool still_y) {
    Guarded<std::uint8_t> c(n);
    Guarded<T> x(still_x ? 1 : n), y(still_y ? 1 : n), out(n);
    Random random(n + 1);
    for (auto& v : c) v = static_cast<std::uint8_t>(random.bits() % 3 == 0 ? 0 : random.bits() % 256);
    for (auto& v : x) v = static_cast<T>(random.bits() * std::uint64_t{0x100000001});
    for (auto& v : y) v = static_cast<T>(random.bits() * std::uint64_t{0x100000001});
    loop(c.data(), x.data(), still_x, y.data(), still_y, out.data(), n);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) wrong += out[i] != (c[i] != 0 ? x[still_x ? 0 : i] : y[still_y ? 0 : i]);
    CHECK(wrong == 0);
  });
}

TEST_CASE("choices move whole elements of every size, in every form") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    check_choose(table.choose1);
    check_choose(table.choose2);
    check_choose(table.choose4);
    check_choose(table.choose8);
  });
}

// The same bits, or NaN both.
bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

TEST_CASE("remainders are those of fmod to the bit, of every magnitude") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    constexpr std::size_t kCount = 4096;
    Guarded<float> x(kCount), y(kCount), out(kCount);
    Random random(7);
    std::size_t wrong = 0;
    const auto check = [&] {
      table.remainder(x.data(), false, y.data(), false, out.data(), kCount);
      for (std::size_t i = 0; i < kCount; ++i) wrong += same(out[i], std::fmod(x[i], y[i])) ? 0 : 1;
    };
    for (int round = 0; round < 40; ++round) {
      for (float& v : x) v = std::bit_cast<float>(random.bits());  // NaN, infinities and denormals too
      for (float& v : y) v = std::bit_cast<float>(random.bits());
      check();
      for (std::size_t i = 0; i < kCount; ++i)
        x[i] = y[i] * static_cast<float>(random.bits() % 100000);  // rests near 0
      check();
      for (std::size_t i = 0; i < kCount; ++i) x[i] = std::nextafter(x[i], round % 2 == 0 ? 0.0f : INFINITY);
      check();
      for (std::size_t i = 0; i < kCount; ++i) x[i] = y[i] * random.uniform(-1e8f, 1e8f);  // about the quick limit
      check();
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("remainders in every form and in place, with the numbers that have none") {
  for_each_target([](CpuRung rung) {
    const ElementwiseTable& table = kernel_set(rung).elementwise;
    for_each_form([&](std::size_t n, bool still_x, bool still_y) {
      Guarded<float> x(still_x ? 1 : n), y(still_y ? 1 : n), out(n);
      Random random(n + 1);
      fill_with_specials(x, random);
      fill_with_specials(y, random);
      table.remainder(x.data(), still_x, y.data(), still_y, out.data(), n);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i)
        wrong += same(out[i], std::fmod(x[still_x ? 0 : i], y[still_y ? 0 : i])) ? 0 : 1;
      CHECK(wrong == 0);
      if (still_x) return;
      table.remainder(x.data(), false, y.data(), still_y, x.data(), n);
      for (std::size_t i = 0; i < n; ++i) wrong += same(out[i], x[i]) ? 0 : 1;
      CHECK(wrong == 0);
    });
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
