// docs/optimizer.md has the table of passes that the list of them is.
#include "passes/list.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "generated_table.h"

using namespace infernode;

TEST_CASE("docs/optimizer.md lists every pass in the order in which they run") {
  std::string table = "| Name | Level | What it does | Not where | File |\n|---|---|---|---|---|\n";
  for (const passes::Pass& pass : passes::listed_passes()) {
    const std::string not_where = pass.not_where;
    table += cat("| `", pass.name, "` | ", pass.level, " | ", pass.does, " | ", not_where, not_where.empty() ? "" : " ",
                 "| `", pass.file, "` |\n");
  }
  test::check_table_of_optimizer("passes", table, "test_passes");
}

TEST_CASE("every pass is named with the file that it stands in") {
  const std::filesystem::path folder = INFERNODE_TEST_FIXTURES "/../../src-native/passes";
  for (const passes::Pass& pass : passes::listed_passes()) {
    CAPTURE(pass.name);
    CHECK(std::filesystem::exists(folder / pass.file));
    CHECK(pass.level >= 1);
    CHECK(std::string(pass.does) != "");
  }
}
