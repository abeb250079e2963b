#include "passes/transposes/min_cut.h"

#include <doctest/doctest.h>

using infernode::passes::transposes::MinCut;

namespace {

/// source -> chain of so many vertices -> sink, cheapest in the middle.
MinCut chain(std::size_t length) {
  MinCut cut;
  std::size_t before = MinCut::kSource;
  for (std::size_t i = 0; i < length; ++i) {
    const std::size_t vertex = cut.add_vertex();
    cut.add_arc(before, vertex, i == length / 2 ? 1 : 5);
    before = vertex;
  }
  cut.add_arc(before, MinCut::kSink, 5);
  return cut;
}

}  // namespace

TEST_CASE("the cheapest cut is found") {
  std::size_t budget = 1000;
  const std::vector<bool> side = chain(10).solve(budget);
  REQUIRE(side.size() == 12);
  for (std::size_t i = 0; i < 10; ++i) CHECK(side[2 + i] == (i < 5));
  CHECK(budget > 0);
  CHECK(budget < 1000);
}

TEST_CASE("a cut that takes more looks than there may be is none") {
  std::size_t budget = 10;
  CHECK(chain(100).solve(budget).empty());
  CHECK(budget == 0);
}
