// Loads that are cancelled after they began.
#include "session/loader.h"
#include "session_test.h"

using namespace infernode;
using namespace infernode::test;

TEST_CASE("a load that is cancelled while types are inferred looks at no other node") {
  constexpr int kNodes = 30;
  std::string outputs, nodes;
  for (int i = 0; i < kNodes; ++i) {
    outputs += cat(i == 0 ? "" : ", ", "float[3] y", i);
    nodes += cat("y", i, " = Sin(x)  ");
  }
  const std::vector<std::byte> bytes = model_bytes(cat("(float[2] x) => (", outputs, ") { ", nodes, " }"));
  // A warning for each output, which declares a shape that cannot be.
  const auto warnings_until = [&](int last) {
    int warnings = 0;
    kernel::CancelToken token;
    const Logger logger(LogSeverity::Warning, "", [&](LogSeverity, std::string_view, std::string_view) {
      if (++warnings == last) token.cancel();
    });
    const auto load = [&] { session::load_model(*engine(), source_of(bytes), {}, logger, &token, nullptr); };
    if (last == 0) {
      load();
    } else {
      CHECK(error_of(load).code() == ErrorCode::Aborted);
    }
    return warnings;
  };
  CHECK(warnings_until(0) >= kNodes);
  for (int last = 1; last < kNodes; last += 7) CHECK(warnings_until(last) == last);
}
