#include "kernel/registry.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/edit_distance.h"

namespace infernode::kernel {
namespace {

std::string_view canonical(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }
std::string_view shown(std::string_view domain) { return domain.empty() ? std::string_view("ai.onnx") : domain; }

std::pair<std::string_view, std::string_view> key(std::string_view domain, std::string_view op) {
  return {canonical(domain), op};
}

bool takes(const KernelDef& kernel, const OpSchema& schema, std::span<const graph::ValueType> types, bool inputs) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i >= (inputs ? schema.max_inputs() : schema.max_outputs())) return false;
    const graph::ValueType& type = types[i];
    if (type.kind == graph::ValueType::Kind::Unknown) continue;
    const TypeConstraint& constraint = schema.constraints[(inputs ? schema.input(i) : schema.output(i)).constraint];
    if (!constraint.accepts(type)) return false;
    if (!type.is_tensor() || type.elem == tensor::DType::Undefined) continue;
    for (const auto& [name, allowed] : kernel.types) {
      if (name == constraint.name && !allowed.contains(type.elem)) return false;
    }
  }
  return true;
}

}  // namespace

void Registry::add(OpSchema schema) {
  auto& versions = schemas_[{schema.domain, schema.name}];
  const auto at = std::lower_bound(versions.begin(), versions.end(), schema.since_version,
                                   [](const OpSchema& s, std::int64_t version) { return s.since_version < version; });
  if (at != versions.end() && at->since_version == schema.since_version)
    fail(ErrorCode::Internal,
         cat(shown(schema.domain), ".", schema.name, " version ", schema.since_version, " is registered twice"));
  versions.insert(at, std::move(schema));
}

void Registry::add(KernelDef def) { kernels_[{def.domain, def.op}].push_back(std::move(def)); }

const OpSchema* Registry::find_schema(std::string_view domain, std::string_view op, std::int64_t version) const {
  const auto found = schemas_.find(key(domain, op));
  if (found == schemas_.end()) return nullptr;
  const OpSchema* in_force = nullptr;
  for (const OpSchema& schema : found->second) {
    if (schema.since_version <= version) in_force = &schema;
  }
  return in_force && !in_force->deprecated ? in_force : nullptr;
}

std::string Registry::why_missing(std::string_view domain, std::string_view op, std::int64_t version) const {
  if (!knows_domain(domain)) {
    std::vector<std::string> domains;
    for (const auto& entry : schemas_) {
      if (domains.empty() || domains.back() != entry.first.first) domains.push_back(entry.first.first);
    }
    const std::string_view near = nearest_name(domain, domains);
    return cat("unknown domain '", domain, "'", near.empty() ? "" : cat(" (did you mean '", near, "'?)"));
  }
  const auto found = schemas_.find(key(domain, op));
  if (found == schemas_.end()) {
    std::vector<std::string> names;
    for (const auto& entry : schemas_) {
      if (entry.first.first == canonical(domain)) names.push_back(entry.first.second);
    }
    const std::string_view near = nearest_name(op, names);
    return cat("no operator '", op, "' in ", shown(domain), near.empty() ? "" : cat(" (did you mean '", near, "'?)"));
  }
  const OpSchema* in_force = nullptr;
  for (const OpSchema& schema : found->second) {
    if (schema.since_version <= version) in_force = &schema;
  }
  if (!in_force)
    return cat(op, " exists from opset ", found->second.front().since_version, " on, the model imports ", version);
  if (in_force->deprecated) return cat(op, " is deprecated since opset ", in_force->since_version);
  return cat("no kernel of ", op, " for these types");
}

const KernelDef* Registry::find_kernel(std::string_view provider, const OpSchema& schema,
                                       std::span<const graph::ValueType> inputs,
                                       std::span<const graph::ValueType> outputs) const {
  const auto found = kernels_.find(key(schema.domain, schema.name));
  if (found == kernels_.end()) return nullptr;
  for (const KernelDef& kernel : found->second) {
    if (kernel.provider != provider) continue;
    if (schema.since_version < kernel.from_version || schema.since_version > kernel.to_version) continue;
    if (takes(kernel, schema, inputs, true) && takes(kernel, schema, outputs, false)) return &kernel;
  }
  return nullptr;
}

bool Registry::knows_domain(std::string_view domain) const {
  domain = canonical(domain);
  const auto at = schemas_.lower_bound(key(domain, ""));
  return domain.empty() || (at != schemas_.end() && at->first.first == domain);
}

std::int64_t Registry::newest_opset(std::string_view domain) const {
  domain = canonical(domain);
  if (domain.empty()) return kNewestOnnxOpset;
  if (domain == "ai.onnx.ml") return kNewestMlOpset;
  std::int64_t newest = 0;
  for (auto at = schemas_.lower_bound(key(domain, "")); at != schemas_.end() && at->first.first == domain; ++at) {
    newest = std::max(newest, at->second.back().since_version);
  }
  return newest;
}

std::vector<const OpSchema*> Registry::schemas() const {
  std::vector<const OpSchema*> out;
  for (const auto& entry : schemas_) {
    for (const OpSchema& schema : entry.second) out.push_back(&schema);
  }
  return out;
}

std::vector<const KernelDef*> Registry::kernels() const {
  std::vector<const KernelDef*> out;
  for (const auto& entry : kernels_) {
    for (const KernelDef& kernel : entry.second) out.push_back(&kernel);
  }
  return out;
}

}  // namespace infernode::kernel
