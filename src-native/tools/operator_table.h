#pragma once
// docs/operators.md, from what the registry holds: the program beside it writes the file, a test compares it.

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/registry.h"

namespace infernode::tools {

using Versions = std::vector<const kernel::OpSchema*>;

inline std::string versions_of(const Versions& schemas) {
  std::string out;
  for (const kernel::OpSchema* schema : schemas)
    out += cat(out.empty() ? "" : ", ", schema->since_version, schema->deprecated ? " (gone)" : "");
  return out;
}

/// What the newest version takes, by named type constraint.
inline std::string types_of(const Versions& schemas) {
  const kernel::OpSchema* newest = nullptr;
  for (const kernel::OpSchema* schema : schemas) {
    if (!schema->deprecated) newest = schema;
  }
  std::string out;
  if (newest == nullptr) return out;
  for (const kernel::TypeConstraint& constraint : newest->constraints) {
    if (!constraint.name.empty()) out += cat(out.empty() ? "" : "<br>", constraint.name, ": ", constraint.to_string());
  }
  return out;
}

/// The whole file.
inline std::string operator_table(const kernel::Registry& registry) {
  std::map<std::string, std::map<std::string, Versions>> domains;
  for (const kernel::OpSchema* schema : registry.schemas()) domains[schema->domain][schema->name].push_back(schema);
  std::string out =
      "# Operators\n\nWhat the CPU provider runs: each operator with the versions it changed in, and the element types "
      "that "
      "its newest version takes.\nWritten by `npm run docs:operators`.\n";
  for (const auto& [domain, operators] : domains) {
    out += cat("\n## ", domain.empty() ? "ai.onnx" : domain, "\n\n", operators.size(),
               " operators.\n\n| operator | versions | types |\n| --- | --- | --- |\n");
    for (const auto& [name, schemas] : operators)
      out += cat("| ", name, " | ", versions_of(schemas), " | ", types_of(schemas), " |\n");
  }
  return out;
}

}  // namespace infernode::tools
