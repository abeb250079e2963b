#pragma once
// Tables of docs/ that lists in the sources are: a test writes them, between two comments, where INFERNODE_WRITE_DOCS
// is set, and else compares.

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace infernode::test {

/// Lines of a file of docs/ between "<!-- name -->" and "<!-- end of name -->"; `program` is the test's.
inline void check_table(const std::string& file, const std::string& name, const std::string& table,
                        const std::string& program) {
  const std::string path = INFERNODE_TEST_FIXTURES "/../../docs/" + file;
  const std::string begin = "<!-- " + name + " -->\n", end = "<!-- end of " + name + " -->\n";
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = bytes.str();
  const std::size_t from = text.find(begin), to = text.find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::size_t start = from + begin.size();
  const std::string wanted = "\n" + table + "\n";
  if (std::getenv("INFERNODE_WRITE_DOCS") != nullptr) {
    text.replace(start, to - start, wanted);
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  CHECK_MESSAGE(text.substr(start, to - start) == wanted, "run ", program,
                " with INFERNODE_WRITE_DOCS=1: the table of ", name, " in docs/", file, " is an old one");
}

inline void check_table_of_optimizer(const std::string& name, const std::string& table, const std::string& program) {
  check_table("optimizer.md", name, table, program);
}

}  // namespace infernode::test
