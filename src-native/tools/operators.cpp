// Prints the table of operators that docs/operators.md is: what the registry holds, by domain.

#include <cstdio>
#include <map>

#include "kernel/registry.h"

namespace infernode::ops {
void register_all(kernel::OpRegistrar& registrar);
}

using namespace infernode;
using kernel::OpSchema;

namespace {

using Versions = std::vector<const OpSchema*>;

std::string versions(const Versions& schemas) {
  std::string out;
  for (const OpSchema* schema : schemas) {
    out += (out.empty() ? "" : ", ") + std::to_string(schema->since_version) + (schema->deprecated ? " (gone)" : "");
  }
  return out;
}

/// What the newest version takes, by named type constraint.
std::string types(const Versions& schemas) {
  const OpSchema* newest = nullptr;
  for (const OpSchema* schema : schemas) {
    if (!schema->deprecated) newest = schema;
  }
  std::string out;
  if (newest == nullptr) return out;
  for (const kernel::TypeConstraint& constraint : newest->constraints) {
    if (!constraint.name.empty()) out += (out.empty() ? "" : "<br>") + constraint.name + ": " + constraint.to_string();
  }
  return out;
}

}  // namespace

int main() {
  kernel::Registry registry;
  kernel::OpRegistrar registrar(registry);
  ops::register_all(registrar);
  std::map<std::string, std::map<std::string, Versions>> domains;
  for (const OpSchema* schema : registry.schemas()) domains[schema->domain][schema->name].push_back(schema);
  for (const auto& [domain, operators] : domains) {
    std::printf("\n## %s\n\n%zu operators.\n\n| operator | versions | types |\n| --- | --- | --- |\n",
                domain.empty() ? "ai.onnx" : domain.c_str(), operators.size());
    for (const auto& [name, schemas] : operators)
      std::printf("| %s | %s | %s |\n", name.c_str(), versions(schemas).c_str(), types(schemas).c_str());
  }
}
