// com.microsoft's GroupNorm and SkipGroupNorm: answers of their definition (test/fixtures/contrib-group-norm.txt,
// written by test/generators/contrib/group_norm.py).

#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
  GroupNorm | no pixels | 21 | 1e-05
  y0 = com.microsoft.GroupNorm<groups = 2, activation = 0>(x0, x1, x2)
  float[1,0,2,4] x0 = {}, float[4] x1 = {1, 2, 3, 4}, float[4] x2 = {0, 0, 0, 0}
  float[1,0,2,4] y0 = {}

  GroupNorm | rank 0 | 21 | 1e-05
  y0 = com.microsoft.GroupNorm<groups = 1, activation = 0>(x0, x1, x2)
  float x0 = {1}, float[1] x1 = {1}, float[1] x2 = {0}
  refused

  SkipGroupNorm | no images | 21 | 1e-05
  y0, y1 = com.microsoft.SkipGroupNorm<groups = 2, activation = 1, channels_last = 0>(x0, x1, x2, x3, x4)
  float[0,4,1,1] x0 = {}, float[4] x1 = {1, 2, 3, 4}, float[4] x2 = {0, 0, 0, 0}, float[0,4] x3 = {}, float[4] x4 = {0, 0, 0, 0}
  float[0,4,1,1] y0 = {}, float[0,4,1,1] y1 = {}

  SkipGroupNorm | rank 0 | 21 | 1e-05
  y0 = com.microsoft.SkipGroupNorm<groups = 1, activation = 0>(x0, x1, x2, x3)
  float[1,1,1,1] x0 = {1}, float[1] x1 = {1}, float[1] x2 = {0}, float x3 = {1}
  refused
)");

TEST_CASE("GroupNorm and SkipGroupNorm answer as their definition does") { check_cases("contrib-group-norm.txt", 20); }

TEST_CASE("GroupNorm refuses channels and images that do not fit") {
  const Tensor x = noise({1, 2, 2, 4}), c = noise({4});
  const char* plain = "groups = 2, activation = 0";
  const auto shape = ErrorCode::ShapeMismatch;
  refuses("GroupNorm", "groups = 3, activation = 0", {x, c, c}, shape, "4 channels do not divide into 3 groups", "Y");
  refuses("GroupNorm", "groups = 0, activation = 0", {x, c, c}, ErrorCode::InvalidModel, "groups is 0", "Y");
  refuses("GroupNorm", "groups = 2, activation = 2", {x, c, c}, ErrorCode::InvalidModel, "activation is 2", "Y");
  refuses("GroupNorm", "groups = 2", {x, c, c}, ErrorCode::InvalidModel, "activation", "Y");
  refuses("GroupNorm", plain, {x, noise({3}), c}, shape, "input 1", "Y");
  refuses("GroupNorm", plain, {noise({1, 2, 4}), c, c}, shape, "rank 4", "Y");
  refuses("SkipGroupNorm", plain, {x, c, c, noise({1, 1, 2, 4})}, shape, "skip", "Y");
  refuses("SkipGroupNorm", plain, {x, c, c, noise({2, 4})}, shape, "skip", "Y");
  refuses("SkipGroupNorm", plain, {x, c, c, x, noise({5})}, shape, "input 4", "Y");
}

}  // namespace
}  // namespace infernode::test
