#include "fusions/graph_test.h"

using namespace infernode;
using namespace infernode::test;

namespace {
std::string text(const char* x, const char* six, const char* perm, const char* four) {
  return cat("(float[", x, "] x) => (y) <int64[6] a = {", six, "}, int64[4] b = {", four,
             "}> { r = Reshape(x, a)  t = Transpose<perm = [", perm, "]>(r)  y = Reshape(t, b) }");
}
}  // namespace

TEST_CASE("channels spread over blocks of pixels, and back") {
  check_optimized(text("2,12,4,5", "2,2,2,3,4,5", "0,3,4,1,5,2", "2,3,8,10"), 1,
                  "y = DepthToSpace <blocksize = 2, mode = \"DCR\"> (x)");
  check_optimized(text("2,12,4,5", "2,3,2,2,4,5", "0,1,4,2,5,3", "2,3,8,10"), 1,
                  "y = DepthToSpace <blocksize = 2, mode = \"CRD\"> (x)");
  check_optimized(text("2,3,8,10", "2,3,4,2,5,2", "0,3,5,1,2,4", "2,12,4,5"), 1,
                  "y = SpaceToDepth <blocksize = 2> (x)");
}

TEST_CASE("blocks that are no squares, and other orders, stay") {
  check_unchanged(text("2,12,4,5", "2,1,4,3,4,5", "0,3,4,1,5,2", "2,3,4,20"), 1);
  check_unchanged(text("2,12,4,5", "2,2,2,3,4,5", "0,3,4,2,5,1", "2,3,8,10"), 1);
}
