// docs/optimizer.md has the table of passes that the list of them is.
#include "passes/list.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "base/error.h"

using namespace infernode;

namespace {

const std::string kDocs = INFERNODE_TEST_FIXTURES "/../../docs/optimizer.md";
const std::string kBegin = "<!-- passes -->\n", kEnd = "<!-- end of passes -->\n";

std::string table() {
  std::string out = "| Name | Level | What it does | Not where | File |\n|---|---|---|---|---|\n";
  for (const passes::Pass& pass : passes::listed_passes()) {
    const std::string not_where = pass.not_where;
    out += cat("| `", pass.name, "` | ", pass.level, " | ", pass.does, " | ", not_where, not_where.empty() ? "" : " ",
               "| `", pass.file, "` |\n");
  }
  return out;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("docs/optimizer.md lists every pass in the order in which they run") {
  std::string text = read(kDocs);
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::size_t from = begin + kBegin.size();
  const std::string wanted = cat("\n", table(), "\n");
  if (std::getenv("INFERNODE_WRITE_DOCS") != nullptr) {
    text.replace(from, end - from, wanted);
    std::ofstream(kDocs, std::ios::binary) << text;
    return;
  }
  CHECK_MESSAGE(text.substr(from, end - from) == wanted,
                "run test_passes with INFERNODE_WRITE_DOCS=1: the table of passes in docs/optimizer.md is an old one");
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
