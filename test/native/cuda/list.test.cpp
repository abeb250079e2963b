// docs/providers/cuda.md has the operators that there are lowerings of.

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "generated_table.h"
#include "providers/cuda/lowering/lowering.h"

using namespace infernode;

TEST_CASE("docs/providers/cuda.md lists every operator") {
  cuda::Lowerings lowerings;
  cuda::register_all(lowerings);
  std::map<std::string, std::set<std::string>> by_domain;
  for (const cuda::Lowering& lowering : lowerings) by_domain[lowering.domain].insert(lowering.op);
  std::string table = "| domain | operators |\n|---|---|\n";
  for (const auto& [domain, operators] : by_domain) {
    std::string names;
    for (const std::string& op : operators) names += cat(names.empty() ? "" : ", ", op);
    table += cat("| ", domain.empty() ? "ai.onnx" : domain, " | ", names, " |\n");
  }
  test::check_table("providers/cuda.md", "operators", table, "test_cuda");
}
