#include "graph/dim.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace infernode::graph;

namespace {
const Dim n = Dim::symbol("n"), m = Dim::symbol("m");

std::optional<int64_t> at(const Dim& d, int64_t n_value, int64_t m_value) {
  return d.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    if (name == "n") return n_value;
    if (name == "m") return m_value;
    return std::nullopt;
  });
}
}  // namespace

TEST_CASE("equal polynomials are equal however they were made") {
  CHECK(n * m == m * n);
  CHECK(n + 1 - 1 == n);
  CHECK((n + m) * (n - m) == n * n - m * m);
  CHECK(n - n == Dim(0));
  CHECK((n - n).known());
  CHECK(Dim::symbol("n") == n);
  CHECK_FALSE(n == m);
  CHECK_FALSE(n == Dim(3));
  CHECK(Dim(2) * 3 == Dim(6));
}

TEST_CASE("unknown dims equal themselves only") {
  const Dim a = Dim::unknown(), b = Dim::unknown();
  CHECK(a == a);
  CHECK_FALSE(a == b);
  CHECK(a - a == Dim(0));
  CHECK(a + b == b + a);
  CHECK_FALSE(at(a, 1, 1));
}

TEST_CASE("division rounds down and cancels what divides") {
  CHECK(floor_div(n * m * 4, m * 2) == n * 2);
  CHECK(floor_div((n + m) * n, n + m) == n);
  CHECK(floor_div(n * 3, 3) == n);
  CHECK(floor_div(n + 3, 2) == floor_div(n + 1, 2) + 1);
  CHECK(floor_div(floor_div(n, 2), 3) == floor_div(n, 6));
  CHECK(floor_div(floor_div(n - 1, 2) + 1, 2) == floor_div(n + 1, 4));
  CHECK(floor_div(Dim(-7), Dim(2)) == Dim(-4));
  CHECK(ceil_div(Dim(7), Dim(2)) == Dim(4));
  CHECK(ceil_div(n, 2) == floor_div(n + 1, 2));
  CHECK_FALSE(floor_div(n, 0).known());
  CHECK(floor_div(n, 1) == n);
  CHECK(floor_div(n, n) == Dim(1));
}

TEST_CASE("expressions evaluate like the integers they stand for") {
  for (int64_t x = 0; x < 7; ++x) {
    for (int64_t y = 1; y < 5; ++y) {
      CAPTURE(x);
      CAPTURE(y);
      CHECK(at(floor_div(n * 5 + m - 3, 4), x, y) == floor_div(Dim(x * 5 + y - 3), Dim(4)).value());
      CHECK(at(floor_div(n * n + 7, m), x, y) == (x * x + 7) / y);
      CHECK(at(ceil_div(n * 3, m), x, y) == (x * 3 + y - 1) / y);
      CHECK(at(ceil_div(n - 5, 3), x, y) == ceil_div(Dim(x - 5), Dim(3)).value());
      CHECK(at(min(n, max(m, 2)) * 2 + 1, x, y) == std::min(x, std::max(y, int64_t{2})) * 2 + 1);
      CHECK(at(floor_div(n, -2), x, y) == floor_div(Dim(x), Dim(-2)).value());
    }
  }
  CHECK_FALSE(Dim::symbol("other").evaluate([](std::string_view) { return std::optional<int64_t>(); }));
}

TEST_CASE("minimum and maximum use what is certain") {
  CHECK(max(n, 0) == n);
  CHECK(min(n, 0) == Dim(0));
  CHECK(min(n, INT64_MAX) == n);
  CHECK(min(n, n + 1) == n);
  CHECK(max(min(n, m), min(m, n)) == min(m, n));
  CHECK(min(n, min(m, n)) == min(n, m));
  CHECK(min(Dim(3), Dim(2)) == Dim(2));
  CHECK(max(n, min(n, 5)) == n);
  CHECK_FALSE(min(n, 5) == n);
  CHECK_FALSE(max(Dim::unknown(), 0).known());
}

TEST_CASE("overflow and runaway growth give unknown, not wrong, dims") {
  CHECK_FALSE((Dim(INT64_MAX) + 1).known());
  CHECK_FALSE((Dim(INT64_MAX) * 2).known());
  CHECK_FALSE((Dim(INT64_MIN) - 1).known());
  CHECK_FALSE(floor_div(Dim(INT64_MIN), Dim(-1)).known());
  CHECK(((n * INT64_MAX) * 2).to_string() == "?");
  Dim d = n;
  for (int i = 0; i < 200; ++i) d = max(d * d + m, floor_div(d, 3) + i);
  CHECK_FALSE(d.known());
  CHECK_FALSE(at(n * INT64_MAX, 2, 0));
}

TEST_CASE("minimums of maximums of minimums take little time, however deep") {
  Dim a = n, b = m;
  const auto nest = [](const Dim& d, std::string_view side, int depth) {
    const Dim other = Dim::symbol(std::string(side) + std::to_string(depth));
    return depth % 2 == 0 ? min(d, other) : max(d, other);
  };
  const auto begin = std::chrono::steady_clock::now();
  for (int depth = 0; depth < 64; ++depth) {
    a = nest(a, "left", depth);
    b = nest(b, "right", depth);
    CHECK_FALSE(min(a, b).known());
    CHECK_FALSE(max(a, b).known());
  }
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("text") {
  CHECK(n.to_string() == "n");
  CHECK(n.symbol_name() == "n");
  CHECK((n + 1).symbol_name().empty());
  CHECK((n * 2 + 1).to_string() == "2*n + 1");
  CHECK((m - n * 3 - 4).to_string() == "m - 3*n - 4");
  CHECK((Dim(0) - n).to_string() == "-n");
  CHECK(floor_div(n + 1, 2).to_string() == "floor((n + 1)/2)");
  CHECK(min(n, 5).to_string() == "min(5, n)");
  CHECK(Dim::unknown().to_string() == "?");
  CHECK(to_string(SymShape{1, n, n * m}) == "[1,n,m*n]");
}

TEST_CASE("shapes") {
  CHECK(numel({2, n, 3}) == n * 6);
  CHECK(to_known({2, 3})->numel() == 6);
  CHECK_FALSE(to_known({2, n}));
  CHECK(to_sym(infernode::tensor::Shape{4, 5}) == SymShape{4, 5});
}
