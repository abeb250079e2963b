#include "cuda_ops/counts.h"

#include <doctest/doctest.h>

#include <iostream>
#include <map>
#include <set>

#include "providers/cuda/lowering/lowering.h"

namespace infernode::test {

namespace {

std::map<std::string, int>& counts() {
  static std::map<std::string, int> all;
  return all;
}

/// Writes `on the device: Conv 12`, a line for each operator that has a lowering.
struct Report final : doctest::IReporter {
  explicit Report(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats&) override {
    cuda::Lowerings lowerings;
    cuda::register_all(lowerings);
    for (const cuda::Lowering& lowering : lowerings) counts()[lowering.op];
    for (const auto& [op, count] : counts()) std::cout << "on the device: " << op << ' ' << count << '\n';
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("counts", 1, Report);

}  // namespace

void count_on_device(const std::vector<std::string>& operators) {
  for (const std::string& op : std::set<std::string>(operators.begin(), operators.end())) ++counts()[op];
}

}  // namespace infernode::test
