// The registry against the standard (test/fixtures/onnx-schemas.json, written by test/generators/onnx-schemas.py).

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "ops/op_test.h"
#include "tools/operator_table.h"

namespace infernode::test {
namespace {

using kernel::OpSchema;
using kernel::TypeConstraint;

/// Every type a constraint takes, as ONNX spells it, sorted.
std::string types_of(const TypeConstraint& constraint) {
  std::set<std::string> types;
  const auto add = [&](const tensor::TypeSet& set, const char* before, const char* after) {
    for (int code = 1; code < tensor::kDTypeCount; ++code) {
      const auto type = static_cast<DType>(code);
      if (set.contains(type)) types.insert(cat(before, "tensor(", tensor::onnx_name(type), ")", after));
    }
  };
  add(constraint.tensor, "", "");
  add(constraint.sequence, "seq(", ")");
  add(constraint.optional_tensor, "optional(", ")");
  add(constraint.optional_sequence, "optional(seq(", "))");
  for (std::string map : constraint.maps) {
    std::erase(map, ' ');
    types.insert(map);
  }
  std::string out = constraint.any ? "any" : "";
  for (const std::string& type : types) out += cat(out.empty() ? "" : " ", type);
  return out;
}

/// What stands in the fixture for this version of an operator.
std::string line_of(const OpSchema& schema) {
  const std::string start =
      cat(schema.domain.empty() ? "ai.onnx" : schema.domain, " ", schema.name, " ", schema.since_version, ": ");
  if (schema.deprecated) return start + "deprecated";
  std::vector<std::string> sets;
  const auto parameters = [&](const std::vector<kernel::Parameter>& list) {
    std::string out;
    for (const kernel::Parameter& parameter : list) {
      const std::string types = types_of(schema.constraints[parameter.constraint]);
      auto at = std::find(sets.begin(), sets.end(), types);
      if (at == sets.end()) at = sets.insert(sets.end(), types);
      constexpr const char* kMarks[] = {"", "?", "*", "**"};
      out += cat(out.empty() ? "" : ", ", "T", at - sets.begin(), kMarks[static_cast<std::size_t>(parameter.arity)]);
    }
    return out;
  };
  std::string out = start + parameters(schema.inputs);
  out += cat(" -> ", parameters(schema.outputs));
  for (std::size_t i = 0; i < sets.size(); ++i) out += cat("; T", i, " = ", sets[i]);
  return out;
}

std::string key_of(const std::string& line) { return line.substr(0, line.find(':')); }

struct Exception {
  std::string_view key, reason;
};
constexpr std::string_view kStillWritten = "gone from the standard in this version, but exporters write it and it runs";
constexpr Exception kExceptions[] = {
    {"ai.onnx GroupNormalization 18", kStillWritten},
    {"ai.onnx.ml TreeEnsembleClassifier 5", kStillWritten},
    {"ai.onnx.ml TreeEnsembleRegressor 5", kStillWritten},
};

/// By "domain name version".
std::map<std::string, std::string> standard() {
  std::ifstream file(INFERNODE_TEST_FIXTURES "/onnx-schemas.json");
  REQUIRE(file.good());
  std::map<std::string, std::string> lines;
  for (std::string text; std::getline(file, text);) {
    if (!text.starts_with('"')) continue;
    const std::string line = text.substr(1, text.rfind('"') - 1);
    lines.emplace(key_of(line), line);
  }
  return lines;
}

}  // namespace

TEST_CASE("Every operator, version and type of the standard is registered") {
  std::map<std::string, std::string> registered;
  for (const OpSchema* schema : registry().schemas()) {
    const std::string line = line_of(*schema);
    registered.emplace(key_of(line), line);
  }
  for (const auto& [key, line] : standard()) {
    const auto found = registered.find(key);
    if (found == registered.end()) {
      FAIL_CHECK("missing: ", line);
      continue;
    }
    const auto* exception = std::find_if(std::begin(kExceptions), std::end(kExceptions),
                                         [&key = key](const Exception& e) { return e.key == key; });
    if (exception == std::end(kExceptions)) {
      CHECK_MESSAGE(found->second == line, "registered: ", found->second, "\n  standard:   ", line);
    } else {
      CHECK_MESSAGE(found->second != line, key, " is no exception any more: ", exception->reason);
    }
  }
}

TEST_CASE("docs/operators.md lists every operator with its versions and types") {
  std::ifstream file(INFERNODE_TEST_FIXTURES "/../../docs/operators.md");
  REQUIRE(file.good());
  std::istringstream wanted(tools::operator_table(registry()));
  std::string line, has;
  while (std::getline(wanted, line) && std::getline(file, has) && line == has) continue;
  CHECK_MESSAGE((wanted.eof() && file.peek() == EOF), "run `npm run docs:operators`: docs/operators.md has\n  ", has,
                "\ninstead of\n  ", line);
}

}  // namespace infernode::test
