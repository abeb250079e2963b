// docs/optimizer.md has the table of fusions that their files describe.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "fusions/fusion.h"
#include "fusions/graph_test.h"
#include "generated_table.h"

using namespace infernode;

namespace {

/// Path below src-native/fusions/.
std::string file_of(const fusions::FusionDescription& description) {
  const std::string path = description.file, folder = "src-native/fusions/";
  const std::size_t at = path.rfind(folder);
  return at == std::string::npos ? path : path.substr(at + folder.size());
}

}  // namespace

TEST_CASE("docs/optimizer.md lists every fusion, once for each name") {
  fusions::FusionRegistry registry(test::registry());
  fusions::register_all(registry);
  std::map<std::string, std::set<int>> levels;
  for (const fusions::Fusion& fusion : registry.fusions()) levels[fusion.name].insert(fusion.level);
  std::set<std::string> described;
  std::vector<std::string> rows;
  for (const fusions::FusionDescription& description : registry.descriptions()) {
    std::string names, of;
    for (const std::string name : description.names) {
      CAPTURE(name);
      CHECK(levels.contains(name));
      CHECK_MESSAGE(described.insert(name).second, "a fusion is described twice");
      names += cat(names.empty() ? "" : ", ", "`", name, "`");
      for (const int level : levels[name]) {
        if (of.find(std::to_string(level)) == std::string::npos) of += cat(of.empty() ? "" : ", ", level);
      }
    }
    const std::string not_where = description.not_where;
    rows.push_back(cat("| ", names, " | ", of, " | ", description.does, " | ", not_where, not_where.empty() ? "" : " ",
                       "| `", file_of(description), "` |\n"));
  }
  for (const auto& [name, unused] : levels)
    CHECK_MESSAGE(described.contains(name), name, ": call registry.describe where it is registered");
  std::sort(rows.begin(), rows.end());
  std::string table = "| Name | Level | What it does | Not where | File |\n|---|---|---|---|---|\n";
  for (const std::string& row : rows) table += row;
  test::check_table_of_optimizer("fusions", table, "test_fusions");
}
