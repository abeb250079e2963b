// What one LabelEncoder makes of another one's labels is known beforehand.

#include <algorithm>

#include "fusions/rewrite.h"
#include "ops/common/label_map.h"

namespace infernode::fusions {
namespace {

using graph::Attributes;
using tensor::DType;
using tensor::Tensor;

/// From this version on the attributes say keys and values; before, a list of classes meant either way.
constexpr std::int64_t kHasKeys = 2;
/// From this version on, keys and values may be tensors.
constexpr std::int64_t kHasTensors = 4;

std::vector<tensor::DType> list_types(std::int64_t version) {
  std::vector<DType> types{DType::String, DType::Int64, DType::Float32};
  if (version >= kHasTensors) types.insert(types.end(), {DType::Int32, DType::Int16, DType::Float64});
  return types;
}

/// One list for each of keys and values, of one length and of types that the version knows.
bool is_map(const graph::Node& node) {
  if (node.opset < kHasKeys) return false;
  const Attributes& a = node.attributes;
  for (const char* name : {"keys", "values"}) {
    int lists = 0;
    for (const char* kind : {"_tensor", "_strings", "_int64s", "_floats"}) lists += a.has(std::string(name) + kind);
    if (lists != 1) return false;
  }
  const Tensor keys = ops::label_list(a, "keys"), values = ops::label_list(a, "values");
  const Tensor* other = a.get_tensor("default_tensor");
  return keys.numel() == values.numel() &&
         (other == nullptr || (other->numel() == 1 && other->dtype() == values.dtype()));
}

/// Lists that the kernel would refuse stay with it.
bool guard(const Match& match) {
  if (!is_map(match.node(0)) || !is_map(match.node(1))) return false;
  const DType between = ops::label_list(match.node(0).attributes, "values").dtype();
  const DType result = ops::label_list(match.node(1).attributes, "values").dtype();
  const auto types = list_types(match.node(0).opset);
  return match.node(0).opset == match.node(1).opset && std::find(types.begin(), types.end(), result) != types.end() &&
         between == ops::label_list(match.node(1).attributes, "keys").dtype();
}

template <class T>
std::vector<T> elements(const Tensor& t) {
  return {t.data<T>(), t.data<T>() + t.numel()};
}

/// The list and the default in the plainest form that their type has.
void set_values(Attributes& to, const Tensor& values, const Tensor& other) {
  switch (values.dtype()) {
    case DType::String:
      to.set("values_strings", elements<std::string>(values));
      to.set("default_string", *other.data<std::string>());
      return;
    case DType::Int64:
      to.set("values_int64s", elements<std::int64_t>(values));
      to.set("default_int64", *other.data<std::int64_t>());
      return;
    case DType::Float32:
      to.set("values_floats", elements<float>(values));
      to.set("default_float", *other.data<float>());
      return;
    default:
      to.set("values_tensor", values);
      to.set("default_tensor", other);
  }
}

std::vector<graph::ValueId> replace(const Match& match, graph::GraphPatch& patch) {
  const Attributes &first = match.node(0).attributes, &second = match.node(1).attributes;
  const Tensor between = ops::label_list(first, "values"), results = ops::label_list(second, "values");
  const Tensor fallback = ops::label_default(second, results.dtype());
  const ops::KeyIndex keys(ops::label_list(second, "keys"));
  const auto look_up = [&](const Tensor& labels) {
    Tensor out = Tensor::make(results.dtype(), labels.shape());
    ops::map_labels(keys, labels, results, fallback, out);
    return out;
  };
  graph::Node node = match.node(1);
  node.inputs = match.node(0).inputs;
  node.attributes = {};
  for (const auto& [name, value] : first) {
    if (name.starts_with("keys_")) node.attributes.set(name, value);
  }
  set_values(node.attributes, look_up(between), look_up(ops::label_default(first, between.dtype())));
  return put(match, patch, std::move(node));
}

}  // namespace

void register_label_encoders(FusionRegistry& registry) {
  registry.describe({"LabelEncoderFusion"}, "two LabelEncoders in a row become one");
  registry.add({"LabelEncoderFusion", 1,
                "(x) => (y) { m = ai.onnx.ml.LabelEncoder(x)  y = ai.onnx.ml.LabelEncoder(m) }", guard, replace});
}

}  // namespace infernode::fusions
