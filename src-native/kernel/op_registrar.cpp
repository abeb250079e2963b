#include "kernel/op_registrar.h"

#include <algorithm>
#include <exception>

#include "base/error.h"
#include "kernel/registry.h"

namespace infernode::kernel {

OpBuilder::OpBuilder(Registry& registry, std::string domain, std::string name)
    : registry_(registry),
      domain_(std::move(domain)),
      name_(std::move(name)),
      exceptions_(std::uncaught_exceptions()) {}

OpBuilder::~OpBuilder() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) return;
  std::int64_t from = INT64_MAX, to = 0;
  for (const OpSchema& schema : schemas_) {
    if (schema.deprecated) continue;
    from = std::min(from, schema.since_version);
    to = std::max(to, schema.since_version);
  }
  for (KernelDef& kernel : kernels_) {
    kernel.from_version = from;
    kernel.to_version = to;
    registry_.add(std::move(kernel));
  }
  for (OpSchema& schema : schemas_) {
    if (!schema.infer) schema.infer = infer_;
    schema.deterministic = deterministic_;
    registry_.add(std::move(schema));
  }
}

OpBuilder& OpBuilder::version(std::int64_t since, std::string_view signature) {
  if (has_traits_) fail(ErrorCode::Internal, cat(name_, ": version ", since, " stands behind traits"));
  schemas_.push_back(parse_signature(domain_, name_, since, signature));
  return *this;
}

OpBuilder& OpBuilder::deprecated(std::int64_t since) {
  OpSchema schema;
  schema.domain = domain_;
  schema.name = name_;
  schema.since_version = since;
  schema.deprecated = true;
  schemas_.push_back(std::move(schema));
  return *this;
}

OpBuilder& OpBuilder::infer(InferFn fn) {
  for (OpSchema& schema : schemas_) {
    if (!schema.infer) schema.infer = fn;
  }
  infer_ = fn;
  return *this;
}

OpBuilder& OpBuilder::nondeterministic() {
  deterministic_ = false;
  return *this;
}

template <class Set>
OpBuilder& OpBuilder::trait(std::int64_t since, const Set& set) {
  bool any = false;
  for (OpSchema& schema : schemas_) {
    if (schema.since_version < since || schema.deprecated) continue;
    set(schema.traits);
    any = true;
  }
  if (!any) fail(ErrorCode::Internal, cat(name_, ": no version before this trait has it"));
  has_traits_ = true;
  return *this;
}

OpBuilder& OpBuilder::axes(Axes how, std::int64_t since) {
  return trait(since, [&](OpTraits& traits) {
    traits.axes = how;
    if (traits.is_elementwise() && traits.blocks == Blocks::None) traits.blocks = Blocks::Float;
  });
}

OpBuilder& OpBuilder::along_axis(std::int64_t default_axis, std::int64_t since) {
  return trait(since, [&](OpTraits& traits) {
    traits.axes = Axes::Along;
    traits.default_axis = default_axis;
  });
}

OpBuilder& OpBuilder::moves(Moves how) {
  return trait(1, [&](OpTraits& traits) { traits.moves = how; });
}

OpBuilder& OpBuilder::blocks(Blocks kind, std::int64_t since) {
  return trait(since, [&](OpTraits& traits) { traits.blocks = kind; });
}

OpBuilder& OpBuilder::product(Product kind) {
  return trait(1, [&](OpTraits& traits) { traits.product = kind; });
}

OpBuilder& OpBuilder::commutative() {
  return trait(1, [](OpTraits& traits) { traits.commutative = true; });
}

OpBuilder& OpBuilder::passes_one_on() {
  return trait(1, [](OpTraits& traits) { traits.passes_one_on = true; });
}

OpBuilder& OpBuilder::bounds(BoundsFn fn) {
  return trait(1, [&](OpTraits& traits) { traits.bounds = fn; });
}

OpBuilder& OpBuilder::neutral(double value, std::int64_t since) {
  return trait(since, [&](OpTraits& traits) { traits.neutral = Neutral{value}; });
}

OpBuilder& OpBuilder::activation(ActivationFn fn) {
  return trait(1, [&](OpTraits& traits) { traits.activation = fn; });
}

OpBuilder& OpBuilder::definition(DefinitionFn fn) {
  return trait(1, [&](OpTraits& traits) { traits.definition = fn; });
}

OpBuilder& OpBuilder::on_codes(const char* op) {
  return trait(1, [&](OpTraits& traits) { traits.on_codes = op; });
}

OpBuilder& OpBuilder::function(std::string_view body) {
  for (OpSchema& schema : schemas_) {
    if (schema.function_body.empty()) schema.function_body = body;
  }
  return *this;
}

OpBuilder& OpBuilder::kernel(KernelFactory make, std::vector<std::pair<std::string, tensor::TypeSet>> types) {
  KernelDef def;
  def.domain = domain_;
  def.op = name_;
  def.make = make;
  def.types = std::move(types);
  kernels_.push_back(std::move(def));
  return *this;
}

OpBuilder& OpBuilder::methods(MethodsFn fn) {
  if (kernels_.empty()) fail(ErrorCode::Internal, cat(name_, ": methods() stands before kernel()"));
  kernels_.back().methods = fn;
  return *this;
}

OpBuilder& OpBuilder::in_place(std::uint8_t input, std::uint8_t output) {
  if (kernels_.empty()) fail(ErrorCode::Internal, cat(name_, ": in_place() stands before kernel()"));
  kernels_.back().in_place.push_back({input, output});
  return *this;
}

OpBuilder& OpBuilder::alias(std::uint8_t input, std::uint8_t output) {
  if (kernels_.empty()) fail(ErrorCode::Internal, cat(name_, ": alias() stands before kernel()"));
  kernels_.back().alias.push_back({input, output});
  return *this;
}

}  // namespace infernode::kernel
