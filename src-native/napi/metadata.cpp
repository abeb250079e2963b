#include "napi/metadata.h"

#include <algorithm>

#include "graph/value_type.h"
#include "napi/wire.h"

namespace infernode::napi {

namespace {

using graph::ValueType;

const char* kind_name(ValueType::Kind kind) {
  switch (kind) {
    case ValueType::Kind::Sequence:
      return "sequence";
    case ValueType::Kind::Map:
      return "map";
    case ValueType::Kind::SparseTensor:
      return "sparse";
    default:
      return "tensor";
  }
}

/// The element type of the tensors within: of a sequence its items', of a map its values'.
tensor::DType element_type(const ValueType& type) {
  if (type.is_tensor() || type.kind == ValueType::Kind::SparseTensor) return type.elem;
  return type.inner ? element_type(*type.inner) : tensor::DType::Undefined;
}

Napi::Value shape_of(Napi::Env env, const ValueType& type) {
  if (!type.is_tensor() || !type.shape) return env.Null();
  const Napi::Array shape = Napi::Array::New(env, type.shape->size());
  std::uint32_t i = 0;
  for (const graph::Dim& dim : *type.shape) {
    if (dim.known() && dim.value() > kLargestInteger) {
      shape.Set(i++, std::to_string(dim.value()));  // which no number says as it is
    } else if (dim.known()) {
      shape.Set(i++, static_cast<double>(dim.value()));
    } else {
      shape.Set(i++, dim.symbol_name());
    }
  }
  return shape;
}

/// Sets a key of the model's making: '__proto__' is one like any other.
void define(const Napi::Object& object, const std::string& key, const Napi::Value& value) {
  object.DefineProperty(Napi::PropertyDescriptor::Value(
      Napi::String::New(object.Env(), key), value,
      static_cast<napi_property_attributes>(napi_writable | napi_enumerable | napi_configurable)));
}

}  // namespace

Napi::Value value_infos(Napi::Env env, const std::vector<session::ValueMetadata>& values) {
  const Napi::Array infos = Napi::Array::New(env, values.size());
  std::uint32_t i = 0;
  for (const session::ValueMetadata& value : values) {
    const bool optional = value.type.kind == ValueType::Kind::Optional;
    const ValueType& type = optional && value.type.inner ? *value.type.inner : value.type;
    const Napi::Object info = Napi::Object::New(env);
    info.Set("name", value.name);
    info.Set("kind", kind_name(type.kind));
    info.Set("optional", optional);
    info.Set("elementType", static_cast<int>(element_type(type)));
    info.Set("shape", shape_of(env, type));
    info.Set("overridable", value.overridable);
    infos.Set(i++, info);
  }
  return infos;
}

Napi::Value model_metadata(Napi::Env env, const graph::ModelInfo& info) {
  const Napi::Object metadata = Napi::Object::New(env);
  metadata.Set("producerName", info.producer_name);
  metadata.Set("producerVersion", info.producer_version);
  metadata.Set("domain", info.domain);
  metadata.Set("graphName", info.graph_name);
  metadata.Set("description", info.doc);
  metadata.Set("modelVersion", static_cast<double>(info.model_version));
  metadata.Set("irVersion", static_cast<double>(info.ir_version));
  const Napi::Object opsets = Napi::Object::New(env);
  for (const auto& [domain, version] : info.opsets) {
    define(opsets, domain.empty() ? "ai.onnx" : domain, Napi::Number::New(env, static_cast<double>(version)));
  }
  metadata.Set("opsets", opsets);
  const Napi::Object custom = Napi::Object::New(env);
  for (const auto& [key, value] : info.metadata) define(custom, key, Napi::String::New(env, value));
  metadata.Set("custom", custom);
  return metadata;
}

Napi::Value placements(Napi::Env env, const std::vector<provider::Placement>& placements) {
  const Napi::Array array = Napi::Array::New(env, placements.size());
  std::uint32_t i = 0;
  for (const provider::Placement& placement : placements) {
    const Napi::Object entry = Napi::Object::New(env);
    entry.Set("node", placement.node);
    entry.Set("opType", placement.op_type);
    entry.Set("provider", placement.provider);
    entry.Set("reason", placement.reason);
    array.Set(i++, entry);
  }
  return array;
}

Napi::Value device_names(Napi::Env env, const session::Session& session) {
  std::vector<std::string> names;
  for (const session::ProviderChoice& choice : session.options().providers) {
    try {
      names.push_back(session.device(choice.name).to_string());
    } catch (const Error&) {
      // the provider could not start, and another took its place
    }
  }
  std::erase(names, "cpu");
  names.emplace_back("cpu");
  const Napi::Array array = Napi::Array::New(env, names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) array.Set(i, names[i]);
  return array;
}

}  // namespace infernode::napi
