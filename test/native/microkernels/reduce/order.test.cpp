#include <numeric>

#include "microkernels/reduce/reduce.h"
#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

// What comes first of two floats where the greatest does; NaN is above all numbers.
bool before(float a, float b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

std::vector<float> specials() {
  return {std::nanf(""), -std::nanf(""), INFINITY, -INFINITY, 0.0f,  -0.0f, 1.0f,  -1.0f,   1e-45f,
          -1e-45f,       0x1p-126f,      3e38f,    -3e38f,    1.25f, 1.5f,  -1.5f, 1.0001f, 7.0f};
}

TEST_CASE("keys compare as the floats do, both ways") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    const std::vector<float> numbers = specials();
    for (std::size_t n = 0; n <= numbers.size(); ++n) {
      for (const bool largest : {false, true}) {
        Guarded<float> x(n);
        Guarded<std::int32_t> keys(n);
        std::copy_n(numbers.begin(), n, x.begin());
        table.order_keys(x.data(), keys.data(), n, largest);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i) {
          wrong += keys[i] == INT32_MIN ? 1 : 0;
          for (std::size_t j = 0; j < n; ++j)
            wrong += (keys[i] > keys[j]) != (largest ? before(x[i], x[j]) : before(x[j], x[i])) ? 1 : 0;
        }
        CHECK(wrong == 0);
      }
    }
  });
}

// Where the keys stand in order: the greatest first, the first of equal ones first.
std::vector<std::int32_t> sorted(const std::vector<std::int32_t>& keys) {
  std::vector<std::int32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return order;
}

TEST_CASE("ranks are places in the order, whatever is equal") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (std::size_t n = 0; n < 70; ++n) {
      CAPTURE(n);
      Guarded<std::int32_t> keys(n), ranks(n);
      Random random(n + 1);
      for (auto& key : keys) key = static_cast<std::int32_t>(random.bits() % 9) - 4;
      if (n > 2) keys[n / 2] = INT32_MIN, keys[n - 1] = INT32_MIN, keys[0] = INT32_MAX;
      table.ranks(keys.data(), n, ranks.data());
      const std::vector<std::int32_t> order = sorted({keys.begin(), keys.end()});
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) wrong += ranks[static_cast<std::size_t>(order[i])] != static_cast<int>(i);
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("the best of columns are the first in their order") {
  for_each_target([](CpuRung rung) {
    const ReduceTable& table = kernel_set(rung).reduce;
    for (std::size_t n = 1; n < 40; ++n) {
      Guarded<std::int32_t> keys(n * kOrderColumns);
      Random random(n);
      for (auto& key : keys) key = static_cast<std::int32_t>(random.bits() % 11) - 5;
      keys[0] = INT32_MIN + 1;
      for (std::size_t k = 1; k <= std::min(n, kMostBest); ++k) {
        Guarded<std::int32_t> indices(k * kOrderColumns);
        table.best(keys.data(), n, k, indices.data());
        std::size_t wrong = 0;
        for (std::size_t c = 0; c < kOrderColumns; ++c) {
          std::vector<std::int32_t> column;
          for (std::size_t i = 0; i < n; ++i) column.push_back(keys[i * kOrderColumns + c]);
          const std::vector<std::int32_t> order = sorted(column);
          for (std::size_t j = 0; j < k; ++j) wrong += indices[j * kOrderColumns + c] != order[j];
        }
        CAPTURE(n);
        CAPTURE(k);
        CHECK(wrong == 0);
      }
    }
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
