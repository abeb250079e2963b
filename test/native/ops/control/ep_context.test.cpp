#include "ops/written_cases.h"

namespace infernode::test {
namespace {

const EdgeCases edges(R"(
  EPContext | no elements | 21 | 1e-05
  y0 = com.microsoft.EPContext<main_context = 1, embed_mode = 0, ep_cache_context = "part.bin", source = "QNN">(x0)
  float[0] x0 = {}
  unsupported

  EPContext | rank 0 | 21 | 1e-05
  y0 = com.microsoft.EPContext<>(x0)
  float x0 = {1}
  unsupported
)");

TEST_CASE("EPContext says whose it is and that nobody here runs it") {
  refuses("EPContext", "source = \"QNN\", partition_name = \"part 1\"", {noise({1})}, ErrorCode::UnsupportedOperator,
          "'QNN', of partition 'part 1'; no provider here runs it", "Y");
  refuses("EPContext", "main_context = 0", {noise({1}), i64({1}, {2})}, ErrorCode::UnsupportedOperator,
          "without its name", "Y, Z");
}

}  // namespace
}  // namespace infernode::test
