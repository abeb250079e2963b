#include "microkernels/attention/attention.h"

#include <cstring>

#include "microkernels/support.h"

namespace infernode::microkernels::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> powers(const PowerTable& table, const std::vector<float>& x, float& sum, float scale = 1) {
  Guarded<float> in(x.size());
  Guarded<std::uint16_t> out(x.size());
  std::copy(x.begin(), x.end(), in.data());
  sum = table.powers(in.data(), out.data(), x.size(), scale);
  // In place, too.
  const float again = table.powers(in.data(), reinterpret_cast<std::uint16_t*>(in.data()), x.size(), scale);
  CHECK((again == sum || (std::isnan(again) && std::isnan(sum))));
  CHECK(std::memcmp(in.data(), out.data(), x.size() * sizeof(std::uint16_t)) == 0);
  std::vector<float> made;
  for (const std::uint16_t bits : out) made.push_back(static_cast<float>(BFloat16::from_bits(bits)));
  return made;
}

struct Case {
  std::size_t rows, keys, head, v_head;
  bool mask = false, causal = false, apart = false;  // apart: rows of queries and results do not follow each other
};

// Rows of the definition.
std::vector<double> attention(const Case& c, const std::vector<float>& q, const std::vector<float>& k,
                              const std::vector<float>& v, const std::vector<float>& mask, double scale) {
  std::vector<double> y(c.rows * c.v_head);
  for (std::size_t r = 0; r < c.rows; ++r) {
    const std::size_t n = c.causal ? std::min(c.keys, r + 3) : c.keys;
    std::vector<double> scores(n);
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < c.head; ++i)
        scores[j] += scale * static_cast<double>(q[r * c.head + i]) * static_cast<double>(k[j * c.head + i]);
      if (c.mask) scores[j] += static_cast<double>(mask[r * c.keys + j]);
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    for (double& score : scores) sum += score = std::exp(score - most);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = 0; i < c.v_head; ++i)
        y[r * c.v_head + i] += scores[j] / sum * static_cast<double>(v[j * c.v_head + i]);
    }
  }
  return y;
}

// What a table makes of operands that end at unreadable pages.
class Strip {
 public:
  Strip(const AttentionTable& table, const Case& c)
      : table_(table),
        c_(c),
        ld_(c.apart ? c.head + 5 : c.head),
        ldy_(c.apart ? c.v_head + 3 : c.v_head),
        q_((c.rows - 1) * ld_ + c.head),
        k_(c.keys * c.head),
        v_(c.keys * c.v_head),
        mask_(c.rows * c.keys),
        y_((c.rows - 1) * ldy_ + c.v_head) {}

  bool run(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
           const std::vector<float>& mask, float scale, std::vector<float>& y, std::size_t rows_at_once) {
    for (std::size_t r = 0; r < c_.rows; ++r) std::copy_n(q.data() + r * c_.head, c_.head, q_.data() + r * ld_);
    std::copy(k.begin(), k.end(), k_.data());
    std::copy(v.begin(), v.end(), v_.data());
    std::copy(mask.begin(), mask.end(), mask_.data());
    Scratch<float> keys(table_.keys_floats(c_.keys, c_.head)), values(table_.values_stride(c_.v_head) * c_.keys);
    Scratch<float> scores(table_.scores_floats(rows_at_once, c_.keys));
    table_.pack_keys(k_.data(), c_.head, c_.keys, c_.head, keys.data());
    table_.pack_values(v_.data(), c_.v_head, c_.keys, c_.v_head, values.data());
    bool finite = true;
    for (std::size_t r = 0; r < c_.rows; r += rows_at_once) {
      const std::size_t rows = std::min(rows_at_once, c_.rows - r);
      finite &= table_.attend({.rows = rows,
                               .keys = c_.causal ? std::min(c_.keys, r + rows + 2) : c_.keys,
                               .head = c_.head,
                               .v_head = c_.v_head,
                               .q = q_.data() + r * ld_,
                               .ldq = ld_,
                               .k = keys.data(),
                               .v = values.data(),
                               .ldv = table_.values_stride(c_.v_head),
                               .scale = scale,
                               .mask = c_.mask ? mask_.data() + r * c_.keys : nullptr,
                               .ld_mask = c_.keys,
                               .causal = c_.causal,
                               .first_keys = r + 3,
                               .scores = scores.data(),
                               .y = y_.data() + r * ldy_,
                               .ldy = ldy_});
    }
    y.clear();
    for (std::size_t r = 0; r < c_.rows; ++r) y.insert(y.end(), y_.data() + r * ldy_, y_.data() + r * ldy_ + c_.v_head);
    return finite;
  }

 private:
  const AttentionTable& table_;
  Case c_;
  std::size_t ld_, ldy_;
  Guarded<float> q_, k_, v_, mask_, y_;
};

std::vector<float> random_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  Random(seed).fill(x);
  return x;
}

TEST_CASE("strips of attention agree with the definition, however rows are cut") {
  for_each_target([](CpuRung rung) {
    const AttentionTable& table = attention_table(rung);
    for (const Case& c : {Case{1, 1, 1, 1}, Case{3, 7, 5, 9}, Case{12, 32, 16, 16}, Case{13, 33, 20, 24, true},
                          Case{7, 100, 64, 40, false, true}, Case{29, 65, 33, 72, true, false, true},
                          Case{50, 50, 24, 80, false, true, true}, Case{19, 128, 8, 33, true, true},
                          Case{5, 1600, 12, 17}, Case{140, 31, 10, 3, false, true}}) {
      CAPTURE(c.rows);
      CAPTURE(c.keys);
      const std::vector<float> q = random_numbers(c.rows * c.head, 1), k = random_numbers(c.keys * c.head, 2),
                               v = random_numbers(c.keys * c.v_head, 3);
      std::vector<float> mask = random_numbers(c.rows * c.keys, 4);
      if (c.keys > 3) mask[2] = mask[c.keys + 3] = -kInfinity;
      const float scale = 0.7f;
      const std::vector<double> expected = attention(c, q, k, v, mask, scale);
      std::vector<float> y, again;
      CHECK(Strip(table, c).run(q, k, v, mask, scale, y, c.rows));
      double worst = 0;
      for (std::size_t i = 0; i < y.size(); ++i)
        worst = std::max(worst, std::abs(expected[i] - static_cast<double>(y[i])));
      CHECK(worst < 3e-6);
      for (const std::size_t rows : {1u, 5u, 12u}) {
        CHECK(Strip(table, c).run(q, k, v, mask, scale, again, rows));
        CHECK(std::memcmp(y.data(), again.data(), y.size() * sizeof(float)) == 0);
      }
    }
  });
}

TEST_CASE("strips of attention say where a result is not finite") {
  for_each_target([](CpuRung rung) {
    const AttentionTable& table = attention_table(rung);
    const Case c{14, 40, 9, 21, true};
    const std::vector<float> q = random_numbers(c.rows * c.head, 1), k = random_numbers(c.keys * c.head, 2),
                             v = random_numbers(c.keys * c.v_head, 3), mask(c.rows * c.keys);
    std::vector<float> y, odd = mask;
    CHECK(Strip(table, c).run(q, k, v, mask, 1, y, c.rows));
    std::fill_n(odd.begin() + 5 * static_cast<std::ptrdiff_t>(c.keys), c.keys, -kInfinity);
    CHECK(!Strip(table, c).run(q, k, v, odd, 1, y, c.rows));
    for (const float bad : {kInfinity, std::nanf("")}) {
      odd = mask;
      odd[3 * c.keys + 39] = bad;
      CHECK(!Strip(table, c).run(q, k, v, odd, 1, y, c.rows));
      odd = v;
      odd[c.v_head * 7 + 20] = bad;
      CHECK(!Strip(table, c).run(q, k, odd, mask, 1, y, c.rows));
      odd = k;
      odd[c.head * 39] = bad;
      CHECK(!Strip(table, c).run(q, odd, v, mask, 1, y, c.rows));
    }
  });
}

TEST_CASE("powers for products of bfloat16 agree with exp") {
  for_each_bfloat16_target([](CpuRung rung) {
    CHECK(kernel_set(rung, Float32Precision::kHighest).powers == nullptr);
    CHECK(kernel_set(rung, Float32Precision::kHigh).powers == nullptr);
    const PowerTable* const table = kernel_set(rung, Float32Precision::kMedium).powers;
    REQUIRE(table != nullptr);
    for (const std::size_t n : {1u, 2u, 15u, 16u, 17u, 63u, 64u, 65u, 200u, 1500u}) {
      CAPTURE(n);
      std::vector<float> x(n);
      Random(n).fill(x);
      for (float& v : x) v *= 12;
      if (n > 20) x[3] = -kInfinity, x[19] = -1e30f, x[n - 1] = -150;
      float sum = 0;
      const float scale = n % 2 == 0 ? 0.125f : 1.0f;
      const std::vector<float> made = powers(*table, x, sum, scale);
      const double most = *std::max_element(x.begin(), x.end());
      double total = 0, worst = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double power = std::exp(scale * (static_cast<double>(x[i]) - most));
        total += power;
        worst = std::max(worst, std::abs(made[i] - power) / (power + 1e-37));
      }
      CHECK(worst < 0x1p-8 + 2e-4);
      CHECK(std::abs(sum / total - 1) < 2e-4);
    }
  });
}

TEST_CASE("powers of rows with infinities and NaN") {
  for_each_bfloat16_target([](CpuRung rung) {
    const PowerTable& table = *kernel_set(rung, Float32Precision::kMedium).powers;
    float sum = 0;
    std::vector<float> x(70, 1.0f);
    x[40] = -kInfinity;
    CHECK(powers(table, x, sum)[40] == 0);
    CHECK(sum == doctest::Approx(69).epsilon(2e-4));
    x[40] = std::nanf("");
    CHECK(std::isnan(powers(table, x, sum)[40]));
    CHECK(std::isnan(sum));
    x[40] = kInfinity;
    powers(table, x, sum);
    CHECK(std::isnan(sum));
    powers(table, std::vector<float>(33, -kInfinity), sum);
    CHECK(std::isnan(sum));
    x.assign(20, 3e38f);
    CHECK(powers(table, x, sum)[7] == doctest::Approx(1).epsilon(0.004));
  });
}

}  // namespace
}  // namespace infernode::microkernels::test
