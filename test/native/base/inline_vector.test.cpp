#include "base/inline_vector.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using namespace infernode;
using Vector = InlineVector<int64_t, 4>;

TEST_CASE("an inline vector behaves as std::vector under random edits") {
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(random() % limit); };
  for (int round = 0; round < 50; ++round) {
    Vector ours;
    std::vector<int64_t> theirs;
    for (int64_t step = 0; step < 60; ++step) {
      const size_t at = below(theirs.size() + 1);
      switch (random() % 8) {
        case 0:
        case 1:
          ours.push_back(step);
          theirs.push_back(step);
          break;
        case 2:
          CHECK(*ours.insert(ours.begin() + at, step) == step);
          theirs.insert(theirs.begin() + static_cast<std::ptrdiff_t>(at), step);
          break;
        case 3: {
          const std::vector<int64_t> more(below(4), step);
          ours.insert(ours.begin() + at, more);
          theirs.insert(theirs.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
          break;
        }
        case 4:
          if (theirs.empty()) break;
          ours.erase(ours.begin() + at % theirs.size());
          theirs.erase(theirs.begin() + static_cast<std::ptrdiff_t>(at % theirs.size()));
          break;
        case 5: {
          const size_t last = at + below(theirs.size() - at + 1);
          ours.erase(ours.begin() + at, ours.begin() + last);
          theirs.erase(theirs.begin() + static_cast<std::ptrdiff_t>(at),
                       theirs.begin() + static_cast<std::ptrdiff_t>(last));
          break;
        }
        case 6: {
          const size_t size = below(9);
          ours.resize(size, step);
          theirs.resize(size, step);
          break;
        }
        default: {
          Vector copy = ours;
          Vector moved = std::move(ours);
          CHECK(ours.empty());  // NOLINT(bugprone-use-after-move): a moved-from vector is empty
          CHECK(copy == moved);
          ours = copy;
          ours = std::move(moved);
        }
      }
      REQUIRE(ours == std::span<const int64_t>(theirs));
    }
  }
}

TEST_CASE("an inline vector compares, converts and assigns") {
  Vector a{1, 2, 3};
  CHECK(a == Vector{1, 2, 3});
  CHECK(a != Vector{1, 2});
  CHECK(a == std::initializer_list<int64_t>{1, 2, 3});
  const std::span<const int64_t> view = a;
  CHECK(view.size() == 3);
  a.assign(view.subspan(1));
  CHECK(a == Vector{2, 3});
  a.assign(6, 9);
  CHECK(a.size() == 6);
  CHECK(a.back() == 9);
  const Vector& alias = a;
  a = alias;
  CHECK(a == Vector(6, 9));
  a.push_back(a.front());
  CHECK(a.size() == 7);
  CHECK(Vector(3) == Vector{0, 0, 0});
}
